"""What a judge learns from: labelled cases before its question, the texts of a training, and labels
of machines in a curriculum.

The curriculum is that of section 3.2 of AutoMedEval. There a judge learns first from labels of low
quality, then from a mixture, then from the best, so that it meets the form of a verdict before its
quality. 1,911 of the 3,823 lower ones (half) are the first block, half of the 4,788 better ones the
last, and all that is left the block between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgebench.data.conversation import answer_line, read_answers
from judgebench.errors import Problem, SetupError
from judgebench.files import read_models, to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.judges.replies import written_reply
from judgebench.judges.retrieval import WordSearch
from judgebench.learning.folds import alike, alike_texts, components
from judgebench.learning.learnt import Material, TrainingSet
from judgebench.models.checkpoints import ChatEncoder, tokenizer_of
from judgebench.models.contract import Message, Request
from judgebench.prompt import Prompt
from judgebench.records import Answer, Verdict
from judgebench.rubric import Rubric, normalise
from judgebench.runs.bench import Bench
from judgebench.runs.judging import Work
from judgebench.studies.answers import indexed
from judgebench.tuning.advisers import Adviser, OfJudge, open_adviser
from judgebench.tuning.config import HUMAN, MIXED, SHUFFLED, ExamplesConfig, files_of


@dataclass(frozen=True)
class Block:
    """The cases learnt in one go, by the name of their stage."""

    name: str
    train: TrainingSet


def blocks_of(train: TrainingSet, stages: Sequence[str], seed: int) -> Sequence[Block]:
    """The blocks of a training in their order: the stages, or all labels of people where there is
    none. Blocks without an answer are left out."""
    rng, share = np.random.default_rng(seed), 0.5 if MIXED in stages else 1.0
    left = {HUMAN: replace(train, beside={}), **train.beside}
    drawn: dict[str, TrainingSet] = {}
    for stage in stages or (HUMAN,):
        if stage in left:
            drawn[stage], left[stage] = _split(left[stage], share, rng)
    if MIXED in stages:
        rest = joined([left[name] for name in (*files_of(stages), HUMAN)])
        drawn[MIXED] = _split(rest, 1.0, rng)[0]
    blocks = [Block(name, drawn[name]) for name in stages or (HUMAN,) if name in drawn]
    if SHUFFLED in stages:
        whole = joined([block.train for block in blocks])
        blocks = [Block(SHUFFLED, whole.only(rng.permutation(len(whole))))]
    return [block for block in blocks if len(block.train)]


def described(blocks: Sequence[Block], seed: int) -> Mapping[str, Any]:
    """A description of a training's blocks from its facts."""
    return {
        "stages": [{"data": block.name, "n": len(block.train)} for block in blocks],
        "stages_seed": seed,
    }


def joined(sets: Sequence[TrainingSet]) -> TrainingSet:
    """All of them as one, in their order; what is beside them is left out."""
    reasons = [reason for part in sets for reason in part.reasons or [""] * len(part)]
    return TrainingSet(
        sets[0].rubric,
        [answer for part in sets for answer in part.answers],
        {m: np.concatenate([part.labels[m] for part in sets]) for m in sets[0].labels},
        np.concatenate([part.question for part in sets]),
        np.concatenate([part.text for part in sets]),
        reasons if any(reasons) else (),
    )


def _split(
    train: TrainingSet, share: float, rng: np.random.Generator
) -> tuple[TrainingSet, TrainingSet]:
    """A share of them at random, and the rest; both in their order."""
    is_drawn = rng.permutation(len(train)) < round(share * len(train))
    return train.only(np.flatnonzero(is_drawn)), train.only(np.flatnonzero(~is_drawn))


