"""Judge against truth: confusion counts, the statistics that are functions of them.

Every formula takes counts C of shape (..., k, k), C[i, j] the (weighted) number of items whose
truth is label i and which the judge labels j, and is vectorised over the leading axes. A judge that
is always one label too severe still correlates fully: read correlations beside agreement, never
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import (
    Clusters,
    FloatArray,
    IntArray,
    check_codes,
    label_distances,
    mean_of_defined,
    ratio,
    severity_of_labels,
)
from judgebench.stats.jackknife import (
    OF_CORRELATION,
    SHARE,
    Bounds,
    Formula,
    Reason,
    Statistic,
    explained,
    where_empty,
)
from judgebench.stats.means import correlations
from judgebench.words import counted

NO_ITEM = "no item has both a reference label and a label of the judge"
ONE_SEVERITY = (
    "all labels in use have the same severity, so chance-corrected agreement is undefined"
)


def confusion_by_cluster(
    truth: IntArray, judged: IntArray, clusters: Clusters, k: int
) -> FloatArray:
    """Confusion counts (clusters, k, k) of paired labels: rows truth, columns the judge.

    `truth` and `judged` are (items,); a pair with -1 on either side is dropped. Raises ValueError
    where shapes differ or a code is out of range.

    >>> both = np.array([0, 1, 1]), np.array([0, 1, 0])
    >>> confusion_by_cluster(*both, Clusters(np.zeros(3, int), 1), k=2).tolist()
    [[[1.0, 0.0], [1.0, 1.0]]]
    """
    if not truth.shape == judged.shape == clusters.codes.shape:
        raise ValueError("truth, judged and clusters must have the same shape")
    check_codes(truth, k, "truth")
    check_codes(judged, k, "judged labels")
    both = (truth >= 0) & (judged >= 0)
    cells = truth[both].astype(np.int64) * k + judged[both]
    return clusters[both].table(cells, k * k).reshape(-1, k, k)


_no_item = where_empty(NO_ITEM)


def all_items(C: FloatArray) -> FloatArray:
    """The number of items (...)."""
    return np.asarray(C.sum(axis=(-2, -1)))


def diagonal_share(C: FloatArray) -> FloatArray:
    """The share of the counts on the diagonal."""
    return ratio(np.trace(C, axis1=-2, axis2=-1), all_items(C))


ACCURACY = Statistic(diagonal_share, _no_item, SHARE, all_items)


def _right(C: FloatArray) -> FloatArray:
    return np.diagonal(C, axis1=-2, axis2=-1)


# Of the rarest label that the truth uses: with fewer, intervals hold the value far too seldom.
MIN_FOR_F1, MIN_FOR_RECALL = 5, 10


def _unless_common(least: int) -> Reason:
    def too_rare(C: FloatArray) -> str:
        items = C.sum(axis=-1)
        return _too_rare(items[items > 0].min(), least)

    return too_rare


def _too_rare(items: float, least: int) -> str:
    if items >= least:
        return ""
    return f"only {counted(round(items), 'item')} of a label: an interval needs {least} of each"


# A label that neither truth nor judge uses has no F1 and is left out of the mean.
MACRO_F1 = Statistic(
    lambda C: mean_of_defined(ratio(2 * _right(C), C.sum(axis=-1) + C.sum(axis=-2))),
    _no_item,
    SHARE,
    no_interval=_unless_common(MIN_FOR_F1),
)
# The mean recall over the labels that the truth uses.
BALANCED_ACCURACY = Statistic(
    lambda C: mean_of_defined(ratio(_right(C), C.sum(axis=-1))),
    _no_item,
    SHARE,
    no_interval=_unless_common(MIN_FOR_RECALL),
)


def cohen_kappa(
    weights: Literal["none", "linear", "quadratic"] = "none",
    severities: Sequence[float] | None = None,
) -> Statistic:
    """Cohen's kappa, 1 - sum(w o) / sum(w e), with disagreement weights w.

    Cohen (1960); weighted: Cohen (1968). w is 0 or 1 (`none`), |s_i - s_j| (`linear`) or
    (s_i - s_j)^2 (`quadratic`), with s the severities, by default the label's position.

    >>> round(float(cohen_kappa().formula(np.array([[20.0, 5], [10, 15]]))), 2)
    0.4
    """

    power = {"none": 0, "linear": 1, "quadratic": 2}[weights]

    def kappa(C: FloatArray) -> FloatArray:
        n, k = C.sum(axis=(-2, -1)), C.shape[-1]
        w = label_distances(severities, k, power) if power else 1 - np.eye(k)
        row, column = C.sum(axis=-1), C.sum(axis=-2)
        observed = (w * C).sum(axis=(-2, -1))
        expected = ratio(((row @ w) * column).sum(axis=-1), n)
        return 1 - ratio(observed, expected)

    def why(C: FloatArray) -> str:
        if not C.any():
            return NO_ITEM
        if (C.sum(axis=-1) + C.sum(axis=-2) > 0).sum() == 1:
            return (
                "reference and judge hold one label only (the same), "
                "so chance-corrected agreement is undefined"
            )
        return ONE_SEVERITY

    return explained(kappa, why, OF_CORRELATION)


def mean_severity_error(severities: Sequence[float]) -> Statistic:
    """The mean of the judge's severity minus the truth's; positive where the judge overestimates.

    In the unit of the severities, `severities[i]` that of label i.
    """
    spread = float(np.ptp(severities))
    return _mean_of_differences(severities, lambda d: d, (-spread, spread))


def mean_absolute_severity_error(severities: Sequence[float]) -> Statistic:
    """The mean distance of the judge's severity from the truth's, in the unit of the severities.

    Errors in both directions add up here, where they cancel out in `mean_severity_error`.
    """
    return _mean_of_differences(severities, np.abs, (0.0, float(np.ptp(severities))))


def overestimated(severities: Sequence[float] | None = None) -> Statistic:
    """The share of items that the judge labels more severe than the truth.

    `severities` default to the labels' positions.
    """
    return _mean_of_differences(severities, lambda d: d > 0, SHARE, all_items)


def underestimated(severities: Sequence[float] | None = None) -> Statistic:
    """The share of items that the judge labels less severe than the truth."""
    return _mean_of_differences(severities, lambda d: d < 0, SHARE, all_items)


NORMAL_RANGE = 1.96  # standard deviations on either side that hold 95 % of a normal distribution


def limit_of_agreement(severities: Sequence[float], sign: Literal[-1, 1]) -> Statistic:
    """The mean difference of judge and truth plus, or minus, NORMAL_RANGE standard deviations
    (n - 1 in the denominator): 95 % of differences lie between the two limits where they are about
    normal. Bland and Altman (1986), "Statistical methods for assessing agreement between two
    methods of clinical measurement"; (1999), "Measuring agreement in method comparison studies".

    >>> C = np.array([[2.0, 1], [1, 2]])
    >>> round(float(limit_of_agreement((0, 1), 1).formula(C)), 3)
    1.24
    """

    def formula(C: FloatArray) -> FloatArray:
        n, s = all_items(C), severity_of_labels(severities, C.shape[-1])
        difference = s[None, :] - s[:, None]
        total, squares = ((C * difference**power).sum(axis=(-2, -1)) for power in (1, 2))
        variance = ratio(squares - ratio(total**2, n), n - 1)
        return ratio(total, n) + sign * NORMAL_RANGE * np.sqrt(np.maximum(variance, 0))

    return explained(formula, lambda C: "one item has no spread" if C.any() else NO_ITEM)


def _mean_of_differences(
    severities: Sequence[float] | None,
    of: Callable[[FloatArray], Any],
    bounds: Bounds,
    items: Formula | None = None,
) -> Statistic:
    def formula(C: FloatArray) -> FloatArray:
        s = severity_of_labels(severities, C.shape[-1])
        total = (C * of(s[None, :] - s[:, None])).sum(axis=(-2, -1))
        return ratio(total, all_items(C))

    return Statistic(formula, _no_item, bounds, items)


LabelStatistic = Literal["precision", "recall", "f1", "specificity"]
# The cells of a label against all others: found, missed, falsely given, rightly not given. A
# statistic is the ratio of two sums of them, with these weights.
_CELLS_OF_LABEL: Mapping[LabelStatistic, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "precision": ((1, 0, 0, 0), (1, 0, 1, 0), "the judge gives this label to no item"),
    "recall": ((1, 0, 0, 0), (1, 1, 0, 0), "no item has this label as its reference label"),
    "f1": ((2, 0, 0, 0), (2, 1, 1, 0), "neither reference nor judge uses this label"),
    "specificity": ((0, 0, 0, 1), (0, 0, 1, 1), "every item has this label as its reference label"),
}


def of_label(name: LabelStatistic, label: int) -> Statistic:
    """A statistic of one label against all others.

    `recall` is the true positive rate, `specificity` the true negative rate. F1 is the harmonic
    mean of precision and recall (van Rijsbergen 1979, "Information Retrieval", chapter 7), and no
    share of items: its interval needs MIN_FOR_F1 items with the label.

    >>> C = np.array([[20.0, 5], [10, 15]])
    >>> [round(float(of_label(name, 1).formula(C)), 3) for name in ("precision", "recall", "f1")]
    [0.75, 0.6, 0.667]
    """
    numerator, denominator, reason = _CELLS_OF_LABEL[name]

    def cells(C: FloatArray) -> FloatArray:
        hits, row, column = C[..., label, label], C[..., label, :], C[..., :, label]
        missed, false = row.sum(axis=-1) - hits, column.sum(axis=-1) - hits
        return np.stack([hits, missed, false, all_items(C) - hits - missed - false], axis=-1)

    def items(C: FloatArray) -> FloatArray:
        return np.asarray(cells(C) @ denominator)

    def undefined(C: FloatArray) -> str:
        if not C.any():
            return NO_ITEM
        return "" if items(C) else reason

    def formula(C: FloatArray) -> FloatArray:
        return ratio(cells(C) @ numerator, items(C))

    if name == "f1":
        return Statistic(
            formula, undefined, SHARE, no_interval=lambda C: _too_rare(C[label].sum(), MIN_FOR_F1)
        )
    return Statistic(formula, undefined, SHARE, items)


def _correlation_of_labels(C: FloatArray) -> FloatArray:
    n, row, column = all_items(C), C.sum(axis=-1), C.sum(axis=-2)
    agreement = n * np.trace(C, axis1=-2, axis2=-1) - (row * column).sum(axis=-1)
    spread = [n**2 - (margin**2).sum(axis=-1) for margin in (row, column)]
    return ratio(agreement, np.sqrt(spread[0]) * np.sqrt(spread[1]))


def pearson(severities: Sequence[float] | None = None) -> Statistic:
    """Pearson's r between the severity of the truth and that of the judge's label.

    `severities` default to the labels' positions.

    >>> round(float(pearson().formula(np.array([[20.0, 5], [10, 15]]))), 3)
    0.408
    """

    def r(C: FloatArray) -> FloatArray:
        s = severity_of_labels(severities, C.shape[-1])
        v = np.stack(np.broadcast_arrays(1.0, s[:, None], s), axis=-1)  # of each cell
        moments = np.einsum("...ij,ija,ijb->...ab", C, v, v)
        return correlations(moments)[..., 0]

    return _association(r)


def _spearman(C: FloatArray) -> FloatArray:
    """Pearson's r of the mid-ranks. Spearman (1904); ties: Kendall (1945). Truth and judge may have
    different numbers of values."""
    row, column = C.sum(axis=-1), C.sum(axis=-2)
    dx, dy = _mid_ranks(row), _mid_ranks(column)
    products = (dx[..., :, None] * C * dy[..., None, :]).sum(axis=(-2, -1))
    spread = np.sqrt((row * dx**2).sum(axis=-1)) * np.sqrt((column * dy**2).sum(axis=-1))
    return np.clip(ratio(products, spread), -1, 1)


def _mid_ranks(n_i: FloatArray) -> FloatArray:
    """The mean rank of the items of each label (..., k), less that of all items: exactly 0 where
    all have one label."""
    middle = n_i.sum(axis=-1, keepdims=True) / 2
    return np.asarray(np.cumsum(n_i, axis=-1) - n_i / 2 - middle)


def _kendall_tau_b(C: FloatArray) -> FloatArray:
    """(P - Q) / sqrt((n_0 - n_1) (n_0 - n_2)): concordant less discordant pairs of items, over the
    pairs not tied in the truth and those not tied in the judge. Kendall (1945), tau_b."""
    k = C.shape[-1]
    sign = np.sign(np.subtract.outer(np.arange(k), np.arange(k)))
    concordance = (C * (sign @ C @ sign.T)).sum(axis=(-2, -1)) / 2
    untied = np.sqrt(_untied(C.sum(axis=-1))) * np.sqrt(_untied(C.sum(axis=-2)))
    return np.clip(ratio(concordance, untied), -1, 1)


def _untied(n_i: FloatArray) -> FloatArray:
    """The number of pairs of items with different labels."""
    return np.asarray((n_i.sum(axis=-1) ** 2 - (n_i**2).sum(axis=-1)) / 2)


def _association(formula: Callable[[FloatArray], FloatArray]) -> Statistic:
    def why(C: FloatArray) -> str:
        if not C.any():
            return NO_ITEM
        used = np.count_nonzero(C.sum(axis=-1)), np.count_nonzero(C.sum(axis=-2))
        one = "label" if min(used) == 1 else "severity"
        return f"reference or judge holds one {one} only, so no correlation is defined"

    return explained(formula, why, OF_CORRELATION)


# Matthews' correlation of k labels, the R_K of Gorodkin (2004), "Comparing two K-category
# assignments by a K-category correlation coefficient".
MATTHEWS = _association(_correlation_of_labels)
SPEARMAN = _association(_spearman)
KENDALL_TAU_B = _association(_kendall_tau_b)


def fill_failures(
    truth: IntArray,
    judged: IntArray,
    policy: Literal["left_out", "worst", "best"],
    k: int,
    ordinal: bool,
) -> NDArray[np.int64]:
    """A copy of `judged` (items,) with -1 replaced where there is a truth to compare it with.

    `left_out` keeps -1 and `best` sets the truth. `worst` sets the label farthest from the truth:
    for ordinal labels the farther end of the scale, the lower end where both are as far; for
    nominal labels the most frequent truth other than the item's own, the lower where two are as
    frequent.

    >>> fill_failures(np.array([0, 2]), np.array([-1, -1]), "worst", k=3, ordinal=True).tolist()
    [2, 0]
    """
    filled = judged.astype(np.int64)
    failed = (judged < 0) & (truth >= 0)
    if policy == "best":
        filled[failed] = truth[failed]
    elif policy == "worst":
        label = np.arange(k)
        farthest = np.where(label >= k - 1 - label, 0, k - 1)
        if not ordinal:
            counts = np.bincount(truth[truth >= 0], minlength=k)
            first, second = np.argsort(-counts, kind="stable")[:2]
            farthest = np.where(label == first, second, first)
        filled[failed] = farthest[truth[failed]]
    return filled
