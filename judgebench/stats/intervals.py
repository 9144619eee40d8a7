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
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.polynomial.legendre import leggauss

from judgebench.records import Estimate
from judgebench.stats.arrays import (
    Clusters,
    FloatArray,
    IntArray,
    distinct_rows,
    mean_of_defined,
    ratio,
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


_WIDEST = 8.0  # standard errors: a level beyond is 1 in floats, and its interval everything
_NODES = 800  # exact to 1e-9 as long as a look adds a thousandth of what was there before it


def look_levels(shares: Sequence[float], level: float = 0.95) -> list[float]:
    """The level of the two-sided intervals at each look at a study, (looks,).

    A study is looked at when it holds these `shares` of its planned items, 0 < t_1 < ... <= 1, and
    may end at any look. A lower limit then lies above the truth at any look at all with probability
    alpha = (1 - level) / 2 at most, as that of a single look does.

    Lan and DeMets (1983): looks up to t have spent f(t) of alpha, in the manner of O'Brien-Fleming,

        f(t) = 2 (1 - Phi(z / sqrt(t))),  Phi(z) = 1 - alpha / 2,  so that f(1) = alpha.

    Standardized statistics Z_i are jointly normal with correlations sqrt(t_i / t_j). The bound b_k
    solves P(Z_1 < b_1, ..., Z_(k-1) < b_(k-1), Z_k >= b_k) = f(t_k) - f(t_(k-1)), by the recursion
    of Armitage, McPherson and Rowe (1969); the level is 1 - 2 (1 - Phi(b_k)). No later look changes
    it: give the shares that past looks really had. Raises ValueError unless the shares rise from
    above 0 to at most 1.

    >>> [round(level, 5) for level in look_levels([1 / 3, 2 / 3, 1])]
    [0.99979, 0.98798, 0.95374]
    """
    if not all(a < b <= 1 for a, b in zip((0.0, *shares), shares, strict=False)):
        raise ValueError(f"shares must rise from above 0 to at most 1; found {[*shares]}")
    z, levels, spent, before = float(-scipy.special.ndtri((1 - level) / 4)), [], 0.0, 0.0
    nodes, weights = leggauss(_NODES)
    # S_k = Z_k sqrt(t_k) is a sum of independent steps: `mass` is the probability near `at` of it
    # and of no bound having been reached.
    at, mass = np.zeros(1), np.ones(1)
    for share in shares:
        spend, step = (
            2 * float(scipy.special.ndtr(-z / math.sqrt(share))) - spent,
            math.sqrt(share - before),
        )
        bound = _bound(at, mass, step, spend, _WIDEST * math.sqrt(share))
        levels.append(1 - 2 * float(scipy.special.ndtr(-bound / math.sqrt(share))))
        half = (bound + _WIDEST * math.sqrt(share)) / 2
        reached = bound + half * (nodes - 1)
        density = np.exp(-(((reached[:, None] - at) / step) ** 2) / 2) @ mass
        at, mass = reached, density * half * weights / (step * math.sqrt(2 * math.pi))
        spent, before = spent + spend, share
    return levels


def _bound(at: FloatArray, mass: FloatArray, step: float, spend: float, most: float) -> float:
    """The bound that S_k passes with probability `spend`, by bisection in `-most`..`most`."""
    low, high = -most, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if mass @ scipy.special.ndtr((at - middle) / step) > spend
            else (low, middle)
        )
    return high


EXACT = "exact (Clopper-Pearson)"
_MOST_ITEMS = 1 << 40  # of a plan: what is searched


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Estimate:
    """The share successes / n with its exact binomial interval.

    Clopper and Pearson (1934), in the beta form: the limits are the alpha/2 quantile of
    Beta(x, n - x + 1) and the 1 - alpha/2 quantile of Beta(x + 1, n - x).
    The n trials must be independent. Undefined, with a reason, where n is 0.

    >>> found = clopper_pearson(8, 10)
    >>> round(found.low, 3), round(found.high, 3)
    (0.444, 0.975)
    """
    if n == 0:
        return Estimate(None, method=EXACT, reason="there is no item to count", level=level)
    low, high = exact_limits(successes, n, level)
    return Estimate(successes / n, low, high, method=EXACT, n=n, level=level)


def items_for_half_width(p: float, half_width: float, level: float = 0.95) -> int:
    """The smallest n whose exact interval around an observed share p has at most this half-width.

    Neither limit may then lie further than `half_width` from p. So that n is a smooth question,
    the limits are those of the beta distributions at x = p n, whole number or not: a guide for
    planning, and exact where p n is whole. Raises ValueError unless 0 <= p <= 1, half_width > 0.

    >>> items_for_half_width(0.8, 0.1)
    87
    """
    if not 0 <= p <= 1 or half_width <= 0:
        raise ValueError(f"needs 0 <= p <= 1 and half_width > 0; found {p} and {half_width}")

    def is_enough(n: int) -> bool:
        low, high = exact_limits(p * n, n, level)
        return max(p - low, high - p) <= half_width

    return 1 + bisect_left(range(1, _MOST_ITEMS), True, key=is_enough)


