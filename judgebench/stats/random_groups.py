"""Many clusters as a few random groups of clusters, where a bootstrap would take too long.

Scores that are no counts make every cluster unlike every other, so that nothing is saved by
grouping them into kinds: a resample of a million clusters is a draw of a million numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import IntArray, check_codes

MOST_GROUPS = 2000


def random_groups(
    clusters: IntArray, n_clusters: int, seed: int = 0
) -> tuple[NDArray[np.int64], int]:
    """Codes of at most MOST_GROUPS groups, and how many there are: (items,) -> (items,).

    Up to MOST_GROUPS clusters stay as they are. More are dealt at random into groups of nearly
    equal numbers. Groups of independent clusters are as independent as these, so they may be
    resampled in their place; the estimated standard error then varies by about
    1 / sqrt(2 MOST_GROUPS), 1.6 %. Wolter (2007), "Introduction to Variance Estimation", chapter 2.
    Raises ValueError where a code is out of range.
    """
    check_codes(clusters, n_clusters, "clusters", least=0)
    if n_clusters <= MOST_GROUPS:
        return clusters.astype(np.int64), n_clusters
    group_of = np.random.default_rng(seed).permutation(n_clusters) % MOST_GROUPS
    return group_of[clusters].astype(np.int64), MOST_GROUPS


def grouping_told(estimate: Estimate, n_clusters: int) -> Estimate:
    """The estimate, with a method that says so where its clusters are random groups."""
    if n_clusters <= MOST_GROUPS or estimate.low is None:
        return estimate
    return replace(
        estimate, method=f"{estimate.method}; these are random groups of {n_clusters:,} clusters"
    )
