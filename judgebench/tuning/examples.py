"""Labelled cases as worked examples before the question: what people said of the nearest ones."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.data.answer_file import AnswerFile, write_answers
from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import written_reply
from judgebench.learning.folds import Known, sketch
from judgebench.learning.learnt import TrainingSet
from judgebench.models.contract import Message
from judgebench.models.encoder import find_beside
from judgebench.records import Answer, Usage, Verdict
from judgebench.retrieval.vectors import WORDS, KeptVectors, WordSearch
from judgebench.rubric import Rubric, normalise
from judgebench.runs.bench import Bench, open_judge
from judgebench.runs.forecast import CHARACTERS_A_TOKEN
from judgebench.runs.judging import Work
from judgebench.stats.arrays import FloatArray
from judgebench.tuning.config import ExamplesConfig

_LOG = logging.getLogger("judgebench.models")  # which a run shows with its progress
_CASES, _LABELS = "cases.jsonl", "labels.json"
_CHARACTERS_A_TOKEN = 3  # short, so that a prompt that is thought to fit does


def language_model(bench: Bench, name: str, field: str) -> LLMJudge:
    """The judge of that name. Raises SetupError, which names the `field`, where it is none."""
    models = {judge.name: judge for judge in bench.judges}
    if name not in models:
        message, allowed = "is no language model of this benchmark", ", ".join(models)
        problem = Problem(message, str(bench.file), None, field, name, allowed or "none is in it")
        raise SetupError(problem)
    return models[name]


def open_examples(entry: ExamplesConfig, bench: Bench, folder: Path) -> Examples:
    """The learner of an entry. Raises SetupError where its judge cannot be shown cases."""
    field = f"judges.{entry.name}.from"
    judge = language_model(bench, entry.source, field)
    if found := _unfit(judge):
        message = f"{found[0]}, and labelled answers have labels alone to show"
        raise SetupError(Problem(message, str(bench.file), None, field, judge.name, found[1]))
    opened = partial(open_judge, judge, bench.file, folder)
    if entry.by == WORDS:
        return Examples(judge, opened, entry.k)
    kept = KeptVectors(find_beside(entry.by, bench.file.parent), folder / "tuning" / ".vectors")
    return Examples(judge, opened, entry.k, kept)


class Examples:
    """The judge `judge`, with the `k` nearest labelled cases before its question. A `Learner`.

    They are found by the vectors `kept`, or by words (BM25). `opened` makes the judge once more, on
    an engine of its own. Choosing the nearest: Liu et al. (2022), "What Makes Good In-Context
    Examples for GPT-3?", section 3.
    """

    def __init__(
        self, judge: LLMJudge, opened: Callable[[], LLMJudge], k: int,
        kept: KeptVectors | None = None,
    ) -> None:  # fmt: skip
        self._of, self._opened, self._k, self._kept = judge, opened, k, kept
        self.needs: Sequence[str] = (judge.name,)
        self.parse_retries = judge.parse_retries
        self.calls = (0, judge.calls_an_answer)
        self._judge: LLMJudge | None = None

    def describe(self) -> Mapping[str, Any]:
        by = self._kept.about if self._kept else {"name": WORDS}
        return {"learn": "examples", "from": self._of.signature, "k": self._k, "by": by}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Keeps the cases. Raises SetupError where none can be shown with all of its labels."""
        labels = {
            metric.id: [metric.label_texts[i] if i >= 0 else None for i in train.labels[metric.id]]
            for metric in train.rubric.metrics
        }
        cases = _Cases(train.answers, labels, self._of, self._k)
        whole = [sum(bool(cases.reply(p, i)) for i in range(len(train))) for p in self._of.parts]
        for part in (part for part, n in zip(self._of.parts, whole, strict=True) if not n):
            message = "no answer to learn from has a label of each of these, to be shown as a whole"
            found = ", ".join(metric.id for metric in part.metrics)
            allowed = "a judge with `mode: per_metric`, or fewer `metrics`"
            raise SetupError(Problem(message, "", None, "rubric", found, allowed))
        if price := self._of.config.settings.price:
            work.budget.expect(price.cost(cases.usage()) or 0.0)
        held = BytesIO()
        write_answers(held, train.answers)
        write_atomically(folder / _CASES, held.getvalue())
        write_atomically(folder / _LABELS, to_json(labels).encode())
        return {"cases": len(train), "cases_with_every_label": min(whole)}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        judge = self._judge = self._judge or self._opened()
        answers = list(AnswerFile.open(folder / _CASES))
        labels = json.loads((folder / _LABELS).read_text())
        scores = _scores(answers, self._kept)
        cases = _Cases(answers, labels, judge, self._k, scores)
        yield from judge.shown_before(cases.turns).judge(tasks)
        if cases.without_room:
            n = f"{cases.without_room:,} requests of {judge.name}"
            _LOG.warning("%s had no room for all of their %s examples", n, self._k)

    def wind_down(self) -> None:
        """Start no other call."""
        if self._judge is not None:
            self._judge.wind_down()

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
        if self._kept is not None:
            self._kept.close()
        self._judge = None


