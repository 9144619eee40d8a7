"""Coefficients of two columns: of rows, and of items in clusters as functions of how often each is
drawn.

Pearson's r, Spearman's rho, Kendall's tau_b (Kendall 1945), and pairwise accuracy: the share of
pairs that are ordered, or held level, as by the humans, where scores are level that differ by at
most a `tie`. Weights are (R, clusters): the sample is a row of ones, a resample a row of
multiplicities. Columns are `standardized`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats import ranks
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.means import MEAN_CORRELATION, moments_by_cluster

Coefficient = Literal["pearson", "spearman", "kendall", "pairwise"]
Weighted = Callable[[FloatArray], FloatArray]
CONSTANT = "the scores or the human severities do not vary"
ROUNDING, _DIGITS = 1e-9, 9  # what rounding changes in a difference of standardized scores
_CELLS = 1 << 22  # numbers held at once: 32 MiB
_SHUFFLES = 20


def standardized(x: FloatArray) -> FloatArray:
    """Minus the mean, over the standard deviation; 0 where all are the same. NaN stays."""
    there = x[~np.isnan(x)]
    if not len(there) or there.max() == there.min():
        return np.where(np.isnan(x), np.nan, 0.0)
    centred = (x - there.mean()) / np.abs(there - there.mean()).max()
    return np.asarray(centred / np.nanstd(centred))


def of_rows(x: FloatArray, y: FloatArray, coefficient: Coefficient, tie: float = 0) -> FloatArray:
    """The coefficient of each row of x and y (..., k), on standardized scales; NaN where one of
    them is level. Differences of at most `ranks.TIE` are level; pairwise accuracy is defined for
    any two items.

    >>> of_rows(np.array([[0.0, 1, 2]]), np.array([[0.0, 2, 1]]), "pairwise").round(3).tolist()
    [0.667]
    """
    if coefficient != "pairwise":
        of = {"pearson": ranks.pearson, "spearman": ranks.spearman, "kendall": ranks.tau_b}
        return of[coefficient](x, y)
    i, j = np.triu_indices(x.shape[-1], 1)
    level = ranks.levels(y)
    dx = x[..., i] - x[..., j]
    correct = _is_correct(dx, level[..., i] - level[..., j], max(tie, ranks.TIE))
    return ratio(correct.sum(axis=-1), len(i))


def weighted_pearson(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Pearson's r of weights."""
    moments = moments_by_cluster(np.stack([x, y], axis=1), clusters)
    return lambda w: MEAN_CORRELATION.formula(np.tensordot(w, moments, axes=1))


