"""Judges that are a regression on features: of words, or of a frozen encoder's vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import Learner, TrainingSet, verdict_of
from judgebench.models.encoder import find_beside
from judgebench.records import Answer, Status, Verdict
from judgebench.retrieval.vectors import WORDS, KeptVectors, npz
from judgebench.rubric import Metric, Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.judging import Work
from judgebench.stats.arrays import FloatArray
from judgebench.tuning.config import BagOfWordsConfig, HeadConfig
from judgebench.tuning.regression import Recipe, Regression, chosen, fitted

_FIELDS = ("question", "text")
_AT_ONCE = 256
_WORDS = "words.json"


@dataclass(frozen=True)
class Features:
    """The features of a regression: `of(answers, metrics, folder)` are, by metric, numbers
    (answers, width), dense or sparse, a row of NaN where nothing is known; `without` says what the
    verdict on such an item is. `fit` keeps in the folder what must be known of the answers that are
    learnt from, and `of` may read it once for several blocks of answers."""

    about: Mapping[str, Any]  # what they depend on
    of: Callable[[Sequence[Answer], Sequence[Metric], Path], Mapping[str, Any]]
    fit: Callable[[Sequence[Answer], Path], None] = lambda answers, folder: None
    close: Callable[[], None] = lambda: None
    without: Callable[[str], Status] = lambda item_id: Status.UNPARSED
    needs: Sequence[str] = ()


def by_kind(metric: Metric) -> Sequence[Recipe]:
    """Ordinal or multinomial, as the metric is."""
    return [Recipe(ordinal=metric.kind == "ordinal")]


def balanced(metric: Metric) -> Sequence[Recipe]:
    """The options by which a control is fitted: one that never gave a rare label would be no
    rival."""
    return [Recipe(ordinal=False, strengths=(1.0,), balanced=True)]


class Head(Learner):
    """A regression for each metric, by the best of its recipes in nested folds."""

    def __init__(
        self, learn: str, rubric: Rubric, features: Features,
        recipes: Callable[[Metric], Sequence[Recipe]] = by_kind,
    ) -> None:  # fmt: skip
        """Raises MissingExtra without scikit-learn."""
        if not has_sklearn():
            raise MissingExtra(f"learn: {learn}", "tuning", "scikit-learn")
        self._learn, self._rubric, self._features, self._recipes = learn, rubric, features, recipes
        self.needs = features.needs

    def describe(self) -> Mapping[str, Any]:
        tried = {m.id: list(map(asdict, self._recipes(m))) for m in self._rubric.metrics}
        return {"learn": self._learn, **self._features.about, "recipes": tried}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        facts = {}
        self._features.fit(train.answers, folder)
        every = self._features.of(train.answers, train.rubric.metrics, folder)
        for metric in train.rubric.metrics:
            X = every[metric.id]
            known = ~np.isnan(np.asarray(X.sum(axis=1)).ravel())
            rows = np.flatnonzero(known & (train.labels[metric.id] >= 0))
            if not len(rows):
                message = f"{self._learn}: nothing is known of the answers that have a human label"
                raise SetupError(Problem(message, field=metric.id))
            own, X = train.only(rows), X[rows]
            recipe = chosen(own, X, metric, self._recipes(metric))
            (found,) = fitted(X, own.labels[metric.id], len(metric.labels), recipe)
            write_atomically(folder / f"{metric.id}.npz", npz(**found._asdict()))
            facts[metric.id] = {"n": len(rows), "C": recipe.strengths[0], "ordinal": recipe.ordinal}
        return {"metrics": facts}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        coming, fitted = iter(tasks), {}
        for metric in self._rubric.metrics:
            with np.load(folder / f"{metric.id}.npz") as held:
                fitted[metric] = Regression(**{**held, "k": int(held["k"])})
        while block := list(islice(coming, _AT_ONCE)):
            X = self._features.of([task.answer for task in block], [*fitted], folder)
            found = {m.id: learnt.probabilities(X[m.id]) for m, learnt in fitted.items()}
            for row, task in enumerate(block):
                shares = {m: None if np.isnan(p[row]).any() else p[row] for m, p in found.items()}
                verdict = verdict_of(task, self._rubric, shares)
                lacking = verdict.status is Status.UNPARSED
                status = self._features.without(task.answer.item_id) if lacking else Status.OK
                yield replace(verdict, status=status)

    def close(self) -> None:
        self._features.close()


def open_head(entry: BagOfWordsConfig | HeadConfig, bench: Bench, run: Path) -> Head:
    """Its learner. Raises MissingExtra, and what finding an encoder raises."""
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    if isinstance(entry, BagOfWordsConfig):
        return Head(entry.learn, rubric, words(), balanced)
    if entry.encoder == WORDS:
        return Head(entry.learn, rubric, words())
    found = find_beside(entry.encoder, bench.file.parent)
    return Head(entry.learn, rubric, vectors(found, run / "tuning" / ".vectors"))


def has_sklearn() -> bool:
    """True where scikit-learn is installed."""
    return find_spec("sklearn") is not None


def words() -> Features:
    """The words, and pairs of words, of question and text: how often each occurs, against how many
    answers have it (tf-idf, as scikit-learn computes it)."""
    found = _Words()
    return Features({"features": "tf-idf of words and pairs of words"}, found.of, found.fit)


class _Words:
    """Weights of words by field. Those of the folder that was used last are held in memory."""

    def __init__(self) -> None:
        self._folder, self._vectors = Path(), dict[str, Any]()

    def fit(self, answers: Sequence[Answer], folder: Path) -> None:
        self._folder, self._vectors = folder, {}
        for field in _FIELDS:
            texts, vectors = [getattr(answer, field) for answer in answers], _tf_idf()
            if any(map(vectors.build_analyzer(), texts)):
                self._vectors[field] = vectors.fit(texts)
        weights = {
            field: dict(zip(vectors.get_feature_names_out(), vectors.idf_.tolist(), strict=True))
            for field, vectors in self._vectors.items()
        }
        write_atomically(folder / _WORDS, to_json(weights).encode())

    def of(
        self, answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path
    ) -> Mapping[str, Any]:
        import scipy.sparse

        if folder != self._folder:
            self._folder, self._vectors = folder, {}
            for field, weights in json.loads((folder / _WORDS).read_bytes()).items():
                self._vectors[field] = _tf_idf(list(weights))
                self._vectors[field].idf_ = np.array(list(weights.values()))
        parts = [scipy.sparse.csr_array((len(answers), 1))]  # there may be no word at all
        for field, vectors in self._vectors.items():
            parts.append(vectors.transform([getattr(answer, field) for answer in answers]))
        return dict.fromkeys((m.id for m in metrics), scipy.sparse.hstack(parts, "csr"))


def _tf_idf(vocabulary: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), vocabulary=vocabulary)


def vectors(encoder: str, folder: Path) -> Features:
    """The vectors of question and text, side by side. Raises what finding an encoder raises."""
    kept = KeptVectors(encoder, folder)

    def of(
        answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path
    ) -> Mapping[str, FloatArray]:
        X = np.hstack([kept.of([getattr(a, field) for a in answers]) for field in _FIELDS])
        return dict.fromkeys((metric.id for metric in metrics), X)

    return Features({"encoder": kept.about}, of, close=kept.close)
