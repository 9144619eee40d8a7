"""Scores of what was answered, or written anew, several times: how much of them is noise?

Rows `repeated` hold a scorer's or judge's numbers on answers whose runs are of one kind (`runs`):
`answers`, several of one system to one question; the name of a recipe, an answer beside versions
that say the same. `units` and `most` count what was repeated, and its runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from judgebench.data.formats import Table
from judgebench.data.tables import read_table
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, raise_any, some
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
MOST_SYSTEMS = 20
ONE_SYSTEM = "only one system is named"
OF_THESE_RUNS = "a count of these runs, which has no interval"
TOO_MANY_SYSTEMS = f"there are more than {MOST_SYSTEMS} systems"
RATIO_SCALES = frozenset((
    "length", "question-overlap", "rouge-1", "rouge-2", "rouge-l", "bleu", "chrf", "chrf++", "ter",
    "bits-per-byte", "byte-perplexity", "word-perplexity", "relaxed-perplexity",
))  # fmt: skip
"""Scorers whose 0 is a true zero and whose numbers are never below it."""

Unit = tuple[str, str, str]  # system, question, group


@dataclass(frozen=True, repr=False)
class Consistency(Shown):
    """The steadiness of the scores of a table with so many answers; the rows are those of above."""

    presented_by = "judgebench.scorers.report:consistency_part"

    name: str
    rows: Results
    n_answers: int


@dataclass(frozen=True)
class Repeats:
    """The items scored several times. `rows` (units, runs) are those of the texts, -1 for none;
    `systems` and `questions` (units,) are codes."""

    runs: str
    rows: IntArray
    systems: IntArray
    questions: IntArray
    clusters: Clusters


@dataclass(frozen=True)
class Scores:
    """Numbers (texts,) of a scorer or judge, NaN where there is none, as they were given."""

    name: str
    metric: str
    x: FloatArray
    is_ratio: bool = False


def repeats_of(runs: str, units: Iterable[tuple[Unit, Sequence[int]]]) -> Repeats:
    """Of the units, each with the rows of its texts, those with two texts or more."""
    several = [(unit, rows) for unit, rows in units if len(rows) > 1]
    table = np.full((len(several), max((len(rows) for _, rows in several), default=0)), -1)
    seen, questions = Counter[tuple[str, str]](), []
    for place, ((system, question, _), rows) in enumerate(several):
        table[place, : len(rows)] = rows
        seen[system, question] += 1  # a question that a system has twice is two questions
        questions.append((question, seen[system, question]))
    systems, groups = (Clusters.of(unit[i] for unit, _ in several) for i in (0, 2))
    return Repeats(runs, table, systems.codes, Clusters.of(questions).codes, groups)


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
    return {**found, "flips": _flips(x[used], repeats.systems[used], repeats.questions[used])}


def _flips(x: FloatArray, systems: IntArray, questions: IntArray) -> Estimate:
    names, codes = np.unique(systems, return_inverse=True)
    if not 2 <= len(names) <= MOST_SYSTEMS:
        return Estimate(None, reason=TOO_MANY_SYSTEMS if len(names) > 1 else ONE_SYSTEM)
    flips = repeated_measures.order_flips(x, codes, questions)
    if np.isnan(flips):
        return Estimate(None, reason=repeated_measures.TOO_FEW_RUNS)
    return Estimate(flips, reason=OF_THESE_RUNS)


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
    return repeats_of(runs, (((a.system, a.question or a.group, a.group), of) for a, of in several))


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
    system = system or (roles.get("system", "") if roles.get("system") != group else "")
    names = [*scores] or read.scores(group, system, roles.get("question"))
    repeats = _table_repeats(read, group, system, names)
    x = read.numbers(*names)
    negative = [c for c, of in zip(names, x.T, strict=True) if c in ratio and (of < 0).any()]
    message = "is below 0 somewhere: no ratio scale"
    raise_any([Problem(message, read.file, None, c) for c in negative])
    is_ratio = {*RATIO_SCALES, *ratio}
    columns = [Scores(c, "", of, c in is_ratio) for c, of in zip(names, x.T, strict=True)]
    rows = repeated_rows(repeats, columns, level)
    return Consistency(read.stem, Results(tuple(rows)), len(read))


def _table_repeats(read: Table, group: str, system: str, names: Sequence[str]) -> Repeats:
    """Raises SetupError where no column names the question or holds scores, or nothing was scored
    twice."""
    lacking = [] if names else [Problem("no column holds numbers", read.file)]
    if not group:
        message = "no column is called `group`, `question` or alike"
        lacking.append(Problem(message, read.file, 1, "group", allowed=some(read.columns)))
    raise_any(lacking)
    systems = read.contents(system) if system else [""] * len(read)
    rows_by_unit: dict[Unit, list[int]] = defaultdict(list)
    for row, (of_system, question) in enumerate(zip(systems, read.filled(group), strict=True)):
        rows_by_unit[of_system, question, question].append(row)
    repeats = repeats_of(ANSWERS, rows_by_unit.items())
    if not len(repeats.rows):
        by = " and ".join(repr(column) for column in (group, system) if column)
        message = f"no two rows have the same {by}: nothing was repeated"
        raise_any([Problem(message, read.file)])
    return repeats
