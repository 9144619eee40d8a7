"""Which columns of scores say the same."""

import numpy as np
import pytest
from cluster_case import apart, together
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgebench.stats.repeated_measures import redundancy, twins

RNG = np.random.default_rng(2)
ONE = RNG.normal(size=80)
ALIKE = [ONE + 0.2 * RNG.normal(size=80) for _ in range(3)]
OTHER = RNG.normal(size=80)
SCORES = np.stack([ALIKE[0], OTHER, -ALIKE[1], ALIKE[2]], axis=1)


def test_the_matrix_is_what_scipy_gives_on_the_items_that_both_scored() -> None:
    scores = SCORES.copy()
    scores[:10, 0] = np.nan
    found = redundancy(scores, apart(80), ranked=False).matrix
    assert found[0, 2] == pytest.approx(stats.pearsonr(scores[10:, 0], scores[10:, 2])[0])
    assert found[1, 2] == pytest.approx(stats.pearsonr(scores[:, 1], scores[:, 2])[0])
    np.testing.assert_allclose(found, found.T)
    ranked = redundancy(SCORES, apart(80)).matrix
    np.testing.assert_allclose(ranked, stats.spearmanr(SCORES)[0])


def test_families_hold_what_goes_together_in_either_direction() -> None:
    found = redundancy(SCORES, apart(80))
    assert sorted(map(sorted, found.families)) == [[0, 2, 3], [1]]
    mean_r = dict(zip(map(len, found.families), found.mean_r, strict=True))
    r = np.abs(stats.spearmanr(SCORES[:, [0, 2, 3]])[0])
    assert mean_r[3].value == pytest.approx((r.sum() - 3) / 6)
    assert 0.8 < mean_r[3].low < mean_r[3].value < mean_r[3].high
    assert mean_r[1].value is None
    assert sorted(found.order) == [0, 1, 2, 3]
    place = [list(found.order).index(i) for i in (0, 2, 3)]
    assert max(place) - min(place) == 2


def test_a_family_by_chance_may_lie_below_the_bar() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 12))
    found = redundancy(scores, apart(6), ranked=False)
    several = [r for r in found.mean_r if r.value is not None]
    assert several
    assert all(r.low < 0.8 for r in several)


def test_one_cluster_has_no_interval_and_a_constant_column_no_correlation() -> None:
    scores = np.column_stack([SCORES, np.ones(80)])
    found = redundancy(scores, together(80))
    assert {r.low for r in found.mean_r} == {None}
    assert np.isnan(found.matrix[4]).all()
    assert [4] in found.families


def test_functions_of_one_another_are_one_scorer() -> None:
    """They would make every family look stable."""
    bits = np.abs(ONE) + 0.1
    scores = np.column_stack([bits, 2**bits, OTHER, np.exp(3 * bits)])
    found = redundancy(scores, apart(80))
    assert [(t.first, t.second, t.formula) for t in found.twins] == [
        (0, 1, "log y is linear in x"), (0, 3, "log y is linear in x"),
    ]  # fmt: skip
    assert sorted(map(sorted, found.families)) == [[0, 1, 3], [2]]
    assert [r.value for r in found.mean_r] == [None, None]


BITS = np.array([1.302, 1.33, 1.311, 1.295, 1.346, 1.442, 1.453, 1.255, 1.342, 1.468, 1.533])


@pytest.mark.parametrize(
    ("y", "formula"),
    [
        ((2**BITS).round(3), "log y is linear in x"),
        ((1 - BITS).round(3), "y is linear in x"),
        ((100 * BITS).round(1), "y is linear in x"),
        (np.exp(4.72 * BITS).round(3), "log y is linear in x"),
        (np.log10(BITS).round(4), "y is linear in log x"),
        ((BITS**3).round(3), "log y is linear in log x"),
        (BITS + np.resize([0.02, -0.01, 0.015], 11), ""),  # much alike, but no function
    ],
)
def test_formulas_hold_up_to_rounding(y: np.ndarray, formula: str) -> None:
    assert [found.formula for found in twins(np.column_stack([BITS, y]))] == [formula][
        : bool(formula)
    ]


def test_single_precision_hides_no_function() -> None:
    x = RNG.uniform(0.7, 0.9, 200).astype(np.float32)
    rescaled = ((x - np.float32(0.83)) / np.float32(0.17)).astype(np.float64)
    (found,) = twins(np.column_stack([x.astype(np.float64), rescaled]))
    assert found.formula == "y is linear in x"


def test_the_other_way_round() -> None:
    (found,) = twins(np.column_stack([(2**BITS).round(3), BITS]))
    assert found.formula == "y is linear in log x"


def test_many_values_in_the_same_order_are_a_function_though_nobody_knows_which() -> None:
    x = np.sort(RNG.normal(size=60))
    y = np.cumsum(RNG.random(60))
    found = twins(np.column_stack([x, y, -y]))
    assert [one.formula for one in found] == ["y rises with x, always", "y falls with x, always"]
    swapped = y.copy()
    swapped[[20, 40]] = swapped[[40, 20]]
    assert twins(np.column_stack([x, swapped])) == []


def test_labels_that_agree_are_agreement_and_no_function() -> None:
    """Two judges with the same few labels, and a score cut into few steps."""
    labels = RNG.integers(0, 4, 200).astype(np.float64)
    assert twins(np.column_stack([labels, labels])) == []
    score = RNG.normal(size=200)
    assert twins(np.column_stack([score, np.round(score)])) == []


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_scorers_that_only_correlate_are_no_functions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.2, 0.6, size=12)
    y = (x + rng.normal(scale=0.01, size=12)).round(3)
    assert twins(np.column_stack([x.round(3), y])) == []
