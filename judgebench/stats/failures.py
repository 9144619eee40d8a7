"""What a judge's missing labels are counted as."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import IntArray, check_codes


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
    frequent. Raises ValueError where k < 2, for then no label is wrong.
    """
    if k < 2:
        raise ValueError("a failure can only be filled where there are two labels or more")
    check_codes(truth, k, "truth")
    filled = judged.astype(np.int64)
    failed = (judged < 0) & (truth >= 0)
    if policy == "best":
        filled[failed] = truth[failed]
    elif policy == "worst":
        farthest = _farthest_end(k) if ordinal else _most_frequent_other(truth, k)
        filled[failed] = farthest[truth[failed]]
    return filled


def _farthest_end(k: int) -> NDArray[np.int64]:
    label = np.arange(k)
    lower_is_as_far = label >= k - 1 - label
    return np.where(lower_is_as_far, 0, k - 1)


def _most_frequent_other(truth: IntArray, k: int) -> NDArray[np.int64]:
    counts = np.bincount(truth[truth >= 0], minlength=k)
    first, second = np.argsort(-counts, kind="stable")[:2]
    return np.array([second if label == first else first for label in range(k)])
