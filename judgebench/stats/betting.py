"""Evidence that a mean has crossed a bound, and intervals of a mean, valid however often and
whenever one looks.

A test by betting starts with a capital of 1 and stakes it against the null hypothesis, one
observation after the other. If the hypothesis holds, nobody can expect to gain, whatever made
them stop: the chance that the capital ever reaches 1 / alpha is at most alpha (Ville 1939).
Waudby-Smith and Ramdas (2024, "Estimating means of bounded random variables by betting", section
4), whose capital of a fixed bet is used here, in a mixture over bets. So that a change is found as
fast after a quiet year as after a quiet day, a share of the capital is kept back and staked in
later starts: a mixture over starts, after the e-detectors of Shin, Ramdas and Rinaldo (2023), with
fixed shares, so that it stays a test at level alpha for ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, logsumexp, zeta

from judgebench.stats.arrays import FloatArray

# What is staked, as shares of what can be lost at most.
BETS = np.array([0.01, 0.03, 0.06, 0.12, 0.25, 0.5])
BLOCK = 50  # observations after which a new start is due
_DECAY = 1.5  # start k has a share of the capital in proportion to k to the power of minus this


@dataclass(frozen=True)
class Evidence:
    """The evidence against `E[y] <= 0` after `n` observations y.

    `running` holds the log of what each of BETS has made of the starts so far, `since` how many
    observations came after the last of the `starts`, `most` the largest log of the capital that
    there ever was: evidence that was found does not go away.

    >>> once = Evidence().after(np.full(40, 0.9), 0.1)
    >>> once.found(0.01), Evidence().after(np.full(40, -0.1), 0.1).found(0.01)
    (True, False)
    """

    running: tuple[float, ...] = ()
    n: int = 0
    since: int = 0
    starts: int = 0
    most: float = 0.0

    @property
    def log_capital(self) -> float:
        """The log of the capital now: what was staked, and what is kept back."""
        if not self.running:
            return 0.0
        kept = math.log(zeta(_DECAY, self.starts + 1) / zeta(_DECAY))  # for starts to come
        staked = logsumexp(np.array(self.running)) - math.log(len(BETS))
        return float(np.logaddexp(staked, kept))

    def found(self, alpha: float) -> bool:
        """True once the null hypothesis was rejected at this level."""
        return self.most >= -math.log(alpha)

    def after(self, y: FloatArray, floor: float) -> Evidence:
        """The evidence after a batch of observations (n,), none below `-floor`, which is more than
        0. Nobody looks within a batch, so that it may also be a sample without replacement
        (Hoeffding 1963, section 6)."""
        if not len(y):
            return self
        running, starts, since = np.array(self.running), self.starts, self.since
        if not starts or since >= BLOCK:
            starts, since = starts + 1, 0
            share = -_DECAY * math.log(starts) - math.log(zeta(_DECAY))
            running = np.full(len(BETS), share) if starts == 1 else np.logaddexp(running, share)
        running = running + np.log1p(np.outer(y / floor, BETS)).sum(axis=0)
        now = Evidence(tuple(running.tolist()), self.n + len(y), since + len(y), starts, self.most)
        most = max(self.most, now.log_capital)
        return Evidence(now.running, now.n, now.since, now.starts, most)


def divergence(p: float, q: float) -> float:
    """The divergence of a coin of chance p from one of chance q (Kullback and Leibler), in nats:
    what the log of the best bettor's capital gains with each observation.

    >>> round(divergence(0.1, 0.02), 4)
    0.0843
    """
    parts = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) if a else 0.0 for a, b in parts if a or b)


def needed(p: float, bound: float, alpha: float) -> int | None:
    """About how many observations show at level alpha that a chance is on the side of the bound on
    which p lies; None where it lies on neither.

    >>> needed(0.12, 0.02, 0.01)
    62
    """
    gain = divergence(p, bound) if 0 < bound < 1 else 0.0
    if gain < 1e-9:
        return None
    stake = math.log(len(BETS) * zeta(_DECAY) / alpha)
    return math.ceil(stake / gain)


@dataclass(frozen=True)
class Sums:
    """The sums of `n` observations x in [0, 1] with sampling weights in (0, 1]: of the `weights`
    and of `weighted` x; plain where every weight is 1."""

    n: int = 0
    weights: float = 0.0
    weighted: float = 0.0

    def after(self, x: FloatArray, weights: FloatArray) -> Sums:
        """The sums with more observations."""
        return Sums(
            self.n + len(x), self.weights + float(weights.sum()),
            self.weighted + float((weights * x).sum()),
        )  # fmt: skip

    @property
    def mean(self) -> float | None:
        """The weighted mean; None without observations."""
        return self.weighted / self.weights if self.weights else None

    def interval(self, alpha: float) -> tuple[float, float]:
        """A confidence sequence of the mean: the interval holds it at every look together with a
        chance of 1 - alpha.

        Those means m are in it against which a mixture of coins, Beta(1/2, 1/2), has not won 1 /
        alpha (Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021, section 4.1). An
        observation with weight w counts as w x + (1 - w) m, whose mean is m where that of x is.

        >>> low, high = Sums(100, 100.0, 90.0).interval(0.05)
        >>> round(low, 3), round(high, 3)
        (0.772, 0.971)
        """
        if not self.n or (mean := self.mean) is None:
            return 0.0, 1.0
        return (
            self._limit(0.0, min(max(mean, 1e-9), 1 - 1e-9), alpha),
            self._limit(1.0, min(max(mean, 1e-9), 1 - 1e-9), alpha),
        )

    def _limit(self, outer: float, inner: float, alpha: float) -> float:
        """The limit between the mean and 0 or 1, by bisection."""
        if self._against(abs(outer - 1e-12)) < -math.log(alpha):
            return outer
        for _ in range(60):
            middle = (outer + inner) / 2
            if self._against(middle) < -math.log(alpha):
                inner = middle
            else:
                outer = middle
        return (outer + inner) / 2

    def _against(self, m: float) -> float:
        """The log of what the mixture of coins won against the mean m."""
        won = self.weighted + m * (self.n - self.weights)
        lost = self.n - won
        mixture = float(betaln(won + 0.5, lost + 0.5) - betaln(0.5, 0.5))
        return mixture - won * math.log(m) - lost * math.log1p(-m)