def weighted_spearman(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Pearson's r of the mid-ranks that the items of a resample have in it."""
    kinds = [_dense(x), _dense(y)]
    held = [clusters.table(kind, int(kind.max()) + 1) for kind in kinds]  # (clusters, kinds)

    def some(w: FloatArray) -> FloatArray:
        ranked = []
        for kind, of_kind in zip(kinds, held, strict=True):
            n = w @ of_kind
            middle = n.cumsum(axis=1) - (n + n.sum(axis=1, keepdims=True)) / 2
            ranked.append(middle[:, kind])
        rx, ry, drawn = *ranked, w[:, clusters.codes]
        spread = np.sqrt((drawn * rx**2).sum(axis=1) * (drawn * ry**2).sum(axis=1))
        return np.clip(ratio((drawn * rx * ry).sum(axis=1), spread), -1, 1)

    rows = max(1, _CELLS // len(x))
    return lambda w: np.concatenate([some(w[i : i + rows]) for i in range(0, len(w), rows)])


def _dense(x: FloatArray) -> NDArray[np.int32]:
    return np.unique(x, return_inverse=True)[1].astype(np.int32)


def weighted_kendall(x: FloatArray, y: FloatArray, clusters: Clusters) -> Weighted:
    """Items of which a resample has copies are level with these."""
    kx, ky = kinds = [_dense(x), _dense(y)]
    agree = _pair_sums(lambda i: np.sign(kx[i] - kx) * np.sign(ky[i] - ky), clusters)
    held = [clusters.table(kind, int(kind.max()) + 1) for kind in kinds]

    def of(w: FloatArray) -> FloatArray:
        drawn = [w @ of_kind for of_kind in held]
        untied = [n.sum(axis=1) ** 2 - (n**2).sum(axis=1) for n in drawn]
        return np.clip(ratio(_quadratic(w, agree), np.sqrt(untied[0] * untied[1])), -1, 1)

    return of


def weighted_accuracy(x: FloatArray, y: FloatArray, clusters: Clusters, tie: float) -> Weighted:
    """Pairs of an item with itself or its own copies are left out."""
    size = clusters.sums(np.ones(len(x)))[:, 0]
    correct = _pair_sums(lambda i: _is_correct(x[i] - x, y[i] - y, tie), clusters) - np.diag(size)
    return lambda w: ratio(_quadratic(w, correct), (w @ size) ** 2 - w**2 @ size)


def _is_correct(dx: FloatArray, dy: FloatArray, tie: float) -> NDArray[np.bool_]:
    return np.asarray(np.sign(np.where(np.abs(dx) <= tie + ROUNDING, 0, dx)) == np.sign(dy))


def _quadratic(w: FloatArray, pairs: FloatArray) -> FloatArray:
    return np.asarray(((w @ pairs) * w).sum(axis=1))


def _pair_sums(of: Callable[[Any], NDArray[Any]], clusters: Clusters) -> FloatArray:
    """What all pairs of items add up to, by the clusters of both; `of` gives some rows of them."""
    found = np.zeros((clusters.n, clusters.n))
    order = np.argsort(clusters.codes, kind="stable")
    present, starts = np.unique(clusters.codes[order], return_index=True)
    step = max(1, _CELLS // len(order))
    for rows in (order[i : i + step] for i in range(0, len(order), step)):
        block = of((rows, None))[:, order].astype(np.float64)
        cells = (clusters.codes[rows][:, None], present)
        np.add.at(found, cells, np.add.reduceat(block, starts, axis=1))
    return found


def calibrated(
    blocks: Sequence[IntArray], x: FloatArray, y: FloatArray
) -> tuple[float, float | None]:
    """The tie of the best accuracy, and the mean best accuracy of scores that are shuffled within
    groups. `blocks` hold the rows of groups of one size (groups, size); each group weighs 1."""
    corners = [np.triu_indices(rows.shape[1], 1) for rows in blocks]

    def differences(v: FloatArray, of: Sequence[IntArray]) -> FloatArray:
        parts = zip(of, corners, strict=True)
        return np.concatenate([(v[r[:, i]] - v[r[:, j]]).ravel() for r, (i, j) in parts])

    def best(dx: FloatArray) -> tuple[float, float]:
        order = np.argsort(np.abs(dx))
        size, w = np.abs(dx)[order].round(_DIGITS), weight[order]
        level, right = (dy == 0)[order], (dx * dy > 0)[order] & (size > 0)
        as_it_is = w @ (right | level & (size == 0))
        more = w @ right + np.cumsum(w * (level * 1.0 - right))
        last = np.diff(size, append=np.inf) > 0  # pairs of one difference become level together
        ties, values = np.append(0.0, size[last]), np.append(as_it_is, more[last])
        place = int(np.argmax(values))
        return float(ties[place]), float(values[place] / w.sum())

    if not any(rows.size > 1 for rows in blocks):
        return 0.0, None
    dy = differences(y, blocks)
    pairs = zip(blocks, corners, strict=True)
    weight = np.concatenate([np.full(len(r) * len(i), 1 / len(i)) for r, (i, _) in pairs])
    rng = np.random.default_rng(0)
    shuffled = ([rng.permuted(rows, axis=1) for rows in blocks] for _ in range(_SHUFFLES))
    by_chance = [best(differences(x, rows))[1] for rows in shuffled]
    return best(differences(x, blocks))[0], float(np.mean(by_chance))
