"""Numbers that were taken several times of the same unit: what differs between units, what within.

`x` is (units, runs), NaN where there is none; the runs of a unit are interchangeable. Only units
with two numbers or more say anything. One-way random effects: x_ij = mean + unit_i + noise_ij.

Scores of responses side by side: a judge's beside the mean of the humans', or the humans' own.

`x` is (units, raters), NaN where a rater gave no score. Scores need not be whole numbers: means
over annotators or over metrics are none. Where labels are compared, see `interrater`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.agreement import (
    ICC_2_1,
    OBSERVED_AGREEMENT,
    score_sums_by_cluster,
    vote_pairs_by_cluster,
)
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.association import Coefficient, Rated, association, standardized
from judgebench.stats.classification import confusion_by_cluster
from judgebench.stats.intervals import (
    LEVEL,
    OF_CORRELATION,
    Bounds,
    Formula,
    Statistic,
    clustered_estimate,
    explained,
)
from judgebench.stats.paired_tests import NET_CHANGE
from judgebench.stats.ranks import item_ranks

_ONE_SCORE = "all scores are the same, so agreement beyond chance is undefined"


BESIDE_HUMANS = ("pearson", "spearman", "icc", "alpha")
AMONG_HUMANS = ("alpha", "icc")


def score_agreement(
    x: FloatArray, wanted: Sequence[str], clusters: Clusters,
    level: float = LEVEL,
) -> Mapping[str, Estimate]:  # fmt: skip
    """The `wanted` statistics of scores (units, raters).

    `pearson` and `spearman` correlate two raters. `icc` is ICC(2, 1), the absolute agreement of
    single raters. These are over the units that everybody scored; `alpha`, Krippendorff's at
    level `interval`, is over those with two scores.
    `n_missing` counts the other units.

    >>> x, each = np.array([1.0, 2.0, 4.0]), Clusters(np.arange(3), 3)
    >>> found = score_agreement(np.stack([x + 1, x], axis=1), BESIDE_HUMANS, each)
    >>> round(found["pearson"].value, 3)
    1.0
    """
    scores = (~np.isnan(x)).sum(axis=1)
    found = {}
    for name in wanted:
        if name in _CORRELATIONS:
            first, second = x.round(12).T  # so that equal means are level
            rated = Rated(first, second, clusters)
            found[name] = association(rated, "pooled", _CORRELATIONS[name], level).estimate
            continue
        counts, statistic = _STATISTICS[name]
        used = scores >= (2 if name == "alpha" else x.shape[1])
        n = int(used.sum())
        sums = counts(x[used], clusters[used])
        found[name] = clustered_estimate(sums, statistic, level, n=n, n_missing=len(x) - n)
    return found


def _alpha_sums(x: FloatArray, clusters: Clusters) -> FloatArray:
    """The sums of which alpha is a function, for units with m >= 2 scores (units, raters):
    (clusters, 4), the sums of m, of the scores, of their squares, and of the squared differences of
    all ordered pairs of them over m - 1."""
    m = (~np.isnan(x)).sum(axis=1)
    total, squares = np.nansum(x, axis=1), np.nansum(x**2, axis=1)
    differences = 2 * (m * squares - total**2) / (m - 1)
    return clusters.sums(m, total, squares, differences)


def _alpha(sums: FloatArray) -> FloatArray:
    """1 - D_o / D_e, as in `interrater.krippendorff_alpha` at level `interval`."""
    n, total, squares, differences = np.moveaxis(sums, -1, 0)
    expected = 2 * (n * squares - total**2)
    clear = np.where(expected > _ROUNDING * n * squares, expected, 0)
    return 1 - ratio((n - 1) * differences, clear)


def _why_no_alpha(sums: FloatArray) -> str:
    return _ONE_SCORE if sums[0] else "no response has two scores"


# What a statistic is a function of, of scores (units, raters) and their clusters, and itself.
# Alpha is that of Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", with the
# squared differences of the scores themselves.
_STATISTICS: Mapping[str, tuple[Callable[[FloatArray, Clusters], FloatArray], Statistic]] = {
    "icc": (score_sums_by_cluster, ICC_2_1),
    "alpha": (_alpha_sums, explained(_alpha, _why_no_alpha, OF_CORRELATION)),
}
_CORRELATIONS: Mapping[str, Coefficient] = {"pearson": "pearson", "spearman": "spearman"}


NO_TRUTH = "no item that was asked again has a reference label"
NO_REPEAT = "no item has two verdicts with a label"


def self_agreement(
    ratings: IntArray, labels: IntArray, truth: IntArray, clusters: Clusters, k: int, level: float
) -> dict[str, Estimate]:
    """The agreement of the verdicts `ratings` (items, asked) of an item among themselves, and the
    accuracy of the `labels` (items,) that their majority makes minus that of the first verdict; -1
    is no label.

    The verdicts of an item stay together where questions are left out: what differs between
    questions holds the noise of their verdicts, so that intervals are those of other questions
    with as many other verdicts each.

    >>> found = self_agreement(np.array([[0, 0, 1]]), np.array([0]), np.array([0]),
    ...     Clusters(np.arange(1), 1), 2, LEVEL)
    >>> round(found["agreement"].value, 3), found["majority_gain"].value
    (0.333, 0.0)
    """
    items, asked = ratings.shape
    votes = vote_pairs_by_cluster(ratings, clusters, k)
    n, possible = round(votes.sum()), items * asked * (asked - 1) // 2
    agreement = clustered_estimate(votes, OBSERVED_AGREEMENT, level, n=n, n_missing=possible - n)
    known = (truth >= 0) & (ratings[:, 0] >= 0)
    first, last = ((x == truth)[known].astype(np.int64) for x in (ratings[:, 0], labels))
    counts = confusion_by_cluster(first, last, clusters[known], 2)
    n_known, n_truth = int(known.sum()), int((truth >= 0).sum())
    gain = clustered_estimate(counts, NET_CHANGE, level, n=n_known, n_missing=n_truth - n_known)
    return {
        "asked": Estimate(asked),
        "agreement": agreement if n else replace(agreement, reason=NO_REPEAT),
        "majority_gain": gain if n_truth else replace(gain, reason=NO_TRUTH),
    }


NO_UNIT = "nothing was scored twice"
ONE_UNIT = "only one unit was scored twice"
CONSTANT = "all scores are the same"
NO_SPREAD = (
    "the units differ no more than their repeats do, so that no number of runs tells them apart"
)
NO_ZERO = "its scale is not known to have a true zero, so that a share of the mean says nothing"
RELIABLE = 0.9
_ROUNDING = 1e-12
_SLACK = 1e-9  # what rounding adds to a number of runs

# Where the sums of a cluster are; n counts units, N numbers, m is a unit's mean.
_n, _N, _k2, _WITHIN, _km, _km2, _VARIANCE, _CV, _WITH_CV = range(9)


def spread_sums(x: FloatArray, clusters: Clusters) -> FloatArray:
    """Sums (clusters, 9) of which every statistic below is a function.

    Numbers are counted from their mean, so that a large constant costs no precision; the units'
    means above 0 alone have a coefficient of variation. Raises ValueError where lengths differ.
    """
    k = (~np.isnan(x)).sum(axis=1)
    x, k, clusters = x[k >= 2], k[k >= 2], clusters[k >= 2]
    m = ratio(np.nansum(x, axis=1), k)
    # Equal numbers differ by nothing, whatever rounding makes of their mean.
    same = np.nanmax(x, axis=1, initial=-np.inf) == np.nanmin(x, axis=1, initial=np.inf)
    within = np.where(same, 0, np.nansum((x - m[:, None]) ** 2, axis=1))
    variance = ratio(within, k - 1)
    cv = np.where(m > 0, ratio(np.sqrt(variance), m), np.nan)
    mean = m.mean() if len(m) else 0.0
    centred = np.where(np.abs(m - mean) > _ROUNDING * np.abs(mean), m - mean, 0)
    terms = (
        np.ones(len(x)), k, k**2, within, k * centred, k * centred**2, variance,
        np.nan_to_num(cv), ~np.isnan(cv),
    )  # fmt: skip
    return clusters.sums(*terms)


def _components(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The variances between and within units, each (...), estimated by the mean squares.

    Searle, Casella and McCulloch (1992), "Variance Components", section 3.6: with k_i numbers of
    unit i and k_0 = (N - sum(k_i^2) / N) / (n - 1), they are (MSB - MSW) / k_0 and MSW. Without
    bias, so that the first may be negative.
    """
    n, N, k2 = sums[..., _n], sums[..., _N], sums[..., _k2]
    MSW = ratio(sums[..., _WITHIN], N - n)
    MSB = ratio(sums[..., _km2] - ratio(sums[..., _km] ** 2, N), n - 1)
    return ratio((MSB - MSW) * (n - 1), N - ratio(k2, N)), MSW


