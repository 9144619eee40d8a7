"""A judge against the distribution of the humans' labels, beside what a colleague would reach.

`n_uc` is (items, k): how many annotators gave each label to each item. Every label in turn is held
back and the item's other labels are the target, for the judge as for the annotator whose label it
is: so both are measured against the very same distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import FloatArray, IntArray, ratio

Score = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class HeldBack:
    """One row an item and label that occurs on it, of the items with two labels or more.

    `item` (rows,) and `label` (rows,) say which, `others` (rows, k) are the shares of the item's
    labels without one such label, and `weight` (rows,) the share of annotators whose label it is.
    """

    item: NDArray[np.int64]
    label: NDArray[np.int64]
    others: FloatArray
    weight: FloatArray
    items: int

    def mean_by_item(self, scores: FloatArray) -> FloatArray:
        """The mean over an item's annotators: (rows,) -> (items,), NaN without two labels."""
        total = np.bincount(self.item, self.weight * scores, minlength=self.items)
        return np.where(np.bincount(self.item, minlength=self.items) > 0, total, np.nan)


def hold_back(n_uc: IntArray) -> HeldBack:
    """Every label of every item against the others: q = (n - e_j) / (m - 1), weight n_j / m.

    Leave-one-out as in Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for
    LLM-as-a-Judge", section 3, where an annotator and the judge are held against the others.
    """
    m = n_uc.sum(axis=1)
    item, label = np.nonzero((n_uc > 0) & (m >= 2)[:, None])
    left = n_uc[item].astype(np.float64)
    left[np.arange(len(item)), label] -= 1
    others = left / (m[item] - 1)[:, None]
    return HeldBack(item, label, others, n_uc[item, label] / m[item], len(n_uc))


def judge_against_others(score: Score, p: FloatArray, held: HeldBack) -> FloatArray:
    """The judge's score against the other annotators, the mean over who is left out: (items,)."""
    return held.mean_by_item(score(p[held.item], held.others))


def annotator_against_others(score: Score, held: HeldBack) -> FloatArray:
    """The score of one annotator's label, as a certainty, against the others: (items,)."""
    return held.mean_by_item(score(np.eye(held.others.shape[1])[held.label], held.others))


def base_rates(n_uc: IntArray) -> FloatArray:
    """The mean share of each label over the items that have any (k,); NaN without one."""
    m = n_uc.sum(axis=1, keepdims=True)
    return ratio(ratio(n_uc, m)[m[:, 0] > 0].sum(axis=0), (m > 0).sum())
