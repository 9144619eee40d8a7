"""Scores of responses side by side: a judge's beside the mean of the humans', or the humans' own.

`x` is (units, raters), NaN where a rater gave no score. Scores need not be whole numbers: means
over annotators or over metrics are none. Where labels are compared, see `interrater`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, ratio
from judgebench.stats.confusion import SPEARMAN
from judgebench.stats.interrater import ICC_2_1, ICC_2_K, score_sums_by_cluster
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    Resampling,
    Statistic,
    cluster_bootstrap,
    grouping_told,
    random_groups,
)

_ROUNDING = 1e-12
_MOST_CELLS = 1 << 22  # 32 MiB
_NO_UNIT = "no response has two scores"
_CONSTANT = "one side has the same score throughout, so no correlation is defined"
_ONE_SCORE = "all scores are the same, so agreement beyond chance is undefined"


def beside_humans(
    judged: FloatArray, humans: FloatArray, clusters: Clusters,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Mapping[str, Estimate]:  # fmt: skip
    """The judge's scores (responses,) beside the mean scores of the humans (responses,).

    `pearson` and `spearman` correlate them; `icc` is ICC(2, 1), the absolute agreement of two
    raters, and `alpha` Krippendorff's at level `interval`. NaN is a missing score: `n_missing`
    counts the responses that have one of the humans and none of the judge.

    >>> x, each = np.array([1.0, 2.0, 4.0]), Clusters(np.arange(3), 3)
    >>> round(beside_humans(x + 1, x, each)["pearson"].value, 3)
    1.0
    """
    due = ~np.isnan(humans)
    both = due & ~np.isnan(judged)
    own = clusters[both].occurring()
    of = random_groups(own, resampling.seed)
    x = np.stack([judged[both], humans[both]], axis=1)
    found = {
        "pearson": (_pair_sums(x, of), PEARSON),
        "icc": (score_sums_by_cluster(x, of), ICC_2_1),
        "alpha": (alpha_sums_by_cluster(x, of), INTERVAL_ALPHA),
        "spearman": (_rank_table(x, of), SPEARMAN),
    }
    missing = int(due.sum() - both.sum())
    estimates = {
        key: cluster_bootstrap(counts, statistic, resampling, n=len(x), n_missing=missing)
        for key, (counts, statistic) in found.items()
    }
    return {key: grouping_told(estimate, own.n) for key, estimate in estimates.items()}


def among_humans(
    x: FloatArray, clusters: Clusters, resampling: Resampling = DEFAULT_RESAMPLING
) -> Mapping[str, Estimate]:
    """How the scores (responses, annotators) of the humans agree with each other.

    `alpha` is Krippendorff's at level `interval`, over the responses with two scores; `icc` is
    ICC(2, 1), the agreement of single annotators, and `icc_mean` ICC(2, k), that of the mean of all
    k, both over the responses that everybody scored.
    """
    of = random_groups(clusters, resampling.seed)
    several, whole = (~np.isnan(x)).sum(axis=1) >= 2, (~np.isnan(x)).all(axis=1)
    sums = score_sums_by_cluster(x, of)
    found = {
        "alpha": (alpha_sums_by_cluster(x, of), INTERVAL_ALPHA, several),
        "icc": (sums, ICC_2_1, whole),
        "icc_mean": (sums, ICC_2_K, whole),
    }
    estimates = {
        key: cluster_bootstrap(
            counts, statistic, resampling, n=int(used.sum()), n_missing=int((~used).sum())
        )
        for key, (counts, statistic, used) in found.items()
    }
    return {key: grouping_told(estimate, clusters.n) for key, estimate in estimates.items()}


def _pair_sums(x: FloatArray, clusters: Clusters) -> FloatArray:
    """The sums of 1, x, y, x^2, y^2 and x y (clusters, 6)."""
    a, b = x.T
    return clusters.sums(np.ones(len(x)), a, b, a**2, b**2, a * b)


def _rank_table(x: FloatArray, clusters: Clusters) -> FloatArray:
    """How often each two scores meet (clusters, values of x, values of y). As one cluster, so that
    there is no interval, where that would be too large a table to resample."""
    (rows, row), (columns, column) = (np.unique(y.round(9), return_inverse=True) for y in x.T)
    size = len(rows) * len(columns)
    if size * clusters.n > _MOST_CELLS:
        clusters = Clusters(np.zeros(len(x), dtype=np.int64), 1)
    table = clusters.table(row * len(columns) + column, size)
    return table.reshape(clusters.n, len(rows), len(columns))


def _pearson(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = [n * squares - total**2 for squares, total in ((xx, x), (yy, y))]
    clear = [np.where(d > _ROUNDING * n * s2, d, 0) for d, s2 in zip(spread, (xx, yy), strict=True)]
    return np.clip(ratio(n * xy - x * y, np.sqrt(clear[0] * clear[1])), -1, 1)


def alpha_sums_by_cluster(x: FloatArray, clusters: Clusters) -> FloatArray:
    """What INTERVAL_ALPHA is a function of, for scores (units, raters): (clusters, 4).

    Sums over the units with m >= 2 scores of m, of the scores, of their squares, and of the squared
    differences of all ordered pairs of them over m - 1.
    """
    m = (~np.isnan(x)).sum(axis=1)
    paired = m >= 2
    x, m = x[paired], m[paired]
    total, squares = np.nansum(x, axis=1), np.nansum(x**2, axis=1)
    differences = 2 * (m * squares - total**2) / (m - 1)
    return clusters[paired].sums(m, total, squares, differences)


def _alpha(sums: FloatArray) -> FloatArray:
    """1 - D_o / D_e, as in `interrater.krippendorff_alpha` at level `interval`."""
    n, total, squares, differences = np.moveaxis(sums, -1, 0)
    expected = 2 * (n * squares - total**2)
    clear = np.where(expected > _ROUNDING * n * squares, expected, 0)
    return 1 - ratio((n - 1) * differences, clear)


def _of_scores(formula: Callable[[FloatArray], FloatArray], reason: str) -> Statistic:
    def undefined(sums: FloatArray) -> str:
        if not sums[0]:
            return _NO_UNIT
        return reason if np.isnan(formula(sums)) else ""

    return Statistic(formula, undefined)


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", with the squared differences of
# the scores themselves.
INTERVAL_ALPHA = _of_scores(_alpha, _ONE_SCORE)
PEARSON = _of_scores(_pearson, _CONSTANT)
