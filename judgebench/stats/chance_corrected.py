"""Agreement beyond chance of any number of annotators: Gwet's AC1 and AC2, Fleiss' kappa.

Both are functions of counts (..., k + 1, k), those of `agreement_counts_by_cluster`. Confusion
counts (..., k, k) are such counts too, of two annotators who labelled every unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from judgebench.stats.agreement import NO_PAIR, pairs_by_cluster
from judgebench.stats.arrays import (
    FloatArray,
    IntArray,
    ratio,
    severity_of_labels,
    value_counts,
)
from judgebench.stats.confusion import NO_ITEM
from judgebench.stats.resample import Statistic

ONE_LABEL = "only one label was ever used, so chance-corrected agreement is undefined"
ONE_SEVERITY = (
    "all labels in use have the same severity, so chance-corrected agreement is undefined"
)

Weights = Literal["identity", "linear", "quadratic", "ordinal"]


def agreement_counts_by_cluster(
    ratings: IntArray, clusters: IntArray, k: int, n_clusters: int
) -> FloatArray:
    """What AC and Fleiss' kappa are functions of: counts (n_clusters, k + 1, k).

    `ratings` is (units, annotators), -1 where there is no label; `clusters` is (units,). Rows 0 to
    k - 1 hold the ordered pairs of labels of a unit with r >= 2 labels, each with weight
    1 / (r (r - 1)), so that every such unit counts 1. Row k holds the labels of the units that
    have one label only: they tell how often a label is used. Raises ValueError where lengths
    differ or a code is out of range.
    """
    r_ik = value_counts(ratings, k)
    r = r_ik.sum(axis=1)
    pairs = pairs_by_cluster(r_ik, 1 / np.maximum(r * (r - 1), 1), clusters, n_clusters)
    one = r == 1
    cell = clusters[one].astype(np.int64) * k + r_ik[one].argmax(axis=1)
    alone = np.bincount(cell, minlength=n_clusters * k).reshape(n_clusters, 1, k)
    return np.concatenate([pairs, alone], axis=1)


def gwet_ac(weights: Weights = "identity", severities: Sequence[float] | None = None) -> Statistic:
    """Gwet's AC1 (identity weights) or AC2, (p_a - p_e) / (1 - p_e).

    Gwet (2008), the AC1 of several raters; ragged and weighted: Gwet (2014), "Handbook of
    Inter-Rater Reliability", 4th edition. With q labels, pi_k the mean share of label k among a
    unit's labels and T_w the sum of the agreement weights w,
    p_e = T_w sum(pi_k (1 - pi_k)) / (q (q - 1)). q counts all labels that could be given.
    w = 1 - v, with v as in `fleiss_kappa`.

    Where one label only was used, the formula gives 1: right for a resample, but no evidence of
    anything on a whole sample, which is therefore called undefined.
    """

    def ac(counts: FloatArray) -> FloatArray:
        pairs, pi = _pairs_and_shares(counts)
        q = counts.shape[-1]
        v = _disagreement(weights, severities, q)
        T_w = (1 - v).sum()
        disagree = ratio((v * pairs).sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))  # 1 - p_a
        p_e = ratio(T_w, q * (q - 1)) * (pi * (1 - pi)).sum(axis=-1)
        return 1 - ratio(disagree, 1 - p_e)

    return Statistic("ac", ac, lambda counts: _undefined(counts, ac))


def fleiss_kappa(
    weights: Weights = "identity", severities: Sequence[float] | None = None
) -> Statistic:
    """Fleiss' kappa, (p_a - p_e) / (1 - p_e) with p_e = sum(w_kl pi_k pi_l).

    Fleiss (1971); with ragged numbers of labels a unit and with weights: Gwet (2014), who takes
    p_a over the units with two labels or more, and pi_k, the mean share of label k among a unit's
    labels, over all units with any. Here 1 - (1 - p_a) / (1 - p_e) with disagreement weights
    v = 1 - w of at most 1: 0 or 1 (`identity`), |s_k - s_l| (`linear`) or (s_k - s_l)^2
    (`quadratic`) over its maximum, s the severities, by default the label's position; or, without
    severities, the number of pairs of labels between k and l, both included, over that of all
    (`ordinal`). Of two annotators without missing labels this is Scott's pi.
    """

    def kappa(counts: FloatArray) -> FloatArray:
        pairs, pi = _pairs_and_shares(counts)
        v = _disagreement(weights, severities, counts.shape[-1])
        observed = ratio((v * pairs).sum(axis=(-2, -1)), pairs.sum(axis=(-2, -1)))
        expected = ((pi @ v) * pi).sum(axis=-1)
        return 1 - ratio(observed, expected)

    return Statistic("fleiss", kappa, lambda counts: _undefined(counts, kappa))


def _pairs_and_shares(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The pairs (..., k, k), and pi (..., k), the mean share of each label."""
    k = counts.shape[-1]
    pairs, alone = counts[..., :k, :], counts[..., k:, :]
    n_k = (pairs.sum(axis=-1) + pairs.sum(axis=-2)) / 2 + alone.sum(axis=-2)
    return pairs, ratio(n_k, n_k.sum(axis=-1, keepdims=True))


def _disagreement(weights: Weights, severities: Sequence[float] | None, k: int) -> FloatArray:
    """v of shape (k, k), from 0 to 1; NaN where all severities are the same."""
    if weights == "identity":
        return 1 - np.eye(k)
    if weights == "ordinal":
        steps = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
        distance = steps * (steps + 1) / 2
    else:
        s = severity_of_labels(severities, k)
        distance = np.abs(s[:, None] - s[None, :]) ** (1 if weights == "linear" else 2)
    return ratio(distance, distance.max())


def _undefined(counts: FloatArray, formula: Callable[[FloatArray], FloatArray]) -> str:
    k = counts.shape[-1]
    pairs = counts[:k]
    if not pairs.any():
        return NO_PAIR if len(counts) > k else NO_ITEM
    if np.count_nonzero(pairs.sum(axis=0) + pairs.sum(axis=1)) == 1:
        return ONE_LABEL
    return ONE_SEVERITY if np.isnan(formula(counts)) else ""
