"""Scores of responses side by side: a judge's beside the mean of the humans', or the humans' own.

`x` is (units, raters), NaN where a rater gave no score. Scores need not be whole numbers: means
over annotators or over metrics are none. Where labels are compared, see `interrater`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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


BESIDE_HUMANS = ("pearson", "spearman", "icc", "alpha")
AMONG_HUMANS = ("alpha", "icc", "icc_mean")


def score_agreement(
    x: FloatArray, wanted: Sequence[str], clusters: Clusters,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> Mapping[str, Estimate]:  # fmt: skip
    """The `wanted` statistics of scores (units, raters).

    `pearson` and `spearman` correlate two raters. `icc` is ICC(2, 1), the absolute agreement of
    single raters, `icc_mean` ICC(2, k), that of the mean of all k. These are over the units that
    everybody scored; `alpha`, Krippendorff's at level `interval`, is over those with two scores.
    `n_missing` counts the other units.

    >>> x, each = np.array([1.0, 2.0, 4.0]), Clusters(np.arange(3), 3)
    >>> found = score_agreement(np.stack([x + 1, x], axis=1), BESIDE_HUMANS, each)
    >>> round(found["pearson"].value, 3)
    1.0
    """
    of = random_groups(clusters, resampling.seed)
    scores = (~np.isnan(x)).sum(axis=1)
    found = {}
    for name in wanted:
        counts, statistic = _STATISTICS[name]
        used = scores >= (2 if name == "alpha" else x.shape[1])
        n = int(used.sum())
        estimate = cluster_bootstrap(
            counts(x[used], of[used]), statistic, resampling, n=n, n_missing=len(x) - n
        )
        found[name] = grouping_told(estimate, clusters.n)
    return found


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


def _alpha_sums(x: FloatArray, clusters: Clusters) -> FloatArray:
    """What alpha is a function of, for units with m >= 2 scores (units, raters):
    (clusters, 4), the sums of m, of the scores, of their squares, and of the squared differences of
    all ordered pairs of them over m - 1."""
    m = (~np.isnan(x)).sum(axis=1)
    total, squares = np.nansum(x, axis=1), np.nansum(x**2, axis=1)
    differences = 2 * (m * squares - total**2) / (m - 1)
    return clusters.sums(m, total, squares, differences)


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


# What a statistic is a function of, of scores (units, raters) and their clusters, and itself.
# Alpha is that of Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", with the
# squared differences of the scores themselves.
_STATISTICS: Mapping[str, tuple[Callable[[FloatArray, Clusters], FloatArray], Statistic]] = {
    "pearson": (_pair_sums, _of_scores(_pearson, _CONSTANT)),
    "spearman": (_rank_table, SPEARMAN),
    "icc": (score_sums_by_cluster, ICC_2_1),
    "icc_mean": (score_sums_by_cluster, ICC_2_K),
    "alpha": (_alpha_sums, _of_scores(_alpha, _ONE_SCORE)),
}
