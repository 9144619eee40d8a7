"""The same items rated twice: which of two raters is right more often, and how far labels moved.

Two raters, each right or wrong: counts (..., 3) a cluster, in the order of
`discordance_by_cluster`; only discordant items, on which exactly one is right, distinguish them.
Yes-or-no outcomes are counts C (..., 2, 2), C[i, j] the number of items with outcome i before and
j after. Labels on a scale are counts (..., 5) a cluster, in the order of `moves_by_cluster`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import bdtr, gammaln

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, check_codes, ratio
from judgebench.stats.confusion import mean_severity_error, overestimated
from judgebench.stats.p_values import Alternative, permutation_test
from judgebench.stats.resample import ClusterCounts, Statistic, where_empty

NO_SHARED_TRUTH = "no item has a truth and a label of both"
_FIRST, _SECOND, _ALIKE = range(3)  # the columns of `discordance_by_cluster`


def discordance_by_cluster(first: IntArray, second: IntArray, clusters: Clusters) -> FloatArray:
    """Counts (clusters, 3): pairs that only the first has right, only the second, both or none.

    `first` and `second` are (items,): 1 right, 0 wrong, -1 unknown, which drops the
    pair. Raises ValueError where shapes differ or a code is out of range.
    """
    if not first.shape == second.shape == clusters.codes.shape:
        raise ValueError("first, second and clusters must have the same shape")
    check_codes(first, 2, "first")
    check_codes(second, 2, "second")
    column = np.where(first > second, _FIRST, np.where(second > first, _SECOND, _ALIKE))
    both = (first >= 0) & (second >= 0)
    return clusters[both].table(column[both], 3)


# The accuracy of the first minus that of the second, on the same items: (b - c) / n.
ACCURACY_DIFFERENCE = Statistic(
    lambda C: ratio(C[..., _FIRST] - C[..., _SECOND], C.sum(axis=-1)), where_empty(NO_SHARED_TRUTH)
)


def discordant(counts: FloatArray) -> tuple[int, int]:
    """b and c of summed counts (3,): items that only the first, and only the second, has right."""
    return round(float(counts[_FIRST])), round(float(counts[_SECOND]))


def mcnemar_mid_p(b: int, c: int) -> float | None:
    """Two-sided mid-p of b against c discordant items; None where there is none.

    p = 2 P(X <= min(b, c)) - P(X = min(b, c)), with X from Binomial(b + c, 1/2): the exact test
    is too cautious, this one hardly ever too bold. Items are taken as independent. McNemar (1947);
    Fagerland, Lydersen and Laake (2013), "The McNemar test for binary matched-pairs data: mid-p
    and asymptotic are better than exact conditional", under "The McNemar mid-p test".
    Raises ValueError for a negative count.

    >>> round(mcnemar_mid_p(1, 7), 4)
    0.0391
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts of discordant items must not be negative; found {b} and {c}")
    n, x = b + c, min(b, c)
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


NO_PAIR = "no item has a label both before and after"
_PAIRS, _FLIPPED, _MORE, _LESS, SHIFT = range(5)  # the columns of `moves_by_cluster`


_no_pair = where_empty(NO_PAIR)
# Over C (..., 2, 2): the share of items that turn from no to yes, and the share of yes after
# minus the share of yes before.
TURNED_YES = replace(overestimated(), undefined=_no_pair)
NET_CHANGE = replace(mean_severity_error((0, 1)), undefined=_no_pair)


def moves_by_cluster(flipped: IntArray, shift: IntArray, clusters: Clusters) -> FloatArray:
    """Counts (clusters, 5): pairs, flipped, more severe, less severe, summed shift.

    Both are (pairs,): `flipped` is 1 where the label differs, else 0; `shift` is the severity
    after minus that before. Raises ValueError where shapes differ or a code is out of
    range.
    """
    if not flipped.shape == shift.shape == clusters.codes.shape:
        raise ValueError("flipped, shift and clusters must have the same shape")
    check_codes(flipped, 2, "flipped", least=0)
    return clusters.sums(np.ones(len(shift)), flipped, shift > 0, shift < 0, shift)


def _mean_of(column: int, *, is_proportion: bool = True) -> Statistic:
    return Statistic(lambda C: ratio(C[..., column], C[..., _PAIRS]), _no_pair, is_proportion)


# Over counts (..., 5); MEAN_SHIFT is in the unit of the severities, positive for more severe.
FLIPPED = _mean_of(_FLIPPED)
MORE_SEVERE = _mean_of(_MORE)
LESS_SEVERE = _mean_of(_LESS)
MEAN_SHIFT = _mean_of(SHIFT, is_proportion=False)


def sign_test(shifts_by_cluster: IntArray | FloatArray) -> float | None:
    """Two-sided p of the signs of the clusters' summed shifts (clusters,).

    Exact: by chance as many clusters go up as go down, Binomial(n, 1/2). Clusters that do not
    move on balance are dropped (Dixon and Mood, 1946); None where no cluster moved.

    >>> sign_test(np.array([2, 1, 1, 3, -1, 0]))
    0.375
    """
    up, down = int((shifts_by_cluster > 0).sum()), int((shifts_by_cluster < 0).sum())
    if up + down == 0:
        return None
    return min(1.0, 2 * float(bdtr(min(up, down), up + down, 0.5)))
