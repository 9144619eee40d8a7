"""The figures, as SVG, PNG and PDF: heat map, judges beside controls, labels, confusions.

Colours are told apart with every common kind of colour blindness, and each is doubled by a shape,
a place or a printed number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from judgebench.align import STATISTICS, Alignment, Confusion
from judgebench.records import Estimate
from judgebench.report.figure import (
    DARK,
    counts_line,
    draw_figures,
    grid_ticks,
    new_figure,
    number_in_cell,
)
from judgebench.report.lookup import (
    controls,
    find_ceiling,
    find_score,
    has_ceiling,
    real_judges,
    score_index,
)
from judgebench.report.probabilities import draw_reliability, reliability_figures
from judgebench.report.rates import draw_rates, rate_figures
from judgebench.report.tables import BLANKS, CEILING, column_names
from judgebench.report.words import wrapped
from judgebench.results.tables import DASH
from judgebench.rubric import Metric

# Okabe and Ito's colours with a shape each; they repeat after eight judges, the shapes after nine.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#555555")
_SHAPES = ("o", "s", "D", "^", "v", "P", "X", "p", "h")
_GREY = "#767676"


def draw_all(alignment: Alignment) -> Iterator[tuple[str, bytes]]:
    """File name and content of every figure in every format."""
    yield from draw_figures(_figures(alignment))


def _figures(a: Alignment) -> Mapping[str, Callable[[], Any]]:
    """Each figure's name and how it is drawn."""
    figures: dict[str, Callable[[], Any]] = {}
    for statistic in ("accuracy", "weighted_kappa"):
        if any(score.statistic == statistic for score in a.scores):
            figures[f"heat_map_{statistic}"] = partial(draw_heat_map, a, statistic)
            figures[f"judges_and_controls_{statistic}"] = partial(draw_ladder, a, statistic)
    if a.distribution:
        figures["label_distribution"] = partial(draw_distribution, a)
    figures |= {name: partial(draw_rates, a, judge) for name, judge in rate_figures(a).items()}
    shown = reliability_figures(a).items()
    figures |= {figure: partial(draw_reliability, a, name) for figure, name in shown}
    for number, judge in enumerate(real_judges(a), start=1):
        found = [c for c in a.confusions if c.judge == judge.name]
        if found:
            slug = re.sub(r"[^A-Za-z0-9.]+", "-", judge.name).strip("-.")[:40]
            name = f"confusion_{number}_{slug}".rstrip("_")
            figures[name] = partial(draw_confusions, a, judge.name, found)
    return figures


def draw_heat_map(alignment: Alignment, statistic: str) -> Any:
    """One statistic: metrics down; judges, controls and the human ceiling across."""
    metrics = alignment.rubric.metrics
    grid = [_estimates(alignment, metric, statistic) for metric in metrics]
    columns = column_names(alignment, statistic)
    figure = new_figure(2.4 + 0.92 * len(columns), 1.5 + 0.46 * len(metrics))
    axes = figure.subplots()
    values = np.array([[np.nan if e.value is None else e.value for e in row] for row in grid])
    axes.imshow(np.ma.masked_invalid(values), cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    axes.set_facecolor("#eeeeee")
    for i, row in enumerate(grid):
        for j, estimate in enumerate(row):
            number_in_cell(axes, i, j, estimate)
    _between(axes, alignment)
    rows = [_row_name(alignment, metric, row) for metric, row in zip(metrics, grid, strict=True)]
    grid_ticks(axes, columns, rows)
    heading = STATISTICS[statistic][0]
    axes.set_title(
        f"{heading} with interval, failures left out. {DASH} means undefined",
        loc="left",
        fontsize=9,
    )
    return figure


def _between(axes: Any, alignment: Alignment) -> None:
    """White gaps between the judges, the controls and the humans."""
    judges, coins = len(real_judges(alignment)), len(controls(alignment))
    for edge in (judges, judges + coins):
        axes.axvline(edge - 0.5, color="white", linewidth=4)


def _row_name(alignment: Alignment, metric: Metric, estimates: list[Estimate]) -> str:
    """The metric's title and the smallest and largest n of its judges and controls."""
    counts = counts_line(estimates[: len(alignment.judges)])
    return f"{wrapped(metric.title, 26)}\n{counts}"


def draw_ladder(alignment: Alignment, statistic: str) -> Any:
    """One statistic: a band a metric with judges, controls and the human ceiling as intervals."""
    metrics, looks = alignment.rubric.metrics, _looks(alignment, statistic)
    grid = [_estimates(alignment, metric, statistic) for metric in metrics]
    step = 0.8 / len(looks)
    figure = new_figure(7.2, 1.1 + len(metrics) * (0.25 + 0.085 * len(looks)))
    axes = figure.subplots()
    for row in range(len(metrics)):
        axes.axhspan(row - 0.5, row + 0.5, color="#f4f4f4" if row % 2 else "white", zorder=0)
        for lane, (estimate, look) in enumerate(zip(grid[row], looks, strict=True)):
            _whisker(axes, estimate, row - 0.4 + (lane + 0.5) * step, look)
    for look in looks:  # every lane stands in the legend, also where it has no value
        axes.plot([], [], linestyle="none", **look)
    rows = [_row_name(alignment, m, row) for m, row in zip(metrics, grid, strict=True)]
    axes.set_yticks(range(len(metrics)), rows)
    axes.set_ylim(len(metrics) - 0.5, -0.5)
    axes.set_xlim(min(axes.get_xlim()[0], -0.02), 1.02)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        f"{STATISTICS[statistic][0]} with interval, failures left out; {DASH} means undefined"
    )
    figure.legend(loc="outside right upper", frameon=False, fontsize=7)
    return figure


