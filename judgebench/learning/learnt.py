"""A judge that learns: for every answer, from the labels of those that it may know.

What a judge learns from, and what it must never see.
"""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from judgebench.data.formats import to_csv
from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.folds import Folds, folds_of
from judgebench.records import Answer, HumanLabel, Status, Verdict, content_hash, signature_of
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.bench import LearntJudge as JudgeOfWing
from judgebench.runs.judging import Work
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.reference_labels import Ratings, TruthConfig, ratings_by_metric
from judgebench.text import counted


@dataclass(frozen=True)
class TrainingSet:
    """Answers with the truth that their human labels make.

    `labels`, by metric, are places among the metric's labels (answers,), -1 where there is none;
    they come from the labels of these answers alone. `question` and `text` (answers,) are numbers
    that answers share which have one question, or nearly the same text.

    `reasons` (answers,), where there are any, say why the labels are right. `beside` holds, by the
    file, what may be learnt from as well: answers with the labels that machines gave them.
    """

    rubric: Rubric
    answers: Sequence[Answer]
    labels: Mapping[str, IntArray]
    question: IntArray
    text: IntArray
    reasons: Sequence[str] = ()
    beside: Mapping[str, TrainingSet] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def hash(self) -> str:
        """Of all that can be learnt from."""
        answers = [[answer.item_id, answer.content_hash, answer.system] for answer in self.answers]
        labels = {metric: codes.tolist() for metric, codes in self.labels.items()}
        beside = {name: silver.hash for name, silver in self.beside.items()}
        return content_hash([answers, labels, list(self.reasons), beside])

    def only(self, rows: IntArray) -> TrainingSet:
        """Some of the answers, with the labels that they have here."""
        return replace(
            self,
            answers=[self.answers[row] for row in rows.tolist()],
            labels={metric: found[rows] for metric, found in self.labels.items()},
            question=self.question[rows],
            text=self.text[rows],
            reasons=[self.reasons[row] for row in rows.tolist()] if self.reasons else (),
        )

    def apart_from(self, question: IntArray, text: IntArray) -> TrainingSet:
        """Without all that has one of these questions, or says nearly one of these texts."""
        known = np.isin(self.question, question) | np.isin(self.text, text)
        beside = {name: more.apart_from(question, text) for name, more in self.beside.items()}
        return replace(self.only(np.flatnonzero(~known)), beside=beside)

    def folds(self, n: int, seed: int = 0) -> Iterator[tuple[TrainingSet, TrainingSet]]:
        """Nested folds, to choose by: what is learnt from, and what is then judged. As many as
        there are questions, where there are fewer than `n`."""
        questions = np.unique(self.question)
        drawn = np.random.default_rng(seed).permutation(questions)
        for part in np.array_split(drawn, min(n, len(questions))):
            judged = self.only(np.flatnonzero(np.isin(self.question, part)))
            yield self.apart_from(part, judged.text), judged


@dataclass(frozen=True)
class Cell:
    """Rows to learn from, and rows that are then judged."""

    name: str
    train: IntArray
    judged: IntArray