def exact_limits(x: float, n: float, level: float) -> tuple[float, float]:
    """The limits of Clopper and Pearson of x successes among n, whole numbers or not."""
    alpha = 1 - level
    low = scipy.special.betaincinv(x, n - x + 1, alpha / 2) if x > 0 else 0.0
    high = scipy.special.betaincinv(x + 1, n - x, 1 - alpha / 2) if x < n else 1.0
    return float(low), float(high)


CLUSTERED_EXACT = "exact (Clopper-Pearson) with the effective number of items"


@dataclass(frozen=True)
class SampledIntervals:
    """A share or difference and its limits in each of R samples, all (R,); NaN where no item
    informs it."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def clustered_share(
    x: FloatArray, n: FloatArray, how_many: FloatArray, level: float, *, one_sided: bool = False
) -> SampledIntervals:
    """p = X / N with the Clopper-Pearson limits of n* = N / deff items (Korn and Graubard, 1998).

    `x` (U,) counts successes and `n` (U,) items; n* is that of `effective_items`. As one stray item
    shows hardly more of how clusters differ, no limit is nearer than that of a share of 0, or of 1:
    there the interval has one open side, which may take all of 1 - level where `one_sided`. With
    one item a cluster these are the plain limits.
    """
    X, N, G = how_many @ x, how_many @ n, how_many @ (n > 0)
    p, n_star = ratio(X, N), effective_items(x, n, how_many)
    x_star, alpha = p * n_star, 1 - level
    open_side = alpha if one_sided else alpha / 2
    with np.errstate(invalid="ignore"):
        low = np.where(X > 0, scipy.special.betaincinv(x_star, n_star - x_star + 1, alpha / 2), 0.0)
        sure = np.where(X > 0, 1 - alpha / 2, 1 - open_side)
        high = np.where(X < N, scipy.special.betaincinv(x_star + 1, n_star - x_star, sure), 1.0)
        nearest = open_side ** ratio(1, G)
    none = N == 0
    low, high = np.minimum(low, nearest), np.maximum(high, 1 - nearest)
    return SampledIntervals(p, np.where(none, np.nan, low), np.where(none, np.nan, high))


def effective_items(x: FloatArray, n: FloatArray, how_many: FloatArray) -> FloatArray:
    """n* = N / deff (R,): as many independent items would tell as much about the share X / N.

    deff is the variance of the ratio with whole clusters as units over that of N independent
    items, p (1 - p) / (N - 1): both are estimates without bias, so that one item a cluster gives 1.
    It is taken as 1 where it is less. A share of 0 or 1 shows no variance: n* is then the number of
    clusters that hold an item.

    >>> effective_items(np.array([1.0, 0.0]), np.ones(2), np.array([[4.0, 9.0]]))
    array([13.])
    """
    X, N, G = how_many @ x, how_many @ n, how_many @ (n > 0)
    p = ratio(X, N)
    scatter = ((x - p[:, None] * n) ** 2 * how_many).sum(axis=1)
    V = ratio(scatter, N**2) * ratio(G, G - 1)
    deff = np.fmax(ratio(V * (N - 1), p * (1 - p)), 1.0)
    return np.where((X <= 0) | (X >= N), G, N / deff)


def exact_share(x: FloatArray, n: FloatArray, how_many: FloatArray, level: float) -> Estimate:
    """The share of one sample as an Estimate: `how_many` is (U,). Undefined where there is no item.

    >>> print(exact_share(np.array([1.0, 0.0]), np.ones(2), np.array([4.0, 9.0]), 0.95))
    0.308 [0.091, 0.614]
    """
    items = round(float(how_many @ n))
    if items == how_many @ (n > 0):
        return clopper_pearson(round(float(how_many @ x)), items, level)
    share = clustered_share(x, n, how_many[None], level)
    value, low, high = (float(each[0]) for each in (share.value, share.low, share.high))
    return Estimate(value, low, high, CLUSTERED_EXACT, items, level=level)


PRECISION = 0.10  # the half-width of an interval from which on items are enough


def more_for_precision(x: FloatArray, n: FloatArray, how_many: FloatArray) -> int:
    """The number of further items like these that would bring the exact 95 % interval of the share
    of one sample, `how_many` (U,), within PRECISION of it: 0 where it is. Raises ValueError
    without items.

    >>> more_for_precision(np.array([1.0, 0.0]), np.ones(2), np.array([4.0, 9.0]))
    88
    """
    items = float(how_many @ n)
    enough = items_for_half_width(float(how_many @ x) / items, PRECISION)
    effective = float(effective_items(x, n, how_many[None])[0])
    return max(0, math.ceil(enough * items / effective) - round(items))


SMOOTHED_T = "smoothed cluster-robust t interval, corrected for skewness"
_ENOUGH = 50  # clusters, from which on what they show of themselves counts
_BISECTIONS = 40
_TINY = 1e-12  # a variance that is none
_MOST_SHIFT = 0.5  # of half the interval; the expansion holds for moderate skewness only


def mean_difference(
    x: FloatArray, n: FloatArray, how_many: FloatArray, level: float, *, balanced: bool
) -> SampledIntervals:
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
    matched proportions". From 50 clusters on, with whole clusters of several items, the two halves
    have the size of the differences that clusters show, sum x^2 / sum |x|, if that is less.
    """
    if not balanced:
        x, n = x.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True)
    X, N, G = how_many @ x, how_many @ n, how_many @ (n > 0)
    value = mean_of_defined(ratio(X, N))
    K = (N > 0).sum(axis=1, keepdims=True)
    size = ratio(N, G)  # of an average cluster
    shown = ratio(how_many @ x**2, how_many @ np.abs(x))
    size = np.where((G >= _ENOUGH) & (shown < size), shown, size)
    N_star = np.where(N > 0, N + size, np.nan)
    D = ratio(X, N_star)
    z = (x - D[:, None, :] * n) / (K * N_star)[:, None, :]
    z = np.where(np.isnan(z), 0.0, z)
    added = ((1 - D) ** 2 + (1 + D) ** 2) / 2 * (size / (K * N_star)) ** 2
    V_r = np.einsum("ru,ruk->rk", how_many, z**2) + added
    V = np.einsum("ru,ru->r", how_many, z.sum(axis=2) ** 2) + np.nansum(added, axis=1)
    df = ratio(np.nansum(V_r, axis=1) ** 2, np.nansum(V_r**2 / G.clip(min=1), axis=1))
    t = np.abs(scipy.special.stdtrit(df, (1 - level) / 2))
    skew = ratio(np.einsum("ru,ru->r", how_many, z.sum(axis=2) ** 3), V**1.5)
    shift = np.clip(skew * (2 * t**2 + 1) / 6, -_MOST_SHIFT * t, _MOST_SHIFT * t)
    middle = mean_of_defined(D) + shift * np.sqrt(V)
    half = t * np.sqrt(V)
    return SampledIntervals(value, np.maximum(middle - half, -1), np.minimum(middle + half, 1))


