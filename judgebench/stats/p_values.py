"""p values: the paired permutation test, and corrections for many tests at once.

The test asks whether each cluster's difference could by chance as well have had the other sign.
Clusters of the same difference are one kind, of which only how many keep their sign matters. So a
million items with differences of -1, 0 and 1 are a few numbers, and their test is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from scipy.special import gammaln

from judgebench.stats.arrays import FloatArray, IntArray

Alternative = Literal["two-sided", "greater"]

_MOST_EXACT = 1 << 20  # sums that are listed one by one; beyond that they are drawn
_CHUNK = 1 << 22  # binomial draws at once: 32 MiB
_ROUNDING = 1e-9  # what rounding changes in a sum, as a share of its terms


def permutation_test(
    differences: FloatArray | IntArray,
    how_many: IntArray | None = None,
    alternative: Alternative = "two-sided",
    permutations: int = 10_000,
    seed: int = 0,
) -> float | None:
    """p of the summed `differences` (clusters,) when each cluster's sign is flipped at random.

    With `how_many` (kinds,), `differences` (kinds,) holds each difference once. `greater` asks
    whether the sum is above 0. Exact where the sign patterns give few enough different sums; else
    from `permutations` seeded draws,

        p = (1 + #{T* >= T}) / (1 + permutations),

    Phipson and Smyth (2010), "Permutation P-values Should Never Be Zero". Fisher (1935), "The
    Design of Experiments", section 21. Clusters without a difference say nothing; None where all
    are so. Raises ValueError where the shapes differ. Differences that are all unlike each other
    cost one draw a cluster and permutation.

    >>> round(permutation_test(np.array([1, 1, 1, 1, 1, -1])), 5)
    0.21875
    """
    x = np.asarray(differences, dtype=np.float64)
    counts = np.ones(len(x), dtype=np.int64) if how_many is None else how_many
    if x.shape != counts.shape:
        raise ValueError("differences and how_many must have the same shape")
    values, counts = x[x != 0], counts[x != 0]
    if not len(values):
        return None
    T = float((values * counts).sum())
    # How many clusters have a difference of each size, either way, the rarest size first.
    v, kind = np.unique(np.abs(values), return_inverse=True)
    m = np.bincount(kind, counts).astype(np.int64)
    place = np.argsort(m, kind="stable")
    v, m = v[place], m[place]
    slack = _ROUNDING * float(v @ m)

    def as_extreme(sums: FloatArray) -> FloatArray:
        reached = sums >= T - slack if alternative == "greater" else np.abs(sums) >= abs(T) - slack
        return reached.astype(np.float64)

    if math.prod(int(n) + 1 for n in m) <= _MOST_EXACT:
        sums, probability = _every_sum(v, m)
        return min(1.0, float(as_extreme(sums) @ probability))
    reached = sum(as_extreme(sums).sum() for sums in _drawn_sums(v, m, permutations, seed))
    return float((1 + reached) / (1 + permutations))


def _every_sum(v: FloatArray, m: IntArray) -> tuple[FloatArray, FloatArray]:
    """Every sum that turned signs can give, and its probability: sums of v_u (2 B_u - m_u) with
    B_u from Binomial(m_u, 1/2)."""
    sums, probability = np.zeros(1), np.ones(1)
    for size, n in zip(v.tolist(), m.tolist(), strict=True):
        kept = np.arange(n + 1)
        log_p = gammaln(n + 1) - gammaln(kept + 1) - gammaln(n - kept + 1) - n * math.log(2)
        sums = (sums[:, None] + size * (2 * kept - n)).ravel()
        probability = (probability[:, None] * np.exp(log_p)).ravel()
    return sums, probability


def _drawn_sums(v: FloatArray, m: IntArray, permutations: int, seed: int) -> Iterator[FloatArray]:
    """Sums of as many sign patterns drawn at random, in chunks."""
    rng = np.random.default_rng(seed)
    chunk = max(1, _CHUNK // len(v))
    for start in range(0, permutations, chunk):
        kept = rng.binomial(m, 0.5, size=(min(chunk, permutations - start), len(v)))
        yield kept @ (2 * v) - float(v @ m)


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for the false discovery rate, in order. None stays None, uncounted.

    Benjamini and Yekutieli (2001), theorem 1.3, valid however the m tests depend on each other:
    the i-th smallest is multiplied by m H_m / i, with H_m = 1 + 1/2 + ... + 1/m, and is never more
    than the one after it, nor than 1.

    >>> benjamini_yekutieli([0.01, None, 0.04])
    [0.03, None, 0.06]
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    m = len(ranked)
    H_m = sum(1 / i for i in range(1, m + 1))
    corrected, most = list(p_values), 1.0
    for i, (p, place) in reversed(list(enumerate(ranked, start=1))):
        most = min(most, p * m * H_m / i)
        corrected[place] = most
    return corrected


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for how many there are, in their order. None stays None, uncounted.

    Holm (1979), step-down: the i-th smallest of m is multiplied by m - i + 1, is never less than
    the one before it, and never more than 1.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected, least = list(p_values), 0.0
    for rank, (p, place) in enumerate(ranked):
        least = max(least, min(1.0, (len(ranked) - rank) * p))
        corrected[place] = least
    return corrected
