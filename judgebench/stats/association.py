"""Correlations of ordinal scales: judge with truth, and several scales with each other.

The first are functions of confusion counts C (..., k, k), C[i, j] the (weighted) number of items
whose truth is label i and which the judge labels j, labels from least to most severe. A judge that
is always one label too severe still correlates fully: read them beside agreement, never instead.

The others are functions of moments (..., m + 1, m + 1) of m scales: the sum over items of v v',
with v = (1, x1, ..., xm). They hold n, the sums and the cross products, and add up over clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from judgebench.stats.arrays import (
    Clusters,
    FloatArray,
    IntArray,
    mean_of_defined,
    ratio,
    severity_of_labels,
)
from judgebench.stats.confusion import NO_ITEM
from judgebench.stats.resample import Statistic

ONE_LABEL = "truth or judge holds one label only, so no correlation is defined"
ONE_SEVERITY = "truth or judge holds one severity only, so no correlation is defined"


def pearson(severities: Sequence[float] | None = None) -> Statistic:
    """Pearson's r between the severity of the truth and that of the judge's label.

    `severities` default to the labels' positions.

    >>> round(float(pearson().formula(np.array([[20.0, 5], [10, 15]]))), 3)
    0.408
    """

    def r(C: FloatArray) -> FloatArray:
        s = severity_of_labels(severities, C.shape[-1])
        return _correlation(C, s, s)

    return _association(r)


def _spearman(C: FloatArray) -> FloatArray:
    """Pearson's r of the mid-ranks. Spearman (1904); ties: Kendall (1945)."""
    return _correlation(C, _mid_ranks(C.sum(axis=-1)), _mid_ranks(C.sum(axis=-2)))


def _mid_ranks(n_i: FloatArray) -> FloatArray:
    """The mean rank of the items of each label (..., k), less the same 1/2 for all."""
    return np.cumsum(n_i, axis=-1) - n_i / 2


def _correlation(C: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of values x (..., k) of the truth's labels and y (..., k) of the judge's."""
    n, row, column = C.sum(axis=(-2, -1)), C.sum(axis=-1), C.sum(axis=-2)
    dx = x - ratio((row * x).sum(axis=-1), n)[..., None]
    dy = y - ratio((column * y).sum(axis=-1), n)[..., None]
    products = (dx[..., :, None] * C * dy[..., None, :]).sum(axis=(-2, -1))
    spread = np.sqrt(_spread(row, x)) * np.sqrt(_spread(column, y))
    return np.clip(ratio(n * products, spread), -1, 1)


def _spread(n_i: FloatArray, x: FloatArray) -> FloatArray:
    """n times the sum of squared deviations, from pairs: exactly 0 where the values are equal."""
    d2 = np.square(x[..., :, None] - x[..., None, :])
    return np.asarray((n_i[..., :, None] * n_i[..., None, :] * d2).sum(axis=(-2, -1)) / 2)


def _kendall_tau_b(C: FloatArray) -> FloatArray:
    """(P - Q) / sqrt((n_0 - n_1) (n_0 - n_2)): concordant less discordant pairs of items, over the
    pairs not tied in the truth and those not tied in the judge. Kendall (1945), tau_b."""
    k = C.shape[-1]
    sign = np.sign(np.subtract.outer(np.arange(k), np.arange(k)))
    concordance = (C * (sign @ C @ sign.T)).sum(axis=(-2, -1)) / 2
    untied = np.sqrt(_untied(C.sum(axis=-1))) * np.sqrt(_untied(C.sum(axis=-2)))
    return np.clip(ratio(concordance, untied), -1, 1)


def _untied(n_i: FloatArray) -> FloatArray:
    """How many pairs of items have different labels."""
    return np.asarray((n_i.sum(axis=-1) ** 2 - (n_i**2).sum(axis=-1)) / 2)


def _association(formula: Callable[[FloatArray], FloatArray]) -> Statistic:
    def undefined(C: FloatArray) -> str:
        if not np.isnan(formula(C)):
            return ""
        if not C.any():
            return NO_ITEM
        used = np.count_nonzero(C.sum(axis=-1)), np.count_nonzero(C.sum(axis=-2))
        return ONE_LABEL if min(used) == 1 else ONE_SEVERITY

    return Statistic(formula, undefined)


SPEARMAN = _association(_spearman)
KENDALL_TAU_B = _association(_kendall_tau_b)


NO_WHOLE_ITEM = "no item has a label on every metric"
ALL_CONSTANT = "fewer than two metrics have more than one label here: no correlation is defined"
NO_COMMON_PAIR = "no two metrics have more than one label on both sides: nothing to compare"


def moments_by_cluster(severities: IntArray, clusters: Clusters) -> FloatArray:
    """The moments (clusters, m + 1, m + 1) of severities (items, m).

    Severities are whole numbers, so that sums are exact and a constant scale is seen to be one.
    Raises ValueError where lengths differ.
    """
    if len(clusters) != len(severities):
        raise ValueError("severities and clusters must have the same length")
    v = np.column_stack([np.ones(len(severities)), severities])
    moments = np.zeros((clusters.n, v.shape[1], v.shape[1]))
    np.add.at(moments, clusters.codes, v[:, :, None] * v[:, None, :])
    return moments


def _of_pairs(moments: FloatArray) -> FloatArray:
    """Pearson's r of each pair of scales (..., m (m - 1) / 2); NaN where one is constant."""
    n, total = moments[..., :1, :1], moments[..., 0, 1:]
    products = n * moments[..., 1:, 1:] - total[..., :, None] * total[..., None, :]
    spread = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    r = ratio(products, spread[..., :, None] * spread[..., None, :])
    first, second = np.triu_indices(total.shape[-1], 1)
    return np.clip(r[..., first, second], -1, 1)


def _difference(moments: FloatArray) -> FloatArray:
    r = _of_pairs(moments)
    return mean_of_defined(r[..., 0, :] - r[..., 1, :])


def _of_moments(formula: Callable[[FloatArray], FloatArray], reason: str) -> Statistic:
    def undefined(moments: FloatArray) -> str:
        if not np.isnan(formula(moments)):
            return ""
        return reason if moments.any() else NO_WHOLE_ITEM

    return Statistic(formula, undefined)


# A pair with a constant scale is left out of the mean.
MEAN_CORRELATION = _of_moments(lambda moments: mean_of_defined(_of_pairs(moments)), ALL_CONSTANT)
# Over moments (..., 2, m + 1, m + 1): the first minus the second, over pairs defined in both.
CORRELATION_DIFFERENCE = _of_moments(_difference, NO_COMMON_PAIR)
