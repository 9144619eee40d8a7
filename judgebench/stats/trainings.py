"""Means over items of what several trainings of one model decided: items and trainings both vary.

`x` is (trainings, items, k systems), nothing missing. Readers and cases of a diagnostic study are
the same design: Obuchowski and Rockette (1995), "Hypothesis Testing of Diagnostic Accuracy for
Multiple Readers and Multiple Tests". The two parts of an interval's half width are squared and
added, which holds its level with as few as three trainings: Zou and Donner (2008), "Construction of
Confidence Limits about Effect Measures".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.resample import Bounds

_STEPS = 50  # of halving the logarithm of a p value: to 1e-12 of it
_LEAST_P = 1e-12
_ROUNDING = 1e-9


def with_trainings(items: Estimate, means: FloatArray, bounds: Bounds = (0.0, 1.0)) -> Estimate:
    """The mean of `means` (trainings,), whose interval over items is made wider by trainings.

    No interval stays none; one training leaves it as it is. It never leaves `bounds`. Of what is no
    mean over trainings, give what `left_out` makes.

    >>> found = with_trainings(Estimate(0.5, 0.4, 0.6), np.array([0.49, 0.5, 0.51]))
    >>> round(found.low, 3), round(found.high, 3)
    (0.397, 0.603)
    """
    D = len(means)
    if items.value is None or items.low is None or items.high is None or D < 2:
        return items
    tail = float(stdtrit(D - 1, (1 + items.level) / 2)) * float(means.std(ddof=1)) / math.sqrt(D)
    low = items.value - math.hypot(items.value - items.low, tail)
    high = items.value + math.hypot(items.high - items.value, tail)
    how = f"{items.method}; widened by Student's t over {D} trainings"
    return replace(items, low=max(low, bounds[0]), high=min(high, bounds[1]), method=how)


def left_out(x: FloatArray) -> FloatArray:
    """A stand-in for each training's own share in a statistic of all: x (trainings,) is the
    statistic without it. Only the differences count, undefined ones are dropped.

        (1 - D) x_d

    Jackknife: Tukey (1958), "Bias and Confidence in Not Quite Large Samples". Of a mean over
    trainings these are the trainings' own means, but for a constant.

    >>> left_out(np.array([0.5, 0.25, np.nan])).tolist()
    [-1.0, -0.5]
    """
    return (1 - np.size(x)) * np.atleast_1d(x)[np.isfinite(x)]


def resampled_trainings(means: FloatArray, resamples: int, seed: int) -> FloatArray:
    """How far resampled trainings lie from their mean: (resamples, k) of `means` (trainings, k).

    A bootstrap of D trainings varies by (D - 1) / D too little, which is made good. 0 for one.
    """
    D = len(means)
    drawn = np.random.default_rng([seed, D]).integers(0, D, (resamples, D))
    away = means - means.mean(axis=0)
    return np.asarray(away[drawn].mean(axis=1) * math.sqrt(D / max(D - 1, 1)))


def p_of_differences(x: FloatArray, clusters: Clusters, alike: Sequence[int] = ()) -> FloatArray:
    """Two-sided p (k, k) that two systems have the same mean, whatever items and trainings are met.

    p is the level at which an interval of the difference d ends at 0:

        d^2 = t_{f, p}^2 s^2 / D + t_{C - 1, p}^2 v

    with s^2 the variance of d over the D trainings and v its variance from the C clusters of items
    that all trainings share (the mean covariance of two trainings). s^2 is that of the pair, or of
    all pairs of the systems `alike` (the mean square of systems by trainings, on
    f = (D - 1) (systems - 1) degrees of freedom) where that is larger. Of one training there are
    items alone. No p lies below 2^(1 - m), with m the clusters on which the two differ: that of a
    sign test, which no t of few clusters may pass by.

    >>> x = np.array([[[1.0, 0], [1, 1], [1, 0], [1, 0], [0, 0], [1, 0], [1, 0], [1, 0]]])
    >>> p_of_differences(x, Clusters(np.arange(8), 8)).round(4).tolist()
    [[1.0, 0.0312], [0.0312, 1.0]]
    """
    D, n, k = x.shape
    means = x.mean(axis=1)
    sums = np.zeros((D, clusters.n, k))
    for total, one in zip(sums, x - means[:, None], strict=True):
        np.add.at(total, clusters.codes, one)
    within = sum(_of_pairs(one.T @ one) for one in sums)
    together = sums.sum(axis=0)
    shared = _of_pairs(together.T @ together)
    shared = (shared - within) / (D * (D - 1)) if D > 1 else shared
    C = clusters.n
    v = np.maximum(shared, 0) * C / max(C - 1, 1) / n**2
    away = means - means.mean(axis=0)
    s2, f = _of_pairs(away.T @ away) / max(D - 1, 1), max(D - 1, 1)
    if len(alike) > 1:
        rest = away[:, alike] - away[:, alike].mean(axis=1, keepdims=True)
        f *= len(alike) - 1
        s2 = np.maximum(s2, 2 * (rest**2).sum() / f)
    d = means.mean(axis=0)
    difference = np.abs(d[:, None] - d)
    low, high = np.full((k, k), math.log(_LEAST_P)), np.zeros((k, k))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        tail = 1 - np.exp(middle) / 2
        half = np.sqrt(stdtrit(f, tail) ** 2 * s2 / D + stdtrit(max(C - 1, 1), tail) ** 2 * v)
        beyond = half < difference - _ROUNDING
        high, low = np.where(beyond, middle, high), np.where(beyond, low, middle)
    np.add.at(whole := np.zeros((C, k)), clusters.codes, x.mean(axis=0))
    differ = (np.abs(whole[:, :, None] - whole[:, None]) > _ROUNDING).sum(axis=0)
    return np.where(difference > _ROUNDING, np.clip(np.exp(high), 2.0 ** (1 - differ), 1), 1.0)


def p_of_mean(x: FloatArray, clusters: Clusters, trainings: FloatArray | None = None) -> float:
    """Two-sided p that the mean of x (items,) is 0; of NaN nothing is known. `trainings` are the
    means of each, or what `left_out` makes.

    >>> p_of_mean(np.array([1.0, 1, np.nan, 2]), Clusters(np.arange(4), 4))
    0.25
    """
    there = ~np.isnan(x)
    means = np.zeros(1) if trainings is None or not len(trainings) else trainings
    each = x[there] + (means - means.mean())[:, None]
    beside_0 = np.stack([each, np.zeros_like(each)], axis=-1)
    return float(p_of_differences(beside_0, clusters[there].occurring())[0, 1])


def _of_pairs(products: FloatArray) -> FloatArray:
    """sum (x_i - x_j)^2 of every pair, from the sums of products (k, k)."""
    squares = np.diagonal(products)
    return np.asarray(squares[:, None] + squares - 2 * products)
