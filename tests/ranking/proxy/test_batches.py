"""Batches of inputs of like length."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.learning.trainer import Evaluation, Training
from judgebench.models.checkpoints import by_length, length_buckets

all_lengths = st.lists(st.integers(1, 512), min_size=1, max_size=200)


@given(all_lengths, st.integers(1, 16), st.integers(0, 3))
def test_every_input_is_in_one_batch(lengths: list[int], size: int, seed: int) -> None:
    for batches in (
        length_buckets(lengths, size, random.Random(seed)), by_length(lengths, size)
    ):  # fmt: skip
        assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
        assert max(map(len, batches)) <= size
        assert len(batches) == -(-len(lengths) // size)


def padded(lengths: list[int], batches: list[list[int]]) -> int:
    return sum(len(batch) * max(lengths[place] for place in batch) for batch in batches)


def test_buckets_spare_padding() -> None:
    lengths = [random.Random(n).randrange(20, 512) for n in range(600)]
    places = list(range(600))
    random.Random(1).shuffle(places)
    at_random = [places[i : i + 16] for i in range(0, 600, 16)]
    bucketed = length_buckets(lengths, 16, random.Random(0))
    assert padded(lengths, bucketed) < 0.65 * padded(lengths, at_random)
    assert padded(lengths, by_length(lengths, 16)) <= padded(lengths, bucketed)


def test_who_meets_whom_follows_from_the_epoch() -> None:
    first, again, other = (
        {frozenset(batch) for batch in length_buckets([5] * 40, 8, random.Random(epoch))}
        for epoch in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("worth", "is_over"),
    [
        ([], False),
        ([0.6, 0.5], False),
        ([0.6, 0.5, 0.5], True),
        ([0.6, 0.6, 0.6], True),  # equal is no better
        ([0.1, 0.2, 0.3, 0.4], False),
        ([0.1, 0.2, 0.3, 0.4, 0.5], True),  # all epochs are done
    ],
)
def test_training_ends_after_epochs_that_are_no_better(worth: list[float], is_over: bool) -> None:
    training = Training(
        model=None, n_steps=5, losses=lambda step: [], save=lambda folder: None,
        learning_rate=0.1, seed=0, evaluation=Evaluation(dict, steps=1, patience=2),
    )  # fmt: skip
    log = [entry for value in worth for entry in ({"loss": 1.0}, {"eval_worth": value})]
    assert training.is_over(log) is is_over
