"""Learning curves: what a judge reaches with how many labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgebench.records import Estimate
from judgebench.results.figure import looks_of, new_figure
from judgebench.results.part import Lane
from judgebench.tuning.result import Tuned
from judgebench.words import wrapped

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
    controls = [value for name, value in values.items() if found.lane(name) == "control"]
    return {**shown, **({"best control judge": max(controls)} if controls else {})}
