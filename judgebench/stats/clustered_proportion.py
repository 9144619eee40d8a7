"""An exact interval for a share whose items come in clusters.

Counts are rows (U,), one a kind of cluster; `how_many` (R, U) says how often each kind occurs in
each of R samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from judgebench.stats.arrays import FloatArray, ratio

METHOD = "exact (Clopper-Pearson) with the effective number of items"


@dataclass(frozen=True)
class Shares:
    """The share in each of R samples, all (R,); NaN where there is no item."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def clustered_share(x: FloatArray, n: FloatArray, how_many: FloatArray, level: float) -> Shares:
    """p = X / N with the Clopper-Pearson limits of n* = N / deff items (Korn and Graubard, 1998).

    `x` (U,) counts successes and `n` (U,) items. deff is the variance of the ratio with whole
    clusters as units over that of N independent items, and never below 1, so that one item a
    cluster gives the plain limits. A share of 0 or 1 shows no variance: n* is then the number of
    clusters that hold an item.
    """
    X, N, G = how_many @ x, how_many @ n, how_many @ (n > 0)
    p = ratio(X, N)
    scatter = ((x - p[:, None] * n) ** 2 * how_many).sum(axis=1)
    V = ratio(scatter, N**2) * ratio(G, G - 1)
    deff = np.fmax(ratio(V, ratio(p * (1 - p), N)), 1.0)
    n_star = np.where((X <= 0) | (X >= N), G, N / deff)
    x_star = p * n_star
    alpha = 1 - level
    with np.errstate(invalid="ignore"):
        low = np.where(X > 0, betaincinv(x_star, n_star - x_star + 1, alpha / 2), 0.0)
        high = np.where(X < N, betaincinv(x_star + 1, n_star - x_star, 1 - alpha / 2), 1.0)
    none = N == 0
    return Shares(p, np.where(none, np.nan, low), np.where(none, np.nan, high))
