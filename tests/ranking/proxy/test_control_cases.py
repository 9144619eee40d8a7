from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.ranking.proxy.argument_prompt import ArgumentPrompt
from judgebench.ranking.proxy.control_cases import control_arguments
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance
from judgebench.stress.probes.arguments import CONTROL_CASES

PROMPT: Any = None  # no control case asks a model


class FakeRetriever:
    """Gives two passages a query, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def retrieve_all(self, queries: Sequence[str]) -> list[list[str]]:
        self.asked.append(list(queries))
        return [[f"{query}, first", f"{query}, second"] for query in queries]

    def describe(self) -> dict[str, Any]:
        return {"corpus": "made up"}


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
    prompt: ArgumentPrompt = PROMPT
    return ProxyTask("t", "T", ("true", "false"), "accuracy", instances, prompt, left_out)


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
    assert {a.verbatim for a in made} == {None}


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


def test_each_text_is_retrieved_for_once() -> None:
    told = [instance(i, text=f"case {i // 2}") for i in range(4)]
    retriever = FakeRetriever()
    made = control_arguments(task(told), ["passages"], 0, retriever)  # type: ignore[arg-type]
    assert retriever.asked == [["case 0", "case 1"]]
    assert [a.text[:6] for a in made] == ["case 0", "case 0", "case 1", "case 1"]


def test_passages_need_a_retriever_and_no_other_case_asks_it() -> None:
    with pytest.raises(SetupError, match="passages needs a collection"):
        control_arguments(task([instance(0)]), ["passages"], 0, None)
    retriever = FakeRetriever()
    told = [instance(i) for i in range(4)]
    control_arguments(task(told), CONTROL_CASES[:3], 0, retriever)  # type: ignore[arg-type]
    assert retriever.asked == []
    assert control_arguments(task([]), ["passages"], 0, retriever) == []  # type: ignore[arg-type]


def test_a_signature_changes_with_what_the_text_rests_on() -> None:
    told = task([instance(i) for i in range(8)])
    first, again, other = (control_arguments(told, ["noise"], seed, None) for seed in (1, 1, 2))
    assert first == again
    assert {a.signature for a in first}.isdisjoint(a.signature for a in other)
