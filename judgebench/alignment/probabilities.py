"""Judges' label probabilities against the truth and against the distribution of human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from judgebench.alignment.against_truth import truths
from judgebench.alignment.statistics import Declared, by_key
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, value_counts
from judgebench.stats.calibration_error import (
    LEAST_PROBABILITY,
    NO_ITEM,
    annotator_against_others,
    base_rates,
    brier_skill,
    calibration_curve,
    cross_entropy,
    expected_calibration_error,
    judge_against_others,
    one_hot,
    squared_distance,
)
from judgebench.stats.means import clustered_mean
from judgebench.stats.ranks import roc_auc
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.studies.truth import Labels

NO_OTHERS = "no item with label probabilities has labels of two annotators"
# What is scored: the judge's `probabilities`; its `label` taken as a certainty; one `annotator`'s
# label taken so, on the same items; the same `base_rates` of the human labels on every item. `gain`
# is the annotator's distance minus that of the probabilities, item by item: above 0 the judge is
# nearer to the other annotators than one of them is.
Source = Literal["probabilities", "label", "annotator", "base_rates", "gain"]

# Against one truth per item; `_against_truth` measures them.
TRUTH_STATISTICS = by_key(
    Declared(
        "brier", "Brier score",
        "squared distance from the reference label, summed over labels; 0 is best, 2 worst",
        best="lower",
    ),
    Declared(
        "brier_skill", "Skill",
        "1 - Brier score / that of the labels' base rates, said of every item",
    ),
    Declared(
        "log_loss", "Log loss",
        "-ln of the probability of the reference label, the mean in nats; 0 is best",
        best="lower",
    ),
    Declared(
        "ece", "ECE", "expected calibration error: how far confidence is from the share right",
        best="lower",
    ),
    Declared("ece_debiased", "ECE, debiased", "without what chance adds to it", best="lower"),
)  # fmt: skip
_CLIPPED = f"probabilities below {LEAST_PROBABILITY:.1e} count as that"


def probability_results(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """All that is said of one judge's probabilities on one metric: scores, areas under ROC curves,
    a reliability diagram; of a score in their place the area of the last label. Nothing where the
    judge gave neither, or no human gave a label."""
    rows, truth, clusters = truths(study, metric)
    known = (truth >= 0) & study.asked(judge, metric)[rows]
    rows, truth, shared = rows[known], truth[known], (clusters[known], study.level)
    p, scores = study.probabilities(judge, metric), study.scores(judge)[rows]

    def row(analysis: str, statistic: str, estimate: Estimate, **keys: str) -> Row:
        return Row(analysis, statistic, estimate, judge.name, metric.id, keys)

    def area(place: int, score: FloatArray) -> Row:
        estimate = roc_auc(score, truth == place, *shared)
        return row("label", "roc_auc", estimate, label=metric.label_texts[place])

    if p is None and metric.kind == "ordinal" and not np.isnan(scores).all():
        yield area(len(metric.labels) - 1, scores)
    if p is None or not len(study.humans[metric.id].made.rows):
        return
    for place, score in enumerate(p[rows].T):
        yield area(place, score)
    for statistic, who, estimate in _against_truth(
        p[rows], study.judged(judge, metric)[rows], truth, *shared
    ):
        yield row("probability", statistic, estimate, who=who)
    for statistic, who, estimate in _against_annotators(study, judge, metric, p):
        yield row("probability", statistic, estimate, who=who)
    for place, point in enumerate(calibration_curve(p[rows], truth, study.level), start=1):
        confidence = Estimate(point.confidence, n=point.right.n)
        yield row("calibration", "confidence", confidence, who=f"bin {place}")
        yield row("calibration", "share_right", point.right, who=f"bin {place}")


def _against_truth(
    p: FloatArray, judged: Labels, truth: IntArray, clusters: Clusters, level: float
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against one label per item: the Brier score and its parts, log loss, calibration error."""
    q, shared = one_hot(truth, p.shape[1]), (clusters.codes, NO_ITEM, level)
    brier = clustered_mean(squared_distance(p, q), *shared, kind="brier")
    yield "brier", "probabilities", brier
    certain = np.where(np.isnan(p), np.nan, one_hot(judged, p.shape[1]))
    yield "brier", "label", clustered_mean(squared_distance(certain, q), *shared)
    yield "brier_skill", "probabilities", brier_skill(p, q, clusters, level)
    yield "log_loss", "probabilities", _clipped(clustered_mean(cross_entropy(p, q), *shared))
    errors = expected_calibration_error(p, q, clusters, level)
    yield "ece", "probabilities", errors.plug_in
    yield "ece_debiased", "probabilities", errors.debiased


def _against_annotators(
    study: Study, judge: JudgeVerdicts, metric: Metric, p: FloatArray
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against the labels of the others, whoever is left out: what is said, and what a colleague
    and the base rates would reach on the same items."""
    made = study.humans[metric.id].made
    judged = study.judged(judge, metric)
    n_uc = value_counts(made.values, len(metric.labels))
    there = n_uc.any(axis=1) & study.asked(judge, metric)[made.rows]
    n_uc, rows, clusters = n_uc[there], made.rows[there], study.humans[metric.id].clusters[there]
    same_items = np.where(np.isnan(p[rows, :1]), np.nan, 1.0)
    labels = same_items * one_hot(judged[rows], len(metric.labels))
    rates = same_items * base_rates(n_uc)

    def mean(scores: FloatArray) -> Estimate:
        return clustered_mean(scores, clusters.codes, NO_OTHERS, study.level)

    mine = judge_against_others(p[rows], n_uc)
    colleague = annotator_against_others(n_uc) * same_items[:, 0]
    scores: Mapping[Source, FloatArray] = {
        "probabilities": mine, "label": judge_against_others(labels, n_uc),
        "annotator": colleague, "base_rates": judge_against_others(rates, n_uc),
        "gain": colleague - mine,
    }  # fmt: skip
    for source, one in scores.items():
        yield "squared_distance", source, mean(one)


def _clipped(estimate: Estimate) -> Estimate:
    """The estimate, with a method that says how logarithms are kept finite."""
    if estimate.low is None:
        return estimate
    return replace(estimate, method=f"{estimate.method}; {_CLIPPED}")
