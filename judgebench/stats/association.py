"""How strongly scores go with human severities: pooled, within groups, and over systems.

A coefficient at any level is a function of how often every cluster is drawn, so that intervals,
differences and tests of all scorers share their draws: where two scorers change places at random,
each cluster comes once, from one or from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.coefficients import (
    CONSTANT,
    ROUNDING,
    Coefficient,
    Weighted,
    calibrated,
    of_rows,
    standardized,
    weighted_accuracy,
    weighted_kendall,
    weighted_pearson,
    weighted_spearman,
)
from judgebench.stats.few_systems import FEW_SYSTEMS, williams
from judgebench.stats.paired import permutation_test
from judgebench.stats.ranks import item_ranks
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    OF_CORRELATION,
    Bounds,
    Resampling,
    bootstrap_interval,
    cluster_multiplicities,
    grouping_told,
    random_groups,
)

Level = Literal["pooled", "within", "system"]
COEFFICIENTS: tuple[Coefficient, ...] = get_args(Coefficient)
LEVELS: tuple[Level, ...] = get_args(Level)
NO_PAIR = "no item has both a score and a human severity"
NO_GROUP = "no group has two items whose scores and human severities vary"
ONE_GROUP = "there is one group only, and resampling needs several"
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
        """What was computed of it, for several differences to share."""
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
    scored. `p` is that of the permutation test (None for pooled pairwise accuracies), `williams`
    that of Williams' test (None but for Pearson's r over systems)."""

    estimate: Estimate
    p: float | None = None
    williams: float | None = None


def associations(
    rated: Rated, resampling: Resampling = DEFAULT_RESAMPLING
) -> Mapping[tuple[Level, Coefficient], Association]:
    """Every coefficient at every level; without `systems` not over systems.

    >>> x, y = np.array([1.0, 2, 3, 5]), np.array([0.0, 0, 1, 2])
    >>> found = associations(Rated(x, y, Clusters(np.arange(4), 4)))
    >>> round(found["pooled", "kendall"].estimate.value, 3)
    0.913
    """
    levels = [level for level in LEVELS if level != "system" or rated.systems is not None]
    return {key: association(rated, *key, resampling) for key in product(levels, COEFFICIENTS)}


