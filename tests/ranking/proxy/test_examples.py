"""What each kind of evaluator is trained on."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template

from judgebench.errors import SetupError
from judgebench.prompt import Prompt
from judgebench.ranking.examples import EvaluatorPlan, Examples, drawn_systems, evaluator_names
from judgebench.ranking.task import EvaluatorConfig, EvaluatorKind, ProxyTask, TaskInstance

PROMPT = Prompt("p", "", "argument", "", Template(""))


def task(instances: Sequence[TaskInstance]) -> ProxyTask:
    return ProxyTask("t", "T", ("yes", "no"), instances, PROMPT)


def choose(
    task: ProxyTask,
    kind: EvaluatorKind,
    arguments: Mapping[str, Mapping[str, str]],
    *,
    draw: int = 0,
) -> Examples:
    return EvaluatorPlan(task, kind, EvaluatorConfig(), 0, arguments, draw).examples()


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
    examples = choose(task(claims()), "baseline", {})
    assert [[e.argument for e in versions] for versions in examples.train] == [[""], [""], [""]]
    assert len(examples.development) == 2


def test_an_expert_trained_one_leaves_out_what_no_expert_explained() -> None:
    examples = choose(task(claims()), "expert-trained", {})
    assert [v[0].argument for v in examples.train] == ["gold 0", "gold 2"]


def test_an_llm_trained_one_reads_what_was_drawn() -> None:
    texts = {"m": {"i0": "m on 0", "i4": "m on 4"}, "n": {"i2": "n on 2"}}
    examples = choose(task(claims()), "llm-trained", texts)
    assert [v[0].argument for v in examples.train] == ["m on 0", "n on 2"]
    assert [e.argument for e in examples.development] == ["m on 4"]


def test_a_split_without_any_argument_is_refused_by_its_name() -> None:
    texts = {"m": {"i0": "m on 0"}}
    with pytest.raises(SetupError, match=r"t-llm-trained-2: development: .* argument of a model"):
        choose(task(claims()), "llm-trained", texts, draw=2)
    with pytest.raises(SetupError, match="t-baseline: train: is empty"):
        choose(task(claims()[3:]), "baseline", {})


def test_each_epoch_reads_another_order_of_each_source() -> None:
    examples = choose(task(questions()), "expert-trained", {})
    assert [[e.instance.version for e in v] for v in examples.train] == [[0, 1, 2], [0, 1, 2]]
    read = [examples.of_epoch(epoch) for epoch in range(3)]
    assert sorted(v[0] for v in read) == sorted(v[1] for v in read) == [0, 1, 2]
    assert [e.instance.version for e in examples.development] == [0]


def test_the_content_is_known_by_what_is_read_alone() -> None:
    def content(instances: list[TaskInstance], kind: str = "baseline") -> str:
        return choose(task(instances), kind, {}).content_hash  # type: ignore[arg-type]

    others = [*claims()[:5], TaskInstance("new", "another", "no", "gold", "test")]
    changed = [TaskInstance("i0", "claim 0", "no", "gold 0", "train"), *claims()[1:]]
    assert content(claims()) == content(others) != content(changed)
    assert content(claims()) != content(claims(), "expert-trained")


def test_names_number_the_draws() -> None:
    assert evaluator_names("nli", "llm-trained", 2) == ["nli-llm-trained-0", "nli-llm-trained-1"]
    assert evaluator_names("nli", "expert-trained", 1) == ["nli-expert-trained"]
    assert evaluator_names("nli", "baseline", 3) == [
        "nli-baseline",
        "nli-baseline-1",
        "nli-baseline-2",
    ]
    plans = [
        EvaluatorPlan(task(claims()), "baseline", EvaluatorConfig(), 0, draw=n) for n in (0, 1)
    ]
    assert [plan.name for plan in plans] == ["t-baseline", "t-baseline-1"]
    assert plans[0].own_seed != plans[1].own_seed
    assert plans[0].examples().content_hash == plans[1].examples().content_hash
    plan = EvaluatorPlan(task(claims()), "llm-trained", EvaluatorConfig(), 0, draw=2)
    assert plan.name == "t-llm-trained-2"


SYSTEMS = ("a", "b", "c")


def instances(n: int) -> list[TaskInstance]:
    return [TaskInstance(f"i{k}", f"text {k}", "yes", "gold", "train") for k in range(n)]


def complete(n: int, systems: tuple[str, ...] = SYSTEMS) -> dict[str, dict[str, str]]:
    return {s: {f"i{k}": f"{s} on {k}" for k in range(n)} for s in systems}


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 9), st.integers(0, 2))
def test_systems_are_drawn_equally_often(n: int, n_systems: int, seed: int, draw: int) -> None:
    systems = tuple("abcde"[:n_systems])
    drawn = drawn_systems(instances(n), complete(n, systems), seed=seed, draw=draw)
    counts = Counter(drawn.values())
    assert len(drawn) == n
    assert max(counts.values()) - min(counts[s] for s in systems) <= 1


@given(st.lists(st.sets(st.sampled_from(SYSTEMS)), max_size=30), st.integers(0, 5))
def test_only_who_wrote_is_drawn(wrote: list[set[str]], seed: int) -> None:
    arguments = {s: {f"i{k}": "text" for k, who in enumerate(wrote) if s in who} for s in SYSTEMS}
    drawn = drawn_systems(instances(len(wrote)), arguments, seed=seed)
    assert set(drawn) == {f"i{k}" for k, who in enumerate(wrote) if who}
    assert all(s in wrote[int(item[1:])] for item, s in drawn.items())
    full = Counter(drawn[f"i{k}"] for k, who in enumerate(wrote) if len(who) == len(SYSTEMS))
    assert max(full.values(), default=0) - min((full[s] for s in SYSTEMS), default=0) <= 1


def test_blank_arguments_are_none() -> None:
    assert drawn_systems(instances(1), {"a": {"i0": "  "}}, seed=0) == {}


def test_the_rest_goes_to_who_was_drawn_least() -> None:
    arguments = complete(30, ("a", "b"))
    del arguments["a"]["i0"], arguments["a"]["i1"]
    counts = Counter(drawn_systems(instances(30), arguments, seed=3).values())
    assert counts == {"a": 14, "b": 16}


def test_draws_and_seeds_differ_and_the_same_ones_agree_in_any_order() -> None:
    there, texts = instances(24), complete(24)
    first = drawn_systems(there, texts, seed=0)
    assert drawn_systems(there[::-1], dict(reversed(texts.items())), seed=0) == first
    assert drawn_systems(there, texts, seed=0, draw=1) != first
    assert drawn_systems(there, texts, seed=1) != first
