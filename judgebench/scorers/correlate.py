"""The findings on a table of scores: how its columns go together, over systems or over items.

Rows `correlation` hold a coefficient of a column, `judge`, with one that it is held `against`,
`metric`, at a level (`scope`); rows `chance` what pairwise accuracy reaches by chance, rows `test`
the p values of a table of systems, Holm's over the columns. `redundant` describes the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.alignment.raters import corrected
from judgebench.data.formats import Table
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import Results, Row
from judgebench.results.shown import Shown
from judgebench.runs.from_tables import Given
from judgebench.scorers.measure import redundancy_rows, with_chance
from judgebench.scorers.scorer import IS_REFERENCE, reference_systems
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.association import COEFFICIENTS, Rated, associations, between_columns
from judgebench.stats.ranks import bradley_terry, wins_by_cluster

Weights = Mapping[str, float]
Numbers = Mapping[str, FloatArray]  # by column
Pairs = Sequence[tuple[str, str]]  # of columns: one, and another that is held against it
_PAIRS = ("first", "second", "winner")


@dataclass(frozen=True, repr=False)
class Correlations(Shown):
    """The associations of the columns of a table with so many answers, or systems."""

    presented_by = "judgebench.scorers.report:correlations_part"

    name: str
    rows: Results
    n_answers: int
    references: tuple[str, ...] = ()  # what is said of systems that are the reference text


@dataclass(frozen=True)
class Roles:
    """The roles of columns: those that all others are held `against`, those that name the `group`
    and the `system` of an item, those that are better when lower, to `flip`, and the scores to
    look at, by default all numbers. In the last two `*` fits anything. Rows of the systems
    `without` are left out."""

    against: Sequence[str] = ()
    group: str = ""
    system: str = ""
    flip: Sequence[str] = ()
    scores: Sequence[str] = ("*",)
    without: Sequence[str] = ()


def _correlate(table: Any, roles: Roles, more: Mapping[str, Weights | Any]) -> Correlations:
    averages = {name: of for name, of in more.items() if isinstance(of, Mapping)}
    totals = {name: sum(of.values()) for name, of in averages.items()}
    if nothing := [name for name, total in totals.items() if not total or not isfinite(total)]:
        raise SetupError(Problem("the weights add up to 0 or no number", field=", ".join(nothing)))
    made = {f"{name} Bradley-Terry" for name in more if name not in averages}
    parts = [column for of in averages.values() for column in of]
    needed = [*(column for column in roles.against if column not in {*averages, *made}), *parts]
    named = [column for column in (roles.group, roles.system) if column]
    read = _without(read_table(table, [*named, *needed]), roles)
    if taken := [name for name in averages if name in ("", *read.columns)]:
        said = "is a column already, or blank: an average has a name of its own"
        raise SetupError(Problem(said, read.file, None, "weights", taken[0]))
    shown = _fitting(roles.scores, read.scores(*named), "column", read.file)
    shown |= {*made, *roles.against}
    names = [column for column in read.columns if column in {*shown, *needed}]
    numbers = dict(zip(names, read.numbers(*names).T, strict=True))
    systems = _systems(read, roles)
    for name in (name for name in more if name not in averages):
        numbers |= _ratings(name, more[name], systems)
    for name in _fitting(roles.flip, numbers, "flip", read.file):
        numbers[name] = -numbers[name]
    own = [name for name in numbers if name in shown]
    for name, of in averages.items():
        numbers[name] = sum(w * numbers[c] for c, w in of.items()) / totals[name]
    if len({*own, *averages}) < 2:
        raise SetupError(Problem("needs two columns of numbers", read.file))
    pairs = [
        (one, other)
        for one in roles.against
        for other in (*own, *averages)
        if other not in (*roles.against, *averages.get(one, ()))
        and one not in averages.get(other, ())
    ]
    ranked = bool(roles.group)
    clusters = Clusters.of(read.filled(roles.group) if ranked else read.lines)
    codes = _codes(systems) if roles.system else None
    sides = {
        one: {name: Rated(x, numbers[one], clusters, codes) for name, x in numbers.items()}
        for one in roles.against
    }
    rows = [*(_over_items(sides, pairs) if ranked else _over_systems(numbers, pairs))]
    x = np.stack([numbers[name] for name in own], axis=1)
    beside = {one: {c: of[c] for c in own if c != one} for one, of in sides.items()}
    rows += redundancy_rows(own, x, clusters, beside=beside, ranked=ranked)
    copies = tuple(reference_systems(_texts(read, systems)))
    return Correlations(Path(read.file).stem, Results(tuple(rows)), len(systems), copies)


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
            problem = Problem("are no weights", "", None, "--weights", text, allowed)
            raise SetupError(problem) from None
    return found


def _without(read: Table, roles: Roles) -> Table:
    """The rows of the other systems. Raises SetupError for one that there is not."""
    systems = _systems(read, roles) if roles.without else [""] * len(read.lines)
    gone = _fitting(roles.without, dict.fromkeys(systems), "without", read.file)
    return read.at([row for row, system in enumerate(systems) if system not in gone])


def _texts(read: Table, systems: Sequence[str]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The system, the text and the reference of every row, where there are any."""
    columns = columns_by_role(read.columns, ("text", "reference"))
    if IS_REFERENCE in read.columns:
        text, reference = read.contents(IS_REFERENCE), ["yes"] * len(read)
    elif len(columns) == 2:
        text, reference = read.contents(columns["text"]), read.contents(columns["reference"])
    else:
        return iter(())
    return zip(systems, text, ([one] for one in reference), strict=False)


