"""Intraclass correlation of annotators who all rated the same units, on their severities.

Sums (..., 3 + k) of k annotators are n, the sum of S_i^2, the sum of x_ij^2 and T_1 to T_k, with
x_ij the severity that annotator j gave to unit i, S_i the sum over the annotators of unit i and
T_j that over the units of annotator j. They add up over clusters, and the mean squares of the
analysis of variance are functions of them. Resampled are the units: intervals hold for these
annotators, and say nothing of what others would do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray, check_codes, ratio, severity_of_labels
from judgebench.stats.resample import Statistic

_ROUNDING = 1e-9
_N, _ROWS, _ALL, _ANNOTATORS = range(4)  # where the sums stand; the last begins those of k

NO_UNIT = "no item was labelled by every annotator"
ONE_UNIT = "only one item was labelled by every annotator"
ONE_ANNOTATOR = "there is one annotator only"
NO_SPREAD = "all labels have the same severity, so the intraclass correlation is undefined"
NO_MEAN_SPREAD = (
    "the items' mean severities differ so little that their variance is estimated as 0 or less"
)


def severity_sums_by_cluster(
    ratings: IntArray,
    clusters: IntArray,
    k: int,
    n_clusters: int,
    severities: Sequence[float] | None = None,
) -> FloatArray:
    """The sums (n_clusters, 3 + annotators) of the units that every annotator rated.

    `ratings` is (units, annotators), ints 0..k-1 with -1 where there is no label; column j is
    always the same person. `severities` are those of the k labels, by default their positions;
    with whole numbers the sums are exact. Raises ValueError where lengths differ or a code is out
    of range.
    """
    if clusters.shape != ratings.shape[:1]:
        raise ValueError("ratings and clusters must have the same length")
    check_codes(ratings, k, "labels")
    check_codes(clusters, n_clusters, "clusters", least=0)
    whole = (ratings >= 0).all(axis=1)
    x = severity_of_labels(severities, k)[ratings[whole]]
    terms = (np.ones(len(x)), x.sum(axis=1) ** 2, (x**2).sum(axis=1), *x.T)
    where = clusters[whole]
    return np.stack([np.bincount(where, t, minlength=n_clusters) for t in terms], axis=-1)


class _MeanSquares(NamedTuple):
    """Shrout and Fleiss (1979), Table 1, each (...): between targets (units), within them, between
    judges (annotators), residual."""

    n: FloatArray
    k: int
    BMS: FloatArray
    WMS: FloatArray
    JMS: FloatArray
    EMS: FloatArray


def _mean_squares(sums: FloatArray) -> _MeanSquares:
    """The sums of squares times n k, which is exact for whole numbers, over that many degrees of
    freedom."""
    n, S2, x2, T = sums[..., _N], sums[..., _ROWS], sums[..., _ALL], sums[..., _ANNOTATORS:]
    k = T.shape[-1]
    G2, T2 = T.sum(axis=-1) ** 2, (T**2).sum(axis=-1)
    return _MeanSquares(
        n,
        k,
        BMS=ratio(n * S2 - G2, n * k * (n - 1)),
        WMS=ratio(k * x2 - S2, k * n * (k - 1)),
        JMS=ratio(k * T2 - G2, n * k * (k - 1)),
        EMS=ratio(n * k * x2 - n * S2 - k * T2 + G2, n * k * (n - 1) * (k - 1)),
    )


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """`part / whole`; NaN where an estimated variance `whole` is not positive beyond rounding."""
    return ratio(part, np.where(whole > _ROUNDING * np.abs(part), whole, 0))


def _icc_1(sums: FloatArray) -> FloatArray:
    _, k, BMS, WMS, _, _ = _mean_squares(sums)
    return _share(BMS - WMS, BMS + (k - 1) * WMS)


def _icc_2_1(sums: FloatArray) -> FloatArray:
    n, k, BMS, _, JMS, EMS = _mean_squares(sums)
    return _share(BMS - EMS, BMS + (k - 1) * EMS + k * ratio(JMS - EMS, n))


def _icc_2_k(sums: FloatArray) -> FloatArray:
    n, _, BMS, _, JMS, EMS = _mean_squares(sums)
    return _share(BMS - EMS, BMS + ratio(JMS - EMS, n))


def _icc(name: str, formula: Callable[[FloatArray], FloatArray]) -> Statistic:
    def undefined(sums: FloatArray) -> str:
        if not np.isnan(formula(sums)):
            return ""
        if sums[_N] < 2:
            return ONE_UNIT if sums[_N] else NO_UNIT
        if len(sums[_ANNOTATORS:]) < 2:
            return ONE_ANNOTATOR
        return NO_SPREAD if np.isnan(_icc_1(sums)) else NO_MEAN_SPREAD

    return Statistic(name, formula, undefined)


# Shrout and Fleiss (1979), in the names of McGraw and Wong (1996) too. ICC(1, 1), or ICC(1):
# a unit's annotators may be any. ICC(2, 1), or ICC(A, 1): absolute agreement of single annotators
# drawn from many. ICC(2, k), or ICC(A, k): the same of the mean of k annotators.
ICC_1 = _icc("icc1", _icc_1)
ICC_2_1 = _icc("icc2", _icc_2_1)
ICC_2_K = _icc("icc2k", _icc_2_k)
