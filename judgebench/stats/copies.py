"""Whether labels were made by themselves, or derived from an annotator's or from the truth.

`labels` is (items,) and `ratings` (items, annotators), ints 0..k-1 with -1 where there is none.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.consensus import dawid_skene
from judgebench.stats.intervals import OfSamples, clustered_share
from judgebench.stats.peers import Bools, gap, signal_left

ALMOST_ALL, SURELY = 0.98, 0.90  # a copy is equal in so many items, and in more than so many
LEAST_SHARED, EACH_WAY = 0.15, 0.20  # of the deviations: beyond anybody else, above and below
ENOUGH = 200  # items of three labels, to know what annotators deviate from


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
    """The annotator whose own deviations `labels` repeat, if any, marked: (annotators,).

    The model of Dawid and Skene (1979) gives the probabilities of the true label from the
    annotators' labels. Labels that were made by themselves are predicted by these alone, however
    lenient or poor they are; a share c that was taken from annotator a adds c times a's deviation
    from what the probabilities let expect of a. The shares of all annotators are estimated at once
    by least squares, with whole clusters as units. That of a must exceed everybody else's by more
    than LEAST_SHARED, since on hard items all look alike, and show above and below the expected
    label, which a lean that both have hardly does. Labels that agree with the others as often as
    these do with each other are not suspected, and none are in few items.
    """
    found = np.zeros(ratings.shape[1], dtype=np.bool_)
    usable = (labels >= 0) & ((ratings >= 0).sum(axis=1) >= 3)
    if usable.sum() < ENOUGH:
        return found
    ratings, labels, of = ratings[usable], labels[usable], clusters[usable].occurring()
    rest = [value_counts(np.delete(ratings, a, axis=1), k) for a in range(len(found))]
    further = [gap(labels, among=False, votes=votes, clusters=of)[0] < 0 for votes in rest]
    if not any(further):
        return found
    truth = dawid_skene(ratings, k, smoothing=0.5).posterior
    own = np.stack([_deviation(one, truth) for one in ratings.T], axis=2)
    said, above = _deviation(labels, truth), np.einsum("nka,k->na", own, np.arange(k)) > 0
    share, V = _shares(own, said, truth, of)
    apart = np.concatenate([own * above[:, None], own * ~above[:, None]], axis=2)
    each_way = _shares(apart, said, truth, of)[0].reshape(2, -1).min(axis=0)
    a = int(share.argmax())
    noise = np.sqrt(np.maximum(V[a, a] + np.diag(V) - 2 * V[a], 0))
    beyond = share[a] - share + ndtri((1 - level) / 2 / len(share)) * noise
    clear = np.delete(beyond, a).min() > LEAST_SHARED and each_way[a] > EACH_WAY
    found[a] = clear and further[a]
    return found


def _deviation(labels: IntArray, truth: FloatArray) -> FloatArray:
    """Which label was given beyond what the probabilities of the true one, `truth` (items, k), let
    expect: (items, k); 0 where none was given."""
    given = labels >= 0
    return _without(truth * given[:, None], np.eye(truth.shape[1])[labels] * given[:, None])


def _without(truth: FloatArray, x: FloatArray) -> FloatArray:
    """The residuals of x (items, ...) after a linear regression on `truth`."""
    flat = x.reshape(len(x), -1)
    return np.asarray(flat - truth @ np.linalg.lstsq(truth, flat)[0]).reshape(x.shape)


def _shares(
    own: FloatArray, said: FloatArray, truth: FloatArray, of: Clusters
) -> tuple[FloatArray, FloatArray]:
    """The shares of several deviations `own` (items, k, several) in `said` (items, k), and the
    covariances of these estimates."""
    own = _without(truth, own)
    inverse = np.linalg.pinv(np.einsum("nka,nkb->ab", own, own), hermitian=True)
    share = inverse @ np.einsum("nka,nk->a", own, said)
    z = of.sums(*np.einsum("nka,nk->an", own, said - own @ share)) @ inverse
    return share, z.T @ z
