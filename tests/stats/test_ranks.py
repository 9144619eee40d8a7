"""Systems compared in pairs: win rates, Bradley-Terry strengths, rankings."""

import csv
import gzip
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score

from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import SHARE, ClusterCounts, jackknife_interval
from judgebench.stats.ranks import (
    JUMPS,
    NO_STRENGTHS,
    TIE,
    bradley_terry,
    count_tuples,
    friedman,
    levels,
    nearest_label,
    places,
    places_of,
    rankings,
    right,
    right_by_chance,
    roc_auc,
    signs,
    spearman,
    tau_b,
    top_match,
    tuples_within,
    wins_by_cluster,
)

tables = st.tuples(st.integers(2, 9), st.integers(3, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 4).map(float))
)


@given(tables)
def test_friedman_equals_scipy_ties_and_all(scores) -> None:
    found = friedman(scores)
    ranks = scipy.stats.rankdata(-scores, axis=1)
    np.testing.assert_allclose(found.average_ranks, ranks.mean(axis=0))
    assert found.blocks == len(scores)
    if (scores == scores[:, :1]).all():
        assert found.p is found.chi_square is None
        return
    expected = scipy.stats.friedmanchisquare(*scores.T)
    assert found.chi_square == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


RNG = np.random.default_rng(0)
SYSTEMS, QUESTIONS = 5, 40
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


def test_a_pair_the_other_way_round_is_the_same_pair() -> None:
    turned = RNG.random(len(SIDES)) < 0.5
    sides = np.where(turned[:, None], SIDES[:, ::-1], SIDES)
    np.testing.assert_allclose(wins(np.where(turned, 1 - OUTCOME, OUTCOME), sides), wins())


def test_the_same_ranking_agrees_and_the_reverse_disagrees() -> None:
    clear = np.where(RNG.random(len(SIDES)) < 0.8, 1.0, 0.0)
    both = np.stack([wins(clear), wins(1 - clear)], axis=1)
    (humans, _), agreement = rankings(ClusterCounts(both), 7)
    assert agreement["tau_b"].value == agreement["spearman"].value == -1
    assert agreement["tau_b"].low is None
    assert agreement["tau_b"].reason == JUMPS
    assert agreement["tau_b"].n == SYSTEMS
    assert (humans[0].n, humans[0].n_missing) == (len(SIDES), 7)
    assert humans[0].low < humans[0].value < humans[0].high
    both = np.stack([wins(clear), wins(clear)], axis=1)
    (humans, judge), agreement = rankings(ClusterCounts(both), 0)
    assert agreement["tau_b"].value == 1
    assert humans == judge


@pytest.mark.parametrize("outcome", [np.ones(len(SIDES)), np.where(SIDES[:, 0] == 0, 1, OUTCOME)])
def test_a_system_that_always_wins_has_no_strength(outcome: np.ndarray) -> None:
    both = np.stack([wins(), wins(outcome)], axis=1)
    (humans, judge), agreement = rankings(ClusterCounts(both), 0)
    assert humans[0].value is not None
    assert {e.reason for e in judge} == {agreement["tau_b"].reason} == {NO_STRENGTHS}


def test_groups_that_never_met_have_no_common_strengths() -> None:
    apart = np.zeros((4, 4))
    apart[:2, :2] = apart[2:, 2:] = 1 - np.eye(2)
    assert np.isnan(bradley_terry(apart)).all()


def test_a_judge_that_holds_all_level_ranks_nobody() -> None:
    both = np.stack([wins(), wins(OUTCOME * 0 + 0.5)], axis=1)
    (_, judge), agreement = rankings(ClusterCounts(both), 0)
    assert agreement["tau_b"].reason == "one of the two rankings holds all systems level"
    assert judge[0].value == pytest.approx(0, abs=1e-9)


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


SCORES = arrays(np.float64, 4, elements=st.integers(0, 3).map(float))


def weak_orders(k: int) -> np.ndarray:
    """One vector of places for each weak order of k responses."""
    every = np.array(list(product(range(k), repeat=k)), dtype=float)
    return np.unique(places_of(signs(every))[0], axis=0).astype(float)


def test_a_judge_is_right_about_one_of_the_13_weak_orders_of_three() -> None:
    orders = weak_orders(3)
    assert len(orders) == 13
    assert len(weak_orders(4)) == 75
    pairs = np.array(list(product(range(13), repeat=2)))
    truth, judged = (signs(orders[side]) for side in pairs.T)
    hit = right(truth, judged)
    assert hit.tolist() == (pairs[:, 0] == pairs[:, 1]).astype(float).tolist()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_chance_is_the_mean_over_every_way_to_deal_out_the_labels(k: int) -> None:
    truth = np.array([0.0, 2.0, 2.0, 5.0, 1.0])
    judged = np.array([1.0, 0.0, 1.0, 3.0, 0.0])
    tuples = tuples_within(np.zeros(5, dtype=int), k)
    one = np.zeros(len(tuples), dtype=int)
    order = signs(truth[tuples])
    found = right_by_chance(order, signs(judged[tuples]), one).mean()
    dealt = [right(order, signs(judged[list(p)][tuples])).mean() for p in permutations(range(5))]
    assert found == pytest.approx(np.mean(dealt))


