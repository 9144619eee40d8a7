"""How far annotators agree: Krippendorff's alpha, and plain shares.

`ratings` is (units, annotators), ints with -1 where an annotator gave no label; `clusters` is
(units,), ints 0..n_clusters-1. Annotators need not be the same people from unit to unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import (
    FloatArray,
    IntArray,
    check_codes,
    ratio,
    severity_of_labels,
    value_counts,
)
from judgebench.stats.confusion import diagonal_share
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    Resampling,
    Statistic,
    cluster_bootstrap,
)

NO_PAIR = "no item was labelled by two annotators: agreement cannot be computed"

Level = Literal["nominal", "ordinal", "interval"]


def coincidences_by_cluster(
    ratings: IntArray, clusters: IntArray, k: int, n_clusters: int
) -> FloatArray:
    """Krippendorff's coincidences o (n_clusters, k, k).

    A unit with m >= 2 labels adds each ordered pair of them with weight 1 / (m - 1), so that it
    counts m in all; a unit with fewer adds nothing. Krippendorff (2011), "Computing
    Krippendorff's Alpha-Reliability", step 2.
    """
    n_uc = value_counts(ratings, k)
    m = n_uc.sum(axis=1)
    return pairs_by_cluster(n_uc, 1 / np.maximum(m - 1, 1), clusters, n_clusters)


def vote_pairs_by_cluster(
    ratings: IntArray, clusters: IntArray, k: int, n_clusters: int
) -> FloatArray:
    """Pairs of votes on the same unit (n_clusters, k, k).

    Each unordered pair counts 1: half in cell [a, b] and half in [b, a]. A unit with many votes
    so weighs more than in Krippendorff's coincidences. The sum is the number of pairs.
    """
    n_uc = value_counts(ratings, k)
    return pairs_by_cluster(n_uc, np.full(len(n_uc), 0.5), clusters, n_clusters)


def pairs_by_cluster(
    n_uc: NDArray[np.int64], weight: FloatArray, clusters: IntArray, n_clusters: int
) -> FloatArray:
    """Sum of weight[u] times the ordered pairs of labels of unit u, over the units of a cluster."""
    if clusters.shape != n_uc.shape[:1]:
        raise ValueError("ratings and clusters must have the same length")
    check_codes(clusters, n_clusters, "clusters", least=0)
    k = n_uc.shape[1]
    pairs = np.zeros((n_clusters, k, k))
    for a in range(k):
        for b in range(a, k):
            of_unit = weight * n_uc[:, a] * (n_uc[:, b] - (a == b))
            pairs[:, a, b] = pairs[:, b, a] = np.bincount(clusters, of_unit, minlength=n_clusters)
    return pairs


def krippendorff_alpha(level: Level, severities: Sequence[float] | None = None) -> Statistic:
    """Krippendorff's alpha = 1 - D_o / D_e of coincidences (..., k, k).

    Krippendorff (2011): D_o = sum o_ck d2_ck / n and D_e = sum n_c n_k d2_ck / (n (n - 1)), with
    d2 the squared difference of the level of measurement. `severities` are the values of the
    labels at level `interval`, by default their positions; the other levels do not use them.
    """

    def alpha(o: FloatArray) -> FloatArray:
        n_c = o.sum(axis=-1)
        n = n_c.sum(axis=-1)
        d2 = _squared_difference(n_c, level, severities)
        observed = (o * d2).sum(axis=(-2, -1))
        expected = (n_c[..., :, None] * n_c[..., None, :] * d2).sum(axis=(-2, -1))
        return 1 - ratio((n - 1) * observed, expected)

    def undefined(o: FloatArray) -> str:
        if not np.isnan(alpha(o)):
            return ""
        if not o.any():
            return NO_PAIR
        if np.count_nonzero(o.sum(axis=-1)) == 1:
            return "only one label was ever used, so chance-corrected agreement is undefined"
        return (
            "all labels in use have the same severity, so chance-corrected agreement is undefined"
        )

    return Statistic("alpha", alpha, undefined)


def _squared_difference(
    n_c: FloatArray, level: Level, severities: Sequence[float] | None
) -> FloatArray:
    """d2 of shape (k, k), or (..., k, k) for `ordinal`, whose ranks depend on the margins n_c."""
    k = n_c.shape[-1]
    if level == "nominal":
        return 1 - np.eye(k)
    if level == "ordinal":
        # sum(n_c..n_k) - (n_c + n_k) / 2 is the difference of the labels' mean ranks.
        v = np.cumsum(n_c, axis=-1) - n_c / 2
    else:
        v = severity_of_labels(severities, k)
    return np.square(np.subtract(v[..., :, None], v[..., None, :]))


def _no_pair(counts: FloatArray) -> str:
    return "" if counts.any() else NO_PAIR


OBSERVED_AGREEMENT = Statistic("observed", diagonal_share, _no_pair, is_proportion=True)


def at_least_two_agree(
    ratings: IntArray,
    clusters: IntArray,
    n_clusters: int,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Estimate:
    """The share of units, among those with two labels or more, to which two annotators gave the
    same label.

    Labels are only compared within a unit, so units of several metrics may be stacked. `n` counts
    the units used, `n_missing` those with fewer than two labels.
    """
    ordered = np.sort(ratings, axis=1)
    agree = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return _share_of_units("at_least_two", agree, ratings, clusters, n_clusters, resampling)


def all_agree(
    ratings: IntArray,
    clusters: IntArray,
    n_clusters: int,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Estimate:
    """The share of units, among those with two labels or more, whose labels are all the same.

    Units may be stacked and are counted as in `at_least_two_agree`.
    """
    top = ratings.max(axis=1, initial=-1)
    agree = ((ratings == top[:, None]) | (ratings < 0)).all(axis=1)
    return _share_of_units("all_agree", agree, ratings, clusters, n_clusters, resampling)


def _share_of_units(
    name: str,
    agree: NDArray[np.bool_],
    ratings: IntArray,
    clusters: IntArray,
    n_clusters: int,
    resampling: Resampling,
) -> Estimate:
    check_codes(clusters, n_clusters, "clusters", least=0)
    usable = (ratings >= 0).sum(axis=1) >= 2
    counts = np.stack(
        [np.bincount(clusters[usable & yes], minlength=n_clusters) for yes in (agree, ~agree)],
        axis=-1,
    )
    share = Statistic(
        name, lambda c: ratio(c[..., 0], c.sum(axis=-1)), _no_pair, is_proportion=True
    )
    used = int(usable.sum())
    return cluster_bootstrap(counts, share, resampling, n=used, n_missing=len(ratings) - used)
