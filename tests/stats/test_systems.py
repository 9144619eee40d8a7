"""Systems compared in pairs: win rates, Bradley-Terry strengths, rankings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from judgebench.stats.arrays import Clusters
from judgebench.stats.ranks import (
    NO_STRENGTHS,
    bradley_terry,
    elo,
    rankings,
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