@given(SCORES, SCORES)
def test_who_sees_the_truth_is_right_and_a_reversed_judge_only_about_ties(
    truth: np.ndarray, judged: np.ndarray
) -> None:
    order = signs(truth[None])
    assert right(order, signs(3 * truth[None] + 1))[0] == 1
    assert right(order, -order)[0] == (len(set(truth)) == 1)
    both = right(order, signs(judged[None])), right(-order, -signs(judged[None]))
    assert both[0] == both[1]


def test_a_missing_label_is_neither_right_nor_wrong() -> None:
    judged = np.array([[1.0, np.nan]])
    assert np.isnan(right(signs(np.array([[1.0, 2.0]])), signs(judged))).all()


def test_of_too_many_tuples_each_question_gives_its_share() -> None:
    groups = np.repeat(np.arange(30), 12)
    found = tuples_within(groups, 3, most=1000)
    assert count_tuples(groups, 3) == 30 * 220
    assert 1000 <= len(found) <= 1030
    assert (groups[found] == groups[found[:, :1]]).all()
    assert (np.diff(found, axis=1) > 0).all()
    assert np.array_equal(found, tuples_within(groups, 3, most=1000))
    assert set(found.ravel().tolist()) == set(range(360))


def test_the_nearest_label_and_the_more_severe_of_two() -> None:
    said = nearest_label(np.array([0.49, 0.5, 3.1, 4.0, np.nan]), np.array([0.0, 1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(said, [0, 1, 2, 5, np.nan])


@pytest.mark.parametrize("spread", [0.8, 0.9])
@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_who_knows_the_mean_of_15_ratings_and_answers_in_whole_points(
    spread: float, noise: float
) -> None:
    """Five doctors and three aspects, on 1 to 5; a response's quality varies around 3.5 with the
    standard deviation `spread`, a rating around that with `noise`, rounded and cut off."""
    rng = np.random.default_rng(1)
    quality = 3.5 + rng.normal(0, spread, (3000, 3, 1))
    ratings = np.clip(np.rint(quality + rng.normal(0, noise, (3000, 3, 15))), 1, 5)
    mean = ratings.mean(axis=2).ravel()
    said = nearest_label(mean, np.arange(1.0, 6.0))
    questions = np.repeat(np.arange(3000), 3)
    for k, (low, high) in {2: (0.65, 0.74), 3: (0.25, 0.39)}.items():
        tuples = tuples_within(questions, k)
        hit = right(signs(mean[tuples]), signs(said[tuples]))
        assert low <= hit.mean() <= high


def test_the_grades_of_liveqa(shared_data: Path) -> None:
    folder = shared_data / "medquad-cdc"
    with gzip.open(folder / "liveqa_answers_565.csv.gz", "rt", encoding="utf-8") as file:
        kept = {row["AnswerID"] for row in csv.DictReader(file)}
    with gzip.open(folder / "liveqa_qrels_2479.txt.gz", "rt", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    rated = [(int(question), float(grade[0])) for question, grade, item in lines if item in kept]
    question, grade = (np.array(column) for column in zip(*rated, strict=True))
    groups = np.unique(question, return_inverse=True)[1]
    assert groups.max() + 1 == 86
    for k, strict in {2: 1283, 3: 2401}.items():
        order = signs(grade[tuples_within(groups, k)])
        assert (order != 0).all(axis=1).sum() == strict


def test_intervals_of_areas_leave_out_whole_clusters() -> None:
    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 6, 60).astype(float), rng.random(60) < 0.4
    score[:4] = np.nan
    clusters = Clusters(rng.integers(0, 9, 60), 9)
    area = roc_auc(score, positive, clusters)
    known = ~np.isnan(score)
    left_out = [
        roc_auc_score(positive[kept], score[kept])
        for kept in (known & (clusters.codes != g) for g in range(9))
    ]
    expected = jackknife_interval(area.value, np.array(left_out), np.ones(9, int), bounds=SHARE)
    assert (area.low, area.high) == pytest.approx((expected.low, expected.high))
    assert (area.n, area.n_missing) == (known.sum(), 60 - known.sum())


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("scores", [[0.1, 0.2], [np.nan, np.nan]])
def test_items_of_one_kind_have_no_area(scores: list[float], positive: bool) -> None:
    area = roc_auc(np.array(scores), np.full(2, positive), Clusters(np.arange(2), 2))
    assert area.value is None
    assert area.reason
