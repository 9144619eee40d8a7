"""Judges ranked on several blocks: whether their ranks differ at all, and which of them do.

`scores` is (blocks, judges), higher is better and nothing is missing; a block may be a metric, a
question or a data set. Rank 1 is the best; equal scores share their mean rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr

from judgebench.stats.arrays import FloatArray

_Z = np.linspace(-10, 10, 1001)  # where the normal density is not 0
_HALVINGS = 50


@dataclass(frozen=True)
class Friedman:
    """Friedman's test. `average_ranks` is (judges,); `chi_square` and `p` are None where the judges
    tie on every block."""

    average_ranks: FloatArray
    chi_square: float | None
    p: float | None
    blocks: int


def average_ranks(scores: FloatArray) -> FloatArray:
    """The mean rank of each judge (judges,) over the blocks."""
    ranks: FloatArray = mid_ranks(scores).mean(axis=0)
    return ranks


def friedman(scores: FloatArray) -> Friedman:
    """Do k judges differ in rank over n blocks? Friedman's chi-square, corrected for ties.

        chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / (sum_ij r_ij^2 - n k (k + 1)^2 / 4)

    with r_ij the ranks within block i and R_j = sum_i r_ij; p from the chi-square distribution
    with k - 1 degrees of freedom. Friedman (1937); the correction as in Conover (1999), "Practical
    Nonparametric Statistics", section 5.8. Raises ValueError with fewer than 3 judges
    or 2 blocks, or where a score is missing.
    """
    n, k = _checked(scores)
    r = mid_ranks(scores)
    R = r.sum(axis=0)
    spread = float((r**2).sum() - n * k * (k + 1) ** 2 / 4)
    if spread <= 0:
        return Friedman(R / n, None, None, n)
    chi_square = float((k - 1) * ((R - n * (k + 1) / 2) ** 2).sum() / spread)
    return Friedman(R / n, chi_square, float(chdtrc(k - 1, chi_square)), n)


def iman_davenport(chi_square: float, blocks: int, judges: int) -> tuple[float, float]:
    """F and its p from Friedman's chi-square, which is too cautious with few blocks.

    F = (n - 1) chi2 / (n (k - 1) - chi2), with k - 1 and (k - 1)(n - 1) degrees of freedom. Iman
    and Davenport (1980). F is infinite, and p is 0, where all blocks rank alike.
    """
    n, k = blocks, judges
    rest = n * (k - 1) - chi_square
    if rest <= 1e-9 * n * k:
        return math.inf, 0.0
    F = (n - 1) * chi_square / rest
    return F, float(fdtrc(k - 1, (k - 1) * (n - 1), F))


def nemenyi_critical_difference(judges: int, blocks: int, level: float = 0.95) -> float:
    """How far apart two average ranks must lie to differ, all pairs held against each other.

    CD = q sqrt(k (k + 1) / (6 n)), q the quantile of the studentized range of k groups with
    infinite degrees of freedom over sqrt(2). Nemenyi (1963); Demsar (2006), "Statistical
    Comparisons of Classifiers over Multiple Data Sets", section 3.2.2.
    """
    low, high = 0.0, 1.0
    while studentized_range_tail(np.array(high), judges) > 1 - level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = studentized_range_tail(np.array(middle), judges) > 1 - level
        low, high = (middle, high) if beyond else (low, middle)
    return high / math.sqrt(2) * _standard_error(judges, blocks)


def nemenyi(average_ranks: FloatArray, blocks: int) -> FloatArray:
    """p of every pair (judges, judges), 1 on the diagonal, corrected for how many pairs there are.

    P(Q >= sqrt(2) |R_i - R_j| / sqrt(k (k + 1) / (6 n))), with Q the studentized range of k groups
    with infinite degrees of freedom. Nemenyi (1963); Demsar (2006), section 3.2.2.
    """
    k = len(average_ranks)
    apart = np.abs(average_ranks[:, None] - average_ranks[None, :])
    sizes, place = np.unique(apart, return_inverse=True)
    z = math.sqrt(2) * sizes / _standard_error(k, blocks)
    return studentized_range_tail(z, k)[place].reshape(k, k)


def studentized_range_tail(q: FloatArray, k: int) -> FloatArray:
    """P(Q >= q) for the range Q of k standard normal values, of any shape of q >= 0.

        1 - k integral phi(z) (Phi(z) - Phi(z - q))^(k - 1) dz

    The studentized range with infinite degrees of freedom. Tippett (1925); Hartley (1942), "The
    Range in Random Samples". By the trapezoid rule, which is exact to rounding for so smooth an
    integrand.
    """
    phi = np.exp(-(_Z**2) / 2) / math.sqrt(2 * math.pi)
    inside = (ndtr(_Z) - ndtr(_Z - q[..., None])) ** (k - 1)
    tail: FloatArray = np.clip(1 - k * (phi * inside).sum(axis=-1) * (_Z[1] - _Z[0]), 0, 1)
    return tail


def groups(average_ranks: FloatArray, critical_difference: float) -> list[str]:
    """One or more letters a judge; judges that share a letter do not differ.

    A group is a run of judges, in the order of their ranks, whose first and last lie closer than
    the critical difference, and that is part of no longer such run: the bars of the diagram in
    Demsar (2006), figure 1. `a` holds the best judge.
    """
    order = np.argsort(average_ranks, kind="stable")
    sorted_ranks = average_ranks[order]
    ends = np.searchsorted(sorted_ranks, sorted_ranks + critical_difference, side="left")
    letters = [""] * len(order)
    reached = 0
    number = 0
    for start, end in enumerate(ends.tolist()):
        if end <= reached:
            continue
        for place in range(start, end):
            letters[order[place]] += _letter(number)
        reached, number = end, number + 1
    return letters


def _letter(number: int) -> str:
    """a, b, … z, and numbers in brackets after these."""
    return chr(ord("a") + number) if number < 26 else f"[{number + 1}]"


def _standard_error(k: int, n: int) -> float:
    return math.sqrt(k * (k + 1) / (6 * n))


def _checked(scores: FloatArray) -> tuple[int, int]:
    n, k = scores.shape
    if k < 3 or n < 2:
        raise ValueError(f"needs 3 judges and 2 blocks or more; found {k} and {n}")
    if np.isnan(scores).any():
        raise ValueError("a score is missing: leave its block out")
    return n, k


def mid_ranks(scores: FloatArray) -> FloatArray:
    """Ranks over the last axis (..., judges): 1 + those above + half of the others level."""
    above = (scores[..., None, :] > scores[..., :, None]).sum(axis=-1)
    level = (scores[..., None, :] == scores[..., :, None]).sum(axis=-1)
    ranks: FloatArray = 1 + above + (level - 1) / 2
    return ranks