def _icc(sums: FloatArray) -> FloatArray:
    between, within = _components(sums)
    whole = between + within
    return ratio(between, np.where(whole > _ROUNDING * (np.abs(between) + within), whole, 0))


def _of(
    formula: Formula, reason: str, least: int = 2, bounds: Bounds = (0.0, math.inf)
) -> Statistic:
    def undefined(sums: FloatArray) -> str:
        if sums[_n] < least:
            return ONE_UNIT if sums[_n] else NO_UNIT
        return reason if np.isnan(formula(sums)) else ""

    return Statistic(formula, undefined, bounds)


# Standard deviations, in units of the score: of the noise, and of the units without it (0 where the
# noise alone explains how they differ).
WITHIN_SD = _of(lambda sums: np.sqrt(_components(sums)[1]), NO_UNIT, 1)
BETWEEN_SD = _of(lambda sums: np.sqrt(np.maximum(_components(sums)[0], 0)), ONE_UNIT)
# Shrout and Fleiss (1979), ICC(1, 1), also where units have unequal numbers: the share of the
# variance of single numbers that is between units.
ICC = _of(_icc, CONSTANT, bounds=OF_CORRELATION)


def runs_for_reliability(icc: Estimate) -> Estimate:
    """The number of runs whose mean has a reliability of 0.9, of an estimate of `ICC`: the standard
    error is then a third of the spread between units. Spearman (1910), Brown (1910). No interval
    where no number is surely enough."""

    def needed(icc: float) -> float:
        if icc <= _ROUNDING:
            return math.inf
        return max(1.0, math.ceil(RELIABLE / (1 - RELIABLE) * (1 - icc) / icc - _SLACK))

    if icc.value is None:
        return icc
    runs = replace(icc, value=needed(icc.value), low=None, high=None)
    if icc.value <= _ROUNDING:
        return replace(runs, value=None, method="", reason=NO_SPREAD)
    if icc.low is None or icc.high is None:
        return runs
    low, high = needed(icc.high), needed(icc.low)
    if math.isinf(high):
        reason = f"{low:g} or more: no number of runs is surely enough"
        return replace(runs, method="", reason=reason)
    return replace(runs, low=low, high=high)


