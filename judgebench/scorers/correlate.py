"""The findings on tables of scores: how their columns go together, over systems or over items.

Rows `correlation` hold a coefficient of a column, `judge`, with one that it is held `against`,
`metric`, at a level (`scope`); rows `chance` what pairwise accuracy reaches by chance, rows `tie`
the difference of scores that it takes for a tie, rows `test` the p values of a table of systems,
Holm's over the columns. Rows `agreement` hold Krippendorff's alpha (interval) of the `raters` whose
mean the columns are held against. `redundancy_rows` describes the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from judgebench.alignment.raters import corrected
from judgebench.data.formats import Table
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import Results, Row
from judgebench.results.shown import Shown
from judgebench.runs.from_tables import Given
from judgebench.scorers.measure import NO_ESTIMATE, association_rows, redundancy_rows
from judgebench.scorers.scorer import texts_in
from judgebench.stats.arrays import Clusters, FloatArray, mean_of_defined
from judgebench.stats.association import COEFFICIENTS, Rated, between_columns
from judgebench.stats.repeated_measures import score_agreement

if TYPE_CHECKING:
    import pandas as pd

Targets = Mapping[str, Sequence[str]]  # by name the raters whose mean counts; none of a column
Numbers = dict[str, FloatArray]  # (rows,) by column, NaN where a cell is blank
_WORDS = {"true": "1", "yes": "1", "correct": "1", "false": "0", "no": "0", "wrong": "0"}


@dataclass(frozen=True, repr=False)
class Correlations(Shown):
    """The associations of the columns of a table with so many answers, or systems."""

    presented_by = "judgebench.scorers.report:correlations_part"

    name: str
    rows: Results
    n_answers: int


def correlate(
    tables: Given | Sequence[Given],
    against: Sequence[str] | Targets = (),
    *,
    group: str = "",
    system: str = "",
    flip: Sequence[str] = (),
    scores: Sequence[str] = ("*",),
) -> Correlations:
    """Find the columns of scores that go together, and those that say the same.

    A table has a row for each `system`, or for each item where `group` names the column of its
    question; blank cells are gaps. Of several tables, one with columns of its own adds these to the
    rows with the same question and system (the mean, where it has several); any other adds rows.

    The columns of `scores` are held `against` those named, those of `flip` with the sign changed
    (`*` fits anything in both). A list in a cell is a column for each of its numbers, `ratings[0]`
    and so on. `{"human": ["ann", "ben"]}` is the mean of raters, who rate on one scale: their
    agreement is Krippendorff's alpha at interval level.

    Raises SetupError with every problem of the tables.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": list("abcd"), "closed": [1, 2, 3, 4], "open": [1, 3, 2, 4]})
    >>> found = jb.correlate(table, ["closed"]).results
    >>> round(found.find("pearson", judge="open").value, 2)
    0.8
    """
    targets = against if isinstance(against, Mapping) else dict.fromkeys(against, ())
    sources = tables if isinstance(tables, list | tuple) else [tables]
    keys = {role: name for role, name in (("group", group), ("system", system)) if name}
    reads = [_plain(read_table(source, keys.values()), targets) for source in sources]
    file, frame = reads[0].file, reduce(_joined, [_frame(read, keys, targets) for read in reads])
    numbers = {str(name): frame[name].to_numpy(float) for name in frame if name not in keys}
    flips = [flip] if isinstance(flip, str) else flip
    for name in _fitting(flips, numbers, "flip", file):
        numbers[name] = -numbers[name]
    shown = _fitting(scores, numbers, "column", file)
    raters = {name: _raters(name, names, numbers) for name, names in targets.items()}
    wanted = [column for name, names in raters.items() for column in names or [name]]
    _fitting(wanted, numbers, "against", file)
    if not group:
        raise_any([problem for read in reads for problem in _repeated_systems(read, system)])
    rows = tuple(_rows(frame, numbers, shown, raters))
    if not rows:
        raise SetupError(Problem("needs two columns of numbers", file))
    return Correlations(reads[0].stem, Results(rows), len(frame))


def _rows(
    frame: pd.DataFrame,
    numbers: Numbers,
    shown: Collection[str],
    targets: Targets,
) -> Iterator[Row]:
    ranked = "group" in frame
    clusters = Clusters.of(frame["group"] if ranked else frame.index)
    raters = {*chain.from_iterable(targets.values())}
    columns = [n for n in numbers if (n in shown or n in targets) and n not in raters]
    for target, names in targets.items():
        if names:
            x = np.stack([numbers[name] for name in names], axis=1)
            numbers[target] = mean_of_defined(x)
            (alpha,) = score_agreement(x, ["alpha"], clusters).values()
            yield Row("agreement", "alpha", alpha, metric=target, keys={"raters": ", ".join(names)})
    pairs = [pair for pair in product(targets, columns) if pair[1] not in targets]
    if ranked:
        codes = frame["system"].replace("", None).factorize()[0] if "system" in frame else None
        for target, name in pairs:
            side = Rated(numbers[name], numbers[target], clusters, codes)
            yield from association_rows(side, Row("correlation", "", NO_ESTIMATE, name, target))
    else:
        yield from _over_systems(numbers, pairs)
    if len(columns) > 1:
        x = np.stack([numbers[name] for name in columns], axis=1)
        yield from redundancy_rows(columns, x, ranked=ranked)


def _plain(read: Table, targets: Targets) -> Table:
    """The table with a column for each text of a list, and with 1 and 0 for yes and no in
    targets."""
    columns: dict[str, Sequence[str]] = {}
    for name in read.columns:
        cells = read.contents(name)
        lists = [texts_in(cell) for cell in cells]
        width = max(map(len, lists))
        if width > 1:
            for i in range(width):
                columns[f"{name}[{i}]"] = [of[i] if i < len(of) else "" for of in lists]
        else:
            is_target = name in targets
            columns[name] = [_WORDS.get(c.lower(), c) for c in cells] if is_target else cells
    return replace(read, columns=columns)


def _frame(read: Table, keys: Mapping[str, str], targets: Targets) -> pd.DataFrame:
    """The numbers of a table, with its `group` and `system`. Raises SetupError for a blank question
    and a cell that holds no number."""
    import pandas as pd

    wanted = {*targets, *chain.from_iterable(targets.values())}
    scores = read.scores(*keys.values())
    names = [column for column in read.columns if column in scores or column in wanted]
    if "group" in keys:
        read.filled(keys["group"])
    of_keys = {role: read.contents(column) for role, column in keys.items()}
    return pd.DataFrame({**of_keys, **dict(zip(names, read.numbers(*names).T, strict=True))})


def _joined(frame: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The rows of both, or the columns that only the other has, at the same question and system."""
    import pandas as pd

    keys = [role for role in ("group", "system") if role in frame]
    if not keys:
        message = "several tables need the columns that name question or system: --group, --system"
        raise SetupError(message)
    new = [name for name in other if name not in frame]
    common = frame[keys].drop_duplicates().merge(other[keys].drop_duplicates())
    if new and len(common):
        means = other[[*keys, *new]].groupby(keys, as_index=False).mean()
        return frame.merge(means, on=keys, how="left")
    if {*other} <= {*keys, *new}:
        raise SetupError("no question and system is in both tables")
    return pd.concat([frame, other], ignore_index=True)


