import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.paired_tests import (
    DuelTerms,
    alternative_annotator_test,
    average_advantage,
    benjamini_yekutieli,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "alternative_test.json").read_text())
K = 3
labelled = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, (n, 3), elements=st.integers(-1, K - 1)),
        arrays(np.int64, n, elements=st.integers(-1, K - 1)),
    )
)


def codes(row: str) -> np.ndarray:
    return np.array([-1 if c == "." else int(c) for c in row])


def outcome_of(ratings, judge, k: int, **terms):
    return alternative_annotator_test(ratings, judge, k, DuelTerms(**terms))


def advantage(ratings, judge, k: int, **terms):
    return average_advantage(ratings, judge, apart(len(judge)), k, DuelTerms(**terms))


@pytest.mark.parametrize("how", ["accuracy", "neg_rmse"])
@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda c: f"{len(c['ratings'])} annotators")
def test_the_authors_own_code_is_met(case, how: str) -> None:
    ratings, judge = np.stack([codes(r) for r in case["ratings"]], axis=1), codes(case["judge"])
    severities = range(case["k"]) if how == "neg_rmse" else None
    found = outcome_of(ratings, judge, case["k"], epsilon=case["epsilon"], severities=severities)
    expected = case["expected"][how]
    p_values = {str(a): p for a, p in enumerate(found.p_values) if p is not None}
    assert p_values == pytest.approx(expected["p"])
    assert found.winning_rate == pytest.approx(expected["winning_rate"])
    assert found.passes == (expected["winning_rate"] >= 0.5)
    assert found.tested == len(expected["p"])
    rho = advantage(ratings, judge, case["k"], severities=severities)
    assert rho.value == pytest.approx(expected["advantage"])
    assert rho.low < rho.value < rho.high


@given(labelled, st.sampled_from([0.0, 0.1, 0.2]))
@settings(max_examples=60)
def test_p_is_that_of_scipys_t_test_of_the_differences(table, epsilon: float) -> None:
    ratings, judge = table
    found = outcome_of(ratings, judge, K, epsilon=epsilon, least_items=2)
    for j, p in enumerate(found.p_values):
        d = differences(ratings, judge, j)
        if len(d) < 2:
            assert p is None
        elif len(set(d)) == 1:
            assert p == (1.0 if d[0] > 0 else pytest.approx((1 - epsilon) ** len(d)))
        else:
            expected = scipy.stats.ttest_1samp(d, epsilon, alternative="less").pvalue
            assert p == pytest.approx(expected)
    corrected = benjamini_yekutieli(found.p_values)
    assert found.wins == tuple(None if p is None else p <= 0.05 for p in corrected)


def differences(ratings, judge, j: int) -> list[int]:
    """W^h - W^f, unit by unit, as the paper writes it."""
    found = []
    for row, f in zip(ratings, judge, strict=True):
        others = [x for i, x in enumerate(row) if i != j and x >= 0]
        if row[j] >= 0 and f >= 0 and others:
            s_h, s_f = others.count(row[j]), others.count(f)
            found.append(int(s_h >= s_f) - int(s_f >= s_h))
    return found


@given(labelled)
@settings(max_examples=40)
def test_a_judge_that_repeats_an_annotator_ties_with_him(table) -> None:
    ratings, _ = table
    rho = advantage(ratings[:, :2], ratings[:, 0], K, least_items=2)
    found = outcome_of(ratings[:, :2], ratings[:, 0], K, least_items=2)
    if found.p_values[0] is not None:
        n = len(differences(ratings[:, :2], ratings[:, 0], 0))
        assert found.p_values[0] == pytest.approx(0.9**n)
        assert rho.value >= 0.5
    else:
        assert rho.value is None
        assert rho.reason


def test_where_all_differences_are_equal_p_is_the_chance_of_no_loss_and_the_reason_says_so() -> (
    None
):
    ratings = np.zeros((100, 3), int)
    found = outcome_of(ratings, np.zeros(100, int), 2)
    assert found.p_values == pytest.approx((0.9**100,) * 3)
    assert found.passes
    assert "3 of 3 annotators all differences are equal" in found.reason
    # Without a tolerance, ties prove nothing.
    without = outcome_of(ratings, np.zeros(100, int), 2, epsilon=0)
    assert (without.p_values, without.passes) == ((1, 1, 1), False)
    # 30 ties are too few for three annotators at once.
    assert not outcome_of(ratings[:30], np.zeros(30, int), 2).passes
    # The others agree, and the judge never does.
    lost = outcome_of(ratings, np.ones(100, int), 2)
    assert (lost.p_values, lost.winning_rate, lost.passes) == ((1, 1, 1), 0, False)


@pytest.mark.parametrize(
    ("ratings", "told"),
    [
        (np.zeros((50, 1), int), "two annotators"),
        (np.zeros((29, 3), int), "30 items"),
        (np.where(np.arange(60)[:, None] % 2 == np.arange(2), 0, -1), "30 items"),
        (np.zeros((0, 3), int), "30 items"),
    ],
)
def test_where_nobody_can_be_tested_the_reason_says_why(ratings, told: str) -> None:
    judge = np.zeros(len(ratings), int)
    found = outcome_of(ratings, judge, 2)
    assert (found.winning_rate, found.passes, found.tested) == (None, None, 0)
    rho = advantage(ratings, judge, 2)
    assert rho.value is None
    assert told in found.reason == rho.reason


def test_units_without_a_label_of_the_judge_are_missing() -> None:
    ratings = np.zeros((80, 3), int)
    judge = np.where(np.arange(80) < 10, -1, 0)
    rho = advantage(ratings, judge, 2)
    assert (rho.n, rho.n_missing) == (210, 30)
