"""Medal grids: rankers down, places across, and in each cell who stands there; as a table, and as a
figure with one colour per system, the same for every task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judgebench.ranking.rankings import OneRanking, RankedTask
from judgebench.results.figure import SMALL, grid_ticks, ink_on, new_figure
from judgebench.results.tables import Cell, Look, Table
from judgebench.words import wrapped

_MEDALS = ("🥇", "🥈", "🥉")
# Okabe and Ito's colours, then Tol's muted ones; all are told apart with every common kind of
# colour blindness, and a name stands in each.
ARGUMENT_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#332288",
    "#117733", "#882255", "#88ccee", "#999933",
)  # fmt: skip
CONTROL_COLOURS = ("#d0d4d8", "#8d949b", "#eceef0", "#5d646b")
_WARN = "#a33b00"
_ONE, _TIED = 0.68, 0.46  # inches of a system alone, and of each that ties
_PANELS = ("Real arguments only", "With the control cases (dashed)")


@dataclass(frozen=True, slots=True)
class Placed:
    """A system at its place; `tied` where others share it.

    Of a control case, `above` counts the real arguments that it clearly ranks above, `unclear`
    those that it cannot be distinguished from."""

    system: str
    is_control: bool
    tied: bool
    above: int = 0
    unclear: int = 0

    @property
    def words(self) -> str:
        """The system, and what is said of a control case beside its name."""
        about = f", above {self.above}" if self.above else ", unclear" if self.unclear else ""
        return f"{self.system} (control{about})" if self.is_control else self.system


MedalCell = tuple[Placed, ...]  # who shares a place; may be empty
MedalGrid = Mapping[str, Sequence[MedalCell]]  # by ranker, one cell per place


def ordinal(number: int) -> str:
    """`4th`, `11th`, `21st`."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in (11, 12, 13) else endings.get(number % 10, "th")
    return f"{number}{ending}"


def medal(number: int) -> str:
    """A medal for the first three places, then `4th` and so on."""
    return _MEDALS[number - 1] if number <= len(_MEDALS) else ordinal(number)


def medal_grid(
    rankings: Sequence[OneRanking], task: RankedTask, *, with_controls: bool
) -> MedalGrid:
    """The grid of real arguments only, or with the control cases among them.

    Systems that tie share the best of their places, and the places after it stay empty.
    """
    rows = {r.title: _cells(r, task, with_controls) for r in rankings}
    width = max(map(len, rows.values()), default=0)
    return {name: [*row, *[()] * (width - len(row))] for name, row in rows.items() if row}


def _cells(ranking: OneRanking, task: RankedTask, with_controls: bool) -> list[MedalCell]:
    controls = task.controls
    places = {s: p for s, p in ranking.placed.items() if with_controls or s not in controls}
    ordered = list(places.values())
    cells: list[MedalCell] = [()] * len(places)
    for system, place in places.items():
        first, is_control = ordered.index(place), system in controls
        above, unclear = against_arguments(ranking, task, system) if is_control else (0, 0)
        tied = ordered.count(place) > 1
        cells[first] = (*cells[first], Placed(system, is_control, tied, above, unclear))
    return cells


def against_arguments(ranking: OneRanking, task: RankedTask, control: str) -> tuple[int, int]:
    """How many real arguments a control case clearly ranks above, and how many it cannot be
    distinguished from."""
    arguments = [name for name in task.arguments if name in ranking.placed]
    above = sum(ranking.clearly_above(control, name) for name in arguments)
    below = sum(ranking.clearly_above(name, control) for name in arguments)
    return above, len(arguments) - above - below


def has_controls(rankings: Sequence[OneRanking], task: RankedTask) -> bool:
    """Whether any ranker of the task ranked a control case."""
    return any(set(task.controls) & ranking.placed.keys() for ranking in rankings)


def medals_table(
    rankings: Sequence[OneRanking], task: RankedTask, key: str, *, with_controls: bool
) -> Table:
    """A medal grid as a table of names; cells of control cases that mislead are coloured."""
    grid = medal_grid(rankings, task, with_controls=with_controls)
    width = max(map(len, grid.values()), default=0)
    about = "with the control cases" if with_controls else "real arguments only"
    notes = ["By score, best first; tied systems share a cell, and the places after it stay empty."]
    if with_controls:
        notes.append(
            "Above: how many real arguments a control case clearly ranks above, corrected for the "
            "number of pairs and rankers. Unclear: it clearly ranks above none, but not below all. "
            "An evaluator that is not misled ranks every control case below every argument."
        )
    return Table(
        key,
        f"Who helps most, {task.title}: {about}",
        ("Ranker", *(medal(i) for i in range(1, width + 1))),
        tuple((Cell(name), *map(_medal_cell, row)) for name, row in grid.items()),
        tuple(notes),
    )


