"""Items that a judge labelled, of which humans labelled a part: counts of one label by cluster.

Counts of one label are C (..., 3, 2). Rows are the truth: another label, this label, none known.
Columns are the judge's label: another, this one. A rate is a smooth function of their sums, so
its variance is that of a sum over clusters of each item's influence on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray, check_codes
from judgebench.stats.proportions import EXACT, clopper_pearson

OTHER, THIS, UNLABELLED = range(3)  # the rows; the first two are the columns, too
TRUTH_IS_THIS = np.array([[0, 0], [1, 1], [0, 0]], dtype=np.bool_)
JUDGED_THIS = np.array([[0, 1], [0, 1], [0, 1]], dtype=np.bool_)
LABELLED = np.array([[1, 1], [1, 1], [0, 0]], dtype=np.bool_)
JUDGED = np.ones((3, 2), dtype=np.bool_)
WILSON = "Wilson interval with the effective sample size"
ONE_CLUSTER = "the answers are of one cluster only, and a variance needs several"


@dataclass(frozen=True)
class JudgedCounts:
    """Kinds of clusters (U, k + 1, k), and how many there are (U,).

    Counts of the judged items of a cluster: rows the truth, the last for none; columns the judge's
    label. Empty clusters are left out.
    """

    kinds: FloatArray
    how_many: IntArray

    def of_label(self, label: int) -> LabelCounts:
        """The counts of one label."""
        C, k = self.kinds, self.kinds.shape[-1]
        rows = np.stack([np.delete(C, [label, k], 1).sum(axis=1), C[:, label], C[:, k]], axis=1)
        this = rows[..., label]
        return LabelCounts(np.stack([rows.sum(axis=-1) - this, this], axis=-1), self.how_many)


def judged_counts(
    truth: IntArray, judged: IntArray, clusters: IntArray, k: int, n_clusters: int
) -> JudgedCounts:
    """Count the judged items by cluster. All arguments are (items,); -1 is no label.

    Raises ValueError where shapes differ or a code is out of range. A million clusters would fill
    hundreds of megabytes, so only one of each kind is counted: kinds are told apart by a random
    weighted sum of their items.
    """
    if not truth.shape == judged.shape == clusters.shape:
        raise ValueError("truth, judged and clusters must have the same shape")
    check_codes(truth, k, "truth")
    check_codes(judged, k, "judged labels")
    check_codes(clusters, n_clusters, "clusters", least=0)
    given = judged >= 0
    cluster, row = clusters[given], np.where(truth[given] < 0, k, truth[given])
    cell, size = row.astype(np.int64) * k + judged[given], (k + 1) * k
    keys, first, how_many = np.unique(
        np.bincount(cluster, _weights(size)[cell], n_clusters),
        return_index=True,
        return_counts=True,
    )
    first, how_many = first[keys > 0], how_many[keys > 0]  # an empty cluster's key is 0
    kinds = _counts_of(first, cluster, cell, size, n_clusters)
    if not np.array_equal(how_many @ kinds, np.bincount(cell, minlength=size)):
        first = np.unique(cluster)  # unlike clusters shared a key
        kinds, how_many = _counts_of(first, cluster, cell, size, n_clusters), np.ones_like(first)
    return JudgedCounts(kinds.reshape(-1, k + 1, k), how_many)


def _weights(size: int) -> FloatArray:
    return np.random.default_rng(0).random(size) + 1


def _counts_of(
    chosen: IntArray, cluster: IntArray, cell: IntArray, size: int, n_clusters: int
) -> FloatArray:
    """The counts (chosen, size) of the items of the chosen clusters."""
    place = np.full(n_clusters, -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    place = place[cluster]
    kept = place >= 0
    counts = np.bincount(place[kept] * size + cell[kept], minlength=len(chosen) * size)
    return counts.reshape(len(chosen), size).astype(np.float64)


@dataclass(frozen=True)
class LabelCounts:
    """Kinds of clusters (U, 3, 2) by the counts of one label, and how many there are (U,)."""

    kinds: FloatArray
    how_many: IntArray

    @property
    def total(self) -> FloatArray:
        """The sums over all clusters (3, 2)."""
        return np.tensordot(self.how_many, self.kinds, axes=1)

    def clusters(self, cells: NDArray[np.bool_]) -> int:
        """How many clusters have an item in these cells (3, 2)."""
        return int(self.how_many[self.kinds[:, cells].any(axis=1)].sum())

    def cluster_variance(self, influence: FloatArray) -> float:
        """V = sum over clusters g of (sum over items i of g of influence_i)^2, for (3, 2).

        With one item a cluster this is the variance of independent items.
        """
        of_cluster = (self.kinds * influence).sum(axis=(1, 2))
        return float(self.how_many @ of_cluster**2)

    def variance(self, influence: FloatArray) -> float:
        """The cluster variance, but no less than that of independent items: a few clusters may
        be alike by chance."""
        independent = float((self.total * influence**2).sum())
        return max(self.cluster_variance(influence), independent)


def share_influence(
    counts: LabelCounts, yes: NDArray[np.bool_], among: NDArray[np.bool_]
) -> tuple[float, FloatArray]:
    """The share p of `yes` among the items of the cells `among`, (3, 2) each, of which there are n,
    and each item's influence on it, (y - p) / n. There must be such an item."""
    n = counts.total[among].sum()
    p = float(counts.total[yes & among].sum() / n)
    return p, among * (yes - p) / n


def share(
    counts: LabelCounts, yes: NDArray[np.bool_], among: NDArray[np.bool_], level: float = 0.95
) -> Estimate:
    """The share of `yes` among the items of the cells `among`, with its interval.

    That of `rate_interval`; where all or none are `yes`, which shows no variance, the exact one
    over the clusters that inform it. Undefined without an item.
    """
    n = round(counts.total[among].sum())
    if n == 0:
        return Estimate(None, reason="there is no item to count", level=level)
    p, influence = share_influence(counts, yes, among)
    clusters = counts.clusters(among)
    if p in (0, 1):
        exact = clopper_pearson(round(p) * clusters, clusters, level)
        all_same = f"{EXACT} over {clusters} clusters, since all labels are alike"
        return replace(exact, method=all_same, n=n)
    found = rate_interval(p, counts.variance(influence), p, clusters, level)
    return replace(found, n=n)


def rate_interval(value: float, V: float, p: float, clusters: int, level: float) -> Estimate:
    """`value`, within 0..1, with the Wilson interval of n* = p (1 - p) / V independent items,

        (value + t^2 / 2n* +- t sqrt(value (1 - value) / n* + t^2 / 4n*^2)) / (1 + t^2 / n*).

    Wilson (1927) with Kish's effective sample size, as in Dean and Pagano (2015), "Evaluating
    confidence interval methods for binomial proportions in clustered surveys". `p` is the share
    among the labelled items and V > 0 the variance of `value`; t has `clusters` - 1 degrees of
    freedom. No interval with one cluster.
    """
    if clusters < 2:
        return Estimate(value, reason=ONE_CLUSTER, level=level)
    n_star = p * (1 - p) / V
    t = float(stdtrit(clusters - 1, (1 + level) / 2))
    centre = value + t**2 / (2 * n_star)
    half = t * np.sqrt(value * (1 - value) / n_star + t**2 / (4 * n_star**2))
    low, high = (float((centre + sign * half) / (1 + t**2 / n_star)) for sign in (-1, 1))
    method = f"{WILSON}, {clusters} clusters"
    return Estimate(value, max(0.0, low), min(1.0, high), method, level=level)