def _repeated_systems(read: Table, system: str) -> Iterator[Problem]:
    """The problem that a system has two rows, which a question would tell apart."""
    column = system or columns_by_role(read.columns, ["system"]).get("system")
    if column and len({*read.contents(column)}) < len(read):
        message = "a system has two rows: --group names the column of the question"
        yield Problem(message, read.file, 1, column)


def _raters(target: str, names: Sequence[str], numbers: Numbers) -> list[str]:
    """The columns of those whose mean is the target; none where it is a column itself."""
    if names or target in numbers:
        return [*names]
    return [column for column in numbers if column.startswith(f"{target}[")]


def _fitting(wanted: Sequence[str], names: Collection[str], field: str, file: str) -> set[str]:
    """The names that one of the names or patterns fits. Raises SetupError where one fits none."""
    fits = {w: {n for n in names if n == w or fnmatchcase(n, w)} for w in wanted}
    if nothing := ", ".join(pattern for pattern, of in fits.items() if not of):
        raise SetupError(Problem("fits no column", file, None, field, nothing, ", ".join(names)))
    return set().union(*fits.values())


_T = "two-sided, by Student's t with n - 2 degrees of freedom"
_TESTS = {"pearson": _T, "spearman": _T, "kendall": "two-sided, exact without ties"}


def _over_systems(numbers: Mapping[str, FloatArray], pairs: Sequence[tuple[str, str]]) -> list[Row]:
    rows = []
    for (target, name), coefficient in product(pairs, COEFFICIENTS[:3]):
        estimate, p = between_columns(numbers[name], numbers[target], coefficient)
        rows.append(Row("correlation", coefficient, estimate, name, target, {"scope": "system"}))
        test = replace(estimate, value=p, low=None, high=None, method=_TESTS[coefficient])
        rows.append(Row("test", "p", test, name, target, {"of": coefficient}))
    return [*rows, *corrected(rows, ("test", "metric", "of"))]
