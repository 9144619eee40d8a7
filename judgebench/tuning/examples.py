"""Labelled cases as worked examples before the question: what people said of the nearest ones.

Texts that a language model is trained on, as token ids: a prompt and its reply.

The control that knows only who wrote an answer.

Labels that machines gave ("silver"): read from files, and kept from what they must not teach.

A curriculum: what is learnt in which order, after section 3.2 of AutoMedEval.

There a judge learns first from labels of low quality, then from a mixture, then from the best, so
that it meets the form of a verdict before its quality. 1,911 of the 3,823 lower ones (half) are the
first block, half of the 4,788 better ones the last, and all that is left the block between.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgebench.data.conversation import answer_line, read_answers
from judgebench.errors import Problem, SetupError
from judgebench.files import read_models, to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import written_reply
from judgebench.judges.retrieval import WORDS, KeptVectors, WordSearch
from judgebench.learning.folds import Known, alike_texts, components, sketch
from judgebench.learning.learnt import Learner, Material, TrainingSet, verdict_of
from judgebench.models.checkpoints import ChatEncoder, find_beside, tokenizer_of
from judgebench.models.contract import Message, Request
from judgebench.records import Answer, Usage, Verdict
from judgebench.rubric import Rubric, normalise
from judgebench.runs.bench import Bench
from judgebench.runs.forecast import CHARACTERS_A_TOKEN
from judgebench.runs.judging import Work
from judgebench.runs.load import open_judge
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import indexed
from judgebench.tuning.config import HUMAN, MIXED, SHUFFLED, ExamplesConfig, Stage, files_of


@dataclass(frozen=True)
class Block:
    """The cases learnt in one go, by the name of their stage."""

    name: str
    train: TrainingSet


def blocks_of(train: TrainingSet, stages: Sequence[Stage], seed: int) -> Sequence[Block]:
    """The blocks of a training in their order: the stages, all labels of people where there is
    none, and after them what is to be learnt again. Blocks without an answer are left out."""
    mixes = any(stage.data == MIXED for stage in stages)
    left = {HUMAN: replace(train, beside={}, again=()), **train.beside}
    drawn: dict[int, TrainingSet] = {}
    rng = np.random.default_rng(seed)
    for number, stage in enumerate(stages):
        if stage.data in left:
            share = stage.share or (0.5 if mixes else 1.0)
            drawn[number], left[stage.data] = _split(left[stage.data], share, rng)
    for number, stage in enumerate(stages):
        if stage.data == MIXED:
            rest = joined([left[name] for name in (*files_of(stages), HUMAN)])
            drawn[number] = _split(rest, stage.share or 1.0, rng)[0]
            left = {name: found.only(np.arange(0)) for name, found in left.items()}
    blocks = [Block(stages[number].data, drawn[number]) for number in sorted(drawn)]
    if not stages:
        blocks = [Block(HUMAN, left[HUMAN])]
    if any(stage.data == SHUFFLED for stage in stages):
        whole = joined([block.train for block in blocks])
        blocks = [Block(SHUFFLED, whole.only(rng.permutation(len(whole))))]
    blocks += [Block(f"again-{n}", more) for n, more in enumerate(train.again, start=1)]
    return [block for block in blocks if len(block.train)]


def described(blocks: Sequence[Block], seed: int) -> Mapping[str, Any]:
    """A description of a training's blocks from its facts."""
    sizes = [{"data": block.name, "n": len(block.train)} for block in blocks]
    return {"stages": sizes, "stages_seed": seed}


def joined(sets: Sequence[TrainingSet]) -> TrainingSet:
    """All of them as one, in their order; what is beside them is left out."""
    first = sets[0]
    reasons: list[str] = []
    for one in sets:
        reasons += one.reasons or [""] * len(one)
    return TrainingSet(
        first.rubric,
        [answer for one in sets for answer in one.answers],
        {metric: np.concatenate([one.labels[metric] for one in sets]) for metric in first.labels},
        np.concatenate([one.question for one in sets]),
        np.concatenate([one.text for one in sets]),
        reasons if any(reasons) else (),
    )


def _split(
    found: TrainingSet, share: float, rng: np.random.Generator
) -> tuple[TrainingSet, TrainingSet]:
    """A share of them at random, and the rest; both in their order."""
    drawn = rng.permutation(len(found)) < round(share * len(found))
    return found.only(np.flatnonzero(drawn)), found.only(np.flatnonzero(~drawn))


