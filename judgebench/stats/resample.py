"""The cluster bootstrap of any statistic that is a function of additive counts.

A resample of whole clusters is then a sum of their counts, each times how often it was drawn;
no row is ever copied or labelled again. How often each of a few clusters is drawn is kept, for
all judges and metrics to share. Many clusters are grouped into kinds of equal counts: only how
many of each kind are drawn matters, which is multinomial. 100,000 one-item clusters of a 4-label
confusion matrix are 16 kinds, so a resample is a draw of 16 numbers.

Scores that are not counts make every cluster unlike every other, so that kinds save nothing:
a resample of a million clusters is a draw of a million numbers. `random_groups` makes them few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.intervals import EXACT, clopper_pearson

MOST_UNDEFINED = 0.1  # with a larger share of undefined resamples no interval is given
NO_WIDTH = 1e-9  # what rounding leaves of an interval whose limits are equal
_ROUNDING = 1e-9  # what rounding changes in a sum, as a share of its terms
_CHUNK = 1 << 22  # multiplicities drawn at once: 32 MiB
_FEW = 1 << 18  # multiplicities of which many are kept: 2 MiB


@dataclass(frozen=True)
class Resampling:
    """The number of resamples, their seed, and the level of the interval."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95


DEFAULT_RESAMPLING = Resampling()


Bounds = tuple[float, float]  # the least and the largest value of a statistic
OF_CORRELATION: Bounds = (-1.0, 1.0)


@dataclass(frozen=True)
class Statistic:
    """A function of counts that add up over clusters.

    `formula` maps counts (..., *shape) to (...), NaN where it is undefined, without warnings.
    `undefined` says of one array of counts why it is undefined, or '' where it is defined. Of a
    sample it may say so also where the formula, which is all that resamples need, has a value.
    `is_proportion` marks a share of independent yes-or-no items, for which an exact binomial
    interval is at hand; `bounds` are those of a statistic whose interval is the symmetric one.
    """

    formula: Callable[[FloatArray], FloatArray]
    undefined: Callable[[FloatArray], str]
    is_proportion: bool = False
    bounds: Bounds | None = None


def where_empty(reason: str) -> Callable[[FloatArray], str]:
    """An `undefined` that gives `reason` for counts that are all 0."""
    return lambda counts: "" if counts.any() else reason


def explained(
    formula: Callable[[FloatArray], FloatArray], why: Callable[[FloatArray], str]
) -> Statistic:
    """The statistic that is undefined where its formula is NaN, for the reason `why`."""

    def undefined(counts: FloatArray) -> str:
        return why(counts) if np.isnan(formula(counts)) else ""

    return Statistic(formula, undefined)


def cluster_bootstrap(
    counts: FloatArray | IntArray | ClusterCounts,
    statistic: Statistic,
    resampling: Resampling = DEFAULT_RESAMPLING,
    *,
    n: int,
    n_missing: int = 0,
) -> Estimate:
    """`statistic` of the summed counts, with a percentile interval over resampled clusters.

    `counts` is (G, ...), one array of counts a cluster; empty clusters are left out. Several
    statistics of the same counts are faster where these are made a ClusterCounts first. `n` and
    `n_missing` go into the Estimate as they are. Efron and Tibshirani (1993), section 13.3, with
    whole clusters as the sampling unit. Undefined resamples are left out, and `method` says how
    many. There is no interval, and `reason` says why, with one cluster, with too many undefined
    resamples, or where all resamples agree; a proportion of 0 or 1 then has the exact binomial
    interval over the clusters that inform it.

    >>> share = Statistic(lambda c: c[..., 0] / c.sum(axis=-1), lambda c: "")
    >>> cluster_bootstrap(np.array([[1, 1], [2, 0], [0, 2], [2, 0]]), share, n=8).value
    0.625
    """
    sample = counts if isinstance(counts, ClusterCounts) else ClusterCounts(counts)
    total = sample.total
    value = float(statistic.formula(total))
    undefined = statistic.undefined(total)
    if undefined or np.isnan(value):
        return Estimate(None, n=n, n_missing=n_missing, reason=undefined, level=resampling.level)
    interval = _interval(value, sample, statistic, resampling)
    return replace(interval, value=value, n=n, n_missing=n_missing, level=resampling.level)


