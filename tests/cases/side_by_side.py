"""Answers that are judged side by side, and engines that score what they are shown."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scripted_judges import ScriptedBackend

from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models.contract import Reply, Request
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Dataset, HumanLabel, Part, Usage, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, BenchConfig

MIXED = Rubric.model_validate(
    {
        "name": "mixed",
        "version": "1",
        "instructions": "Judge answers to questions about health.",
        "metrics": [
            {"id": "better", "title": "Preference", "question": "Which?", "kind": "preference"},
            {
                "id": "by_far", "title": "Strength", "question": "By how much?", "of": "pair",
                "kind": "ordinal", "labels": ["little", "much"],
            },
            {
                "id": "score", "title": "Score", "question": "How good?", "kind": "ordinal",
                "labels": ["5", "4", "3", "2", "1"],
            },
            {
                "id": "tone", "title": "Tone", "question": "How kind?", "kind": "ordinal",
                "labels": ["Kind", "Rude"],
            },
            {
                "id": "met", "title": "Met", "question": "Is it met?", "kind": "nominal",
                "of": "criterion", "labels": ["met", "not met"],
            },
        ],
    }
)  # fmt: skip
PREFERENCE, SCORE, MET = MIXED.only(["better"]), MIXED.only(["score"]), MIXED.only(["met"])


def said(number: int, quality: int) -> Answer:
    """An answer to the one question, as good as `quality`."""
    return Answer(f"a{number}", f"Answer {number}, quality {quality}.", "Cough?")


def pair(a: str, b: str, item_id: str = "a vs b") -> Answer:
    parts = (Part("response", a, "x", "a"), Part("response", b, "y", "b"))
    return Answer(item_id, f"Response 1:\n{a}\n\nResponse 2:\n{b}", "Cough?", parts=parts)


def criteria(answer: Answer, texts: Sequence[str]) -> list[Answer]:
    """One row for each criterion that the answer is checked by."""
    return [
        Answer(
            f"{answer.item_id}#{number}", answer.text, answer.question, group=answer.group,
            parts=(Part("criterion", text, str(number), answer.item_id),),
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


def shown(request: Request, kind: str = "response") -> list[str]:
    """The texts that stand side by side in a request, in their order."""
    found = re.findall(
        rf"<{kind}-([0-9a-f]{{8}})>\n(.*?)\n</{kind}-\1>", request.messages[-1].content, re.DOTALL
    )
    return [text for _, text in found]


def quality(text: str) -> str:
    return re.findall(r"quality (\d)", text)[-1]


def by_content(request: Request) -> str:
    """Labels that depend on the texts alone: of two the better one, else each one's quality."""
    texts = shown(request)
    if "Preference" in request.messages[0].content:
        a, b = map(quality, texts)
        return json.dumps({"better": "tie" if a == b else "first" if a > b else "second"})
    return json.dumps({f"response_{i}": quality(text) for i, text in enumerate(texts, 1)})


def judge(
    script: Callable[[Request], str | Reply] = by_content,
    rubric: Rubric = SCORE,
    prompt: str = "compare",
    **settings: object,
) -> LLMJudge:
    backend = ScriptedBackend(script)
    config = JudgeConfig(name="m", backend="scripted:x", prompt=prompt, **settings)
    return LLMJudge(config, rubric, load_prompt(prompt), backend)


def in_list(judge: LLMJudge, answers: Sequence[Answer]) -> Mapping[str, Verdict]:
    """The verdicts on answers that are shown together, in this order."""
    tasks = (Task(answer, bundle=tuple(answers)) for answer in answers)
    return {verdict.item_id: verdict for verdict in judge.judge(tasks)}


def reply(request: Request, text: str, **more: object) -> Reply:
    return Reply(request.key, text, usage=Usage(1, 101, 50), cost=0.3, latency=3.0, **more)  # type: ignore[arg-type]


def bench_of(
    judges: Sequence[LLMJudge],
    answers: Sequence[Answer],
    rubric: Rubric = SCORE,
    labels: Sequence[HumanLabel] = (),
    **more: object,
) -> Bench:
    return Bench(
        config=BenchConfig(name="b", rubric="side", data="none"),
        file=Path("bench.yaml"),
        rubric=rubric,
        dataset=Dataset(answers, labels),
        judges=tuple(judges),
        **more,  # type: ignore[arg-type]
    )


def asked(judge: LLMJudge) -> list[Request]:
    backend = judge._backend
    assert isinstance(backend, ScriptedBackend)
    return backend.requests
