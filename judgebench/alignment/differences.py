"""The scores of two judges on the same items against the same truth, the second minus the first.

Which of the two is the first changes nothing but the signs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.alignment.against_truth import paired_labels, score_of
from judgebench.alignment.statistics import NOMINAL, STATISTICS, Declared, FailurePolicy
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.confusion import confusion_by_cluster, fill_failures, of_label
from judgebench.stats.jackknife import ClusterCounts, Statistic, clustered_estimate
from judgebench.stats.paired import SIGNS_FLIPPED, difference_of, holm, mcnemar_clustered
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.words import counted

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
    """Two judges of a study; the truth is -1 where either was not asked."""
    truth, one, clusters = paired_labels(study, pair[0], metric)
    other_truth, other, _ = paired_labels(study, pair[1], metric)
    return Both(np.minimum(truth, other_truth), (one, other), clusters)


def formula_of(declared: Declared, metric: Metric) -> Statistic:
    """Of confusion counts; that of severe recall too, whose interval is exact elsewhere."""
    return (
        declared.formula(metric) if declared.formula else of_label("recall", len(metric.labels) - 1)
    )


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
        if declared.of_severe and metric.severe == "none":
            continue
        values = [score_of(study, declared, metric, ClusterCounts(C), missing) for C in shared]
        if values[0].reason == NOMINAL:
            difference = values[0]
        else:
            formula = formula_of(declared, metric)
            difference = paired_difference(formula, study.level, missing, *shared)
        if same and difference.value is not None:
            difference = replace(difference, low=None, high=None, method="", reason=SAME_LABELS)
        yield declared, difference, values


def paired_difference(
    statistic: Statistic, level: float, missing: int, a: FloatArray, b: FloatArray
) -> Estimate:
    """The difference of a statistic of two counts (clusters, ...) of the same items."""
    counts, items = np.stack([a, b], axis=-1), statistic.items
    n = round(float(a.sum() if items is None else items(a.sum(axis=0))))
    return clustered_estimate(counts, difference_of(statistic), level, n=n, n_missing=missing)


def right_alone(both: Both) -> FloatArray:
    """1 where only the second judge is right, -1 where only the first is (items,); NaN where either
    gave no label."""
    one, two = (np.where(labels < 0, np.nan, labels == both.truth) for labels in both.judged)
    return np.asarray(two - one)


def share_tests(metric: Metric, both: Both) -> Iterator[tuple[str, Estimate]]:
    """The permutation test of accuracy, and of the most severe items: whole clusters of answers
    change places between the two."""
    truth, of_item = both.truth, right_alone(both)
    for statistic in TESTED[: 2 if metric.has_severe else 1]:
        used = truth >= 0 if statistic == "accuracy" else truth == len(metric.labels) - 1
        apart = of_item[used]
        p, missing = mcnemar_clustered(apart, both.clusters[used]), int(np.isnan(apart).sum())
        reason = "" if p is not None else NEVER_APART
        n = len(apart) - missing
        yield statistic, Estimate(p, None, None, SIGNS_FLIPPED, n, missing, reason)


def corrected(rows: Sequence[Row], family: Sequence[str]) -> Iterator[Row]:
    """Holm's correction of the p values among the rows, over those with the same values of the keys
    `family`; the method names these, and how many tests there are."""
    families: dict[tuple[str, ...], list[Row]] = {}
    for row in (row for row in rows if row.statistic in ("p", "permutation_p")):
        families.setdefault(tuple(row[key] for key in family), []).append(row)
    for values, tests in families.items():
        p_values = [row.estimate.value for row in tests]
        n_tests = counted(sum(p is not None for p in p_values), "test")
        which = ", ".join(f"{key} {x}" for key, x in zip(family, values, strict=True) if x)
        for row, p in zip(tests, holm(p_values), strict=True):
            method = f"Holm's correction over {n_tests} ({which}); {row.estimate.method}"
            estimate = replace(row.estimate, value=p, method=method)
            yield replace(row, statistic="p_holm", estimate=estimate)
