"""Label probabilities made better: rid of what a judge favours whatever it reads, or made as bold
as the judge is right.

A model prefers some labels before it has read anything: by their words, by their place in the
prompt. Two methods estimate that preference, the labels' prior, and subtract it:

    log p'(y | x) = log p(y | x) - log q(y) - log Z(x)

with Z(x) so that the labels' probabilities add up to 1. `log_p` and `log_q` hold natural
logarithms, one row per item and one column per label. A row with a NaN is missing, and stays so.

For temperature scaling, one number, `p` (items, k) are label probabilities, a row with a NaN
missing; `truth` and `clusters` are (items,), labels with -1 missing.

Labels that follow from one number: cuts on a score, and each label's probability as it rises.

`score` (items,) are finite floats and `label` (items,) ints from 0 to k - 1, the least severe
first; neither has gaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, check_codes, first_reason
from judgebench.stats.calibration_error import (
    LEAST_PROBABILITY,
    cross_entropy,
    expected_calibration_error,
    mean_score,
    one_hot,
)
from judgebench.stats.jackknife import LEVEL
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
    never given. Raises ValueError for a label outside.

    >>> best_cuts(np.array([0.1, 0.2, 0.6, 0.9]), np.array([0, 0, 1, 1]), 2).round(2).tolist()
    [0.4]
    """
    check_codes(label, k, "label", least=0)
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
    Raises ValueError for a label outside.

    >>> rising(np.array([1.0, 2, 3, 4]), np.array([0, 1, 0, 1]), 2).at(np.array([2.5])).tolist()
    [[0.5, 0.5]]
    """
    from scipy.optimize import isotonic_regression

    check_codes(label, k, "label", least=0)
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
LEAST_ITEMS = 20  # in each half
MOST_FITTED = 50_000  # one number is known well enough from so many
BOUNDS = (0.05, 20.0)
_PRECISION = 1e-9  # of ln T


class TemperatureScaling(NamedTuple):
    """The effect of a temperature, fitted on half of the clusters, on the other half; both ways.

    `temperatures` are those of the two halves: above 1 the judge was too bold, below 1 too timid.
    The scores are over all items, each under the temperature of the half it is not in; log loss in
    nats, calibration error without what chance adds. `change` is the log loss after minus before.
    """

    temperatures: tuple[Estimate, Estimate]
    log_loss_before: Estimate
    log_loss_after: Estimate
    change: Estimate
    ece_before: Estimate
    ece_after: Estimate


def at_temperature(p: FloatArray, T: float) -> FloatArray:
    """softmax(ln p / T), row by row: (items, k) -> (items, k).

    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks", section
    4.2, equation 9; ln p are logits up to a constant a row. p below LEAST_PROBABILITY counts as
    that.

    >>> at_temperature(np.array([[0.9, 0.1]]), T=2.0).round(2).tolist()
    [[0.75, 0.25]]
    """
    z = np.log(np.maximum(p, LEAST_PROBABILITY)) / T
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def fitted_temperature(p: FloatArray, truth: IntArray) -> float:
    """The T within BOUNDS that has the least log loss, of items without gaps.

    The loss is convex in 1 / T (Guo et al. 2017, section 4.2), so there is one minimum.
    """
    z = np.log(np.maximum(p, LEAST_PROBABILITY))
    of_truth = z[np.arange(len(z)), truth].mean()
    low, high = np.log(BOUNDS)
    while (
        high - low > _PRECISION
    ):  # the slope of the loss, in 1 / T, is below 0 where T is too high
        middle = (low + high) / 2
        scaled = z / np.exp(middle)
        e = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        expected = ((e * z).sum(axis=1) / e.sum(axis=1)).mean()
        low, high = (low, middle) if expected < of_truth else (middle, high)
    return float(np.exp(low))


def temperature_scaling(
    p: FloatArray, truth: IntArray, clusters: Clusters, level: float = LEVEL
) -> TemperatureScaling:
    """Fit on one half of the clusters, drawn at random, and score on the other; both ways.

    Everything is undefined, with the reason, where a half holds too few items, one label only, or
    no probability but 0 and 1. The intervals take both temperatures as given.
    """
    check_codes(truth, p.shape[1], "truth")
    usable = np.flatnonzero(~np.isnan(p).any(axis=1) & (truth >= 0))
    rng = np.random.default_rng(0)
    occurring, code = np.unique(clusters.codes[usable], return_inverse=True)
    side = rng.permutation(len(occurring))[code] % 2
    halves = usable[side == 0], usable[side == 1]
    for rows in halves:
        if reason := _cannot_fit(p[rows], truth[rows]):
            n, missing = len(usable), len(p) - len(usable)
            nothing = Estimate(None, n=n, n_missing=missing, reason=reason, level=level)
            return TemperatureScaling((nothing, nothing), *[nothing] * 5)
    first, second = (
        fitted_temperature(p[some], truth[some])
        for some in (rng.permutation(rows)[:MOST_FITTED] for rows in halves)
    )
    after = np.full(p.shape, np.nan)
    after[halves[0]] = at_temperature(p[halves[0]], second)
    after[halves[1]] = at_temperature(p[halves[1]], first)
    temperatures = _told(first, len(halves[0])), _told(second, len(halves[1]))
    q = one_hot(truth, p.shape[1])
    shared = (clusters, level)
    before_loss, after_loss = cross_entropy(p, q), cross_entropy(after, q)
    return TemperatureScaling(
        temperatures,
        mean_score(before_loss, *shared),
        mean_score(after_loss, *shared),
        mean_score(after_loss - before_loss, *shared),
        expected_calibration_error(p, q, *shared).debiased,
        expected_calibration_error(after, q, *shared).debiased,
    )


def _cannot_fit(p: FloatArray, truth: IntArray) -> str:
    """The reason why no temperature can be fitted to one half, or empty."""
    few = f"half of the questions hold {len(p)} usable items, and {LEAST_ITEMS} are needed"
    return first_reason({
        few: len(p) < LEAST_ITEMS,
        "half of the questions hold one label only as their reference "
        "label": (truth == truth[:1]).all(),
        "all probabilities are 0 or 1, which no temperature changes": ((p == 0) | (p == 1)).all(),
    })  # fmt: skip


def _told(T: float, n: int) -> Estimate:
    """A temperature, and why it has no interval."""
    at_edge = not BOUNDS[0] * 1.001 < T < BOUNDS[1] * 0.999
    reason = f"the search ends at {T:.3g}" if at_edge else "fitted once; see the other half's"
    return Estimate(T, n=n, reason=reason)


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


def content_free_prior(log_p: FloatArray) -> FloatArray:
    """The logarithm of each label's mean probability over content-free texts: (texts, k) -> (k,).

    NaN unless every text has its row. Contextual calibration (Zhao et al., ICML 2021,
    arXiv:2102.09690, section 5): W = diag(p_cf)^-1, where p_cf is the mean over the texts.
    """
    if not len(log_p) or np.isnan(log_p).any():
        return np.full(log_p.shape[1], np.nan)
    p_cf = np.exp(normalised(log_p)).mean(axis=0)
    return np.asarray(np.log(p_cf))


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