def association(
    rated: Rated,
    level: Level,
    coefficient: Coefficient,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Association:
    """One coefficient at one level, with a bootstrap interval over resampled groups: percentile
    limits, and over systems the symmetric ones of `bootstrap_interval`.

    Within groups it is the mean over the groups in which it is defined; over systems, mean scores
    are compared with mean severities. The tie of pairwise accuracy is that of the best accuracy:
    Deutsch, Foster and Freitag (2023), "Ties Matter: Meta-Evaluating Modern Metrics with Pairwise
    Accuracy and Tie Calibration". As it is chosen on the sample, `chance` is the mean over shuffled
    scores for which it is chosen likewise; resamples keep it. Over systems nothing is calibrated:
    Kocmi et al. (2021), "To Ship or Not to Ship", section 4.
    """
    key = level, coefficient, resampling
    if key not in rated.kept:
        rated.kept[key] = _computed(rated, level, coefficient, resampling)
    return rated.kept[key]


def _computed(
    rated: Rated, level: Level, coefficient: Coefficient, resampling: Resampling
) -> Association:
    whole = rated.at(level)
    lacking = FEW_SYSTEMS if level == "system" else NO_PAIR
    if not len(whole.scores) or (level == "system" and whole.systems is None):
        none = Estimate(None, n_missing=len(rated.scores), reason=lacking, level=resampling.level)
        return Association(level, coefficient, none)
    found = _READY[level](whole, coefficient)
    value = float(found.of(np.ones((1, found.clusters)))[0])
    missing = len(rated.scores) - found.n if level == "pooled" else found.n_missing
    replicates = np.empty(0)
    if np.isnan(value):
        constant = FEW_SYSTEMS if level == "system" and found.n < 3 else CONSTANT
        estimate = Estimate(None, reason=NO_GROUP if level == "within" else constant)
    elif found.clusters < 2:
        estimate = Estimate(value, reason=ONE_GROUP)
    else:
        replicates = found.of(cluster_multiplicities(found.clusters, resampling))
        bounds = _bounds(level, coefficient)
        estimate = bootstrap_interval(value, replicates, found.clusters, resampling, bounds)
        estimate = grouping_told(estimate, rated.groups.n)
        estimate = replace(estimate, method=estimate.method and estimate.method + found.told)
    estimate = replace(estimate, n=found.n, n_missing=missing, level=resampling.level)
    tie = None if found.tie is None else found.tie * float(np.nanstd(rated.scores))
    return Association(level, coefficient, estimate, found.chance, tie, replicates)


def _bounds(level: Level, coefficient: Coefficient) -> Bounds | None:
    """Those of a coefficient of means, which noise pulls to one side."""
    of = (0.0, 1.0) if coefficient == "pairwise" else OF_CORRELATION
    return of if level == "system" else None


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
    beside = (clusters.n, n, len(values) - n, chance, tie)
    return _Ready(lambda w: ratio(w @ sums[:, 0], w @ sums[:, 1]), *beside)


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
    resampling: Resampling = DEFAULT_RESAMPLING,
    tested: bool = True,
) -> Difference:
    """How the coefficient of the second scorer differs from that of the first on the same items.

    `human`, `groups` and `systems` of both are the same. The interval resamples whole groups for
    both at once. For the permutation test the two change places at random in every group, once both
    are standardized, or ranked: PERM-INPUTS of Deutsch, Dror and Roth (2021), "A Statistical
    Analysis of Summarization Evaluation Metrics Using Resampling Methods"; within groups the signs
    of the groups' differences are flipped. Both are about these systems; that the scorers differ on
    systems like these is for Williams' test to say. Without tests where it is not `tested`.
    """
    one, other = np.isnan(first.scores), np.isnan(second.scores)
    sides = [first, second]
    if (one != other).any():
        sides = [replace(r, scores=np.where(one | other, np.nan, r.scores)) for r in sides]
    a, b = (association(side, level, coefficient, resampling) for side in sides)
    reason = a.estimate.reason or b.estimate.reason
    if a.estimate.value is None or b.estimate.value is None or not len(a.replicates):
        return Difference(replace(a.estimate, value=None, low=None, high=None, reason=reason))
    wholes = [side.at(level) for side in sides]
    value, replicates = b.estimate.value - a.estimate.value, b.replicates - a.replicates
    of = _bounds(level, coefficient)
    bounds = of and (of[0] - of[1], of[1] - of[0])
    found = bootstrap_interval(value, replicates, wholes[0].groups.n, resampling, bounds)
    n, missing = min(a.estimate.n, b.estimate.n), max(a.estimate.n_missing, b.estimate.n_missing)
    estimate = replace(found, n=n, n_missing=missing, level=resampling.level)
    if not tested:
        return Difference(estimate)
    if level == "within":
        gaps = np.subtract(*(_of_groups(whole, coefficient)[0] for whole in wholes))
        return Difference(estimate, permutation_test(gaps[~np.isnan(gaps)]))
    if level == "pooled" and coefficient == "pairwise":
        return Difference(estimate)
    p = _changing_places(wholes, level, coefficient, resampling)
    if level == "pooled" or coefficient != "pearson":
        return Difference(estimate, p)
    once = np.ones((1, wholes[0].groups.n))
    (x, y), (z, _) = (_system_means(whole)[0](once)[:, 0] for whole in wholes)
    r = np.corrcoef([x, z, y])
    return Difference(estimate, p, williams(float(r[0, 2]), float(r[1, 2]), float(r[0, 1]), len(x)))


def _changing_places(
    wholes: Sequence[Rated], level: Level, coefficient: Coefficient, resampling: Resampling
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
    rng = np.random.default_rng(resampling.seed)
    drawn = rng.integers(0, 2, (resampling.resamples, groups.n)).astype(np.float64)
    kept = np.concatenate([np.ones((1, groups.n)), drawn])
    gaps = np.abs(of(np.hstack([1 - kept, kept])) - of(np.hstack([kept, 1 - kept])))
    return float((1 + (~(gaps[1:] < gaps[0] - ROUNDING)).sum()) / len(gaps))
