"""Two latent classes: recall beside annotators without a truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import bernoulli

from judgebench.stats.consensus import recall_gap

W = np.array([0.5, 0.5, 0.0])


def drawn(seed: int, n: int, missed: tuple[float, ...], alarms: float = 0.05) -> np.ndarray:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n)
    wrong = [np.where(true == 1, m, alarms) for m in missed]
    return np.stack([true ^ (rng.random(n) < w) for w in wrong], axis=1)


def loss(x: np.ndarray, found: np.ndarray) -> float:
    """Item by item, from the definition; `x` are the share, four sensitivities, four alarms."""
    severe, other = (bernoulli.logpmf(found, p).sum(axis=1) for p in (x[1:5], x[5:]))
    return -np.logaddexp(severe + np.log(x[0]), other + np.log(1 - x[0])).sum()


def test_the_root_is_that_of_an_independent_optimisation() -> None:
    found = drawn(1, 300, (0.1, 0.05, 0.3, 0.12))
    start, box = [0.5, *[0.85] * 4, *[0.1] * 4], [(0.001, 0.999)] * 9
    how = {"method": "SLSQP", "bounds": box, "options": {"maxiter": 300, "ftol": 1e-10}}
    free = minimize(loss, start, (found,), **how)
    held = minimize(
        loss, start, (found,), **how,
        constraints={"type": "eq", "fun": lambda x: x[4] - W @ x[1:4] + 0.05},
    )  # fmt: skip
    gap, root = recall_gap(found, W, 0.05)
    assert gap == pytest.approx(free.x[4] - W @ free.x[1:4], abs=1e-3)
    signed = np.sign(gap + 0.05) * np.sqrt(2 * (held.fun - free.fun))
    assert root == pytest.approx(signed, abs=5e-3)


def test_at_the_bound_the_root_is_seldom_critical_and_at_equals_often() -> None:
    found = {
        judge: np.mean(
            [recall_gap(drawn(s, 400, (0.05, 0.05, 0.25, judge)), W, 0.05)[1] for s in range(60)]
            > np.float64(2.05)
        )
        for judge in (0.10, 0.0)
    }
    assert found[0.10] <= 0.07
    assert found[0.0] >= 0.9
