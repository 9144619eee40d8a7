"""Judges' label probabilities against the truth and against the distribution of human labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from judgebench.align.probability_result import (
    CalibrationCurve,
    ProbabilityScore,
    Source,
    Temperature,
)
from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, value_counts
from judgebench.stats.calibration_error import (
    brier_decomposition,
    calibration_curve,
    expected_calibration_error,
)
from judgebench.stats.probability_scores import (
    LEAST_PROBABILITY,
    Score,
    annotator_against_others,
    base_rates,
    cross_entropy,
    hold_back,
    jensen_shannon,
    judge_against_others,
    kl_divergence,
    mean_score,
    one_hot,
    squared_distance,
    total_variation,
)
from judgebench.stats.resample import Resampling
from judgebench.stats.temperature import temperature_scaling
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import Labels

NO_OTHERS = "no item with label probabilities has labels of two annotators"
_DISTANCES: Mapping[str, Score] = {
    "squared_distance": squared_distance,
    "total_variation": total_variation,
    "jensen_shannon": jensen_shannon,
}
# A certainty that is wrong has no finite value of these.
_LOGARITHMIC: Mapping[str, Score] = {
    "cross_entropy": cross_entropy,
    "kl_divergence": kl_divergence,
}
_CLIPPED = f"probabilities below {LEAST_PROBABILITY:.1e} count as that"


@dataclass(frozen=True)
class ProbabilityResults:
    """All that is said of one judge's probabilities on one metric."""

    scores: tuple[ProbabilityScore, ...]
    curve: CalibrationCurve
    temperature: Temperature


def probability_results(
    study: Study, judge: JudgeVerdicts, metric: Metric
) -> ProbabilityResults | None:
    """None where the judge gave no probability on this metric, or no human gave a label."""
    p = study.probabilities(judge, metric) if len(study.humans[metric.id].made.rows) else None
    if p is None:
        return None
    judged = study.judged(judge, metric)
    rows, truth, clusters = _truth(study, metric)
    shared = (clusters, study.resampling)
    named, said = (judge.name, metric.id), p[rows]
    found = [
        *_against_truth(said, judged[rows], truth, *shared),
        *_against_annotators(study, judged, metric, p),
    ]
    curve = calibration_curve(said, truth, study.resampling.level)
    return ProbabilityResults(
        tuple(ProbabilityScore(*named, what, source, score) for what, source, score in found),
        CalibrationCurve(*named, curve),
        Temperature(*named, temperature_scaling(said, truth, *shared)),
    )


def _truth(study: Study, metric: Metric) -> tuple[Labels, IntArray, Clusters]:
    """Row, truth and cluster of each item that any human rated (`each`: of each human label)."""
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    if study.config.rule != "each":
        known = humans.truth[rows] >= 0
        return rows[known], humans.truth[rows][known], humans.clusters[known]
    votes = humans.made.values
    rated, _ = np.nonzero(votes >= 0)
    return rows[rated], votes[votes >= 0], humans.clusters[rated]


def _against_truth(
    p: FloatArray, judged: Labels, truth: IntArray, clusters: Clusters, r: Resampling
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against one label an item: the Brier score and its parts, log loss, calibration error."""
    shared, k = (clusters, r), p.shape[1]
    q = one_hot(truth, k)
    parts = brier_decomposition(p, q, *shared)
    yield "brier", "probabilities", parts.brier
    certain = np.where(np.isnan(p), np.nan, one_hot(judged, k))
    yield "brier", "label", mean_score(squared_distance(certain, q), *shared)
    yield "brier_skill", "probabilities", parts.skill
    yield "reliability", "probabilities", parts.reliability
    yield "resolution", "probabilities", parts.resolution
    yield "uncertainty", "base_rates", parts.uncertainty
    yield "log_loss", "probabilities", _clipped(mean_score(cross_entropy(p, q), *shared))
    errors = expected_calibration_error(p, q, *shared)
    yield "ece", "probabilities", errors.plug_in
    yield "ece_debiased", "probabilities", errors.debiased


def _against_annotators(
    study: Study, judged: Labels, metric: Metric, p: FloatArray
) -> Iterator[tuple[str, Source, Estimate]]:
    """Against the labels of the others, whoever is left out: what is said, and what a colleague
    and the base rates would reach on the same items."""
    made = study.humans[metric.id].made
    n_uc = value_counts(made.values, len(metric.labels))
    there = n_uc.any(axis=1)
    n_uc, rows, clusters = n_uc[there], made.rows[there], study.humans[metric.id].clusters[there]
    said, held = p[rows], hold_back(n_uc)
    same_items = np.where(np.isnan(said[:, :1]), np.nan, 1.0)
    labels = same_items * one_hot(judged[rows], len(metric.labels))
    rates = same_items * base_rates(n_uc)

    def mean(scores: FloatArray) -> Estimate:
        found = mean_score(scores, clusters, study.resampling)
        return found if found.n else replace(found, reason=NO_OTHERS)

    for name, score in _DISTANCES.items():
        mine = judge_against_others(score, said, held)
        colleague = annotator_against_others(score, held) * same_items[:, 0]
        yield name, "probabilities", mean(mine)
        yield name, "label", mean(judge_against_others(score, labels, held))
        yield name, "annotator", mean(colleague)
        yield name, "base_rates", mean(judge_against_others(score, rates, held))
        yield name, "gain", mean(colleague - mine)
    for name, score in _LOGARITHMIC.items():
        yield name, "probabilities", _clipped(mean(judge_against_others(score, said, held)))
        yield name, "base_rates", mean(judge_against_others(score, rates, held))


def _clipped(estimate: Estimate) -> Estimate:
    """The estimate, with a method that says how logarithms are kept finite."""
    if estimate.low is None:
        return estimate
    return replace(estimate, method=f"{estimate.method}; {_CLIPPED}")
