"""Who sets the bar: annotators of known skill, by their labels alone."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_case import apart
from crowd_case import crowd
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.stats.copies import bar_of, gaps, signal_left


def test_a_careless_annotator_is_left_out_and_has_no_weight() -> None:
    bar = bar_of(crowd([0.03, 0.03, 0.45]), apart(400), 2)
    assert bar.kept.tolist() == [True, True, False]
    assert (bar.weights[:, 2] == 0).all()
    assert -0.5 < bar.gap.value[2] < -0.3
    # the two that are left cannot be told apart: each is a bar
    assert bar.weights.tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("errors", [[0.1] * 3, [0.1] * 5, [0.02] * 4])
def test_equal_annotators_are_all_in_the_bar(errors: list[float]) -> None:
    left_out = [(~bar_of(crowd(errors, seed=seed), apart(400), 2).kept).sum() for seed in range(40)]
    assert sum(left_out) <= 0.05 * 40 * len(errors)


def test_at_most_half_are_left_out() -> None:
    bar = bar_of(crowd([0.02, 0.02, 0.5, 0.5, 0.5], 2000), apart(2000), 2)
    assert bar.kept.sum() >= 3


def test_of_a_sparse_crowd_the_better_half_counts_more_and_what_is_open_is_added() -> None:
    ratings = crowd([0.03] * 20 + [0.4] * 20)
    few = np.random.default_rng(1).random(ratings.shape).argsort(axis=1) < 3
    bar = bar_of(np.where(few, ratings, -1), apart(400), 2)
    weights = bar.weights[0]
    assert weights[:20].mean() > 1.3 * weights[20:].mean()
    assert bar.spread > 0.03


def test_the_average_keeps_everybody_and_the_best_counts_most() -> None:
    ratings = crowd([0.02, 0.10, 0.10, 0.45], 2000)
    assert bar_of(ratings, apart(2000), 2, "average").weights.tolist() == [[1, 1, 1, 1]]
    best = bar_of(ratings, apart(2000), 2, "best").weights[0]
    assert best.argmax() == 0
    assert best[0] > 2 * best[1]


def test_a_gap_by_hand() -> None:
    #                   Ann Bob Cid; items 2 and 3: Cid differs from both
    ratings = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    found = gaps(ratings, np.ones(3, dtype=bool), apart(4), 2)
    assert found.value == pytest.approx([0.25, 0.25, -0.5])


def test_without_a_third_label_an_annotator_is_compared_with_the_others_elsewhere() -> None:
    ratings = np.array([[0, 0, -1], [1, 1, -1], [0, -1, 1], [-1, 1, 1]])
    found = gaps(ratings, np.ones(3, dtype=bool), apart(4), 2)
    # Ann agrees with Bob twice and with Cid never; Bob and Cid agree on their one item
    assert found.value[0] == pytest.approx(2 / 3 - 1)


def test_two_annotators_have_no_gap_and_one_or_none_is_no_error() -> None:
    assert np.isnan(bar_of(crowd([0.1, 0.1]), apart(400), 2).gap.value).all()
    assert bar_of(crowd([0.1]), apart(400), 2).weights.shape == (1, 1)
    assert not bar_of(np.full((4, 2), -1), apart(4), 2).kept.any()


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 5))
def test_who_comes_first_does_not_matter(order: list[int], seed: int) -> None:
    ratings = crowd([0.05, 0.1, 0.2, 0.45], 200, seed)
    one, other = bar_of(ratings, apart(200), 2), bar_of(ratings[:, order], apart(200), 2)
    assert one.kept[order].tolist() == other.kept.tolist()
    assert one.gap.value[order] == pytest.approx(other.gap.value, nan_ok=True)
    assert one.weights[:, order].sum(axis=0) == pytest.approx(other.weights.sum(axis=0))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_what_is_left_of_a_difference_is_what_was_simulated(k: int) -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, k, 400_000)

    def noisy(error: float) -> np.ndarray:
        away = (true + rng.integers(1, k, len(true))) % k
        return np.where(rng.random(len(true)) < error, away, true)

    judge, one, other = noisy(0.25), noisy(0.10), noisy(0.10)
    seen = (judge == other).mean() - (one == other).mean()
    left = signal_left(np.float64((one == other).mean()), k)
    assert seen / left == pytest.approx(-0.15, abs=0.005)
