"""Judges in groups of answers: by system, or by a column that was kept with the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from judgebench.alignment.against_truth import paired_labels, score_of, truths
from judgebench.alignment.differences import corrected
from judgebench.alignment.statistics import STATISTICS
from judgebench.errors import Problem, SetupError, nearest
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.stats.confusion import confusion_by_cluster, fill_failures
from judgebench.stats.intervals import SMOOTHED_T, mean_difference
from judgebench.stats.jackknife import ClusterCounts
from judgebench.stats.paired import SIGNS_FLIPPED, permutation_test
from judgebench.studies.drawn import Mask
from judgebench.studies.labelled import MOST_GROUPS
from judgebench.studies.study import JudgeVerdicts, Study

NO_OVERLAP = "on no answer of the group can an annotator be compared with others"
NEVER_APART = "on no question is the judge right more often than an annotator, or less often"
BLANK = "(blank)"


def groups_of(study: Study, column: str) -> Mapping[str, Mask]:
    """The answers (answers,) of each value of a column. Raises SetupError for a column that was
    not kept, and for one of more values than are groups."""
    kept = [name for name, texts in study.cells.items() if any(texts)]
    if column not in kept:
        message = f"was not kept with the answers{nearest(column, kept)}"
        raise SetupError(Problem(message, "", None, "by", column, ", ".join(kept)))
    texts = study.cells[column]
    values = sorted({*texts.tolist()})
    if len(values) > MOST_GROUPS:
        message = f"has {len(values):,} values, and at most {MOST_GROUPS} are groups"
        raise SetupError(Problem(message, field="by", found=column))
    return {value or BLANK: np.asarray(texts == value) for value in values}


def subgroups(study: Study, column: str) -> Iterator[Row]:
    """The accuracy of each judge in each group, failures counted as wrong, and how far it is from
    the annotators there, with a permutation test; Holm's correction is over the groups."""
    groups = groups_of(study, column)
    for metric in study.rubric.metrics:
        for judge in study.real_judges:
            if judge.judges(metric):
                rows = [
                    Row("subgroup", statistic, estimate, judge.name, metric.id,
                        {"by": column, "group": group})
                    for group, is_in in groups.items()
                    for statistic, estimate in _of_group(study, judge, metric, is_in).items()
                ]  # fmt: skip
                yield from (*rows, *corrected(rows, ("judge", "metric", "by")))


def _of_group(
    study: Study, judge: JudgeVerdicts, metric: Metric, is_in: Mask
) -> Mapping[str, Estimate]:
    k, rows = len(metric.labels), truths(study, metric)[0]
    truth, judged, clusters = paired_labels(study, judge, metric)
    filled = fill_failures(truth, judged, "worst", k, metric.kind == "ordinal")
    here = is_in[rows]
    counts = confusion_by_cluster(truth[here], filled[here], clusters[here].occurring(), k)
    humans = study.humans[metric.id]
    here = is_in[humans.ratings.rows]
    ahead, pairs = (x[here] for x in _beside_annotators(study, judge, metric))
    sums = humans.clusters[here].occurring().sums(ahead, pairs)
    return {
        "accuracy": score_of(study, STATISTICS["accuracy"], metric, ClusterCounts(counts), 0),
        **_gap(sums, study.level),
    }


def _beside_annotators(
    study: Study, judge: JudgeVerdicts, metric: Metric
) -> tuple[FloatArray, FloatArray]:
    """Of each item that annotators rated (n,): on how many more pairs with an annotator of the bar
    the judge gives the label of the others than that annotator does, and of how many pairs. A
    missing label is no such label, and where the others tie there is no pair."""
    humans = study.humans[metric.id]
    rows, names = humans.ratings.rows, humans.in_bar()
    asked, judged = study.asked(judge, metric)[rows], study.judged(judge, metric)[rows]
    labels = humans.ratings.of(names).values
    others = np.full(labels.shape, -1)
    for column, name in enumerate(names):
        others[:, column] = humans.truth_without(name, humans.trusted(), ties=False)
    is_pair = asked[:, None] & (labels >= 0) & (others >= 0)
    ahead = (judged[:, None] == others) * 1.0 - (labels == others)
    return (ahead * is_pair).sum(axis=1), is_pair.sum(axis=1).astype(np.float64)


def _gap(sums: FloatArray, level: float) -> Mapping[str, Estimate]:
    """Judge minus annotator and the p of a gap of 0, from what pairs add up to by cluster
    (clusters, 2)."""
    n = int(sums[:, 1].sum())
    if not n:
        return dict.fromkeys(("annotator_gap", "permutation_p"), Estimate(None, reason=NO_OVERLAP))
    ahead, pairs = np.hsplit(sums, 2)
    gap = mean_difference(ahead, pairs, np.ones((1, len(sums))), level, balanced=False)
    value, low, high = (float(x[0]) for x in (gap.value, gap.low, gap.high))
    method = f"n counts pairs of an item and an annotator; {SMOOTHED_T}"
    p = permutation_test(sums[:, 0])
    reason = NEVER_APART if p is None else ""
    return {
        "annotator_gap": Estimate(value, low, high, method, n, level=level),
        "permutation_p": Estimate(p, None, None, SIGNS_FLIPPED, n, reason=reason),
    }
