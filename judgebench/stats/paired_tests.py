"""The same items rated twice: which of two raters is right more often, and how far labels moved.

Yes-or-no outcomes are counts C (..., 2, 2), C[i, j] the number of items with outcome i before and
j after. Labels on a scale are counts (..., 5) a cluster, in the order of `moves_by_cluster`.

The permutation test asks whether each cluster's difference could by chance as well have had the
other sign. Clusters of the same difference are one kind, of which only how many keep their sign
matters. So a million items with differences of -1, 0 and 1 are a few numbers, and their test is
exact. Corrections for many tests at once are at the end.

Of means over items of what several trainings of one model decided, items and trainings both vary:
`x` is (trainings, items, k systems), nothing missing. Readers and cases of a diagnostic study are
the same design: Obuchowski and Rockette (1995), "Hypothesis Testing of Diagnostic Accuracy for
Multiple Readers and Multiple Tests". The two parts of an interval's half width are squared and
added, which holds its level with as few as three trainings: Zou and Donner (2008), "Construction of
Confidence Limits about Effect Measures".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray
from scipy.special import stdtr

from judgebench.records import Estimate
from judgebench.stats.arrays import (
    Clusters,
    FloatArray,
    IntArray,
    label_distances,
    ratio,
    value_counts,
)
from judgebench.stats.classification import all_items, mean_severity_error, overestimated
from judgebench.stats.intervals import (
    LEVEL,
    SHARE,
    Bounds,
    Formula,
    Reason,
    Statistic,
    clustered_estimate,
    where_empty,
)

_STEPS = 50  # of halving the logarithm of a p value: to 1e-12 of it
_LEAST_P = 1e-12


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
    tail = (
        float(scipy.special.stdtrit(D - 1, (1 + items.level) / 2))
        * float(means.std(ddof=1))
        / math.sqrt(D)
    )
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
        half = np.sqrt(
            scipy.special.stdtrit(f, tail) ** 2 * s2 / D
            + scipy.special.stdtrit(max(C - 1, 1), tail) ** 2 * v
        )
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


Alternative = Literal["two-sided", "greater"]

SIGNS_FLIPPED = (
    "two-sided permutation test: signs of whole clusters flipped, exact or in 10,000 draws"
)
OVER_TRAININGS = "two-sided, by Student's t over clusters and trainings"
SIDES_SWAPPED = "two-sided permutation test: sides of whole clusters swapped at random"
_MOST_EXACT = 1 << 20  # sums that are listed one by one; beyond that they are drawn
_CHUNK = 1 << 22  # binomial draws at once: 32 MiB
_ROUNDING = 1e-9  # what rounding changes in a sum, as a share of its terms


def difference_of(statistic: Statistic) -> Statistic:
    """A statistic of the second rater minus that of the first, of counts (..., *shape, 2).

    The counts of both stand side by side on the last axis, so that both lack the same cluster. Of
    shares, both must be of the same items.

    >>> share = Statistic(lambda C: C[..., 0] / C.sum(axis=-1), lambda C: "")
    >>> float(difference_of(share).formula(np.array([[1.0, 3.0], [3.0, 1.0]])))
    0.5
    """

    def formula(C: FloatArray) -> FloatArray:
        return np.asarray(statistic.formula(C[..., 1]) - statistic.formula(C[..., 0]))

    def either(why: Reason) -> Reason:
        return lambda C: why(C[..., 0]) or why(C[..., 1])

    (low, high), items = statistic.bounds, statistic.items
    return Statistic(
        formula,
        either(statistic.undefined),
        (low - high, high - low),
        None if items is None else lambda C: items(C[..., 0]),
        either(statistic.no_interval),
    )


def mcnemar_clustered(
    apart: FloatArray, clusters: Clusters, alternative: Alternative = "two-sided"
) -> float | None:
    """McNemar's test with whole clusters as units; None where no cluster has a difference.

    `apart` (items,) is 1 where only the first of two raters is right, -1 where only the second is,
    else 0, and NaN where that is unknown. The sign of each cluster's sum is flipped; see
    `permutation_test`. With one item a cluster it is the exact test.

    >>> round(mcnemar_clustered(np.array([1.0, 1, 1, 1, 0, np.nan]), Clusters(np.arange(6), 6)), 3)
    0.125
    """
    return permutation_test(clusters.sums(np.nan_to_num(apart))[:, 0], alternative)


NO_PAIR = "no item has a label both before and after"
_PAIRS, _FLIPPED, _MORE, _LESS, SHIFT = range(5)  # the columns of `moves_by_cluster`


_no_pair = where_empty(NO_PAIR)
# Over C (..., 2, 2): the share of items that turn from no to yes, and the share of yes after
# minus the share of yes before.
TURNED_YES = replace(overestimated(), undefined=_no_pair)
NET_CHANGE = replace(mean_severity_error((0, 1)), undefined=_no_pair, items=all_items)


def moves_by_cluster(flipped: IntArray, shift: IntArray, clusters: Clusters) -> FloatArray:
    """Counts (clusters, 5): pairs, flipped, more severe, less severe, summed shift.

    Both are (pairs,): `flipped` is 1 where the label differs, else 0; `shift` is the severity
    after minus that before. Raises ValueError where lengths differ.
    """
    return clusters.sums(np.ones(len(shift)), flipped, shift > 0, shift < 0, shift)


def _share_of(column: int) -> Statistic:
    return Statistic(_mean_of(column), _no_pair, SHARE, lambda C: C[..., _PAIRS])


def _mean_of(column: int) -> Formula:
    return lambda C: ratio(C[..., column], C[..., _PAIRS])


# Over counts (..., 5); MEAN_SHIFT is in the unit of the severities, positive for more severe.
FLIPPED = _share_of(_FLIPPED)
MORE_SEVERE = _share_of(_MORE)
LESS_SEVERE = _share_of(_LESS)
MEAN_SHIFT = Statistic(_mean_of(SHIFT), _no_pair)


def permutation_test(
    differences: FloatArray | IntArray,
    alternative: Alternative = "two-sided",
    permutations: int = 10_000,
    seed: int = 0,
) -> float | None:
    """p of the summed `differences` (clusters,) when each cluster's sign is flipped at random.

    `greater` asks whether the sum is above 0. Exact where the sign patterns give few enough
    different sums; else from `permutations` seeded draws,

        p = (1 + #{T* >= T}) / (1 + permutations),

    Phipson and Smyth (2010), "Permutation P-values Should Never Be Zero". Fisher (1935), "The
    Design of Experiments", section 21. Clusters without a difference say nothing; None where all
    are so. Of differences of -1 and 1 it is the sign test (Dixon and Mood 1946). Differences that
    are all unlike each other cost one draw a cluster and permutation.

    >>> round(permutation_test(np.array([1, 1, 1, 1, 1, -1])), 5)
    0.21875
    """
    values = np.asarray(differences, dtype=np.float64)[np.asarray(differences) != 0]
    if not len(values):
        return None
    T = float(values.sum())
    # How many clusters have a difference of each size, either way, the rarest size first.
    v, m = np.unique(np.abs(values), return_counts=True)
    place = np.argsort(m, kind="stable")
    v, m = v[place], m[place]
    slack = _ROUNDING * float(v @ m)

    def as_extreme(sums: FloatArray) -> FloatArray:
        reached = sums >= T - slack if alternative == "greater" else np.abs(sums) >= abs(T) - slack
        return reached.astype(np.float64)

    if math.prod(int(n) + 1 for n in m) <= _MOST_EXACT:
        sums, probability = _every_sum(v, m)
        return min(1.0, float(as_extreme(sums) @ probability))
    reached = sum(as_extreme(sums).sum() for sums in _drawn_sums(v, m, permutations, seed))
    return float((1 + reached) / (1 + permutations))


def _every_sum(v: FloatArray, m: IntArray) -> tuple[FloatArray, FloatArray]:
    """Every sum that turned signs can give, and its probability: sums of v_u (2 B_u - m_u) with
    B_u from Binomial(m_u, 1/2)."""
    sums, probability = np.zeros(1), np.ones(1)
    for size, n in zip(v.tolist(), m.tolist(), strict=True):
        kept = np.arange(n + 1)
        log_p = -scipy.special.betaln(n - kept + 1, kept + 1) - math.log(n + 1) - n * math.log(2)
        sums = (sums[:, None] + size * (2 * kept - n)).ravel()
        probability = (probability[:, None] * np.exp(log_p)).ravel()
    return sums, probability


def _drawn_sums(v: FloatArray, m: IntArray, permutations: int, seed: int) -> Iterator[FloatArray]:
    """Sums of as many sign patterns drawn at random, in chunks."""
    rng = np.random.default_rng(seed)
    chunk = max(1, _CHUNK // len(v))
    for start in range(0, permutations, chunk):
        kept = rng.binomial(m, 0.5, size=(min(chunk, permutations - start), len(v)))
        yield kept @ (2 * v) - float(v @ m)


def swap_test(
    counts: FloatArray, statistic: Statistic, permutations: int = 10_000, seed: int = 0
) -> float | None:
    """Two-sided p of a statistic of the second rater minus that of the first when the two change
    places at random in each cluster.

    `counts` (clusters, *shape, 2) are those of `difference_of`. From `permutations` seeded draws,
    p = (1 + #{|T*| >= |T|}) / (1 + permutations): approximate randomization, Noreen (1989),
    "Computer-Intensive Methods for Testing Hypotheses", chapter 2. A draw in which the statistic is
    undefined counts against a difference. None where the statistic is undefined, or where both
    raters are alike in every cluster.

    >>> share = Statistic(lambda C: C[..., 0] / C.sum(axis=-1), lambda C: "")
    >>> round(swap_test(np.array([[[1, 0], [0, 1]]] * 6), share, 2000), 2)
    0.03
    """
    C = np.asarray(counts, dtype=np.float64)
    shape, rows = C.shape[1:-1], C.reshape(len(C), -1, 2)
    gains = rows[..., 1] - rows[..., 0]
    gains = gains[gains.any(axis=1)]
    total = rows.sum(axis=0)

    def difference(moved: FloatArray) -> FloatArray:
        sides = (total[:, 0] + moved, total[:, 1] - moved)
        first, second = (statistic.formula(side.reshape(-1, *shape)) for side in sides)
        return np.abs(second - first)

    T = float(difference(np.zeros((1, len(total))))[0])
    if np.isnan(T) or not len(gains):
        return None
    rng, reached = np.random.default_rng(seed), 0
    chunk = max(1, _CHUNK // len(gains))
    for start in range(0, permutations, chunk):
        size = (min(chunk, permutations - start), len(gains))
        drawn = difference(rng.integers(0, 2, size).astype(np.float64) @ gains)
        reached += int((~(drawn < T - _ROUNDING)).sum())
    return (1 + reached) / (1 + permutations)


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for the false discovery rate, in order. None stays None, uncounted.

    Benjamini and Yekutieli (2001), theorem 1.3, valid however the m tests depend on each other:
    the i-th smallest is multiplied by m H_m / i, with H_m = 1 + 1/2 + ... + 1/m, and is never more
    than the one after it, nor than 1.

    >>> benjamini_yekutieli([0.01, None, 0.04])
    [0.03, None, 0.06]
    """
    from scipy.stats import false_discovery_control  # which takes a second to import

    defined = np.array([p for p in p_values if p is not None], dtype=np.float64)
    corrected = iter(false_discovery_control(defined, method="by") if len(defined) else ())
    return [None if p is None else float(next(corrected)) for p in p_values]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for how many there are, in their order. None stays None, uncounted.

    Holm (1979), step-down: the i-th smallest of m is multiplied by m - i + 1, is never less than
    the one before it, and never more than 1.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected, least = list(p_values), 0.0
    for rank, (p, place) in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - rank) * p))
        corrected[place] = least
    return corrected


