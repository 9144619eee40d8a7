"""Medal grids: rankers down, places across, and in each cell who stands there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from judgebench.ranking.report.lookup import (
    argument_names,
    placed_systems,
    shares_above,
    shown_ranker,
    surely_above,
)
from judgebench.ranking.result import RankedTask, Ranking, Rankings, SystemKind
from judgebench.report.words import counted
from judgebench.results.tables import Cell, Table

_MEDALS = ("🥇", "🥈", "🥉")
Stand = Literal["below", "unclear", "above"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A system at its place; `tied` where others share it.

    Of a control case, `above` counts the real arguments that it stands above in at least 95 % of
    resamples, `unclear` those that it can be told apart from by neither side."""

    system: str
    kind: SystemKind
    tied: bool
    above: int = 0
    unclear: int = 0

    @property
    def stand(self) -> Stand:
        """How a control case stands to the real arguments."""
        return "above" if self.above else "unclear" if self.unclear else "below"

    @property
    def words(self) -> str:
        """What is said of a control case beside its name; empty for an argument."""
        if self.kind != "control":
            return ""
        if self.above:
            return f"control, above {counted(self.above, 'argument')}"
        if self.unclear:
            return f"control, not told apart from {self.unclear}"
        return "control"

    @property
    def short_words(self) -> str:
        """The same for narrow cells, explained under their table."""
        if self.kind != "control":
            return ""
        stand = {"above": f", above {self.above}", "unclear": ", unclear", "below": ""}[self.stand]
        return f"control{stand}"


@dataclass(frozen=True, slots=True)
class MedalRow:
    """One ranker; each cell holds the systems that share that place, and may be empty."""

    ranker: str
    cells: tuple[tuple[Placed, ...], ...]


@dataclass(frozen=True, slots=True)
class MedalGrid:
    """One task. `columns` are the places as they are written."""

    columns: tuple[str, ...]
    rows: tuple[MedalRow, ...]


def ordinal(number: int) -> str:
    """`4th`, `11th`, `21st`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(
        number % 10, "th"
    )  # fmt: skip
    return f"{number}{ending}"


def medal(number: int) -> str:
    """A medal for the first three places, then `4th` and so on."""
    return _MEDALS[number - 1] if number <= len(_MEDALS) else ordinal(number)


def medal_grid(rankings: Rankings, task: RankedTask, with_controls: bool) -> MedalGrid:
    """The grid of real arguments only, or with the control cases among them.

    Systems that tie share the best of their places, and the places after it stay empty.
    """
    rows = [_row(ranking, task, with_controls) for ranking in rankings.of(task.name)]
    rows = [row for row in rows if row.cells]
    width = max((len(row.cells) for row in rows), default=0)
    filled = [MedalRow(r.ranker, r.cells + ((),) * (width - len(r.cells))) for r in rows]
    return MedalGrid(tuple(medal(i) for i in range(1, width + 1)), tuple(filled))


def _row(ranking: Ranking, task: RankedTask, with_controls: bool) -> MedalRow:
    kinds = {system.name: system.kind for system in task.systems}
    wanted = [
        s
        for s in placed_systems(ranking)
        if with_controls or kinds.get(s.system, "model") != "control"
    ]
    ties = Counter(s.place for s in wanted)
    cells: list[tuple[Placed, ...]] = [()] * len(wanted)
    for s in wanted:
        first = sum(other.place < s.place for other in wanted)
        kind = kinds.get(s.system, "model")
        above, unclear = against_arguments(ranking, task, s.system) if kind == "control" else (0, 0)
        here = Placed(s.system, kind, ties[s.place] > 1, above, unclear)
        cells[first] = (*cells[first], here)
    return MedalRow(shown_ranker(ranking), tuple(cells))


def against_arguments(ranking: Ranking, task: RankedTask, control: str) -> tuple[int, int]:
    """How many real arguments a control case surely stands above, and how many it cannot be told
    apart from."""
    shares = shares_above(ranking)
    ranked = {s.system for s in placed_systems(ranking)}
    arguments = [name for name in argument_names(task) if name in ranked]
    above = sum(surely_above(shares, control, name) for name in arguments)
    below = sum(surely_above(shares, name, control) for name in arguments)
    return above, len(arguments) - above - below


def has_controls(rankings: Rankings, task: RankedTask) -> bool:
    """Whether any ranker of the task ranked a control case."""
    controls = {system.name for system in task.systems if not system.is_argument}
    return any(s.system in controls for r in rankings.of(task.name) for s in placed_systems(r))


def medal_tables(rankings: Rankings, task: RankedTask, number: int) -> list[Table]:
    """The grid of real arguments and, where there are any, the one with control cases."""
    grids = [medals_table(rankings, task, False, f"ranking_medals-{number}")]
    if has_controls(rankings, task):
        grids.append(medals_table(rankings, task, True, f"ranking_controls-{number}"))
    return grids


def medals_table(rankings: Rankings, task: RankedTask, with_controls: bool, key: str) -> Table:
    """A medal grid as a table of names."""
    grid = medal_grid(rankings, task, with_controls)
    about = "with the control cases" if with_controls else "real arguments only"
    notes = ["By score, best first; who ties shares a cell, and the places after it stay empty."]
    if with_controls:
        notes.append(
            "Above: of how many real arguments a control case stands above in at least 95 % of "
            "resamples, pair by pair. Unclear: it surely stands above none, but not below all. An "
            "evaluator that is not misled sets every control case below every argument."
        )
    return Table(
        key,
        f"Who helps most, {task.title}: {about}",
        ("Ranker", *grid.columns),
        tuple((Cell(row.ranker), *(Cell(_words(cell)) for cell in row.cells)) for row in grid.rows),
        tuple(notes),
    )


def _words(cell: tuple[Placed, ...]) -> str:
    """`gold, llama3 (tied)`."""
    names = ", ".join(f"{p.system} ({p.short_words})" if p.short_words else p.system for p in cell)
    return f"{names} (tied)" if len(cell) > 1 else names
