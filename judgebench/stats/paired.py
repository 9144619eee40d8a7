"""The same items judged twice: how far the second labels moved, and whether in one direction.

Yes-or-no outcomes are counts C (..., 2, 2), C[i, j] the number of items with outcome i before and
j after. Labels on a scale are counts (..., 5) a cluster, in the order of `moves_by_cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtr

from judgebench.stats.arrays import FloatArray, IntArray, check_codes, ratio
from judgebench.stats.confusion import mean_severity_error, overestimated
from judgebench.stats.resample import Statistic

NO_PAIR = "no item has a label both before and after"
_PAIRS, _FLIPPED, _MORE, _LESS, SHIFT = range(5)  # the columns of `moves_by_cluster`


def _no_pair(counts: FloatArray) -> str:
    return "" if counts.any() else NO_PAIR


# Over C (..., 2, 2): the share of items that turn from no to yes, and the share of yes after
# minus the share of yes before.
TURNED_YES = replace(overestimated(), name="turned_yes", undefined=_no_pair)
NET_CHANGE = replace(mean_severity_error((0, 1)), name="net_change", undefined=_no_pair)


def moves_by_cluster(
    flipped: IntArray, shift: IntArray, clusters: IntArray, n_clusters: int
) -> FloatArray:
    """Counts (n_clusters, 5): pairs, flipped, more severe, less severe, summed shift.

    All arguments are (pairs,): `flipped` is 1 where the label differs, else 0; `shift` is the
    severity after minus that before. Raises ValueError where shapes differ or a code is out of
    range.
    """
    if not flipped.shape == shift.shape == clusters.shape:
        raise ValueError("flipped, shift and clusters must have the same shape")
    check_codes(flipped, 2, "flipped", least=0)
    check_codes(clusters, n_clusters, "clusters", least=0)
    columns = (np.ones(len(shift)), flipped, shift > 0, shift < 0, shift)
    return np.stack(
        [np.bincount(clusters, column, minlength=n_clusters) for column in columns], axis=-1
    )


def _mean_of(name: str, column: int, *, is_proportion: bool) -> Statistic:
    def formula(C: FloatArray) -> FloatArray:
        return ratio(C[..., column], C[..., _PAIRS])

    return Statistic(name, formula, _no_pair, is_proportion)


# Over counts (..., 5); MEAN_SHIFT is in the unit of the severities, positive for more severe.
FLIPPED = _mean_of("flipped", _FLIPPED, is_proportion=True)
MORE_SEVERE = _mean_of("more_severe", _MORE, is_proportion=True)
LESS_SEVERE = _mean_of("less_severe", _LESS, is_proportion=True)
MEAN_SHIFT = _mean_of("shift", SHIFT, is_proportion=False)


def sign_test(shifts_by_cluster: IntArray | FloatArray) -> float | None:
    """Two-sided p of the signs of the clusters' summed shifts (clusters,).

    Exact: by chance as many clusters go up as go down, Binomial(n, 1/2). Clusters that do not
    move on balance are dropped (Dixon and Mood, 1946); None where no cluster moved.
    """
    up, down = int((shifts_by_cluster > 0).sum()), int((shifts_by_cluster < 0).sum())
    if up + down == 0:
        return None
    return min(1.0, 2 * float(bdtr(min(up, down), up + down, 0.5)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for how many there are, in their order. None stays None, uncounted.

    Holm (1979), step-down: the i-th smallest of m is multiplied by m - i + 1, is never less than
    the one before it, and never more than 1.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected, least = list(p_values), 0.0
    for rank, (p, place) in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - rank) * p))
        corrected[place] = least
    return corrected
