"""How strongly scores go with human severities: pooled, within items, and over systems.

Four coefficients: Pearson's r, Spearman's rho, Kendall's tau_b, and pairwise accuracy with tie
calibration. Each is a function of how often every cluster is drawn, weights (R, G): the sample is
one row of ones, a resample a row of multiplicities, and when two scorers change places at random
each cluster is drawn once, from one or from the other. So the intervals, the difference of two
scorers and its test share their draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from judgebench.records import Estimate
from judgebench.stats import ranks
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.paired import permutation_test
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    Resampling,
    cluster_multiplicities,
    percentile_interval,
    random_groups,
)

Coefficient = Literal["pearson", "spearman", "kendall", "pairwise"]
Level = Literal["pooled", "within", "system"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
LEVELS: tuple[Level, ...] = get_args(Level)

NO_PAIR = "no item has both a score and a human severity"
CONSTANT = "the scores or the human severities do not vary"
NO_GROUP = "no group has two items whose scores and human severities vary"
FEW_SYSTEMS = "fewer than 3 systems have scores and human severities"
_NO_TEST = "pooled pairwise accuracies have no test by changing places"

_CELLS = 1 << 22  # numbers held at once: 32 MiB
_MOST_PAIRS = 1 << 18  # pairs from which the ties are calibrated
_SHUFFLES = 20
_ROUNDING, _DIGITS = 1e-9, 9  # what rounding changes in a difference of standardized scores
Weighted = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Rated:
    """One scorer beside the humans: `scores` and `human` (items,), NaN where there is none, the
    items' `groups` (an item or question, answered by several systems), and the number of each
    item's system, -1 where there is none. Higher scores should go with higher severities."""

    scores: FloatArray
    human: FloatArray
    groups: Clusters
    systems: IntArray | None = None

    @property
    def complete(self) -> Rated:
        """The items that have a score and a human severity, in the groups that have one."""
        both = ~(np.isnan(self.scores) | np.isnan(self.human))
        systems = None if self.systems is None else self.systems[both]
        groups = self.groups[both].occurring()
        return Rated(self.scores[both], self.human[both], groups, systems)


@dataclass(frozen=True)
class Association:
    """A coefficient at one level. The estimate's `n` counts items (pooled), groups that vary
    (within) or systems; `n_missing` what lacks a score or severity, or groups that do not vary.

    `chance` is what a scorer that knows nothing reaches (pairwise accuracy only; that of a
    correlation is 0), and `tie` the largest difference of two scores that counts as a tie.
    `replicates` (R,) are its values over resamples."""

    level: Level
    coefficient: Coefficient
    estimate: Estimate
    chance: float | None = None
    tie: float | None = None
    replicates: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)


@dataclass(frozen=True)
class Difference:
    """The coefficient of the second scorer minus that of the first, over the items that both
    scored. `p` is that of the permutation test and `williams` that of Williams' test (Pearson's r
    over systems); None where there is none."""

    estimate: Estimate
    p: float | None = None
    williams: float | None = None


def associations(
    rated: Rated, resampling: Resampling = DEFAULT_RESAMPLING
) -> Mapping[tuple[Level, Coefficient], Association]:
    """Every coefficient at every level; without `systems` not over systems.

    Kendall (1945) for tau_b. Pairwise accuracy is (C + T_hm) / pairs, C the pairs ordered as by the
    humans and T_hm those that both hold level, where scores are level that differ by at most `tie`,
    which is chosen for the best accuracy: Deutsch, Foster and Freitag (2023), "Ties Matter:
    Meta-Evaluating Modern Metrics with Pairwise Accuracy and Tie Calibration". Since it is chosen
    on the sample, chance level is the mean over shuffled scores for which it is chosen likewise.
    Over systems, mean scores are compared with mean severities, and no tie is calibrated (Kocmi et
    al. 2021). Resamples keep the tie of the sample.

    >>> x, y = np.array([1.0, 2, 3, 5]), np.array([0.0, 0, 1, 2])
    >>> found = associations(Rated(x, y, Clusters(np.arange(4), 4)))
    >>> round(found["pooled", "kendall"].estimate.value, 3)
    0.913
    """
    levels = [level for level in LEVELS if level != "system" or rated.systems is not None]
    return {
        (level, coefficient): association(rated, level, coefficient, resampling)
        for level, coefficient in product(levels, COEFFICIENTS)
    }


