"""Means of a handful of numbers, and means and correlations of items that come in clusters.

Sums are (..., 2, m) for m columns: the summed values and how many there are. Moments are
(..., m + 1, m + 1) of m scales: the sum over items of v v', with v = (1, x1, ..., xm). They hold n,
the sums and the cross products, and add up over clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined, ratio
from judgebench.stats.jackknife import (
    LEVEL,
    OF_CORRELATION,
    SHARE,
    UNBOUNDED,
    Bounds,
    Statistic,
    clustered_estimate,
    explained,
)

_ROUNDING = 1e-9  # what rounding leaves of a variance, as a share of the mean square
NO_WHOLE_ITEM = "no item has a label on every metric"
ALL_CONSTANT = "fewer than two metrics have more than one label here: no correlation is defined"
NO_COMMON_PAIR = "no two metrics have more than one label on both sides: nothing to compare"


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
    defined = ~np.isnan(x)
    sums = clusters.sums(*np.where(defined, x, 0.0).T, *defined.T)
    return sums.reshape(clusters.n, 2, x.shape[1])


def means(sums: FloatArray) -> FloatArray:
    """sum x / n of every column (..., m), NaN where there is no value."""
    return ratio(sums[..., 0, :], sums[..., 1, :])


Kind = Literal["share", "difference", "correlation", "brier", "mean"]
_BOUNDS: Mapping[str, Bounds] = {
    "share": SHARE, "difference": OF_CORRELATION, "correlation": OF_CORRELATION, "brier": (0, 2),
}  # fmt: skip


def mean_of(column: int, undefined: str, kind: Kind = "mean") -> Statistic:
    """The mean of one column; `undefined` says why where it holds no value.

    Values of a `share` lie within 0..1, of a `difference` of two shares or a `correlation` within
    -1..1, and those of which a `brier` score is the mean within 0..2.
    """
    return Statistic(
        lambda sums: means(sums)[..., column],
        lambda sums: "" if sums[1, column] else undefined,
        _BOUNDS.get(kind, UNBOUNDED),
        (lambda sums: sums[..., 1, column]) if kind in ("share", "difference") else None,
    )


def clustered_mean(
    x: FloatArray,
    clusters: IntArray,
    undefined: str,
    level: float = LEVEL,
    *,
    n_missing: int = 0,
    kind: Kind = "mean",
) -> Estimate:
    """The mean of x (items,) over the items where it is defined; `clusters` (items,) are numbers.

    `n` counts these items; NaN are added to `n_missing`. `undefined` and `kind` as in `mean_of`.

    >>> clustered_mean(np.array([1.0, 2, 3, 6]), np.array([0, 0, 1, 1]), "none").value
    3.0
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    sums = sums_by_cluster(x[:, None], Clusters(codes, int(codes.max(initial=-1)) + 1))
    n = int((~np.isnan(x)).sum())
    statistic = mean_of(0, undefined, kind)
    return clustered_estimate(sums, statistic, level, n=n, n_missing=n_missing + len(x) - n)


def moments_by_cluster(severities: IntArray | FloatArray, clusters: Clusters) -> FloatArray:
    """The moments (clusters, m + 1, m + 1) of severities (items, m), or of standardized scores.

    Sums of whole numbers are exact; of others, what hardly varies is taken for constant.
    Raises ValueError where lengths differ.
    """
    v = np.column_stack([np.ones(len(severities)), severities])
    m = v.shape[1]
    products = (v[:, :, None] * v[:, None, :]).reshape(len(v), m * m)
    return clusters.sums(*products.T).reshape(clusters.n, m, m)


def correlations(moments: FloatArray) -> FloatArray:
    """Pearson's r of each pair of scales (..., m (m - 1) / 2); NaN where one is constant."""
    n, total = moments[..., :1, :1], moments[..., 0, 1:]
    products = n * moments[..., 1:, 1:] - total[..., :, None] * total[..., None, :]
    spread = np.diagonal(products, axis1=-2, axis2=-1)
    squares = n[..., 0] * np.diagonal(moments, axis1=-2, axis2=-1)[..., 1:]
    spread = np.sqrt(np.where(spread > _ROUNDING * squares, spread, 0))
    r = ratio(products, spread[..., :, None] * spread[..., None, :])
    first, second = np.triu_indices(total.shape[-1], 1)
    return np.clip(r[..., first, second], -1, 1)


def _difference(moments: FloatArray) -> FloatArray:
    r = correlations(moments)
    return mean_of_defined(r[..., 0, :] - r[..., 1, :])


def _of_moments(
    formula: Callable[[FloatArray], FloatArray], reason: str, bounds: Bounds
) -> Statistic:
    return explained(formula, lambda moments: reason if moments.any() else NO_WHOLE_ITEM, bounds)


# A pair with a constant scale is left out of the mean.
MEAN_CORRELATION = _of_moments(
    lambda moments: mean_of_defined(correlations(moments)), ALL_CONSTANT, OF_CORRELATION
)
# Over moments (..., 2, m + 1, m + 1): the first minus the second, over pairs defined in both.
CORRELATION_DIFFERENCE = _of_moments(_difference, NO_COMMON_PAIR, (-2.0, 2.0))
