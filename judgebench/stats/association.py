"""How far the judge's labels rise with the truth's: correlations of two ordinal scales.

Functions of confusion counts C (..., k, k), C[i, j] the (weighted) number of items whose truth is
label i and which the judge labels j, labels from least to most severe. A judge that is always one
label too severe still correlates fully: read these beside agreement, never in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from judgebench.stats.arrays import FloatArray, ratio, severity_of_labels
from judgebench.stats.confusion import NO_ITEM
from judgebench.stats.resample import Statistic

ONE_LABEL = "truth or judge holds one label only, so no correlation is defined"
ONE_SEVERITY = "truth or judge holds one severity only, so no correlation is defined"


def pearson(severities: Sequence[float] | None = None) -> Statistic:
    """Pearson's r between the severity of the truth and that of the judge's label.

    `severities` default to the labels' positions.
    """

    def r(C: FloatArray) -> FloatArray:
        s = severity_of_labels(severities, C.shape[-1])
        return _correlation(C, s, s)

    return _association("pearson", r)


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
    r: FloatArray = np.clip(ratio(n * products, spread), -1, 1)
    return r


def _spread(n_i: FloatArray, x: FloatArray) -> FloatArray:
    """n times the sum of squared deviations, from pairs: exactly 0 where the values are equal."""
    d2 = np.square(x[..., :, None] - x[..., None, :])
    spread: FloatArray = (n_i[..., :, None] * n_i[..., None, :] * d2).sum(axis=(-2, -1)) / 2
    return spread


def _kendall_tau_b(C: FloatArray) -> FloatArray:
    """(P - Q) / sqrt((n_0 - n_1) (n_0 - n_2)): concordant less discordant pairs of items, over the
    pairs not tied in the truth and those not tied in the judge. Kendall (1945), tau_b."""
    k = C.shape[-1]
    sign = np.sign(np.subtract.outer(np.arange(k), np.arange(k)))
    concordance = (C * (sign @ C @ sign.T)).sum(axis=(-2, -1)) / 2
    untied = np.sqrt(_untied(C.sum(axis=-1))) * np.sqrt(_untied(C.sum(axis=-2)))
    tau_b: FloatArray = np.clip(ratio(concordance, untied), -1, 1)
    return tau_b


def _untied(n_i: FloatArray) -> FloatArray:
    """How many pairs of items have different labels."""
    untied: FloatArray = (n_i.sum(axis=-1) ** 2 - (n_i**2).sum(axis=-1)) / 2
    return untied


def _association(name: str, formula: Callable[[FloatArray], FloatArray]) -> Statistic:
    def undefined(C: FloatArray) -> str:
        if not np.isnan(formula(C)):
            return ""
        if not C.any():
            return NO_ITEM
        used = np.count_nonzero(C.sum(axis=-1)), np.count_nonzero(C.sum(axis=-2))
        return ONE_LABEL if min(used) == 1 else ONE_SEVERITY

    return Statistic(name, formula, undefined)


SPEARMAN = _association("spearman", _spearman)
KENDALL_TAU_B = _association("tau_b", _kendall_tau_b)
