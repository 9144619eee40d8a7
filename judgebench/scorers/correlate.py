"""What a table of scores says: how its columns go together, over systems or over items.

Rows `correlation` hold a coefficient of a column, `judge`, with one that it is held `against`,
`metric`, at a `level`; rows `chance` what pairwise accuracy reaches by chance, rows `test` the p
values of a table of systems, Holm's over the columns. `redundant` describes the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.align.differences import corrected
from judgebench.data.columns import Columns, read_columns
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.part import Part
from judgebench.results.rows import Results, Row
from judgebench.results.shown import Shown
from judgebench.scorers.redundant import redundancy_rows
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.association import (
    COEFFICIENTS,
    Rated,
    associations,
    between_columns,
)
from judgebench.stats.resample import DEFAULT_RESAMPLING
from judgebench.stats.systems import bradley_terry, elo, wins_by_cluster

Weights = Mapping[str, float]
_PAIRS = ("first", "second", "winner")
_TIES = ("", "tie")


@dataclass(frozen=True, repr=False)
class Correlations(Shown):
    """How the columns of a table go together. `units` says what its rows are: systems or items;
    what is redundant is asked of `columns`, which are no averages of others."""

    name: str
    rows: Results
    units: str
    n_answers: int
    columns: Sequence[str]

    @property
    def results(self) -> Results:
        return self.rows

    @cached_property
    def part(self) -> Part:
        from judgebench.scorers.correlate_part import correlations_part

        return correlations_part(self)


@dataclass(frozen=True)
class Roles:
    """Which columns are which: those that all others are held `against`, those that name the
    `group` and the `system` of an item, and those that are better when lower, to `flip`."""

    against: Sequence[str] = ()
    group: str = ""
    system: str = ""
    flip: Sequence[str] = ()


@dataclass(frozen=True)
class _Numbers:
    """The columns as numbers (rows, m); `parts` are the columns that an average is made of."""

    names: Sequence[str]
    x: FloatArray
    parts: Mapping[str, Sequence[str]]

    def __getitem__(self, name: str) -> FloatArray:
        return self.x[:, self.names.index(name)]


def correlate_table(table: Any, roles: Roles, more: Mapping[str, Weights | Any]) -> Correlations:
    """The columns of a table of systems, or of items where a group is named, beside each other.

    `more` are new columns by name: the weights of the columns that they average, or a table of
    outcomes of pairs of systems, which gives Bradley-Terry strengths and Elo ratings. Raises
    SetupError with every problem of the tables.
    """
    named = [column for column in (roles.group, roles.system) if column]
    weights = {name: of for name, of in more.items() if isinstance(of, Mapping)}
    averaged = {column for of in weights.values() for column in of}
    own = [column for column in roles.against if column not in weights]
    read = read_columns(table, [*named, *own, *averaged])
    systems = _systems(read, roles)
    numbers = _numbers(read, named, weights, {*own, *averaged})
    for name, pairs in more.items():
        if name not in weights:
            numbers = _with_ratings(numbers, name, pairs, systems)
    numbers = _flipped(numbers, roles.flip, read.file)
    missing = [column for column in roles.against if column not in numbers.names]
    if missing or len(numbers.names) < 2:
        reason = Problem(
            "no such column of numbers", read.file, None, "against", ", ".join(missing)
        )
        few = Problem("needs two columns of numbers", read.file)
        raise SetupError(reason if missing else few)
    groups = _codes(read.cells[roles.group]) if roles.group else np.arange(len(numbers.x))
    clusters = Clusters(groups, int(groups.max(initial=-1)) + 1)
    if roles.group:
        codes = _codes(read.cells[roles.system]) if roles.system else None
        rows = [*_over_items(numbers, roles.against, clusters, codes)]
    else:
        rows = [*_over_systems(numbers, roles.against)]
    own = [name for name in numbers.names if name not in numbers.parts]
    x = np.stack([numbers[name] for name in own], axis=1)
    ranked = bool(roles.group)
    rows += redundancy_rows(own, x, clusters, DEFAULT_RESAMPLING, ranked=ranked)
    units = "items" if roles.group else "systems"
    return Correlations(Path(read.file).name, Results(tuple(rows)), units, len(numbers.x), own)


def parse_weights(texts: Sequence[str]) -> Mapping[str, Weights]:
    """`mcqa=MedQA:1273,MMLU:1089` as a name and its weights. Raises SetupError."""
    found: dict[str, Weights] = {}
    for text in texts:
        name, _, rest = text.partition("=")
        parts = [part.strip().rpartition(":") for part in rest.split(",")]
        try:
            found[name.strip()] = {column.strip(): float(weight) for column, _, weight in parts}
        except ValueError:
            allowed = "NAME=COLUMN:WEIGHT,COLUMN:WEIGHT"
            raise SetupError(
                Problem("are no weights", "", None, "--weights", text, allowed)
            ) from None
    return found


def _systems(read: Columns, roles: Roles) -> Sequence[str]:
    """The system of every row: of the column, else of the first that holds texts."""
    texts = [c for c in read.cells if c not in read.numeric() and c != roles.group]
    column = roles.system or (texts[0] if texts else "")
    cells = read.cells[column] if column else [str(line) for line in read.lines]
    if roles.group:
        return cells
    again = [
        Problem("the system has two rows; --group names the items", read.file, line, column, cell)
        for i, (line, cell) in enumerate(zip(read.lines, cells, strict=True))
        if cell in cells[:i]
    ]
    if again:
        raise SetupError(again)
    return cells


def _codes(cells: Sequence[str]) -> IntArray:
    """The number of each different text, -1 where it is blank."""
    number = {cell: i for i, cell in enumerate(dict.fromkeys(filter(None, cells)))}
    return np.array([number.get(cell, -1) for cell in cells], dtype=np.int64)


def _numbers(
    read: Columns, named: Sequence[str], weights: Mapping[str, Weights], needed: set[str]
) -> _Numbers:
    numeric = set(read.numeric())
    names = [c for c in read.cells if c not in named and (c in numeric or c in needed)]
    found = dict(zip(names, read.numbers(*names).T, strict=True))
    for name, of in weights.items():
        found[name] = sum(w * found[c] for c, w in of.items()) / sum(of.values())
    parts = {name: tuple(of) for name, of in weights.items()}
    return _Numbers(tuple(found), np.stack(list(found.values()), axis=1), parts)


def _flipped(numbers: _Numbers, flip: Sequence[str], file: str) -> _Numbers:
    """Columns that one of the names or patterns fits, times -1."""
    x = numbers.x.copy()
    for pattern in flip:
        fits = [n == pattern or fnmatchcase(n, pattern) for n in numbers.names]
        if not any(fits):
            allowed = ", ".join(numbers.names)
            raise SetupError(Problem("fits no column", file, None, "flip", pattern, allowed))
        x[:, fits] *= -1
    return _Numbers(numbers.names, x, numbers.parts)


def _with_ratings(numbers: _Numbers, name: str, pairs: Any, systems: Sequence[str]) -> _Numbers:
    """Two columns more, of a table of pairs: who won, by name, or a tie."""
    read = read_columns(pairs, _PAIRS, f"the pairs {name!r}")
    first, second, winner = (read.cells[column] for column in _PAIRS)
    known = list(dict.fromkeys([*first, *second]))
    outcome = []
    problems = []
    for line, a, b, won in zip(read.lines, first, second, winner, strict=True):
        if won not in (a, b, *_TIES):
            allowed = f"{a}, {b}, tie"
            problems.append(Problem("is neither side", read.file, line, "winner", won, allowed))
        outcome.append(1.0 if won == a else 0.0 if won == b else 0.5)
    if problems:
        raise SetupError(problems)
    sides = np.array([[known.index(a), known.index(b)] for a, b in zip(first, second, strict=True)])
    one = Clusters(np.zeros(len(sides), dtype=np.int64), 1)
    wins = wins_by_cluster(sides, np.array(outcome), one, len(known))[0]
    columns = {
        "Bradley-Terry": bradley_terry(wins),
        "Elo": elo(sides, np.array(outcome), len(known)),
    }
    place = [known.index(system) if system in known else -1 for system in systems]
    added = [np.where(np.array(place) >= 0, values[place], np.nan) for values in columns.values()]
    names = (*numbers.names, *(f"{name} {column}" for column in columns))
    return _Numbers(names, np.column_stack([numbers.x, *added]), numbers.parts)


def _over_items(
    numbers: _Numbers, against: Sequence[str], groups: Clusters, systems: IntArray | None
) -> Iterator[Row]:
    for one, other in _pairs(numbers, against):
        rated = Rated(numbers[other], numbers[one], groups, systems)
        for found in associations(rated).values():
            about = {"level": found.level}
            yield Row("correlation", found.coefficient, found.estimate, other, one, about)
            if found.chance is not None:
                chance = Estimate(found.chance, n=found.estimate.n)
                yield Row("chance", found.coefficient, chance, other, one, about)


def _over_systems(numbers: _Numbers, against: Sequence[str]) -> list[Row]:
    rows = []
    for one, other in _pairs(numbers, against):
        for coefficient in (c for c in COEFFICIENTS if c != "pairwise"):
            estimate, p = between_columns(numbers[other], numbers[one], coefficient)
            rows.append(Row("correlation", coefficient, estimate, other, one, {"level": "system"}))
            said = Estimate(p, n=estimate.n, reason=estimate.reason if p is None else "")
            rows.append(Row("test", "p", said, other, one, {"of": coefficient}))
    return [*rows, *corrected(rows, ("test", "metric", "of"))]


def _pairs(numbers: _Numbers, against: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each column beside those that it is held against; an average is not held against its parts,
    nor are these against one another."""
    for one in against:
        for other in numbers.names:
            if other not in (*against, *numbers.parts.get(one, ())):
                yield one, other
