from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from judgebench.errors import SetupError
from judgebench.ranking.task import (
    SPLITS,
    ProxyTask,
    Split,
    SplitSizes,
    TaskInstance,
    check_splits,
    draw,
    seeded_split,
    shares,
)

LABELS = st.lists(st.sampled_from("abc"), min_size=3, max_size=80)


def item(content: str, label: str, group: str) -> TaskInstance:
    return TaskInstance(content, content, label, "", "train", group=group)


def items_of(labels: list[str]) -> list[TaskInstance]:
    return [item(f"text {i}", label, f"text {i}") for i, label in enumerate(labels)]


def splits_of(items: list[TaskInstance], sizes: SplitSizes, seed: int) -> list[Split]:
    return [i.split for i in seeded_split(items, [i.text for i in items], sizes, seed)]


def counts_of(n: int, data: st.DataObject) -> SplitSizes:
    train = data.draw(st.integers(1, n - 2))
    development = data.draw(st.integers(1, n - train - 1))
    return SplitSizes(train=train, development=development, test=n - train - development)


@given(labels=LABELS, seed=st.integers(0, 99), data=st.data())
def test_counts_are_met_and_classes_keep_their_share(labels, seed, data) -> None:
    sizes = counts_of(len(labels), data)
    splits = splits_of(items_of(labels), sizes, seed)
    assert [splits.count(split) for split in SPLITS] == list(sizes.sizes)
    cells = Counter(zip(labels, splits, strict=True))
    for label in set(labels):
        for split, size in zip(SPLITS, sizes.sizes, strict=True):
            exact = Fraction(labels.count(label) * int(size), len(labels))
            assert abs(cells[label, split] - exact) < 1


@given(labels=LABELS, seed=st.integers(0, 99), data=st.data())
def test_a_split_does_not_depend_on_the_order_of_rows(labels, seed, data) -> None:
    sizes = counts_of(len(labels), data)
    items = items_of(labels)
    shuffled = data.draw(st.permutations(items))
    once = dict(zip(items, splits_of(items, sizes, seed), strict=True))
    assert once == dict(zip(shuffled, splits_of(shuffled, sizes, seed), strict=True))


@given(rows=st.lists(st.integers(0, 9), min_size=1, max_size=12), seed=st.integers(0, 9))
def test_groups_stay_whole(rows: list[int], seed: int) -> None:
    items = [item(f"{i}", "ab"[i % 2], f"group {g}") for i, g in enumerate(rows)]
    splits = splits_of(items, SplitSizes(train=0.5, development=0.25, test=0.25), seed)
    of_group: dict[str, set[Split]] = defaultdict(set)
    for one, split in zip(items, splits, strict=True):
        of_group[one.group].add(split)
    assert all(len(found) == 1 for found in of_group.values())


def test_counts_are_met_in_groups_where_groups_hold_several() -> None:
    items = [item(f"{i}", "a", f"{i // 2}") for i in range(6)]
    splits = splits_of(items, SplitSizes(train=2, development=2, test=2), 0)
    assert Counter(splits) == {"train": 2, "development": 2, "test": 2}


def test_counts_that_do_not_add_up_are_told() -> None:
    with pytest.raises(SetupError, match=r"add up to the 4 instances; found 1 \+ 1 \+ 1 = 3"):
        splits_of(items_of(list("aabb")), SplitSizes(train=1, development=1, test=1), 0)


@pytest.mark.parametrize("sizes", [(1, 1, 0), (0.5, 0.5, 0.5), (10, 0.2, 0.1), (1.0, 0.0, 0.0)])
def test_sizes_are_three_counts_or_three_fractions(sizes: tuple[float, float, float]) -> None:
    with pytest.raises(ValidationError, match="three counts above 0"):
        SplitSizes(train=sizes[0], development=sizes[1], test=sizes[2])


def test_largest_remainders_as_in_the_textbook() -> None:
    # Votes and seats of the usual worked example of Hamilton's method.
    assert shares(10, [47000, 16000, 15800, 12000, 6100, 3100]) == [5, 2, 1, 1, 1, 0]


def test_a_sample_keeps_the_shares_and_no_order() -> None:
    labels = ["a"] * 30 + ["b"] * 10
    keys = [f"k{i}" for i in range(40)]
    drawn = draw(labels, keys, 8, seed=3)
    assert Counter(labels[i] for i in drawn) == {"a": 6, "b": 2}
    turned = draw(labels[::-1], keys[::-1], 8, seed=3)
    assert {keys[i] for i in drawn} == {keys[::-1][i] for i in turned}
    assert draw(labels, keys, 99, seed=3) == list(range(40))


def instance(label: str, split: Split) -> TaskInstance:
    return TaskInstance(f"{label}-{split}", "t", label, "a", split)


def task(instances: list[TaskInstance], *left_out: str) -> ProxyTask:
    prompt: Any = None  # no model is asked
    return ProxyTask("mine", "M", ("yes", "no"), instances, prompt, left_out)


def test_every_class_that_a_split_lacks_is_told_with_the_counts() -> None:
    held = [instance("yes", split) for split in SPLITS] + [instance("no", "train")]
    with pytest.raises(SetupError) as caught:
        check_splits(task(held))
    assert [str(p).partition(";")[0] for p in caught.value.problems] == [
        "split: task mine: the development split lacks the class 'no'",
        "split: task mine: the test split lacks the class 'no'",
    ]
    assert "found yes: 1, no: 0" in str(caught.value)


def test_a_class_that_is_left_out_may_be_missing_in_the_test_split_alone() -> None:
    held = [instance("yes", split) for split in SPLITS]
    held += [instance("no", "train"), instance("no", "development")]
    check_splits(task(held, "no"))
    with pytest.raises(SetupError, match="development split lacks"):
        check_splits(task(held[:-1], "no"))


def test_an_empty_split_is_told_also_where_options_are_given() -> None:
    held = [replace(instance(place, split), options=("a", "b")) for place, split in (
        ("1", "train"), ("2", "test"),
    )]  # fmt: skip
    with pytest.raises(SetupError, match="the development split is empty") as caught:
        check_splits(replace(task(held), labels=("1", "2")))
    assert len(caught.value.problems) == 1
