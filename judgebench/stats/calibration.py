"""Do probabilities mean what they say? Reliability diagram, calibration error, Brier score.

`p` and `q` (items, k) are as in `probability_scores`. Confidence is the probability of the
likeliest label, the first of equally likely ones.

Gaps between what happened and what was said are taken in bins of equal mass as far as ties allow,
as bins of equal width are mostly nearly empty (Nguyen and O'Connor 2015, "Posterior calibration and
exploratory analysis for natural language processing models", section 4). They are made once, and
no interval moves them. Cells are counts (..., bins, 6): n_b, the sum S_b of the gaps and, of each
cluster's n and S, S^2, S n, n^2 and 1 where it has any. d_b = S_b / n_b is the mean gap of bin b.

Scores of label probabilities against a label or against a distribution of labels, item by item.

`p` is (items, k), a judge's probability of each label; a row with a NaN is missing. `q` is
(items, k): what the humans say, one-hot where the truth is one label (see `one_hot`), else the
shares of their labels; a row with a NaN has no truth. Every score is (items,), NaN where either is
missing; less is better.

Beside what a colleague would reach: `n_uc` is (items, k), how many annotators gave each label to
each item. Every label in turn is left out and the item's other labels are the target, for the
judge as for the annotator whose label it is, so that both are measured against the same
distributions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.intervals import (
    LEVEL,
    NO_WIDTH,
    ClusterCounts,
    Statistic,
    clopper_pearson,
    clustered_estimate,
    explained,
    random_groups,
    where_empty,
)
from judgebench.stats.ranks import item_ranks, pearson
from judgebench.text import counted

# A probability below it counts as this in logarithms: 36 nats is the most that one item can cost.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
NO_ITEM = "no item has both a reference label and label probabilities"


def one_hot(labels: IntArray, k: int) -> FloatArray:
    """Certainty of one label: (items,) -> (items, k), a row of NaN where the label is -1.

    So a judge that gives no probabilities can be scored by its labels; reports must say so.
    """
    rows = np.eye(k)[labels]
    rows[labels < 0] = np.nan
    return rows


def squared_distance(p: FloatArray, q: FloatArray) -> FloatArray:
    """sum_j (p_j - q_j)^2, from 0 to 2; against one label its mean is the Brier score.

    Brier (1950), "Verification of forecasts expressed in terms of probability", equation 2.

    >>> squared_distance(np.array([[0.8, 0.2]]), np.array([[1.0, 0.0]])).round(2).tolist()
    [0.08]
    """
    return np.asarray(np.square(p - q).sum(axis=-1))


def cross_entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    """-sum_j q_j ln p_j in nats; against one label its mean is the log loss.

    Good (1952), "Rational decisions". p_j below LEAST_PROBABILITY counts as that; rows are not
    made to add up again.

    >>> cross_entropy(np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])).round(4).tolist()
    [0.6931]
    """
    return np.asarray(-(q * np.log(np.maximum(p, LEAST_PROBABILITY))).sum(axis=-1))


# Let q be the shares of an item's labels without one of its m labels, each left out in turn as in
# Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge", section
# 3. The mean of q is n / m, with n the counts of the labels, and that of sum_j q_j^2 is
# `_mean_square_of_others`. The mean distance from q follows from these two.


def judge_against_others(p: FloatArray, n_uc: IntArray) -> FloatArray:
    """The mean squared distance of the judge's probabilities from the shares of the other
    annotators' labels, over who is left out: (items,); NaN without two labels.

    >>> judge_against_others(np.array([[0.5, 0.5]]), np.array([[1, 1]])).tolist()
    [0.5]
    """
    shares = ratio(n_uc, n_uc.sum(axis=1, keepdims=True))
    away = (p * (p - 2 * shares)).sum(axis=1) + _mean_square_of_others(n_uc)
    return np.asarray(np.maximum(away, 0))


def annotator_against_others(n_uc: IntArray) -> FloatArray:
    """The distance of one annotator's label, as a certainty: (items,)."""
    m, squares = n_uc.sum(axis=1), np.square(n_uc).sum(axis=1)
    same = ratio(squares - m, m * (m - 1))  # the share of others with the annotator's label
    return np.maximum(1 - 2 * same + _mean_square_of_others(n_uc), 0)


