"""Array types and the array helpers that the other modules of this folder share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Clusters:
    """The cluster of each item: `codes` (items,) from 0 to `n` - 1.

    What the items of a cluster add up to is what intervals over whole clusters need. Raises
    ValueError where a code is out of range.

    >>> Clusters(np.array([0, 0, 2]), 3).sums(np.array([5, 1, 2])).tolist()
    [[6.0], [0.0], [2.0]]
    """

    codes: IntArray
    n: int

    def __post_init__(self) -> None:
        check_codes(self.codes, self.n, "clusters", least=0)

    @classmethod
    def of(cls, names: Iterable[Hashable]) -> Clusters:
        """The clusters that items are in by name, numbered in the order in which they are met."""
        known: dict[Hashable, int] = {}
        codes = np.fromiter((known.setdefault(name, len(known)) for name in names), dtype=np.int64)
        return cls(codes, len(known))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: IntArray | NDArray[np.bool_] | np.bool_) -> Clusters:
        """The clusters of some of the items. Raises ValueError where lengths differ."""
        if rows.dtype == np.bool_:
            self._check_length(np.atleast_1d(rows))
        return Clusters(self.codes[rows], self.n)

    def occurring(self) -> Clusters:
        """The clusters that have an item, renumbered 0..n-1 in the same order."""
        occurs = np.zeros(self.n, dtype=np.bool_)
        occurs[self.codes] = True
        return Clusters((np.cumsum(occurs) - 1)[self.codes], int(occurs.sum()))

    def sums(self, *columns: ArrayLike) -> FloatArray:
        """Each column (items,) summed by cluster: (n, columns). Raises ValueError where lengths
        differ."""
        self._check_length(*map(np.asarray, columns))
        found = [np.bincount(self.codes, column, minlength=self.n) for column in columns]
        return np.stack(found, axis=-1).astype(np.float64)

    def table(self, cells: IntArray, size: int, weights: FloatArray | None = None) -> FloatArray:
        """The number of items, or their weight, in each cell (items,) of a cluster:
        (n, size). Raises ValueError where lengths differ."""
        self._check_length(cells)
        place = self.codes.astype(np.int64) * size + cells
        counts = np.bincount(place, weights, minlength=self.n * size)
        return counts.reshape(self.n, size).astype(np.float64)

    def _check_length(self, *columns: NDArray[Any]) -> None:
        if any(len(column) != len(self.codes) for column in columns):
            raise ValueError("values and clusters must have the same length")


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """`numerator / denominator`, element by element; NaN, and no warning, where that is x / 0."""
    top, bottom = (np.asarray(x, dtype=np.float64) for x in (numerator, denominator))
    quotient = np.full(np.broadcast(top, bottom).shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom != 0)
    return quotient


def mean_of_defined(x: FloatArray) -> FloatArray:
    """The mean over the last axis of what is not NaN; NaN, and no warning, where all is."""
    defined = ~np.isnan(x)
    return ratio(np.where(defined, x, 0).sum(axis=-1), defined.sum(axis=-1))


def severity_of_labels(severities: Sequence[float] | None, k: int) -> FloatArray:
    """The severity of each of k labels (k,): as given, else its position 0..k-1."""
    return np.asarray(range(k) if severities is None else severities, dtype=np.float64)


def first_reason(reasons: Mapping[str, object]) -> str:
    """The first of the reasons that holds; '' where none does."""
    return next((reason for reason, holds in reasons.items() if holds), "")


def label_distances(severities: Sequence[float] | None, k: int, power: int = 2) -> FloatArray:
    """|s_i - s_j|^power of the severities of each two of k labels (k, k)."""
    s = severity_of_labels(severities, k)
    return np.asarray(np.abs(s[:, None] - s) ** power)


def distinct_rows(rows: FloatArray | IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of one row of each kind, and the number of the kind of every row.

    Equal rows have equal random projections, and to sort those is far faster than np.unique by rows
    is. Where unlike rows share one, every row is a kind of its own.

    >>> [found.tolist() for found in distinct_rows(np.array([[1, 0], [0, 2], [1, 0]]))]
    [[1, 0], [1, 0, 1]]
    """
    key = rows @ np.random.default_rng(0).random(rows.shape[1])
    _, first, kind_of = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][kind_of], rows):
        first = kind_of = np.arange(len(rows))
    return first, kind_of


def value_counts(ratings: IntArray, k: int) -> NDArray[np.int64]:
    """Return the count of each label on each unit: (units, annotators) -> (units, k)."""
    check_codes(ratings, k, "labels")
    counts = np.zeros((len(ratings), k), dtype=np.int64)
    for label in range(k):  # k passes over the ratings need less memory than one (units, a, k)
        counts[:, label] = (ratings == label).sum(axis=1)
    return counts
