"""Do probabilities mean what they say? Reliability diagram and expected calibration error.

`p` and `q` (items, k) are as in `probability_scores`. Confidence is the probability of the
likeliest label, the first of equally likely ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray, ratio
from judgebench.stats.binned_gaps import (
    BiasCorrected,
    bias_corrected,
    bins_for,
    bins_in_words,
    cells_by_cluster,
    debiased_gap,
    equal_mass_bins,
    gap_by_chance,
    total_gap,
)
from judgebench.stats.probability_scores import NO_ITEM, one_hot
from judgebench.stats.proportions import clopper_pearson
from judgebench.stats.random_groups import random_groups
from judgebench.stats.resample import DEFAULT_RESAMPLING, ClusterCounts, Resampling, Statistic


@dataclass(frozen=True)
class CalibrationBin:
    """Items of about the same confidence: its mean, and the share of them that were right."""

    confidence: float
    right: Estimate


def calibration_curve(
    p: FloatArray, truth: IntArray, level: float = 0.95
) -> tuple[CalibrationBin, ...]:
    """The points of a reliability diagram in bins of equal mass, the least confident first.

    `truth` (items,) holds labels; items without probabilities or truth are left out, and without
    any item there is no point. DeGroot and Fienberg (1983), "The comparison and evaluation of
    forecasters"; the intervals are exact for independent items.
    """
    confidence, right = _of_likeliest(p, one_hot(truth, p.shape[1]))
    code = equal_mass_bins(confidence, bins_for(len(confidence)))
    points = []
    for b in np.unique(code).tolist():
        share = clopper_pearson(int(right[code == b].sum()), int((code == b).sum()), level)
        points.append(CalibrationBin(float(confidence[code == b].mean()), share))
    return tuple(points)


def expected_calibration_error(
    p: FloatArray,
    q: FloatArray,
    clusters: IntArray,
    n_clusters: int,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> BiasCorrected:
    """ECE = sum_b n_b / N |share right_b - mean confidence_b| in bins of equal mass.

    Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning". Chance alone lifts it, the more so the fewer items a bin holds (Roelofs et al. 2022,
    "Mitigating bias in calibration error estimation", section 3): `debiased` takes that off, and
    the interval is its. `clusters` is (items,).
    """
    confidence, right = _of_likeliest(p, q)
    n, bins = len(confidence), bins_for(len(confidence))
    groups, n_groups = random_groups(clusters, n_clusters, resampling.seed)
    groups = groups[~np.isnan(p + q).any(axis=1)]
    code = equal_mass_bins(confidence, bins)
    sample = ClusterCounts(cells_by_cluster(code, right - confidence, groups, bins, n_groups))
    statistics = (
        _mean("ece", lambda cells: total_gap(cells, 1)),
        _mean("ece_debiased", lambda cells: debiased_gap(cells, 1)),
        _mean("ece_by_chance", lambda cells: gap_by_chance(cells, 1, sample.total)),
    )
    return bias_corrected(
        sample, statistics, resampling,
        told=bins_in_words(bins), n=n, n_missing=len(p) - n, n_clusters=n_clusters,
    )  # fmt: skip


def _mean(name: str, total: Callable[[FloatArray], FloatArray]) -> Statistic:
    def formula(cells: FloatArray) -> FloatArray:
        return ratio(total(cells), cells[..., 0].sum(axis=-1))

    return Statistic(name, formula, lambda cells: "" if cells.any() else NO_ITEM)


def _of_likeliest(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The likeliest label's probability and its share of the truth, of the rows with both."""
    there = ~np.isnan(p + q).any(axis=1)
    rows, top = np.flatnonzero(there), p[there].argmax(axis=1)
    return p[rows, top], q[rows, top]
