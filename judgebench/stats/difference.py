"""The mean difference of two raters on the same items, with an interval fit for small samples.

Counts are rows (U, k), one a kind of cluster, in columns by reference label; `how_many` (R, U)
says how often each kind occurs in each of R samples. One sample is R = 1; a thousand simulated
ones cost little more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from judgebench.stats.arrays import FloatArray, mean_of_defined, ratio

METHOD = "smoothed cluster-robust t interval, corrected for skewness"
_MOST_SHIFT = 0.5  # of half the interval; the expansion holds for moderate skewness only


@dataclass(frozen=True)
class Differences:
    """The difference in each of R samples, all (R,); NaN where no pair informs it."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def mean_difference(
    x: FloatArray, n: FloatArray, how_many: FloatArray, level: float, *, balanced: bool
) -> Differences:
    """D = X / N, or where `balanced` the mean of D_r = X_r / N_r over the k labels that occur.

    `x` (U, k) is the sum of the pairs' differences, each within [-1, 1], and `n` (U, k) their
    number, so that X_r and N_r are sums over clusters. The variance is that of the linearised
    ratio with whole clusters as units (Cochran 1977, section 6.4),

        z_g = sum_r (x_gr - D_r n_gr) / (K N_r),   V = sum_g z_g^2,

    and the interval D* +- t sqrt(V) with Satterthwaite's degrees of freedom over the labels, both
    limits moved by sqrt(V) g (2 t^2 + 1) / 6 with g = sum_g z_g^3 / V^1.5, the first term of the
    Cornish-Fisher expansion of Student's t (Johnson 1978; Hall 1992, section 2.6): differences
    from annotators are skewed, and one limit would else be missed twice as often as the other. So
    that a few clusters without a difference claim no certainty, each label first gets half a
    cluster of average size with difference 1 and half a one with -1: for one item a cluster the
    adjustment of Agresti and Min (2005), "Simple improved confidence intervals for comparing
    matched proportions".
    """
    if not balanced:
        x, n = x.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True)
    X, N, G = how_many @ x, how_many @ n, how_many @ (n > 0)
    value = mean_of_defined(ratio(X, N))
    K = (N > 0).sum(axis=1, keepdims=True)
    size = ratio(N, G)  # of an average cluster
    N_star = np.where(N > 0, N + size, np.nan)
    D = ratio(X, N_star)
    z = (x - D[:, None, :] * n) / (K * N_star)[:, None, :]
    z = np.where(np.isnan(z), 0.0, z)
    added = ((1 - D) ** 2 + (1 + D) ** 2) / 2 * (size / (K * N_star)) ** 2
    V_r = np.einsum("ru,ruk->rk", how_many, z**2) + added
    V = np.einsum("ru,ru->r", how_many, z.sum(axis=2) ** 2) + np.nansum(added, axis=1)
    df = ratio(np.nansum(V_r, axis=1) ** 2, np.nansum(V_r**2 / G.clip(min=1), axis=1))
    t = np.abs(stdtrit(df, (1 - level) / 2))
    skew = ratio(np.einsum("ru,ru->r", how_many, z.sum(axis=2) ** 3), V**1.5)
    shift = np.clip(skew * (2 * t**2 + 1) / 6, -_MOST_SHIFT * t, _MOST_SHIFT * t)
    middle = mean_of_defined(D) + shift * np.sqrt(V)
    half = t * np.sqrt(V)
    return Differences(value, np.maximum(middle - half, -1), np.minimum(middle + half, 1))