def association(
    rated: Rated,
    level: Level,
    coefficient: Coefficient,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Association:
    """One coefficient at one level, with a percentile interval over resampled groups."""
    whole = rated.complete
    found = _prepared(whole, level, coefficient)
    n, missing = found.n, found.n_missing
    if level == "pooled":
        missing = len(rated.scores) - n
    if found.reason:
        none = Estimate(None, n=n, n_missing=missing, reason=found.reason, level=resampling.level)
        return Association(level, coefficient, none)
    value = float(found.of(np.ones((1, found.clusters)))[0])
    replicates = found.of(cluster_multiplicities(found.clusters, resampling))
    if found.clusters < 2:
        interval = Estimate(value, reason="there is one group only, and resampling needs several")
    else:
        interval = percentile_interval(value, replicates, found.clusters, resampling)
    estimate = replace(interval, n=n, n_missing=missing, level=resampling.level)
    tie = None if found.tie is None else found.tie * float(whole.scores.std())
    return Association(level, coefficient, estimate, found.chance, tie, replicates)


@dataclass(frozen=True)
class _Prepared:
    """A coefficient as a function of weights (R, clusters), and what is reported beside it."""

    of: Weighted
    clusters: int
    n: int
    n_missing: int = 0
    chance: float | None = None
    tie: float | None = None
    reason: str = ""


def _prepared(whole: Rated, level: Level, coefficient: Coefficient) -> _Prepared:
    if not len(whole.scores):
        return _none(0, NO_PAIR)
    scaled = replace(whole, scores=_standardized(whole.scores), human=_standardized(whole.human))
    if level == "pooled":
        return _pooled(scaled, coefficient)
    if level == "within":
        return _within(scaled, coefficient)
    return _over_systems(scaled, coefficient)


def _none(n: int, reason: str, n_missing: int = 0) -> _Prepared:
    return _Prepared(lambda w: np.full(len(w), np.nan), 1, n, n_missing, reason=reason)


def _standardized(x: FloatArray) -> FloatArray:
    """Minus the mean, over the standard deviation; 0 where all are the same."""
    if not len(x) or x.max() == x.min():
        return np.zeros(len(x))
    centred = (x - x.mean()) / np.abs(x - x.mean()).max()
    return np.asarray(centred / centred.std())


def _dense(x: FloatArray) -> IntArray:
    return np.unique(x, return_inverse=True)[1].astype(np.int32)


# Pooled ---------------------------------------------------------------------------------------


def _pooled(rated: Rated, coefficient: Coefficient) -> _Prepared:
    x, y = rated.scores, rated.human
    clusters, n = random_groups(rated.groups), len(x)
    if coefficient == "pairwise":
        if n < 2:
            return _none(n, "pairs need two items")
        tie, chance = _calibrated(_random_pairs(n), x, y)
        return _Prepared(_accuracy(x, y, clusters, tie), clusters.n, n, 0, chance, tie)
    if x.max() == x.min() or y.max() == y.min():
        return _none(n, CONSTANT)
    of = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}[coefficient]
    return _Prepared(of(x, y, clusters), clusters.n, n)


