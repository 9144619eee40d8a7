"""Whether labels were made by themselves, or derived from an annotator's or from the truth.

`labels` is (items,) and `ratings` (items, annotators), ints 0..k-1 with -1 where there is none.
"""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import Clusters, IntArray, ratio, value_counts
from judgebench.stats.intervals import OfSamples, clustered_share, mean_difference
from judgebench.stats.peers import Bools, signal_left

ALMOST_ALL, SURELY = 0.98, 0.90  # a copy is equal in so many items, and in more than so many
LEAST_LEANING = 0.05


def same_as(labels: IntArray, ratings: IntArray, clusters: Clusters, level: float = 0.95) -> Bools:
    """Whether `labels` are an annotator's own on almost all items where another annotator gave
    another label than that annotator: (annotators,).

    >>> ratings = np.array([[0, 1], [1, 0], [1, 1]] * 30)
    >>> same_as(ratings[:, 0], ratings, Clusters(np.arange(90), 90)).tolist()
    [True, False]
    """
    found = np.zeros(ratings.shape[1], dtype=np.bool_)
    for a, own in enumerate(ratings.T):
        others = np.delete(ratings, a, axis=1)
        telling = ((others >= 0) & (others != own[:, None])).any(axis=1)
        found[a] = _almost_all(_equal(labels, own, telling, clusters, level))
    return found


def same_as_truth(
    labels: IntArray, truth: IntArray, ratings: IntArray, clusters: Clusters, k: int
) -> bool:
    """Whether `labels` are the truth on almost all items on which annotators differ, and more
    often than a judge that is always right could be.

    There the truth is right about as often as one annotator is anywhere, exactly so for three
    annotators and two labels; how often that is follows from how often annotators agree, as in
    `signal_left`.
    """
    votes = value_counts(ratings, k)
    m = votes.sum(axis=1)
    agreement = ratio((votes * (votes - 1)).sum(), (m * (m - 1)).sum())
    right = (1 + (k - 1) * float(signal_left(agreement, k))) / k
    telling = ((ratings >= 0) & (ratings != truth[:, None])).any(axis=1)
    share = _equal(labels, truth, telling, clusters, 0.95)
    return _almost_all(share) and bool(share.low[0] > right)


def _equal(
    labels: IntArray, own: IntArray, telling: Bools, clusters: Clusters, level: float
) -> OfSamples:
    telling = telling & (own >= 0) & (labels >= 0)
    n, x = clusters.sums(telling, telling & (labels == own)).T
    return clustered_share(x, n, np.ones((1, clusters.n)), level)


def _almost_all(share: OfSamples) -> bool:
    return bool(share.value[0] >= ALMOST_ALL and share.low[0] >= SURELY)


def leans_on(
    labels: IntArray, ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95
) -> Bools:
    """Whether `labels` are partly an annotator's own: (annotators,). Items need three labels.

    With that annotator they agree clearly more often than with the others, beside what the
    annotators' colleagues do, and with the others less often than these do. Labels that were made
    independently are nearer to all annotators, or further from all.
    """
    people = ratings.shape[1]
    found = np.zeros(people, dtype=np.bool_)
    if people < 3:
        return found
    votes, given = value_counts(ratings, k), ratings >= 0
    m = given.sum(axis=1, keepdims=True)
    usable = given & (m >= 3) & (labels >= 0)[:, None]
    colleagues = np.take_along_axis(votes, np.maximum(ratings, 0), axis=1) - 1
    nearer = np.where(usable, (ratings == labels[:, None]) - ratio(colleagues, m - 1), 0.0)
    for a in range(people):
        n = usable.sum(axis=1) - usable[:, a]
        both = usable[:, a] & (n > 0)
        if both.sum() < 2:
            continue
        own = nearer[both, a]
        others = (nearer[both].sum(axis=1) - own) / n[both]
        of = clusters[both].occurring()
        lean, size = of.sums((own - others) / 2, np.ones(len(own))).T[..., None]
        sample, corrected = np.ones((1, of.n)), 1 - (1 - level) / people
        towards = mean_difference(lean, size, sample, corrected, balanced=False)
        clear = towards.low[0] > 0 and 2 * towards.value[0] >= LEAST_LEANING
        found[a] = clear and others.mean() < 0
    return found
