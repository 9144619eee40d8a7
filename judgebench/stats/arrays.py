"""Array types, and the few array helpers that the other modules of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]

MISSING = -1


def check_codes(codes: IntArray, size: int, what: str, least: int = MISSING) -> None:
    """Raise ValueError unless every code lies in least..size-1; an index past it would miscount."""
    if codes.size and not (least <= codes.min() and codes.max() < size):
        raise ValueError(
            f"{what} must lie in {least}..{size - 1}; found {codes.min()}..{codes.max()}"
        )


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """`numerator / denominator`, element by element; NaN, and no warning, where that is x / 0."""
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom != 0)
    return quotient


def mean_of_defined(x: FloatArray) -> FloatArray:
    """The mean over the last axis of what is not NaN; NaN, and no warning, where all is."""
    defined = ~np.isnan(x)
    return ratio(np.where(defined, x, 0).sum(axis=-1), defined.sum(axis=-1))


def severity_of_labels(severities: Sequence[float] | None, k: int) -> FloatArray:
    """The severity of each of k labels (k,): as given, else its position 0..k-1."""
    s = np.asarray(range(k) if severities is None else severities, dtype=np.float64)
    if s.shape != (k,):
        raise ValueError(f"{k} labels need {k} severities; found {severities}")
    return s


def value_counts(ratings: IntArray, k: int) -> NDArray[np.int64]:
    """How often each label was given to each unit: (units, annotators) -> (units, k)."""
    check_codes(ratings, k, "labels")
    counts = np.zeros((len(ratings), k), dtype=np.int64)
    for label in range(k):  # k passes over the ratings need less memory than one (units, a, k)
        counts[:, label] = (ratings == label).sum(axis=1)
    return counts
