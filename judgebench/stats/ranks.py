"""Ranks of judges or systems: within a block or item, over many of them, and over resamples.

`scores` is (blocks, judges), higher is better and nothing is missing; a block may be a metric, a
question or a data set. Rank 1 is the best; equal scores share their mean rank. Rankings of
systems within each item are (..., k), k >= 2 systems on the last axis; there, scores that differ
by no more than `TIE` are level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from judgebench.stats.arrays import FloatArray, IntArray, ratio


@dataclass(frozen=True)
class Friedman:
    """Friedman's test. `average_ranks` is (judges,); `chi_square` and `p` are None where the judges
    tie on every block."""

    average_ranks: FloatArray
    chi_square: float | None
    p: float | None
    blocks: int


def friedman(scores: FloatArray) -> Friedman:
    """Do k judges differ in rank over n blocks? Friedman's chi-square, corrected for ties.

        chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / (sum_ij r_ij^2 - n k (k + 1)^2 / 4)

    with r_ij the ranks within block i and R_j = sum_i r_ij; p from the chi-square distribution
    with k - 1 degrees of freedom. Friedman (1937); the correction as in Conover (1999), "Practical
    Nonparametric Statistics", section 5.8. Raises ValueError with fewer than 3 judges
    or 2 blocks, or where a score is missing.

    >>> found = friedman(np.array([[3.0, 2, 1], [3, 1, 2], [3, 2, 1]]))
    >>> found.average_ranks.round(2).tolist(), round(found.p, 3)
    ([1.0, 2.33, 2.67], 0.097)
    """
    n, k = scores.shape
    if k < 3 or n < 2:
        raise ValueError(f"needs 3 judges and 2 blocks or more; found {k} and {n}")
    if np.isnan(scores).any():
        raise ValueError("a score is missing: leave its block out")
    r = mid_ranks(scores)
    R = r.sum(axis=0)
    spread = float((r**2).sum() - n * k * (k + 1) ** 2 / 4)
    if spread <= 0:
        return Friedman(R / n, None, None, n)
    chi_square = float((k - 1) * ((R - n * (k + 1) / 2) ** 2).sum() / spread)
    return Friedman(R / n, chi_square, float(chdtrc(k - 1, chi_square)), n)


def nemenyi_critical_difference(judges: int, blocks: int, level: float = 0.95) -> float:
    """How far apart two average ranks must be to differ, when all pairs are compared.

    CD = q sqrt(k (k + 1) / (6 n)), q the quantile of the studentized range of k groups with
    infinite degrees of freedom over sqrt(2). Nemenyi (1963); Demsar (2006), "Statistical
    Comparisons of Classifiers over Multiple Data Sets", section 3.2.2.

    >>> round(nemenyi_critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(level, judges, math.inf)) / math.sqrt(2)
    return q * math.sqrt(judges * (judges + 1) / (6 * blocks))


def groups(average_ranks: FloatArray, critical_difference: float) -> list[str]:
    """One or more letters per judge; judges that share a letter do not differ.

    A group is a run of judges, in the order of their ranks, whose first and last lie closer than
    the critical difference, and that is part of no longer such run: the bars of the diagram in
    Demsar (2006), figure 1. `a` holds the best judge; after `z` come numbers in brackets.
    """
    order = np.argsort(average_ranks, kind="stable")
    sorted_ranks = average_ranks[order]
    ends = np.searchsorted(sorted_ranks, sorted_ranks + critical_difference, side="left")
    letters = [""] * len(order)
    reached, number = 0, 0
    for start, end in enumerate(ends.tolist()):
        if end <= reached:
            continue
        letter = chr(ord("a") + number) if number < 26 else f"[{number + 1}]"
        for place in range(start, end):
            letters[order[place]] += letter
        reached, number = end, number + 1
    return letters


def mid_ranks(scores: FloatArray) -> FloatArray:
    """Ranks over the last axis (..., judges): 1 + those above + half of the others level."""
    above = (scores[..., None, :] > scores[..., :, None]).sum(axis=-1)
    level = (scores[..., None, :] == scores[..., :, None]).sum(axis=-1)
    return np.asarray(1 + above + (level - 1) / 2)