class SilverLine(BaseModel):
    """The part of a line of `judgebench tune data`, or of a file of the same form; other keys
    (where the labels come from) are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    item_id: str = Field(min_length=1)
    text: str
    labels: dict[str, str] = Field(min_length=1)
    question: str = ""
    system: str = ""
    group: str = ""
    reference: str | None = None
    rationale: str = ""


@dataclass(frozen=True)
class SilverLabels:
    """The content of a file: answers, and for each a label of some metrics and perhaps a reason."""

    answers: Sequence[Answer]
    labels: Mapping[str, IntArray]  # by metric (answers,), -1 where there is none
    reasons: Sequence[str]


def read_silver(path: Path, rubric: Rubric) -> SilverLabels:
    """Raises SetupError with every line that is unsound and every label that the rubric lacks, and
    where there is no line."""
    lines = read_models(path, SilverLine, lambda line: _wrong_labels(line, rubric))
    if not lines:
        raise SetupError(Problem("holds no line to learn from", str(path)))
    keys = ("item_id", "text", "question", "system", "reference", "group")
    answers = [Answer(**{key: getattr(line, key) for key in keys}) for line in lines]
    labels = {
        m.id: [m.index(line.labels[m.id]) if m.id in line.labels else -1 for line in lines]
        for m in rubric.metrics
    }
    codes = {metric: np.array(found, np.int64) for metric, found in labels.items()}
    return SilverLabels(answers, codes, [line.rationale for line in lines])


def _wrong_labels(line: SilverLine, rubric: Rubric) -> Iterator[Problem]:
    metrics = {metric.id: metric.label_texts for metric in rubric.metrics}
    if not metrics.keys() & line.labels.keys():
        message, found = "has a label of no metric of the rubric", ", ".join(line.labels)
        yield Problem(message, "", None, "labels", found, ", ".join(metrics))
    for key, label in line.labels.items():
        if label not in metrics.get(key, (label,)):
            allowed = ", ".join(metrics[key])
            yield Problem("is not a label", "", None, f"labels.{key}", label, allowed)


def with_silver(material: Material, found: Mapping[str, SilverLabels]) -> Material:
    """The material with these labels by the file, to be learnt from beside the human ones.

    Questions and texts are numbered anew over all of them together, so that of two that are
    (nearly) the same a fold knows, whichever file holds them. Who is in which fold, and the truth,
    stay what they were.
    """
    if not found:
        return material
    own = list(material.answers)
    every = own + [answer for silver in found.values() for answer in silver.answers]
    named = indexed([replace(answer, item_id=str(row)) for row, answer in enumerate(every)])
    asked = [replace(a, text=a.question or f"without a question: {a.item_id}") for a in named]
    question = components(named.clusters.codes, alike_texts(indexed(asked)))
    text = alike_texts(named)
    sets, begin = {}, len(own)
    for name, silver in found.items():
        rows = slice(begin, begin + len(silver.answers))
        about = (silver.labels, question[rows], text[rows], silver.reasons)
        sets[name] = TrainingSet(material.rubric, silver.answers, *about)
        begin = rows.stop
    folds = replace(material.folds, question=question[: len(own)], text=text[: len(own)])
    return replace(material, folds=folds, silver=sets)


_COUNTS = "counts.json"


class BySystem(Learner):
    """The shares of the labels that the same system's answers got; of a system without a label,
    those of all."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def describe(self) -> Mapping[str, Any]:
        return {"learn": "by-system"}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        systems = np.array([answer.system for answer in train.answers])
        counts: dict[str, dict[str, list[int]]] = {}
        for metric in train.rubric.metrics:
            labels, k = train.labels[metric.id], len(metric.labels)
            given = labels >= 0
            own = {str(s): np.bincount(labels[given & (systems == s)], minlength=k).tolist()
                   for s in np.unique(systems)}  # fmt: skip
            own = {system: found for system, found in own.items() if any(found)}
            counts[metric.id] = {**own, "": np.bincount(labels[given], minlength=k).tolist()}
        write_atomically(folder / _COUNTS, to_json(counts).encode())
        return {"systems": sorted(set(systems.tolist()))}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        counts = json.loads((folder / _COUNTS).read_text())
        for task in tasks:
            found = {}
            for metric in self._rubric.metrics:
                own = counts[metric.id].get(task.answer.system) or counts[metric.id][""]
                found[metric.id] = np.array(own) / sum(own) if any(own) else None
            yield verdict_of(task, self._rubric, found)