_DISTANCE_ROUNDING = 1e-9


@dataclass(frozen=True)
class DuelTerms:
    """`epsilon` is how much worse than an annotator the judge may be, `q` the false discovery rate.

    Annotators with fewer than `least_items` units are not tested. `severities` (k,) decide what is
    close.
    """

    epsilon: float = 0.1
    q: float = 0.05
    least_items: int = 30
    severities: Sequence[float] | None = None


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """The annotators against whom the judge wins. All tuples are (annotators,), None for those not
    tested.

    `p_values` are as computed, `wins` what is left of them after Benjamini-Yekutieli.
    `winning_rate` and `passes` are None where no annotator could be tested; `reason` says why, or
    what else must be known of the test.
    """

    p_values: tuple[float | None, ...]
    wins: tuple[bool | None, ...]
    winning_rate: float | None
    passes: bool | None
    reason: str

    @property
    def tested(self) -> int:
        """The number of annotators that were tested."""
        return sum(p is not None for p in self.p_values)


@dataclass(frozen=True)
class _Duel:
    """The judge against one annotator on the units that inform about them, `rows` (n,).

    `judge_wins` and `annotator_wins` (n,) are the paper's W^f and W^h: at least as close to the
    others as the rival; both are 1 on a tie.
    """

    rows: NDArray[np.int64]
    judge_wins: NDArray[np.int64]
    annotator_wins: NDArray[np.int64]
    n_missing: int  # units without a label of the judge