def item_ranks(x: FloatArray | IntArray) -> FloatArray:
    """Ranks of many items (items,) from the middle, the lowest first, NaN where there is nothing.

    >>> item_ranks(np.array([3.0, np.nan, 1, 3])).tolist()
    [0.5, nan, -1.0, 0.5]
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, nan_policy="omit") - ((~np.isnan(x)).sum() + 1) / 2)


# A float32 model gives the same text a probability that changes by 1e-7 with its batch.
TIE = 1e-6


def levels(scores: FloatArray) -> FloatArray:
    """The scores as whole numbers 0, 1, … from the lowest, level scores alike (..., k).

    Two scores are level where no step of more than `TIE` lies between them in the sorted row.
    """
    order = np.argsort(scores, axis=-1, kind="stable")
    steps = np.diff(np.take_along_axis(scores, order, axis=-1), axis=-1) > TIE
    found = np.zeros(scores.shape)
    np.put_along_axis(found, order[..., 1:], np.cumsum(steps, axis=-1), axis=-1)
    return found


def places(scores: FloatArray) -> FloatArray:
    """The place of each score in its row (..., k): 1 is the best, level scores share their mean
    place."""
    return mid_ranks(levels(scores))


def tau_b(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's tau_b = (P - Q) / sqrt((n_0 - n_1) (n_0 - n_2)) of each row (...,).

    P and Q count the pairs of systems in the same and in the opposite order, n_0 - n_1 and
    n_0 - n_2 the pairs that are not level in x and in y. NaN where a row is level throughout.
    Kendall (1945), "The Treatment of Ties in Ranking Problems".

    >>> tau_b(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).round(3).item()
    0.333
    """
    dx, dy = (
        np.sign(level[..., :, None] - level[..., None, :]) for level in (levels(x), levels(y))
    )
    untied = [np.abs(d).sum(axis=(-2, -1)) for d in (dx, dy)]
    tau = ratio((dx * dy).sum(axis=(-2, -1)), np.sqrt(untied[0] * untied[1]))
    return np.clip(tau, -1, 1)


def pearson(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of each row (...,), sum dx dy / sqrt(sum dx2 dy2); NaN where one varies by no
    more than `TIE`."""
    dx, dy = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
    varies = (np.ptp(x, axis=-1) > TIE) & (np.ptp(y, axis=-1) > TIE)
    spread = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.clip(ratio((dx * dy).sum(axis=-1), np.where(varies, spread, 0)), -1, 1)


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rho of each row (...,): Pearson's r of the places. NaN where a row is level
    throughout. Spearman (1904); ties as in Kendall (1945).

    >>> spearman(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).item()
    0.5
    """
    return pearson(places(x), places(y))


def top_match(x: FloatArray, y: FloatArray) -> FloatArray:
    """The chance |A ∩ B| / (|A| |B|) that one of the best in x and one of the best in y, each drawn
    at random, are the same system (...,).

    A and B are the systems that share the first place. Where one side is level throughout this is
    1 / k, whatever the other says, so that ties bring no advantage; hence two rows with the same m
    systems in the first place meet in 1 / m, not in 1.

    >>> top_match(np.array([1.0, 3, 3]), np.array([1.0, 2, 3])).item()
    0.5
    """
    best_x, best_y = (
        level == level.max(axis=-1, keepdims=True) for level in (levels(x), levels(y))
    )
    pairs = best_x.sum(axis=-1) * best_y.sum(axis=-1)
    return ratio((best_x & best_y).sum(axis=-1), pairs)


@dataclass(frozen=True)
class Firmness:
    """`low` and `high` (k,) are the limits of each system's place; `above` (k, k) is the share of
    resamples in which system i scores above system j, level scores counting half."""

    low: FloatArray
    high: FloatArray
    above: FloatArray


def firmness(replicates: FloatArray, level: float = 0.95) -> Firmness:
    """How places vary over resampled scores (resamples, k), higher is better, none missing.

    The limits are the (1 - level) / 2 and (1 + level) / 2 quantiles of the place, taken where the
    distribution steps, so that they are places that occurred. Goldstein and Spiegelhalter (1996),
    "League Tables and Their Limitations"; by resamples as in Hall and Miller (2009), "Using the
    Bootstrap to Quantify the Authority of an Empirical Ranking".
    """
    tail = (1 - level) / 2
    low, high = np.quantile(places(replicates), [tail, 1 - tail], axis=0, method="inverted_cdf")
    score = levels(replicates)
    order = np.sign(score[:, :, None] - score[:, None, :])
    return Firmness(low, high, (order.mean(axis=0) + 1) / 2)
