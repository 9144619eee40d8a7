"""Agreement where more than one label may be right: sets of labels beside the response set of an
item, which is the labels that enough of its annotators accept.

A set of labels is an integer with the bit of each label's place; -1 is no answer. Guerdan et al.
(2025), "Validating LLM-as-a-Judge systems under rating indeterminacy" (arXiv 2503.05965): a judge
that is picked by its agreement with one forced choice per annotator may be worse than one picked by
response sets. Their coverage of one label by the response set is `hit` here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import FloatArray, IntArray, ratio

Bools = NDArray[np.bool_]


def as_sets(labels: IntArray) -> IntArray:
    """Each label index as the set of that label alone, -1 where there is none.

    >>> as_sets(np.array([0, 2, -1])).tolist()
    [1, 4, -1]
    """
    return np.where(labels < 0, -1, 1 << np.maximum(labels, 0).astype(np.int64))


def members(sets: IntArray, k: int) -> Bools:
    """True where a label is in a set: (...) -> (..., k).

    >>> members(np.array([5, -1]), 3).tolist()
    [[True, False, True], [False, False, False]]
    """
    in_set = (sets[..., None] >> np.arange(k)) & 1 == 1
    return np.asarray(in_set & (sets >= 0)[..., None])


def accepted_shares(sets: IntArray, k: int) -> FloatArray:
    """The share of an item's annotators who accept each label, the multi-label vector of the item:
    (items, annotators) -> (items, k). NaN where nobody answered.

    >>> accepted_shares(np.array([[1, 3], [2, -1]]), 2).tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    return ratio(members(sets, k).sum(axis=1), (sets >= 0).sum(axis=1)[:, None])


def shares_of_others(sets: IntArray, k: int) -> FloatArray:
    """The same of all annotators but each one: (items, annotators) -> (items, annotators, k)."""
    accepted, given = members(sets, k), sets >= 0
    others = (given.sum(axis=1, keepdims=True) - given)[..., None]
    return ratio(accepted.sum(axis=1, keepdims=True) - accepted, others)


def response_sets(shares: FloatArray, accepted_by: float = 0.5) -> IntArray:
    """The labels that at least a share `accepted_by` of the annotators accept, and one at least:
    (..., k) -> (...). 0 is any annotator; -1 where no label is in the set.

    >>> response_sets(np.array([[1.0, 0.5], [0.4, 0.3], [np.nan, np.nan]])).tolist()
    [3, -1, -1]
    """
    among = (shares > 0) & (shares >= accepted_by)
    found = (among * (1 << np.arange(shares.shape[-1], dtype=np.int64))).sum(axis=-1)
    return np.where(found > 0, found, -1)


def hits(sets: IntArray, responses: IntArray, k: int) -> FloatArray:
    """The share of the labels in a set that are in the response set: 0 or 1 where it is one label.

    It is the chance that one of its labels, drawn at random, is accepted, so that nothing is won
    by naming them all. NaN where there is no set or no response set.

    >>> hits(np.array([1, 3, 3]), np.array([1, 1, 3]), 2).tolist()
    [1.0, 0.5, 1.0]
    """
    said, accepted = members(sets, k), members(responses, k)
    found = ratio((said & accepted).sum(axis=-1), said.sum(axis=-1))
    return np.where(responses < 0, np.nan, found)


def least_severe(sets: IntArray) -> IntArray:
    """The first label of each set, -1 where there is none.

    >>> least_severe(np.array([6, 1, -1])).tolist()
    [1, 0, -1]
    """
    bits = np.log2(np.maximum(sets & -sets, 1)).astype(np.int64)
    return np.where(sets < 0, -1, bits)


NO_SET = "no item has both a label and a response set"
SET_STATISTICS: Mapping[str, str] = {
    "hit": "share of the labels named that are in the response set",
    "coverage": "share of the response set that is named",
    "exact": "share of items on which exactly the response set is named",
    "mse": "squared distance of the labels named (0 or 1) from the share of annotators who accept "
    "each, added up over the labels; 0 is best",
}


def set_scores(sets: IntArray, shares: FloatArray, accepted_by: float = 0.5) -> FloatArray:
    """Each of `SET_STATISTICS` of every item: (n,), (n, k) -> (n, 4). NaN where it is undefined:
    without a set, without annotators and, but for `mse`, without a response set.

    >>> set_scores(np.array([1]), np.array([[1.0, 0.5]])).tolist()
    [[1.0, 0.5, 0.0, 0.25]]
    """
    k = shares.shape[1]
    responses = response_sets(shares, accepted_by)
    both = (sets >= 0) & (responses >= 0)
    distance = ((members(sets, k) - shares) ** 2).sum(axis=1)
    columns = (
        hits(sets, responses, k), hits(responses, sets, k),
        np.where(both, sets == responses, np.nan), np.where(sets >= 0, distance, np.nan),
    )  # fmt: skip
    return np.stack(columns, axis=1)


def fill_missing(scores: FloatArray, shares: FloatArray, missing: Bools, worst: bool) -> FloatArray:
    """The scores with those that are `missing` (n,) as bad, or as good, as a set can make them."""
    far = np.where(worst, np.maximum(shares, 1 - shares), np.minimum(shares, 1 - shares))
    filled = np.full_like(scores, 0.0 if worst else 1.0)
    filled[:, -1] = (far**2).sum(axis=1)
    return np.where(missing[:, None], filled, scores)
