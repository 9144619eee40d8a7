"""Copied labels, camps, and who sets the bar: seen where they are, and not where they are not."""

import numpy as np
import pytest
from cluster_case import apart
from crowd_case import crowd
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.stats.annotator_bar import (
    _deviation,
    _shares,
    attenuation_factor,
    camps,
    fit_bar,
    gaps,
    is_copy_of,
    pair_agreement,
    partly_derived_from,
    same_as_truth,
)
from judgebench.stats.arrays import Clusters
from judgebench.stats.consensus import dawid_skene, median_label

N = apart(400)


def study(judge: float, errors: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A judge's labels and those of annotators, of such errors."""
    all_labels = crowd([judge, *errors], 400, seed)
    return all_labels[:, 0], all_labels[:, 1:]


def test_a_copy_of_an_annotator_is_seen_whose_it_is() -> None:
    _, ratings = study(0.1, [0.15] * 3, 0)
    assert is_copy_of(ratings[:, 1], ratings, N).tolist() == [False, True, False]
    few = np.where(np.arange(400) < 20, ratings[:, 1], -1)
    assert not is_copy_of(few, ratings, N).any()


def test_the_truth_itself_is_seen_and_a_perfect_judge_is_not_taken_for_it() -> None:
    perfect, ratings = study(0.0, [0.15] * 3, 0)
    truth = median_label(ratings, "upper")
    assert same_as_truth(truth, truth, ratings, N, 2)
    assert not same_as_truth(perfect, truth, ratings, N, 2)


@pytest.mark.parametrize(
    ("judge", "errors"), [(0.02, [0.02] * 3), (0.1, [0.03, 0.3, 0.3]), (0.15, [0.03, 0.03, 0.10])]
)
def test_labels_of_their_own_are_hardly_ever_suspected(judge: float, errors: list[float]) -> None:
    suspected = 0
    for seed in range(10):
        labels, ratings = study(judge, errors, seed)
        truth = median_label(ratings, "upper")
        suspected += bool(is_copy_of(labels, ratings, N).any())
        suspected += same_as_truth(labels, truth, ratings, N, 2)
        suspected += bool(partly_derived_from(labels, ratings, N, 2).any())
    assert suspected == 0


def test_the_share_that_was_taken_is_estimated() -> None:
    """An independent computation: what is left of the covariances when the truth is known."""
    true = np.random.default_rng(3).integers(0, 2, 20_000)
    rng = np.random.default_rng(4)
    ratings = np.stack([np.where(rng.random(20_000) < 0.15, 1 - true, true) for _ in range(3)], 1)
    judged = np.where(rng.random(20_000) < 0.25, 1 - true, true)
    judged = np.where(rng.random(20_000) < 0.4, ratings[:, 0], judged)
    known = [(x - np.array([x[true == t].mean() for t in (0, 1)])[true]) for x in ratings.T]
    by_truth = [float(d @ judged / (d @ d)) for d in known]
    posterior = dawid_skene(ratings, 2).posterior
    own = np.stack([_deviation(one, posterior) for one in ratings.T], axis=2)
    shares, _ = _shares(own, _deviation(judged, posterior), posterior, apart(20_000))
    assert shares == pytest.approx(by_truth, abs=0.05)
    assert shares[0] == pytest.approx(0.4, abs=0.05)


def test_a_lean_that_one_annotator_shares_is_no_copy() -> None:
    """Severity is continuous, and judge and first annotator have the same lenient thresholds."""
    found, cuts = [], np.linspace(-1, 1, 4)[1:-1]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        severity = rng.normal(size=400)
        judge, *people = (
            (severity[:, None] + 0.4 * rng.normal(size=(400, 1)) > cuts + shift).sum(axis=1)
            for shift in (0.6, 0.4, -0.2, -0.2)
        )
        found.append(partly_derived_from(judge, np.stack(people, axis=1), N, 3).any())
    assert not any(found)  # all, when agreement alone was compared


def test_annotators_who_share_no_item_show_no_leaning() -> None:
    # two experts with half of the items each, beside one who guesses
    for seed in range(20):
        judge, ratings = study(0.1, [0.05, 0.05, 0.5], seed)
        ratings[:200, 0] = ratings[200:, 1] = -1
        assert not partly_derived_from(judge, ratings, N, 2).any()


def test_two_annotators_show_no_leaning() -> None:
    judge, ratings = study(0.3, [0.1, 0.1], 0)
    assert partly_derived_from(judge, ratings, N, 2).tolist() == [False, False]


def divided(of: list[int], items: int = 400, share: float = 0.25, seed: int = 0) -> np.ndarray:
    """Annotators who are right in 97 %, where on some items each camp has a right label."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, max(of) + 1, items)
    open_to_both = rng.random(items) < share
    right = np.where(open_to_both[:, None], np.array(of), true[:, None])
    wrong = rng.random(right.shape) < 0.03
    return np.where(wrong, (right + 1) % (max(of) + 1), right)


@pytest.mark.parametrize("of", [[0, 0, 1, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 2, 2]])
def test_camps_are_found_with_their_members(of: list[int]) -> None:
    ratings = divided(of)
    expected = sorted(tuple(np.flatnonzero(np.array(of) == c).tolist()) for c in set(of))
    assert list(camps(ratings, apart(400), max(of) + 1)) == expected


@pytest.mark.parametrize("errors", [[0.2] * 6, [0.03, 0.03, 0.3, 0.3], [0.1, 0.2, 0.3, 0.4]])
def test_skill_and_noise_are_no_camps(errors: list[float]) -> None:
    for seed in range(10):
        assert camps(crowd(errors, 300, seed), apart(300), 2) == ()


def test_hard_items_on_which_only_experts_are_right_make_no_camps() -> None:
    rng = np.random.default_rng(0)
    true, hard = rng.integers(0, 2, 600), rng.random(600) < 0.5
    errors = np.array([0.03, 0.03, 0.5, 0.5])
    wrong = rng.random((600, 4)) < np.where(hard[:, None], errors, 0.03)
    assert camps(np.where(wrong, 1 - true[:, None], true[:, None]), apart(600), 2) == ()


def test_three_annotators_are_no_two_camps_and_few_questions_show_none() -> None:
    assert camps(divided([0, 0, 1]), apart(400), 2) == ()
    ratings = divided([0, 0, 1, 1], 400)
    assert camps(ratings, Clusters(np.arange(400) // 100, 4), 2) == ()
    assert camps(np.full((0, 4), -1), Clusters(np.arange(0), 0), 2) == ()


def test_agreement_of_pairs_by_hand() -> None:
    ratings = np.array([[0, 0, -1], [1, 0, -1], [1, 1, -1]])
    share, both = pair_agreement(ratings, 2)
    assert share[0, 1] == pytest.approx(2 / 3)
    assert np.isnan(share[0, 2])
    assert both[:2, :2].tolist() == [[3, 3], [3, 3]]


def test_a_careless_annotator_is_left_out_and_has_no_weight() -> None:
    bar = fit_bar(crowd([0.03, 0.03, 0.45]), apart(400), 2)
    assert bar.kept.tolist() == [True, True, False]
    assert (bar.weights[:, 2] == 0).all()
    assert -0.5 < bar.gap.value[2] < -0.3
    # the two that are left cannot be told apart: each is a bar
    assert bar.weights.tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("errors", [[0.1] * 3, [0.1] * 5, [0.02] * 4])
def test_equal_annotators_are_all_in_the_bar(errors: list[float]) -> None:
    left_out = [
        (~fit_bar(crowd(errors, seed=seed), apart(400), 2).kept).sum() for seed in range(10)
    ]
    assert sum(left_out) <= 1


def test_at_most_half_are_left_out() -> None:
    bar = fit_bar(crowd([0.02, 0.02, 0.5, 0.5, 0.5], 2000), apart(2000), 2)
    assert bar.kept.sum() >= 3


def test_of_a_sparse_crowd_the_better_half_counts_more_and_what_is_open_is_added() -> None:
    ratings = crowd([0.03] * 20 + [0.4] * 20)
    few = np.random.default_rng(1).random(ratings.shape).argsort(axis=1) < 3
    bar = fit_bar(np.where(few, ratings, -1), apart(400), 2)
    weights = bar.weights[0]
    assert weights[:20].mean() > 1.3 * weights[20:].mean()
    assert bar.spread > 0.03


def test_the_average_keeps_everybody_and_the_best_counts_most() -> None:
    ratings = crowd([0.02, 0.10, 0.10, 0.45], 2000)
    assert fit_bar(ratings, apart(2000), 2, "average").weights.tolist() == [[1, 1, 1, 1]]
    best = fit_bar(ratings, apart(2000), 2, "best").weights[0]
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
    assert np.isnan(fit_bar(crowd([0.1, 0.1]), apart(400), 2).gap.value).all()
    assert fit_bar(crowd([0.1]), apart(400), 2).weights.shape == (1, 1)
    assert not fit_bar(np.full((4, 2), -1), apart(4), 2).kept.any()


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 5))
def test_who_comes_first_does_not_matter(order: list[int], seed: int) -> None:
    ratings = crowd([0.05, 0.1, 0.2, 0.45], 200, seed)
    one, other = fit_bar(ratings, apart(200), 2), fit_bar(ratings[:, order], apart(200), 2)
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
    left = attenuation_factor(np.float64((one == other).mean()), k)
    assert seen / left == pytest.approx(-0.15, abs=0.005)
