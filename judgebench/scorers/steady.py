"""Scores of what was answered, or written anew, several times: how much of them is noise?

Rows `repeated` hold a scorer's or judge's numbers on answers whose runs are of one kind (`runs`):
`answers`, several of one system to one question; the name of a recipe, an answer beside versions
that say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from judgebench.data.columns import Columns
from judgebench.data.guess import roles_by_name
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.repeated import (
    BETWEEN_SD,
    ICC,
    ORDER_FLIPS,
    RUNS,
    WITHIN_SD,
    coefficient_of_variation,
    order_sums,
    runs_for,
    spread_sums,
    variance_over_range,
)
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    cluster_bootstrap,
    grouping_told,
    random_groups,
)

ANALYSIS, ANSWERS = "repeated", "answers"
WANTED = "runs_for_"  # begins what is wanted for a standard error
MOST_SYSTEMS = 20
ONE_SYSTEM = "only one system is named"
TOO_MANY_SYSTEMS = f"there are more than {MOST_SYSTEMS} systems"
RATIO_SCALES = frozenset((
    "length", "question-overlap", "rouge-1", "rouge-2", "rouge-l", "bleu", "chrf", "chrf++", "ter",
    "meteor", "radgraph", "bits-per-byte", "byte-perplexity", "word-perplexity",
    "relaxed-perplexity", "expected-occurrences",
))  # fmt: skip
"""Scorers whose 0 is a true zero and whose numbers are never below it."""

Unit = tuple[str, str, str]  # system, question, group


@dataclass(frozen=True)
class Repeats:
    """What was scored several times. `rows` (units, runs) are those of the texts, -1 for none;
    `systems` and `questions` (units,) are codes; of `same` units all texts are equal."""

    runs: str
    rows: IntArray
    systems: IntArray
    questions: IntArray
    clusters: Clusters
    same: int = 0


@dataclass(frozen=True)
class Scores:
    """Numbers (texts,) of a scorer or judge, NaN where there is none, as they were given."""

    name: str
    metric: str
    x: FloatArray
    is_ratio: bool = False


def repeats_of(runs: str, units: Iterable[tuple[Unit, Sequence[int]]], same: int = 0) -> Repeats:
    """Of the units, each with the rows of its texts, those with two texts or more."""
    several = [(unit, rows) for unit, rows in units if len(rows) > 1]
    table = np.full((len(several), max((len(rows) for _, rows in several), default=0)), -1)
    for place, (_, rows) in enumerate(several):
        table[place, : len(rows)] = rows
    seen: Counter[tuple[str, str]] = Counter()
    questions = []
    for (system, question, _), _ in several:
        seen[system, question] += 1  # a question that a system has twice is two questions
        questions.append((question, seen[system, question]))
    groups = _codes(group for (_, _, group), _ in several)
    clusters = Clusters(groups, int(groups.max(initial=-1)) + 1)
    systems = _codes(system for (system, _, _), _ in several)
    return Repeats(runs, table, systems, _codes(questions), clusters, same)


def _codes(names: Iterable[Hashable]) -> IntArray:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def counts(repeats: Repeats) -> Iterator[Row]:
    """How many units there are, and how many runs the smallest and the largest of them have."""
    sizes = (repeats.rows >= 0).sum(axis=1)
    told = {"units": len(sizes), "same": repeats.same, "least": sizes.min(), "most": sizes.max()}
    for key, value in told.items():
        yield Row(ANALYSIS, key, Estimate(int(value)), keys={"runs": repeats.runs})


def repeated_rows(
    repeats: Repeats, scores: Scores, resampling: Resampling, standard_error: float | None = None
) -> Iterator[Row]:
    """The numbers of one scorer on one kind of runs."""
    x = np.where(repeats.rows >= 0, np.append(scores.x, np.nan)[repeats.rows], np.nan)
    used = (~np.isnan(x)).sum(axis=1) >= 2
    clusters = random_groups(repeats.clusters)
    sums = ClusterCounts(spread_sums(x, clusters))
    spread = float(np.nanmax(x, initial=-np.inf) - np.nanmin(x, initial=np.inf))
    named, systems = np.unique(repeats.systems[used], return_inverse=True)
    n, of_a_system = int(used.sum()), max(1, round(used.sum() / max(1, len(named))))
    statistics = {
        "within_sd": WITHIN_SD, "between_sd": BETWEEN_SD, "icc": ICC, "runs": RUNS,
        "cv": coefficient_of_variation(scores.is_ratio),
        "variance_over_range": variance_over_range(max(spread, 0.0)),
    }  # fmt: skip
    if standard_error is not None:
        statistics[f"{WANTED}answer"] = runs_for(standard_error)
        statistics[f"{WANTED}system"] = runs_for(standard_error, of_a_system)
    estimate = partial(cluster_bootstrap, resampling=resampling, n=n, n_missing=len(used) - n)
    found = {key: estimate(sums, one) for key, one in statistics.items()}
    if 2 <= len(named) <= MOST_SYSTEMS:
        order = order_sums(x[used], systems, repeats.questions[used], clusters[used])
        found["flips"] = estimate(order, ORDER_FLIPS)
    else:
        found["flips"] = Estimate(None, reason=TOO_MANY_SYSTEMS if len(named) > 1 else ONE_SYSTEM)
    for key, one in found.items():
        told = grouping_told(one, repeats.clusters.n)
        keys: dict[str, str | float] = {"runs": repeats.runs}
        if standard_error is not None and key.startswith(WANTED):
            keys["standard_error"] = standard_error
        yield Row(ANALYSIS, key, told, scores.name, scores.metric, keys)


# --- of a table ----------------------------------------------------------------------------------

_NO_SCORES = ("row", "repeat", "run", "seed")


@dataclass(frozen=True)
class TableOrder:
    """What a table holds: the columns of the question and the system, by default those that are
    called so, the `scores` (by default all numeric columns), those with a true zero, and which
    standard error is wanted."""

    group: str = ""
    system: str = ""
    scores: Sequence[str] = ()
    ratio: Sequence[str] = ()
    standard_error: float | None = None


def table_rows(columns: Columns, order: TableOrder, resampling: Resampling) -> Iterator[Row]:
    """All of these of rows that are one scored answer each, runs in their order.

    Raises SetupError where columns do not hold what is said, or nothing was scored twice.
    """
    roles, file = roles_by_name(columns.cells), columns.file
    group = order.group or roles.get("group") or roles.get("question") or ""
    system = order.system or roles.get("system", "")
    aside = (*_NO_SCORES, group, system, *(roles.get(role) for role in ("item_id", "question")))
    chosen = [*(order.scores or (c for c in columns.numeric() if c not in aside))]
    problems = []
    if not group:
        message = "no column is called `group`, `question` or alike"
        problems.append(Problem(message, file, 1, "group", allowed=", ".join(columns.cells)))
    if not chosen:
        problems.append(Problem("no column holds numbers", file))
    if problems:
        raise SetupError(problems)
    x = dict(zip(chosen, columns.numbers(*chosen).T, strict=True))
    for column in order.ratio:
        if column in x and np.nanmin(x[column], initial=0) < 0:
            problems.append(Problem("is below 0 somewhere: no ratio scale", file, None, column))
    held: dict[Unit, list[int]] = {}
    groups = columns.cells[group]
    systems = columns.cells.get(system, [""] * len(groups))
    for row, (who, asked) in enumerate(zip(systems, groups, strict=True)):
        held.setdefault((who, asked, asked), []).append(row)
    repeats = repeats_of(ANSWERS, held.items())
    if not len(repeats.rows):
        by = " and ".join(repr(c) for c in (group, system) if c)
        problems.append(Problem(f"no two rows have the same {by}: nothing was repeated", file))
    if problems:
        raise SetupError(problems)
    yield from counts(repeats)
    for name, numbers in x.items():
        scores = Scores(name, "", numbers, name in order.ratio or name in RATIO_SCALES)
        yield from repeated_rows(repeats, scores, resampling, order.standard_error)