def _mean_square_of_others(n_uc: IntArray) -> FloatArray:
    m, squares = n_uc.sum(axis=1), np.square(n_uc).sum(axis=1)
    return ratio(squares * ratio(m - 2, m) + 1, (m - 1) ** 2)


def base_rates(n_uc: IntArray) -> FloatArray:
    """The mean share of each label over the items that have any (k,); NaN without one."""
    m = n_uc.sum(axis=1, keepdims=True)
    return ratio(ratio(n_uc, m)[m[:, 0] > 0].sum(axis=0), (m > 0).sum())


MOST_BINS = 10
LEAST_IN_BIN = 20  # with fewer items a bin's gap is mostly chance


def bins_for(n: int) -> int:
    """The number of bins for n items: MOST_BINS, fewer where they would hold too few."""
    return max(1, min(MOST_BINS, n // LEAST_IN_BIN))


def equal_mass_bins(x: FloatArray, bins: int) -> NDArray[np.int64]:
    """The bin of each x (items,), 0..bins-1 from low to high; equal values share one.

    A bin is empty where one value fills more than one bin's share.
    """
    if not len(x):
        return np.zeros(0, dtype=np.int64)
    # The last places of all bins but the highest; what is not above their values is in these bins.
    last = -(-np.arange(1, bins) * len(x) // bins) - 1
    edges = np.partition(x, last)[last]
    return np.asarray(np.searchsorted(edges, x, side="left"))


def cells_by_cluster(code: IntArray, gap: FloatArray, clusters: Clusters, bins: int) -> FloatArray:
    """Cells (clusters, bins, 6) of gaps (items,) whose bins and clusters are given."""
    n, S = clusters.table(code, bins), clusters.table(code, bins, gap)
    return np.stack([n, S, S * S, S * n, n * n, n > 0], axis=-1)


def total_gap(cells: FloatArray) -> FloatArray:
    """sum_b n_b |d_b|."""
    return np.asarray((cells[..., 0] * np.abs(_mean_gap(cells))).sum(axis=-1))


def debiased_gap(cells: FloatArray) -> FloatArray:
    """sum_b n_b (2 |d_b| - E|x_b|), x_b ~ N(d_b, s_b^2): `total_gap` without what chance adds.

    Kumar, Liang and Ma (2019), "Verified uncertainty calibration", section 4 and appendix; the
    mean of |x_b| is that of the folded normal distribution. s_b^2 is the variance of a ratio with
    whole clusters as units (Cochran 1977, "Sampling Techniques", section 6.4).
    """
    n, _, SS, Sn, nn, clusters = np.moveaxis(cells, -1, 0)
    d = _mean_gap(cells)
    scatter = np.maximum(SS - 2 * d * Sn + d**2 * nn, 0) * clusters / np.maximum(clusters - 1, 1)
    s = np.sqrt(scatter) / np.maximum(n, 1)
    z = np.minimum(np.abs(d) / np.maximum(s, 1e-300), 40)  # nothing is folded so far from 0
    folded = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + np.abs(d) * (
        1 - 2 * scipy.special.ndtr(-z)
    )
    return np.asarray((n * (2 * np.abs(d) - folded)).sum(axis=-1))


def _mean_gap(cells: FloatArray) -> FloatArray:
    return np.asarray(cells[..., 1] / np.maximum(cells[..., 0], 1))


class BiasCorrected(NamedTuple):
    """A statistic that chance lifts, as it is and without that, with one interval for both."""

    plug_in: Estimate
    debiased: Estimate


class CalibrationBin(NamedTuple):
    """Items of about the same confidence: its mean, and the share of them that were right."""

    confidence: float
    right: Estimate


def calibration_curve(
    p: FloatArray, truth: IntArray, level: float = 0.95
) -> tuple[CalibrationBin, ...]:
    """The points of a reliability diagram in bins of equal mass, the least confident first.

    `truth` (items,) holds labels; items without probabilities or truth are left out, and without
    any item there is no point. DeGroot and Fienberg (1983), "The comparison and evaluation of
    forecasters"; the intervals are exact for independent items.
    """
    confidence, right = _of_likeliest(p, one_hot(truth, p.shape[1]))
    code = equal_mass_bins(confidence, bins_for(len(confidence)))
    points = []
    for b in np.unique(code).tolist():
        share = clopper_pearson(int(right[code == b].sum()), int((code == b).sum()), level)
        points.append(CalibrationBin(float(confidence[code == b].mean()), share))
    return tuple(points)


def expected_calibration_error(
    p: FloatArray, q: FloatArray, clusters: Clusters, level: float = LEVEL
) -> BiasCorrected:
    """ECE = sum_b n_b / N |share right_b - mean confidence_b| in bins of equal mass.

    Naeini, Cooper and Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning". Chance alone lifts it, the more so the fewer items a bin holds (Roelofs et al. 2022,
    "Mitigating bias in calibration error estimation", section 3): `debiased` takes that off, and
    the interval is its, widened where need be to hold both.
    """
    confidence, right = _of_likeliest(p, q)
    n, bins = len(confidence), bins_for(len(confidence))
    groups = random_groups(clusters)[~np.isnan(p + q).any(axis=1)]
    code = equal_mass_bins(confidence, bins)
    counts = ClusterCounts(cells_by_cluster(code, right - confidence, groups, bins))
    found = clustered_estimate(counts, _DEBIASED, level, n=n, n_missing=len(p) - n)
    if found.value is None:
        return BiasCorrected(found, found)
    value, debiased = float(ratio(total_gap(counts.total), n)), max(0.0, found.value)
    if found.low is not None and found.high is not None:
        found = replace(
            found,
            low=min(found.low, value, debiased),
            high=max(found.high, value, debiased),
            method=f"{counted(bins, 'bin')} of equal mass; bias-corrected {found.method}",
        )
    return BiasCorrected(replace(found, value=value), replace(found, value=debiased))


_DEBIASED = Statistic(
    lambda cells: ratio(debiased_gap(cells), cells[..., 0].sum(axis=-1)),
    where_empty(NO_ITEM),
    (0.0, np.inf),
)


def _of_likeliest(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The likeliest label's probability and its share of the truth, of the rows with both."""
    there = ~np.isnan(p + q).any(axis=1)
    rows, top = np.flatnonzero(there), p[there].argmax(axis=1)
    return p[rows, top], q[rows, top]


ONE_TRUTH = (
    "all items have the same reference label, so there is no uncertainty that a skill score "
    "could explain"
)


def brier_skill(p: FloatArray, q: FloatArray, clusters: Clusters, level: float = LEVEL) -> Estimate:
    """1 - BS / UNC, with UNC = sum_j q_j (1 - q_j) the Brier score of the labels' base rates q_j,
    said of every item (of soft labels the variance of q_j): 0 for these and 1 at best.

    Murphy (1973), "A new vector partition of the probability score".
    """
    there = ~np.isnan(p + q).any(axis=1)
    p, q, n_missing = p[there], q[there], int((~there).sum())
    columns = [np.ones(len(p)), squared_distance(p, q), np.square(q).sum(axis=1), *q.T]

    def uncertainty(C: FloatArray) -> FloatArray:
        shares = ratio(C[..., 3:], C[..., :1])
        return np.asarray(ratio(C[..., 2], C[..., 0]) - np.square(shares).sum(axis=-1))

    def skill(C: FloatArray) -> FloatArray:
        unc = uncertainty(C)
        return 1 - ratio(ratio(C[..., 1], C[..., 0]), np.where(unc > NO_WIDTH, unc, 0))

    statistic = explained(skill, lambda C: ONE_TRUTH if C.any() else NO_ITEM, (-np.inf, 1.0))
    counts = clusters[there].sums(*columns)
    return clustered_estimate(counts, statistic, level, n=len(p), n_missing=n_missing)


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
