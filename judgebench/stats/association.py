"""The association of scores with human severities: pooled, within groups, and over systems.

A coefficient at any level is a function of how often every cluster counts: for an interval, all but
one count once; where two scorers change places at random, each counts for one or for the other.

First the coefficients of two columns, of rows and of items in clusters: Pearson's r, Spearman's
rho, Kendall's tau_b (Kendall 1945), and pairwise accuracy: the share of pairs that are ordered, or
held level, as by the humans, where scores are level that differ by at most a `tie`. Weights are (R,
clusters): the sample is a row of ones, and without one cluster its weight is 0. Columns are
`standardized`. Then what few systems can show: correlations of a handful of cases, by the normal
theory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from judgebench.records import Estimate
from judgebench.stats import ranks
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined, ratio
from judgebench.stats.intervals import (
    LEVEL,
    OF_CORRELATION,
    SHARE,
    Bounds,
    clustered_estimate,
    correlations,
    explained,
    jackknife_interval,
    moments_by_cluster,
    random_groups,
)
from judgebench.stats.paired_tests import permutation_test
from judgebench.stats.ranks import JUMPS, item_ranks

Coefficient = Literal["pearson", "spearman", "kendall", "pairwise"]
Weighted = Callable[[FloatArray], FloatArray]
CONSTANT = "the scores or the human severities do not vary"
CONSTANT_WITHIN = "the scores or the human severities do not vary within systems"
ROUNDING, _DIGITS = 1e-9, 9  # what rounding changes in a difference of standardized scores
_CELLS = 1 << 22  # numbers held at once: 32 MiB
_SHUFFLES, _PERMUTATIONS = 20, 2000


def standardized(x: FloatArray) -> FloatArray:
    """Minus the mean, over the standard deviation; 0 where all are the same. NaN stays."""
    there = x[~np.isnan(x)]
    if not len(there) or there.max() == there.min():
        return np.where(np.isnan(x), np.nan, 0.0)
    centred = (x - there.mean()) / np.abs(there - there.mean()).max()
    return np.asarray(centred / np.nanstd(centred))


def of_rows(x: FloatArray, y: FloatArray, coefficient: Coefficient, tie: float = 0) -> FloatArray:
    """The coefficient of each row of x and y (..., k), on standardized scales; NaN where one of
    them is level. Differences of at most `ranks.TIE` are level; pairwise accuracy is defined for
    any two items.

    >>> of_rows(np.array([[0.0, 1, 2]]), np.array([[0.0, 2, 1]]), "pairwise").round(3).tolist()
    [0.667]
    """
    if coefficient != "pairwise":
        of = {"pearson": ranks.pearson, "spearman": ranks.spearman, "kendall": ranks.tau_b}
        return of[coefficient](x, y)
    i, j = np.triu_indices(x.shape[-1], 1)
    level = ranks.levels(y)
    dx = x[..., i] - x[..., j]
    correct = _is_correct(dx, level[..., i] - level[..., j], max(tie, ranks.TIE))
    return ratio(correct.sum(axis=-1), len(i))


def weighted_pearson(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Pearson's r of weights."""
    moments = moments_by_cluster(np.stack([x, y], axis=1), clusters)
    return lambda w: mean_of_defined(correlations(np.tensordot(w, moments, axes=1)))