def _looks(alignment: Alignment, statistic: str) -> list[dict[str, Any]]:
    """Name, colour and shape of each lane: judges, controls, human ceiling."""
    names = [wrapped(name, 26) for name in column_names(alignment, statistic)]
    judges = len(real_judges(alignment))
    looks: list[dict[str, Any]] = []
    for k, name in enumerate(names):
        number = k if k < judges else k - judges
        look = {"label": name, "marker": _SHAPES[number % len(_SHAPES)], "markersize": 4}
        if name == CEILING:
            looks.append({**look, "color": "black", "marker": "|", "markersize": 8})
        elif k < judges:
            looks.append({**look, "color": _COLOURS[number % len(_COLOURS)]})
        else:
            looks.append({**look, "color": _GREY, "markerfacecolor": "white"})
    return looks


def _estimates(alignment: Alignment, metric: Metric, statistic: str) -> list[Estimate]:
    """One metric's estimates in the order of `_looks`."""
    scores = score_index(alignment)
    judges = (*real_judges(alignment), *controls(alignment))
    found = [find_score(scores, judge.name, metric.id, statistic) for judge in judges]
    humans = [find_ceiling(alignment, metric.id, statistic)]
    return found + (humans if has_ceiling(alignment, statistic) else [])


def _whisker(axes: Any, e: Estimate, y: float, look: Mapping[str, Any]) -> None:
    """A point with its interval; a dash at the left edge where the number is undefined."""
    if e.value is None:
        at_edge = axes.get_yaxis_transform()
        axes.text(0.01, y, DASH, transform=at_edge, va="center", fontsize=6, color=look["color"])
        return
    error = None
    if e.low is not None and e.high is not None:
        error = [[max(0.0, e.value - e.low)], [max(0.0, e.high - e.value)]]
    axes.errorbar(
        e.value, y, xerr=error, linestyle="none", elinewidth=1, **{**look, "label": "_nolegend_"}
    )


def draw_distribution(alignment: Alignment) -> Any:
    """The share of each label in the human truth, least severe first; a bar a blank policy."""
    shares = {(x.metric, x.blanks, x.label): x.share or 0.0 for x in alignment.distribution}
    totals = {(x.metric, x.blanks): x.n for x in alignment.distribution}
    bars = [
        (metric, blanks)
        for metric in alignment.rubric.metrics
        for blanks in BLANKS
        if (metric.id, blanks) in totals
    ]
    figure = new_figure(8.2, 0.9 + 0.42 * len(bars))
    axes = figure.subplots()
    for y, (metric, blanks) in enumerate(bars):
        found = [
            (label, shares.get((metric.id, blanks, label), 0.0)) for label in metric.label_texts
        ]
        _stacked_bar(axes, y, found)
    names = [
        f"{wrapped(metric.title, 28)}\n{BLANKS[blanks]}, n = {totals[metric.id, blanks]:,}"
        for metric, blanks in bars
    ]
    axes.set_yticks(range(len(bars)), names, fontsize=6.5)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel("Share of the items with a human truth; light to dark in the rubric's order")
    return figure


def _stacked_bar(axes: Any, y: int, shares: list[tuple[str, float]]) -> None:
    """Labels stand in their part of the bar, or to its right where there is no room."""
    left, outside = 0.0, []
    for k, (label, share) in enumerate(shares):
        depth = k / max(1, len(shares) - 1)
        axes.barh(y, share, 0.74, left=left, color=_blue(depth), edgecolor="white")
        text = f"{label} {100 * share:.0f}\u00a0%"
        inside = wrapped(text, max(4, int(share * 76)))
        if share and inside.count("\n") < 2 and _longest_line(inside) <= share * 80:
            colour = "white" if depth > DARK else "black"
            place = {"ha": "center", "va": "center", "fontsize": 6.5}
            axes.text(left + share / 2, y, inside, color=colour, **place)
        else:
            outside.append(text)
        left += share
    axes.text(1.01, y, wrapped("; ".join(outside), 40), va="center", fontsize=6.5)


def _longest_line(text: str) -> int:
    return max(len(line) for line in text.split("\n"))


def _blue(depth: float) -> Any:
    """From light at 0 to dark at 1."""
    from matplotlib import colormaps

    return colormaps["Blues"](0.18 + 0.72 * depth)


def draw_confusions(alignment: Alignment, judge: str, confusions: list[Confusion]) -> Any:
    """One judge: a matrix a metric, human label down, the judge's label across, missing last."""
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    across = min(2, len(confusions))
    down = -(-len(confusions) // across)
    most = max(len(c.labels) for c in confusions)
    figure = new_figure(across * (1.9 + 0.72 * most), 0.5 + down * (1.1 + 0.46 * most))
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for axes, confusion in zip(panels, confusions, strict=False):
        _matrix(axes, confusion, titles.get(confusion.metric, confusion.metric))
    for axes in panels[len(confusions) :]:
        axes.set_visible(False)
    title = f"{judge}: human label down, judge's label across"
    figure.suptitle(wrapped(title, int(13 * figure.get_figwidth())), fontsize=9)
    return figure


def _matrix(axes: Any, confusion: Confusion, title: str) -> None:
    counts = confusion.counts
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for (i, j), count in np.ndenumerate(counts):
        colour = "white" if shares[i, j] > DARK else "black"
        axes.text(j, i, f"{count:,}", ha="center", va="center", color=colour)
    columns = [*confusion.labels, "No label"]
    axes.set_xticks(range(len(columns)), [wrapped(c, 15) for c in columns], fontsize=6)
    axes.set_yticks(
        range(len(confusion.labels)), [wrapped(c, 20) for c in confusion.labels], fontsize=6.5
    )
    axes.axvline(len(confusion.labels) - 0.5, color="white", linewidth=3)
    axes.set_title(wrapped(title, 40), loc="left", fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
