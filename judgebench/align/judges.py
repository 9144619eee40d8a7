"""Judges against the truth, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from judgebench.align.result import STATISTICS, Confusion, FailurePolicy, Score
from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.association import KENDALL_TAU_B, SPEARMAN, pearson
from judgebench.stats.confusion import (
    ACCURACY,
    BALANCED_ACCURACY,
    MACRO_F1,
    cohen_kappa,
    confusion_by_cluster,
    fill_failures,
    mean_severity_error,
    overestimated,
    underestimated,
)
from judgebench.stats.interrater import gwet_ac
from judgebench.stats.intervals import clopper_pearson, items_for_half_width
from judgebench.stats.resample import ClusterCounts, Statistic, cluster_bootstrap
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import Labels

# A recall this far from the truth either way is what "enough items" means.
RECALL_HALF_WIDTH = 0.10
NOMINAL = "the metric is nominal: its labels have no severity"
_NEEDS_SEVERITY = {
    "weighted_kappa", "spearman", "pearson", "tau_b", "severity_error", "overestimated",
    "underestimated", "severe_recall",
}  # fmt: skip


def scores(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Score]:
    """Every statistic of one judge on one metric; three ways where it failed on some items."""
    truth, judged, clusters = paired_labels(study, judge, metric)
    failures = int(((truth >= 0) & (judged < 0)).sum())
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for policy in policies if failures else policies[:1]:
        k, ordinal = len(metric.labels), metric.kind == "ordinal"
        filled = fill_failures(truth, judged, policy, k, ordinal)
        counts = ClusterCounts(confusion_by_cluster(truth, filled, clusters, k))
        missing = failures if policy == "left_out" else 0
        for name in STATISTICS:
            estimate = score_of(study, name, metric, counts, missing)
            yield Score(judge.name, metric.id, name, policy, estimate)


def paired_labels(
    study: Study, judge: JudgeVerdicts, metric: Metric
) -> tuple[IntArray, Labels, Clusters]:
    """Truth, judge's label and cluster, one entry per item that any human rated (`each`: per human
    label)."""
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    judged = study.judged(judge, metric)[rows]
    if study.config.rule != "each":
        return humans.truth[rows], judged, humans.clusters
    votes = humans.made.values
    rated, _ = np.nonzero(votes >= 0)
    return votes[votes >= 0], judged[rated], humans.clusters[rated]


def score_of(
    study: Study, name: str, metric: Metric, counts: ClusterCounts, missing: int
) -> Estimate:
    """One of STATISTICS of confusion counts by cluster; undefined, with a reason, where the metric
    is nominal and the statistic needs severities."""
    n = int(counts.total.sum())
    if name in _NEEDS_SEVERITY and metric.kind == "nominal":
        return Estimate(None, n=n, n_missing=missing, reason=NOMINAL)
    if name == "severe_recall":
        return _severe_recall(study, metric, counts.total, missing)
    chosen = statistic(name, metric)
    return cluster_bootstrap(counts, chosen, study.resampling, n=n, n_missing=missing)


def _severe_recall(study: Study, metric: Metric, counts: FloatArray, missing: int) -> Estimate:
    """Exact interval, and how many more severe items a usable one would need.

    `n_missing` counts failures on items of any severity, as for the other statistics.
    """
    k, found = int(counts[-1].sum()), int(counts[-1, -1])
    estimate = clopper_pearson(found, k, study.resampling.level)
    if k == 0:
        reason = f'no item that the judge labelled has the truth "{metric.most_severe}"'
        return replace(estimate, reason=reason, n_missing=missing)
    needed = items_for_half_width(found / k, RECALL_HALF_WIDTH, study.resampling.level)
    reason = ""
    if k < needed:
        items = "item" if k == 1 else "items"
        reason = f"only {k} such {items}: {needed - k} more are needed for ±{RECALL_HALF_WIDTH:g}"
    method = f"{estimate.method}, items taken as independent"
    return replace(estimate, reason=reason, method=method, n_missing=missing)


def confusion(study: Study, judge: JudgeVerdicts, metric: Metric) -> Confusion:
    """How often which truth met which label; the last column counts missing labels."""
    truth, judged, *_ = paired_labels(study, judge, metric)
    k = len(metric.labels)
    counts = np.zeros((k, k + 1), dtype=np.int64)
    known = truth >= 0
    np.add.at(counts, (truth[known], np.where(judged < 0, k, judged)[known]), 1)
    return Confusion(judge.name, metric.id, metric.label_texts, counts)


def statistic(name: str, metric: Metric) -> Statistic:
    """The statistic behind a key of STATISTICS. Raises ValueError where it has no bootstrap."""
    match name:
        case "accuracy":
            return ACCURACY
        case "balanced_accuracy":
            return BALANCED_ACCURACY
        case "macro_f1":
            return MACRO_F1
        case "kappa":
            return cohen_kappa("none")
        case "weighted_kappa":
            return cohen_kappa("quadratic", metric.severities)
        case "ac":
            ordinal = metric.kind == "ordinal"
            return gwet_ac("quadratic", metric.severities) if ordinal else gwet_ac()
        case "spearman":
            return SPEARMAN
        case "pearson":
            return pearson(metric.severities)
        case "tau_b":
            return KENDALL_TAU_B
        case "severity_error":
            return mean_severity_error(metric.severities)
        case "overestimated":
            return overestimated(metric.severities)
        case "underestimated":
            return underestimated(metric.severities)
    raise ValueError(f"no statistic {name!r}")