def _unfit(judge: LLMJudge) -> tuple[str, str] | None:
    """Why this judge cannot be shown cases, and what could."""
    if judge.prompt.reply not in ("json", "brackets", "likert"):
        return "gives reasons with its labels", "a prompt whose reply is json, brackets or likert"
    if judge.prompt.shows != "answer":
        return "is shown several texts at once", "a prompt that shows one answer"
    return ("looks things up", "a judge without `knowledge`") if judge.config.knowledge else None


@dataclass
class _Cases:
    """The labelled cases of a folder, and what is said of them to `judge`. `scores` says of a text
    how near each case is, (cases,)."""

    answers: Sequence[Answer]
    labels: Mapping[str, Sequence[str | None]]
    judge: LLMJudge
    k: int
    scores: Callable[[str], FloatArray] = field(default=lambda text: np.zeros(0))
    without_room: int = 0  # requests that are shown fewer

    def turns(self, part: Rubric, answer: Answer) -> Iterator[Message]:
        """What is said before the question about `answer`: the farthest case first."""
        judge, told, room = self.judge, list[Message](), self._room(part, answer)
        for place in self._nearest(part, answer):
            user = judge.prompt.render(part, self.answers[place])[1]
            reply = self.reply(part, place)
            room -= len(user) + len(reply)
            if room < 0:
                self.without_room += 1
                break
            told = [Message("user", user), Message("assistant", reply), *told]
        return iter(told)

    def reply(self, part: Rubric, place: int) -> str:
        """What the judge would say of a case; empty where it lacks a label."""
        labels = {metric.id: self.labels[metric.id][place] or "" for metric in part.metrics}
        if not all(labels.values()):
            return ""
        thresholds = self.judge.config.thresholds
        try:
            return written_reply(self.judge.prompt.reply, part, labels, thresholds).text
        except ValueError as error:
            raise SetupError(Problem(str(error), field="thresholds")) from None

    def usage(self) -> Usage:
        """What a request for the longest of some of the cases may use."""
        some, judge = self.answers[:50], self.judge
        longest = max(sum(map(len, judge.prompt.render(p, a))) for p in judge.parts for a in some)
        prompt = (self.k + 1) * longest // CHARACTERS_A_TOKEN
        return Usage(1, prompt, 2 * judge.likely_reply_tokens // judge.calls_an_answer)

    def _room(self, part: Rubric, answer: Answer) -> float:
        """For how many characters of cases the model's context has room, if it is known."""
        context = self.judge.describe()["backend"].get("context")
        if context is None:
            return math.inf
        own = sum(map(len, self.judge.prompt.render(part, answer)))
        return float((context - 2 * self.judge.likely_reply_tokens) * _CHARACTERS_A_TOKEN - own)

    def _nearest(self, part: Rubric, answer: Answer) -> list[int]:
        """The nearest first. Where all have the same labels, the last gives way to the nearest with
        others."""
        able = self._able(part, answer)
        chosen = list(islice(able, self.k))
        kinds = {self.reply(part, place) for place in chosen}
        if len(kinds) == 1 and self.k > 1:
            other = next((place for place in able if self.reply(part, place) not in kinds), None)
            chosen[-1] = chosen[-1] if other is None else other
        return chosen

    def _able(self, part: Rubric, answer: Answer) -> Iterator[int]:
        """Cases with all labels, the nearest first: none to the same question, and none that says
        nearly the same as the answer or as a case before it."""
        question, said = normalise(answer.question), [sketch(answer.text)]
        known = Known(said)
        for place in np.argsort(-self.scores(_text(answer)), kind="stable").tolist():
            case = self.answers[place]
            again = question and normalise(case.question) == question
            if not again and self.reply(part, place) and not known.holds(case.text):
                said.append(sketch(case.text))
                known = Known(said)
                yield place


def _text(answer: Answer) -> str:
    return f"{answer.question}\n{answer.text}"


def _scores(answers: Sequence[Answer], kept: KeptVectors | None) -> Callable[[str], FloatArray]:
    """How near each of the answers is to a text: by their vectors, or by words."""
    texts = [_text(answer) for answer in answers]
    if kept is None:
        return WordSearch(texts).scores
    vectors = kept.of(texts)
    return lambda text: np.asarray(vectors @ kept.of([text])[0])
