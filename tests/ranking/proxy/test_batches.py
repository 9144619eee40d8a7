"""Batches of inputs of like length."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from judgebench.models.encoder import by_length, length_buckets

all_lengths = st.lists(st.integers(1, 512), min_size=1, max_size=200)


@given(all_lengths, st.integers(1, 16), st.integers(0, 3))
def test_every_input_is_in_one_batch_of_at_most_the_size(
    lengths: list[int], size: int, seed: int
) -> None:
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


def test_the_same_chance_gives_the_same_batches_and_another_epoch_others() -> None:
    lengths = [n % 37 for n in range(200)]
    first, again, other = (
        length_buckets(lengths, 8, random.Random(f"0/{epoch}")) for epoch in (0, 0, 1)
    )
    assert first == again != other


def test_who_meets_whom_changes_with_the_epoch() -> None:
    met = [
        {frozenset(batch) for batch in length_buckets([5] * 40, 8, random.Random(epoch))}
        for epoch in (0, 1)
    ]
    assert met[0] != met[1]
