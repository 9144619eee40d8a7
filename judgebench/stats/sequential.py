"""Looks at a study before its end: how much stricter each must be so that errors stay rare."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr, ndtri

from judgebench.stats.arrays import FloatArray

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
    z, levels, spent, before = float(-ndtri((1 - level) / 4)), [], 0.0, 0.0
    nodes, weights = leggauss(_NODES)
    # S_k = Z_k sqrt(t_k) is a sum of independent steps: `mass` is the probability near `at` of it
    # and of no bound having been reached.
    at, mass = np.zeros(1), np.ones(1)
    for share in shares:
        spend, step = 2 * float(ndtr(-z / math.sqrt(share))) - spent, math.sqrt(share - before)
        bound = _bound(at, mass, step, spend, _WIDEST * math.sqrt(share))
        levels.append(1 - 2 * float(ndtr(-bound / math.sqrt(share))))
        half = (bound + _WIDEST * math.sqrt(share)) / 2
        reached = bound + half * (nodes - 1)
        density = np.exp(-(((reached[:, None] - at) / step) ** 2) / 2) @ mass
        at, mass = reached, density * half * weights / (step * math.sqrt(2 * math.pi))
        spent, before = spent + spend, share
    return levels


def _bound(at: FloatArray, mass: FloatArray, step: float, spend: float, most: float) -> float:
    """What S_k passes with probability `spend`, by bisection between `-most` and `most`."""
    low, high = -most, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mass @ ndtr((at - middle) / step) > spend else (low, middle)
    return high
