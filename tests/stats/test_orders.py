"""Tuples of responses in order: every weak order of three, chance, the ceiling of the format."""

from __future__ import annotations

import csv
import gzip
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.ranks import (
    count_tuples,
    nearest_label,
    places_of,
    right,
    right_by_chance,
    signs,
    tuples_within,
)

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


def test_a_tolerance_can_make_what_is_no_order() -> None:
    order = signs(np.array([[1.0, 1.4, 1.8]]), tolerance=0.5)
    assert order.tolist() == [[0, -1, 0]]
    assert not places_of(order)[1][0]
    assert right_by_chance(order, order, np.zeros(1, int))[0] == 0


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
