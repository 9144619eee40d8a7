"""The mean difference of two raters: against textbook formulas, and by the coverage it promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgebench.stats.intervals import mean_difference

ONE = np.ones((1, 1))


def _of(differences: np.ndarray, level: float = 0.95):
    x = differences.reshape(-1, 1).astype(float)
    return mean_difference(x, np.ones_like(x), np.ones((1, len(x))), level, balanced=False)


def test_one_item_a_cluster_gives_the_adjusted_interval_of_matched_proportions() -> None:
    # Agresti and Min (2005): a table with b = 20 and c = 8 of n = 100, half added to each cell.
    d = np.concatenate([np.ones(20), -np.ones(8), np.zeros(72)])
    found = _of(d)
    n, b, c = 100 + 1, 20.5, 8.5  # the two cells of agreement are added together
    middle = (b - c) / n
    variance = ((b + c) - (b - c) ** 2 / n) / n**2
    assert found.value[0] == pytest.approx(0.12)
    z = (d - middle) / n
    skew = (z**3).sum() / variance**1.5
    t = stats.t.ppf(0.975, 100)
    shift = skew * (2 * t**2 + 1) / 6
    assert found.low[0] == pytest.approx(middle + (shift - t) * variance**0.5)
    assert found.high[0] == pytest.approx(middle + (shift + t) * variance**0.5)


def test_many_clusters_give_the_plain_t_interval() -> None:
    rng = np.random.default_rng(0)
    d = rng.choice([-1.0, 0.0, 1.0], p=[0.25, 0.5, 0.25], size=100_000)
    low, high = stats.t.interval(0.95, len(d) - 1, d.mean(), stats.sem(d))
    found = _of(d)
    assert found.low[0] == pytest.approx(low, abs=2e-5)
    assert found.high[0] == pytest.approx(high, abs=2e-5)


def test_where_nothing_differs_there_is_a_width_that_shrinks_with_the_items() -> None:
    few, many = _of(np.zeros(20)), _of(np.zeros(2000))
    assert few.value[0] == many.value[0] == 0
    assert few.low[0] < -0.04
    assert few.high[0] > 0.04
    assert -0.002 < many.low[0] < 0 < many.high[0] < 0.002


def test_balanced_weighs_every_label_the_same() -> None:
    x, n = np.array([[90.0, 1.0]]), np.array([[100.0, 10.0]])
    plain = mean_difference(x, n, ONE, 0.95, balanced=False)
    balanced = mean_difference(x, n, ONE, 0.95, balanced=True)
    assert plain.value[0] == pytest.approx(91 / 110)
    assert balanced.value[0] == pytest.approx((0.9 + 0.1) / 2)


def test_a_label_that_never_occurs_is_left_out_of_the_balance() -> None:
    x, n = np.array([[5.0, 0.0]]), np.array([[10.0, 0.0]])
    assert mean_difference(x, n, ONE, 0.95, balanced=True).value[0] == pytest.approx(0.5)


def test_without_a_pair_all_is_undefined_and_nothing_warns() -> None:
    none = np.zeros((1, 2))
    for balanced in (False, True):
        found = mean_difference(none, none, ONE, 0.95, balanced=balanced)
        assert np.isnan([found.value[0], found.low[0], found.high[0]]).all()


def test_correlated_items_of_one_question_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    d = rng.choice([-1.0, 0.0, 1.0], size=100)
    apart = _of(np.repeat(d, 5))
    x = 5 * d.reshape(-1, 1)
    together = mean_difference(x, np.full_like(x, 5), np.ones((1, 100)), 0.95, balanced=False)
    assert together.value[0] == pytest.approx(apart.value[0])
    assert together.high[0] - together.low[0] > 2 * (apart.high[0] - apart.low[0])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=60), st.integers(1, 5))
def test_kinds_of_clusters_say_the_same_as_the_clusters_one_by_one(
    values: list[int], times: int
) -> None:
    d = np.array(values * times)
    kinds, how_many = np.unique(d, return_counts=True)
    x = kinds.reshape(-1, 1).astype(float)
    grouped = mean_difference(
        x, np.ones_like(x), how_many[None].astype(float), 0.95, balanced=False
    )
    plain = _of(d)
    assert grouped.low[0] == pytest.approx(plain.low[0])
    assert grouped.high[0] == pytest.approx(plain.high[0])
    assert -1 <= plain.low[0] <= plain.high[0] <= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=2, max_size=60))
def test_who_is_subtracted_from_whom_only_turns_the_sign(values: list[int]) -> None:
    there, back = _of(np.array(values)), _of(-np.array(values))
    assert there.low[0] == pytest.approx(-back.high[0])
    assert there.high[0] == pytest.approx(-back.low[0])


@pytest.mark.parametrize(("n", "p"), [(50, (0.1, 0.1)), (200, (0.04, 0.08)), (400, (0.02, 0.0))])
def test_both_limits_are_missed_about_as_often_as_they_should(
    n: int, p: tuple[float, float]
) -> None:
    rng = np.random.default_rng(n)
    draws = rng.multinomial(n, [p[0], p[1], 1 - sum(p)], size=4000)
    x = np.array([[1.0], [-1.0], [0.0]])
    found = mean_difference(x, np.ones_like(x), draws.astype(float), 0.95, balanced=False)
    true = p[0] - p[1]
    assert 0.935 <= ((found.low <= true) & (true <= found.high)).mean() <= 0.985
    assert (true < found.low).mean() < 0.05
    assert (true > found.high).mean() < 0.05
