"""Models are asked for arguments: what goes out, what is kept, what is asked again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from judgebench.errors import BudgetSpent, SetupError
from judgebench.judges.retrieval import Corpus
from judgebench.models.contract import Reply, Request
from judgebench.models.scripted import Scripted
from judgebench.progress import NoProgress
from judgebench.prompt import ARGUMENTS, load_prompt
from judgebench.ranking.rank_bench import RankBench
from judgebench.ranking.task import (
    Argument,
    ArgumentWriter,
    GeneratorConfig,
    ProxyConfig,
    ProxyTask,
    Split,
    TaskInstance,
    last_arguments,
)
from judgebench.runs.judging import Budget, Interrupted
from judgebench.writer import WritingTerms, kept_replies

WRITER = GeneratorConfig(name="writer", backend="scripted:unused.jsonl")
SPLITS: tuple[Split, ...] = ("train", "development", "test", "test", "test")


def claims(prompt: str = "misinformation", **more: Any) -> ProxyTask:
    instances = [
        TaskInstance(f"i{n}", f"Claim number {n}", "yes", "why", split, context=f"Trial {n} ran.")
        for n, split in enumerate(SPLITS)
    ]
    made = load_prompt(prompt, kind=ARGUMENTS)
    return ProxyTask("claims", "Claims", ("yes", "no"), instances, made, **more)


TASK = claims()


class Following(NoProgress):
    """Counts steps; `wanted` turns true after so many."""

    def __init__(self, most: int = 99) -> None:
        self.most, self.steps = most, 0
        self.begun: list[tuple[str, int, int]] = []

    def start(self, name: str, total: int, done: int) -> None:
        self.begun.append((name, total, done))

    def advance(self, name: str, what: object = "") -> None:
        self.steps += 1

    @property
    def wanted(self) -> bool:
        return self.steps >= self.most


def which(request: Request) -> int:
    """The number of the claim that a request asks about."""
    return int(request.messages[1].content.split("Claim number ")[1].split()[0].split("<")[0])


def says(request: Request) -> str:
    return f"Since {which(request)}."


def write(
    path: Path,
    reply: Callable[[Request], Reply | str] = says,
    *,
    task: ProxyTask = TASK,
    generator: GeneratorConfig = WRITER,
    name: str = "model",
    watch: Following | None = None,
    seed: int = 0,
    limit: float | None = None,
) -> tuple[list[Argument], list[Request]]:
    """The arguments, and what was asked."""
    asked: list[Request] = []

    def note(request: Request) -> Reply | str:
        asked.append(request)
        return reply(request)

    watch = watch or Following()
    costs = costs_of(path)
    budget = Budget(limit, sum(costs), max(costs, default=0.0))
    terms = WritingTerms("claims: writer writes", watch, watch, budget, "price of the writer")
    writer = ArgumentWriter(generator, Scripted(note, name), path, seed)
    return writer.write(task, task.instances, terms), asked


def kept(path: Path) -> list[Reply]:
    return list(kept_replies(path).values())


def costs_of(path: Path) -> list[float]:
    return [reply.cost or 0.0 for reply in kept(path)]


def texts(arguments: list[Argument]) -> dict[str, str]:
    """What counts as the argument on each item."""
    found = last_arguments(arguments, "claims").get("writer", {})
    return {item: argument.text for item, argument in found.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "proxy" / "replies-writer.jsonl"


def test_requests_have_the_decoding_of_the_paper_and_a_seed_of_their_own(path: Path) -> None:
    _, asked = write(path)
    assert {(r.max_tokens, r.temperature, r.top_p, r.schema) for r in asked} == {
        (256, 0.9, 0.85, None)
    }
    assert len({r.seed for r in asked}) == len(asked) == 5
    assert all(r.seed is not None and 0 <= r.seed < 2**31 for r in asked)
    assert [r.messages[0].role for r in asked] == ["system"] * 5
    first = TASK.instances[0]
    system, user = TASK.prompt.render_texts(question=first.question, context=first.context)
    assert [m.content for m in asked[0].messages] == [system, user]


def test_what_was_written_is_not_asked_for_again(path: Path) -> None:
    first, asked = write(path)
    assert [(a.system, a.text) for a in first] == [("writer", f"Since {n}.") for n in range(5)]
    assert {a.signature for a in first} == {r.key for r in asked}
    before, watch = path.read_bytes(), Following()
    assert write(path, lambda r: "something else", watch=watch) == (first, [])
    assert path.read_bytes() == before
    assert watch.begun == [("claims: writer writes", 5, 5)]


def test_stopping_keeps_what_is_written_and_the_rest_comes_later(path: Path) -> None:
    with pytest.raises(Interrupted):
        write(path, watch=Following(most=2))
    assert len(kept(path)) == 2
    arguments, asked = write(path)
    assert [which(r) for r in asked] == [2, 3, 4]
    assert len(texts(arguments)) == 5


def test_a_torn_last_line_is_asked_for_again(path: Path) -> None:
    write(path)
    path.write_bytes(path.read_bytes()[:-9])
    arguments, asked = write(path, lambda r: "Anew.")
    assert [which(r) for r in asked] == [4]
    assert texts(arguments)["i4"] == "Anew."


def test_a_failed_reply_is_asked_for_again(path: Path) -> None:
    def fails(request: Request) -> Reply | str:
        if which(request) % 2:
            return Reply(request.key, "", "failed", error="the line is down")
        return says(request)

    assert sorted(texts(write(path, fails)[0])) == ["i0", "i2", "i4"]
    arguments, asked = write(path)
    assert [which(r) for r in asked] == [1, 3]
    assert sorted(texts(arguments)) == ["i0", "i1", "i2", "i3", "i4"]


@pytest.mark.parametrize("finish", ["refused", "too_long"])
def test_who_declines_has_no_argument_and_is_not_asked_again(finish: Any, path: Path) -> None:
    arguments, _ = write(path, lambda r: Reply(r.key, "I would rather not.", finish))
    assert [(a.text, a.finish) for a in arguments] == [("", finish)] * 5
    assert texts(arguments) == {}
    assert write(path)[1] == []


def test_a_reply_cut_at_the_most_tokens_counts_and_is_marked(path: Path) -> None:
    arguments, _ = write(path, lambda r: Reply(r.key, "It goes on and", "length"))
    assert {(a.text, a.finish) for a in arguments} == {("It goes on and", "length")}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Argument: It is so.", "It is so."),
        ("**Argument:** It is so.", "It is so."),
        ("\n  EVIDENCE:\nIt is so.\n", "It is so."),
        ("The argument: it is so.", "The argument: it is so."),
        ("Evidence shows it.", "Evidence shows it."),
    ],
)
def test_a_heading_that_a_model_repeats_is_taken_off(said: str, text: str, path: Path) -> None:
    assert set(texts(write(path, lambda r: said)[0]).values()) == {text}


OTHERS: dict[str, dict[str, Any]] = {
    "prompt": {"task": claims("multiple-choice")},
    "decoding": {"generator": WRITER.model_copy(update={"temperature": 0.5})},
    "seed": {"seed": 1},
    "model": {"name": "another"},
    "task": {"task": replace(TASK, name="other")},
}


@pytest.mark.parametrize("other", list(OTHERS))
def test_another_way_of_writing_is_asked_for_anew(other: str, path: Path) -> None:
    write(path)
    _, asked = write(path, **OTHERS[other])
    assert len(asked) == 5
    assert len(kept(path)) == 10


def test_going_back_to_an_earlier_way_takes_the_earlier_arguments(path: Path) -> None:
    write(path, lambda r: f"First {which(r)}.")
    second, _ = write(path, lambda r: f"Second {which(r)}.", seed=1)
    assert set(texts(second).values()) == {f"Second {n}." for n in range(5)}
    first, asked = write(path)
    assert asked == []
    assert set(texts(first).values()) == {f"First {n}." for n in range(5)}


def dear(request: Request) -> Reply:
    return Reply(request.key, says(request), cost=0.25)


def test_a_budget_stops_before_it_is_overspent_and_loses_nothing(path: Path) -> None:
    with pytest.raises(BudgetSpent, match=r"budget of \$0\.6 is used up: \$0\.5000"):
        write(path, dear, limit=0.6)
    assert costs_of(path) == [0.25, 0.25]
    with pytest.raises(BudgetSpent):
        write(path, dear, limit=0.6)
    assert len(kept(path)) == 2
    _, asked = write(path, dear, limit=1.25)
    assert ([which(r) for r in asked], sum(costs_of(path))) == ([2, 3, 4], 1.25)


def test_a_budget_needs_to_know_what_a_call_costs(path: Path) -> None:
    with pytest.raises(SetupError, match="price of the writer: a budget needs"):
        write(path, limit=1.0)
    assert len(kept(path)) == 1, "what came is kept"


@pytest.mark.parametrize(
    ("kinds", "learnt"), [(["baseline"], []), (["baseline", "llm-trained"], ["i0", "i1"])]
)
def test_arguments_are_wanted_on_what_is_ranked_and_on_what_is_trained_on(kinds, learnt) -> None:
    turned = [replace(i, item_id=f"{i.item_id}-b", version=1) for i in TASK.instances]
    left = replace(TASK.instances[4], item_id="left", label="no")
    task = replace(TASK, instances=[*TASK.instances, *turned, left], left_out=("no",))
    proxy = ProxyConfig.model_validate({"tasks": ["t"], "evaluators": {"kinds": kinds}})
    bench = RankBench(cast(Any, None), proxy, Path(), (task,), (), Corpus())
    assert [i.item_id for i in bench.argued(task)] == ["i2", "i3", "i4", *learnt]