def paired_difference(
    x: FloatArray, n: FloatArray, how_many: FloatArray, level: float
) -> SampledIntervals:
    """`mean_difference`, not balanced, with limits at least as far out as those of the score
    interval of Tango (1998), "Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design", section 3.

    Of G clusters with the mean difference D, and the mean square m of a cluster's difference in
    units of an average cluster, a = G (m + D) / 2 are won by one side and b = G (m - D) / 2 by the
    other; a difference d is in the interval unless

        |a - b - G d| > z sqrt(G (2 q + d (1 - d)))

    with q the probability of b that is most likely under d.
    """
    found = mean_difference(x, n, how_many, level, balanced=False)
    x, n = x.sum(axis=1), n.sum(axis=1)
    G, N, z = how_many @ (n > 0), how_many @ n, -scipy.special.ndtri((1 - level) / 2)
    square = ratio((how_many @ x**2) * G, N**2)
    won, lost = (np.maximum(G * (square + sign * found.value) / 2, 0) for sign in (1, -1))
    low, high = _lowest(won, lost, G, z), -_lowest(lost, won, G, z)
    return SampledIntervals(found.value, np.fmin(found.low, low), np.fmax(found.high, high))


def _lowest(x: FloatArray, y: FloatArray, n: FloatArray, z: float) -> FloatArray:
    """The lower limit of (x - y) / n by bisection (R,)."""
    low, high = np.full_like(n, -1.0), ratio(x - y, n)
    for _ in range(_BISECTIONS):
        d = (low + high) / 2
        b = -x - y + (2 * n - x + y) * d
        root = np.sqrt(np.maximum(b**2 + 8 * n * y * d * (1 - d), 0))
        variance = 2 * ratio(root - b, 4 * n) + d * (1 - d)
        is_out = x - y - n * d > z * np.sqrt(np.maximum(n * variance, _TINY))
        low, high = np.where(is_out, d, low), np.where(is_out, high, d)
    return high


_VARIANCE_ROUNDING = 1e-9  # what rounding leaves of a variance, as a share of the mean square


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
    spread = np.sqrt(np.where(spread > _VARIANCE_ROUNDING * squares, spread, 0))
    r = ratio(products, spread[..., :, None] * spread[..., None, :])
    first, second = np.triu_indices(total.shape[-1], 1)
    return np.clip(r[..., first, second], -1, 1)
