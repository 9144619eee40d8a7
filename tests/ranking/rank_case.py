"""People who rank arguments; synthetic."""

from collections.abc import Sequence

import numpy as np

from judgebench.ranking.human import AskedItem, HumanRank, HumanRanks


def ranks_of(values: np.ndarray, labels: Sequence[str] = (), task: str = "claims") -> HumanRanks:
    """(items, systems, experts) as ranks; 0 is none. Each item is a group of its own."""
    n, k, experts = values.shape
    asked = {
        (task, f"i{i}"): AskedItem(task, f"i{i}", f"i{i}", labels[i] if labels else "")
        for i in range(n)
    }
    ranks = [
        HumanRank(task, f"i{i}", f"e{e}", f"s{j}", int(values[i, j, e]))
        for i in range(n)
        for j in range(k)
        for e in range(experts)
        if values[i, j, e]
    ]
    return HumanRanks(tuple(ranks), asked)


def world(
    seed: int, n: int = 5, noise: float | None = 0.3, systems: int = 4, experts: int = 2
) -> np.ndarray:
    """Ranks (items, systems, experts) by a signal that experts share, each with `noise` of their
    own; at random where `noise` is None."""
    rng = np.random.default_rng(seed)
    shared = np.arange(systems) + rng.normal(0, 0.7, (n, systems))
    own = rng.normal(0, 1, (n, systems, experts))
    seen = own if noise is None else shared[:, :, None] + noise * own
    return 1 + seen.argsort(axis=1).argsort(axis=1)