def weighted_spearman(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Pearson's r of the mid-ranks that the items have among those that count."""
    kinds = [_dense(x), _dense(y)]
    held = [clusters.table(kind, int(kind.max()) + 1) for kind in kinds]  # (clusters, kinds)

    def some(w: FloatArray) -> FloatArray:
        ranked = []
        for kind, of_kind in zip(kinds, held, strict=True):
            n = w @ of_kind
            middle = n.cumsum(axis=1) - (n + n.sum(axis=1, keepdims=True)) / 2
            ranked.append(middle[:, kind])
        rx, ry, drawn = *ranked, w[:, clusters.codes]
        spread = np.sqrt((drawn * rx**2).sum(axis=1) * (drawn * ry**2).sum(axis=1))
        return np.clip(ratio((drawn * rx * ry).sum(axis=1), spread), -1, 1)

    rows = max(1, _CELLS // len(x))
    return lambda w: np.concatenate([some(w[i : i + rows]) for i in range(0, len(w), rows)])


def _dense(x: FloatArray) -> NDArray[np.int32]:
    return np.unique(x, return_inverse=True)[1].astype(np.int32)


def weighted_kendall(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """tau_b; an item that counts twice is level with itself."""
    kx, ky = kinds = [_dense(x), _dense(y)]
    agree = _pair_sums(lambda i: np.sign(kx[i] - kx) * np.sign(ky[i] - ky), clusters)
    held = [clusters.table(kind, int(kind.max()) + 1) for kind in kinds]

    def of(w: FloatArray) -> FloatArray:
        drawn = [w @ of_kind for of_kind in held]
        untied = [n.sum(axis=1) ** 2 - (n**2).sum(axis=1) for n in drawn]
        return np.clip(ratio(_quadratic(w, agree), np.sqrt(untied[0] * untied[1])), -1, 1)

    return of


def weighted_accuracy(x: FloatArray, y: FloatArray, clusters: Clusters, tie: float) -> Weighted:
    """Pairs of an item with itself are left out."""
    size = clusters.sums(np.ones(len(x)))[:, 0]
    correct = _pair_sums(lambda i: _is_correct(x[i] - x, y[i] - y, tie), clusters) - np.diag(size)
    return lambda w: ratio(_quadratic(w, correct), (w @ size) ** 2 - w**2 @ size)


def _is_correct(dx: FloatArray, dy: FloatArray, tie: float) -> NDArray[np.bool_]:
    return np.asarray(np.sign(np.where(np.abs(dx) <= tie + ROUNDING, 0, dx)) == np.sign(dy))


def _quadratic(w: FloatArray, pairs: FloatArray) -> FloatArray:
    return np.asarray(((w @ pairs) * w).sum(axis=1))


def _pair_sums(of: Callable[[Any], NDArray[Any]], clusters: Clusters) -> FloatArray:
    """The sums over all pairs of items, by the clusters of both; `of` gives some rows of them."""
    found = np.zeros((clusters.n, clusters.n))
    order = np.argsort(clusters.codes, kind="stable")
    present, starts = np.unique(clusters.codes[order], return_index=True)
    step = max(1, _CELLS // len(order))
    for rows in (order[i : i + step] for i in range(0, len(order), step)):
        block = of((rows, None))[:, order].astype(np.float64)
        cells = (clusters.codes[rows][:, None], present)
        np.add.at(found, cells, np.add.reduceat(block, starts, axis=1))
    return found


def calibrated(
    blocks: Sequence[IntArray], x: FloatArray, y: FloatArray
) -> tuple[float, float | None]:
    """The tie of the best accuracy, and the mean best accuracy of scores that are shuffled within
    groups. `blocks` hold the rows of groups of one size (groups, size); each group weighs 1."""
    corners = [np.triu_indices(rows.shape[1], 1) for rows in blocks]

    def differences(v: FloatArray, of: Sequence[IntArray]) -> FloatArray:
        parts = zip(of, corners, strict=True)
        return np.concatenate([(v[r[:, i]] - v[r[:, j]]).ravel() for r, (i, j) in parts])

    def best(dx: FloatArray) -> tuple[float, float]:
        order = np.argsort(np.abs(dx))
        size, w = np.abs(dx)[order].round(_DIGITS), weight[order]
        level, right = (dy == 0)[order], (dx * dy > 0)[order] & (size > 0)
        as_it_is = w @ (right | level & (size == 0))
        more = w @ right + np.cumsum(w * (level * 1.0 - right))
        last = np.diff(size, append=np.inf) > 0  # pairs of one difference become level together
        ties, values = np.append(0.0, size[last]), np.append(as_it_is, more[last])
        place = int(np.argmax(values))
        return float(ties[place]), float(values[place] / w.sum())

    if not any(rows.size > 1 for rows in blocks):
        return 0.0, None
    dy = differences(y, blocks)
    pairs = zip(blocks, corners, strict=True)
    weight = np.concatenate([np.full(len(r) * len(i), 1 / len(i)) for r, (i, _) in pairs])
    rng = np.random.default_rng(0)
    shuffled = ([rng.permuted(rows, axis=1) for rows in blocks] for _ in range(_SHUFFLES))
    by_chance = [best(differences(x, rows))[1] for rows in shuffled]
    return best(differences(x, blocks))[0], float(np.mean(by_chance))


FEW_SYSTEMS = "fewer than 3 systems have scores and human severities"


def critical_r(n: int) -> float | None:
    """The |r| that n pairs must exceed to differ from 0 at 0.05; None with fewer than 3.

    t / sqrt(n - 2 + t^2), t the two-sided quantile of Student's t with n - 2 degrees of freedom.

    >>> round(critical_r(9), 3)
    0.666
    """
    t = float(stdtrit(n - 2, 0.975)) if n > 2 else math.nan
    return t / math.sqrt(n - 2 + t * t) if n > 2 else None


def shows_nothing(systems: int) -> str:
    """A sentence on the correlations that so few systems cannot show."""
    least = critical_r(systems)
    bound = "no r" if least is None else f"|r| below {least:.2f}".replace("0.", ".")
    return f"With {systems} systems, {bound} shows {'anything' if least is None else 'nothing'}."


def between_columns(
    x: FloatArray, y: FloatArray, coefficient: Coefficient
) -> tuple[Estimate, float | None]:
    """A correlation of two columns of a table with a row for each system (systems,), NaN where a
    cell is blank, and its two-sided p value.

    The systems are what is sampled. Intervals by Fisher's z = atanh r, with the standard error
    1 / sqrt(n - 3) for Pearson's r (Fisher 1921), sqrt((1 + r^2 / 2) / (n - 3)) for Spearman's rho
    (Bonett and Wright 2000) and sqrt(0.437 / (n - 4)) for tau_b (Fieller, Hartley and Pearson
    1957). p from Student's t with n - 2 degrees of freedom; that of tau_b is exact without ties.

    >>> found, p = between_columns(np.arange(5.0), np.array([1.0, 0, 2, 4, 3]), "pearson")
    >>> round(found.value, 2), round(p, 3)
    (0.8, 0.104)
    """
    from scipy import stats

    both = ~(np.isnan(x) | np.isnan(y))
    n, missing = int(both.sum()), int((~both).sum())
    u, v = standardized(x[both]), standardized(y[both])
    r = float(of_rows(u, v, coefficient)) if n > 2 else math.nan
    if math.isnan(r):
        reason = FEW_SYSTEMS if n < 3 else CONSTANT
        return Estimate(None, n=n, n_missing=missing, reason=reason), None
    least, spread = {"pearson": (3, 1.0), "spearman": (3, 1 + r * r / 2)}.get(
        coefficient, (4, 0.437)
    )
    if n <= least or abs(r) > 1 - ROUNDING:
        few = "all systems lie on one line" if n > least else "too few systems for an interval"
        estimate = Estimate(r, n=n, n_missing=missing, reason=few)
    else:
        half = float(ndtri(0.975)) * math.sqrt(spread / (n - least))
        low, high = np.tanh([math.atanh(r) - half, math.atanh(r) + half]).tolist()
        estimate = Estimate(r, low, high, "Fisher's z over systems", n, missing)
    test = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    return estimate, float(test[coefficient](u, v).pvalue)


def _within_systems(sums: FloatArray) -> FloatArray:
    """r of what is left of two columns without the means of systems, of sums (..., systems, 6)."""
    n, x, y, xx, xy, yy = np.moveaxis(sums, -1, 0)
    pairs = ((xx, x, x), (xy, x, y), (yy, y, y))
    XX, XY, YY = (np.nansum(both - ratio(a * b, n), axis=-1) for both, a, b in pairs)
    varies = np.minimum(XX, YY) > ROUNDING * n.sum(axis=-1)
    return np.clip(ratio(XY, np.sqrt(np.where(varies, XX * YY, 0))), -1, 1)


PARTIAL = explained(
    _within_systems, lambda sums: CONSTANT_WITHIN if sums.any() else NO_PAIR, OF_CORRELATION
)


def partial_correlation(
    x: FloatArray, y: FloatArray, systems: IntArray, clusters: Clusters, level: float = LEVEL
) -> Estimate:
    """Pearson's r of x and y (items,) once the mean of each system is taken off both, with the
    interval of `clustered_estimate`; of ranks (`ranks.item_ranks`) Spearman's rho.

    A scorer that only knows which systems are good correlates with the humans over all items, and
    not within systems: Pagnoni, Balachandran and Tsvetkov (2021), "Understanding Factuality in
    Abstractive Summarization with FRANK". Items with a NaN, or without a system (-1 in
    `systems` (items,)), are left out and counted missing.

    >>> x, y = np.array([1.0, 2, 11, 12]), np.array([2.0, 1, 12, 11])
    >>> partial_correlation(x, y, np.array([0, 0, 1, 1]), Clusters(np.arange(4), 4)).value
    -1.0
    """
    known = ~np.isnan(x + y) & (systems >= 0)
    groups, n = random_groups(clusters[known].occurring()), int(known.sum())
    u, v = standardized(x[known]), standardized(y[known])
    cells = systems[known], int(systems.max(initial=0)) + 1
    columns = (None, u, v, u * u, u * v, v * v)
    sums = np.stack([groups.table(*cells, column) for column in columns], axis=-1)
    return clustered_estimate(sums, PARTIAL, level, n=n, n_missing=len(x) - n)


Level = Literal["pooled", "within", "system"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
LEVELS: tuple[Level, ...] = get_args(Level)
NO_PAIR = "no item has both a score and a human severity"
NO_GROUP = "no group has two items whose scores and human severities vary"
_PAIRED = 10_000  # pooled items of which all pairs are compared
_CALIBRATED = 700  # pooled items whose pairs calibrate the ties
_BY_WEIGHTS = {
    "pearson": weighted_pearson, "spearman": weighted_spearman, "kendall": weighted_kendall,
}  # fmt: skip


@dataclass(frozen=True)
class Rated:
    """One scorer beside the humans: `scores` and `human` (items,), NaN where there is none, the
    items' `groups` (an item or question, answered by several systems), and the number of each
    item's system, -1 where there is none. Higher scores should go with higher severities."""

    scores: FloatArray
    human: FloatArray
    groups: Clusters
    systems: IntArray | None = None

    @cached_property
    def kept(self) -> dict[Any, Association]:
        """The associations computed so far, shared by several differences."""
        return {}

    def at(self, level: Level) -> Rated:
        """The items that the level is about and that have both, on standardized scales; their
        groups in few random ones, but for what is within groups."""
        kept = ~(np.isnan(self.scores) | np.isnan(self.human))
        if level == "system" and self.systems is not None:
            kept &= self.systems >= 0
        groups = self.groups[kept].occurring()
        systems = None if self.systems is None else self.systems[kept]
        x, y = (standardized(v[kept]) for v in (self.scores, self.human))
        return Rated(x, y, groups if level == "within" else random_groups(groups), systems)


@dataclass(frozen=True)
class Association:
    """A coefficient at one level. The estimate's `n` counts items (pooled), groups that vary
    (within) or systems; `n_missing` what lacks a score or severity, or groups that do not vary.

    `chance` is what a scorer that knows nothing reaches (pairwise accuracy only; that of a
    correlation is 0), `tie` the largest difference of two scores that counts as a tie.
    `left_out` (groups,) are its values without each group."""

    level: Level
    coefficient: Coefficient
    estimate: Estimate
    chance: float | None = None
    tie: float | None = None
    left_out: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)


@dataclass(frozen=True)
class Difference:
    """The coefficient of the second scorer minus that of the first, over the items that both
    scored. `p` is that of the permutation test (None for pooled pairwise accuracies)."""

    estimate: Estimate
    p: float | None = None


def associations(
    rated: Rated, confidence: float = LEVEL
) -> Mapping[tuple[Level, Coefficient], Association]:
    """Every coefficient at every level; without `systems` not over systems.

    >>> x, y = np.array([1.0, 2, 3, 5]), np.array([0.0, 0, 1, 2])
    >>> found = associations(Rated(x, y, Clusters(np.arange(4), 4)))
    >>> round(found["pooled", "kendall"].estimate.value, 3)
    0.913
    """
    levels = [level for level in LEVELS if level != "system" or rated.systems is not None]
    return {key: association(rated, *key, confidence) for key in product(levels, COEFFICIENTS)}


def association(
    rated: Rated,
    level: Level,
    coefficient: Coefficient,
    confidence: float = LEVEL,
) -> Association:
    """One coefficient at one level, with the interval of `jackknife_interval` over groups.

    Within groups it is the mean over the groups in which it is defined; over systems, mean scores
    are compared with mean severities. The tie of pairwise accuracy is that of the best accuracy:
    Deutsch, Foster and Freitag (2023), "Ties Matter: Meta-Evaluating Modern Metrics with Pairwise
    Accuracy and Tie Calibration". As it is chosen on the sample, `chance` is the mean over shuffled
    scores for which it is chosen likewise; the interval keeps it. Over systems nothing is
    calibrated: Kocmi et al. (2021), "To Ship or Not to Ship", section 4.
    """
    key = level, coefficient, confidence
    if key not in rated.kept:
        rated.kept[key] = _computed(rated, level, coefficient, confidence)
    return rated.kept[key]


def _computed(
    rated: Rated, level: Level, coefficient: Coefficient, confidence: float
) -> Association:
    whole = rated.at(level)
    lacking = FEW_SYSTEMS if level == "system" else NO_PAIR
    if not len(whole.scores) or (level == "system" and whole.systems is None):
        none = Estimate(None, n_missing=len(rated.scores), reason=lacking, level=confidence)
        return Association(level, coefficient, none)
    found = _READY[level](whole, coefficient)
    value = float(found.of(np.ones((1, found.clusters)))[0])
    missing = len(rated.scores) - found.n if level == "pooled" else found.n_missing
    left_out = np.empty(0)
    if np.isnan(value):
        constant = FEW_SYSTEMS if level == "system" and found.n < 3 else CONSTANT
        estimate = Estimate(None, reason=NO_GROUP if level == "within" else constant)
    elif jumps(level, coefficient):
        estimate = Estimate(value, reason=JUMPS)
    else:
        left_out = found.of(1 - np.eye(found.clusters))
        estimate = _interval(value, left_out, level, confidence, _bounds(coefficient))
        estimate = replace(estimate, method=estimate.method and estimate.method + found.told)
    estimate = replace(estimate, n=found.n, n_missing=missing, level=confidence)
    spread = float(np.nanstd(rated.scores[~np.isnan(rated.human)]))  # of what was standardized
    tie = None if found.tie is None else found.tie * spread
    return Association(level, coefficient, estimate, found.chance, tie, left_out)


def jumps(level: Level, coefficient: Coefficient) -> bool:
    """True where the coefficient is that of the places of a few systems."""
    return level == "system" and coefficient != "pearson"


def _interval(
    value: float, left_out: FloatArray, level: Level, confidence: float, bounds: Bounds
) -> Estimate:
    how_many = np.ones(len(left_out), dtype=np.int64)
    pulled = level == "system"
    return jackknife_interval(value, left_out, how_many, confidence, bounds, is_pulled=pulled)


def _bounds(coefficient: Coefficient) -> Bounds:
    return SHARE if coefficient == "pairwise" else OF_CORRELATION


@dataclass(frozen=True)
class _Ready:
    """A coefficient `of` weights (R, clusters), and what is reported beside it."""

    of: Weighted
    clusters: int
    n: int
    n_missing: int = 0
    chance: float | None = None
    tie: float | None = None
    told: str = ""


def _pooled(rated: Rated, coefficient: Coefficient) -> _Ready:
    x, y, clusters, n = rated.scores, rated.human, rated.groups, len(rated.scores)
    order, told = np.random.default_rng(0).permutation(n), ""
    if n > _PAIRED and coefficient in ("kendall", "pairwise"):
        some = order[:_PAIRED]
        x, y, clusters = x[some], y[some], clusters[some]
        order, told = np.arange(_PAIRED), f"; of the pairs of {_PAIRED:,} random items"
    if coefficient != "pairwise":
        return _Ready(_BY_WEIGHTS[coefficient](x, y, clusters), clusters.n, n, told=told)
    tie, chance = calibrated([order[None, :_CALIBRATED]], x, y)
    return _Ready(weighted_accuracy(x, y, clusters, tie), clusters.n, n, 0, chance, tie, told=told)


def _within(rated: Rated, coefficient: Coefficient) -> _Ready:
    values, tie, chance = _of_groups(rated, coefficient)
    clusters = random_groups(Clusters(np.arange(len(values)), len(values)))
    defined = ~np.isnan(values)
    sums, n = clusters.sums(np.where(defined, values, 0), defined), int(defined.sum())
    return _Ready(
        lambda w: ratio(w @ sums[:, 0], w @ sums[:, 1]),
        clusters.n, n, len(values) - n, chance, tie,
    )  # fmt: skip


def _of_groups(
    rated: Rated, coefficient: Coefficient
) -> tuple[FloatArray, float | None, float | None]:
    """The coefficient in every group, NaN where it is undefined; the tie, and chance level."""
    groups = rated.groups
    order = np.argsort(groups.codes, kind="stable")
    size = np.bincount(groups.codes, minlength=groups.n)
    start = np.cumsum(size) - size
    several = [k for k in np.unique(size).tolist() if k > 1]
    blocks = [order[start[size == k][:, None] + np.arange(k)] for k in several]
    tie = chance = None
    if coefficient == "pairwise":
        tie, chance = calibrated(blocks, rated.scores, rated.human)
    values = np.full(groups.n, np.nan)
    for rows in blocks:
        x, y = rated.scores[rows], rated.human[rows]
        values[groups.codes[rows[:, 0]]] = of_rows(x, y, coefficient, tie or 0.0)
    return values, tie, chance


def _over_systems(rated: Rated, coefficient: Coefficient) -> _Ready:
    means, S = _system_means(rated)

    def of(w: FloatArray) -> FloatArray:
        x, y = means(w)
        lacking = np.isnan(x).any(axis=-1) | (S < 3)
        return np.where(lacking, np.nan, of_rows(np.nan_to_num(x), np.nan_to_num(y), coefficient))

    chance = None
    if coefficient == "pairwise" and S > 2:
        sample = means(np.ones((1, rated.groups.n)))[:, 0]
        q, t = (float((v[:, None] != v).sum() / (S * (S - 1))) for v in sample)
        chance = (1 - q) * (1 - t) + q * t / 2
    return _Ready(of, rated.groups.n, S, 0, chance)


def _system_means(rated: Rated) -> tuple[Callable[[FloatArray], FloatArray], int]:
    """Mean scores and mean severities (2, R, S) of weights, and how many systems S there are."""
    assert rated.systems is not None
    systems = Clusters(rated.systems, int(rated.systems.max()) + 1).occurring()
    columns = (None, rated.scores, rated.human)
    sums = [rated.groups.table(systems.codes, systems.n, column) for column in columns]

    def means(w: FloatArray) -> FloatArray:
        n, x, y = (w @ column for column in sums)
        return np.stack([ratio(x, n), ratio(y, n)])

    return means, systems.n


_READY = {"pooled": _pooled, "within": _within, "system": _over_systems}


def difference(
    first: Rated,
    second: Rated,
    level: Level,
    coefficient: Coefficient,
    confidence: float = LEVEL,
) -> Difference:
    """The coefficient of the second scorer minus that of the first, on the same items.

    `human`, `groups` and `systems` of both are the same. For the interval both lack the same group.
    For the permutation test the two change places at random in every group, once both
    are standardized, or ranked: PERM-INPUTS of Deutsch, Dror and Roth (2021), "A Statistical
    Analysis of Summarization Evaluation Metrics Using Resampling Methods"; within groups the signs
    of the groups' differences are flipped. Both are about these systems.
    """
    one, other = np.isnan(first.scores), np.isnan(second.scores)
    sides = [first, second]
    if (one != other).any():
        sides = [replace(r, scores=np.where(one | other, np.nan, r.scores)) for r in sides]
    a, b = (association(side, level, coefficient, confidence) for side in sides)
    reason = a.estimate.reason or b.estimate.reason
    if a.estimate.value is None or b.estimate.value is None:
        return Difference(replace(a.estimate, value=None, low=None, high=None, reason=reason))
    wholes = [side.at(level) for side in sides]
    low, high = _bounds(coefficient)
    value, bounds = b.estimate.value - a.estimate.value, (low - high, high - low)
    if jumps(level, coefficient):
        found = Estimate(value, reason=JUMPS)
    else:
        found = _interval(value, b.left_out - a.left_out, level, confidence, bounds)
    n, missing = min(a.estimate.n, b.estimate.n), max(a.estimate.n_missing, b.estimate.n_missing)
    estimate = replace(found, n=n, n_missing=missing, level=confidence)
    if level == "within":
        gaps = np.subtract(*(_of_groups(whole, coefficient)[0] for whole in wholes))
        return Difference(estimate, permutation_test(gaps[~np.isnan(gaps)]))
    if level == "pooled" and coefficient == "pairwise":
        return Difference(estimate)
    return Difference(estimate, _changing_places(wholes, level, coefficient))


def _changing_places(
    wholes: Sequence[Rated], level: Level, coefficient: Coefficient
) -> float | None:
    """Two-sided p of the difference when two scorers change places in every group at random."""
    scores, human = [whole.scores for whole in wholes], wholes[0].human
    groups, systems = wholes[0].groups, wholes[0].systems
    if level == "pooled" and coefficient != "pearson":
        scores = [item_ranks(x) for x in scores]
    if level == "pooled" and coefficient == "spearman":  # r of the ranks that change places
        human, coefficient = item_ranks(human), "pearson"
    if level == "pooled" and coefficient == "kendall":  # of so many that all pairs are compared
        some = np.random.default_rng(0).permutation(len(human))[: _PAIRED // 2]
        scores, human, groups = [x[some] for x in scores], human[some], groups[some]
        systems = None
    if np.array_equal(scores[0], scores[1]):
        return None
    codes = np.concatenate([groups.codes, groups.codes + groups.n])
    stacked = Rated(
        np.concatenate(scores), np.tile(human, 2), Clusters(codes, 2 * groups.n),
        None if systems is None else np.tile(systems, 2),
    )  # fmt: skip
    of = _READY[level](stacked, coefficient).of
    drawn = np.random.default_rng(0).integers(0, 2, (_PERMUTATIONS, groups.n)).astype(np.float64)
    kept = np.concatenate([np.ones((1, groups.n)), drawn])
    gaps = np.abs(of(np.hstack([1 - kept, kept])) - of(np.hstack([kept, 1 - kept])))
    return float((1 + (~(gaps[1:] < gaps[0] - ROUNDING)).sum()) / len(gaps))