def _pearson(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    moments = clusters.sums(np.ones(len(x)), x, y, x * x, y * y, x * y)

    def of(w: FloatArray) -> FloatArray:
        n, sx, sy, xx, yy, xy = (w @ moments).T
        vx, vy = n * xx - sx**2, n * yy - sy**2
        varies = (vx > _ROUNDING * n * xx) & (vy > _ROUNDING * n * yy)
        return np.clip(
            ratio(n * xy - sx * sy, np.where(varies, np.sqrt(np.abs(vx * vy)), 0)), -1, 1
        )

    return of


def _spearman(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Pearson's r of the mid-ranks in each resample."""
    kx, ky = _dense(x), _dense(y)

    def ranked(w: FloatArray, kinds: IntArray) -> FloatArray:
        """The weighted mid-rank of every item, from the middle (r, items)."""
        held = _by_kind(w, kinds)
        middle = held.cumsum(axis=1) - (held + held.sum(axis=1, keepdims=True)) / 2
        return np.asarray(middle[:, kinds])

    def some(w: FloatArray) -> FloatArray:
        rx, ry = ranked(w, kx), ranked(w, ky)
        spread = (w * rx**2).sum(axis=1) * (w * ry**2).sum(axis=1)
        return np.clip(ratio((w * rx * ry).sum(axis=1), np.sqrt(spread)), -1, 1)

    def of(w: FloatArray) -> FloatArray:
        rows = max(1, _CELLS // len(x))
        parts = [some(w[i : i + rows][:, clusters.codes]) for i in range(0, len(w), rows)]
        return np.concatenate(parts)

    return of


def _by_kind(w: FloatArray, kinds: IntArray) -> FloatArray:
    """The weights (r, items) summed over the items of every kind (r, kinds)."""
    order = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    return np.asarray(np.add.reduceat(w[:, order], starts, axis=1))


def _kendall(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    kx, ky = _dense(x), _dense(y)
    agree = _pair_sums(
        lambda rows: np.sign(kx[rows, None] - kx) * np.sign(ky[rows, None] - ky), clusters
    )
    size = clusters.sums(np.ones(len(kx)))[:, 0]
    held = [clusters.table(k, int(k.max()) + 1) for k in (kx, ky)]  # (clusters, kinds)

    def of(w: FloatArray) -> FloatArray:
        pairs = (w @ size) ** 2
        untied = [pairs - ((w @ h) ** 2).sum(axis=1) for h in held]
        return np.clip(ratio(_quadratic(w, agree), np.sqrt(untied[0] * untied[1])), -1, 1)

    return of


def _accuracy(x: FloatArray, y: FloatArray, clusters: Clusters, tie: float) -> Weighted:
    """Pairs of an item with its own copy are left out."""
    correct = _pair_sums(
        lambda rows: _is_correct(x[rows, None] - x, y[rows, None] - y, tie), clusters
    )
    size = clusters.sums(np.ones(len(x)))[:, 0]
    correct[np.diag_indices(len(size))] -= size  # an item with itself is level in both

    def of(w: FloatArray) -> FloatArray:
        return ratio(_quadratic(w, correct), (w @ size) ** 2 - w**2 @ size)

    return of


def _is_correct(dx: FloatArray, dy: FloatArray, tie: float) -> NDArray[np.bool_]:
    return np.asarray(np.sign(np.where(np.abs(dx) <= tie + _ROUNDING, 0, dx)) == np.sign(dy))


def _quadratic(w: FloatArray, K: FloatArray) -> FloatArray:
    return np.asarray(((w @ K) * w).sum(axis=1))


def _pair_sums(of_rows: Callable[[slice], NDArray[np.generic]], clusters: Clusters) -> FloatArray:
    """What all pairs of items add up to, by the clusters of both (clusters, clusters)."""
    order = np.argsort(clusters.codes, kind="stable")
    starts = np.flatnonzero(np.diff(clusters.codes[order], prepend=-1))
    found = np.zeros((clusters.n, clusters.n))
    step = max(1, _CELLS // len(order))
    for start in range(0, len(order), step):
        rows = slice(start, start + step)
        block = of_rows(rows).astype(np.float64)[:, order]
        np.add.at(found, clusters.codes[rows], np.add.reduceat(block, starts, axis=1))
    return found


# Ties -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pairs:
    """The items `first` and `second` of pairs, and what each pair weighs; `shuffled` draws an order
    of the items by which chance hands out the scores."""

    first: IntArray
    second: IntArray
    weight: FloatArray
    shuffled: Callable[[np.random.Generator], IntArray]


def _random_pairs(n: int) -> _Pairs:
    """All pairs of n items, or many of them drawn at random."""
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        rng = np.random.default_rng(0)
        first = rng.integers(0, n, _MOST_PAIRS)
        second = (first + rng.integers(1, n, _MOST_PAIRS)) % n
    return _Pairs(first, second, np.ones(len(first)), lambda rng: rng.permutation(n))


def _calibrated(pairs: _Pairs, x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """The tie of the best accuracy, and the mean of the best accuracies of shuffled scores."""
    dy = y[pairs.first] - y[pairs.second]

    def best(x: FloatArray) -> tuple[float, float]:
        dx = x[pairs.first] - x[pairs.second]
        order = np.argsort(np.abs(dx), kind="stable")
        size, w = np.abs(dx)[order].round(_DIGITS), pairs.weight[order]
        level, right = (dy == 0)[order], (dx * dy > 0)[order] & (size > 0)
        accuracy = (w @ right + np.cumsum(w * (level * 1.0 - right))) / w.sum()
        last = np.diff(size, append=np.inf) > 0  # pairs of one difference change together
        candidates = np.append(0.0, size[last])
        values = np.append(w @ (right | level & (size == 0)) / w.sum(), accuracy[last])
        place = int(np.argmax(values))
        return float(candidates[place]), float(values[place])

    rng = np.random.default_rng(0)
    by_chance = [best(x[pairs.shuffled(rng)])[1] for _ in range(_SHUFFLES)]
    return best(x)[0], float(np.mean(by_chance))


# Within groups --------------------------------------------------------------------------------


def _within(rated: Rated, coefficient: Coefficient) -> _Prepared:
    values, tie, chance = _of_groups(rated, coefficient)
    varied = int((~np.isnan(values)).sum())
    if not varied:
        return _none(0, NO_GROUP, len(values))
    clusters = random_groups(Clusters(np.arange(len(values)), len(values)))
    defined = ~np.isnan(values)
    sums = clusters.sums(np.where(defined, values, 0), defined)

    def of(w: FloatArray) -> FloatArray:
        total, n = (w @ sums).T
        return ratio(total, n)

    return _Prepared(of, clusters.n, varied, len(values) - varied, chance, tie)


def _of_groups(
    rated: Rated, coefficient: Coefficient
) -> tuple[FloatArray, float | None, float | None]:
    """The coefficient in every group (groups,), NaN where it does not vary; tie and chance."""
    blocks = _blocks(rated.groups)
    tie = chance = None
    if coefficient == "pairwise" and blocks:
        tie, chance = _calibrated(_pairs_within(blocks, rated.groups), rated.scores, rated.human)
    values = np.full(rated.groups.n, np.nan)
    for rows in blocks:
        x, y = rated.scores[rows], rated.human[rows]
        values[rated.groups.codes[rows[:, 0]]] = of_rows(x, y, coefficient, tie or 0.0)
    return values, tie, chance


def _blocks(groups: Clusters) -> list[IntArray]:
    """The rows of all groups of one size (groups, size), for every size from 2."""
    order = np.argsort(groups.codes, kind="stable")
    size = np.bincount(groups.codes, minlength=groups.n)
    start = np.cumsum(size) - size
    return [
        order[start[size == k][:, None] + np.arange(k)] for k in np.unique(size).tolist() if k > 1
    ]


def _pairs_within(blocks: list[IntArray], groups: Clusters) -> _Pairs:
    """The pairs of every group, which weigh 1 together."""
    parts = []
    for rows in blocks:
        a, b = np.triu_indices(rows.shape[1], 1)
        first, second = rows[:, a].ravel(), rows[:, b].ravel()
        parts.append((first, second, np.full(len(first), 1 / len(a))))
    first, second, weight = (np.concatenate(part) for part in zip(*parts, strict=True))

    def shuffled(rng: np.random.Generator) -> IntArray:
        places = np.empty(len(groups), dtype=np.int64)
        by_group = np.argsort(groups.codes, kind="stable")
        places[by_group] = np.lexsort((rng.random(len(groups)), groups.codes))
        return places

    return _Pairs(first, second, weight, shuffled)


def of_rows(x: FloatArray, y: FloatArray, coefficient: Coefficient, tie: float = 0.0) -> FloatArray:
    """The coefficient of each row (...,) of x and y (..., k); NaN where one of them is level.

    Differences of at most `ranks.TIE` are level, as in `ranks`; pairwise accuracy is always
    defined.
    """
    if coefficient == "kendall":
        return ranks.tau_b(x, y)
    if coefficient == "spearman":
        return ranks.spearman(x, y)
    if coefficient == "pairwise":
        i, j = np.triu_indices(x.shape[-1], 1)
        tie = max(tie, ranks.TIE)
        dy = y[..., i] - y[..., j]
        correct = _is_correct(x[..., i] - x[..., j], np.where(np.abs(dy) <= ranks.TIE, 0, dy), tie)
        return np.asarray(correct.mean(axis=-1))
    dx, dy = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
    varies = (np.ptp(x, axis=-1) > ranks.TIE) & (np.ptp(y, axis=-1) > ranks.TIE)
    spread = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.clip(ratio((dx * dy).sum(axis=-1), np.where(varies, spread, 0)), -1, 1)


# Over systems ---------------------------------------------------------------------------------


def _over_systems(rated: Rated, coefficient: Coefficient) -> _Prepared:
    if rated.systems is None:
        return _none(0, "no systems are known")
    named = rated.systems >= 0
    found, systems = np.unique(rated.systems[named], return_inverse=True)
    S = len(found)
    if S < 3:
        return _none(S, FEW_SYSTEMS)
    clusters = random_groups(rated.groups[named].occurring())
    sums = np.stack(
        [
            clusters.table(systems, S, weights)
            for weights in (None, rated.scores[named], rated.human[named])
        ],
        axis=-1,
    )  # (clusters, S, 3)

    def means(w: FloatArray) -> FloatArray:
        n, x, y = np.moveaxis(np.tensordot(w, sums, axes=1), -1, 0)
        return np.stack([ratio(x, n), ratio(y, n)])

    def of(w: FloatArray) -> FloatArray:
        x, y = means(w)
        lacking = np.isnan(x).any(axis=-1)
        return np.where(lacking, np.nan, of_rows(np.nan_to_num(x), np.nan_to_num(y), coefficient))

    x, y = means(np.ones((1, clusters.n)))
    if np.isnan(of_rows(x, y, coefficient)[0]):
        return _none(S, CONSTANT)
    chance = None
    if coefficient == "pairwise":
        q, t = (1 - np.abs(np.sign(v[0][:, None] - v[0])).sum() / (S * (S - 1)) for v in (x, y))
        chance = float(q * t + (1 - q) * (1 - t) / 2)
    return _Prepared(of, clusters.n, S, 0, chance, 0.0 if coefficient == "pairwise" else None)


def critical_r(n: int, level: float = 0.95) -> float | None:
    """The |r| that n pairs must exceed to differ from 0; None with fewer than 3.

    t / sqrt(n - 2 + t^2) with t the two-sided quantile of Student's distribution with n - 2 degrees
    of freedom.

    >>> round(critical_r(9), 3)
    0.666
    """
    if n < 3:
        return None
    t = float(stdtrit(n - 2, (1 + level) / 2))
    return t / math.sqrt(n - 2 + t * t)


def shows_nothing(systems: int) -> str:
    """What so few systems cannot show, as a sentence; '' where no correlation could be shown."""
    least = critical_r(systems)
    return (
        f"With {systems} systems, |r| below {least:.2f}".replace("0.", ".") + " shows nothing."
        if least
        else ""
    )


# Two scorers ----------------------------------------------------------------------------------


def difference(
    first: Rated,
    second: Rated,
    level: Level,
    coefficient: Coefficient,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Difference:
    """How the coefficient of the second scorer differs from that of the first on the same items.

    `human`, `groups` and `systems` of both are the same. The interval resamples whole groups for
    both at once. The permutation test lets the two change places at random in every group, after
    both were standardized (Pearson, and over systems) or ranked: PERM-INPUTS of Deutsch, Dror and
    Roth (2021), "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
    Methods"; within groups it flips the signs of the groups' differences.
    """
    both = ~(np.isnan(first.scores) | np.isnan(second.scores))
    sides = [replace(r, scores=np.where(both, r.scores, np.nan)) for r in (first, second)]
    a, b = (association(side, level, coefficient, resampling) for side in sides)
    if a.estimate.value is None or b.estimate.value is None:
        reason = a.estimate.reason or b.estimate.reason
        return Difference(replace(a.estimate, value=None, low=None, high=None, reason=reason))
    wholes = [side.complete for side in sides]
    value = b.estimate.value - a.estimate.value
    replicates = b.replicates - a.replicates
    interval = percentile_interval(value, replicates, wholes[0].groups.n, resampling)
    n = min(a.estimate.n, b.estimate.n)
    missing = max(a.estimate.n_missing, b.estimate.n_missing)
    estimate = replace(interval, n=n, n_missing=missing, level=resampling.level)
    if level == "within":
        values = [_of_groups(_scaled(whole), coefficient)[0] for whole in wholes]
        gaps = values[1] - values[0]
        return Difference(estimate, permutation_test(gaps[~np.isnan(gaps)]))
    if level == "pooled" and coefficient == "pairwise":
        return Difference(replace(estimate, reason=estimate.reason or _NO_TEST))
    p = _changing_places(wholes, level, coefficient, resampling)
    is_r = level == "system" and coefficient == "pearson"
    return Difference(estimate, p, _williams_of(wholes) if is_r else None)


def _scaled(whole: Rated) -> Rated:
    return replace(whole, scores=_standardized(whole.scores), human=_standardized(whole.human))


def _changing_places(
    wholes: list[Rated], level: Level, coefficient: Coefficient, resampling: Resampling
) -> float | None:
    """Two-sided p of the difference when two scorers change places in every group at random."""
    ranked = level == "pooled" and coefficient != "pearson"
    groups = random_groups(wholes[0].groups)
    scores = [_mid_ranks(w.scores) if ranked else _standardized(w.scores) for w in wholes]
    if np.array_equal(scores[0], scores[1]):
        return None
    stacked = Rated(
        np.concatenate(scores),
        np.tile(wholes[0].human, 2),
        Clusters(np.concatenate([groups.codes, groups.codes + groups.n]), 2 * groups.n),
        None if wholes[0].systems is None else np.tile(wholes[0].systems, 2),
    )
    found = _prepared(stacked, level, coefficient)
    rng = np.random.default_rng(resampling.seed)
    drawn = rng.integers(0, 2, (resampling.resamples, groups.n)).astype(np.float64)
    kept = np.concatenate([np.ones((1, groups.n)), drawn])
    gaps = np.abs(found.of(np.hstack([1 - kept, kept])) - found.of(np.hstack([kept, 1 - kept])))
    T, reached = gaps[0], ~(gaps[1:] < gaps[0] - _ROUNDING)
    return None if np.isnan(T) else float((1 + reached.sum()) / (1 + len(reached)))


def _mid_ranks(x: FloatArray) -> FloatArray:
    kinds = _dense(x)
    held = np.bincount(kinds)
    return np.asarray((np.cumsum(held) - (held - 1) / 2)[kinds])


def _williams_of(wholes: list[Rated]) -> float | None:
    x, z = (system_means(whole)[0] for whole in wholes)
    y = system_means(wholes[0])[1]
    r = np.corrcoef([x, z, y])
    return williams(float(r[0, 2]), float(r[1, 2]), float(r[0, 1]), len(x))


def system_means(rated: Rated) -> tuple[FloatArray, FloatArray]:
    """The mean score and the mean severity of every system that has both (systems,), in the order
    of their numbers."""
    whole = rated.complete
    assert whole.systems is not None
    named = whole.systems >= 0
    systems = Clusters(whole.systems[named], int(whole.systems.max()) + 1).occurring()
    sums = systems.sums(np.ones(len(systems)), whole.scores[named], whole.human[named])
    return sums[:, 1] / sums[:, 0], sums[:, 2] / sums[:, 0]


def williams(r12: float, r13: float, r23: float, n: int) -> float | None:
    """Two-sided p that two correlations r12 and r13 with the same variable differ, r23 being that
    of the other two, over n cases; None with fewer than 4, or where the two are one.

        t = (r12 - r13) sqrt((n - 1) (1 + r23) / (2 K (n - 1) / (n - 3) + (r12 + r13)^2 / 4
            (1 - r23)^3)),    K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23

    with n - 3 degrees of freedom. Williams (1959); Steiger (1980), "Tests for Comparing Elements of
    a Correlation Matrix", equation 7.

    >>> round(williams(0.396, 0.179, 0.088, 103), 3)
    0.085
    """
    K = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if n < 4 or r23 >= 1 - _ROUNDING:
        return None
    below = 2 * K * (n - 1) / (n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3
    if below <= 0:
        return None
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return float(2 * stdtr(n - 3, -abs(t)))
