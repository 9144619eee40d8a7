"""Systems ranked within each item, and how far two rankings of an item agree.

All arrays are (..., k): one row an item, or a resample, and k >= 2 systems on the last axis, higher
is better and nothing is missing. Scores that differ by no more than `TIE` are level.
"""

from __future__ import annotations

import numpy as np

from judgebench.stats.arrays import FloatArray, ratio
from judgebench.stats.ranks import mid_ranks

# A float32 model gives the same text a probability that moves by 1e-7 with the batch it stands in.
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
    """
    dx, dy = (
        np.sign(level[..., :, None] - level[..., None, :]) for level in (levels(x), levels(y))
    )
    untied = [np.abs(d).sum(axis=(-2, -1)) for d in (dx, dy)]
    tau = ratio((dx * dy).sum(axis=(-2, -1)), np.sqrt(untied[0] * untied[1]))
    return np.clip(tau, -1, 1)


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rho of each row (...,): Pearson's r of the places, sum dx dy / sqrt(sum dx2 dy2).

    The deviations are from the mean place (k + 1) / 2. NaN where a row is level throughout.
    Spearman (1904); ties as in Kendall (1945).
    """
    middle = (x.shape[-1] + 1) / 2
    dx, dy = places(x) - middle, places(y) - middle
    spread = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.clip(ratio((dx * dy).sum(axis=-1), spread), -1, 1)


def top_match(x: FloatArray, y: FloatArray) -> FloatArray:
    """The chance |A ∩ B| / (|A| |B|) that one of the best in x and one of the best in y, each drawn
    at random, are the same system (...,).

    A and B are the systems that share the first place. Where one side is level throughout this is
    1 / k, whatever the other says, so that nobody gains by ties; hence two rows with the same m
    systems in the first place meet in 1 / m, not in 1.
    """
    best_x, best_y = (
        level == level.max(axis=-1, keepdims=True) for level in (levels(x), levels(y))
    )
    pairs = best_x.sum(axis=-1) * best_y.sum(axis=-1)
    return ratio((best_x & best_y).sum(axis=-1), pairs)
