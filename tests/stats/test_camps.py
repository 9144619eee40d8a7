"""Camps are seen where they are, and not where annotators differ in skill or by chance."""

from __future__ import annotations

import numpy as np
import pytest
from cluster_case import apart
from crowd_case import crowd

from judgebench.stats.arrays import Clusters
from judgebench.stats.copies import camps, pair_agreement


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


@pytest.mark.parametrize(
    "errors",
    [[0.05] * 4, [0.2] * 6, [0.03, 0.03, 0.3, 0.3], [0.03] * 3 + [0.45] * 3, [0.1, 0.2, 0.3, 0.4]],
)
def test_skill_and_noise_are_no_camps(errors: list[float]) -> None:
    found = [bool(camps(crowd(errors, 300, seed), apart(300), 2)) for seed in range(60)]
    assert sum(found) <= 0.05 * 60


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
