import math

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.stats.intervals import clopper_pearson, items_for_half_width


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_equals_scipy(share) -> None:
    successes, n = share
    expected = scipy.stats.binomtest(successes, n).proportion_ci(0.9, method="exact")
    found = clopper_pearson(successes, n, 0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (found.value, found.n, found.level) == (successes / n, n, 0.9)


def test_each_tail_holds_half_of_alpha() -> None:
    # The definition: at the limits, what was seen or more extreme has probability alpha / 2.
    found = clopper_pearson(7, 20)
    assert scipy.stats.binom.sf(6, 20, found.low) == pytest.approx(0.025)
    assert scipy.stats.binom.cdf(7, 20, found.high) == pytest.approx(0.025)


def test_the_rule_of_three() -> None:
    # No failure in n = 100 items: the one-sided 95 % limit is about 3 / n.
    assert clopper_pearson(0, 100, 0.9).high == pytest.approx(3 / 100, rel=0.02)


def test_nothing_counted_is_undefined() -> None:
    found = clopper_pearson(0, 0)
    assert found.value is found.low is found.high is None
    assert found.reason


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes must lie in"):
        clopper_pearson(successes, n)


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


def test_known_sizes() -> None:
    assert items_for_half_width(0.5, 1.0) == 1
    # The normal approximation gives 96; the exact interval is wider.
    assert 96 <= items_for_half_width(0.5, 0.1) <= 106


@pytest.mark.parametrize(("p", "half_width"), [(-0.1, 0.1), (1.1, 0.1), (0.5, 0.0)])
def test_impossible_questions_are_refused(p: float, half_width: float) -> None:
    with pytest.raises(ValueError, match="needs 0 <= p <= 1"):
        items_for_half_width(p, half_width)
