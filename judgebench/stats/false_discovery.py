"""Many p values at once, so that only few of the findings among them are false."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """The p values corrected for the false discovery rate, in order. None stays None, uncounted.

    Benjamini and Yekutieli (2001), theorem 1.3, valid however the m tests depend on each other:
    the i-th smallest is multiplied by m H_m / i, with H_m = 1 + 1/2 + ... + 1/m, and is never more
    than the one after it, nor than 1.
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    m = len(ranked)
    H_m = sum(1 / i for i in range(1, m + 1))
    corrected, most = list(p_values), 1.0
    for i, (p, place) in reversed(list(enumerate(ranked, start=1))):
        most = min(most, p * m * H_m / i)
        corrected[place] = most
    return corrected
