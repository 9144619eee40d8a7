"""A classifier that tells good items from bad ones: `judgebench tune quality`.

After Appendix B of AutoMedEval: sentence embeddings and a support vector machine whose parameters
are chosen by grid search. There it is 91 % right on 100 items, nothing of which says whether it
knows quality or whether the better items were GPT-4's. Here a control beside it knows nothing but
who wrote an item, and each author's items are also judged by what was learnt from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.judges.retrieval import WORDS, words_of
from judgebench.learning.folds import Folds, folds_of
from judgebench.models.checkpoints import identify
from judgebench.people.page import Item
from judgebench.records import Answer, Results, Row, content_hash
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.intervals import clustered_mean
from judgebench.studies.answers import indexed
from judgebench.tuning.rounds import teacher_of

FOLDS, _INNER, _LEAST = 5, 3, 10
_GRID = {"C": [0.1, 1.0, 10.0], "kernel": ["linear", "rbf"]}


class Classifier:
    """Learnt from accepted and rejected items; the same items, encoder and seed give the same.

    Nothing of it is saved: it is fitted again wherever it is needed. Raises SetupError where there
    are fewer than ten items of either kind or too few questions for five folds, and MissingExtra.
    """

    def __init__(
        self, accepted: Sequence[Item], rejected: Sequence[Item], encoder: str = WORDS,
        seed: int = 0,
    ) -> None:  # fmt: skip
        for name, some in (("accepted", accepted), ("rejected", rejected)):
            if len(some) < _LEAST:
                message = f"there are {len(some)} {name} items, and at least {_LEAST} are needed"
                raise SetupError(Problem(message))
        self._items, self._seed, self.encoder = [*accepted, *rejected], seed, encoder
        self._good = np.repeat([1, 0], [len(accepted), len(rejected)])
        self._encoder = None
        if encoder != WORDS:
            from judgebench.models.checkpoints import open_encoder

            self._encoder = open_encoder(encoder)
        self._texts = [_text(item) for item in self._items]
        self._features = self._embedded(self._texts)
        teachers = [teacher_of(item) for item in self._items]
        systems = [str(item.get("system", "")) for item in self._items]
        self.by = "teacher" if len(set(teachers)) > 1 else "system"
        self.authors = np.array(teachers if self.by == "teacher" else systems)

    @cached_property
    def folds(self) -> Folds:
        """Nothing is judged by what was learnt from its question, or from nearly its answer."""
        asked = [(item["text"], item.get("question", "")) for item in self._items]
        answers = [Answer(str(row), text, question=q) for row, (text, q) in enumerate(asked)]
        return folds_of(indexed(answers), FOLDS, self._seed)

    @cached_property
    def out_of_fold(self) -> FloatArray:
        """(items,): how far on the good side each is, by what was learnt from other folds."""
        found = np.full(len(self._items), np.nan)
        for fold in range(FOLDS):
            judged = np.flatnonzero(self.folds.of == fold)
            found[judged] = self._learnt(self.folds.training(judged), judged)
        if np.isnan(found).all():
            message = "the accepted or the rejected items are of too few questions to learn from"
            raise SetupError(Problem(message))
        return found

    def scored(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items with their `quality`: `p`, the probability that each is good, and what gave it.

        Platt (1999) makes a probability of the side, fitted to the sides out of fold. An item that
        was learnt from has its own side out of fold.
        """
        from sklearn.linear_model import LogisticRegression

        side, known = self.out_of_fold, ~np.isnan(self.out_of_fold)
        scale = LogisticRegression().fit(side[known, None], self._good[known])
        whole, texts = self._fit(np.arange(len(side))), [_text(item) for item in items]
        own = dict(zip(self._texts, np.nan_to_num(side).tolist(), strict=True))
        sides = whole.decision_function(self._embedded(texts)).tolist() if items else []
        weights = identify(str(self._encoder.folder)) if self._encoder else WORDS
        signature = content_hash([self._texts, self._good.tolist(), weights, self._seed])
        by = {"encoder": self.encoder, "signature": signature, **whole.best_params_}
        found = []
        for item, text, one in zip(items, texts, sides, strict=True):
            p = float(scale.predict_proba([[own.get(text, one)]])[0, 1])
            found.append({**item, "quality": {"p": round(p, 4), **by}})
        return found

    def measured(self) -> Results:
        """Accuracies in nested cross-validation, over questions, each a `statistic`: of the
        classifier, of always giving the more common answer, of knowing the author alone, and of the
        classifier on authors that it did not learn from; and the classifier minus the author."""
        right = _right(self.out_of_fold, self._good)
        common, author, unseen = (np.full(len(right), np.nan) for _ in range(3))
        for fold in range(FOLDS):
            judged = np.flatnonzero(self.folds.of == fold)
            train = self.folds.training(judged)
            usual = self._good[train].mean() if len(train) else 0.5
            common[judged] = (usual >= 0.5) == self._good[judged]
            for one in np.unique(self.authors[judged]):
                own, same = judged[self.authors[judged] == one], self.authors[train] == one
                share = self._good[train[same]].mean() if same.any() else usual
                author[own] = (share >= 0.5) == self._good[own]
                unseen[own] = _right(self._learnt(train[~same], own), self._good[own])
        shares = {"classifier": right, "more common": common, "author": author, "unseen": unseen}
        none = "others wrote too few of both kinds to learn from"
        rate = partial(clustered_mean, clusters=self.folds.question, undefined=none)
        rates = {name: rate(x, kind="share") for name, x in shares.items()}
        rates["classifier minus author"] = rate(right - author)
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

        folds = StratifiedGroupKFold(_INNER, shuffle=True, random_state=self._seed)
        search = GridSearchCV(SVC(), _GRID, cv=folds, error_score=0.0)
        groups = self.folds.question[rows]
        return search.fit(self._features[rows], self._good[rows], groups=groups)

    def _embedded(self, texts: Sequence[str]) -> Any:
        """(texts, width): a vector of length 1 for each."""
        if self._encoder is not None:
            return self._encoder.embed(texts)
        try:
            from sklearn.feature_extraction.text import HashingVectorizer
        except ImportError:
            raise MissingExtra("the classifier", "tuning", "scikit-learn") from None
        words = HashingVectorizer(tokenizer=words_of, token_pattern=None, binary=True)
        return words.transform(texts)


def in_words(measured: Results) -> Sequence[str]:
    """The accuracies, and whether the classifier is shown to know more than who wrote an item."""
    who = measured.rows[0]["author"]
    names = {"author": f"knows the {who} only", "unseen": f"classifier, on a {who} it never saw"}
    found = []
    for row in measured:
        e = row.estimate
        why = f"; {e.reason}" if e.reason else ""
        found.append(f"{names.get(row.statistic, row.statistic)}: {e} (n = {e.n}{why})")
    more = measured.find("classifier minus author")
    if more.low is None or more.low <= 0:
        found.append(
            f"Not shown to know more than the {who}. A classifier that learns “this {who} = good” "
            "may know who wrote an item and nothing of its quality."
        )
    return found


def _text(item: Item) -> str:
    """The text read of an item: not who wrote it."""
    labels = " ".join(f"{metric}: {label}" for metric, label in item["labels"].items())
    return "\n".join([item.get("question", ""), item["text"], labels, item.get("rationale", "")])


def _right(side: FloatArray, good: IntArray) -> FloatArray:
    return np.where(np.isnan(side), np.nan, (side > 0) == good)
