"""Two raters on the same items, each right or wrong: which of them is right more often.

Only discordant items, on which exactly one of the two is right, tell them apart. Counts are
(..., 3) a cluster, in the order of `discordance_by_cluster`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln

from judgebench.stats.arrays import FloatArray, IntArray, check_codes, ratio
from judgebench.stats.permutation import Alternative, permutation_test
from judgebench.stats.resample import ClusterCounts, Statistic

NO_PAIR = "no item has a truth and a label of both"
_FIRST, _SECOND, _ALIKE = range(3)  # the columns of `discordance_by_cluster`


def discordance_by_cluster(
    first: IntArray, second: IntArray, clusters: IntArray, n_clusters: int
) -> NDArray[np.int64]:
    """Counts (n_clusters, 3): pairs that only the first has right, only the second, both or none.

    `first`, `second` and `clusters` are (items,): 1 right, 0 wrong, -1 unknown, which drops the
    pair. Raises ValueError where shapes differ or a code is out of range.
    """
    if not first.shape == second.shape == clusters.shape:
        raise ValueError("first, second and clusters must have the same shape")
    check_codes(first, 2, "first")
    check_codes(second, 2, "second")
    check_codes(clusters, n_clusters, "clusters", least=0)
    column = np.where(first > second, _FIRST, np.where(second > first, _SECOND, _ALIKE))
    both = (first >= 0) & (second >= 0)
    cell = clusters.astype(np.int64) * 3 + column
    return np.bincount(cell[both], minlength=n_clusters * 3).reshape(n_clusters, 3)


def _difference(C: FloatArray) -> FloatArray:
    return ratio(C[..., _FIRST] - C[..., _SECOND], C.sum(axis=-1))


# The accuracy of the first minus that of the second, on the same items: (b - c) / n.
ACCURACY_DIFFERENCE = Statistic(
    "accuracy_difference", _difference, lambda C: "" if C.any() else NO_PAIR
)


def discordant(counts: FloatArray) -> tuple[int, int]:
    """b and c of summed counts (3,): items that only the first, and only the second, has right."""
    return round(float(counts[_FIRST])), round(float(counts[_SECOND]))


def mcnemar_exact(b: int, c: int) -> float | None:
    """Two-sided exact p of b against c discordant items; None where there is none.

    By chance b is Binomial(n, 1/2) with n = b + c, items taken as independent: p is twice its
    smaller tail, at most 1. McNemar (1947); Fagerland, Lydersen and Laake (2013), "The McNemar
    test for binary matched-pairs data: mid-p and asymptotic are better than exact conditional",
    under "The McNemar exact conditional test". Raises ValueError for a negative count.
    """
    n = _trials(b, c)
    return None if n == 0 else min(1.0, 2 * float(bdtr(min(b, c), n, 0.5)))


def mcnemar_mid_p(b: int, c: int) -> float | None:
    """Two-sided mid-p of b against c discordant items; None where there is none.

    p = 2 P(X <= min(b, c)) - P(X = min(b, c)), with X from Binomial(b + c, 1/2): the exact test
    is too cautious, this one hardly ever too bold. Items are taken as independent. Fagerland
    et al. (2013), under "The McNemar mid-p test". Raises ValueError for a negative count.
    """
    n, x = _trials(b, c), min(b, c)
    if n == 0:
        return None
    log_point = gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1) - n * np.log(2)
    return min(1.0, float(2 * bdtr(x, n, 0.5) - np.exp(log_point)))


def mcnemar_clustered(
    counts: ClusterCounts,
    alternative: Alternative = "two-sided",
    permutations: int = 10_000,
    seed: int = 0,
) -> float | None:
    """McNemar's test with whole clusters as units, of the counts of `discordance_by_cluster`.

    The sign of each cluster's b - c is flipped; see `permutation_test`. With one item a cluster it
    is the exact test. None where no cluster has a difference.
    """
    b_minus_c = counts.kinds[:, _FIRST] - counts.kinds[:, _SECOND]
    return permutation_test(b_minus_c, counts.how_many, alternative, permutations, seed)


def _trials(b: int, c: int) -> int:
    if b < 0 or c < 0:
        raise ValueError(f"counts of discordant items must not be negative; found {b} and {c}")
    return b + c
