"""The Brier score and what it is made of: reliability, resolution and uncertainty.

`p` and `q` (items, k) are as in `probability_scores`. A cluster's counts are items, their squared
distances, the sums of q squared and of each q_j, then the cells of every label's bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray, ratio
from judgebench.stats.binned_gaps import (
    COLUMNS,
    bias_corrected,
    bins_for,
    bins_in_words,
    cells_by_cluster,
    debiased_gap,
    equal_mass_bins,
    gap_by_chance,
    total_gap,
)
from judgebench.stats.probability_scores import NO_ITEM, squared_distance
from judgebench.stats.random_groups import grouping_told, random_groups
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    NO_WIDTH,
    ClusterCounts,
    Resampling,
    Statistic,
    cluster_bootstrap,
)

ONE_TRUTH = "all items have the same truth, so there is no uncertainty to be skilled about"


@dataclass(frozen=True)
class BrierDecomposition:
    """`brier` = `reliability` - `resolution` + `uncertainty`, `skill` = 1 - `brier`/`uncertainty`.

    `uncertainty` is what the labels' base rates, said of every item, would score; `skill` is 0 for
    these and 1 at best.
    """

    brier: Estimate
    reliability: Estimate
    resolution: Estimate
    uncertainty: Estimate
    skill: Estimate


def brier_decomposition(
    p: FloatArray,
    q: FloatArray,
    clusters: IntArray,
    n_clusters: int,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> BrierDecomposition:
    """BS = REL - RES + UNC: Murphy (1973), "A new vector partition of the probability score".

    It is made of each label's probabilities apart, in bins b of equal mass, and summed over labels:
    REL = sum_j sum_b n_b / N (mean q - mean p)^2, UNC = sum_j q_j (1 - q_j) with q_j the label's
    share (for soft labels the variance of q_j), and RES is what makes the sum exact: Murphy's where
    the forecasts in a bin are equal, else the generalised resolution of Stephenson, Coelho and
    Jolliffe (2008), "Two extra components in the Brier score decomposition". Chance lifts REL and
    RES alike; their intervals are without that. `clusters` is (items,).
    """
    there = ~np.isnan(p + q).any(axis=1)
    p, q, n_missing = p[there], q[there], int((~there).sum())
    bins, read = bins_for(len(p)), _Reading(p.shape[1])
    groups, n_groups = random_groups(clusters, n_clusters, resampling.seed)
    sample = ClusterCounts(_counts(p, q, groups[there], bins, n_groups))

    def plain(formula: Formula, undefined: Callable[[FloatArray], str] = _undefined) -> Estimate:
        chosen = Statistic("brier", formula, undefined)
        found = cluster_bootstrap(sample, chosen, resampling, n=len(p), n_missing=n_missing)
        return grouping_told(found, n_clusters)

    def lifted(least: float, *formulas: Formula) -> Estimate:
        told = f"{bins_in_words(bins)} a label"
        return bias_corrected(
            sample, [Statistic("brier", formula, _undefined) for formula in formulas], resampling,
            told=told, n=len(p), n_missing=n_missing, n_clusters=n_clusters, least=least,
        ).plug_in  # fmt: skip

    by_chance = partial(read.reliability_by_chance, of_sample=sample.total)
    return BrierDecomposition(
        brier=plain(read.brier),
        reliability=lifted(0.0, read.reliability, read.debiased_reliability, by_chance),
        resolution=lifted(-np.inf, read.resolution, read.debiased_resolution),
        uncertainty=plain(read.uncertainty),
        skill=plain(read.skill, read.no_skill),
    )


Formula = Callable[[FloatArray], FloatArray]


def _counts(
    p: FloatArray, q: FloatArray, clusters: IntArray, bins: int, n_clusters: int
) -> FloatArray:
    """Counts (n_clusters, 3 + k + k bins 6), as the head of this module says."""
    columns = [np.ones(len(p)), squared_distance(p, q), np.square(q).sum(axis=1), *q.T]
    sums = [np.bincount(clusters, c, minlength=n_clusters)[:, None] for c in columns]
    cells = [
        cells_by_cluster(equal_mass_bins(said, bins), is_so - said, clusters, bins, n_clusters)
        for said, is_so in zip(p.T, q.T, strict=True)
    ]
    return np.concatenate([*sums, *(c.reshape(n_clusters, -1) for c in cells)], axis=1)


def _undefined(C: FloatArray) -> str:
    return "" if C.any() else NO_ITEM


@dataclass(frozen=True)
class _Reading:
    """The terms, of counts C (..., 3 + k + k bins 6)."""

    k: int

    def _cells(self, C: FloatArray) -> FloatArray:
        cells = C[..., 3 + self.k :]
        return cells.reshape(*C.shape[:-1], cells.shape[-1] // COLUMNS, COLUMNS)

    def brier(self, C: FloatArray) -> FloatArray:
        return ratio(C[..., 1], C[..., 0])

    def uncertainty(self, C: FloatArray) -> FloatArray:
        shares = ratio(C[..., 3 : 3 + self.k], C[..., :1])
        return np.asarray(ratio(C[..., 2], C[..., 0]) - np.square(shares).sum(axis=-1))

    def reliability(self, C: FloatArray) -> FloatArray:
        return ratio(total_gap(self._cells(C), 2), C[..., 0])

    def debiased_reliability(self, C: FloatArray) -> FloatArray:
        return ratio(debiased_gap(self._cells(C), 2), C[..., 0])

    def reliability_by_chance(self, C: FloatArray, of_sample: FloatArray) -> FloatArray:
        return ratio(gap_by_chance(self._cells(C), 2, self._cells(of_sample)), C[..., 0])

    def resolution(self, C: FloatArray) -> FloatArray:
        return self.reliability(C) + self.uncertainty(C) - self.brier(C)

    def debiased_resolution(self, C: FloatArray) -> FloatArray:
        return self.debiased_reliability(C) + self.uncertainty(C) - self.brier(C)

    def skill(self, C: FloatArray) -> FloatArray:
        uncertainty = self.uncertainty(C)
        return 1 - ratio(self.brier(C), np.where(uncertainty > NO_WIDTH, uncertainty, 0))

    def no_skill(self, C: FloatArray) -> str:
        return _undefined(C) or ("" if self.uncertainty(C) > NO_WIDTH else ONE_TRUTH)
