"""The humans that a judge is held against: who is in the bar, in camps, or copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judgebench.decide.counts import HumanSide
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.peers import Bar, BarKind, bar_of

Settle = Callable[[IntArray], IntArray]


@dataclass(frozen=True)
class Scale:
    """`k` labels, those from `severe` on severe (None: nothing is), and how labels are settled."""

    k: int
    severe: int | None
    settle: Settle


def human_side(ratings: IntArray, clusters: Clusters, scale: Scale, kind: BarKind) -> tuple[HumanSide, Bar]:
    bar = bar_of(ratings, clusters, scale.k, kind)
    own = ratings[:, bar.kept]
    others = np.stack(
        [scale.settle(np.delete(own, a, axis=1)) for a in range(own.shape[1])], axis=1
    )
    return HumanSide(
        scale.settle(own), own, others, clusters, scale.k, scale.severe, bar.weights[:, bar.kept], bar.spread
    ), bar
