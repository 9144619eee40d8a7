"""The presentation of judges that learn: tables declared as data, learning curves as intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from judgebench.alignment.judge_scores import STATISTICS
from judgebench.records import Row
from judgebench.results.blocks import Block, Intervals, LabelledInterval, ReportSection
from judgebench.results.tables import Cell, Content, Layout, Table, TableSpec
from judgebench.text import counted
from judgebench.tuning.measure import Tuned, labels_of

_HEADINGS = {key: declared.heading for key, declared in STATISTICS.items()}
_MAX_FACT = 200  # characters of what was learnt in a fold
_MAIN = ("accuracy", "balanced_accuracy")
_SHOWN = {
    "a gain is shown": "shown", "no gain is shown": "not shown", "a loss is shown": "loss shown",
}  # fmt: skip


TuningTable = TableSpec[Tuned]


def _gains(found: Tuned) -> Iterator[Row]:
    """Judges beside their baselines, what is shown of the differences, and scores without folds."""
    for row in found.rows.select("gain", failures="left_out"):
        yield row
        if row["shown"]:
            yield replace(row, keys={**row.keys, "side": "shown"})
    yield from found.rows.select("otherwise", kind="in-sample", side="otherwise")


_BY_STATISTIC = ("metric", "judge", "statistic")
_GAINS = TuningTable(
    "tuning_gains",
    "What learning brought",
    _gains,
    _BY_STATISTIC,
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
_SCORES = TuningTable(
    "tuning_scores",
    "Judges that learnt, out of fold, beside what they learnt from and baselines",
    lambda found: found.rows.select("score"),
    ("metric", "judge"),
    headings=_HEADINGS,
)
_OTHERWISE = TuningTable(
    "tuning_otherwise",
    "The same judges taught otherwise, or without the answers of a system",
    lambda found: [
        row for row in found.rows.select("otherwise") if row["kind"] in ("system", "other")
    ],
    ("metric", "judge", "as", "statistic"),
    "side",
    headings={"otherwise": "Taught so", "learnt": "The judge", "difference": "Difference"},
    stubs={"as": "Taught"},
)


def tuning_part(found: Tuned) -> ReportSection:
    """The part."""
    gains, scores = show(found, _GAINS), show(found, _SCORES)
    blocks = (
        Block("Judges that learn", tables=(gains, scores), on_screen=True),
        Block("Learning curves", tables=(_curve(found),), figures=tuple(_figures(found)),
              on_screen=True),
        Block("Taught otherwise", tables=(show(found, _OTHERWISE),), on_screen=True),
        Block("How the folds were made", tuple(_folds(found)), (_cells(found),), folded=True),
    )  # fmt: skip
    screen = (Block("Judges that learn", tables=(_narrow(gains),)),)
    collapsed = tuple(found.collapsed.values())
    title = "judges that learn"
    return ReportSection(
        "tuning", title, found.rows, blocks, found.notes, screen=screen, urgent=collapsed
    )


def show(found: Tuned, spec: TuningTable) -> Table:
    """The table, by metric; baselines come last."""
    order = [(metric, judge) for metric in found.titles for judge in found.judges_in_order]
    names = {
        "metric": found.titles,
        "judge": {judge: found.shown_name(judge) for judge in found.judges},
        "statistic": _HEADINGS,
    }
    statistics = [*_HEADINGS]
    ranked = sorted(
        spec.rows(found),
        key=lambda row: (order.index((row.metric, row.judge)), statistics.index(row.statistic)),
    )
    return spec.layout.by_keys(ranked, spec.down, spec.across, names, partial(_cell, found))


def _cell(found: Tuned, row: Row) -> Content:
    """A number, whose mark names the baseline, or what is shown in words."""
    if row["side"] == "shown":
        return _SHOWN[row["shown"]]
    which = "strongest baseline" if found.lane(row["who"]) == "control" else "baseline"
    remark = f"{which}: {row['who']}" if row["side"] == "baseline" else ""
    return Cell(estimate=row.estimate, remark=remark, signed=row["side"] == "difference")


def _narrow(table: Table) -> Table:
    """As wide as a screen: accuracy alone, without intervals and notes."""
    place = table.columns.index("Statistic")
    accuracy = _HEADINGS["accuracy"]
    rows = tuple(
        tuple(Cell(cell.value) for cell in (*row[:place], *row[place + 1 :]))
        for row in table.rows
        if row[place].text == accuracy
    )
    columns = tuple(heading for heading in table.columns if heading != "Statistic")
    title = f"{table.title}: {accuracy.lower()}"
    return replace(table, title=title, columns=columns, rows=rows, notes=(), stubs=place)


def _curve(found: Tuned) -> Table:
    """A column for each number of labels and all that there are, and what the last ones bring."""
    of_labels = found.rows.select("otherwise", kind="labels")
    sizes = sorted({labels_of(row) for row in of_labels})
    headings = {f"n{n}": f"{n:,} answers" for n in sizes} | {"": "All"}
    headings |= {f"n{n} − all": f"{n:,} − all" for n in sizes[-1:]}
    learning = {row.judge for row in of_labels}
    rows = [row for row in found.rows.select("score") if row.judge in learning]
    rows += [row for row in of_labels if row["side"] == "otherwise"]
    rows += [
        replace(row, keys={**row.keys, "as": f"{row['as']} − all"})
        for row in of_labels
        if row["side"] == "difference" and labels_of(row) == sizes[-1]
    ]
    notes = (
        "More labels helped where the interval of the last column lies below 0; nothing is "
        "corrected for how many judges and metrics there are.",
    )
    title = "Scores by the number of labelled answers learnt from"
    spec = TuningTable("tuning_curve", title, lambda _: rows, _BY_STATISTIC, "as", notes, headings)
    return show(found, spec)


def _figures(found: Tuned) -> Iterator[Intervals]:
    """The learning curves: numbers of labelled answers down, an interval for each judge."""
    names = [one.name for one in found.taught]
    for statistic in _MAIN:
        lines: dict[str, list[LabelledInterval]] = {}
        for metric, title in found.titles.items():
            curves = {name: found.curve(name, metric, statistic) for name in names}
            for n in sorted({n for curve in curves.values() for n in curve}):
                lines[f"{title}: {n:,} answers"] = [
                    LabelledInterval(found.shown_name(name), found.lane(name), curve[n])
                    for name, curve in curves.items()
                    if n in curve
                ]
        if lines:
            yield Intervals(
                f"learning_curve_{statistic}",
                f"{_HEADINGS[statistic]} by the number of labelled answers learnt from",
                tuple((name, tuple(lanes)) for name, lanes in lines.items()),
                _HEADINGS[statistic],
                down="Learnt from",
            )


# --- in words -------------------------------------------------------------------------------------


def _folds(found: Tuned) -> Iterator[str]:
    """A description of the folds, and of what was left out of what is learnt."""
    told = next((one.folds for one in found.taught if one.folds), None)
    if told is None:
        return
    tied = counted(told["largest"], "answer")
    yield (
        f"{counted(len(told['answers']), 'fold')} of {_span(told['answers'])} answers, each judged "
        f"by what was learnt from {_span(told['learnt_from'])} answers with human labels."
    )
    if told["joined"]:
        yield (
            "Answers to one question, and answers that say nearly the same, are in one fold; the "
            f"largest group that is tied together so holds {tied}."
        )
        return
    yield (
        f"Texts that say nearly the same tie {tied} together, too many for one fold: whole "
        "questions are in a fold, and what says nearly the same as an answer of the fold is not "
        f"learnt from ({counted(sum(told['left_out']), 'answer')} left out over all folds)."
    )


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _cells(found: Tuned) -> Table:
    """The training data and the choice of each fold."""
    rows = []
    for one in found.taught:
        for cell, facts in one.facts.items():
            chosen = [f"{k}: {_brief(v)}" for k, v in facts.items() if k not in ("n", "hash")]
            told = "; ".join(chosen)
            cut = f"{told[:_MAX_FACT]} …" if len(told) > _MAX_FACT else told
            rows.append((one.name, cell, f"{facts['n']:,}", cut))
    columns = ("Judge", "Fold", "Answers", "What was learnt")
    return Layout("tuning_cells", "What was learnt in each fold", columns).listing(rows)


def _brief(fact: object) -> str:
    if isinstance(fact, Mapping):
        return ", ".join(f"{key} {_brief(value)}" for key, value in fact.items())
    if isinstance(fact, list | tuple):
        return ", ".join(map(_brief, fact))
    return f"{fact:.3g}" if isinstance(fact, float) else str(fact)
