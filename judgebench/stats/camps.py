"""Whether annotators fall into camps: groups that agree within and differ across.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts

Camps = tuple[tuple[int, ...], ...]

MOST = 3
LEAST_DIFFERENCE = 0.05  # between agreement within and across; less makes no two bars


def camps(ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95) -> Camps:
    """The columns of two or three groups of two annotators or more; empty where none are shown.

    Where annotators merely differ in skill, the less skilled agree with each other no more often
    than with the skilled. So camps are declared only where *every* group agrees within more often
    than across (an intersection-union test). Groups are formed on one half of the clusters, by
    average linkage of the shares of unequal labels, and tested on the other half, one-sided, and
    corrected for the halves and partitions tried (Bonferroni).

    >>> strict, lenient = [0, 1, 1, 1] * 30, [0, 0, 1, 0] * 30
    >>> ratings = np.array([strict, lenient, strict, lenient]).T
    >>> camps(ratings, Clusters(np.arange(120), 120), k=2)
    ((0, 2), (1, 3))
    """
    who = np.flatnonzero((ratings >= 0).any(axis=0))
    if len(who) < 4:
        return ()
    first = np.random.default_rng(0).permutation(clusters.n)[clusters.codes] % 2 == 0
    tried = [
        (_p(ratings[~half], clusters[~half].occurring(), groups, k), groups)
        for half in (first, ~first)
        for groups in _groupings(ratings[half][:, who], who, k)
    ]
    shown = [groups for p, groups in tried if p * len(tried) <= 1 - level]
    if not shown:
        return ()
    # As many camps as were shown; who is in which is best seen in all items.
    count = max(map(len, shown))
    whole = [groups for groups in _groupings(ratings[:, who], who, k) if len(groups) == count]
    return (whole or shown)[0]


def _groupings(ratings: IntArray, who: NDArray[np.int64], k: int) -> Iterator[Camps]:
    """Partitions into groups, whose members are those of `who`; who is alone is in no group."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    share, _ = pair_agreement(ratings, k)
    if np.isnan(share).all():
        return
    share = np.where(np.isnan(share), np.nanmean(share), share)
    np.fill_diagonal(share, 1)
    tree = linkage(squareform(1 - share, checks=False), "average")
    seen: set[Camps] = set()
    for clusters in range(2, min(len(who), MOST + 2) + 1):
        of = fcluster(tree, clusters, "maxclust")
        members = (tuple(who[of == group].tolist()) for group in np.unique(of))
        groups = tuple(sorted(group for group in members if len(group) >= 2))
        if 2 <= len(groups) <= MOST and groups not in seen:
            seen.add(groups)
            yield groups


def pair_agreement(ratings: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The share of items that each two annotators labelled alike, of those that both labelled, and
    how many these are; both (annotators, annotators)."""
    given = (ratings >= 0).astype(np.float64)
    agreeing = np.zeros((ratings.shape[1],) * 2)
    for label in range(k):
        this = (ratings == label).astype(np.float64)
        agreeing += this.T @ this
    both = given.T @ given
    return ratio(agreeing, both), both


def _p(ratings: IntArray, clusters: Clusters, groups: Camps, k: int) -> float:
    """The largest p of the groups, each for agreeing within no more than across."""
    from scipy.special import ndtr

    votes = [value_counts(ratings[:, group], k) for group in groups]
    everybody = np.sum(votes, axis=0)
    worst = 0.0
    for own in votes:
        m, others = own.sum(axis=1), everybody - own
        x, n, y, o = clusters.sums(
            (own * (own - 1)).sum(axis=1), m * (m - 1),
            (own * others).sum(axis=1), m * others.sum(axis=1),
        ).T  # fmt: skip
        within, across = ratio(x.sum(), n.sum()), ratio(y.sum(), o.sum())
        if not within - across >= LEAST_DIFFERENCE:  # also where either is undefined
            return 1.0
        z = (x - within * n) / n.sum() - (y - across * o) / o.sum()
        # A few items without a disagreement claim no certainty.
        V = (z**2).sum() + 1 / (n > 0).sum() ** 2 + 1 / (o > 0).sum() ** 2
        worst = max(worst, float(ndtr((across - within) / np.sqrt(V))))
    return worst
