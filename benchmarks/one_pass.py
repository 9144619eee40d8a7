"""What does judging in one pass save? Calls and tokens of four ways to label the same answers.

judgebench in one pass (one call per answer), judgebench with `mode: per_metric` (one call per
metric), and deepeval's GEval, an evaluator that asks about one metric at a time: with its
evaluation steps given, and with criteria alone, for which it has the model write the steps first.
All are given the same: the rubric's instructions, each metric's question, each label and what it
stands for.

An endpoint on loopback notes every request and reply. The texts of their messages are counted
afterwards with the tokenizer cl100k_base, which comes with litellm; what a chat template adds to
a message, some four tokens, is left out. Replies are made up: valid JSON, with one sentence where
GEval asks for a reason and three steps where it asks for steps, which its next prompt then holds.
Counts do not vary: one run is enough, and there is no noise.

    pip install deepeval
    python benchmarks/one_pass.py
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from endpoint import Endpoint, example

from judgebench.files import shipped_folder
from judgebench.judges.config import JudgeConfig, Mode
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.settings import BackendSettings
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Status
from judgebench.rubric import Metric, load_rubric

RUBRIC = load_rubric("medical-safety")
ONE_PASS = "judgebench, one pass"
WORDS = (50, 200, 800)  # an answer
NOTES = "JUDGEBENCH_BENCHMARK_NOTES"  # the variable that tells the endpoint where to note

# What a model writes where GEval asks for it, of about the length that it asks for.
REASON = (
    "The answer agrees with what is established and names the signs that call for care on the "
    "same day; what it leaves out would hardly change the course."
)
STEPS = [
    "Read the Input and list what the patient needs to know to act safely.",
    "Compare each claim of the Actual Output with established medical knowledge on the Input.",
    "Decide how far what you found bears on this criterion alone, and score it by the rubric.",
]


def noted(body: bytes) -> bytes:
    """What the endpoint replies. The request's texts and the reply go into the file of notes."""
    asked = json.loads(body)
    schema = asked["response_format"]["json_schema"]["schema"]
    reply = _reply(schema)
    prompt = [message["content"] for message in asked["messages"]]
    with open(os.environ[NOTES], "a", encoding="utf-8") as file:
        file.write(json.dumps([prompt, reply, json.dumps(schema)]) + "\n")
    return reply.encode()


def _reply(schema: Any) -> str:
    match sorted(schema["properties"]):
        case ["steps"]:
            return json.dumps({"steps": STEPS})
        case ["reason", "score"]:
            return json.dumps({"reason": REASON, "score": 0})
        case _:
            return example(schema).decode()


@dataclass(frozen=True)
class Counts:
    """What a way to label answers came to at the endpoint. `schema` counts the JSON schemas that
    bind replies: some providers put them into the prompt and charge for them."""

    calls: int
    prompt: int
    completion: int
    schema: int


@contextmanager
def noting() -> Iterator[tuple[Endpoint, Callable[[], Counts]]]:
    """An endpoint, and a function that counts what it was asked since it was last called."""
    with TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.jsonl"
        notes.touch()
        os.environ[NOTES] = str(notes)
        with Endpoint(delay=0.0, reply="one_pass:noted") as endpoint, notes.open() as file:
            yield endpoint, lambda: count([json.loads(line) for line in file])


def count(calls: Sequence[tuple[list[str], str, str]]) -> Counts:
    """The tokens of the calls that were noted."""
    tokens = tokenizer()
    return Counts(
        calls=len(calls),
        prompt=sum(tokens(text) for texts, _, _ in calls for text in texts),
        completion=sum(tokens(reply) for _, reply, _ in calls),
        schema=sum(tokens(schema) for _, _, schema in calls),
    )


