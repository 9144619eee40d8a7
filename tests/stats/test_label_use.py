"""Annotators who use the labels as nobody else does: found, and nobody is blamed for noise."""

import numpy as np
import pytest

from judgebench.stats.annotator_bar import odd_ones, uses
from judgebench.stats.arrays import Clusters


def world(seed: int, n: int, skill, shares, flipped=(), overlap: float = 1.0, group: int = 1):  # type: ignore[no-untyped-def]
    """Each annotator knows the label with that skill and else guesses; the flipped exchange the
    first two labels."""
    rng, k = np.random.default_rng(seed), len(shares)
    truth = rng.choice(k, size=-(-n // group), p=shares).repeat(group)[:n]
    ratings = np.full((n, len(skill)), -1)
    for a, share in enumerate(skill):
        said = np.where(rng.random(n) < share, truth, rng.choice(k, size=n))
        if a in flipped:
            said = np.array([1, 0, *range(2, k)])[said]
        seen = rng.random(n) < overlap
        ratings[seen, a] = said[seen]
    return ratings, Clusters(np.arange(n) // group, -(-n // group))


def test_shares_are_of_the_items_that_others_labelled_too() -> None:
    ratings = np.array([[0, 0, -1], [1, -1, -1], [0, 1, 1], [0, 1, 0]])
    first, second, third = uses(ratings, Clusters(np.arange(4), 4), k=2)
    assert first.n == 3  # the second item is theirs alone
    assert first.own.tolist() == [1, 0]
    np.testing.assert_allclose(first.others, [0.5, 0.5])  # 1, 0 and 1/2 of the others' labels
    assert first.distance == pytest.approx(0.5)
    assert first.agreement == pytest.approx(0.5)
    assert (second.n, third.n) == (3, 2)


def test_without_overlap_nothing_can_be_compared() -> None:
    ratings = np.array([[0, -1], [-1, 1]])
    found = uses(ratings, Clusters(np.arange(2), 2), k=2)
    assert [use.n for use in found] == [0, 0]
    assert np.isnan(found[0].distance)
    assert odd_ones(ratings, Clusters(np.arange(2), 2), k=2).uses == {}
    assert odd_ones(np.empty((0, 0), dtype=int), Clusters(np.empty(0, dtype=int), 0), 2).uses == {}


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (0.95, 0.05)])
def test_who_read_a_label_as_its_opposite_is_named_and_nobody_else(shares) -> None:
    for seed in range(20):
        ratings, clusters = world(seed, 100, [0.9] * 3, shares, flipped=(1,))
        found = odd_ones(ratings, clusters, 2)
        assert (list(found.uses), found.settled) == ([1], True)


def test_exchanged_labels_say_what_agreement_would_be() -> None:
    ratings, clusters = world(0, 200, [0.9] * 4, (0.5, 0.3, 0.2), flipped=(3,))
    (use,) = odd_ones(ratings, clusters, 3).uses.values()
    assert use.exchanged == (0, 1)
    assert use.agreement < 0.35
    assert use.agreement_exchanged > 0.8


@pytest.mark.parametrize(
    ("n", "skill", "shares", "more"),
    [
        (200, [0.9, 0.9, 0.0], (0.5, 0.5), {}),  # one draws lots
        (200, [0.9, 0.8, 0.7], (0.8, 0.2), {"group": 5}),
        (300, list(np.linspace(0.5, 0.95, 25)), (0.6, 0.3, 0.1), {"overlap": 0.05}),
    ],
)
def test_noise_and_unequal_skill_name_nobody(n, skill, shares, more) -> None:
    named = [odd_ones(*world(s, n, skill, shares, **more), len(shares)).uses for s in range(10)]
    assert not any(named)


def test_a_small_panel_of_a_few_items_shows_nothing() -> None:
    ratings, clusters = world(0, 5, [1.0] * 3, (0.5, 0.5), flipped=(0,))
    assert odd_ones(ratings, clusters, 2).uses == {}


@pytest.mark.parametrize(("annotators", "flipped"), [(2, (0,)), (4, (0, 1))])
def test_where_no_side_is_a_minority_nobody_is_singled_out(annotators: int, flipped) -> None:
    ratings, clusters = world(1, 300, [0.95] * annotators, (0.8, 0.2), flipped=flipped)
    found = odd_ones(ratings, clusters, 2)
    assert not found.settled
    assert list(found.uses) == list(range(annotators))


def test_a_minority_of_two_is_named_and_makes_nobody_else_look_odd() -> None:
    ratings, clusters = world(2, 200, [0.9] * 5, (0.7, 0.3), flipped=(0, 4))
    found = odd_ones(ratings, clusters, 2)
    assert (list(found.uses), found.settled) == ([0, 4], True)


def test_who_gives_one_label_far_more_often_is_named_without_an_exchange() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(200) < 0.2).astype(int)
    strict = np.where(rng.random(200) < 0.5, 1, truth)
    ratings = np.stack([truth, truth, strict], axis=1)
    (column,), (use,) = zip(*odd_ones(ratings, Clusters(np.arange(200), 200), 2).uses.items(),
                            strict=True)  # fmt: skip
    assert (column, use.exchanged, use.farthest_label) == (2, None, 0)
    assert use.distance == pytest.approx(0.4, abs=0.08)
