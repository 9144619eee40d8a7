"""Several rankers cut down to the instances and systems that all of them rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.ranking.result import RankerScores
from judgebench.stats.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Matched:
    """The same rows and columns of every ranker.

    `values` is (rankers, instances, systems) without a gap, `clusters` (instances,). `n_missing`
    counts the instances that all rankers hold and where one of them lacks a value.
    """

    systems: tuple[str, ...]
    values: FloatArray
    clusters: IntArray
    n_missing: int


def match(rankers: Sequence[RankerScores], systems: Sequence[str]) -> Matched:
    """What one ranker or more rank in common, of the named systems and in their order.

    Clusters are those of the first. An instance that a ranker was never to rank, such as those
    outside the sample that humans saw, is not missing.
    """
    first = rankers[0]
    common = tuple(s for s in systems if all(s in ranker.systems for ranker in rankers))
    rows = [{item: row for row, item in enumerate(ranker.items)} for ranker in rankers]
    items = [item for item in first.items if all(item in known for known in rows)]
    values = np.stack(
        [
            columns(ranker.values, ranker, common)[[known[item] for item in items]]
            for ranker, known in zip(rankers, rows, strict=True)
        ]
    )
    complete = np.isfinite(values).all(axis=(0, 2))
    clusters = first.clusters[[rows[0][item] for item in items]]
    return Matched(common, values[:, complete], clusters[complete], int((~complete).sum()))


def columns(table: FloatArray, ranker: RankerScores, systems: Sequence[str]) -> FloatArray:
    """The columns of these systems, of a table (instances, systems) of that ranker's shape."""
    return table[:, [ranker.systems.index(system) for system in systems]]
