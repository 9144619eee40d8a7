"""Logistic regression on features is scikit-learn's, for every label of a metric."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from judgebench.learning.learnt import TrainingSet
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric
from judgebench.tuning.training import Recipe, best_strength, fitted

HARM = Metric.model_validate(
    {"id": "harm", "title": "Harm", "question": "?", "kind": "ordinal",
     "labels": [{"text": t} for t in ("none", "some", "much")]}
)  # fmt: skip


def drawn(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels that depend on them by proportional odds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    above = X @ [1.5, -1.0, 0.0] + rng.logistic(size=n)
    return X, np.searchsorted(np.linspace(-1.0, 2.0, k - 1), above)


def probabilities(X: Any, y: np.ndarray, k: int, new: Any = None, C: float = 1.0) -> np.ndarray:
    (regression,) = fitted(X, y, Recipe((C,)))
    return regression.probabilities(X if new is None else new, k)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_probabilities_are_those_of_scikit_learn(C: float) -> None:
    X, y = drawn(200, 4)
    y = np.array([0, 2, 3, 5])[y]  # the labels 1 and 4 of six never occur
    p = probabilities(X[:150], y[:150], 6, X[150:], C)
    direct = LogisticRegression(C=C, max_iter=5_000).fit(X[:150], y[:150])
    assert p[:, [0, 2, 3, 5]] == pytest.approx(direct.predict_proba(X[150:]), abs=1e-12)
    assert (p[:, [1, 4]] == 0).all()


def test_probabilities_of_two_labels_are_those_of_scikit_learn() -> None:
    X, y = drawn(200, 2)
    direct = LogisticRegression(max_iter=5_000).fit(X, y).predict_proba(X)
    assert probabilities(X, y, 2) == pytest.approx(direct, abs=1e-12)


def test_sparse_features_are_the_same_features() -> None:
    X, y = drawn(100, 3)
    only_here = np.diag(np.linspace(0.2, 2.0, 100))[:, :80]
    X = np.hstack([X, only_here, np.zeros((100, 2)), only_here[:, ::2]])
    assert probabilities(csr_array(X), y, 3) == pytest.approx(probabilities(X, y, 3), abs=1e-3)


def test_of_one_label_it_is_the_constant() -> None:
    p = probabilities(np.zeros((4, 3)), np.full(4, 2), 3)
    assert p.tolist() == [[0.0, 0.0, 1.0]] * 4


def test_what_cannot_be_learnt_is_regularised_most() -> None:
    X, y = drawn(120, 3)
    answers = [Answer(f"i{n}", f"text {n}", question=f"q{n}") for n in range(120)]
    codes = np.arange(120)
    rubric = Rubric(name="r", version="1", instructions="?", metrics=(HARM,))
    train = TrainingSet(rubric, answers, {"harm": y}, codes, codes)
    noise = np.random.default_rng(1).normal(size=X.shape)
    assert best_strength(train, noise, HARM, Recipe()) <= 0.1
    assert best_strength(train, X, HARM, Recipe()) >= 0.3
    assert best_strength(train, X, HARM, Recipe((7.0,))) == 7.0
