"""Win-rate matrices side by side: by the humans and by each judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judgebench.results.figure import SMALL, ink_on, new_figure
from judgebench.results.rows import Results
from judgebench.results.tables import DASH
from judgebench.stats.arrays import FloatArray
from judgebench.words import wrapped

_WIDTH = 9.0  # inches, what a page shows without scrolling


def draw_win_rates(
    rows: Results, metric: str, systems: Sequence[str], judges: Sequence[str]
) -> Any:
    """A panel for the humans and one for each judge; in a cell how often the system of the line
    wins against that of the column, ties half."""
    panels = ["", *judges]
    size, longest = 0.37 * max(4, len(systems)), 0.075 * max(map(len, systems))
    across = min(len(panels), max(2, int((_WIDTH - longest) / (size + 0.3))))
    down = -(-len(panels) // across)
    figure = new_figure(across * (size + 0.3) + longest, down * (size + longest + 0.5) + 0.5)
    grid = figure.subplots(down, across, squeeze=False)
    for number, (axes, judge) in enumerate(zip(grid.flat, panels, strict=False)):
        values = _matrix(rows, metric, systems, judge)
        image = axes.imshow(values, cmap="PuOr", vmin=0, vmax=1, aspect="auto")
        axes.set_facecolor("#eeeeee")
        for i, j in zip(*np.nonzero(~np.eye(len(systems), dtype=bool)), strict=True):
            value = values[i, j]
            text = DASH if np.isnan(value) else f"{value:.2f}"
            ink = "black" if np.isnan(value) else ink_on(image.to_rgba(value)[:3])
            axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=ink)
        axes.set_title(wrapped(judge or "Humans", 24), fontsize=10)
        axes.set_xticks(range(len(systems)), systems, rotation=90)
        axes.set_yticks(range(len(systems)), systems if number % across == 0 else [])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    told = f"Share won by the line against the column, ties half; {DASH}: not compared"
    figure.supxlabel(wrapped(told, int(13 * figure.get_figwidth())), fontsize=9)
    return figure


def _matrix(rows: Results, metric: str, systems: Sequence[str], judge: str) -> FloatArray:
    place = {system: i for i, system in enumerate(systems)}
    values = np.full((len(systems), len(systems)), np.nan)
    side = "judge" if judge else "humans"
    for row in rows.select("win_rate", side, judge=judge, metric=metric):
        if row["against"] and row.estimate.value is not None:
            i, j = place[row["system"]], place[row["against"]]
            values[i, j], values[j, i] = row.estimate.value, 1 - row.estimate.value
    return values