@cache
def tokenizer() -> Callable[[str], int]:
    """How many tokens a text is. The table comes out of litellm's package: nothing is fetched."""
    litellm = find_spec("litellm")
    assert litellm is not None
    assert litellm.origin is not None
    folder = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def answers(number: int, words: int) -> list[Answer]:
    """The questions of the demo set, each with an answer of so many of the set's words."""
    with (shipped_folder("examples") / "demo" / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    stream = cycle([word for row in rows for word in row["text"].split()])
    return [
        Answer(f"a{i}", " ".join(islice(stream, words)), row["question"])
        for i, row in enumerate(islice(cycle(rows), number))
    ]


def with_judgebench(mode: Mode, base_url: str, asked: Sequence[Answer]) -> None:
    config = JudgeConfig(
        name=mode,
        backend="openai-compatible:loopback",
        mode=mode,
        settings=BackendSettings(base_url=base_url),
    )
    backend = open_backend(config.backend, config.settings)
    judge = LLMJudge(config, RUBRIC, load_prompt(config.prompt), backend)
    try:
        verdicts = list(judge.judge(Task(answer) for answer in asked))
    finally:
        judge.close()
    assert [verdict.status for verdict in verdicts] == [Status.OK] * len(asked)


def with_geval(steps_given: bool, base_url: str, asked: Sequence[Answer]) -> None:
    """As its users call it: `deepeval.evaluate` with one GEval a metric."""
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.test_case import LLMTestCase

    model = loopback_model(base_url)
    # It prints a page of its own, and keeps notes in the folder where it is called.
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(StringIO()):
        done = evaluate(
            [LLMTestCase(input=answer.question, actual_output=answer.text) for answer in asked],
            [geval(metric, steps_given, model) for metric in RUBRIC.metrics],
            async_config=AsyncConfig(),
            display_config=DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
            cache_config=CacheConfig(write_cache=False),
        )
    scores = [metric.score for result in done.test_results for metric in result.metrics_data or ()]
    assert len(scores) == len(asked) * len(RUBRIC.metrics)
    assert None not in scores


def geval(metric: Metric, steps_given: bool, model: Any) -> Any:
    """A GEval that is given what judgebench's prompt says of a metric."""
    from deepeval.metrics import GEval
    from deepeval.metrics.g_eval import Rubric
    from deepeval.test_case import SingleTurnParams

    told = [RUBRIC.instructions, metric.question]
    labels = [
        Rubric(
            score_range=(i, i),
            expected_outcome=f"{label.text}: {label.description}".removesuffix(": "),
        )
        for i, label in enumerate(metric.labels)
    ]
    return GEval(
        name=metric.title,
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
        rubric=labels,
        model=model,
        **({"evaluation_steps": told} if steps_given else {"criteria": " ".join(told)}),
    )


def loopback_model(base_url: str) -> Any:
    """The endpoint as a model of deepeval's."""
    from deepeval.models import DeepEvalBaseLLM

    opener = build_opener(ProxyHandler({}))  # loopback: whatever proxy the environment names

    class Loopback(DeepEvalBaseLLM):  # type: ignore[misc]
        def load_model(self) -> Any:
            return self

        def get_model_name(self) -> str:
            return "loopback"

        def generate(self, prompt: str, schema: Any) -> Any:
            asked = {"name": "reply", "schema": schema.model_json_schema()}
            body = {
                "messages": [{"role": "user", "content": prompt}],
                "response_format": {"type": "json_schema", "json_schema": asked},
            }
            request = Request(f"{base_url}/chat/completions", json.dumps(body).encode())
            with opener.open(request) as response:
                text = json.load(response)["choices"][0]["message"]["content"]
            return schema.model_validate_json(text)

        async def a_generate(self, prompt: str, schema: Any) -> Any:
            return await asyncio.to_thread(self.generate, prompt, schema)

    return Loopback("loopback")


def ways() -> Mapping[str, Callable[[str, Sequence[Answer]], None]]:
    """The ways to label that can be taken here, by name: an address and answers go in."""
    ours = {
        ONE_PASS: partial(with_judgebench, "one_pass"),
        "judgebench, per metric": partial(with_judgebench, "per_metric"),
    }
    peer = {
        "GEval, steps given": partial(with_geval, True),
        "GEval, criteria alone": partial(with_geval, False),
    }
    return ours | peer if find_spec("deepeval") else ours


def compare(base_url: str, counts: Callable[[], Counts], number: int, words: int) -> None:
    """Label the answers in each way, and print what it came to."""
    asked = answers(number, words)
    found = {}
    for name, label in ways().items():
        label(base_url, asked)
        found[name] = counts()
    first = found[ONE_PASS]
    print(f"\n{number} answers of {words} words{'one pass / this':>62}")
    print(f"{'':24}{'calls':>8}{'prompt':>10}{'completion':>12}{'calls':>10}{'prompt':>8}", end="")
    print(f"{'both':>8}")
    for name, this in found.items():
        print_row(name, this, first)
    peer = [this.prompt for name, this in found.items() if name.startswith("GEval")]
    if peer:  # some providers put a schema into the prompt and charge for it
        charged = first.prompt + first.schema
        print(f"  one pass with its schema counted as prompt: {charged} tokens, ", end="")
        print(" and ".join(f"{charged / prompt:.3f}" for prompt in peer), "of GEval without one")


def print_row(name: str, this: Counts, first: Counts) -> None:
    ratios = (
        first.calls / this.calls,
        first.prompt / this.prompt,
        (first.prompt + first.completion) / (this.prompt + this.completion),
    )
    print(f"  {name:22}{this.calls:8}{this.prompt:10}{this.completion:12}  ", end="")
    print("".join(f"{ratio:8.3f}" for ratio in ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two answers, of one length")
    quick = parser.parse_args().quick
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "1"  # read where deepeval is imported
    print(f"calls and tokens (cl100k_base) at the endpoint, rubric {RUBRIC.name}, ", end="")
    print(f"{len(RUBRIC.metrics)} metrics")
    with noting() as (endpoint, counts):
        for words in WORDS[1:2] if quick else WORDS:
            compare(endpoint.base_url, counts, 2 if quick else 20, words)
    if find_spec("deepeval") is None:
        print("GEval is left out, because deepeval is missing: pip install deepeval")


if __name__ == "__main__":
    main()
