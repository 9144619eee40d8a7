"""How far several scales rise and fall together: the mean correlation over their pairs.

Moments are (..., m + 1, m + 1) of m scales: the sum over items of v v', with v = (1, x1, ..., xm).
They hold n, the sums and the cross products, and add up over clusters.
"""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray, check_codes, mean_of_defined, ratio
from judgebench.stats.resample import Statistic

NO_ITEM = "no item has a label on every metric"
ALL_CONSTANT = "fewer than two metrics have more than one label here: no correlation is defined"
NO_COMMON_PAIR = "no two metrics have more than one label on both sides: nothing to compare"


def moments_by_cluster(severities: IntArray, clusters: IntArray, n_clusters: int) -> FloatArray:
    """The moments (n_clusters, m + 1, m + 1) of severities (items, m).

    Severities are whole numbers, so that sums are exact and a constant scale is seen to be one.
    Raises ValueError where lengths differ or a cluster is out of range.
    """
    if clusters.shape != severities.shape[:1]:
        raise ValueError("severities and clusters must have the same length")
    check_codes(clusters, n_clusters, "clusters", least=0)
    v = np.column_stack([np.ones(len(severities)), severities])
    moments = np.zeros((n_clusters, v.shape[1], v.shape[1]))
    np.add.at(moments, clusters, v[:, :, None] * v[:, None, :])
    return moments


def _of_pairs(moments: FloatArray) -> FloatArray:
    """Pearson's r of each pair of scales (..., m (m - 1) / 2); NaN where one is constant."""
    n, total = moments[..., :1, :1], moments[..., 0, 1:]
    products = n * moments[..., 1:, 1:] - total[..., :, None] * total[..., None, :]
    spread = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    r = ratio(products, spread[..., :, None] * spread[..., None, :])
    first, second = np.triu_indices(total.shape[-1], 1)
    return np.clip(r[..., first, second], -1, 1)


def _mean(moments: FloatArray) -> FloatArray:
    return mean_of_defined(_of_pairs(moments))


def _undefined(moments: FloatArray) -> str:
    if not np.isnan(_mean(moments)):
        return ""
    return ALL_CONSTANT if moments.any() else NO_ITEM


def _difference(moments: FloatArray) -> FloatArray:
    r = _of_pairs(moments)
    return mean_of_defined(r[..., 0, :] - r[..., 1, :])


def _no_difference(moments: FloatArray) -> str:
    if not np.isnan(_difference(moments)):
        return ""
    return NO_COMMON_PAIR if moments.any() else NO_ITEM


# A pair with a constant scale is left out of the mean.
MEAN_CORRELATION = Statistic("mean_correlation", _mean, _undefined)
# Over moments (..., 2, m + 1, m + 1): the first minus the second, over pairs defined in both.
CORRELATION_DIFFERENCE = Statistic("correlation_difference", _difference, _no_difference)
