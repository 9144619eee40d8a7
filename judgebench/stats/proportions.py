"""Exact intervals for one proportion."""

from __future__ import annotations

from scipy.special import betaincinv

from judgebench.records import Estimate

EXACT = "exact (Clopper-Pearson)"


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Estimate:
    """The share successes / n with its exact binomial interval.

    Clopper and Pearson (1934), in the beta form: the limits are the alpha/2 quantile of
    Beta(x, n - x + 1) and the 1 - alpha/2 quantile of Beta(x + 1, n - x).
    The n trials must be independent. Undefined, with a reason, where n is 0.
    Raises ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must lie in 0..{n}; found {successes}")
    if n == 0:
        return Estimate(None, method=EXACT, reason="there is no item to count", level=level)
    low, high = _limits(successes, n, level)
    return Estimate(successes / n, low, high, method=EXACT, n=n, level=level)


def items_for_half_width(p: float, half_width: float, level: float = 0.95) -> int:
    """The smallest n whose exact interval around an observed share p is no wider than told.

    Neither limit may then lie further than `half_width` from p. So that n is a smooth question,
    the limits are those of the beta distributions at x = p n, whole number or not: a guide for
    planning, and exact where p n is whole. Raises ValueError unless 0 <= p <= 1, half_width > 0.
    """
    if not 0 <= p <= 1 or half_width <= 0:
        raise ValueError(f"needs 0 <= p <= 1 and half_width > 0; found {p} and {half_width}")

    def wide(n: int) -> bool:
        low, high = _limits(p * n, n, level)
        return max(p - low, high - p) > half_width

    if not wide(1):
        return 1
    below, enough = 1, 2
    while wide(enough):
        below, enough = enough, 2 * enough
    while enough - below > 1:  # wide(below) and not wide(enough)
        middle = (below + enough) // 2
        below, enough = (middle, enough) if wide(middle) else (below, middle)
    return enough


def _limits(x: float, n: int, level: float) -> tuple[float, float]:
    alpha = 1 - level
    low = betaincinv(x, n - x + 1, alpha / 2) if x > 0 else 0.0
    high = betaincinv(x + 1, n - x, 1 - alpha / 2) if x < n else 1.0
    return float(low), float(high)
