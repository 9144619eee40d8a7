"""The scores of two judges on the same items against the same truth, the second minus the first.

All that is resampled is drawn for both at once. Which of the two is the first changes nothing but
the signs: what is measured is put into one order first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.against_truth import paired_labels, score_of
from judgebench.alignment.statistics import NOMINAL, STATISTICS, Declared, FailurePolicy
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.confusion import confusion_by_cluster, fill_failures, recall
from judgebench.stats.intervals import SMOOTHED_T, mean_difference
from judgebench.stats.paired import difference_of, discordance_by_cluster, holm, mcnemar_clustered
from judgebench.stats.resample import ClusterCounts, Resampling, Statistic, cluster_bootstrap
from judgebench.studies.study import JudgeVerdicts, Study

TESTED = ("accuracy", "severe_recall")
NEVER_APART = "on no question is one of them right more often than the other"
SAME_LABELS = "both gave the same labels on all these answers"


@dataclass(frozen=True)
class Both:
    """Truth, the labels of two judges and the cluster of each item that any human rated (items,);
    -1 where there is no truth or label."""

    truth: IntArray
    judged: tuple[IntArray, IntArray]
    clusters: Clusters


def both_of(study: Study, pair: tuple[JudgeVerdicts, JudgeVerdicts], metric: Metric) -> Both:
    """Two judges of a study; the truth is -1 where no label of the first is due."""
    truth, one, clusters = paired_labels(study, pair[0], metric)
    return Both(truth, (one, paired_labels(study, pair[1], metric)[1]), clusters)


def formula_of(declared: Declared, metric: Metric) -> Statistic:
    """Of confusion counts; that of severe recall too, whose interval is exact elsewhere."""
    return declared.formula(metric) if declared.formula else recall(len(metric.labels) - 1)


def either_way(
    make: Callable[[FloatArray, FloatArray], Estimate], a: FloatArray, b: FloatArray
) -> Estimate:
    """`make(a, b)`, an estimate of b minus a, that only changes its sign where a and b change
    places: the draws of a resampling depend on the order."""
    if a.tobytes() <= b.tobytes():
        return make(a, b)
    found = make(b, a)
    value, low, high = (
        None if x is None else 0.0 - x for x in (found.value, found.high, found.low)
    )
    return replace(found, value=value, low=low, high=high)


def failure_policies(found: Both, metric: Metric) -> Iterator[tuple[FailurePolicy, Both, int]]:
    """The labels of both under each way to count what is missing, and how many truths are left
    out; three ways where either judge failed on some items.

    Left out are items to which either gave no label, so that both are scored on the same. Else a
    missing label of either counts as in an alignment: as the worst label, or as the truth.
    """
    truth, (one, two) = found.truth, found.judged
    both = (one >= 0) & (two >= 0)
    failures = int(((truth >= 0) & ~both).sum())
    kept = np.where(both, one, -1), np.where(both, two, -1)
    yield "left_out", replace(found, judged=kept), failures
    policies: tuple[FailurePolicy, ...] = ("worst", "best")
    for policy in policies if failures else ():
        k, ordinal = len(metric.labels), metric.kind == "ordinal"
        filled = [fill_failures(truth, labels, policy, k, ordinal) for labels in (one, two)]
        yield policy, replace(found, judged=(filled[0], filled[1])), 0


def score_differences(
    study: Study, metric: Metric, both: Both, missing: int,
    statistics: Collection[str] = STATISTICS.keys(),
) -> Iterator[tuple[Declared, Estimate, list[Estimate]]]:  # fmt: skip
    """Each of these statistics: the second minus the first, and what each of both reaches."""
    k, truth = len(metric.labels), both.truth
    shared = [confusion_by_cluster(truth, labels, both.clusters, k) for labels in both.judged]
    same = bool((both.judged[0] == both.judged[1])[truth >= 0].all())
    for declared in (STATISTICS[key] for key in statistics):
        values = [score_of(study, declared, metric, ClusterCounts(C), missing) for C in shared]
        if values[0].reason == NOMINAL:
            difference = values[0]
        else:
            formula = formula_of(declared, metric)
            make = partial(paired_bootstrap, formula, study.resampling, missing)
            difference = either_way(make, *shared)
        if same and difference.value is not None:
            difference = replace(difference, low=None, high=None, reason=SAME_LABELS)
        elif declared.key in TESTED:
            difference = _of_shares(difference, ClusterCounts(_apart(declared.key, metric, both)))
        yield declared, difference, values


def paired_bootstrap(
    statistic: Statistic, resampling: Resampling, missing: int, a: FloatArray, b: FloatArray
) -> Estimate:
    """The difference of a statistic of two counts (clusters, ...), on the same resamples."""
    counts = ClusterCounts(np.stack([a, b], axis=-1))
    n = round(float(a.sum()))
    return cluster_bootstrap(counts, difference_of(statistic), resampling, n=n, n_missing=missing)


def _used(statistic: str, metric: Metric, both: Both) -> NDArray[np.bool_]:
    return both.truth >= 0 if statistic == "accuracy" else both.truth == len(metric.labels) - 1


def _apart(statistic: str, metric: Metric, both: Both) -> FloatArray:
    """Of the items that accuracy, or severe recall, is about: the counts (clusters, 3) of those
    that only the second, only the first, and both or none have right."""
    used = _used(statistic, metric, both)
    right = [np.where(x < 0, -1, x == both.truth)[used].astype(np.int64) for x in both.judged]
    return discordance_by_cluster(right[1], right[0], both.clusters[used])


def _of_shares(found: Estimate, counts: ClusterCounts) -> Estimate:
    """The difference of two shares of the same items, with the interval of `mean_difference`
    (counts of `discordance_by_cluster`, the second first): in small samples, and where hardly any
    cluster tells the two apart, a bootstrap is too narrow."""
    if found.value is None or counts.clusters < 2:
        return found
    apart, n = counts.kinds[:, 0] - counts.kinds[:, 1], counts.kinds.sum(axis=1)
    how_many = counts.how_many[None].astype(np.float64)
    held = mean_difference(apart[:, None], n[:, None], how_many, found.level, balanced=False)
    method = f"{SMOOTHED_T}, over {counts.clusters} clusters"
    low, high = float(held.low[0]), float(held.high[0])
    n_used = round(float(counts.total.sum()))
    return replace(found, low=low, high=high, method=method, reason="", n=n_used)


def share_tests(metric: Metric, both: Both, seed: int) -> Iterator[tuple[str, Estimate]]:
    """The permutation test of accuracy, and of the most severe items: whole clusters of answers
    change places between the two."""
    for statistic in TESTED[: 2 if metric.kind == "ordinal" else 1]:
        counts = _apart(statistic, metric, both)
        p = mcnemar_clustered(ClusterCounts(counts), seed=seed)
        n = round(float(counts.sum()))
        missing = int(_used(statistic, metric, both).sum()) - n
        reason = "" if p is not None else NEVER_APART
        yield statistic, Estimate(p, n=n, n_missing=missing, reason=reason)


def corrected(rows: Sequence[Row], family: Sequence[str]) -> Iterator[Row]:
    """Holm's correction of the permutation tests among the rows, over those with the same values of
    the keys `family`."""
    families: dict[tuple[str, ...], list[Row]] = {}
    for row in (row for row in rows if row.analysis == "test"):
        families.setdefault(tuple(row[key] for key in family), []).append(row)
    for tests in families.values():
        for row, p in zip(tests, holm([row.estimate.value for row in tests]), strict=True):
            yield replace(row, statistic="p_holm", estimate=replace(row.estimate, value=p))
