"""The figure of a task: its medal grids, one colour a system, the same in every figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from judgebench.ranking.report.looks import colour, system_steps
from judgebench.ranking.report.medals import (
    MedalGrid,
    MedalRow,
    Placed,
    has_controls,
    medal_grid,
    ordinal,
)
from judgebench.ranking.result import RankedTask, Rankings
from judgebench.report.figure import draw_figures, grid_ticks, new_figure
from judgebench.report.words import wrapped

_WARN = "#a33b00"
_LIGHT = 0.42  # grounds that are lighter carry dark letters
_ONE, _TIED = 0.56, 0.36  # inches of a system alone, and of each that ties
_PANELS = ("Real arguments only", "With the control cases (dashed)")


def draw_rankings(rankings: Rankings) -> Iterator[tuple[str, bytes]]:
    """File name and content of each task's figure in every format."""
    figures: dict[str, Callable[[], Any]] = {}
    for number, task in enumerate(rankings.tasks, start=1):
        if medal_grid(rankings, task, True).rows:
            slug = re.sub(r"[^A-Za-z0-9.]+", "-", task.name).strip("-.")[:40]
            name = f"medals_{slug or number}"
            figures[f"{name}-{number}" if name in figures else name] = partial(
                draw_medals, rankings, task
            )
    yield from draw_figures(figures)


def draw_medals(rankings: Rankings, task: RankedTask) -> Any:
    """A panel of real arguments, and one with the control cases where there are any."""
    grids = [medal_grid(rankings, task, False)]
    if has_controls(rankings, task):
        grids.append(medal_grid(rankings, task, True))
    grids = [grid for grid in grids if grid.rows]
    heights = [sum(_height(row) for row in grid.rows) for grid in grids]
    widest = max(len(grid.columns) for grid in grids)
    figure = new_figure(max(4.5, 1.9 + 1.08 * widest), 0.8 + 0.55 * len(grids) + sum(heights))
    panels = figure.subplots(len(grids), 1, squeeze=False, height_ratios=heights)[:, 0]
    steps = system_steps(rankings)
    for axes, grid in zip(panels, grids, strict=True):
        _draw_grid(axes, grid, widest, steps)
        if len(grids) > 1:
            title = _PANELS[0] if grid is grids[0] else _PANELS[1]
            axes.set_title(title, loc="left", fontsize=9, fontweight="bold")
    title = f"Who helps most: {task.title}"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _height(row: MedalRow) -> float:
    """In inches: a cell with ties is taller."""
    return max(_ONE, _TIED * max(len(cell) for cell in row.cells))


def _draw_grid(
    axes: Any, grid: MedalGrid, widest: int, steps: Mapping[str, tuple[str, int]]
) -> None:
    heights = [_height(row) for row in grid.rows]
    top = [sum(heights[:i]) for i in range(len(heights) + 1)]
    for i, row in enumerate(grid.rows):
        for column, cell in enumerate(row.cells):
            part = _ONE if len(cell) == 1 else _TIED
            start = top[i] + (heights[i] - part * len(cell)) / 2
            for k, placed in enumerate(cell):
                _draw_system(axes, placed, column, start + k * part, part, steps)
    axes.set(xlim=(-0.5, widest - 0.5), ylim=(top[-1], 0))
    grid_ticks(axes, [ordinal(i) for i in range(1, len(grid.columns) + 1)], [])
    middles = [(a + b) / 2 for a, b in pairwise(top)]
    axes.set_yticks(middles, [wrapped(row.ranker, 24) for row in grid.rows])


def _draw_system(
    axes: Any, placed: Placed, column: int, y: float, height: float,
    steps: Mapping[str, tuple[str, int]],
) -> None:  # fmt: skip
    """A box in the system's colour with its name; a control case is framed by dashes."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    ground = colour(steps.get(placed.system, ("argument", 0)))
    ink = "black" if _luminance(to_rgb(ground)) > _LIGHT else "white"
    control = placed.kind == "control"
    fooled = control and placed.stand == "above"
    frame: dict[str, Any] = {
        "edgecolor": _WARN if fooled else "#5d646b" if control else "none",
        "linestyle": (0, (3, 2)) if control else "solid",
        "linewidth": 2.2 if fooled else 1.0,
    }
    box = Rectangle((column - 0.46, y + 0.04), 0.92, height - 0.08, facecolor=ground, **frame)
    axes.add_patch(box)
    words = wrapped(placed.system, 17)
    about = "tied" if placed.tied else ""
    if fooled:
        about = f"▲ above {placed.above}" + (", tied" if placed.tied else "")
    words = f"{words}\n{about}" if about else words
    size = min(7.0, 40 * height / (1 + words.count("\n")))
    style = "italic" if control else "normal"
    axes.text(column, y + height / 2, words, ha="center", va="center", color=ink,
              fontsize=size, fontstyle=style)  # fmt: skip


def _luminance(rgb: tuple[float, float, float]) -> float:
    """How light a colour is seen, from 0 to 1 (weights of ITU-R BT.709)."""
    red, green, blue = rgb
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
