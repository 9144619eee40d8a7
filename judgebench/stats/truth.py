"""What several annotators together say: one label a unit, or a share for each label.

`ratings` is (units, annotators), ints 0..k-1 with -1 where an annotator gave no label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import MISSING, FloatArray, IntArray, value_counts

Ties = Literal["lower", "upper", "none"]
AS_PROBABLE = 1e-6  # probabilities that an iteration found are the same where no further apart


@dataclass(frozen=True)
class SoftLabels:
    """What is said of each unit as a distribution over the labels.

    `share` (units, k): rows add up to 1, or are all 0 where nobody rated the unit; `rated`
    (units,) tells these apart.
    """

    share: FloatArray
    rated: NDArray[np.bool_]


def median_label(ratings: IntArray, even: Literal["lower", "upper"]) -> NDArray[np.int64]:
    """The median label of each unit (units,); -1 where nobody rated it.

    With an even number of labels `even` takes the lower or the upper (more severe) of the middle
    two; labels are never averaged. For ordinal labels only.
    """
    units, annotators = ratings.shape
    if annotators == 0:
        return np.full(units, MISSING, dtype=np.int64)
    ordered = np.sort(ratings, axis=1)  # the missing ones come first
    m = (ratings >= 0).sum(axis=1)
    rank = (m - 1) // 2 if even == "lower" else m // 2
    place = np.minimum(annotators - m + rank, annotators - 1)  # where m is 0, any place holds -1
    return np.take_along_axis(ordered, place[:, None], axis=1)[:, 0].astype(np.int64)


def majority_label(ratings: IntArray, k: int, ties: Ties) -> NDArray[np.int64]:
    """The most frequent label of each unit (units,); -1 where nobody rated it.

    Of equally frequent labels `ties` takes the lowest, the highest, or none (-1).
    """
    return _largest(value_counts(ratings, k), ties, nearly=0)


def most_probable_label(share: FloatArray, ties: Ties) -> NDArray[np.int64]:
    """The label with the largest share (units, k) of each unit; -1 where all shares are 0.

    Of labels within AS_PROBABLE of the largest share `ties` takes the lowest, the highest, or
    none (-1).
    """
    return _largest(share, ties, nearly=AS_PROBABLE)


def label_shares(ratings: IntArray, k: int) -> SoftLabels:
    """The share of a unit's annotators that gave each label, n_il / sum_l n_il."""
    n = value_counts(ratings, k)
    total = n.sum(axis=1)
    return SoftLabels(n / np.maximum(total, 1)[:, None], total > 0)


def _largest(weight: FloatArray | IntArray, ties: Ties, nearly: float) -> NDArray[np.int64]:
    k = weight.shape[1]
    most = weight.max(axis=1, keepdims=True)
    best = weight >= most - nearly
    label = best.argmax(axis=1)
    if ties == "upper":
        label = k - 1 - best[:, ::-1].argmax(axis=1)
    unknown = most[:, 0] == 0
    if ties == "none":
        unknown |= best.sum(axis=1) > 1
    return np.where(unknown, MISSING, label).astype(np.int64)
