"""A classifier that tells good items from bad ones: `judgebench tune review --quality`.

After Appendix B of AutoMedEval: sentence embeddings and a support vector machine whose parameters
are chosen by grid search. There it is 91 % right on 100 items, nothing of which says whether it
knows quality or whether the better items were GPT-4's. Here a control beside it knows nothing but
who wrote an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.judges.retrieval import WORDS, words_of
from judgebench.learning.folds import Folds, folds_of
from judgebench.people.page import Item
from judgebench.records import Answer, Results, Row
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import clustered_mean
from judgebench.studies.answers import indexed

FOLDS, _INNER, _LEAST = 5, 3, 10
_GRID = {"C": [0.1, 1.0, 10.0], "kernel": ["linear", "rbf"]}


class Classifier:
    """Learnt from accepted and rejected items; the same items and encoder give the same.

    Nothing of it is saved: it is fitted again wherever it is needed. Raises SetupError where there
    are fewer than ten items of either kind or too few questions for five folds, and MissingExtra.
    """

    def __init__(
        self, accepted: Sequence[Item], rejected: Sequence[Item], encoder: str = WORDS
    ) -> None:
        for name, some in (("accepted", accepted), ("rejected", rejected)):
            if len(some) < _LEAST:
                message = f"there are {len(some)} {name} items, and at least {_LEAST} are needed"
                raise SetupError(Problem(message))
        self._items = [*accepted, *rejected]
        self._good = np.repeat([1, 0], [len(accepted), len(rejected)])
        self._embed = _embedder(encoder)
        self._features = self._embed(self._items)
        teachers = [item["teacher"]["name"] for item in self._items]
        self.by = "teacher" if len(set(teachers)) > 1 else "system"
        systems = [item["system"] for item in self._items]
        self._authors = np.array(teachers if self.by == "teacher" else systems)

    @cached_property
    def folds(self) -> Folds:
        """Nothing is judged by what was learnt from its question, or from nearly its answer."""
        answers = [
            Answer(str(row), item["text"], question=item["question"])
            for row, item in enumerate(self._items)
        ]
        return folds_of(indexed(answers), FOLDS)

    @cached_property
    def out_of_fold(self) -> FloatArray:
        """(items,): how far on the good side each is, by what was learnt from other folds."""
        sides = np.full(len(self._items), np.nan)
        for fold in range(FOLDS):
            judged = np.flatnonzero(self.folds.of == fold)
            sides[judged] = self._learnt(self.folds.training(judged), judged)
        if np.isnan(sides).all():
            message = "the accepted or the rejected items are of too few questions to learn from"
            raise SetupError(Problem(message))
        return sides

    def split(self, items: Sequence[Item]) -> Mapping[str, Sequence[Item]]:
        """Other items as `better` and `worse`, each with its `quality`: the probability that it is
        good. Platt (1999) makes it of the side, fitted to the sides out of fold."""
        from sklearn.linear_model import LogisticRegression

        parts: dict[str, list[Item]] = {"better": [], "worse": []}
        if items:
            known = ~np.isnan(self.out_of_fold)
            scale = LogisticRegression().fit(self.out_of_fold[known, None], self._good[known])
            sides = self._fit(np.arange(len(self._good))).decision_function(self._embed(items))
            p_good = scale.predict_proba(sides[:, None])[:, 1].tolist()
            for item, p in zip(items, p_good, strict=True):
                part = parts["better" if p >= 0.5 else "worse"]
                part.append({**item, "quality": round(p, 4)})
        return parts

    def measured(self) -> Results:
        """Accuracies in nested cross-validation, over questions, each a `statistic`: of the
        classifier, of knowing the author alone, and the one minus the other."""
        sides = self.out_of_fold
        right = np.where(np.isnan(sides), np.nan, (sides > 0) == self._good)
        author = np.full(len(right), np.nan)
        for fold in range(FOLDS):
            judged = np.flatnonzero(self.folds.of == fold)
            train = self.folds.training(judged)
            for row in judged:
                same = train[self._authors[train] == self._authors[row]]
                share = self._good[same if len(same) else train].mean()
                author[row] = (share >= 0.5) == self._good[row]
        none = "others wrote too few of both kinds to learn from"
        rate = partial(clustered_mean, clusters=self.folds.question, undefined=none)
        rates = {
            "classifier": rate(right, kind="share"),
            "author": rate(author, kind="share"),
            "classifier minus author": rate(right - author),
        }
        keys = {"author": self.by}
        return Results(tuple(Row("quality", k, e, keys=keys) for k, e in rates.items()))

    def _learnt(self, train: IntArray, judged: IntArray) -> FloatArray:
        """(judged,): how far on the good side, NaN where nothing can be learnt."""
        questions = self.folds.question[train]
        if any(len(set(questions[self._good[train] == one])) < _INNER for one in (0, 1)):
            return np.full(len(judged), np.nan)
        return np.asarray(self._fit(train).decision_function(self._features[judged]))

    def _fit(self, rows: IntArray) -> Any:
        from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
        from sklearn.svm import SVC

        folds = StratifiedGroupKFold(_INNER, shuffle=True, random_state=0)
        search = GridSearchCV(SVC(), _GRID, cv=folds, error_score=0.0)
        groups = self.folds.question[rows]
        return search.fit(self._features[rows], self._good[rows], groups=groups)


def _embedder(encoder: str) -> Callable[[Sequence[Item]], Any]:
    """What gives (items, width): a vector of length 1 for each. Raises MissingExtra."""
    if encoder != WORDS:
        from judgebench.models.checkpoints import open_encoder

        opened = open_encoder(encoder)
        return lambda items: opened.embed([*map(_text, items)])
    try:
        from sklearn.feature_extraction.text import HashingVectorizer
    except ImportError:
        raise MissingExtra("the classifier", "tuning", "scikit-learn") from None
    words = HashingVectorizer(tokenizer=words_of, token_pattern=None, binary=True)
    return lambda items: words.transform([*map(_text, items)])


def sentences(measured: Results) -> Iterator[str]:
    """The accuracies, and whether the classifier is shown to know more than who wrote an item."""
    author = measured.rows[0]["author"]
    for row in measured:
        yield f"{row.statistic}: {row.estimate} (n = {row.estimate.n})"
    gain = measured.find("classifier minus author")
    if gain.low is None or gain.low <= 0:
        yield (
            f"Not shown to know more than the {author}. A classifier that learns "
            f"“this {author} = good” may know who wrote an item and nothing of its quality."
        )


def _text(item: Item) -> str:
    """The text read of an item: not who wrote it."""
    labels = " ".join(f"{metric}: {label}" for metric, label in item["labels"].items())
    return "\n".join([item["question"], item["text"], labels, item["rationale"]])
