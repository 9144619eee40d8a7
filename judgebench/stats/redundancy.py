"""Redundancy of scorers: correlations of all pairs, families, and functions of one another.

`scores` is (items, m), a column for each scorer, NaN where it gave no score.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, ratio
from judgebench.stats.association import standardized
from judgebench.stats.jackknife import (
    LEVEL,
    SHARE,
    ClusterCounts,
    jackknife_interval,
    random_groups,
)
from judgebench.stats.ranks import item_ranks

FAMILY = 0.8
"""Scorers of a family have |r| of at least this, on average."""
LEAST = 3
"""Of fewer items any two scorers lie on a line."""
ONLY_FUNCTIONS = "its scorers are functions of one another"
_N, _SUM, _SQUARES, _PRODUCTS = range(4)
_ROUNDING = 1e-9
_DECIMALS, _UNROUNDED = 7, 1e-6  # with more decimals, numbers count as unrounded
_FIT, _MONOTONE = 5, 30  # distinct values for a formula, and for mere equality of ranks
_ORDERED = 0.95  # |rho| of what may be a function, but for rounding
_WIDE = 50  # a range of values is this many times what rounding explains


@dataclass(frozen=True)
class Twins:
    """Two columns that are functions of one another: y, the `second`, of x, the `first`."""

    first: int
    second: int
    formula: str


@dataclass(frozen=True)
class Redundancy:
    """`matrix` (m, m) of correlations, NaN where undefined; `order` (m,) puts like beside like.
    `families` partition the columns, and `mean_r` is the mean |r| of the pairs in each; undefined
    in one without two scorers that are not functions of one another."""

    matrix: FloatArray
    order: Sequence[int]
    families: Sequence[Sequence[int]]
    mean_r: Sequence[Estimate]
    twins: Sequence[Twins]


def redundancy(
    scores: FloatArray,
    clusters: Clusters,
    ranked: bool = True,
    level: float = LEVEL,
) -> Redundancy:
    """Correlations of all pairs of scorers, on the items that both scored, and their families.

    Spearman's rho, or Pearson's r where they are not `ranked`. Families come from average linkage
    of 1 - |r|, cut at 1 - FAMILY (Sokal and Michener 1958). Of functions of one another only the
    first takes part, so that they do not count as agreement; the others join its family.
    The intervals of `mean_r` are over clusters; ranks are those in the whole column.
    """
    x = np.stack(
        [item_ranks(column) if ranked else standardized(column) for column in scores.T], axis=1
    )
    sample = ClusterCounts(_sums(x, random_groups(clusters)))
    matrix = _correlations(sample.total)
    found = twins(scores)
    second = {twin.second for twin in found}
    own = [i for i in range(scores.shape[1]) if i not in second]

    groups, order = _families(matrix[np.ix_(own, own)], own)
    left_out = _correlations(sample.total - sample.kinds)

    def mean_r(group: Collection[int]) -> Estimate:
        first, second = np.array([*combinations(sorted(group), 2)], dtype=np.int64).reshape(-1, 2).T
        if not len(first):
            return Estimate(None, reason=ONLY_FUNCTIONS)
        value, others = (np.abs(r[..., first, second]).mean(axis=-1) for r in (matrix, left_out))
        return jackknife_interval(float(value), others, sample.how_many, level, SHARE)

    beside = {i: [t.second for t in found if t.first == i] for i in own}
    return Redundancy(
        matrix,
        [j for i in order for j in (i, *beside[i])],
        [sorted(j for i in group for j in (i, *beside[i])) for group in groups],
        [mean_r(group) for group in groups],
        found,
    )


def _sums(x: FloatArray, clusters: Clusters) -> FloatArray:
    """For each pair of columns over the items that have both (clusters, 4, m, m): how many, the sum
    and the sum of squares of the first, the sum of products."""
    there, m = ~np.isnan(x), x.shape[1]
    x = np.where(there, x, 0)
    parts = ((there, there), (x, there), (x * x, there), (x, x))
    products = np.concatenate([a[:, :, None] * b[:, None, :] for a, b in parts], axis=1)
    return clusters.sums(*products.reshape(len(x), -1).T).reshape(clusters.n, 4, m, m)


def _correlations(sums: FloatArray) -> FloatArray:
    """Pearson's r of every pair (..., m, m) of sums (..., 4, m, m); NaN where one is constant, and
    of fewer than LEAST items."""
    n, sx, xx, xy = (sums[..., part, :, :] for part in (_N, _SUM, _SQUARES, _PRODUCTS))
    spread = n * xx - sx**2
    spread = np.where((spread > _ROUNDING * n * xx) & (n >= LEAST), spread, 0)
    sy, other = np.swapaxes(sx, -1, -2), np.swapaxes(spread, -1, -2)
    return np.clip(ratio(n * xy - sx * sy, np.sqrt(spread * other)), -1, 1)


def _families(r: FloatArray, names: Sequence[int]) -> tuple[list[frozenset[int]], list[int]]:
    """The families of these columns, and an order in which like stands beside like."""
    if len(names) < 2:
        return [frozenset(names)] if names else [], list(names)
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage

    apart = np.clip(1 - np.abs(np.nan_to_num(r)), 0, 1)
    tree = linkage(apart[np.triu_indices(len(names), 1)], "average")
    code = fcluster(tree, 1 - FAMILY + _ROUNDING, "distance")
    order = [names[i] for i in leaves_list(tree)]
    of = dict(zip(names, code.tolist(), strict=True))
    return [
        frozenset(i for i in order if of[i] == c) for c in dict.fromkeys(map(of.get, order))
    ], order


def twins(scores: FloatArray) -> list[Twins]:
    """Columns that are functions of one another, as byte perplexity = 2^(bits per byte) is. Each
    column is named once, beside the first that it is a function of.

    Either a formula holds up to rounding for 5 distinct values or more: y or log y is linear in x
    or in log x. Or the ranks agree for 30 distinct values or more, forwards or backwards, up to
    rounding. How numbers are rounded is read off the decimals that a column uses.

    >>> bits = np.array([1.302, 1.43, 0.911, 1.795, 0.346, 1.112])
    >>> [found.formula for found in twins(np.stack([bits, (2**bits).round(3)], axis=1))]
    ['log y is linear in x']
    """
    found: list[Twins] = []
    for i, j in combinations(range(scores.shape[1]), 2):
        if any(twin.second in (i, j) for twin in found):
            continue
        pair = scores[:, [i, j]]
        x, y = pair[~np.isnan(pair).any(axis=1)].T
        u, v = item_ranks(x), item_ranks(y)
        if abs(u @ v) < _ORDERED * math.sqrt(float((u @ u) * (v @ v))):
            continue
        if formula := _formula(x, y):
            found.append(Twins(i, j, formula))
    return found


def _formula(x: FloatArray, y: FloatArray) -> str:
    values = [len(np.unique(v)) for v in (x, y)]
    if min(values) < _FIT:
        return ""
    ux, uy = _unit(x), _unit(y)
    fits = []
    for log_y, log_x in product((False, True), repeat=2):
        if (log_x and x.min() <= 0) or (log_y and y.min() <= 0):
            continue
        u, du = (np.log(x), ux / x) if log_x else (x, np.full(len(x), ux))
        v, dv = (np.log(y), uy / y) if log_y else (y, np.full(len(y), uy))
        b = np.polyfit(u, v, 1)[0]
        slack = np.abs(b) * du + dv  # twice what rounding explains, since the fit is off as well
        if np.ptp(v) <= _WIDE * slack.max():
            continue
        b, a = np.polyfit(u, v, 1, w=1 / slack)
        off = float((np.abs(v - a - b * u) / slack).max())
        if off <= 1:
            left, right = "log y" if log_y else "y", "log x" if log_x else "x"
            fits.append((off, f"{left} is linear in {right}"))
    if fits:
        return min(fits)[1]
    if min(values) < _MONOTONE or 2 * min(values) < max(values):
        return ""
    for sign in (1, -1):
        ordered = sign * y[np.lexsort((sign * y, x))]
        if (np.maximum.accumulate(ordered) - ordered <= uy).all():
            return "y rises with x, always" if sign > 0 else "y falls with x, always"
    return ""


def _unit(x: FloatArray) -> float:
    """The unit of the last decimal in use; of unrounded numbers, what a float32 model leaves."""
    for decimals in range(_DECIMALS):
        if np.allclose(x, np.round(x, decimals), rtol=0, atol=_ROUNDING * 10**-decimals):
            return float(10**-decimals)
    return float(np.abs(x).max() * _UNROUNDED)
