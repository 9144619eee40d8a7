"""Gaps between what happened and what was said, in bins of equally many items.

Bins are of equal mass as far as ties allow, as bins of equal width are mostly nearly empty (Nguyen
and O'Connor 2015, "Posterior calibration and exploratory analysis for natural language processing
models", section 4). They are made once, and resamples keep them. Cells are counts (..., bins, 6):
n_b, the sum S_b of the gaps and, of each cluster's n and S, S^2, S n, n^2 and 1 where it has any.
d_b = S_b / n_b is the mean gap of bin b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.random_groups import grouping_told
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    Statistic,
    bootstrap_replicates,
    cluster_bootstrap,
)

MOST_BINS = 10
LEAST_IN_BIN = 20  # with fewer items a bin's gap is mostly chance
COLUMNS = 6
Power = Literal[1, 2]


def bins_for(n: int) -> int:
    """How many bins n items are put into: MOST_BINS, fewer where they would hold too few."""
    return max(1, min(MOST_BINS, n // LEAST_IN_BIN))


def bins_in_words(bins: int) -> str:
    """`10 bins of equal mass`."""
    return f"{bins} {'bin' if bins == 1 else 'bins'} of equal mass"


def equal_mass_bins(x: FloatArray, bins: int) -> NDArray[np.int64]:
    """The bin of each x (items,), 0..bins-1 from low to high; equal values share one.

    A bin is empty where one value fills more than one bin's share.
    """
    if not len(x):
        return np.zeros(0, dtype=np.int64)
    # The last places of all bins but the highest; what is not above their values is in these bins.
    last = -(-np.arange(1, bins) * len(x) // bins) - 1
    edges = np.partition(x, last)[last]
    return np.asarray(np.searchsorted(edges, x, side="left"))


def cells_by_cluster(
    code: IntArray, gap: FloatArray, clusters: IntArray, bins: int, n_clusters: int
) -> FloatArray:
    """Cells (n_clusters, bins, 6) of gaps (items,) whose bins and clusters are given."""
    cell, size = clusters * bins + code, n_clusters * bins
    n = np.bincount(cell, minlength=size).astype(np.float64)
    S = np.bincount(cell, gap, minlength=size)
    return np.stack([n, S, S * S, S * n, n * n, n > 0], axis=-1).reshape(n_clusters, bins, COLUMNS)


def total_gap(cells: FloatArray, power: Power) -> FloatArray:
    """sum_b n_b |d_b|^power."""
    return np.asarray((cells[..., 0] * np.abs(_mean_gap(cells)) ** power).sum(axis=-1))


def debiased_gap(cells: FloatArray, power: Power) -> FloatArray:
    """sum_b n_b (2 |d_b|^power - E|x_b|^power), x_b ~ N(d_b, s_b^2): `total_gap` without what
    chance adds to it.

    Kumar, Liang and Ma (2019), "Verified uncertainty calibration", section 4 and appendix; the
    mean of |x_b| is that of the folded normal distribution. s_b^2 is the variance of a ratio with
    whole clusters as units (Cochran 1977, "Sampling Techniques", section 6.4).
    """
    n, _, SS, Sn, nn, clusters = np.moveaxis(cells, -1, 0)
    d = _mean_gap(cells)
    scatter = np.maximum(SS - 2 * d * Sn + d**2 * nn, 0) * clusters / np.maximum(clusters - 1, 1)
    s = np.sqrt(scatter) / np.maximum(n, 1)
    if power == 2:
        return np.asarray((n * (d**2 - s**2)).sum(axis=-1))
    z = np.minimum(np.abs(d) / np.maximum(s, 1e-300), 40)  # nothing is folded so far from 0
    folded = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + np.abs(d) * (1 - 2 * ndtr(-z))
    return np.asarray((n * (2 * np.abs(d) - folded)).sum(axis=-1))


def gap_by_chance(cells: FloatArray, power: Power, of_sample: FloatArray) -> FloatArray:
    """sum_b n_b |d_b - the d_b of the sample's cells (bins, 6)|^power: what chance alone shows."""
    noise = cells[..., 1] - _mean_gap(of_sample) * cells[..., 0]
    return total_gap(np.stack([cells[..., 0], noise], axis=-1), power)


def _mean_gap(cells: FloatArray) -> FloatArray:
    return np.asarray(cells[..., 1] / np.maximum(cells[..., 0], 1))


@dataclass(frozen=True)
class BiasCorrected:
    """A statistic that chance lifts, as it is and without that, with one interval for both."""

    plug_in: Estimate
    debiased: Estimate


def bias_corrected(
    sample: ClusterCounts,
    statistics: Sequence[Statistic],
    resampling: Resampling,
    *,
    told: str,
    n: int,
    n_missing: int,
    n_clusters: int,
    least: float = 0.0,
) -> BiasCorrected:
    """A statistic that is never below `least`, and its interval without what chance adds.

    `statistics` are the statistic itself, its debiased form and, where that is known, what chance
    alone shows in a resample. A resample holds chance twice, so the percentiles of the resampled
    debiased form are moved until their mean is its value. The low limit is `least` where chance
    alone shows as much as there is (consistency resampling: Bröcker and Smith 2007, "Increasing
    the reliability of reliability diagrams"). The interval is widened where need be to hold both
    values. `told` goes before its method; `n_clusters` are those that the sample stands for.
    """
    plug_in, debiased, *by_chance = statistics
    usual = cluster_bootstrap(sample, plug_in, resampling, n=n, n_missing=n_missing)
    if usual.value is None:
        return BiasCorrected(usual, usual)
    value = float(debiased.formula(sample.total))
    if usual.low is None:
        return BiasCorrected(usual, replace(usual, value=max(least, value)))
    tail = (1 - resampling.level) / 2
    replicates = bootstrap_replicates(sample, debiased, resampling)
    low, high = value - replicates.mean() + np.quantile(replicates, [tail, 1 - tail])
    for chance in by_chance:
        noise = bootstrap_replicates(sample, chance, resampling)
        low = least if usual.value <= np.quantile(noise, 1 - tail) else low
    value = max(least, value)
    both = replace(
        grouping_told(usual, n_clusters),
        low=max(least, float(min(low, value, usual.value))),
        high=float(max(high, value, usual.value)),
    )
    both = replace(both, method=f"{told}; bias-corrected {both.method}")
    return BiasCorrected(both, replace(both, value=value))
