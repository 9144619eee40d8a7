"""Scores of what was answered, or written anew, several times: how much of them is noise?

Rows `repeated` hold a scorer's or judge's numbers on answers whose runs are of one kind (`runs`):
`answers`, several of one system to one question; the name of a recipe, an answer beside versions
that say the same. `units` and `most` count what was repeated, and its runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.records import Estimate, Results, Row
from judgebench.results.shown import Shown
from judgebench.runs.from_tables import Given
from judgebench.scorers.candidates import ScorerRun, ScorersRead, severity_of
from judgebench.stats import repeated_measures
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.intervals import LEVEL, ClusterCounts, clustered_estimate
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.study import Study

ANALYSIS, ANSWERS = "repeated", "answers"
RATIO_SCALES = frozenset((
    "length", "question-overlap", "rouge-1", "rouge-2", "rouge-l", "bleu", "chrf", "chrf++", "ter",
    "bits-per-byte", "byte-perplexity", "word-perplexity", "relaxed-perplexity",
))  # fmt: skip
"""Scorers whose 0 is a true zero and whose numbers are never below it."""


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """The steadiness of the scores of a table with so many answers; the rows are those of above."""

    presented_by = "judgebench.scorers.report:consistency_part"

    name: str
    rows: Results
    n_answers: int


@dataclass(frozen=True)
class Repeats:
    """The items scored several times. `rows` (units, runs) are those of the texts, -1 for none."""

    runs: str
    rows: IntArray
    clusters: Clusters


@dataclass(frozen=True)
class Scores:
    """Numbers (texts,) of a scorer or judge, NaN where there is none, as they were given."""

    name: str
    metric: str
    x: FloatArray
    is_ratio: bool = False


def repeats_of(runs: str, units: Iterable[tuple[str, Sequence[int]]]) -> Repeats:
    """Of the units, each the name of its group and the rows of its texts, those with two texts or
    more."""
    several = [(group, rows) for group, rows in units if len(rows) > 1]
    table = np.full((len(several), max((len(rows) for _, rows in several), default=0)), -1)
    for place, (_, rows) in enumerate(several):
        table[place, : len(rows)] = rows
    return Repeats(runs, table, Clusters.of(group for group, _ in several))


def repeated_rows(repeats: Repeats, scores: Iterable[Scores], level: float) -> Iterator[Row]:
    """The numbers of every scorer on one kind of runs; nothing where nothing was repeated."""
    if not len(repeats.rows):
        return
    keys = {"runs": repeats.runs}
    for key, count in zip(("units", "most"), repeats.rows.shape, strict=True):
        yield Row(ANALYSIS, key, Estimate(count), keys=keys)
    for one in scores:
        for key, estimate in _numbers(repeats, one, level).items():
            yield Row(ANALYSIS, key, estimate, one.name, one.metric, keys)


def _numbers(repeats: Repeats, scores: Scores, level: float) -> Mapping[str, Estimate]:
    x = np.where(repeats.rows >= 0, np.append(scores.x, np.nan)[repeats.rows], np.nan)
    used = (~np.isnan(x)).sum(axis=1) >= 2
    n = int(used.sum())
    spread = float(np.ptp(x[~np.isnan(x)])) if n else 0.0
    statistics = {
        "within_sd": repeated_measures.WITHIN_SD,
        "between_sd": repeated_measures.BETWEEN_SD,
        "icc": repeated_measures.ICC,
        "cv": repeated_measures.coefficient_of_variation(scores.is_ratio),
        "variance_over_range": repeated_measures.variance_over_range(spread),
    }  # fmt: skip
    estimate = partial(clustered_estimate, level=level, n=n, n_missing=len(used) - n)
    sums = ClusterCounts(repeated_measures.spread_sums(x, repeats.clusters))
    found = {key: estimate(sums, statistic) for key, statistic in statistics.items()}
    found["runs"] = repeated_measures.runs_for_reliability(found["icc"])
    return found


def steady_rows(study: Study, read: ScorersRead) -> Iterator[Row]:
    """The steadiness where systems of a study answered several times, and where a stress test
    wrote answers anew."""
    rows_by_unit: dict[tuple[str, str], list[int]] = defaultdict(list)
    if study.clusters.n < len(study.answers):  # otherwise they need not be gone through
        for row, answer in enumerate(study.answers):
            if answer.system and answer.kind == "answer":
                rows_by_unit[answer.system, answer.question or answer.group].append(row)
    repeats = _repeats(ANSWERS, study.answers, rows_by_unit.values())
    yield from repeated_rows(repeats, _scores(study, read.runs), study.level)
    if (reworded := read.reworded) is None:
        return
    texts, scores = reworded.study.answers, list(_scores(reworded.study, reworded.runs))
    for recipe, by_parent in reworded.versions.items():
        rows = ([*map(texts.row, ids)] for ids in by_parent.values())
        yield from repeated_rows(_repeats(recipe, texts, rows), scores, study.level)


def _repeats(runs: str, answers: IndexedAnswers, rows: Iterable[Sequence[int]]) -> Repeats:
    several = [(answers[of[0]], of) for of in rows if len(of) > 1 and min(of) >= 0]
    return repeats_of(runs, ((answer.group, of) for answer, of in several))


def _scores(study: Study, runs: Sequence[ScorerRun]) -> Iterator[Scores]:
    """Every scorer as it scores, and every judge's severities on each ordinal metric: expected
    ones, where each label has a probability; those of its labels, where it follows from a score."""
    for run in runs:
        is_ratio = run.about.get("scorer") in RATIO_SCALES
        yield Scores(run.name, "", study.scores(run.judged), is_ratio)
    for metric in study.rubric.metrics:
        for judge in study.judges if metric.kind == "ordinal" else ():
            if judge.kind != "control" and judge.judges(metric):
                x, labels = severity_of(study, judge, metric), study.judged(judge, metric)
                if "of" in (judge.about or {}):
                    x = np.where(labels >= 0, np.array(metric.severities, float)[labels], np.nan)
                yield Scores(judge.name, metric.id, x)


def consistency(
    table: Given,
    *,
    group: str = "",
    system: str = "",
    scores: Sequence[str] = (),
    ratio: Sequence[str] = (),
    level: float = LEVEL,
) -> Consistency:
    """Measure how much of the scores in a table is noise: rows of the same `group` (the question)
    and `system` are runs, in their order. Where these are not given, columns are known by their
    names.

    `scores` are the columns to look at, by default all that hold numbers; those of `ratio` have a
    true zero, so that a coefficient of variation means something. Raises SetupError with every
    problem of the table.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"question": ["a", "a", "b", "b"], "chrf": [0.1, 0.3, 0.7, 0.9]})
    >>> round(jb.consistency(table, group="question").results.find("icc").value, 3)
    0.895
    """
    read = read_table(table, filter(None, [group, system, *scores, *ratio]))
    roles = columns_by_role(read.columns, ("group", "question", "system"))
    group = group or roles.get("group") or roles.get("question") or ""
    if not group:
        message, allowed = "no column is called `group`, `question` or alike", some(read.columns)
        raise SetupError(Problem(message, read.file, 1, "group", allowed=allowed))
    system = system or (roles.get("system", "") if roles.get("system") != group else "")
    names = [*scores] or read.scores(group, system, roles.get("question"))
    x, systems = read.numbers(*names), read.contents(system) if system else [""] * len(read)
    rows_by_unit: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, unit in enumerate(zip(systems, read.filled(group), strict=True)):
        rows_by_unit[unit].append(row)
    units = ((question, rows) for (_, question), rows in rows_by_unit.items())
    repeats = repeats_of(ANSWERS, units)
    columns = dict(zip(names, x.T, strict=True))
    _check(read.file, columns, ratio, repeats, list(filter(None, (group, system))))
    is_ratio = {*RATIO_SCALES, *ratio}
    scored = [Scores(name, "", column, name in is_ratio) for name, column in columns.items()]
    return Consistency(read.stem, Results(tuple(repeated_rows(repeats, scored, level))), len(read))


def _check(
    file: str, columns: Mapping[str, FloatArray], ratio: Collection[str], repeats: Repeats,
    keys: Sequence[str],
) -> None:  # fmt: skip
    """Raises SetupError where there are no scores, or nothing was scored twice, or a ratio scale
    has numbers below 0."""
    problems = [
        Problem("is below 0 somewhere: no ratio scale", file, None, name)
        for name, column in columns.items()
        if name in ratio and (column < 0).any()
    ]
    if not columns:
        problems.append(Problem("no column holds numbers", file))
    elif not len(repeats.rows):
        by = " and ".join(map(repr, keys))
        problems.append(Problem(f"no two rows have the same {by}: nothing was repeated", file))
    raise_any(problems)
