import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.prompt import Prompt
from judgebench.ranking.examples import control_arguments, control_case
from judgebench.ranking.task import CONTROL_CASES, ProxyTask, TaskInstance


def instances(n: int) -> list[TaskInstance]:
    return [
        TaskInstance(f"i{i}", f"text {i}", f"label {i % 3}", f"argument {i}", "test")
        for i in range(n)
    ]


# Groups of at most half of all: a draw without any argument used twice exists.
grouped = st.lists(st.integers(0, 5), min_size=2, max_size=30).filter(
    lambda groups: max(Counter(groups).values()) <= len(groups) / 2
)


def of_groups(groups: Sequence[int]) -> list[TaskInstance]:
    return [
        TaskInstance(f"i{i}", f"text {i}", "label", f"argument {i}", "test", group=f"g{group}")
        for i, group in enumerate(groups)
    ]


@given(grouped, st.integers(0, 1000))
def test_noise_is_each_argument_once_and_never_a_related_one(groups: list[int], seed: int) -> None:
    made = of_groups(groups)
    drawn = control_case("noise", made, seed)
    assert sorted(drawn) == sorted(i.argument for i in made)
    group_of = {i.argument: i.group for i in made}
    assert all(group_of[text] != i.group for text, i in zip(drawn, made, strict=True))


@given(grouped, st.integers(0, 1000), st.randoms(use_true_random=False))
def test_noise_depends_on_no_order(groups: list[int], seed: int, chance: random.Random) -> None:
    made = of_groups(groups)
    mixed = chance.sample(made, len(made))
    drawn = dict(zip((i.item_id for i in made), control_case("noise", made, seed), strict=True))
    again = dict(zip((i.item_id for i in mixed), control_case("noise", mixed, seed), strict=True))
    assert drawn == again


def test_every_other_argument_is_drawn_about_as_often() -> None:
    made = instances(5)
    counts = Counter(control_case("noise", made, seed)[0] for seed in range(2000))
    assert set(counts) == {f"argument {i}" for i in range(1, 5)}
    # Four standard errors of 500 of 2,000.
    assert all(abs(count - 500) < 4 * math.sqrt(2000 * 0.25 * 0.75) for count in counts.values())


def test_one_large_group_draws_from_outside_it() -> None:
    made = of_groups([0] * 8 + [1, 2])
    drawn = control_case("noise", made, 0)
    assert set(drawn[:8]) <= {"argument 8", "argument 9"}
    assert drawn[8] != "argument 8"
    assert drawn[9] != "argument 9"


def test_same_texts_same_arguments_and_blank_arguments_are_no_noise() -> None:
    made = [
        TaskInstance("a", "one text", "x", "first", "test"),
        TaskInstance("b", "one text", "y", "second", "test", group="another"),
        TaskInstance("c", "other text", "x", "first", "test"),
        TaskInstance("d", "a third text", "x", "  ", "test"),
        TaskInstance("e", "a fourth text", "x", "third", "test"),
    ]
    for seed in range(20):
        a, b, c, d, e = control_case("noise", made, seed)
        assert a == "third"
        assert b in ("first", "third")
        assert c in ("second", "third")
        assert d in ("first", "second", "third")
        assert e in ("first", "second")


def test_without_an_unrelated_argument_every_instance_is_told() -> None:
    made = [
        TaskInstance("a", "t", "x", "first", "test", group="g"),
        TaskInstance("b", "u", "x", "second", "test", group="g"),
    ]
    with pytest.raises(SetupError) as caught:
        control_case("noise", made, 0)
    assert [p.field for p in caught.value.problems] == ["argument of 'a'", "argument of 'b'"]
    assert control_case("noise", [], 0) == []


def test_passages_need_a_corpus() -> None:
    with pytest.raises(SetupError, match="retrieve from"):
        control_case("passages", instances(2), 0)


PROMPT: Any = None  # no control case asks a model


class FakeRetriever:
    """Gives two passages for a text."""

    def find(self, text: str) -> list[str]:
        return [f"{text}, first", f"{text}, second"]


def instance(i: int, split: str = "test", **more: Any) -> TaskInstance:
    told: dict[str, Any] = {
        "item_id": f"{split}{i}",
        "text": f"claim {i}",
        "label": ("true", "false")[i % 2],
        "argument": f"argument {i} of {split}",
        "group": f"g{i // 2}",
        "split": split,
    }
    return TaskInstance(**(told | more))


def task(instances: Sequence[TaskInstance], left_out: tuple[str, ...] = ()) -> ProxyTask:
    prompt: Prompt = PROMPT
    return ProxyTask("t", "T", ("true", "false"), instances, prompt, left_out)


def test_every_ranked_instance_gets_every_case_under_its_name() -> None:
    told = [*(instance(i, "train") for i in range(4)), *(instance(i) for i in range(6))]
    made = control_arguments(task(told), CONTROL_CASES, 0, FakeRetriever())  # type: ignore[arg-type]
    assert [a.system for a in made] == [case for case in CONTROL_CASES for _ in range(6)]
    assert [a.item_id for a in made] == [f"test{i}" for i in range(6)] * 4
    assert {a.task for a in made} == {"t"}
    by_case = {case: [a.text for a in made if a.system == case] for case in CONTROL_CASES}
    assert by_case["no-argument"] == [""] * 6
    assert by_case["label-only"] == ["true", "false"] * 3
    assert sorted(by_case["noise"]) == [f"argument {i} of test" for i in range(6)]
    assert by_case["passages"] == [f"claim {i}, first\n\nclaim {i}, second" for i in range(6)]


def test_noise_comes_from_ranked_instances_of_other_groups() -> None:
    told = [instance(i) for i in range(10)]
    for seed in range(10):
        made = control_arguments(task(told, left_out=("false",)), ["noise"], seed, None)
        assert [a.item_id for a in made] == [f"test{i}" for i in range(0, 10, 2)]
        assert {a.text for a in made} == {f"argument {i} of test" for i in range(0, 10, 2)}
        assert all(a.text != f"argument {a.item_id[4:]} of test" for a in made)
    related = [instance(i, group="one") for i in range(3)] + [instance(3)]
    made = control_arguments(task(related), ["noise"], 0, None)
    assert [a.text for a in made[:3]] == ["argument 3 of test"] * 3


def test_the_label_of_a_choice_is_the_text_of_its_option() -> None:
    chosen = instance(0, label="2", options=("aspirin", "ibuprofen"))
    (made,) = control_arguments(task([chosen]), ["label-only"], 0, None)
    assert made.text == "ibuprofen"
