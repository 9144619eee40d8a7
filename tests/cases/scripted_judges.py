"""A benchmark in memory with a scripted backend, for tests of logic."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from judgebench.judges.config import JudgeConfig, JuryConfig
from judgebench.judges.control import ControlJudge, Fit
from judgebench.judges.llm import LLMJudge
from judgebench.models.contract import Reply, Request
from judgebench.progress import NoProgress
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Dataset, HumanLabel, Usage
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, BenchConfig

RUBRIC = Rubric.model_validate(
    {
        "name": "two",
        "version": "1",
        "instructions": "Rate the text.",
        "metrics": [
            {
                "id": "harm",
                "title": "Harm",
                "question": "How bad?",
                "kind": "ordinal",
                "labels": [{"text": "None"}, {"text": "Some"}, {"text": "Much"}],
            },
            {
                "id": "kind",
                "title": "Kind",
                "question": "Which?",
                "kind": "nominal",
                "labels": [{"text": "A"}, {"text": "B"}],
            },
        ],
    }
)

GOOD = json.dumps({"harm": "None", "kind": "A"})
Script = Callable[[Request], str | Reply]


class ScriptedBackend:
    """Meets the backend contract; replies as `script` says and remembers what it was asked."""

    def __init__(self, script: Script, cost: float | None = None) -> None:
        self.script = script
        self.cost = cost
        self.requests: list[Request] = []
        self.closed = False

    def describe(self) -> Mapping[str, Any]:
        return {"backend": "scripted", "runtime": {"concurrency": 1}}

    def complete(self, requests: Iterable[Request]) -> Iterator[Reply]:
        for request in requests:
            self.requests.append(request)
            said = self.script(request)
            if isinstance(said, str):
                said = Reply(request.key, said, usage=Usage(1, 10, 5), cost=self.cost)
            yield said

    def close(self) -> None:
        self.closed = True


class Listener(NoProgress):
    """Remembers what the user would have been told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)


def answers(n: int = 6) -> list[Answer]:
    return [Answer(f"i{i}", f"text {i}", question=f"q{i // 2}") for i in range(n)]


def labels(
    items: Iterable[Answer], annotators: tuple[str, ...] = ("ann", "bob")
) -> list[HumanLabel]:
    found = []
    for number, answer in enumerate(items):
        for annotator in annotators:
            harm = ("None", "Some", "Much")[number % 3]
            found.append(HumanLabel(answer.item_id, annotator, "harm", harm))
            found.append(HumanLabel(answer.item_id, annotator, "kind", "AB"[number % 2]))
    return found


def bench(
    backends: Mapping[str, ScriptedBackend],
    items: list[Answer] | None = None,
    *,
    juries: tuple[JuryConfig, ...] = (),
    parse_retries: int = 1,
) -> Bench:
    items = items or answers()
    human = labels(items)
    configs = {
        name: JudgeConfig(name=name, backend="scripted:x", parse_retries=parse_retries)
        for name in backends
    }
    prompt = load_prompt("structured")
    return Bench(
        config=BenchConfig(name="b", rubric="two", data="none"),
        file=Path("bench.yaml"),
        rubric=RUBRIC,
        dataset=Dataset(items, human),
        judges=tuple(LLMJudge(configs[n], RUBRIC, prompt, b) for n, b in backends.items()),
        juries=juries,
        controls=(ControlJudge("prior", Fit(RUBRIC, items, human)),),
    )
