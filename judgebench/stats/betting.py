"""Evidence that a mean is above 0, valid however often and whenever one looks.

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

import numpy as np
from scipy.special import logsumexp, zeta

from judgebench.stats.arrays import FloatArray

# What is staked, as shares of what can be lost at most.
BETS = np.array([0.01, 0.03, 0.06, 0.12, 0.25, 0.5])
BLOCK = 50  # observations after which a new start is due
_DECAY = 1.5  # start k has a share of the capital in proportion to k to the power of minus this


def log_capital(y: FloatArray, floor: float) -> FloatArray:
    """The log of the capital after each observation (n,), staked against a mean of y (n,) of at
    most 0. No observation is below `-floor`, which is more than 0.

    The hypothesis is rejected at level alpha where the capital ever reaches 1 / alpha, and stays
    rejected whatever comes later.

    >>> capital = log_capital(np.full(40, 0.9), 0.1)
    >>> bool(capital.max() > np.log(100)), bool(log_capital(np.full(40, -0.1), 0.1).max() > 0)
    (True, False)
    """
    stakes = np.log1p(np.outer(y / floor, BETS))
    running = np.full(len(BETS), -np.inf)
    capital = [np.empty(0)]
    for start, block in enumerate(np.split(stakes, range(BLOCK, len(y), BLOCK)), 1):
        share = -_DECAY * math.log(start) - math.log(zeta(_DECAY))
        bets = np.logaddexp(running, share) + block.cumsum(axis=0)
        kept_back = math.log(zeta(_DECAY, start + 1) / zeta(_DECAY))  # for starts to come
        capital.append(np.logaddexp(logsumexp(bets, axis=1) - math.log(len(BETS)), kept_back))
        running = bets[-1] if len(bets) else running
    return np.concatenate(capital)