def alternative_annotator_test(
    ratings: IntArray, judge: IntArray, k: int, terms: DuelTerms = DuelTerms()
) -> AlternativeAnnotatorTest:
    """Winning rate omega = share of annotators for whom H0: rho^f <= rho^h - epsilon is rejected.

    rho is the chance to be at least as close to the others as the rival, d_i = W^h_i - W^f_i, and
    p that of the one-sided paired t test of Calderon et al. (2025), section 3.2,

        t = (mean(d) - epsilon) / (s / sqrt(n)),

    units taken as independent; the p values are corrected by Benjamini and Yekutieli (2001). Where
    all d_i are equal there is no t, and p is the chance of so many units without a loss,
    (1 - epsilon)^n if d = 0 or -1, else 1; `reason` says so. The judge passes with omega >= 1/2.

    >>> ratings = np.tile([[0, 0, 0], [1, 1, 0]], (20, 1))
    >>> alternative_annotator_test(ratings, ratings[:, 0], k=2).winning_rate
    1.0
    """
    p_values: list[float | None] = []
    without_t = 0
    for duel in _duels(ratings, judge, k, terms):
        d = duel.annotator_wins - duel.judge_wins
        if len(d) < max(2, terms.least_items):
            p_values.append(None)
        else:
            p_values.append(_p(d, terms.epsilon))
            without_t += bool((d == d[0]).all())
    corrected = benjamini_yekutieli(p_values)
    wins = tuple(None if p is None else p <= terms.q for p in corrected)
    tested = [win for win in wins if win is not None]
    if not tested:
        reason = _why_nobody(ratings, terms)
        return AlternativeAnnotatorTest(tuple(p_values), wins, None, None, reason)
    rate, reason = sum(tested) / len(tested), ""
    if without_t:
        reason = (
            f"for {without_t} of {len(tested)} annotators all differences are equal, so that there "
            "is no t: p is the chance of so many items without a loss"
        )
    return AlternativeAnnotatorTest(tuple(p_values), wins, rate, rate >= 0.5, reason)


