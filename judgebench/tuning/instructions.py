"""A judge by a wording of its rubric that a language model revised, chosen on held-back answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import BaseModel, StringConstraints

from judgebench.errors import Problem, SetupError
from judgebench.files import write_atomically
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.learning.learnt import SEARCH, TrainingSet
from judgebench.models.contract import Message, Request
from judgebench.prompt import disarm
from judgebench.records import Verdict, content_hash
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.runs.bench import Bench
from judgebench.runs.judging import Work
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.tuning.advisers import Adviser, OfJudge, costs_in, judged_labels, open_adviser
from judgebench.tuning.config import InstructionsConfig
from judgebench.writer import FENCED, fenced, read_shape, schema_of

CHOSEN = "rubric.yaml"
_PROPOSALS = "proposals.jsonl"
_MAX_HELD_OUT, _SHOWN = 100, 8  # answers that wordings are chosen by, and that one is made of
_CHARACTERS = 1500  # of an answer's text that the reviser is shown
_SYSTEM = f"""You improve the instructions of a judge that labels texts.
Its labels, what they are called, their order and the form of its replies stay as they are. Revise
the instructions alone: what to look at, and where the line between two labels lies. State general
rules and no single case. {FENCED}"""


def open_instructions(entry: InstructionsConfig, bench: Bench, folder: Path) -> Instructions:
    """The learner of an entry. Raises SetupError where its judges are no language models."""
    field = f"judges.{entry.name}"
    asks = open_adviser(bench, entry.source, f"{field}.from", folder)
    if asks.judge.prompt.shows != "answer":
        message, allowed = "is shown several texts at once", "a prompt that shows one answer"
        where = (str(bench.file), None, f"{field}.from", asks.judge.name)
        raise SetupError(Problem(message, *where, allowed))
    writer = open_adviser(bench, entry.by or entry.source, f"{field}.by", folder)
    return Instructions(entry, asks, writer)


class Instructions(OfJudge):
    """The judge that it `asks`, by a wording of its instructions that `writer` revised."""

    def __init__(self, entry: InstructionsConfig, asks: Adviser, writer: Adviser) -> None:
        super().__init__(asks)
        self._entry, self._writer, each = entry, writer, asks.judge.calls_an_answer
        judged = _MAX_HELD_OUT * (1 + entry.revisions) + _SHOWN * entry.revisions
        self.calls = judged * each + entry.revisions, each

    def describe(self) -> Mapping[str, Any]:
        return {
            "learn": "instructions",
            "from": self.asks.judge.signature,
            "by": self._writer.judge.signature,
            "search": {"revisions": self._entry.revisions, "seed": self._entry.seed},
            "asked": content_hash(_SYSTEM),
        }

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Searches; the wording chosen is kept as a rubric file."""
        search = _Search(self._entry, self.asks.asked, self._writer, train, folder / SEARCH, work)
        with closing(self._writer):
            rubric, facts = search.best(np.random.default_rng(self._entry.seed))
        text = yaml.safe_dump(rubric.as_plain(), sort_keys=False, allow_unicode=True, width=88)
        write_atomically(folder / CHOSEN, text.encode())
        return facts

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        rubric = load_rubric(folder / CHOSEN)
        judge = self.asks.asked.asked_otherwise(self.asks.judge.name, rubric=rubric)
        yield from judge.judge(tasks)

    def costs(self, folder: Path) -> Iterator[float]:
        return costs_in(folder / SEARCH)