class SilverLine(BaseModel):
    """The part of a line of `judgebench tune review`, or of a file of the same form; other keys
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


def read_silver(path: Path, rubric: Rubric) -> TrainingSet:
    """The answers of a file with their labels and reasons; `with_silver` numbers their questions
    and texts.

    Raises SetupError with every line that is unsound and every label that the rubric lacks, and
    where there is no line.
    """
    lines = read_models(path, SilverLine, lambda line: _wrong_labels(line, rubric))
    if not lines:
        raise SetupError(Problem("holds no line to learn from", str(path)))
    answers = [Answer(**line.model_dump(exclude={"labels", "rationale"})) for line in lines]
    codes = {
        m.id: np.array([m.index(x.labels[m.id]) if m.id in x.labels else -1 for x in lines])
        for m in rubric.metrics
    }
    rows = np.arange(len(lines))
    return TrainingSet(rubric, answers, codes, rows, rows, [line.rationale for line in lines])


def _wrong_labels(line: SilverLine, rubric: Rubric) -> Iterator[Problem]:
    metrics = {metric.id: metric.label_texts for metric in rubric.metrics}
    if not metrics.keys() & line.labels.keys():
        message, found = "has a label of no metric of the rubric", ", ".join(line.labels)
        yield Problem(message, "", None, "labels", found, ", ".join(metrics))
    for key, label in line.labels.items():
        if label not in metrics.get(key, (label,)):
            allowed = ", ".join(metrics[key])
            yield Problem("is not a label", "", None, f"labels.{key}", label, allowed)


def with_silver(material: Material, silver: Mapping[str, TrainingSet]) -> Material:
    """The material with these sets by their files, to be learnt from beside the human labels.

    Questions and texts are numbered anew over all of them together, so that of two that are
    (nearly) the same a fold knows, whichever file holds them. Who is in which fold, and the truth,
    stay what they were.
    """
    if not silver:
        return material
    answers = [*material.answers, *(a for labelled in silver.values() for a in labelled.answers)]
    every = indexed([replace(answer, item_id=str(row)) for row, answer in enumerate(answers)])
    questions = [a.question or f"without a question: {a.item_id}" for a in every]
    question = components(every.clusters.codes, alike(questions))
    text, begin, sets = alike_texts(every), len(material.answers), {}
    folds = replace(material.folds, question=question[:begin], text=text[:begin])
    for name, labelled in silver.items():
        rows = slice(begin, begin + len(labelled))
        sets[name] = replace(labelled, question=question[rows], text=text[rows])
        begin = rows.stop
    return replace(material, folds=folds, silver=sets)


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


_CASES, _LABELS = "cases.jsonl", "labels.json"


def open_examples(entry: ExamplesConfig, bench: Bench, folder: Path) -> Examples:
    """The learner of an entry. Raises SetupError where its judge cannot be shown cases."""
    field = f"judges.{entry.name}.from"
    asks = open_adviser(bench, entry.source, field, folder)
    prompt = asks.judge.prompt
    is_plain = prompt.reply in ("json", "brackets") and prompt.shows == "answer"
    if not is_plain or asks.judge.config.knowledge:
        message = (
            "gives reasons with its labels, looks things up or is shown several texts, and "
            "labelled answers have labels alone to show"
        )
        allowed = "a prompt that shows one answer, whose reply is json or brackets"
        raise SetupError(Problem(message, str(bench.file), None, field, asks.judge.name, allowed))
    return Examples(asks, entry.k)


class Examples(OfJudge):
    """The judge that it `asks`, with the `k` labelled cases that are nearest by their words (BM25)
    before its question. Choosing the nearest: Liu et al. (2022), "What Makes Good In-Context
    Examples for GPT-3?", section 3.
    """

    def __init__(self, asks: Adviser, k: int) -> None:
        super().__init__(asks)
        self._k, self.calls = k, (0, asks.judge.calls_an_answer)

    def describe(self) -> Mapping[str, Any]:
        return {"learn": "examples", "from": self.asks.judge.signature, "k": self._k}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Keeps the cases. Those are shown that have a label of each metric which is asked for at
        once."""
        labels = {metric: codes.tolist() for metric, codes in train.labels.items()}
        write_atomically(folder / _CASES, "".join(map(answer_line, train.answers)).encode())
        write_atomically(folder / _LABELS, to_json(labels).encode())
        return {"cases": len(train)}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        answers, labels = read_answers(folder / _CASES), json.loads((folder / _LABELS).read_text())
        search = WordSearch([*map(_text, answers)])
        cases = _Cases(answers, labels, self.asks.judge.prompt, self._k, search)
        yield from self.asks.asked.shown_before(cases.turns).judge(tasks)


@dataclass(frozen=True)
class _Cases:
    """The labelled cases of a folder, and what is said of them to a judge with this prompt."""

    answers: Sequence[Answer]
    labels: Mapping[str, Sequence[int]]  # by metric, -1 where there is none
    prompt: Prompt
    k: int
    search: WordSearch

    def turns(self, part: Rubric, answer: Answer) -> Iterator[Message]:
        """The turns before the question about `answer`: the farthest case first. Where all of the
        nearest have the same labels, the last gives way to the nearest with others."""
        able = self._able(part, answer)
        nearest = list(islice(able, self.k))
        replies = {self._reply(part, row) for row in nearest}
        if len(replies) == 1 and self.k > 1:
            others = (row for row in able if self._reply(part, row) not in replies)
            nearest[-1] = next(others, nearest[-1])
        for row in reversed(nearest):
            yield Message("user", self.prompt.render(part, self.answers[row])[1])
            yield Message("assistant", self._reply(part, row))

    def _able(self, part: Rubric, answer: Answer) -> Iterator[int]:
        """Cases with all labels, the nearest first, each text once and none with that of the
        answer."""
        seen = {normalise(answer.text)}
        for row in np.argsort(-self.search.scores(_text(answer)), kind="stable").tolist():
            text = normalise(self.answers[row].text)
            if (
                text not in seen
                and min(self.labels[metric.id][row] for metric in part.metrics) >= 0
            ):
                seen.add(text)
                yield row

    def _reply(self, part: Rubric, row: int) -> str:
        labels = {m.id: m.label_texts[self.labels[m.id][row]] for m in part.metrics}
        return written_reply(self.prompt.reply, part, labels)


def _text(answer: Answer) -> str:
    return f"{answer.question}\n{answer.text}"