def coefficient_of_variation(ratio_scale: bool) -> Statistic:
    """The mean over units of standard deviation / mean; defined for ratio scales alone.

    "Automatic Evaluation of Healthcare LLMs Beyond Question-Answering", appendix C.2.
    """

    def cv(sums: FloatArray) -> FloatArray:
        found = ratio(sums[..., _CV], sums[..., _WITH_CV])
        return found if ratio_scale else np.full_like(found, np.nan)

    return _of(cv, "no unit has a mean above 0" if ratio_scale else NO_ZERO, 1)


def variance_over_range(spread: float) -> Statistic:
    """The mean variance within units over the range of all scores, the same paper, appendix C.1.

    It has the unit of the score, and a metric whose scores are low but for a few has a wide range
    and so looks steady whatever its noise.
    """
    return _of(lambda sums: ratio(sums[..., _VARIANCE], spread * sums[..., _n]), CONSTANT, 1)


LEAST = 3
"""Of fewer items any two scorers lie on a line."""
_MOMENT_ROUNDING = 1e-9


def redundancy(scores: FloatArray, ranked: bool = True) -> tuple[FloatArray, IntArray]:
    """The correlations (m, m) of all pairs of columns (items, m), on the items that both scored,
    and the numbers (m, m) of these items.

    Spearman's rho, or Pearson's r where they are not `ranked`; ranks are those in the whole column.
    NaN where a column is constant, and of fewer than LEAST items.

    >>> r, n = redundancy(np.array([[1.0, 1], [2, 4], [3, 9], [4, np.nan]]))
    >>> round(float(r[0, 1]), 3), int(n[0, 1])
    (1.0, 3)
    """
    columns = [item_ranks(column) if ranked else standardized(column) for column in scores.T]
    there = ~np.isnan(scores)
    known, x = there.astype(np.float64), np.where(there, np.stack(columns, axis=1), 0)
    n, sx, xx, xy = (a.T @ b for a, b in ((known, known), (x, known), (x * x, known), (x, x)))
    spread = n * xx - sx**2
    spread = np.where((spread > _MOMENT_ROUNDING * n * xx) & (n >= LEAST), spread, 0)
    r = ratio(n * xy - sx * sx.T, np.sqrt(spread * spread.T))
    return np.clip(r, -1, 1), n.astype(np.int64)
