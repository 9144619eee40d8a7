"""Means: of a handful of numbers, and of items that come in clusters.

Sums are (..., 2, m) for m columns: the summed values and how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling, Statistic, cluster_bootstrap


def mean_and_sd(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The mean and the sample standard deviation (n - 1 in the denominator).

    None is an undefined number and is left out, never taken for 0. The mean of no number
    and the standard deviation of fewer than two are None.

    >>> mean_and_sd([1.0, None, 3.0])
    (2.0, 1.4142135623730951)
    """
    x = np.array([value for value in values if value is not None], dtype=np.float64)
    mean = float(x.mean()) if len(x) else None
    sd = float(x.std(ddof=1)) if len(x) > 1 else None
    return mean, sd


def sums_by_cluster(x: FloatArray, clusters: Clusters) -> FloatArray:
    """The sums (clusters, 2, m) of x (items, m), NaN left out.

    Raises ValueError where lengths differ.
    """
    if len(clusters) != len(x):
        raise ValueError("x and clusters must have the same length")
    defined = ~np.isnan(x)
    sums = np.zeros((clusters.n, 2, x.shape[1]))
    np.add.at(sums[:, 0], clusters.codes, np.where(defined, x, 0.0))
    np.add.at(sums[:, 1], clusters.codes, defined.astype(np.float64))
    return sums


def means(sums: FloatArray) -> FloatArray:
    """sum x / n of every column (..., m), NaN where there is no value."""
    return ratio(sums[..., 0, :], sums[..., 1, :])


def mean_of(column: int, undefined: str, *, is_proportion: bool = False) -> Statistic:
    """The mean of one column; `undefined` says why where it holds no value.

    `is_proportion` also fits means of values within 0..1: one of 0 or 1 over all items is bounded
    as a proportion is.
    """
    return Statistic(
        lambda sums: means(sums)[..., column],
        lambda sums: "" if sums[1, column] else undefined,
        is_proportion,
    )


def clustered_mean(
    x: FloatArray,
    clusters: IntArray,
    undefined: str,
    resampling: Resampling = DEFAULT_RESAMPLING,
    *,
    n_missing: int = 0,
    is_proportion: bool = False,
) -> Estimate:
    """The mean of x (items,) over the items where it is defined, resampled by `clusters` (items,).

    `n` counts these items; NaN are added to `n_missing`. `undefined` and `is_proportion` as in
    `mean_of`.

    >>> clustered_mean(np.array([1.0, 2, 3, 6]), np.array([0, 0, 1, 1]), "none").value
    3.0
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    sums = sums_by_cluster(x[:, None], Clusters(codes, int(codes.max(initial=-1)) + 1))
    n = int((~np.isnan(x)).sum())
    statistic = mean_of(0, undefined, is_proportion=is_proportion)
    return cluster_bootstrap(sums, statistic, resampling, n=n, n_missing=n_missing + len(x) - n)