def _systems(read: Table, roles: Roles) -> Sequence[str]:
    """The system of every row: of the column, else of the first that holds texts."""
    numeric = read.numeric()
    texts = [c for c in read.columns if c not in numeric and c != roles.group]
    column = roles.system or (texts[0] if texts else "")
    cells = read.contents(column) if column else [str(line) for line in read.lines]
    again = [
        Problem("the system has two rows; --group names the items", read.file, line, column, cell)
        for i, (line, cell) in enumerate(zip(read.lines, cells, strict=True))
        if not roles.group and cell in cells[:i]
    ]
    raise_any(again)
    return cells


def _codes(cells: Sequence[str]) -> IntArray:
    """The number of each different text, -1 where it is blank."""
    number = {cell: i for i, cell in enumerate(dict.fromkeys(filter(None, cells)))}
    return np.array([number.get(cell, -1) for cell in cells], dtype=np.int64)


def _fitting(wanted: Sequence[str], names: Collection[str], field: str, file: str) -> set[str]:
    """The names that one of the names or patterns fits. Raises SetupError where one fits none."""
    found = {w: {n for n in names if n == w or fnmatchcase(n, w)} for w in wanted}
    if nothing := ", ".join(pattern for pattern, fits in found.items() if not fits):
        what = "system" if field == "without" else "column"
        raise SetupError(Problem(f"fits no {what}", file, None, field, nothing, ", ".join(names)))
    return set().union(*found.values())


def _ratings(name: str, pairs: Any, systems: Sequence[str]) -> dict[str, FloatArray]:
    """The column of a table of pairs: who won, by name, or a tie."""
    read = read_table(pairs, _PAIRS, f"the pairs {name!r}")
    played = list(zip(*map(read.contents, _PAIRS), strict=True))
    problems = [
        Problem("is neither side", read.file, line, "winner", won, f"{a}, {b}, tie")
        for line, (a, b, won) in zip(read.lines, played, strict=True)
        if won not in (a, b, "tie")
    ]
    raise_any(problems)
    known = {system: i for i, system in enumerate(dict.fromkeys(s for p in played for s in p[:2]))}
    sides = np.array([[known[a], known[b]] for a, b, _ in played])
    outcome = np.array([{a: 1.0, b: 0.0}.get(won, 0.5) for a, b, won in played])
    together = Clusters(np.zeros(len(sides), dtype=np.int64), 1)
    strengths = bradley_terry(wins_by_cluster(sides, outcome, together, len(known))[0])
    place = [known.get(system, -1) for system in systems]
    return {f"{name} Bradley-Terry": np.append(strengths, np.nan)[place]}


