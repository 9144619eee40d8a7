"""What several annotators together say: one label a unit.

`ratings` is (units, annotators), ints 0..k-1 with -1 where an annotator gave no label.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import MISSING, IntArray, value_counts


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


def majority_label(
    ratings: IntArray, k: int, ties: Literal["lower", "upper", "none"]
) -> NDArray[np.int64]:
    """The most frequent label of each unit (units,); -1 where nobody rated it.

    Of equally frequent labels `ties` takes the lowest, the highest, or none (-1).
    """
    counts = value_counts(ratings, k)
    most = counts.max(axis=1, keepdims=True)
    label = counts.argmax(axis=1)
    if ties == "upper":
        label = k - 1 - counts[:, ::-1].argmax(axis=1)
    unknown = most[:, 0] == 0
    if ties == "none":
        unknown |= (counts == most).sum(axis=1) > 1
    return np.where(unknown, MISSING, label).astype(np.int64)
