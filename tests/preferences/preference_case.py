"""Small studies of several responses to one question, and of criteria."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judgebench.judges.control import control_judges
from judgebench.records import Answer, HumanLabel, Part, Showing, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.stats.resample import Resampling
from judgebench.study.study import JudgeVerdicts, Study, study_of
from judgebench.study.truth import TruthConfig

FEW = Resampling(resamples=200)
POINTS = ["5", "4", "3", "2", "1"]  # the best first: the least severe
Labels = Mapping[str, Mapping[str, str]]  # item -> metric -> label


def rubric(*metrics: Mapping[str, object], **more: object) -> Rubric:
    named = [{"title": str(m["id"]).title(), "question": "?", **m} for m in metrics]
    about = {"name": "several", "version": "1", "instructions": "Compare.", **more}
    return Rubric.model_validate({**about, "metrics": named})


PREFERENCE = {"id": "better", "kind": "preference"}
QUALITY = {"id": "quality", "kind": "ordinal", "labels": POINTS}


def answer(question: str, system: str, text: str = "") -> Answer:
    return Answer(f"{question}/{system}", text or f"{system} on {question}", question, system)


def pair(question: str, first: str, second: str) -> Answer:
    """The pair of two systems' answers to a question, the first with the longer text."""
    parts = [
        Part("response", f"{system} on {question}" + "." * more, system, f"{question}/{system}")
        for system, more in ((first, 9), (second, 0))
    ]
    return Answer(f"{question}/{first} vs {second}", "two", question, parts=tuple(parts))


def study(
    rubric: Rubric, answers: Sequence[Answer], humans: Mapping[str, Labels],
    judges: Mapping[str, Labels], shown: Mapping[str, Sequence[Showing]] = {},
) -> Study:  # fmt: skip
    """With annotators and judges by name; `shown` is by item and the same for all judges. The
    control `random` stands beside them."""
    given = [
        HumanLabel(item, who, metric, label)
        for who, items in humans.items()
        for item, labels in items.items()
        for metric, label in labels.items()
    ]
    found = study_of(rubric, list(answers), given, TruthConfig(), FEW)
    real = [
        JudgeVerdicts(
            name, "judge", name,
            {
                i: Verdict(i, "", name, name, Status.OK, labels, shown=tuple(shown.get(i, ())))
                for i, labels in items.items()
            },
        )
        for name, items in judges.items()
    ]  # fmt: skip
    controls = [
        JudgeVerdicts(c.name, "control", c.signature, {v.item_id: v for v in c.verdicts()})
        for c in control_judges(["random"], rubric, found.answers, given)
    ]
    return replace(found, judges=(*real, *controls))


def mtbench(folder: Path) -> Study:
    """The experts' votes on first turns of MT-bench (Zheng et al., 2023), and GPT-4's verdicts."""
    answers: dict[str, Answer] = {}
    humans: dict[str, dict[str, dict[str, str]]] = {}
    gpt4: dict[str, dict[str, str]] = {}
    for name in ("human", "gpt4_pair"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            votes = [json.loads(line) for line in lines]
        for vote in votes:
            first, second = sorted([vote["model_a"], vote["model_b"]])
            row = pair(str(vote["question_id"]), first, second)
            label = "tie"
            if not vote["winner"].startswith("tie"):
                label = "first" if vote[vote["winner"]] == first else "second"
            if vote["turn"] != 1:
                continue
            if name == "gpt4_pair":
                if row.item_id in answers:
                    gpt4[row.item_id] = {"better": label}
            elif vote["judge"].startswith("expert_"):
                answers[row.item_id] = row
                humans.setdefault(vote["judge"], {})[row.item_id] = {"better": label}
    return study(rubric(PREFERENCE), list(answers.values()), humans, {"gpt-4": gpt4})