def bootstrap_replicates(
    sample: ClusterCounts, statistic: Statistic, resampling: Resampling = DEFAULT_RESAMPLING
) -> FloatArray:
    """The statistic of every resample (resamples,), NaN where it is undefined."""
    return statistic.formula(_resampled_totals(sample, resampling))


def _interval(
    value: float, sample: ClusterCounts, statistic: Statistic, resampling: Resampling
) -> Estimate:
    """The interval and its method, or the reason why there is none."""
    if sample.clusters < 2:
        return Estimate(value, reason="there is one cluster only, and resampling needs several")

    # An interval without width would claim certainty.
    if statistic.is_proportion and abs(value - round(value)) < NO_WIDTH:
        informing = int(sample.how_many[~np.isnan(statistic.formula(sample.kinds))].sum())
        exact = clopper_pearson(round(value) * informing, informing, resampling.level)
        how = f"{EXACT} over {informing} clusters, since every resample gives {value:.0f}"
        return replace(exact, method=how)

    replicates = bootstrap_replicates(sample, statistic, resampling)
    return bootstrap_interval(value, replicates, sample.clusters, resampling, statistic.bounds)


def bootstrap_interval(
    value: float, replicates: FloatArray, clusters: int, resampling: Resampling,
    bounds: Bounds | None = None,
) -> Estimate:  # fmt: skip
    """The value with the percentile interval of the statistic's `bootstrap_replicates`, NaN where
    one is undefined, over so many clusters; or without one and the reason why. Limits that leave
    the value out are moved to it.

    With `bounds` the interval is symmetric about the value, and cut there: value ± h, where a share
    `level` of the replicates is no further than h from the value. Hall (1988), "On symmetric
    bootstrap confidence intervals". It is that of a correlation of means, which noise pulls to one
    side: a resample is pulled once more, so that percentile limits can leave out the value itself,
    and hold the truth far too seldom (`benchmarks/decisions.py --correlations`).
    """
    defined = replicates[~np.isnan(replicates)]
    undefined = len(replicates) - len(defined)
    if undefined > MOST_UNDEFINED * len(replicates):
        reason = f"{undefined} of {len(replicates)} resamples are undefined"
        return Estimate(value, reason=f"{reason}, too many for an interval")
    if bounds:
        half = np.quantile(np.abs(defined - value), resampling.level)
        low, high = max(value - half, bounds[0]), min(value + half, bounds[1])
    else:
        tail = (1 - resampling.level) / 2
        low, high = np.quantile(defined, [tail, 1 - tail])
        low, high = min(low, value), max(high, value)
    if high - low < NO_WIDTH:
        return Estimate(value, reason="every resample gives the same value: no interval")
    how = (
        f"{'symmetric' if bounds else 'percentile'} bootstrap over {clusters} clusters, "
        f"{len(replicates)} resamples, seed {resampling.seed}"
    )
    if undefined:
        how += f", {undefined} undefined resamples left out"
    return Estimate(value, float(low), float(high), how)


