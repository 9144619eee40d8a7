"""Batches of inputs of like length."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.models.checkpoints import by_length, length_buckets
from judgebench.ranking.evaluator import Epoch, best_epoch, is_over
from judgebench.ranking.task import TrainingConfig

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


def epochs(*of_development: tuple[float, float]) -> list[Epoch]:
    """Of (loss, score) per epoch."""
    return [
        {"train_loss": 0.5, "development_loss": loss, "development_score": score}
        for loss, score in of_development
    ]


@pytest.mark.parametrize(
    ("done", "best"),
    [
        ([(0.9, 0.5)], 0),
        ([(0.9, 0.5), (1.1, 0.6)], 1),  # decides better, though less sure of it
        ([(0.9, 0.6), (0.8, 0.6)], 1),  # of equal scores the lower loss
        ([(0.9, 0.6), (0.9, 0.6)], 0),  # of equal ones the earliest
    ],
)
def test_the_best_epoch_decides_best(done: list[tuple[float, float]], best: int) -> None:
    assert best_epoch(epochs(*done)) == best


def test_training_ends_after_epochs_that_are_no_better() -> None:
    training = TrainingConfig(epochs=9, patience=2)
    assert not is_over([], training)
    assert not is_over(epochs((0.9, 0.6), (0.8, 0.5)), training)
    assert is_over(epochs((0.9, 0.6), (0.8, 0.5), (0.7, 0.5)), training)
    assert is_over(epochs(*[(1.0, k / 10) for k in range(9)]), training)
