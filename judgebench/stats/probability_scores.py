"""Scores of label probabilities against a label or against a distribution of labels, item by item.

`p` is (items, k), a judge's probability of each label; a row with a NaN is missing. `q` is
(items, k): what the humans say, one-hot where the truth is one label (see `one_hot`), else the
shares of their labels; a row with a NaN has no truth. Every score is (items,), NaN where either is
missing; less is better. `mean_score` makes an Estimate of them.

Beside what a colleague would reach: `n_uc` is (items, k), how many annotators gave each label to
each item. Every label in turn is held back and the item's other labels are the target, for the
judge as for the annotator whose label it is, so that both are measured against the same
distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, check_codes, ratio
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    Resampling,
    Statistic,
    cluster_bootstrap,
    grouping_told,
    random_groups,
    where_empty,
)

# A probability below it counts as this in logarithms: 36 nats is the most that one item can cost.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
NO_ITEM = "no item has both a truth and label probabilities"


def one_hot(labels: IntArray, k: int) -> FloatArray:
    """Certainty of one label: (items,) -> (items, k), a row of NaN where the label is -1.

    So a judge that gives no probabilities can be scored by its labels; reports must say so.
    """
    check_codes(labels, k, "labels")
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


def kl_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """KL(q || p) = sum_j q_j ln(q_j / p_j) in nats: what the cross-entropy holds beyond H(q).

    Kullback and Leibler (1951), "On information and sufficiency", equation 2.4; clipped as in
    `cross_entropy`.
    """
    return np.asarray(np.maximum(cross_entropy(p, q) - entr(q).sum(axis=-1), 0.0))


def total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    """1/2 sum_j |p_j - q_j|, from 0 to 1: the share of probability that lies elsewhere.

    Gibbs and Su (2002), "On choosing and bounding probability metrics", section 2. Like
    `jensen_shannon` it is not a proper score: with few labels per item it favours bold reports.

    >>> total_variation(np.array([[0.8, 0.2]]), np.array([[0.5, 0.5]])).round(2).tolist()
    [0.3]
    """
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def jensen_shannon(p: FloatArray, q: FloatArray) -> FloatArray:
    """H((p + q) / 2) - (H(p) + H(q)) / 2 in bits, from 0 to 1.

    Lin (1991), "Divergence measures based on the Shannon entropy", equation 4.1 with equal weights.
    """
    nats = (entr((p + q) / 2) - (entr(p) + entr(q)) / 2).sum(axis=-1)
    return np.asarray(np.maximum(nats / np.log(2), 0.0))


def mean_score(
    scores: FloatArray, clusters: Clusters, resampling: Resampling = DEFAULT_RESAMPLING
) -> Estimate:
    """The mean of the scores (items,) that are not NaN, which count as missing.

    The interval resamples clusters, or random groups of them where they are very many. Raises
    ValueError where shapes differ.
    """
    if scores.shape != clusters.codes.shape:
        raise ValueError("scores and clusters must have the same shape")
    there = ~np.isnan(scores)
    groups = random_groups(clusters, resampling.seed)[there]
    counts = groups.sums(np.ones(len(groups)), scores[there])
    n = int(there.sum())
    formula = Statistic(lambda C: ratio(C[..., 1], C[..., 0]), where_empty(NO_ITEM))
    mean = cluster_bootstrap(counts, formula, resampling, n=n, n_missing=len(scores) - n)
    return grouping_told(mean, clusters.n)


Score = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class HeldBack:
    """One row per item and label that occurs on it, of the items with two labels or more.

    `item` (rows,) and `label` (rows,) say which, `others` (rows, k) are the shares of the item's
    labels without one such label, and `weight` (rows,) the share of annotators whose label it is.
    """

    item: NDArray[np.int64]
    label: NDArray[np.int64]
    others: FloatArray
    weight: FloatArray
    items: int

    def mean_by_item(self, scores: FloatArray) -> FloatArray:
        """The mean over an item's annotators: (rows,) -> (items,), NaN without two labels."""
        total = np.bincount(self.item, self.weight * scores, minlength=self.items)
        return np.where(np.bincount(self.item, minlength=self.items) > 0, total, np.nan)


def hold_back(n_uc: IntArray) -> HeldBack:
    """Every label of every item against the others: q = (n - e_j) / (m - 1), weight n_j / m.

    Leave-one-out as in Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for
    LLM-as-a-Judge", section 3, where an annotator and the judge are compared with the others.
    """
    m = n_uc.sum(axis=1)
    item, label = np.nonzero((n_uc > 0) & (m >= 2)[:, None])
    left = n_uc[item].astype(np.float64)
    left[np.arange(len(item)), label] -= 1
    others = left / (m[item] - 1)[:, None]
    return HeldBack(item, label, others, n_uc[item, label] / m[item], len(n_uc))


def judge_against_others(score: Score, p: FloatArray, held: HeldBack) -> FloatArray:
    """The judge's score against the other annotators, the mean over who is left out: (items,)."""
    return held.mean_by_item(score(p[held.item], held.others))


def annotator_against_others(score: Score, held: HeldBack) -> FloatArray:
    """The score of one annotator's label, as a certainty, against the others: (items,)."""
    return held.mean_by_item(score(np.eye(held.others.shape[1])[held.label], held.others))


def base_rates(n_uc: IntArray) -> FloatArray:
    """The mean share of each label over the items that have any (k,); NaN without one."""
    m = n_uc.sum(axis=1, keepdims=True)
    return ratio(ratio(n_uc, m)[m[:, 0] > 0].sum(axis=0), (m > 0).sum())
