"""What each kind of evaluator is trained on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from jinja2 import Template

from judgebench.errors import SetupError
from judgebench.prompt import Prompt
from judgebench.ranking.proxy.examples import choose, evaluator_name
from judgebench.ranking.proxy.task import ProxyTask, TaskInstance

PROMPT = Prompt("p", "", "argument", "", Template(""))


def task(instances: Sequence[TaskInstance]) -> ProxyTask:
    return ProxyTask("t", "T", ("yes", "no"), "accuracy", instances, PROMPT)


def claims() -> list[TaskInstance]:
    splits = ("train", "train", "train", "development", "development", "test")
    return [
        TaskInstance(f"i{n}", f"claim {n}", "yes", "" if n == 1 else f"gold {n}", split)  # type: ignore[arg-type]
        for n, split in enumerate(splits)
    ]


def questions() -> list[TaskInstance]:
    """Two sources in three orders, of one group, and one to tune on."""
    found = []
    for source, split in (("x", "train"), ("y", "train"), ("z", "development")):
        for version in range(3):
            options = ("a", "b", "c")[version:] + ("a", "b", "c")[:version]
            found.append(
                TaskInstance(
                    f"{source}{version}",
                    source,
                    str(options.index("a") + 1),
                    "gold",
                    split,
                    options,
                    group="g",
                    version=version,  # type: ignore[arg-type]
                )
            )
    return found


def test_a_baseline_reads_no_argument_and_needs_none() -> None:
    examples = choose(task(claims()), "baseline", {}, seed=0, draw=0)
    assert [[e.argument for e in versions] for versions in examples.train] == [[""], [""], [""]]
    assert len(examples.development) == 2
    assert examples.left_out == 0


def test_an_expert_trained_one_leaves_out_what_no_expert_explained() -> None:
    examples = choose(task(claims()), "expert-trained", {}, seed=0, draw=0)
    assert [v[0].argument for v in examples.train] == ["gold 0", "gold 2"]
    assert examples.left_out == 1


def test_an_llm_trained_one_reads_what_was_drawn_and_counts_the_rest() -> None:
    texts = {"m": {"i0": "m on 0", "i4": "m on 4"}, "n": {"i2": "n on 2"}}
    examples = choose(task(claims()), "llm-trained", texts, seed=0, draw=0)
    assert [v[0].argument for v in examples.train] == ["m on 0", "n on 2"]
    assert [e.argument for e in examples.development] == ["m on 4"]
    assert examples.left_out == 2


def test_a_split_without_any_argument_is_refused_by_its_name() -> None:
    texts = {"m": {"i0": "m on 0"}}
    with pytest.raises(SetupError, match=r"t-llm-trained-2: development: .* argument of a model"):
        choose(task(claims()), "llm-trained", texts, seed=0, draw=2)
    with pytest.raises(SetupError, match="t-baseline: train: is empty"):
        choose(task(claims()[3:]), "baseline", {}, seed=0, draw=0)


def test_each_epoch_reads_another_order_of_each_source() -> None:
    examples = choose(task(questions()), "expert-trained", {}, seed=0, draw=0)
    assert [[e.instance.version for e in v] for v in examples.train] == [[0, 1, 2], [0, 1, 2]]
    read = [examples.of_epoch(epoch) for epoch in range(3)]
    assert sorted(v[0] for v in read) == sorted(v[1] for v in read) == [0, 1, 2]
    assert [e.instance.version for e in examples.development] == [0]


def test_the_content_is_known_by_what_is_read_alone() -> None:
    def content(instances: list[TaskInstance], kind: str = "baseline") -> str:
        return choose(task(instances), kind, {}, seed=0, draw=0).content_hash  # type: ignore[arg-type]

    others = [*claims()[:5], TaskInstance("new", "another", "no", "gold", "test")]
    changed = [TaskInstance("i0", "claim 0", "no", "gold 0", "train"), *claims()[1:]]
    assert content(claims()) == content(others) != content(changed)
    assert content(claims()) != content(claims(), "expert-trained")


def test_names_number_the_draws_of_the_llm_trained() -> None:
    assert evaluator_name("nli", "llm-trained", 2) == "nli-llm-trained-2"
    assert evaluator_name("nli", "expert-trained", 0) == "nli-expert-trained"
