"""Labels that were copied, in whole or in part, and good ones that were not."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_case import apart
from crowd_case import crowd

from judgebench.stats.consensus import dawid_skene, median_label
from judgebench.stats.copies import _deviation, _shares, leans_on, same_as, same_as_truth

N = apart(400)


def study(judge: float, errors: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A judge's labels and those of annotators, of such errors."""
    all_labels = crowd([judge, *errors], 400, seed)
    return all_labels[:, 0], all_labels[:, 1:]


def test_a_copy_of_an_annotator_is_seen_whose_it_is() -> None:
    _, ratings = study(0.1, [0.15] * 3, 0)
    assert same_as(ratings[:, 1], ratings, N).tolist() == [False, True, False]
    few = np.where(np.arange(400) < 20, ratings[:, 1], -1)
    assert not same_as(few, ratings, N).any()


def test_the_truth_itself_is_seen_and_a_perfect_judge_is_not_taken_for_it() -> None:
    perfect, ratings = study(0.0, [0.15] * 3, 0)
    truth = median_label(ratings, "upper")
    assert same_as_truth(truth, truth, ratings, N, 2)
    assert not same_as_truth(perfect, truth, ratings, N, 2)


def test_half_a_copy_leans_on_its_annotator() -> None:
    found = []
    for seed in range(30):
        judge, ratings = study(0.30, [0.15] * 3, seed)
        copied = np.random.default_rng(seed).random(400) < 0.5
        found.append(leans_on(np.where(copied, ratings[:, 0], judge), ratings, N, 2).tolist())
    assert sum(leans == [True, False, False] for leans in found) >= 0.6 * len(found)


@pytest.mark.parametrize(
    ("judge", "errors"),
    [(0.02, [0.15] * 3), (0.15, [0.15] * 3), (0.3, [0.1] * 4), (0.02, [0.02] * 3),
     (0.1, [0.03, 0.3, 0.3]), (0.15, [0.03, 0.03, 0.10])],
)  # fmt: skip
def test_labels_of_their_own_are_hardly_ever_suspected(judge: float, errors: list[float]) -> None:
    suspected = 0
    for seed in range(60):
        labels, ratings = study(judge, errors, seed)
        truth = median_label(ratings, "upper")
        suspected += bool(same_as(labels, ratings, N).any())
        suspected += same_as_truth(labels, truth, ratings, N, 2)
        suspected += bool(leans_on(labels, ratings, N, 2).any())
    assert suspected <= 0.05 * 60


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
        found.append(leans_on(judge, np.stack(people, axis=1), N, 3).any())
    assert not any(found)  # all, when agreement alone was compared


def test_annotators_who_share_no_item_show_no_leaning() -> None:
    # two experts with half of the items each, beside one who guesses
    for seed in range(20):
        judge, ratings = study(0.1, [0.05, 0.05, 0.5], seed)
        ratings[:200, 0] = ratings[200:, 1] = -1
        assert not leans_on(judge, ratings, N, 2).any()


def test_two_annotators_show_no_leaning() -> None:
    judge, ratings = study(0.3, [0.1, 0.1], 0)
    assert leans_on(judge, ratings, N, 2).tolist() == [False, False]
