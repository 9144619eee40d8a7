"""The tables and figures of tuning.

Learning curves: what a judge reaches with how many labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from judgebench.alignment.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.results.figure import looks_of, new_figure
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Drawing, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Table
from judgebench.tuning.measure import Tuned, labels_of
from judgebench.words import counted, wrapped

_ACROSS = 3  # panels
_FLAT = {"color": "#767676", "linewidth": 1}
_STYLES = (":", "--", "-.", "-")
_APART = 0.02  # of its place: how far lines are moved sideways, so that intervals do not hide


def draw_curves(found: Tuned, statistic: str, heading: str) -> Any:
    """A panel for each metric, a line for each judge that learns; horizontal lines are the judges
    that they learnt from, the constant control and the best of all controls."""
    across = min(_ACROSS, len(found.titles))
    down = -(-len(found.titles) // across)
    names = sorted((one.name for one in found.taught), key=found.lane, reverse=True)
    looks = looks_of([Lane(found.shown_name(n), found.lane(n), Estimate(None)) for n in names])
    flat = {metric: _flat(found, metric, statistic) for metric in found.titles}
    lines = dict.fromkeys(name for values in flat.values() for name in values)
    styles = {name: _STYLES[place % len(_STYLES)] for place, name in enumerate(lines)}
    entries = -(-(len(names) + len(lines)) // 2)
    figure = new_figure(1.4 + 3.4 * across, 0.9 + 2.8 * down + 0.2 * entries)
    grid = figure.subplots(down, across, squeeze=False, sharey=True)
    for number, (axes, metric) in enumerate(zip(grid.flat, found.titles, strict=False)):
        curves = [found.curve(name, metric, statistic) for name in names]
        for place, (points, look) in enumerate(zip(curves, looks.values(), strict=True)):
            moved = 1 + _APART * (place - (len(names) - 1) / 2)
            _line(axes, {n * moved: e for n, e in points.items()}, look)
        for name, value in flat[metric].items():
            axes.axhline(value, linestyle=styles[name], **_FLAT)
        ticks = sorted({n for points in curves for n in points})
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
        axes.minorticks_off()
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_title(wrapped(found.titles[metric], 34), fontsize=10)
        axes.set_xlabel("Labelled answers learnt from")
        axes.set_ylabel("" if number % across else heading)
    for axes in grid.flat[len(found.titles) :]:
        axes.set_visible(False)
    for name, style in styles.items():
        grid.flat[0].plot([], [], linestyle=style, label=wrapped(name, 40), **_FLAT)
    handles = dict(zip(*reversed(grid.flat[0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc="outside lower left", ncols=2)
    return figure


def _line(axes: Any, points: Mapping[float, Estimate], look: Mapping[str, Any]) -> None:
    known = {n: (e.value, e.low, e.high) for n, e in points.items() if e.value is not None}
    y = [value for value, _, _ in known.values()]
    down = [value - (value if low is None else low) for value, low, _ in known.values()]
    up = [(value if high is None else high) - value for value, _, high in known.values()]
    axes.errorbar(list(known), y, yerr=[down, up], linewidth=1.2, elinewidth=0.8, **look)


def _flat(found: Tuned, metric: str, statistic: str) -> Mapping[str, float]:
    """By name, those whose score does not depend on how many labels there are."""
    rows = found.rows.select("score", statistic, metric=metric)
    values = {row.judge: row.estimate.value for row in rows if row.estimate.value is not None}
    needed = [name for one in found.taught for name in one.needs]
    shown = {name: values[name] for name in (*needed, "constant-majority") if name in values}
    controls = [value for name, value in values.items() if found.is_control(name)]
    return {**shown, **({"best baseline": max(controls)} if controls else {})}


_STUBS = ("Metric", "Judge")
_MOST_SAID = 200  # characters of a fact
_DRAWN = ("accuracy", "balanced_accuracy")
_BRIEF = (
    "Metric", "Judge", "Baseline", "Out of fold", "Without folds", "Best baseline", "Difference",
    "Gain",
)  # fmt: skip
_SHOWN = {
    "a gain is shown": "shown", "no gain is shown": "not shown", "a loss is shown": "loss shown",
}  # fmt: skip
_ABOUT_GAINS = (
    "Out of fold: no answer is judged by what was learnt from it, from another answer to its "
    "question, or from one that says nearly the same. The baseline is the judge that it learnt "
    "from, or else the baseline that is the strongest by that statistic; the mark names it. "
    "That it is the strongest on these answers favours it.",
    "A gain is shown where the interval lies above 0 and a permutation test is significant, "
    "whether missing labels are left out or count as wrong. Holm's correction is over judges, "
    "metrics and all controls, as the strongest is picked afterwards.",
)
_ABOUT_BASELINES = (
    "Baseline: the judge that it learnt from; where there is none, the strongest baseline."
)
_ABOUT_CURVES = (
    "A gain is shown where the interval of the last column lies above 0; nothing is corrected for "
    "how many judges and metrics there are.",
)
# kind -> title, what the judge taught otherwise and the judge itself are called, the third stub
_WAYS: Mapping[str, tuple[str, str, str, str]] = {
    "in-sample": ("What one would have claimed without folds", "in-sample", "out of fold", ""),
    "system": ("Answers of systems that nothing was learnt from", "without", "with", "System"),
    "other": ("The same judges taught otherwise", "so", "the judge", "Taught"),
}


def tuning_part(found: Tuned) -> Part:
    """The part."""
    rows = found.rows.select("gain", side="difference", failures="left_out")
    brief = tuple(_summary(found, key) for key in _DRAWN)
    gains = Layout("tuning_gains", "Difference to the baseline", _STUBS, _ABOUT_GAINS, absent=None)
    title = "Judges that learnt, out of fold, beside what they learnt from and baselines"
    reached = Layout("tuning_scores", title, _STUBS, absent=None)
    shown = tuple(
        _table(found, layout, of, lambda row: _title(row.statistic))
        for layout, of in ((gains, rows), (reached, found.rows.select("score")))
    )
    sample, held, other = (_otherwise(found, kind) for kind in _WAYS)
    curves = [_curve(found, key) for key in _DRAWN]
    drawn = tuple(
        Drawing(f"learning_curve_{key}", table.title, partial(draw_curves, found, key, _title(key)))
        for key, table in zip(_DRAWN, curves, strict=True) if table.rows
    )  # fmt: skip
    blocks = (
        Block("Judges that learn", tables=(*brief, *shown), on_screen=True),
        Block("Without folds", tables=(sample,), on_screen=True),
        Block("Systems held out", tables=(held,), on_screen=True),
        Block("Learning curves", tables=tuple(curves), figures=drawn, on_screen=True),
        Block("Taught otherwise", tables=(other,), on_screen=True),
        Block("How the folds were made", tuple(_folds(found)), (_cells(found),), folded=True),
    )  # fmt: skip
    screen = (Block("Judges that learn", tables=tuple(map(_narrow, brief))),)
    said = tuple(found.collapsed.values())
    title = "judges that learn"
    return Part("tuning", title, found.rows, blocks, found.notes, screen=screen, urgent=said)


def _title(statistic: str) -> str:
    return STATISTICS[statistic].heading


def _summary(found: Tuned, key: str) -> Table:
    """In plain numbers: baseline, out of fold, what is shown, without folds, a control."""

    def plain(estimate: Estimate) -> str:
        return Cell(estimate=estimate).value

    rows = []
    for row in found.rows.select("gain", key, side="difference", failures="left_out"):
        about = {"judge": row.judge, "metric": row.metric}
        before, learnt = (
            found.rows.find(key, "gain", side=side, failures="left_out", **about)
            for side in ("baseline", "learnt")
        )
        claimed = found.rows.find(key, "otherwise", side="otherwise", kind="in-sample", **about)
        scores = found.rows.select("score", key, metric=row.metric)
        controls = [r for r in scores if found.is_control(r.judge)]
        best = max(controls, key=lambda r: r.estimate.value or 0.0, default=row)
        control = f"{plain(best.estimate)} ({best.judge})" if controls else DASH
        if not found.is_control(row.judge):
            named = (
                found.titles[row.metric],
                row.judge,
                f"{plain(before)} ({_baseline(found, row)})",
            )
            texts = (*named, plain(learnt), plain(claimed), control)
            difference = Cell(estimate=row.estimate, signed=True)
            rows.append((*texts, difference, _SHOWN[row["shown"]]))
    title, notes = f"{_title(key)}: what learning brought", (_ABOUT_BASELINES,)
    return Layout(f"tuning_brief_{key}", title, _BRIEF[:2], notes, _BRIEF[2:]).listing(rows)


def _baseline(found: Tuned, row: Row) -> str:
    """Its name, and how it became one where nothing came before."""
    return f"{'strongest baseline: ' * (found.lane(row['who']) == 'control')}{row['who']}"


def _narrow(table: Table) -> Table:
    """As wide as a screen: no intervals and names, and no control: that is beside the decisions."""
    kept = [place for place, column in enumerate(_BRIEF) if column != "Best baseline"]

    def bare(row: tuple[Cell, ...], place: int) -> Cell:
        value = row[place].value
        return Cell(value.partition(" (")[0] if _BRIEF[place] == "Baseline" else value)

    rows = tuple(tuple(bare(row, place) for place in kept) for row in table.rows)
    return replace(table, columns=tuple(_BRIEF[place] for place in kept), rows=rows)


def _table(
    found: Tuned, layout: Layout, rows: Sequence[Row], heading: Callable[[Row], str]
) -> Table:
    """A line for each metric and judge, and for each way where there is a third stub."""
    order = [(metric, lane) for metric in found.titles for lane in ("judge", "control")]

    def line(row: Row) -> Sequence[str]:
        ways = (row["as"].removeprefix("without-"),) if len(layout.stubs) > len(_STUBS) else ()
        return (found.titles[row.metric], found.shown_name(row.judge), *ways)

    def cell(row: Row) -> Cell:
        said = f"baseline: {_baseline(found, row)}" if row["who"] else ""
        remark = "; ".join(filter(None, (said, row["shown"])))
        return Cell(estimate=row.estimate, remark=remark, signed=row["side"] == "difference")

    ranked = sorted(rows, key=lambda row: order.index((row.metric, found.lane(row.judge))))
    return layout.of(ranked, line, heading, map(heading, rows), cell)


def _otherwise(found: Tuned, kind: str) -> Table:
    """Judges taught otherwise, beside themselves on the same answers."""
    title, *names, third = _WAYS[kind]
    sides = dict(zip(("otherwise", "learnt", "difference"), (*names, "difference"), strict=True))
    rows = [
        row
        for key in _DRAWN
        for side in sides
        for row in found.rows.select("otherwise", key, kind=kind, side=side)
    ]
    layout = Layout(f"tuning_{kind}", title, (*_STUBS, *([third] if third else [])), absent=None)
    return _table(found, layout, rows, lambda r: f"{_title(r.statistic)}, {sides[r['side']]}")


def _curve(found: Tuned, statistic: str) -> Table:
    """A column for each number of labels and all that there are, and what the last ones bring."""
    of_labels = found.rows.select("otherwise", statistic, kind="labels")
    sizes = sorted({labels_of(row) for row in of_labels})
    rows = [row for n in sizes for row in of_labels
            if labels_of(row) == n and row["side"] == "otherwise"]  # fmt: skip
    judges = {row.judge for row in rows}
    rows += [row for row in found.rows.select("score", statistic) if row.judge in judges]
    for row in of_labels:
        if labels_of(row) == sizes[-1] and row["side"] == "difference":
            e = row.estimate
            value, low, high = (x if x is None else 0.0 - x for x in (e.value, e.high, e.low))
            more = replace(e, value=value, low=low, high=high)
            shown = "a gain is shown" if (low or 0.0) > 0 else "no gain is shown"
            rows.append(replace(row, estimate=more, keys={**row.keys, "shown": shown}))

    def heading(row: Row) -> str:
        if row.analysis == "score":
            return "All"
        n = labels_of(row)
        return f"All − {n:,}" if row["side"] == "difference" else f"{n:,} answers"

    title = f"{_title(statistic)} by the number of labelled answers learnt from"
    layout = Layout(f"tuning_curve_{statistic}", title, _STUBS, _ABOUT_CURVES, absent=None)
    return _table(found, layout, rows, heading)


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
            cut = f"{told[:_MOST_SAID]} …" if len(told) > _MOST_SAID else told
            rows.append((one.name, cell, f"{facts['n']:,}", cut))
    columns = ("Judge", "Fold", "Answers", "What was learnt")
    return Layout("tuning_cells", "What was learnt in each fold", columns).listing(rows)


def _brief(fact: object) -> str:
    if isinstance(fact, Mapping):
        return ", ".join(f"{key} {_brief(value)}" for key, value in fact.items())
    if isinstance(fact, list | tuple):
        return ", ".join(map(_brief, fact))
    return f"{fact:.3g}" if isinstance(fact, float) else str(fact)
