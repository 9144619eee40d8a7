"""The exact interval of a share whose items come in clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.stats.intervals import (
    clopper_pearson,
    clustered_share,
    items_for_half_width,
    more_for_precision,
)


def _singles(found: int, n: int):
    x, many = np.array([1.0, 0.0]), np.array([[found, n - found]], dtype=float)
    return clustered_share(x, np.ones(2), many, 0.95)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_one_item_a_cluster_gives_the_limits_of_clopper_and_pearson(
    case: tuple[int, int],
) -> None:
    found, plain = _singles(*case), clopper_pearson(*case)
    assert found.value[0] == pytest.approx(plain.value)
    assert (found.low[0], found.high[0]) == pytest.approx((plain.low, plain.high))


def test_items_that_go_together_need_more_of_their_kind() -> None:
    x, one, five = np.array([1.0, 0.0]), np.ones(2), np.full(2, 5.0)
    apart = more_for_precision(x, one, np.array([4.0, 9.0]))
    together = more_for_precision(5 * x, five, np.array([4.0, 9.0]))
    assert apart == items_for_half_width(4 / 13, 0.1) - 13
    assert together > 4.5 * apart


def test_items_that_go_together_count_for_less() -> None:
    x, n = np.array([5.0, 0.0]), np.array([5.0, 5.0])
    together = clustered_share(x, n, np.array([[14.0, 6.0]]), 0.95)
    plain, apart = clopper_pearson(14, 20), clopper_pearson(70, 100)
    assert together.value[0] == pytest.approx(0.7)
    assert together.low[0] == pytest.approx(plain.low, abs=0.02)
    assert together.low[0] < apart.low - 0.05


def test_a_share_of_one_rests_on_the_clusters() -> None:
    found = clustered_share(np.array([4.0]), np.array([4.0]), np.array([[10.0]]), 0.95)
    assert found.low[0] == pytest.approx(clopper_pearson(10, 10).low)
    assert found.high[0] == 1


def test_without_items_nothing_is_claimed_and_nothing_warns() -> None:
    found = clustered_share(np.zeros(1), np.zeros(1), np.array([[3.0]]), 0.95)
    assert np.isnan([found.value[0], found.low[0], found.high[0]]).all()


def test_one_cluster_says_hardly_anything() -> None:
    found = clustered_share(np.array([3.0]), np.array([10.0]), np.array([[1.0]]), 0.95)
    assert (found.low[0], found.high[0]) == pytest.approx((0.025, 0.975))


def test_one_stray_item_does_not_narrow_the_limits() -> None:
    # 400 items in 50 clusters: without a failure, and with one
    none = clustered_share(np.zeros(1), np.array([8.0]), np.array([[50.0]]), 0.95)
    one = clustered_share(np.array([0.0, 1.0]), np.full(2, 8.0), np.array([[49.0, 1.0]]), 0.95)
    assert none.high[0] == pytest.approx(clopper_pearson(0, 50).high)
    assert one.high[0] == pytest.approx(none.high[0])


def test_a_thousand_samples_are_measured_at_once() -> None:
    rng = np.random.default_rng(0)
    many = rng.multinomial(80, [0.3, 0.7], size=4000).astype(float)
    found = clustered_share(np.array([1.0, 0.0]), np.ones(2), many, 0.95)
    covered = ((found.low <= 0.3) & (found.high >= 0.3)).mean()
    assert found.value.shape == (4000,)
    assert 0.95 <= covered <= 0.985