@dataclass(frozen=True)
class Material:
    """All answers of a study with all human labels: training sets are cut from it."""

    rubric: Rubric
    answers: IndexedAnswers
    ratings: Mapping[str, Ratings]
    truth: TruthConfig
    folds: Folds
    silver: Mapping[str, TrainingSet] = field(default_factory=dict)  # by file; never the truth

    def training(self, rows: IntArray, judged: IntArray | None = None) -> TrainingSet:
        """The answers of these rows that have a truth of any metric, which is made of their labels
        alone. Beside them stands the silver, but for what has the question or (nearly) the text of
        another answer that is then `judged`, and for answers of a system that only those are of."""
        labels = {m.id: self._truth(m.id, rows) for m in self.rubric.metrics}
        there = np.any([found >= 0 for found in labels.values()], axis=0)
        kept = rows[there]
        return TrainingSet(
            self.rubric,
            [self.answers[row] for row in kept.tolist()],
            {metric: found[there] for metric, found in labels.items()},
            self.folds.question[kept],
            self.folds.text[kept],
            beside=self._beside(rows, rows if judged is None else judged),
        )

    def _beside(self, rows: IntArray, judged: IntArray) -> Mapping[str, TrainingSet]:
        unseen = np.setdiff1d(judged, rows)
        known = {self.answers[row].system for row in rows.tolist()}
        new = {self.answers[row].system for row in unseen.tolist()} - known
        beside = {}
        for name, found in self.silver.items():
            kept = np.array([answer.system not in new for answer in found.answers], dtype=bool)
            about = (self.folds.question[unseen], self.folds.text[unseen])
            beside[name] = found.only(np.flatnonzero(kept)).apart_from(*about)
        return beside

    @cached_property
    def labelled(self) -> IntArray:
        """The rows with a label of somebody who makes the truth."""
        given = [r.rows[(r.values >= 0).any(axis=1)] for r in self.ratings.values()]
        return np.unique(np.concatenate(given))

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """Each fold, judged by what is learnt from the others."""
        judged = [np.flatnonzero(self.folds.of == fold) for fold in range(self.folds.n)]
        return [
            Cell(f"fold-{n}", self.folds.training(rows, self.labelled), rows)
            for n, rows in enumerate(judged, start=1)
        ]

    def problems(self) -> Iterator[Problem]:
        """Problems that keep a judge from learning each metric in folds."""
        for metric in self.rubric.metrics:
            values, field = self.ratings[metric.id].values, f"rubric.{metric.id}"
            n_labelled = int((values >= 0).any(axis=1).sum())
            if n_labelled < self.folds.n:
                message = "has fewer answers with a human label to learn from than there are folds"
                yield Problem(message, field=field, found=f"{n_labelled} of {self.folds.n}")
            elif len(np.unique(values[values >= 0])) < 2:
                yield Problem("has one human label only: learning needs two", field=field)

    def _truth(self, metric: str, rows: IntArray) -> IntArray:
        """(rows,), -1 where there is none."""
        ratings = self.ratings[metric]
        found = np.full(len(self.answers), -1, dtype=np.int64)
        inner = ratings.at(np.isin(ratings.rows, rows))
        found[inner.rows] = inner.truth(self.rubric.only([metric]).metrics[0], self.truth)
        return found[rows]


def material_of(
    rubric: Rubric, answers: IndexedAnswers, labels: Sequence[HumanLabel], truth: TruthConfig,
    folds: int, seed: int = 0,
) -> Material:  # fmt: skip
    """Raises SetupError where there are too few questions for so many folds."""
    makers = truth.choose({label.annotator for label in labels})
    ratings = {
        metric: found.of([a for a in makers if a in found.annotators])
        for metric, found in ratings_by_metric(rubric.metrics, answers.row, labels).items()
    }
    return Material(rubric, answers, ratings, truth, folds_of(answers, folds, seed))


def bench_material(bench: Bench, rubric: Rubric, folds: int, seed: int) -> Material:
    """Return what the judges of a benchmark learn these metrics from, in folds of its data alone:
    answers that a stress test adds are judged in them. Raises SetupError as `material_of`."""
    labelled, answers = (
        indexed([answer for answer in each if answer.kind == "answer"])
        for each in (bench.data_answers or bench.answers, bench.answers)
    )
    material = material_of(rubric, labelled, bench.dataset.labels, bench.config.truth, folds, seed)
    return replace(material, answers=answers, folds=material.folds.over(answers))


FOLDS = ".folds.csv"  # behind a judge's name: what is judged in which fold, and left out of which
LEARNT = "learnt.json"  # written last: a folder that holds it is whole
SEARCH = "search"  # below it: what was asked on the way, which no export takes along


