"""A classifier that tells good items from bad ones: `judgebench tune review --quality`.

After Appendix B of AutoMedEval: sentence embeddings and a support vector machine whose parameters
are chosen by grid search. There it is 91 % right on 100 items, nothing of which says whether it
knows quality or whether the better items were GPT-4's. Here a control beside it knows nothing but
who wrote an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.judges.retrieval import WORDS, words_of
from judgebench.learning.folds import alike, components
from judgebench.people.page import Item
from judgebench.records import Results, Row
from judgebench.stats.arrays import FloatArray
from judgebench.stats.intervals import clustered_mean
from judgebench.tuning.review import rate_sentences

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
        self._embed = _embedder(encoder)
        items = [*accepted, *rejected]
        self._good = np.repeat([1, 0], [len(accepted), len(rejected)])
        self._features = self._embed(items)
        self._questions = alike([item["question"] or item["item_id"] for item in items])
        self._groups = components(self._questions, alike([item["text"] for item in items]))
        self._authors = [{"by": item["teacher"]["name"], "of": item["system"]} for item in items]
        # (items,): how far on the good side each is, by what was learnt from other questions, and
        # from no answer that is nearly its own.
        self._sides = self._out_of_fold(_search(), self._features)

    def _out_of_fold(self, model: Any, features: Any) -> FloatArray:
        from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict

        folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
        how = {"cv": folds, "groups": self._groups, "method": "decision_function"}
        try:
            return np.asarray(cross_val_predict(model, features, self._good, **how))
        except ValueError as error:
            message = "the accepted or the rejected items are of too few questions to learn from"
            raise SetupError(Problem(message)) from error

    def split(self, items: Sequence[Item]) -> Mapping[str, Sequence[Item]]:
        """Other items as `better` and `worse`, each with its `quality`: how far on the good side it
        is, above 0 for the better."""
        parts: dict[str, list[Item]] = {"better": [], "worse": []}
        if items:
            classifier = _search().fit(self._features, self._good)
            sides = classifier.decision_function(self._embed(items)).tolist()
            for item, side in zip(items, sides, strict=True):
                parts["better" if side > 0 else "worse"].append({**item, "quality": side})
        return parts

    def measured(self) -> Results:
        """Accuracies in nested cross-validation, over questions, each a `statistic`: of the
        classifier, of knowing the author alone, and the one minus the other."""
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression

        authors = DictVectorizer().fit_transform(self._authors)
        author_sides = self._out_of_fold(LogisticRegression(), authors)
        right, author_right = (
            1.0 * ((sides > 0) == self._good) for sides in (self._sides, author_sides)
        )
        rate = partial(clustered_mean, clusters=self._questions, undefined="no item")
        rates = {
            "classifier": rate(right, kind="share"),
            "author": rate(author_right, kind="share"),
            "classifier minus author": rate(right - author_right),
        }
        return Results(tuple(Row("quality", key, rate) for key, rate in rates.items()))


def _search() -> Any:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    return GridSearchCV(SVC(), _GRID, cv=_INNER)


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
    yield from rate_sentences(measured)
    if (measured.find("classifier minus author").low or 0) <= 0:
        yield (
            "Not shown to know more than who wrote an item. A classifier that learns “this author "
            "= good” may know that and nothing of its quality."
        )


def _text(item: Item) -> str:
    """The text read of an item: not who wrote it."""
    labels = " ".join(f"{metric}: {label}" for metric, label in item["labels"].items())
    return "\n".join([item["question"], item["text"], labels, item["rationale"]])
