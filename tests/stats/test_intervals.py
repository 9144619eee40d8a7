"""Exact intervals of shares, alone or in clusters, of mean differences, and at early looks."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import multinomial, multivariate_normal, norm

from judgebench.stats.intervals import (
    clopper_pearson,
    clustered_share,
    items_for_half_width,
    look_levels,
    mean_difference,
    more_for_precision,
    paired_difference,
)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_equals_scipy(share) -> None:
    successes, n = share
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.9, method="exact")
    found = clopper_pearson(successes, n, 0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (found.value, found.n, found.level) == (successes / n, n, 0.9)


def test_nothing_counted_is_undefined() -> None:
    found = clopper_pearson(0, 0)
    assert found.value is found.low is found.high is None
    assert found.reason


@settings(deadline=None)
@given(st.integers(0, 10), st.integers(1, 40), st.sampled_from([0.8, 0.95]))
def test_n_is_the_smallest_that_suffices(tenths: int, percent: int, level: float) -> None:
    # Set against a walk over every n with a whole number of successes (multiples of ten).
    p, half_width = tenths / 10, percent / 100

    def longer_side(n: int) -> float:
        found = clopper_pearson(tenths * n // 10, n, level)
        return max(p - found.low, found.high - p)

    n = items_for_half_width(p, half_width, level)
    below, above = (n - 1) // 10 * 10, -(-n // 10) * 10
    assert longer_side(above) <= half_width + 1e-12
    for fewer in range(10, below + 1, 10):
        assert longer_side(fewer) > half_width


@pytest.mark.parametrize("percent", range(1, 50, 3))
def test_the_size_has_a_closed_form_where_all_are_found(percent: int) -> None:
    # The lower limit is (alpha / 2) ** (1 / n), so n is log(alpha / 2) / log(1 - half width).
    half_width = percent / 100
    n = math.ceil(math.log(0.025) / math.log(1 - half_width))
    assert items_for_half_width(1.0, half_width) == n
    assert items_for_half_width(0.0, half_width) == n
    assert items_for_half_width(0.5, 1.0) == 1


UNEQUAL = (0.21, 0.5, 0.52, 0.9)


def bounds(shares: tuple[float, ...], level: float = 0.95) -> np.ndarray:
    """The standardized bounds that belong to the levels."""
    return norm.isf((1 - np.array(look_levels(shares, level))) / 2)


# R packages ldbounds and gsDesign (sfLDOF), one-sided 0.025.
@pytest.mark.parametrize(
    "published",
    [
        (2.9626, 1.9686),
        (3.7103, 2.5114, 1.9930),
        (4.3326, 2.9631, 2.3590, 2.0141),
        (4.8769, 3.3570, 2.6803, 2.2898, 2.0310),
    ],
)
def test_bounds_of_equal_looks_are_the_published_ones(published: tuple[float, ...]) -> None:
    looks = len(published)
    shares = tuple((i + 1) / looks for i in range(looks))
    assert bounds(shares) == pytest.approx(published, abs=6e-5)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_error_spent_is_that_of_the_multivariate_normal(level: float) -> None:
    t, b = np.array(UNEQUAL), bounds(UNEQUAL, level)
    correlations = np.sqrt(np.minimum.outer(t, t) / np.maximum.outer(t, t))
    spent = 2 * norm.sf(norm.isf((1 - level) / 4) / np.sqrt(t))
    for k in (1, 2, 3):
        nowhere = multivariate_normal.cdf(
            b[:k], cov=correlations[:k, :k], abseps=1e-8, releps=1e-8, maxpts=10**6
        )
        assert 1 - nowhere == pytest.approx(spent[k - 1], abs=1e-6)


def test_one_look_at_everything_has_the_level_itself() -> None:
    for level in (0.8, 0.95, 0.99):
        assert look_levels([1], level) == pytest.approx([level])


def test_earlier_and_more_looks_are_stricter() -> None:
    first = [look_levels([share])[0] for share in (0.1, 0.3, 0.6, 1)]
    assert first == sorted(first, reverse=True)
    assert look_levels([0.5, 1])[1] < look_levels([0.25, 0.5, 1])[2]
    assert look_levels([0.5, 1], 0.99)[0] > look_levels([0.5, 1], 0.9)[0]
    # what comes later changes nothing
    assert look_levels([0.3, 0.5]) == look_levels([0.3, 0.5, 0.9])[:2]
    # hardly anything may be spent on hardly anything, yet a level stays below 1
    assert 0.999999 < look_levels([0.01, 1])[0] < 1
    assert look_levels([0.01, 1])[1] == pytest.approx(0.95)


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


# Paired differences ------------------------------------------------------------------------------

Z = norm.ppf(0.975)
PAIRS_X, PAIRS_N = np.array([[1.0], [-1.0], [0.0]]), np.ones((3, 1))  # won, lost, alike


def score_limit(won: int, lost: int, n: int) -> float:
    """Tango's lower limit with the constrained likelihood maximised by search, and not solved."""

    def score(d: float) -> float:
        def minus_likelihood(q: float) -> float:
            shares = np.array([q + d, q, 1 - 2 * q - d])
            return float(-xlogy([won, lost, n - won - lost], shares).sum())

        least, most = max(0.0, -d), (1 - d) / 2
        q = minimize_scalar(
            minus_likelihood, bounds=(least, most), method="bounded", options={"xatol": 1e-13}
        ).x
        return float((won - lost - n * d) / np.sqrt(n * (2 * q + d * (1 - d))) - Z)

    return float(brentq(score, -1 + 1e-9, (won - lost) / n - 1e-9))


@pytest.mark.parametrize(("won", "lost", "n"), [(3, 1, 50), (10, 12, 60), (1, 4, 80), (30, 2, 90)])
def test_a_paired_difference_has_the_limits_of_the_score_interval(
    won: int, lost: int, n: int
) -> None:
    how_many = np.array([[won, lost, n - won - lost]], dtype=float)
    found = paired_difference(PAIRS_X, PAIRS_N, how_many, 0.95)
    narrow = mean_difference(PAIRS_X, PAIRS_N, how_many, 0.95, balanced=False)
    assert found.value[0] == (won - lost) / n
    assert found.low[0] == pytest.approx(min(narrow.low[0], score_limit(won, lost, n)), abs=1e-6)
    assert found.high[0] == pytest.approx(max(narrow.high[0], -score_limit(lost, won, n)), abs=1e-6)


@pytest.mark.parametrize("n", [50, 60, 100, 150])
def test_a_difference_at_the_margin_is_shown_to_lie_above_it_in_3_percent_at_most(n: int) -> None:
    """Exact: every outcome of n pairs, with every share of discordant ones."""
    won, lost = (x.ravel() for x in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    won, lost = won[won + lost <= n], lost[won + lost <= n]
    how_many = np.stack([won, lost, n - won - lost], axis=1).astype(float)

    def size(low: Any) -> float:
        shown, sizes = low > -0.05, []
        for q in np.linspace(0.0, 0.45, 40):
            shares = np.broadcast_to([q, q + 0.05, 0.95 - 2 * q], how_many.shape)
            sizes.append(multinomial.pmf(how_many, n, shares)[shown].sum())
        return max(sizes)

    assert size(paired_difference(PAIRS_X, PAIRS_N, how_many, 0.95).low) <= 0.026
    narrow = mean_difference(PAIRS_X, PAIRS_N, how_many, 0.95, balanced=False)
    assert size(narrow.low) > 0.027
