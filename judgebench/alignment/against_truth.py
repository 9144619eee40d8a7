"""Judges against the truth, metric by metric: scores and confusions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from judgebench.alignment.statistics import (
    LABEL_STATISTICS,
    LIMITS_OF_AGREEMENT,
    NOMINAL,
    STATISTICS,
    Declared,
    FailurePolicy,
    label_numbers,
)
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.association import partial_correlation
from judgebench.stats.confusion import (
    all_items,
    confusion_by_cluster,
    fill_failures,
    of_label,
)
from judgebench.stats.intervals import PRECISION, exact_share, more_for_precision
from judgebench.stats.jackknife import ClusterCounts, Statistic, clustered_estimate
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.truth import Labels
from judgebench.words import counted


def scores(
    study: Study,
    judge: JudgeVerdicts,
    metric: Metric,
    statistics: Iterable[Declared] = tuple(STATISTICS.values()),
) -> Iterator[Row]:
    """The statistics of one judge on one metric; three ways where it failed on some items."""
    truth, judged, clusters = paired_labels(study, judge, metric)
    failures = int(((truth >= 0) & (judged < 0)).sum())
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for policy in policies if failures else policies[:1]:
        k, ordinal = len(metric.labels), metric.kind == "ordinal"
        filled = fill_failures(truth, judged, policy, k, ordinal)
        counts = ClusterCounts(confusion_by_cluster(truth, filled, clusters, k))
        missing = failures if policy == "left_out" else 0
        for declared in statistics:
            if declared.of_severe and metric.severe == "none":
                continue
            estimate = score_of(study, declared, metric, counts, missing)
            yield Row("score", declared.key, estimate, judge.name, metric.id, {"failures": policy})


def details(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """Each label against all others, and the limits of agreement where the labels are numbers."""
    truth, judged, clusters = paired_labels(study, judge, metric)
    counts = ClusterCounts(confusion_by_cluster(truth, judged, clusters, len(metric.labels)))
    failures = int(((truth >= 0) & (judged < 0)).sum())

    def row(analysis: str, key: str, statistic: Statistic, **keys: str) -> Row:
        estimate = of_counts(study, statistic, counts, failures)
        return Row(analysis, key, estimate, judge.name, metric.id, keys)

    for place, text in enumerate(metric.label_texts):
        for name in LABEL_STATISTICS:
            yield row("label", name, of_label(name, place), label=text)
    if numbers := label_numbers(metric):
        for key, formula in LIMITS_OF_AGREEMENT.items():
            yield row("limits_of_agreement", key, formula(numbers))


def systems_of(study: Study) -> IntArray:
    """The number of the system that gave each answer (items,); -1 where it is unknown."""
    names, codes = np.unique(study.cells["system"].astype(str), return_inverse=True)
    return np.asarray(codes - ("" in names))  # an empty name sorts first


def given_system(
    study: Study, judge: JudgeVerdicts, metric: Metric, systems: IntArray
) -> Iterator[Row]:
    """The partial correlation of ordinal labels, of the systems (items,) that gave the answers;
    nothing of fewer than two."""
    if metric.kind == "nominal" or systems.max(initial=0) < 1:
        return
    truth, judged, clusters = paired_labels(study, judge, metric)
    due, severities = truth >= 0, np.array([*metric.severities, np.nan])  # the last: no label
    scores = severities[judged[due]], severities[truth[due]]
    of_system = systems[truths(study, metric)[0]][due]
    estimate = partial_correlation(*scores, of_system, clusters[due], study.level)
    yield Row("given_system", "partial_correlation", estimate, judge.name, metric.id)


def coverage(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The number of answers that the judge was asked about, of how many; nothing where of all."""
    n_asked, n = study.n_asked(judge, [metric])
    if n_asked < n:
        yield Row("asked", "answers", Estimate(n_asked, n=n), judge.name, metric.id)