class Learner(Protocol):
    """One way to learn. What it has learnt lies in a folder and in nothing else, so that it can be
    taken along."""

    needs: Sequence[str] = ()  # judges whose verdicts it reads
    calls: tuple[int, int] = (0, 0)  # of models, at most: to learn once, and for each answer
    hosts: Sequence[str] = ()  # that it contacts, where they are not those of other judges
    parse_retries: int = 0

    @abstractmethod
    def describe(self) -> Mapping[str, Any]:
        """Return all that its verdicts depend on besides what it learns from: recipe, base weights,
        the signatures of the judges that it needs."""

    @abstractmethod
    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Learn, and keep it in the folder, which may hold part of it from an earlier try; returns
        facts to be kept beside (sizes, steps, what was chosen).

        Raises SetupError where nothing can be learnt from so little.
        """

    @abstractmethod
    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        """Judge by what the folder holds. Name and signature of the verdicts are filled in
        later."""

    @property
    def spent(self) -> float:
        """US dollars for what all its cells share."""
        return 0.0

    def costs(self, folder: Path) -> Iterable[float]:
        """Return the US dollars for each thing asked in order to learn what the folder holds."""
        return ()

    def export(self, folder: Path, to: Path) -> None:
        """Copy what judges from the folder to another one: of a language model as transformers and
        peft read it."""
        shutil.copytree(folder, to, ignore=shutil.ignore_patterns(SEARCH, LEARNT))

    def drain(self) -> None:
        """Start no other call."""
        return

    def close(self) -> None:
        """Give back engines; may be called twice."""
        return


def describe_folds(material: Material) -> Mapping[str, Any]:
    """A description of the folds for the manifest."""
    return {
        "answers": [len(cell.judged) for cell in material.cells],
        "learnt_from": [len(cell.train) for cell in material.cells],
        "joined": material.folds.joined,
    }


class ByLearner(JudgeOfWing):
    """A judge whose verdicts are those of a learner, under its own name and signature."""

    def __init__(self, name: str, learner: Learner, about: Mapping[str, Any]) -> None:
        self.name, self.learner, self.needs = name, learner, learner.needs
        self.parse_retries, self.hosts = learner.parse_retries, learner.hosts
        self._about, self.signature = about, signature_of(about)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def _named(self, verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
        for verdict in verdicts:
            yield replace(verdict, judge=self.name, signature=self.signature)

    def drain(self) -> None:
        self.learner.drain()

    def close(self) -> None:
        self.learner.close()


class LearntJudge(ByLearner):
    """Meets `runs.bench.LearntJudge`: a learner in cells, each in a folder of its own below
    `home`. An altered answer is judged by the cell of what it was made of."""

    def __init__(
        self, name: str, learner: Learner, material: Material, cells: Sequence[Cell], home: Path,
        *, kind: str = "judge", more: Mapping[str, Any] = {},
    ) -> None:  # fmt: skip
        self.kind, self.more, self._material, self._cells = kind, more, material, cells
        self._cell_of = np.full(len(material.answers), -1, dtype=np.int64)
        self.training_sets = [material.training(cell.train, cell.judged) for cell in cells]
        for number, cell in enumerate(cells):
            self._cell_of[cell.judged] = number
        about = {
            "judge": "learnt",
            **learner.describe(),
            "trained_on": [train.hash for train in self.training_sets],
            "judged": content_hash(self._cell_of.tolist()),
            "metrics": [metric.id for metric in material.rubric.metrics],
            "rubric": {"name": material.rubric.name, "hash": material.rubric.content_hash},
        }
        super().__init__(name, learner, about)
        self._home = home / name / self.signature
        self._work: Work | None = None
        self._parents: Mapping[str, str] = {}

    def begin(self, work: Work) -> None:
        self._work = work
        self._home.mkdir(parents=True, exist_ok=True)
        write_atomically(self._home.parent.with_name(f"{self.name}{FOLDS}"), self._audit())

    def _audit(self) -> bytes:
        """All answers as CSV: the fold that judges each, and numbers that answers share which have
        one question, or nearly the same text: no fold learns from those that share either with
        what it judges."""
        names = np.array([*(cell.name for cell in self._cells), ""])  # the last is of no cell
        folds, ids = self._material.folds, self._material.answers.item_ids()
        columns = (names[self._cell_of], folds.question.astype(str), folds.text.astype(str))
        rows = zip(ids, *(column.tolist() for column in columns), strict=True)
        return to_csv(("item_id", "fold", "question", "text"), rows)

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        self._parents = parents
        return np.array([self._cell(item_id) for item_id in answers.item_ids()], dtype=np.int64)

    def _cell(self, item_id: str) -> int:
        row = self._material.answers.row(self._parents.get(item_id, item_id))
        return int(self._cell_of[row]) if row >= 0 else -1

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for cell, some in groupby(tasks, key=lambda task: self._cell(task.answer.item_id)):
            yield from self._named(self.learner.judge(some, self._fitted_while_one_waits(cell)))

    def _fitted_while_one_waits(self, number: int) -> Path:
        """As `fitted`, while the first answer of that cell counts as asked about."""
        if self._work is None or self._is_fitted(number):
            return self.fitted(number)
        with self._work.budget.one_waits(self._work.stop):
            return self.fitted(number)

    def _is_fitted(self, number: int) -> bool:
        return (self._home / self._cells[number].name / LEARNT).exists()

    def fitted(self, number: int) -> Path:
        """The folder of what was learnt for that cell; learns it where it is not there yet."""
        cell, train = self._cells[number].name, self.training_sets[number]
        folder = self._home / cell
        if self._is_fitted(number):
            return folder
        assert self._work is not None
        for metric, labels in train.labels.items():
            if not (labels >= 0).any():
                raise SetupError(f"{self.name}: no label of {metric} to learn from in {cell}")
        folder.mkdir(parents=True, exist_ok=True)
        self._work.progress.say(f"{self.name}: learns from {len(train):,} answers ({cell})")
        facts = self.learner.fit(train, folder, self._work)
        silver = {
            file: {"n": len(train.beside[file]), "left_out": len(whole) - len(train.beside[file])}
            for file, whole in self._material.silver.items()
        }
        content = {"n": len(train), "hash": train.hash, "silver": silver, **facts}
        write_atomically(folder / LEARNT, to_json(content, indent=1).encode())
        return folder

    @property
    def ahead(self) -> str:
        """The work that is left, learning and judging, in words."""
        n_left = sum(not self._is_fitted(number) for number in range(len(self._cells)))
        n = int((self._cell_of >= 0).sum())
        to_learn, per_answer = self.learner.calls
        plan = f"{self.name}: learns {counted(n_left, 'time')}, judges {counted(n, 'answer')}"
        calls = n_left * to_learn + n * per_answer
        return f"{plan}, with up to {counted(calls, 'call')} of a model" if calls else plan

    @property
    def spent(self) -> float:
        """US dollars for what it asked in order to learn."""
        folders = [self._home / cell.name for cell in self._cells]
        below = sum(cost for folder in folders for cost in self.learner.costs(folder))
        return float(self.learner.spent + below)


def verdict_of(
    task: Task, rubric: Rubric, probabilities: Mapping[str, FloatArray | None]
) -> Verdict:
    """The likeliest label of each metric, the less severe of two that are as likely; none, and the
    verdict is `unparsed`, where `probabilities` (labels,) are None."""
    labels, shares, lacking = {}, {}, []
    for metric in rubric.metrics:
        p = probabilities.get(metric.id)
        if p is None:
            lacking.append(metric.id)
            continue
        labels[metric.id] = metric.label_texts[int(np.argmax(p))]
        shares[metric.id] = dict(zip(metric.label_texts, map(float, p), strict=True))
    reason = f"nothing to go by for {', '.join(lacking)}" if lacking else ""
    return Verdict(
        task.answer.item_id, task.content_hash or task.answer.content_hash, "", "",
        Status.UNPARSED if lacking else Status.OK, labels, shares or None, reason=reason,
    )  # fmt: skip
