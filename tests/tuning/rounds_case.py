"""A small world in which labels are revised: a cheap learner, and advisers that follow a script."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scripted_judges import ScriptedBackend

from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.learning.learnt import Learner, Material, TrainingSet, material_of, verdict_of
from judgebench.models.contract import Request
from judgebench.progress import NoProgress
from judgebench.prompt import load_prompt
from judgebench.records import Answer, HumanLabel, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.tuning.advisers import Adviser
from judgebench.tuning.rounds import Panel

RUBRIC = Rubric.from_labels({"Tone": ["Kind", "Rude"]})
TONE = RUBRIC.metrics[0].id


class Words(Learner):
    """Naive Bayes over words, in counts: learns in a millisecond."""

    def __init__(self) -> None:
        self.fits: list[TrainingSet] = []

    def describe(self) -> Mapping[str, Any]:
        return {"learn": "words"}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        self.fits.append(train)
        counts: dict[str, list[int]] = {}
        for answer, label in zip(train.answers, train.labels[TONE].tolist(), strict=True):
            for word in answer.text.split():
                counts.setdefault(word, [0, 0])[label] += 1
        (folder / "counts.json").write_text(json.dumps(counts))
        return {"seen": len(train)}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        counts = json.loads((folder / "counts.json").read_text())
        for task in tasks:
            rows = [counts.get(word, [0, 0]) for word in task.answer.text.split()]
            odds = sum(np.log((b + 1) / (a + 1)) for a, b in rows)
            rude = 1 / (1 + np.exp(-odds))
            yield verdict_of(task, RUBRIC, {TONE: np.array([1 - rude, rude])})


@dataclass(frozen=True)
class World:
    """Answers with their right labels, and the labels that people gave."""

    answers: list[Answer]
    right: dict[str, str]
    material: Material


def world(seed: int = 0, n: int = 150, wrong: float = 0.3) -> World:
    """Each answer has words that go with its tone. People err in a share of the labels."""
    rng = np.random.default_rng(seed)
    words = {"Kind": [f"kind{i}" for i in range(30)], "Rude": [f"rude{i}" for i in range(30)]}
    answers, right, given = [], {}, []
    for number in range(n):
        label = ("Kind", "Rude")[int(rng.random() < 0.5)]
        other = ("Rude", "Kind")[label == "Rude"]
        drawn = [*rng.choice(words[label], 5), *rng.choice(words[other], 2), f"n{number}"]
        errs = rng.random() < wrong
        answer = Answer(f"a{number}", " ".join(drawn), question=f"question {number}?")
        answers.append(answer)
        right[answer.item_id] = label
        given.append(HumanLabel(answer.item_id, "Ann", TONE, other if errs else label))
    material = material_of(RUBRIC, indexed(answers), given, TruthConfig(), 3, seed)
    return World(answers, right, material)


Reply = Callable[[Request], str]


def adviser(script: Reply, name: str = "expert") -> tuple[Adviser, ScriptedBackend]:
    backend = ScriptedBackend(script, cost=0.01)
    config = JudgeConfig(name=name, backend="openai-compatible:m@http://127.0.0.1:9/v1")
    judge = LLMJudge(config, RUBRIC, load_prompt("structured"), backend)
    return Adviser(judge, lambda: judge), backend


def proposal(label: str, reason: str = "by the rubric") -> str:
    return json.dumps({"reason": reason, "label": label})


def text_in(request: Request) -> str:
    """All that a request says."""
    return "\n".join(message.content for message in request.messages)


def _label(request: Request, whose: str) -> str:
    found = re.search(rf"^{whose}: (.+)$", text_in(request), re.MULTILINE)
    assert found
    return found[1]


def agreeing(request: Request) -> str:
    return proposal(_label(request, "Label of your colleague"), "the facts say so")


def objecting(request: Request) -> str:
    return proposal(_label(request, "Label that it is taught"), "it is as people say")


def panel(folder: Path, suggester: Reply, objector: Reply) -> Panel:
    two = adviser(suggester)[0], adviser(objector, "second")[0]
    return Panel(two, RUBRIC, folder / "exchanges.jsonl")


def work_in(folder: Path, budget: float | None = None) -> Work:
    return Work(RunFolder(folder), NoProgress(), Budget(budget), Stop())
