"""Scores of what was answered, or written anew, several times: how much of them is noise?

Rows `repeated` hold a scorer's or judge's numbers on answers whose runs are of one kind (`runs`):
`answers`, several of one system to one question; the name of a recipe, an answer beside versions
that say the same. `units` and `most` count what was repeated, and its runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, some
from judgebench.records import Estimate, Results, Row, group_by_key
from judgebench.results.shown import Shown
from judgebench.runs.from_tables import Given
from judgebench.scorers.candidates import (
    Candidate,
    ScorerRun,
    ScorersRead,
    label_severity,
    scorer_candidates,
    severity_of,
)
from judgebench.scorers.config import RATIO_SCALES
from judgebench.stats import repeated_measures
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.intervals import LEVEL, ClusterCounts, clustered_estimate
from judgebench.studies.study import Study

ANALYSIS, ANSWERS = "repeated", "answers"


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """The steadiness of the scores of a table with so many answers; the rows are those of above."""

    presented_by = "judgebench.scorers.report:consistency_part"

    name: str
    rows: Results
    n_answers: int


Units = Sequence[tuple[str, Sequence[int]]]  # by the name of their group, the rows of their texts


def _units(texts: Iterable[tuple[int, tuple[str, ...]]]) -> Units:
    """`texts` are rows and what texts of one unit share, their group first."""
    rows_by_unit = group_by_key((unit, row) for row, unit in texts)
    return [(unit[0], rows) for unit, rows in rows_by_unit.items()]


def repeated_rows(
    runs: str, units: Units, scores: Iterable[Candidate], level: float
) -> Iterator[Row]:
    """The numbers of every scorer on one kind of runs; nothing where nothing was repeated."""
    several = [(group, rows) for group, rows in units if len(rows) > 1]
    if not several:
        return
    most = max(len(rows) for _, rows in several)
    table = np.array([[*rows, *[-1] * (most - len(rows))] for _, rows in several])
    clusters = Clusters.of(group for group, _ in several)
    keys = {"runs": runs}
    yield Row(ANALYSIS, "units", Estimate(len(several)), keys=keys)
    yield Row(ANALYSIS, "most", Estimate(most), keys=keys)
    for one in scores:
        x = np.where(table >= 0, one.x[table], np.nan)
        for key, estimate in _numbers(x, clusters, one.is_ratio, level).items():
            yield Row(ANALYSIS, key, estimate, one.name, one.metric, keys)


def _numbers(
    x: FloatArray, clusters: Clusters, is_ratio: bool, level: float
) -> Mapping[str, Estimate]:
    """Of numbers (units, runs), NaN where there is none."""
    n = int(((~np.isnan(x)).sum(axis=1) >= 2).sum())
    spread = float(np.ptp(x[~np.isnan(x)])) if n else 0.0
    statistics = {
        "within_sd": repeated_measures.WITHIN_SD,
        "between_sd": repeated_measures.BETWEEN_SD,
        "icc": repeated_measures.ICC,
        "cv": repeated_measures.coefficient_of_variation(is_ratio),
        "variance_over_range": repeated_measures.variance_over_range(spread),
    }  # fmt: skip
    estimate = partial(clustered_estimate, level=level, n=n, n_missing=len(x) - n)
    sums = ClusterCounts(repeated_measures.spread_sums(x, clusters))
    estimates = {key: estimate(sums, statistic) for key, statistic in statistics.items()}
    return {**estimates, "runs": repeated_measures.runs_for_reliability(estimates["icc"])}


def steady_rows(study: Study, read: ScorersRead) -> Iterator[Row]:
    """The steadiness where systems of a study answered several times, and where a stress test
    wrote answers anew."""
    units = _units(
        (row, (answer.group, answer.system, answer.question))
        for row, answer in enumerate(study.answers)
        if answer.system and answer.kind == "answer"
    )
    yield from repeated_rows(ANSWERS, units, _scores(study, read.runs), study.level)
    if (reworded := read.reworded) is None:
        return
    texts, scores = reworded.study.answers, list(_scores(reworded.study, reworded.runs))
    for recipe, versions in reworded.versions.items():
        units = [(texts[rows[0]].group, rows) for rows in versions if min(rows) >= 0]
        yield from repeated_rows(recipe, units, scores, study.level)


def _scores(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Candidate]:
    """Every scorer as it scores, and every judge's severities on each ordinal metric: expected
    ones, where each label has a probability; those of its labels, where it follows from a score."""
    yield from scorer_candidates(study, runs)
    for metric in study.rubric.metrics:
        for judge in study.judges if metric.kind == "ordinal" else ():
            if judge.kind != "control" and judge.judges(metric):
                severity = label_severity if "of" in (judge.about or {}) else severity_of
                x = severity(study, judge, metric)
                yield Candidate(judge.name, "judge", x, metric=metric.id)


def consistency(
    table: Given,
    *,
    group: str = "",
    system: str = "",
    scores: Sequence[str] = (),
    level: float = LEVEL,
) -> Consistency:
    """Measure how much of the scores in a table is noise: rows of the same `group` (the question)
    and `system` are runs, in their order. Where these are not given, columns are known by their
    names.

    `scores` are the columns to look at, by default all that hold numbers. A coefficient of
    variation is of those that are called like a scorer with a true zero. Raises SetupError with
    every problem of the table.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"question": ["a", "a", "b", "b"], "chrf": [0.1, 0.3, 0.7, 0.9]})
    >>> round(jb.consistency(table, group="question").results.find("icc").value, 3)
    0.895
    """
    read = read_table(table, filter(None, [group, system, *scores]))
    roles = columns_by_role(read.columns, ("group", "question", "system"))
    group = group or roles.get("group") or roles.get("question") or ""
    if not group:
        message, allowed = "no column is called `group`, `question` or alike", some(read.columns)
        raise SetupError(Problem(message, read.file, 1, "group", allowed=allowed))
    system = system or roles.get("system", "")
    names = [*scores] or read.scores(group, system, roles.get("question"))
    if not names:
        raise SetupError(Problem("no column holds numbers", read.file))
    questions, systems = read.filled(group), read.contents(system) if system else [""] * len(read)
    units = _units(enumerate(zip(questions, systems, strict=True)))
    scored = [
        Candidate(name, "judge", column, is_ratio=name in RATIO_SCALES)
        for name, column in zip(names, read.numbers(*names).T, strict=True)
    ]
    rows = tuple(repeated_rows(ANSWERS, units, scored, level))
    if not rows:
        by = " and ".join(map(repr, dict.fromkeys(filter(None, (group, system)))))
        message = f"no two rows have the same {by}: nothing was repeated"
        raise SetupError(Problem(message, read.file))
    return Consistency(read.stem, Results(rows), len(read))
