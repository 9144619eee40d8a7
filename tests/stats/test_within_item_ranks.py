import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.ranks import TIE, levels, places, spearman, tau_b, top_match

# Quarters and their sum with 0.1 and 0.2 differ by rounding only, so ties are tested as they come.
rows = st.tuples(st.integers(1, 6), st.integers(2, 6)).flatmap(
    lambda shape: st.tuples(
        *[arrays(np.float64, shape, elements=st.integers(0, 4).map(lambda i: i / 4))] * 2
    )
)


def test_scores_that_only_rounding_parts_are_level() -> None:
    scores = np.array([0.1 + 0.2, 0.3, 0.9, 0.3 + TIE / 2])
    assert levels(scores).tolist() == [0, 0, 1, 0]
    assert places(scores).tolist() == [3, 3, 1, 3]
    assert places(np.array([0.3, 0.3 + 2 * TIE])).tolist() == [2, 1]


@given(rows)
def test_places_equal_those_of_scipy_and_add_up(pair) -> None:
    x, _ = pair
    np.testing.assert_array_equal(places(x), scipy.stats.rankdata(-x, axis=1))
    k = x.shape[1]
    np.testing.assert_array_equal(places(x).sum(axis=1), np.full(len(x), k * (k + 1) / 2))


@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
@settings(deadline=None)
@given(rows)
def test_correlations_equal_scipy_row_by_row(pair) -> None:
    x, y = pair
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        level = len(set(a)) == 1 or len(set(b)) == 1
        if level:
            assert np.isnan(tau_b(x, y)[i])
            assert np.isnan(spearman(x, y)[i])
            continue
        assert tau_b(x, y)[i] == pytest.approx(scipy.stats.kendalltau(a, b).statistic)
        assert spearman(x, y)[i] == pytest.approx(scipy.stats.spearmanr(a, b).statistic)


@given(rows)
def test_the_top_match_is_the_chance_of_two_random_picks(pair) -> None:
    x, y = pair
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        picks = [
            p == q
            for p in np.flatnonzero(a == a.max())
            for q in np.flatnonzero(b == b.max())
        ]  # fmt: skip
        assert top_match(x, y)[i] == pytest.approx(np.mean(picks))


@given(rows)
def test_who_sets_all_level_meets_the_best_by_chance_only(pair) -> None:
    x, _ = pair
    np.testing.assert_allclose(top_match(x, np.zeros_like(x)), 1 / x.shape[1])


@given(rows)
def test_turning_one_side_round_turns_the_sign(pair) -> None:
    x, y = pair
    for formula in (tau_b, spearman):
        np.testing.assert_allclose(formula(x, -y), -formula(x, y), atol=1e-12)
        np.testing.assert_allclose(formula(y, x), formula(x, y), atol=1e-12)


def test_rows_of_any_shape_are_ranked_alone() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 3, 4, 5))
    assert tau_b(x, y).shape == (3, 4)
    assert tau_b(x, y)[2, 1] == pytest.approx(scipy.stats.kendalltau(x[2, 1], y[2, 1]).statistic)