def coverage_in_words(found: Results, judge: str, metric: str) -> str:
    """`48 of 500 asked`; empty where the judge was asked about all."""
    rows = found.select("asked", judge=judge, metric=metric)
    return "".join(f"{row.estimate.value:,.0f} of {row.estimate.n:,} asked" for row in rows)


def paired_labels(
    study: Study, judge: JudgeVerdicts, metric: Metric
) -> tuple[IntArray, Labels, Clusters]:
    """Truth, judge's label and cluster, one entry per item that any human rated (`each`: per human
    label). Where the judge was not asked, the truth is -1."""
    rows, truth, clusters = truths(study, metric)
    asked = study.asked(judge, metric)[rows]
    return np.where(asked, truth, -1), study.judged(judge, metric)[rows], clusters


def truths(study: Study, metric: Metric) -> tuple[Labels, IntArray, Clusters]:
    """Row, truth and cluster of each item that any human rated (`each`: of each human label)."""
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    if study.config.rule != "each":
        return rows, humans.truth[rows], humans.clusters
    votes = humans.made.values
    rated, _ = np.nonzero(votes >= 0)
    return rows[rated], votes[votes >= 0], humans.clusters[rated]


def score_of(
    study: Study, declared: Declared, metric: Metric, counts: ClusterCounts, missing: int
) -> Estimate:
    """A statistic of confusion counts by cluster; undefined, with a reason, where the metric is
    nominal and the statistic needs severities."""
    n = int(counts.total.sum())
    if not declared.fits(metric):
        return Estimate(None, n=n, n_missing=missing, reason=NOMINAL)
    if declared.formula is None:
        return _severe_recall(study, metric, counts, missing)
    return of_counts(study, declared.formula(metric), counts, missing)


def of_counts(study: Study, statistic: Statistic, counts: ClusterCounts, missing: int) -> Estimate:
    """A statistic of confusion counts by cluster; `n` is that of the items of a share, else all."""
    n = round(float((statistic.items or all_items)(counts.total)))
    return clustered_estimate(counts, statistic, study.level, n=n, n_missing=missing)


def _severe_recall(study: Study, metric: Metric, counts: ClusterCounts, missing: int) -> Estimate:
    """Exact interval, and how many more severe items a usable one would need: as in a decision.

    `n_missing` counts failures on items of any severity, as for the other statistics.
    """
    severe = counts.kinds[:, -1]
    sample = severe[:, -1], severe.sum(axis=1), counts.how_many.astype(np.float64)
    estimate = exact_share(*sample, study.level)
    if estimate.n == 0:
        reason = f'no item that the judge labelled has the reference label "{metric.most_severe}"'
        return replace(estimate, reason=reason, n_missing=missing)
    reason = ""
    if more := more_for_precision(*sample):
        items = counted(estimate.n, "severe item")
        reason = f"only {items}: label {more} more for an interval within ±{PRECISION:g}"
    return replace(estimate, reason=reason, n_missing=missing)


def confusion(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The counts of each truth with each label; an empty label counts those that were missing. In a
    study without human labels the truth of all is empty."""
    truth, judged, *_ = paired_labels(study, judge, metric)
    k, humans, known = len(metric.labels), metric.label_texts, truth >= 0
    if not study.n_labels:
        humans, known = ("",), study.asked(judge, metric)
        truth, judged = np.zeros_like(known, dtype=np.int64), study.judged(judge, metric)
    counts = np.zeros((len(humans), k + 1), dtype=np.int64)
    np.add.at(counts, (truth[known], np.where(judged < 0, k, judged)[known]), 1)
    for human, row in zip(humans, counts.tolist(), strict=True):
        for label, count in zip((*metric.label_texts, ""), row, strict=True):
            keys, n = {"human_label": human, "label": label}, int(known.sum())
            yield Row("confusion", "count", Estimate(count, n=n), judge.name, metric.id, keys)
