"""A classifier that tells good items from bad ones: `judgebench tune quality`.

After Appendix B of AutoMedEval: sentence embeddings and a support vector machine whose parameters
are chosen by grid search. There it is 91 % right on 100 items, nothing of which says whether it
knows quality or whether the better items were GPT-4's. Here a control beside it knows nothing but
who wrote an item, and each author's items are also judged by what was learnt from the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.records import Answer, Estimate, content_hash
from judgebench.retrieval.library import WORDS
from judgebench.retrieval.words import words_of
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.means import clustered_mean
from judgebench.study.answers import indexed
from judgebench.tuning.folds import Folds, folds_of
from judgebench.tuning.review import Item, teacher_of

if TYPE_CHECKING:
    from pandas import DataFrame

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
            from judgebench.retrieval.encoder import open_encoder

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
        answers = [
            Answer(str(row), item["text"], question=item.get("question", ""))
            for row, item in enumerate(self._items)
        ]
        return folds_of(indexed(answers), FOLDS, self._seed)

    @cached_property
    def out_of_fold(self) -> FloatArray:
        """(items,): how far on the good side each is, by what was learnt from other folds."""
        found = np.full(len(self._items), np.nan)
        for fold in range(FOLDS):
            judged = np.flatnonzero(self.folds.of == fold)
            found[judged] = self._learnt(self.folds.training(judged), judged)
        return found

    @cached_property
    def _final(self) -> tuple[Any, Any]:
        """What is learnt from all items, and what makes a probability of it (Platt 1999), which is
        fitted to the items out of fold."""
        from sklearn.linear_model import LogisticRegression

        known = ~np.isnan(self.out_of_fold)
        scale = LogisticRegression(C=1e6).fit(self.out_of_fold[known, None], self._good[known])
        return self._fit(np.arange(len(self._items))), scale

    def scores(self, items: Sequence[Item]) -> FloatArray:
        """(items,): the probability that each is good. One that was learnt from has its score out
        of fold."""
        model, scale = self._final
        texts = [_text(item) for item in items]
        found = model.decision_function(self._embedded(texts))
        own = dict(zip(self._texts, self.out_of_fold, strict=True))
        found = np.array([own.get(t, one) for t, one in zip(texts, found, strict=True)])
        return np.asarray(scale.predict_proba(np.nan_to_num(found)[:, None])[:, 1])

    def scored(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items with their `quality`: the probability `p`, and what gave it."""
        about = [self._texts, self._good.tolist(), self.encoder, self._seed]
        by = {
            "encoder": self.encoder,
            "signature": content_hash(about),
            **self._final[0].best_params_,
        }
        return [{**item, "quality": {"p": round(float(p), 4), **by}}
                for item, p in zip(items, self.scores(items), strict=True)]  # fmt: skip

    def measured(self) -> Quality:
        """What the classifier is worth, and what its controls are."""
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
        none = "what is left to learn from is all accepted or all rejected"
        rate = partial(clustered_mean, clusters=self.folds.question, undefined=none)
        shares = [rate(x, is_proportion=True) for x in (right, common, author, unseen)]
        return Quality(shares[0], shares[1], shares[2], shares[3], rate(right - author), self.by)

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
            from judgebench.retrieval.vectors import embed_whole

            return embed_whole(self._encoder, texts)
        try:
            from sklearn.feature_extraction.text import HashingVectorizer
        except ImportError:
            raise MissingExtra("the classifier", "tuning", "scikit-learn") from None
        words = HashingVectorizer(tokenizer=words_of, token_pattern=None, binary=True)
        return words.transform(texts)


@dataclass(frozen=True)
class Quality:
    """Accuracies in nested cross-validation, resampled by question: of the classifier, of always
    giving the more common answer, of knowing the author alone (`by` says whose: teacher or system),
    and of the classifier on authors that it did not learn from; and what it knows `more` than the
    author."""

    accuracy: Estimate
    common: Estimate
    author: Estimate
    unseen: Estimate
    more: Estimate
    by: str

    @property
    def _rows(self) -> Mapping[str, Estimate]:
        return {
            "classifier": self.accuracy, "always the more common": self.common,
            f"knows the {self.by} only": self.author,
            f"classifier, on a {self.by} it never saw": self.unseen,
            f"classifier minus the {self.by}": self.more,
        }  # fmt: skip

    @property
    def shown(self) -> bool:
        """Whether it is shown to know more than who wrote an item."""
        return self.more.low is not None and self.more.low > 0

    def to_frame(self) -> DataFrame:
        """One row per accuracy."""
        import pandas

        return pandas.DataFrame(
            [(k, e.value, e.low, e.high, e.n, e.method or e.reason) for k, e in self._rows.items()],
            columns=["accuracy", "value", "low", "high", "n", "method"],
        )

    def lines(self) -> Sequence[str]:
        """The accuracies, and what they mean."""
        found = [f"{k}: {e} (n = {e.n}{_why(e)})" for k, e in self._rows.items()]
        if not self.shown:
            found.append(
                f"Not shown to know more than the {self.by}. A classifier that learns “this "
                f"{self.by} = good” may know who wrote an item and nothing of its quality."
            )
        return found


def _why(estimate: Estimate) -> str:
    return f"; {estimate.reason}" if estimate.reason else ""


def _text(item: Item) -> str:
    """What is read of an item: not who wrote it."""
    labels = " ".join(f"{metric}: {label}" for metric, label in item["labels"].items())
    return "\n".join([item.get("question", ""), item["text"], labels, item.get("rationale", "")])


def _right(side: FloatArray, good: IntArray) -> FloatArray:
    return np.where(np.isnan(side), np.nan, (side > 0) == good)
