"""Estimates with intervals that take whole clusters as what was sampled.

Every statistic is a function of counts that add up over clusters: without one cluster they are the
total less its own, and no row is ever copied or labelled again. Clusters with equal counts are of
one kind. 100,000 one-item clusters of a 4-label confusion matrix are 16 kinds, so that 17
evaluations make the interval.

Scores that are not counts make every cluster unlike every other. Where a statistic of them costs
much, `random_groups` makes few of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts load when they are first used

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, distinct_rows
from judgebench.stats.intervals import (
    EXACT,
    SMOOTHED_T,
    exact_share,
    mean_difference,
)

LEVEL = 0.95
MIN_CLUSTERS = 5  # with fewer there is no interval, unless items are independent
FEW_CLUSTERS = 10  # with fewer an interval is a rough one
MAX_GROUPS = 2000
NO_WIDTH = 1e-9  # what rounding leaves of an interval whose limits are equal

Formula = Callable[[FloatArray], FloatArray]
Reason = Callable[[FloatArray], str]
Bounds = tuple[float, float]  # the least and the largest value of a statistic
UNBOUNDED: Bounds = (-math.inf, math.inf)
SHARE: Bounds = (0.0, 1.0)
OF_CORRELATION: Bounds = (-1.0, 1.0)


@dataclass(frozen=True)
class Statistic:
    """A function of counts that add up over clusters."""

    formula: Formula  # counts (..., *shape) -> (...), NaN where undefined, without warnings
    undefined: Reason  # why it is undefined for one array of counts; '' where it is defined
    bounds: Bounds = UNBOUNDED
    # Of a share of items, and of the difference of two shares of the same items: their number.
    items: Formula | None = None
    no_interval: Reason = lambda counts: ""  # why one array of counts is too small for an interval


def where_empty(reason: str) -> Reason:
    """An `undefined` that gives `reason` for counts that are all 0."""
    return lambda counts: "" if counts.any() else reason


def explained(formula: Formula, why: Reason, bounds: Bounds = UNBOUNDED) -> Statistic:
    """The statistic that is undefined where its formula is NaN, for the reason `why`."""

    def undefined(counts: FloatArray) -> str:
        return why(counts) if np.isnan(formula(counts)) else ""

    return Statistic(formula, undefined, bounds)


def clustered_estimate(
    counts: FloatArray | IntArray | ClusterCounts,
    statistic: Statistic,
    level: float = LEVEL,
    *,
    n: int,
    n_missing: int = 0,
) -> Estimate:
    """`statistic` of the summed counts, with an interval over clusters.

    `counts` is (G, ...), one array of counts a cluster; empty clusters are left out. Several
    statistics of the same counts are faster where these are made a ClusterCounts first. `n` and
    `n_missing` go into the Estimate as they are. A share has the interval of `clustered_share`,
    a difference of shares that of `mean_difference`, and any other statistic that of
    `jackknife_interval`. There is none below MIN_CLUSTERS clusters, but for a share of independent
    items, and `reason` says why.

    >>> share = Statistic(lambda c: c[..., 0] / c.sum(axis=-1), lambda c: "")
    >>> clustered_estimate(np.array([[1, 1], [2, 0], [0, 2], [2, 0]]), share, n=8).value
    0.625
    """
    sample = counts if isinstance(counts, ClusterCounts) else ClusterCounts(counts)
    value = float(statistic.formula(sample.total))
    undefined = statistic.undefined(sample.total)
    if undefined or np.isnan(value):
        return Estimate(None, n=n, n_missing=n_missing, reason=undefined, level=level)
    if reason := statistic.no_interval(sample.total):
        estimate = Estimate(value, reason=reason)
    elif statistic.items is not None:
        estimate = _of_shares(sample, statistic, statistic.items, level)
    else:
        left_out = statistic.formula(sample.total - sample.kinds)
        estimate = jackknife_interval(value, left_out, sample.how_many, level, statistic.bounds)
    return replace(estimate, value=value, n=n, n_missing=n_missing, level=level)


def _of_shares(
    sample: ClusterCounts, statistic: Statistic, items: Formula, level: float
) -> Estimate:
    """The interval of a share, or of the difference of two; its value is for others to say."""
    n = items(sample.kinds)
    x = np.where(n > 0, statistic.formula(sample.kinds), 0.0) * n
    how_many = sample.how_many[None].astype(np.float64)
    clusters, total = round(float(how_many[0] @ (n > 0))), float(how_many[0] @ n)
    is_share = statistic.bounds == SHARE
    if clusters < MIN_CLUSTERS and not (is_share and clusters == total):
        return Estimate(0.0, reason=too_few(clusters))
    if is_share:
        share = exact_share(x, n, how_many[0], level)
        over = "" if share.method == EXACT else f", over {clusters} clusters"
        return replace(share, method=share.method + over)
    limits = mean_difference(x[:, None], n[:, None], how_many, level, balanced=False)
    method = f"{SMOOTHED_T}, over {clusters} clusters"
    return Estimate(0.0, float(limits.low[0]), float(limits.high[0]), method)


def too_few(clusters: int) -> str:
    """The reason why so few clusters give no interval."""
    if clusters == 1:
        return f"there is one cluster only, and an interval needs {MIN_CLUSTERS}"
    return f"there are {clusters} clusters only, and an interval needs {MIN_CLUSTERS}"


def jackknife_interval(
    value: float,
    left_out: FloatArray,
    how_many: IntArray,
    level: float = LEVEL,
    bounds: Bounds = UNBOUNDED,
    *,
    is_pulled: bool = False,
) -> Estimate:
    """The value with its delete-one-cluster interval, or without one and the reason why.

    `left_out` (U,) are the values without one cluster of each kind, and `how_many` (U,) the
    clusters of a kind, G in all. With z the logit of the value between its `bounds`, or the value
    itself where these are not finite,

        z ± t sqrt((G - 1) / G sum_g (z_(g) - mean z_(g))^2),

    t from Student's distribution with G - 1 degrees of freedom, carried back to the value's scale.
    Where noise pulls the statistic to one side (`is_pulled`), as it does a correlation of means,
    the interval also holds that around z less the jackknife's estimate of its bias.
    Tukey (1958), "Bias and Confidence in Not Quite Large Samples"; on a transformed scale Miller
    (1974), "The Jackknife: A Review", section 3; coverage: `benchmarks/intervals.py`.

    >>> x = np.array([0.0, 1, 1, 2, 6])
    >>> print(jackknife_interval(2.0, (10 - x) / 4, np.ones(5, dtype=int)))
    2.000 [-0.912, 4.912]
    """
    G = int(how_many.sum())
    if G < MIN_CLUSTERS:
        return Estimate(value, reason=too_few(G))
    if np.isnan(left_out).any():
        return Estimate(value, reason="it is undefined without one of the clusters: no interval")
    low, high = bounds
    is_scaled = math.isfinite(high - low)
    z, middle = left_out, value
    if is_scaled:
        with np.errstate(divide="ignore", invalid="ignore"):
            *z, middle = scipy.special.logit((np.append(left_out, value) - low) / (high - low))
    if not np.isfinite([*z, middle]).all():
        bound = "the value lies at its bound, or would without one of the clusters: no interval"
        return Estimate(value, reason=bound)
    away = z - how_many @ z / G
    error = math.sqrt((G - 1) / G * float(how_many @ away**2))
    if error < NO_WIDTH:
        return Estimate(value, reason="no single cluster changes the value: no interval")
    half = float(scipy.special.stdtrit(G - 1, (1 + level) / 2)) * error
    pull = (G - 1) * (middle - float(how_many @ z) / G) if is_pulled else 0.0
    limits = middle + np.array([min(pull, 0) - half, max(pull, 0) + half])
    if is_scaled:
        limits = low + (high - low) * scipy.special.expit(limits)
    limits = np.clip(limits, low, high)
    return Estimate(value, float(limits[0]), float(limits[1]), f"jackknife-t over {G} clusters")


class ClusterCounts:
    """The kinds of non-empty clusters, and how many clusters are of each kind.

    `kinds` is (U, ...), distinct arrays of counts, and `how_many` is (U,). `total` is their sum,
    of the shape of one array.
    """

    def __init__(self, counts: FloatArray | IntArray) -> None:
        counts = np.asarray(counts, dtype=np.float64)
        rows = counts.reshape(len(counts), math.prod(counts.shape[1:]))
        rows = rows[rows.any(axis=1)]
        one_of_each, kind_of = distinct_rows(rows)
        self.kinds: FloatArray = rows[one_of_each].reshape(-1, *counts.shape[1:])
        self.how_many: IntArray = np.bincount(kind_of, minlength=len(one_of_each))
        self.clusters = len(rows)
        self.total: FloatArray = rows.sum(axis=0).reshape(counts.shape[1:])


def random_groups(clusters: Clusters, max_groups: int = MAX_GROUPS) -> Clusters:
    """The clusters in at most so many random groups, of nearly equal numbers.

    Groups of independent clusters are as independent as these, so they may be left out in their
    place; the estimated standard error then varies by about 1 / sqrt(2 groups), 1.6 % for 2,000.
    Wolter (2007), "Introduction to Variance Estimation", chapter 2.
    """
    if clusters.n <= max_groups:
        return clusters
    group_of = np.random.default_rng(0).permutation(clusters.n) % max_groups
    return Clusters(group_of[clusters.codes], max_groups)
