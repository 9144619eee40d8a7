"""What a judge learns from, and what it must never see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from judgebench.errors import Problem
from judgebench.learning.folds import Folds, folds_of
from judgebench.records import Answer, HumanLabel, content_hash
from judgebench.rubric import Rubric
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.truth import Ratings, TruthConfig, ratings_by_metric


@dataclass(frozen=True)
class TrainingSet:
    """Answers with the truth that their human labels make.

    `labels`, by metric, are places among the metric's labels (answers,), -1 where there is none;
    they come from the labels of these answers alone. `question` and `text` (answers,) are numbers
    that answers share which have one question, or nearly the same text.

    `reasons` (answers,), where there are any, say why the labels are right. `beside` holds, by the
    file, what may be learnt from as well: answers with the labels that machines gave them. `again`
    is learnt from once more, in this order, by whoever learns in steps.
    """

    rubric: Rubric
    answers: Sequence[Answer]
    labels: Mapping[str, IntArray]
    question: IntArray
    text: IntArray
    reasons: Sequence[str] = ()
    beside: Mapping[str, TrainingSet] = field(default_factory=dict)
    again: Sequence[TrainingSet] = ()

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def hash(self) -> str:
        """Of all that can be learnt from."""
        keys = [[answer.item_id, answer.content_hash, answer.system] for answer in self.answers]
        labels = {m: found.tolist() for m, found in self.labels.items()}
        beside = {name: more.hash for name, more in self.beside.items()}
        more = [list(self.reasons), beside, [more.hash for more in self.again]]
        return content_hash([keys, labels, *more] if any(more) else [keys, labels])

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
        again = [more.apart_from(question, text) for more in self.again]
        return replace(self.only(np.flatnonzero(~known)), beside=beside, again=again)

    def folds(self, n: int, seed: int = 0) -> Iterator[tuple[TrainingSet, TrainingSet]]:
        """Nested folds, to choose by: what is learnt from, and what is then judged. As many as
        there are questions, where there are fewer than `n`."""
        questions = np.unique(self.question)
        drawn = np.random.default_rng(seed).permutation(questions)
        for part in np.array_split(drawn, min(n, len(questions))):
            judged = self.only(np.flatnonzero(np.isin(self.question, part)))
            yield self.apart_from(part, judged.text), judged


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
            beside=self._beside(rows, rows if judged is None else judged) if self.silver else {},
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

    def problems(self) -> Iterator[Problem]:
        """What keeps a judge from learning each metric in folds."""
        for metric in self.rubric.metrics:
            given, field = self.ratings[metric.id].values, f"rubric.{metric.id}"
            if (n := int((given >= 0).any(axis=1).sum())) < self.folds.n:
                message = "has fewer answers with a human label to learn from than there are folds"
                yield Problem(message, field=field, found=f"{n} of {self.folds.n}")
            elif len(labels := np.unique(given[given >= 0])) < 2:
                message = "has one human label only: learning needs two"
                yield Problem(message, "", None, field, metric.label_texts[labels[0]])

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
