import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.stats.paired import benjamini_yekutieli, permutation_test

differences = st.lists(st.integers(-3, 3), max_size=11)


@given(differences)
@settings(max_examples=30)
def test_both_alternatives_equal_scipy_where_all_sign_patterns_are_listed(found) -> None:
    x = np.array(found, dtype=np.float64)
    if not x.any():
        assert permutation_test(x) is None
        return
    x = np.append(x, 0)  # scipy wants two or more
    for alternative in ("two-sided", "greater"):
        expected = scipy.stats.permutation_test(
            (x,), np.sum, permutation_type="samples", alternative=alternative, n_resamples=1 << 12
        )
        assert permutation_test(x, alternative=alternative) == pytest.approx(expected.pvalue)


@given(st.integers(0, 3000), st.integers(1, 3000))
def test_equal_differences_are_an_exact_binomial_test(up: int, down: int) -> None:
    expected = scipy.stats.binomtest(up, up + down, alternative="greater").pvalue
    found = permutation_test(np.array([0.5, -0.5]), np.array([up, down]), "greater")
    assert found == pytest.approx(expected, rel=1e-7)


@given(differences, st.floats(0.1, 10))
def test_the_unit_of_the_differences_does_not_matter(found, unit: float) -> None:
    x = np.array(found, dtype=np.float64)
    assert permutation_test(x * unit) == pytest.approx(permutation_test(x))


@given(differences)
def test_turning_all_signs_turns_the_side_and_two_sides_are_twice_the_smaller(found) -> None:
    x = np.array(found, dtype=np.float64)
    if x.any():
        up, down = (permutation_test(side, alternative="greater") for side in (x, -x))
        both = permutation_test(x)
        assert permutation_test(-x) == pytest.approx(both)
        assert both == pytest.approx(min(1.0, 2 * min(up, down)))


def test_counted_kinds_and_single_clusters_are_the_same() -> None:
    kinds, how_many = np.array([-2.0, 0.0, 1.0, 3.0]), np.array([3, 50, 4, 2])
    assert permutation_test(kinds, how_many) == permutation_test(kinds.repeat(how_many))


def test_drawn_signs_come_close_to_the_exact_p_and_are_repeated_by_their_seed() -> None:
    # Sizes so unlike each other that 2^30 sums are too many to list.
    x = np.sqrt(np.arange(1.0, 31)) * np.where(np.arange(30) % 3, 1, -1)
    first, *others = (permutation_test(x, seed=seed) for seed in range(5))
    assert first == permutation_test(x, seed=0)
    assert set(others) != {first}
    z = x.sum() / np.sqrt((x**2).sum())
    assert first == pytest.approx(2 * scipy.stats.norm.sf(z), abs=0.02)


def test_drawn_p_is_never_zero() -> None:
    x = np.sqrt(np.arange(1.0, 61))
    assert permutation_test(x, permutations=99) == 1 / 100


def test_a_million_clusters_of_few_kinds_are_listed_exactly() -> None:
    kinds, how_many = np.array([-1, 1]), np.array([500_000, 502_000])
    expected = 2 * scipy.stats.norm.sf(2000 / np.sqrt(1_002_000))
    assert permutation_test(kinds, how_many) == pytest.approx(expected, rel=1e-2)


def test_unlike_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same shape"):
        permutation_test(np.ones(3), np.ones(2, dtype=np.int64))


def test_p_is_uniform_or_above_where_neither_is_better() -> None:
    rng = np.random.default_rng(5)
    p = np.array([permutation_test(rng.integers(-3, 4, size=40)) for _ in range(400)])
    for level in (0.05, 0.2, 0.5):
        # 400 draws: four standard errors above the level
        assert (p <= level).mean() <= level + 4 * np.sqrt(level * (1 - level) / 400)


p_values = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(p_values)
def test_benjamini_yekutieli_equals_scipy_and_none_stays_uncounted(ps) -> None:
    found = benjamini_yekutieli(ps)
    assert [f is None for f in found] == [p is None for p in ps]
    known = [p for p in ps if p is not None]
    if known:
        expected = scipy.stats.false_discovery_control(known, method="by")
        assert [f for f in found if f is not None] == pytest.approx(list(expected))


def test_worked_by_hand() -> None:
    # H_3 = 11/6: 0.01 * 5.5 / 1, 0.02 * 5.5 / 2, 0.5 * 5.5 / 3
    found = benjamini_yekutieli([0.5, 0.01, 0.02])
    assert found == pytest.approx([0.5 * 5.5 / 3, 0.055, 0.055])