def _over_items(sides: Mapping[str, Mapping[str, Rated]], pairs: Pairs) -> Iterator[Row]:
    for one, other in pairs:
        for found in associations(sides[one][other]).values():
            about = {"scope": found.level}
            row = Row("correlation", found.coefficient, found.estimate, other, one, about)
            yield from with_chance(row, found)


_T = "two-sided, by Student's t with n - 2 degrees of freedom"
_TESTS = {"pearson": _T, "spearman": _T, "kendall": "two-sided, exact without ties"}


def _over_systems(numbers: Numbers, pairs: Pairs) -> list[Row]:
    rows = []
    for (one, other), coefficient in product(pairs, COEFFICIENTS[:3]):
        estimate, p = between_columns(numbers[other], numbers[one], coefficient)
        rows.append(Row("correlation", coefficient, estimate, other, one, {"scope": "system"}))
        said = replace(estimate, value=p, low=None, high=None, method=_TESTS[coefficient])
        rows.append(Row("test", "p", said, other, one, {"of": coefficient}))
    return [*rows, *corrected(rows, ("test", "metric", "of"))]


CLOSED = "closed accuracy"
_SAYS = {"true": "1", "yes": "1", "correct": "1", "false": "0", "no": "0", "wrong": "0"}


def open_against_closed(
    opened: Any, closed: Any, where: Roles, correct: str = "correct", scores: Sequence[str] = ()
) -> Correlations:
    """The association of scores of open answers with being right where options are given.

    Both tables, files or DataFrames, name question and system in the columns `group` and `system`
    of `where`. `closed` says in `correct` whether an answer was right (1 or 0, yes or no); of
    several answers the mean counts. `scores` are columns of `opened`, by default all numbers.
    Pearson's r over items is then the point-biserial correlation. Raises SetupError with every
    problem of the tables, and where no question and system is in both.
    """
    import pandas as pd

    keys = [where.group, where.system]
    answers = read_table(opened, [*keys, *scores], "the open answers")
    chosen = read_table(closed, [*keys, correct], "the closed answers")
    answers_right = [_SAYS.get(cell.lower(), cell) for cell in chosen.contents(correct)]
    right = pd.DataFrame({key: chosen.contents(key) for key in keys})
    right[CLOSED] = replace(chosen, columns={correct: answers_right}).numbers(correct)[:, 0]
    names = scores or answers.scores(*keys)
    table = pd.DataFrame({key: answers.contents(key) for key in keys})
    table[list(names)] = answers.numbers(*names)
    joined = table.merge(right.groupby(keys, as_index=False).mean(), on=keys, how="left")
    if not joined[CLOSED].notna().any():
        message, found = "no question and system is in both tables", " and ".join(keys)
        raise SetupError(Problem(message, chosen.file, found=found))
    return _correlate(joined, replace(where, against=(CLOSED,)), {})


def correlate(
    table: Given,
    against: Sequence[str] = (),
    *,
    group: str = "",
    system: str = "",
    flip: Sequence[str] = (),
    scores: Sequence[str] = ("*",),
    more: Mapping[str, Any] = {},
    without: Sequence[str] = (),
) -> Correlations:
    """Find the columns of scores that go together, and those that say the same.

    The table has a row for each `system`, or for each item where `group` names the column of its
    question; blank cells are gaps. The columns of `scores` are held `against` those named, those of
    `flip` with the sign changed (`*` fits anything in both). Rows of the systems `without`, such as
    the reference text, are left out. `more` are new columns by name: the
    weights of the columns that they average, or a table of pairs of systems (`first`, `second`,
    `winner`), which gives Bradley-Terry strengths. An average is not held against
    its parts.
    Raises SetupError with every problem of the tables.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": list("abcd"), "closed": [1, 2, 3, 4], "open": [1, 3, 2, 4]})
    >>> found = jb.correlate(table, ["closed"]).results
    >>> round(found.find("pearson", judge="open").value, 2)
    0.8
    """
    return _correlate(table, Roles(against, group, system, flip, scores, without), more)
