"""Preferences between two responses: a judge beside each vote, and three pairs of three systems.

Labels are 0 (the first is better), 1 (the second), 2 (a tie) and -1 (none). Counts are
(..., 3, 4): votes by label, and what the judge said of the same pair, the last column where it gave
no label.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Literal

import numpy as np

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.interrater import vote_pairs_by_cluster
from judgebench.stats.orders import MOST_TUPLES, Signs
from judgebench.stats.resample import Statistic

SIGNS = np.array([1, -1, 0, 0], dtype=np.int8)  # of a label; the last is of none
Failures = Literal["left_out", "worst", "best"]
_NO_VOTE = "no vote has a label of the judge beside it"
_ALL_TIES = "no vote has a label of the judge beside it without one of them being a tie"


def votes_by_cluster(votes: IntArray, judged: IntArray, clusters: Clusters) -> FloatArray:
    """Counts (clusters, 3, 4) of votes (pairs, annotators) and a judge's labels (pairs,)."""
    pair, _ = np.nonzero(votes >= 0)
    said = judged[pair]
    cells = votes[votes >= 0] * 4 + np.where(said < 0, 3, said)
    return clusters[pair].table(cells, 12).reshape(-1, 3, 4)


def votes_among_by_cluster(votes: IntArray, clusters: Clusters) -> FloatArray:
    """The same counts of each two votes on one pair."""
    return np.pad(vote_pairs_by_cluster(votes, clusters, 3), ((0, 0), (0, 0), (0, 1)))


def vote_agreement(ties: bool, failures: Failures = "left_out") -> Statistic:
    """The share of votes that the judge agrees with.

    With `ties` all votes count (setup S1 of Zheng et al., 2023, section 4.2), else only those in
    which neither side says tie (setup S2). `failures` says how a missing verdict counts.

    >>> counts = np.array([[3.0, 1, 0, 0], [1, 3, 0, 0], [1, 1, 0, 0]])
    >>> float(vote_agreement(True).formula(counts)), float(vote_agreement(False).formula(counts))
    (0.6, 0.75)
    """
    k = 3 if ties else 2

    def formula(counts: FloatArray) -> FloatArray:
        given, missing = counts[..., :k, :k], counts[..., :k, 3].sum(axis=-1)
        agreed = np.trace(given, axis1=-2, axis2=-1)
        total = given.sum(axis=(-2, -1))
        if failures != "left_out":
            total = total + missing
        return ratio(agreed + missing if failures == "best" else agreed, total)

    return Statistic(formula, _undefined(formula, ties), is_proportion=True)


def vote_chance(ties: bool) -> Statistic:
    """The agreement of a judge that gives its labels as often and without a look at the pair:
    sum_l p_l q_l, with p and q the shares of each label among votes and verdicts."""
    k = 3 if ties else 2

    def formula(counts: FloatArray) -> FloatArray:
        given = counts[..., :k, :k]
        expected = (given.sum(axis=-1) * given.sum(axis=-2)).sum(axis=-1)
        return ratio(expected, given.sum(axis=(-2, -1)) ** 2)

    return Statistic(formula, _undefined(formula, ties))


def _undefined(
    formula: Callable[[FloatArray], FloatArray], ties: bool
) -> Callable[[FloatArray], str]:
    reason = _NO_VOTE if ties else _ALL_TIES
    return lambda counts: reason if np.isnan(formula(counts)) else ""


def triples_of_pairs(
    question: IntArray, sides: IntArray, most: int = MOST_TUPLES, seed: int = 0
) -> tuple[IntArray, Signs]:
    """Three pairs each (triples, 3) that compare three responses A, B and C to one question, as
    A-B, A-C and B-C, and 1 where a pair stands so, -1 where it is the other way round.

    `question` (pairs,) and `sides` (pairs, 2) are numbers from 0. Of more than `most`
    combinations as many are drawn at random.

    >>> triples_of_pairs(np.array([0, 0, 0]), np.array([[0, 1], [2, 0], [1, 2]]))[1].tolist()
    [[1, -1, 1]]
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
    upright = np.where(local[:, 0] < local[:, 1], 1, -1).astype(np.int8)
    return found, upright[found]
