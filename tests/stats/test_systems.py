"""Systems compared in pairs: win rates, Bradley-Terry strengths, rankings."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from judgebench.stats.arrays import Clusters
from judgebench.stats.ranks import (
    NO_STRENGTHS,
    TIE,
    bradley_terry,
    elo,
    levels,
    places,
    rankings,
    spearman,
    tau_b,
    top_match,
    wins_by_cluster,
)
from judgebench.stats.resample import ClusterCounts, Resampling

RNG = np.random.default_rng(0)
SYSTEMS, QUESTIONS = 5, 40
FEW = Resampling(resamples=200)
SIDES = np.tile(np.stack(np.triu_indices(SYSTEMS, 1), axis=1), (QUESTIONS, 1))
CLUSTERS = Clusters(np.repeat(np.arange(QUESTIONS), 10), QUESTIONS)
OUTCOME = RNG.choice([1.0, 0.5, 0.0], len(SIDES), p=[0.5, 0.2, 0.3])


def wins(outcome: np.ndarray = OUTCOME, sides: np.ndarray = SIDES) -> np.ndarray:
    return wins_by_cluster(sides, outcome, CLUSTERS, SYSTEMS)


def test_strengths_have_the_greatest_likelihood() -> None:
    W = wins().sum(axis=0)

    def loss(s: np.ndarray) -> float:
        return float((W * np.log1p(np.exp(s[None, :] - s[:, None]))).sum() + s.sum() ** 2)

    best = minimize(loss, np.zeros(SYSTEMS), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(bradley_terry(W), best, atol=1e-5)
    together = bradley_terry(np.stack([W, W.T, W] * 20))  # several are fitted in one call
    np.testing.assert_allclose(together[0], best, atol=1e-5)
    np.testing.assert_allclose(together[1], -best, atol=1e-5)


def test_to_number_the_systems_otherwise_permutes_everything() -> None:
    order = RNG.permutation(SYSTEMS)
    moved = wins(sides=order[SIDES]).sum(axis=0)
    W = wins().sum(axis=0)
    np.testing.assert_array_equal(moved[np.ix_(order, order)], W)
    np.testing.assert_allclose(bradley_terry(moved)[order], bradley_terry(W), atol=1e-6)


def test_a_pair_the_other_way_round_is_the_same_pair() -> None:
    turned = RNG.random(len(SIDES)) < 0.5
    sides = np.where(turned[:, None], SIDES[:, ::-1], SIDES)
    np.testing.assert_allclose(wins(np.where(turned, 1 - OUTCOME, OUTCOME), sides), wins())


def test_the_same_ranking_agrees_and_the_reverse_disagrees() -> None:
    clear = np.where(RNG.random(len(SIDES)) < 0.8, 1.0, 0.0)
    both = np.stack([wins(clear), wins(1 - clear)], axis=1)
    (humans, _), agreement = rankings(ClusterCounts(both), 7, FEW)
    assert agreement["tau_b"].value == agreement["spearman"].value == -1
    assert agreement["tau_b"].n == SYSTEMS
    assert (humans[0].n, humans[0].n_missing) == (len(SIDES), 7)
    assert humans[0].low < humans[0].value < humans[0].high
    both = np.stack([wins(clear), wins(clear)], axis=1)
    (humans, judge), agreement = rankings(ClusterCounts(both), 0, FEW)
    assert agreement["tau_b"].value == 1
    assert humans == judge


@pytest.mark.parametrize("outcome", [np.ones(len(SIDES)), np.where(SIDES[:, 0] == 0, 1, OUTCOME)])
def test_a_system_that_always_wins_has_no_strength(outcome: np.ndarray) -> None:
    both = np.stack([wins(), wins(outcome)], axis=1)
    (humans, judge), agreement = rankings(ClusterCounts(both), 0, FEW)
    assert humans[0].value is not None
    assert {e.reason for e in judge} == {agreement["tau_b"].reason} == {NO_STRENGTHS}


def test_groups_that_never_met_have_no_common_strengths() -> None:
    apart = np.zeros((4, 4))
    apart[:2, :2] = apart[2:, 2:] = 1 - np.eye(2)
    assert np.isnan(bradley_terry(apart)).all()


def test_a_judge_that_holds_all_level_ranks_nobody() -> None:
    both = np.stack([wins(), wins(OUTCOME * 0 + 0.5)], axis=1)
    (_, judge), agreement = rankings(ClusterCounts(both), 0, FEW)
    assert agreement["tau_b"].reason == "one of the two rankings holds all systems level"
    assert judge[0].value == pytest.approx(0, abs=1e-9)


def test_elo_ratings_keep_their_mean_and_do_not_depend_on_the_order_of_the_pairs() -> None:
    order = RNG.permutation(len(SIDES))
    found = elo(SIDES, OUTCOME, SYSTEMS)
    assert found.mean() == pytest.approx(1000)
    np.testing.assert_allclose(elo(SIDES[order], OUTCOME[order], SYSTEMS, seed=1), found, atol=3)
    strong = np.where(SIDES[:, 0] < SIDES[:, 1], 1.0, 0.0)  # the lower number always wins
    rated = elo(SIDES, strong, SYSTEMS)
    assert (np.diff(rated) < 0).all()


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