def _medal_cell(cell: MedalCell) -> Cell:
    """`gold, llama3 (tied)`."""
    names = ", ".join(placed.words for placed in cell)
    look: Look = "unclear" if any(placed.unclear for placed in cell) else ""
    look = "bad" if any(placed.above for placed in cell) else look
    return Cell(f"{names} (tied)" if len(cell) > 1 else names, look=look)


# --- the figure ----------------------------------------------------------------------------------


def system_colours(tasks: Sequence[RankedTask]) -> dict[str, str]:
    """The colour of each system of any task."""
    colours: dict[str, str] = {}
    counts = Counter[bool]()
    for system in (system for task in tasks for system in task.systems):
        if system.name not in colours:
            wheel = ARGUMENT_COLOURS if system.is_argument else CONTROL_COLOURS
            colours[system.name] = wheel[counts[system.is_argument] % len(wheel)]
            counts[system.is_argument] += 1
    return colours


def draw_medals(
    rankings: Sequence[OneRanking], task: RankedTask, colours: Mapping[str, str]
) -> Any:
    """A panel of real arguments, and one with the control cases where there are any."""
    grids = [medal_grid(rankings, task, with_controls=False)]
    if has_controls(rankings, task):
        grids.append(medal_grid(rankings, task, with_controls=True))
    grids = [grid for grid in grids if grid]
    heights = [sum(map(_height, grid.values())) for grid in grids]
    widest = max(len(row) for grid in grids for row in grid.values())
    figure = new_figure(max(4.5, 2.0 + 1.3 * widest), 0.8 + 0.55 * len(grids) + sum(heights))
    panels = figure.subplots(len(grids), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, grid, title in zip(panels, grids, _PANELS, strict=False):
        _draw_grid(axes, grid, widest, colours)
        if len(grids) > 1:
            axes.set_title(title, loc="left", fontsize=9, fontweight="bold")
    title = f"Who helps most: {task.title}"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _height(row: Sequence[MedalCell]) -> float:
    """In inches: a cell with ties is taller."""
    return max(_ONE, _TIED * max(map(len, row)))


def _draw_grid(axes: Any, grid: MedalGrid, widest: int, colours: Mapping[str, str]) -> None:
    heights = [_height(row) for row in grid.values()]
    top = [sum(heights[:i]) for i in range(len(heights) + 1)]
    for i, row in enumerate(grid.values()):
        for column, cell in enumerate(row):
            part = _ONE if len(cell) == 1 else _TIED
            start = top[i] + (heights[i] - part * len(cell)) / 2
            for k, placed in enumerate(cell):
                ground = colours.get(placed.system, ARGUMENT_COLOURS[0])
                _draw_system(axes, placed, ground, (column, start + k * part, part))
    axes.set(xlim=(-0.5, widest - 0.5), ylim=(top[-1], 0))
    width = max(map(len, grid.values()))
    grid_ticks(axes, [ordinal(i) for i in range(1, width + 1)], [], ("Place", "Ranked by"))
    middles = [(a + b) / 2 for a, b in pairwise(top)]
    axes.set_yticks(middles, [wrapped(name, 24) for name in grid])


def _draw_system(axes: Any, placed: Placed, ground: str, at: tuple[int, float, float]) -> None:
    """A box in the system's colour with its name; a control case is framed by dashes. `at` is its
    column, top and height."""
    from matplotlib.patches import Rectangle

    column, y, height = at
    fooled = placed.above > 0
    frame: dict[str, Any] = {
        "edgecolor": _WARN if fooled else "#5d646b" if placed.is_control else "none",
        "linestyle": (0, (3, 2)) if placed.is_control else "solid",
        "linewidth": 2.2 if fooled else 1.0,
    }
    box = Rectangle((column - 0.46, y + 0.04), 0.92, height - 0.08, facecolor=ground, **frame)
    axes.add_patch(box)
    about = [f"▲ above {placed.above}"] * fooled + ["tied"] * placed.tied
    words = "\n".join(filter(None, (wrapped(placed.system, 17), ", ".join(about))))
    axes.text(
        column, y + height / 2, words, ha="center", va="center",
        color=ink_on(ground), fontsize=SMALL,
        fontstyle="italic" if placed.is_control else "normal",
    )  # fmt: skip
