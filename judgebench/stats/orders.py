"""Does a judge put the responses to one question into the order that the humans put them into?

A tuple is k responses to one question. Its order is the sign of each difference between two of
them, (tuples, k (k - 1) / 2), in the order of np.triu_indices: -1, 0 (level) or 1. A judge is right
about a tuple where every sign is that of the humans, so that a tie must be answered by a tie: of
three responses one of 13 weak orders is right.
"""

from __future__ import annotations

from itertools import combinations
from math import ceil, comb, factorial

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.ranks import TIE

MOST_TUPLES = 400_000
Flags = NDArray[np.bool_]


def count_tuples(groups: IntArray, k: int) -> int:
    """How many k-tuples of items of one group there are; `groups` (items,) are numbers from 0."""
    return sum(comb(n, k) for n in np.bincount(groups).tolist())


def tuples_within(groups: IntArray, k: int, most: int = MOST_TUPLES, seed: int = 0) -> IntArray:
    """The items of every k-tuple within a group (tuples, k).

    Where there are more than `most` in all, each group gives its share of so many, drawn at random
    with replacement, and one at least.

    >>> tuples_within(np.array([0, 1, 0, 0]), 2).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    share = min(1.0, most / max(1, count_tuples(groups, k)))
    found = [np.empty((0, k), dtype=np.int64)]
    for n in np.unique(sizes[sizes >= k]).tolist():
        of = starts[sizes == n][:, None, None]
        if share == 1:
            places = np.array(list(combinations(range(n), k)))[None]
        else:
            drawn = ceil(share * comb(n, k))
            places = rng.integers(0, n - np.arange(k), size=(len(of), drawn, k))
            for place in range(1, k):  # the drawn one of those that are left
                for taken in np.moveaxis(np.sort(places[..., :place], axis=-1), -1, 0):
                    places[..., place] += places[..., place] >= taken
            places.sort(axis=-1)
        found.append(order[of + places].reshape(-1, k))
    return np.concatenate(found)


def signs(scores: FloatArray, tolerance: float = TIE) -> FloatArray:
    """The order of each tuple of scores (tuples, k): (tuples, k (k - 1) / 2).

    Scores that differ by no more than `tolerance` are level. NaN beside a score that is NaN.

    >>> signs(np.array([[1.0, 1.0, 3.0]])).tolist()
    [[0.0, -1.0, -1.0]]
    """
    first, second = np.triu_indices(scores.shape[1], 1)
    difference = scores[:, first] - scores[:, second]
    difference[np.abs(difference) <= tolerance] = 0
    return np.sign(difference)


def places_of(order: FloatArray) -> tuple[NDArray[np.int8], Flags]:
    """How many of its tuple each item is above (tuples, k), and whether the signs are a weak order
    (tuples,): with A > B, B > C and C > A they are none."""
    k = round((1 + (1 + 8 * order.shape[1]) ** 0.5) / 2)
    first, second = np.triu_indices(k, 1)
    above = np.zeros((len(order), k), dtype=np.int8)
    for column, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        above[:, i] += order[:, column] > 0
        above[:, j] += order[:, column] < 0
    whole = (np.sign(above[:, first] - above[:, second]) == order).all(axis=1)
    return above, whole


def right(truth: FloatArray, judged: FloatArray) -> FloatArray:
    """1 where the judge's order is that of the humans, else 0; NaN where a label of it is missing
    (tuples,)."""
    return np.where(np.isnan(judged).any(axis=1), np.nan, (truth == judged).all(axis=1))


def right_by_chance(truth: FloatArray, judged: FloatArray, groups: IntArray) -> FloatArray:
    """How likely each tuple is right if the judge's labels are dealt out anew, at random, among the
    responses to each question (tuples,); NaN where a label of the judge is missing.

    Exact, without a simulation. Every ordered tuple of the question's responses is then equally
    likely to have lent its labels, so that

        P(right) = share of the judge's tuples of the question with as many levels of the same
                   sizes m_1, m_2, … from the lowest, times m_1! m_2! … / k!

    and 0 where the humans' signs are no weak order, as with a tolerance may happen. `groups`
    (tuples,) are the questions, numbers from 0.

    >>> order = signs(np.array([[1.0, 2.0], [1.0, 1.0]]))
    >>> right_by_chance(order, order, np.zeros(2, int)).tolist()
    [0.25, 0.5]
    """
    (shape_h, whole), (shape_j, _) = _shapes(truth), _shapes(judged)
    given = ~np.isnan(judged).any(axis=1)
    k = round((1 + (1 + 8 * truth.shape[1]) ** 0.5) / 2)
    own = Clusters(groups, int(groups.max(initial=-1)) + 1)
    of_judge = own[given].table(shape_j[given], 1 << (k - 1))
    shares = ratio(of_judge, of_judge.sum(axis=1, keepdims=True))
    chance = np.array([1 / _orders(code, k) for code in range(1 << (k - 1))])
    found = np.where(whole, shares[groups, shape_h] * chance[shape_h], 0.0)
    return np.where(given, found, np.nan)


def _shapes(order: FloatArray) -> tuple[IntArray, Flags]:
    """Where the levels of each tuple begin, as bits (tuples,), and whether it is a weak order."""
    above, whole = places_of(order)
    steps = np.diff(np.sort(above, axis=1), axis=1) > 0
    return steps @ (1 << np.arange(steps.shape[1])), whole


def _orders(shape: int, k: int) -> int:
    """How many weak orders of k items have levels of these sizes: k! / (m_1! m_2! …)."""
    found, size = factorial(k), 1
    for place in range(k - 1):
        size = 1 if shape >> place & 1 else size + 1
        found //= size
    return found


def triples_of_pairs(
    question: IntArray, sides: IntArray, most: int = MOST_TUPLES, seed: int = 0
) -> tuple[IntArray, FloatArray]:
    """Three pairs each (triples, 3) that compare three responses A, B and C to one question, as
    A-B, A-C and B-C, and 1 where a pair stands so, -1 where it is the other way round.

    `question` (pairs,) and `sides` (pairs, 2) are numbers from 0. Of more than `most`
    combinations as many are drawn at random.

    >>> triples_of_pairs(np.array([0, 0, 0]), np.array([[0, 1], [2, 0], [1, 2]]))[1].tolist()
    [[1.0, -1.0, 1.0]]
    """
    size = int(sides.max(initial=0)) + 1
    of, places = np.unique(question[:, None] * size + sides, return_inverse=True)
    starts = np.searchsorted(of // size, np.arange(int(question.max(initial=0)) + 1))
    local = places.reshape(sides.shape) - starts[question][:, None]
    width = int(local.max(initial=0)) + 1
    pair = np.full((len(starts), width, width), -1)
    pair[question, local.min(axis=1), local.max(axis=1)] = np.arange(len(question))
    chosen = np.array(list(combinations(range(width), 3)), dtype=np.int64).reshape(-1, 3)
    if len(chosen) * len(starts) > most:
        drawn = np.random.default_rng(seed).permutation(len(chosen))
        chosen = chosen[np.sort(drawn[: max(1, most // len(starts))])]
    a, b, c = chosen.T
    found = np.stack([pair[:, a, b], pair[:, a, c], pair[:, b, c]], axis=-1).reshape(-1, 3)
    found = found[(found >= 0).all(axis=1)]
    upright = np.where(local[:, 0] < local[:, 1], 1.0, -1.0)
    return found, upright[found]


def nearest_label(scores: FloatArray, severities: FloatArray) -> FloatArray:
    """Each score (items,) as a judge can say it that has the labels only: the severity of the
    nearest label, the more severe one where two are as near. `severities` rise.

    >>> nearest_label(np.array([0.2, 0.5, 1.7]), np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    middle = (severities[1:] + severities[:-1]) / 2
    found = severities[np.searchsorted(middle - TIE, scores)]
    return np.where(np.isnan(scores), np.nan, found)
