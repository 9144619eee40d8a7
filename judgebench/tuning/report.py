"""The presentation of judges that learn: tables declared as data, and how folds were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from judgebench.alignment.judge_scores import STATISTICS
from judgebench.records import Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import Cell, Content, Table, TableSpec
from judgebench.text import counted
from judgebench.tuning.measure import Tuned

_HEADINGS = {key: declared.heading for key, declared in STATISTICS.items()}
_NOT_JOINED = (
    "Texts that say nearly the same tie too many answers together for one fold: whole questions "
    "are in a fold, and what says nearly the same is not learnt from."
)

TuningTable = TableSpec[Tuned]


def _gains(tuned: Tuned) -> Iterator[Row]:
    """Judges beside their baselines, what is shown of the differences, and scores without folds."""
    for row in tuned.rows.select("gain", failures="left_out"):
        yield row
        if row["shown"]:
            yield replace(row, keys={**row.keys, "side": "shown"})
    yield from tuned.rows.select("otherwise", **{"as": "in-sample", "side": "otherwise"})


GAINS = TuningTable(
    "tuning_gains",
    "What learning brought",
    _gains,
    ("metric", "judge", "statistic"),
    "side",
    (
        "Out of fold: no answer is judged by what was learnt from it, from another answer to its "
        "question, or from one that says nearly the same. The baseline is the judge that it learnt "
        "from, or else the baseline that is the strongest by that statistic; the mark names it. "
        "That it is the strongest on these answers favours it.",
        "A gain is shown where the interval lies above 0 and a permutation test is significant, "
        "whether missing labels are left out or count as wrong. Holm's correction is over judges, "
        "metrics and all controls, as the strongest is picked afterwards. Without folds: what one "
        "would have claimed.",
    ),
    {
        "baseline": "Baseline", "learnt": "Out of fold", "difference": "Difference",
        "shown": "Gain", "otherwise": "Without folds",
    },
)  # fmt: skip
_SCREEN = replace(
    GAINS,
    title=f"{GAINS.title}: {_HEADINGS['accuracy'].lower()}",
    rows=lambda tuned: [row for row in _gains(tuned) if row.statistic == "accuracy"],
    down=("metric", "judge"),
    notes=(),
)
_OTHERWISE = TuningTable(
    "tuning_otherwise",
    "The same judges taught otherwise",
    lambda tuned: [r for r in tuned.rows.select("otherwise") if r["as"] != "in-sample"],
    ("metric", "judge", "as", "statistic"),
    "side",
    (
        "n50: learnt from 50 labelled answers. More labels help where the difference lies below 0. "
        "without-SYSTEM: learnt from no answer of that system, and scored on its answers. Nothing "
        "is corrected for how many judges and metrics there are.",
    ),
    {"otherwise": "Taught so", "learnt": "The judge", "difference": "Difference"},
    {"as": "Taught"},
)


def tuning_part(tuned: Tuned) -> ReportSection:
    """The part."""
    screen = show(tuned, _SCREEN)
    cells = (tuple(Cell(c.value, remark=c.remark) for c in row) for row in screen.rows)
    brief = replace(screen, rows=tuple(cells))
    blocks = (
        Block("Judges that learn", tables=(show(tuned, GAINS),), on_screen=True),
        Block("Taught otherwise", tables=(show(tuned, _OTHERWISE),), on_screen=True),
    )
    return ReportSection(
        "tuning",
        "judges that learn",
        tuned.rows,
        blocks,
        tuned.notes if tuned.joined else (*tuned.notes, _NOT_JOINED),
        screen=(Block("Judges that learn", tables=(brief,)),),
        urgent=(*tuned.collapsed.values(), *_waits(tuned)),
    )


def _waits(tuned: Tuned) -> Iterator[str]:
    for judge, n in tuned.waiting.items():
        decisions = counted(n, "decision of people", "decisions of people")
        yield f"{judge} waits for {decisions} (judgebench tune rounds) and learnt without them."


def show(tuned: Tuned, spec: TuningTable) -> Table:
    """The table, by metric; baselines come last."""
    order = [(metric, judge) for metric in tuned.titles for judge in tuned.judges_in_order]
    statistics = [*_HEADINGS]
    names = {
        "metric": tuned.titles,
        "judge": {judge: tuned.shown_name(judge) for judge in tuned.judges},
        "statistic": _HEADINGS,
    }
    ranked = sorted(
        spec.rows(tuned),
        key=lambda row: (order.index((row.metric, row.judge)), statistics.index(row.statistic)),
    )
    return spec.layout.by_keys(ranked, spec.down, spec.across, names, partial(_cell, tuned))


def _cell(tuned: Tuned, row: Row) -> Content:
    """A number, whose mark names the baseline, or what is shown in words."""
    if row["side"] == "shown":
        return row["shown"]
    which = "strongest baseline" if tuned.is_control(row["who"]) else "baseline"
    remark = f"{which}: {row['who']}" if row["side"] == "baseline" else ""
    return Cell(estimate=row.estimate, remark=remark, signed=row["side"] == "difference")
