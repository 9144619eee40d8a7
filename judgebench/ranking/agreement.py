"""How far two rankers set the same systems in the same order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.ranking.matched import Matched, match
from judgebench.ranking.result import RankAgreement, RankerScores
from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.means import clustered_mean, means, sums_by_cluster
from judgebench.stats.ranks import places, spearman, tau_b, top_match
from judgebench.stats.resample import Resampling, Statistic, cluster_bootstrap

FEW_SYSTEMS = "fewer than two systems are ranked by both"
NO_INSTANCE = "no instance is ranked by both"
ALL_LEVEL = "in every instance one ranker sets all systems level, so no order can be compared"
LEVEL_AVERAGES = "one ranker gives all systems the same average rank, so no order can be compared"


def agree(
    a: RankerScores, b: RankerScores, systems: Sequence[str], resampling: Resampling
) -> RankAgreement:
    """The agreement of `a` and `b` on those of `systems` and those instances that both rank.

    Kendall's tau_b and Spearman's rho are taken within each instance and averaged; an instance
    where one ranker sets all systems level has none and counts as missing. `top_1` is the expected
    match where ties for the best are broken at random (`stats.within_item_ranks.top_match`).
    Intervals resample the clusters of `a`. Undefined, with a reason, with fewer than two systems
    or without an instance.
    """
    both = match((a, b), systems)
    found = _estimates(both, resampling)
    return RankAgreement(a.task, a.ranker, b.ranker, both.systems, *found)


def _estimates(both: Matched, resampling: Resampling) -> list[Estimate]:
    """tau_b, Spearman's rho, tau_b of the averages, and top-1."""
    x, y = both.values
    n, k = x.shape
    if k < 2 or n == 0:
        reason = FEW_SYSTEMS if k < 2 else NO_INSTANCE
        empty = Estimate(None, n_missing=both.n_missing, reason=reason, level=resampling.level)
        return [empty] * 4

    def mean(per_instance: FloatArray, *, is_proportion: bool = False) -> Estimate:
        return clustered_mean(
            per_instance, both.clusters, ALL_LEVEL, resampling,
            n_missing=both.n_missing, is_proportion=is_proportion,
        )  # fmt: skip

    return [
        mean(tau_b(x, y)),
        mean(spearman(x, y)),
        _of_averages(both, resampling),
        mean(top_match(x, y), is_proportion=True),
    ]


def _of_averages(both: Matched, resampling: Resampling) -> Estimate:
    """tau_b of the two rankers' average ranks, which are averaged anew in every resample."""
    x, y = both.values
    n, k = x.shape
    codes = np.unique(both.clusters, return_inverse=True)[1]
    ranks = np.hstack([places(x), places(y)])
    sums = sums_by_cluster(ranks, Clusters(codes, int(codes.max()) + 1))

    def formula(sums: FloatArray) -> FloatArray:
        average = means(sums)
        return tau_b(average[..., :k], average[..., k:])

    def undefined(sums: FloatArray) -> str:
        return LEVEL_AVERAGES if np.isnan(formula(sums)) else ""

    statistic = Statistic("tau_b_of_averages", formula, undefined)
    return cluster_bootstrap(sums, statistic, resampling, n=n, n_missing=both.n_missing)