@dataclass
class _Search:
    """One search, in `folder`: a verdict file for each wording, and what was proposed."""

    entry: InstructionsConfig
    judge: LLMJudge
    writer: Adviser
    train: TrainingSet
    folder: Path
    work: Work

    def best(self, rng: np.random.Generator) -> tuple[Rubric, Mapping[str, Any]]:
        """The wording that is right most often on a nested part, if that is more often than the one
        before by more than a standard error of the difference; else the one before. And the facts
        of the search."""
        shown, held_out = next(self.train.folds(3, self.entry.seed))
        if not len(shown) or not len(held_out):
            raise SetupError("no question is left to choose a wording by: label more questions")
        held_out = _drawn(held_out, _MAX_HELD_OUT, rng)
        rubrics = [self.train.rubric]
        right = self._right(self.train.rubric, held_out)[None]
        for number in range(self.entry.revisions):
            parent = rubrics[int(right.mean(axis=1).argmax())]
            if revised := self._revised(parent, _drawn(shown, _SHOWN, rng), number):
                rubrics.append(revised)
                right = np.vstack([right, self._right(revised, held_out)])
        best = _shown_best(right)
        facts = {
            "tried": len(rubrics) - 1, "chosen": best, "held": len(held_out),
            "right_before": float(right[0].mean()), "right_best": float(right.mean(axis=1).max()),
        }  # fmt: skip
        return rubrics[best], facts

    def _right(self, rubric: Rubric, part: TrainingSet) -> FloatArray:
        """(answers,): of the labels of each, the share that the judge gives by this wording."""
        truth = np.array([*part.labels.values()])
        is_right = (self._labels(rubric, part) == truth) & (truth >= 0)
        return np.asarray(is_right.sum(axis=0) / (truth >= 0).sum(axis=0))

    def _labels(self, rubric: Rubric, part: TrainingSet) -> IntArray:
        """(metrics, answers): what the judge says by this wording."""
        judge = self.judge.asked_otherwise(f"wording-{rubric.content_hash}", rubric=rubric)
        return judged_labels(judge, part, self.folder, self.work)

    def _revised(self, parent: Rubric, shown: TrainingSet, number: int) -> Rubric | None:
        """The rubric with other instructions and nothing else; None where none were proposed."""
        labels = "\n\n".join(map(Metric.prompt_line, parent.metrics))
        user = "\n\n".join([
            f"The instructions:\n{parent.instructions}",
            f"The labels:\n{labels}",
            *self._cases(parent, shown),
            "Reply with one JSON object with the key `instructions`: the new instructions.",
        ])  # fmt: skip
        seed = int(content_hash([self.entry.seed, number]), 16) % 2**31
        key, tokens = content_hash([_SYSTEM, user, seed]), 800 + len(parent.instructions) // 2
        messages = (Message("system", _SYSTEM), Message("user", user))
        request = Request(key, messages, schema_of(_Wording), tokens, 1.0, None, seed)
        name, path = f"{self.entry.name} revises", self.folder / _PROPOSALS
        replies = self.writer.replies({key: request}, path, self.work, name)
        try:
            text = disarm(read_shape(replies[key], _Wording).instructions)
        except (KeyError, ValueError):  # no reply came, or it has another shape
            return None
        return parent.model_copy(update={"instructions": text})

    def _cases(self, rubric: Rubric, shown: TrainingSet) -> Iterator[str]:
        """Each answer, with what the judge and people said of it."""
        judge_labels = self._labels(rubric, shown)
        for row, answer in enumerate(shown.answers):
            lines = [fenced(answer.question, answer.text[:_CHARACTERS])]
            for metric, labels in zip(rubric.metrics, judge_labels, strict=True):
                texts = [*metric.label_texts, "no label"]
                said, right = texts[labels[row]], texts[shown.labels[metric.id][row]]
                lines.append(f'{metric.id}: the judge said "{said}"; people said "{right}".')
            yield "\n".join(lines)


def _drawn(train: TrainingSet, n: int, rng: np.random.Generator) -> TrainingSet:
    """So many of the answers at random, in their order."""
    return train.only(np.sort(rng.permutation(len(train))[:n]))


def _shown_best(right: FloatArray) -> int:
    """The row of the wording that is right most often, (wordings, answers); 0, the first, unless
    the gain over it is more than a standard error."""
    gains, best = right - right[0], int(right.mean(axis=1).argmax())
    n = right.shape[1]
    error = gains[best].std(ddof=1) / n**0.5 if n > 1 else np.inf
    return best if gains[best].mean() > error else 0


class _Wording(BaseModel):
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