def average_advantage(
    ratings: IntArray,
    judge: IntArray,
    clusters: Clusters,
    k: int,
    terms: DuelTerms = DuelTerms(),
    level: float = LEVEL,
) -> Estimate:
    """rho: the mean over annotators of the share of units on which W^f = 1, ties included.

    Calderon et al. (2025), section 3; intervals are over clusters. `n` counts pairs of a unit and a
    tested annotator, `n_missing` those that lack a label of the judge.
    """
    counts, n_missing = [], 0
    for duel in _duels(ratings, judge, k, terms):
        if (n := len(duel.rows)) >= max(2, terms.least_items):
            counts.append(clusters[duel.rows].sums(duel.judge_wins, np.ones(n)))
            n_missing += duel.n_missing
    if not counts:
        return Estimate(None, reason=_why_nobody(ratings, terms), level=level)
    stacked = np.stack(counts, axis=1)
    n = round(float(stacked[..., 1].sum()))
    return clustered_estimate(stacked, _ADVANTAGE, level, n=n, n_missing=n_missing)


# Of counts (..., annotators, 2): units won and all units. The mean is not of those defined only:
# without an annotator it would be an average of other people.
_ADVANTAGE = Statistic(
    lambda C: np.asarray(ratio(C[..., 0], C[..., 1]).mean(axis=-1)),
    where_empty("there is no unit to compare"),
    SHARE,
)


def _p(d: NDArray[np.int64], epsilon: float) -> float:
    n, mean = len(d), d.mean()
    if (d == d[0]).all():
        return (1 - epsilon) ** n if mean <= 0 else 1.0
    t = (mean - epsilon) / (d.std(ddof=1) / np.sqrt(n))
    return float(stdtr(n - 1, t))


def _duels(ratings: IntArray, judge: IntArray, k: int, terms: DuelTerms) -> Iterator[_Duel]:
    """One duel per annotator."""
    votes = value_counts(ratings, k)
    s = terms.severities
    apart = 1 - np.eye(k) if s is None else label_distances(s, k)
    for own in ratings.T:
        shared = np.flatnonzero((own >= 0) & (votes.sum(axis=1) >= 2))
        others = votes[shared]
        others[np.arange(len(shared)), own[shared]] -= 1
        usable = judge[shared] >= 0
        rows, place = shared[usable], np.arange(int(usable.sum()))
        # Sums over the others order as their share of equal labels does, and as their root mean
        # square distance of severities does.
        distance = others[usable] @ apart
        of_judge, of_annotator = distance[place, judge[rows]], distance[place, own[rows]]
        slack = _DISTANCE_ROUNDING * (of_judge + of_annotator)
        wins = (of_judge <= of_annotator + slack).astype(np.int64)
        losses = (of_annotator <= of_judge + slack).astype(np.int64)
        yield _Duel(rows, wins, losses, int((~usable).sum()))


def _why_nobody(ratings: IntArray, terms: DuelTerms) -> str:
    if ratings.shape[1] < 2:
        return "the test needs two annotators"
    return (
        f"no annotator has {terms.least_items} items that another annotator and the judge labelled "
        "too"
    )