@dataclass(frozen=True)
class Example:
    """A text as token ids. Each token at one of the `places` (in order, from 1 on) is learnt: it is
    predicted from those before it."""

    ids: tuple[int, ...]
    places: tuple[int, ...]


class Texts:
    """Makes examples for a model (folder, hub name or GGUF file), with its own chat template.

    The tokens are those of the whole text, as where labels are weighed, and of the
    prompt they are those that the model reads when it is asked. Raises SetupError for a model
    without a chat template, and one whose tokenizer does not tell where a token stands.
    """

    def __init__(self, model: str) -> None:
        self._tokenizer = tokenizer_of(model)
        self._encoder = ChatEncoder(self._tokenizer, model)

    def example(
        self, request: Request, reply: str, spans: Sequence[tuple[int, int]] | None = None
    ) -> Example:
        """The request with the reply, of which the tokens in the `spans` (from and to which
        character) are learnt; without spans all of it, and that it ends there.

        Raises ValueError where there is nothing to learn.
        """
        prompt = self._encoder.chat(request.messages)
        found = self._tokenizer(
            prompt + reply, add_special_tokens=False, return_offsets_mapping=True
        )
        ids, offsets = list(found["input_ids"]), found["offset_mapping"]
        wanted = [(0, len(reply))] if spans is None else spans
        places = [
            place
            for place, (start, end) in enumerate(offsets)
            if any(start < len(prompt) + to and end > len(prompt) + begin for begin, to in wanted)
        ]
        if not places:
            raise ValueError("a reply without a token to learn")
        if spans is None and self._tokenizer.eos_token_id is not None:
            places.append(len(ids))
            ids.append(self._tokenizer.eos_token_id)
        return Example(tuple(ids), tuple(places))


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


class Examples(Learner):
    """The judge `judge`, with the `k` nearest labelled cases before its question.

    They are found by the vectors `kept`, or by words (BM25). `opened` makes the judge once more, on
    an engine of its own. Choosing the nearest: Liu et al. (2022), "What Makes Good In-Context
    Examples for GPT-3?", section 3.
    """

    def __init__(
        self, judge: LLMJudge, opened: Callable[[], LLMJudge], k: int,
        kept: KeptVectors | None = None,
    ) -> None:  # fmt: skip
        self._of, self._opened, self._k, self._kept = judge, opened, k, kept
        self.needs = (judge.name,)
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
        write_atomically(folder / _CASES, "".join(map(answer_line, train.answers)).encode())
        write_atomically(folder / _LABELS, to_json(labels).encode())
        return {"cases": len(train), "cases_with_every_label": min(whole)}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        judge = self._judge = self._judge or self._opened()
        answers = read_answers(folder / _CASES)
        labels = json.loads((folder / _LABELS).read_text())
        scores = _scores(answers, self._kept)
        cases = _Cases(answers, labels, judge, self._k, scores)
        yield from judge.shown_before(cases.turns).judge(tasks)
        if cases.without_room:
            n = f"{cases.without_room:,} requests of {judge.name}"
            _LOG.warning("%s had no room for all of their %s examples", n, self._k)

    def drain(self) -> None:
        if self._judge is not None:
            self._judge.drain()

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
        if self._kept is not None:
            self._kept.close()
        self._judge = None


def _unfit(judge: LLMJudge) -> tuple[str, str] | None:
    """The reason why this judge cannot be shown cases, and what could."""
    if judge.prompt.reply not in ("json", "brackets"):
        return "gives reasons with its labels", "a prompt whose reply is json or brackets"
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
        """The turns before the question about `answer`: the farthest case first."""
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
        """The judge's reply to a case; empty where it lacks a label."""
        labels = {metric.id: self.labels[metric.id][place] or "" for metric in part.metrics}
        if not all(labels.values()):
            return ""
        return written_reply(self.judge.prompt.reply, part, labels)

    def usage(self) -> Usage:
        """The tokens that a request for the longest of some cases may use."""
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
    """The nearness of each answer to a text: by their vectors, or by words."""
    texts = [_text(answer) for answer in answers]
    if kept is None:
        return WordSearch(texts).scores
    vectors = kept.of(texts)
    return lambda text: np.asarray(vectors @ kept.of([text])[0])
