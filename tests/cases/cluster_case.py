"""Clusters of the simplest kinds."""

import numpy as np

from judgebench.stats.arrays import Clusters


def apart(n: int) -> Clusters:
    """Every item is a cluster of its own."""
    return Clusters(np.arange(n), n)


def together(n: int) -> Clusters:
    """All items are of one cluster."""
    return Clusters(np.zeros(n, dtype=np.int64), 1)
