"""Two latent classes: recall beside annotators without a truth."""

from __future__ import annotations

import statistics
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import bernoulli

from judgebench.stats.consensus import (
    AS_PROBABLE,
    label_shares,
    majority_label,
    median_label,
    most_probable_label,
    recall_gap,
)

K = 4
ragged = st.tuples(st.integers(0, 12), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K - 1))
)


def given_labels(ratings) -> list[list[int]]:
    return [[int(label) for label in unit if label >= 0] for unit in ratings]


@given(ragged)
def test_median_equals_the_standard_library(ratings) -> None:
    units = given_labels(ratings)
    lower = [statistics.median_low(unit) if unit else -1 for unit in units]
    upper = [statistics.median_high(unit) if unit else -1 for unit in units]
    assert median_label(ratings, "lower").tolist() == lower
    assert median_label(ratings, "upper").tolist() == upper


@given(ragged)
def test_majority_by_brute_force(ratings) -> None:
    def most_frequent(unit: list[int]) -> list[int]:
        counts = Counter(unit)
        return sorted(label for label in counts if counts[label] == max(counts.values()))

    winners = [most_frequent(unit) for unit in given_labels(ratings)]
    majority = partial(majority_label, ratings, K)
    assert majority("lower").tolist() == [w[0] if w else -1 for w in winners]
    assert majority("upper").tolist() == [w[-1] if w else -1 for w in winners]
    assert majority("none").tolist() == [w[0] if len(w) == 1 else -1 for w in winners]


def test_the_middle_of_three_is_the_median_and_of_two_the_stated_one() -> None:
    ratings = np.array([[2, 0, 1], [3, -1, 0], [-1, -1, -1]])
    assert median_label(ratings, "lower").tolist() == [1, 0, -1]
    assert median_label(ratings, "upper").tolist() == [1, 3, -1]


def test_labels_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must lie in"):
        majority_label(np.array([[0, 2]]), 2, "none")


@given(ragged)
def test_shares_of_labels_by_brute_force(ratings) -> None:
    for unit, share in zip(given_labels(ratings), label_shares(ratings, K), strict=True):
        assert share.any() == bool(unit)
        assert share.tolist() == [unit.count(label) / max(len(unit), 1) for label in range(K)]


@given(ragged)
def test_the_most_probable_label_of_shares_is_the_majority(ratings) -> None:
    share = label_shares(ratings, K)
    for ties in ("lower", "upper", "none"):
        expected = majority_label(ratings, K, ties).tolist()
        assert most_probable_label(share, ties).tolist() == expected


def test_probabilities_that_differ_by_rounding_are_tied() -> None:
    near, far = AS_PROBABLE / 2, AS_PROBABLE * 2
    share = np.array([[0.5 + near, 0.5 - near], [0.5 + far, 0.5 - far], [0.0, 0.0]])
    assert most_probable_label(share, "lower").tolist() == [0, 0, -1]
    assert most_probable_label(share, "upper").tolist() == [1, 0, -1]
    assert most_probable_label(share, "none").tolist() == [-1, 0, -1]


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
