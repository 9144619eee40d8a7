"""Tests by betting."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import zeta

from judgebench.stats.betting import BETS, BLOCK, log_capital


@pytest.mark.parametrize("bound", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 4, 8])
def test_nobody_gains_on_average_where_the_hypothesis_holds(bound: float, n: int) -> None:
    total = 0.0
    for x in itertools.product((0, 1), repeat=n):
        chance = bound ** sum(x) * (1 - bound) ** (n - sum(x))
        total += chance * math.exp(log_capital(np.array(x) - bound, bound)[-1])
    assert total == pytest.approx(1.0, abs=1e-9)  # at the very bound; below it is less


def test_the_chance_to_ever_reject_is_at_most_alpha() -> None:
    """Exactly, over all sequences of 10 coins, looked at after each."""
    bound, alpha, rejected = 0.2, 0.05, 0.0
    for x in itertools.product((0, 1), repeat=10):
        if log_capital(np.array(x) - bound, bound).max() >= -math.log(alpha):
            rejected += bound ** sum(x) * (1 - bound) ** (10 - sum(x))
    assert 0 < rejected <= alpha


@given(st.lists(st.booleans(), max_size=4 * BLOCK), st.floats(0.05, 0.9))
def test_the_capital_is_a_mixture_over_starts_and_bets(coins: list[bool], bound: float) -> None:
    """The same by its definition: every start has its share, and what is kept back stays."""
    x = np.array(coins, dtype=float)
    capital = log_capital(x - bound, bound)
    assert len(capital) == len(x)
    for n in range(BLOCK - 1, len(x) + 1, BLOCK // 2):
        if not 0 < n <= len(x):
            continue
        starts = range(0, n, BLOCK)
        shares = [1 / k**1.5 / zeta(1.5) for k in range(1, len(starts) + 1)]
        total = 1 - sum(shares)
        for start, share in zip(starts, shares, strict=True):
            gains = 1 + np.outer(x[start:n] - bound, BETS) / bound
            total += share * gains.prod(axis=0).mean()
        assert capital[n - 1] == pytest.approx(math.log(total), abs=1e-7)


def test_later_observations_change_nothing_before() -> None:
    y = np.random.default_rng(1).random(230) - 0.5
    assert np.allclose(log_capital(y, 0.5)[:173], log_capital(y[:173], 0.5))
    assert len(log_capital(y[:0], 0.5)) == 0


def test_a_change_after_a_quiet_year_is_found() -> None:
    rng = np.random.default_rng(1)
    quiet, changed = (rng.random(3650) < 0.01) - 0.02, (rng.random(300) < 0.12) - 0.02
    capital = log_capital(np.concatenate([quiet, changed]), 0.02)
    assert capital[:3650].max() < math.log(100) <= capital.max()


def test_a_bound_of_nought_is_crossed_by_the_first_and_never_without_one() -> None:
    assert log_capital(np.zeros(1000), 1e-6).max() <= 1e-12
    assert log_capital(np.append(np.zeros(1000), 1.0), 1e-6)[-1] > math.log(100)