class ClusterCounts:
    """The kinds of non-empty clusters, and how many clusters are of each kind.

    `kinds` is (U, ...), distinct arrays of counts, and `how_many` is (U,). `total` is their sum,
    of the shape of one array. Hashable by content,
    so that resamples can be kept.
    """

    def __init__(self, counts: FloatArray | IntArray) -> None:
        counts = np.asarray(counts, dtype=np.float64)
        rows = counts.reshape(len(counts), math.prod(counts.shape[1:]))
        # Equal rows have equal random projections, and to sort those is far faster than np.unique
        # by rows is. An empty row's is 0.
        key = rows @ np.random.default_rng(0).random(rows.shape[1])
        rows, key = rows[key != 0], key[key != 0]
        keys, how_many = np.unique(key, return_counts=True)
        one_of_each = np.zeros(len(keys), dtype=np.int64)
        one_of_each[np.searchsorted(keys, key)] = np.arange(len(rows))
        kinds, total = rows[one_of_each], rows.sum(axis=0)
        if (np.abs(how_many @ kinds - total) > _ROUNDING * np.abs(rows).sum(axis=0)).any():
            kinds, how_many = rows, np.ones(len(rows), dtype=np.int64)  # unlike rows shared a key
        self.kinds: FloatArray = kinds.reshape(len(kinds), *counts.shape[1:])
        self.how_many: IntArray = how_many
        self.clusters = len(rows)
        self.total: FloatArray = total.reshape(counts.shape[1:])
        self._key = (self.kinds.shape, self.kinds.tobytes(), self.how_many.tobytes())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterCounts) and self._key == other._key


@lru_cache(maxsize=4)  # the statistics of one judge and metric share their counts
def _resampled_totals(sample: ClusterCounts, resampling: Resampling) -> FloatArray:
    """The summed counts of every resample: (resamples, ...)."""
    G = sample.clusters
    rows = sample.kinds.reshape(len(sample.kinds), -1)
    if G * resampling.resamples <= _CHUNK:
        totals = cluster_multiplicities(G, resampling) @ rows.repeat(sample.how_many, axis=0)
    else:
        chunks = _multiplicities(sample.how_many, resampling)
        totals = np.concatenate([multiplicities @ rows for multiplicities in chunks])
    totals.flags.writeable = False
    return totals.reshape(-1, *sample.kinds.shape[1:])


def cluster_multiplicities(G: int, resampling: Resampling) -> FloatArray:
    """The number of times each of a few clusters is drawn: (resamples, G)."""
    draws = _draws_of_few if G * resampling.resamples <= _FEW else _draws
    return draws(G, resampling)


@lru_cache(maxsize=2)  # all judges and metrics with as many clusters share these draws
def _draws(G: int, resampling: Resampling) -> FloatArray:
    return next(_multiplicities(np.ones(G, dtype=np.int64), resampling))


_draws_of_few = lru_cache(maxsize=64)(_draws.__wrapped__)  # parts of a study differ in their number


def _multiplicities(how_many: IntArray, resampling: Resampling) -> Iterator[FloatArray]:
    """The number of times each kind of cluster is drawn, in chunks of (some resamples, U)."""
    rng = np.random.default_rng(resampling.seed)
    G = int(how_many.sum())
    chunk = max(1, _CHUNK // len(how_many))
    for start in range(0, resampling.resamples, chunk):
        size = min(chunk, resampling.resamples - start)
        yield rng.multinomial(G, how_many / G, size=size).astype(np.float64)


MOST_GROUPS = 2000


def random_groups(clusters: Clusters, seed: int = 0) -> Clusters:
    """The clusters in at most MOST_GROUPS random groups.

    Up to MOST_GROUPS clusters stay as they are. More are dealt at random into groups of nearly
    equal numbers. Groups of independent clusters are as independent as these, so they may be
    resampled in their place; the estimated standard error then varies by about
    1 / sqrt(2 MOST_GROUPS), 1.6 %. Wolter (2007), "Introduction to Variance Estimation", chapter 2.
    """
    if clusters.n <= MOST_GROUPS:
        return clusters
    group_of = np.random.default_rng(seed).permutation(clusters.n) % MOST_GROUPS
    return Clusters(group_of[clusters.codes], MOST_GROUPS)


def grouping_told(estimate: Estimate, n_clusters: int) -> Estimate:
    """The estimate, with a method that says so where its clusters are random groups."""
    if n_clusters <= MOST_GROUPS or estimate.low is None:
        return estimate
    return replace(
        estimate, method=f"{estimate.method}; these are random groups of {n_clusters:,} clusters"
    )
