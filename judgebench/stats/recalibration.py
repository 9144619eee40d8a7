"""Label probabilities rid of what a judge favours whatever it reads.

A model prefers some labels before it has read anything: by their words, by their place in the
prompt. Two methods estimate that preference, the labels' prior, and subtract it:

    log p'(y | x) = log p(y | x) - log q(y) - log Z(x)

with Z(x) so that the labels' probabilities add up to 1. `log_p` and `log_q` hold natural
logarithms, one row per item and one column per label. A row with a NaN is missing, and stays so.

Labels that follow from one number: cuts on a score, and each label's probability as it rises.

`score` (items,) are finite floats and `label` (items,) ints from 0 to k - 1, the least severe
first; neither has gaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.ranks import item_ranks, pearson


def rises(score: FloatArray, label: IntArray) -> float:
    """Spearman's rho of score and label: above 0 where a higher score is more severe; 0 where one
    of them is the same throughout. Spearman (1904); equal values share their mean rank.

    >>> rises(np.array([0.9, 0.5, 0.1]), np.array([0, 1, 1])).__round__(3)
    -0.866
    """
    return float(np.nan_to_num(pearson(item_ranks(score), item_ranks(label))))


def best_cuts(score: FloatArray, label: IntArray, k: int) -> FloatArray:
    """The k - 1 cuts, none below the one before, by which most is right: an item's label is the
    number of cuts below its score.

    What is largest is (accuracy + balanced accuracy) / 2, so that common labels and rare ones both
    count: sum over the items i of [label right] (1 / n + 1 / (m n_i)) / 2, with n_i the items that
    have the label of i, and m the labels that occur. As it is a sum over items, dynamic programming
    over the sorted scores finds the largest exactly. A cut lies half-way between two scores. Of
    cuts that are as good, the higher, so the less severe label; a label that does not occur is
    never given.

    >>> best_cuts(np.array([0.1, 0.2, 0.6, 0.9]), np.array([0, 0, 1, 1]), 2).round(2).tolist()
    [0.4]
    """
    values, place = np.unique(score, return_inverse=True)
    labels, code, counts = np.unique(label, return_inverse=True, return_counts=True)
    m = len(labels)
    worth = np.zeros((m, len(values) + 1))  # of giving a label to all below each value
    np.add.at(worth, (code, place + 1), (1 / len(label) + 1 / (m * counts))[code])
    worth = worth.cumsum(axis=1)
    best, begins, at = worth[0], [], np.arange(len(values) + 1)
    for own in worth[1:]:
        gained = best - own
        top = np.maximum.accumulate(gained)
        begins.append(np.maximum.accumulate(np.where(gained == top, at, 0)))
        best = own + top
    edges = np.concatenate([[-np.inf], (values[:-1] + values[1:]) / 2, [np.inf]])
    ends = [len(values)]
    for begin in reversed(begins):
        ends.append(int(begin[ends[-1]]))
    between = np.concatenate([[-np.inf], edges[ends[:0:-1]], [np.inf]])
    return np.asarray(between[np.searchsorted(labels, np.arange(k - 1), side="right")])


class Rising(NamedTuple):
    """P(label > j) (k - 1, knots) at some scores (knots,); between two it is on the line."""

    knots: FloatArray
    above: FloatArray

    def at(self, score: FloatArray) -> FloatArray:
        """The probability of each label: (items,) -> (items, k)."""
        rows = [np.interp(score, self.knots, row) for row in self.above]
        above = np.column_stack([np.ones(len(score)), *rows, np.zeros(len(score))])
        return np.maximum(-np.diff(above, axis=1), 0)


def rising(score: FloatArray, label: IntArray, k: int) -> Rising:
    """Each P(label > j) by isotonic regression on the score (Ayer et al., 1955; Zadrozny and Elkan,
    2002, "Transforming classifier scores into accurate multiclass probability estimates").

    It rises with the score, and falls with j, because isotonic regression keeps the order of what
    it is fitted to; so no probability is negative. It is then drawn to the shares of the labels
    (each counted once more than it occurs) with the weight of k items: few show no 0 and no 1.

    >>> rising(np.array([1.0, 2, 3, 4]), np.array([0, 1, 0, 1]), 2).at(np.array([2.5])).tolist()
    [[0.5, 0.5]]
    """
    from scipy.optimize import isotonic_regression

    values, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    n, shares = len(label), (np.bincount(label, minlength=k) + 1) / (len(label) + k)
    rows = []
    for j in range(k - 1):
        mean = np.bincount(place, label > j) / counts
        found = isotonic_regression(mean, weights=counts).x
        rows.append((n * found + k * shares[j + 1 :].sum()) / (n + k))
    above = np.stack(rows)
    turns = np.any(np.diff(above, axis=1) != 0, axis=0)  # between the ends of level stretches
    kept = np.append(True, turns) | np.append(turns, True)
    return Rising(values[kept], above[:, kept])


# Softmax in double precision may give 0 to what is merely very unlikely; its logarithm is kept
# finite, or one such item would decide the prior.
LEAST_LOG = -690.0


def batch_prior(log_p: FloatArray) -> FloatArray:
    """Each label's mean log-probability over the items of a set: (items, k) -> (k,).

    NaN where no row is defined. Batch calibration (Zhou et al., ICLR 2024, arXiv:2309.17249)
    estimates the prior from the very set that is judged; the mean is taken of logarithms here,
    so that a constant factor on a label's probability vanishes exactly.
    """
    defined = np.maximum(log_p[~np.isnan(log_p).any(axis=1)], LEAST_LOG)
    if not len(defined):
        return np.full(log_p.shape[1], np.nan)
    return np.asarray(defined.mean(axis=0))


def without_prior(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """log p' of the head of this module: (items, k) and (k,) -> (items, k).

    >>> log_p = np.log([[0.9, 0.1], [0.8, 0.2]])
    >>> np.exp(without_prior(log_p, batch_prior(log_p))).round(2).tolist()
    [[0.6, 0.4], [0.4, 0.6]]
    """
    return normalised(np.maximum(log_p, LEAST_LOG) - log_q)


def normalised(log_p: FloatArray) -> FloatArray:
    """Rows whose probabilities add up to 1: log p - log sum_y p(y); a row with a NaN is all NaN."""
    floored = np.maximum(log_p, LEAST_LOG)
    top = floored.max(axis=-1, keepdims=True)
    return np.asarray(floored - top - np.log(np.exp(floored - top).sum(axis=-1, keepdims=True)))
