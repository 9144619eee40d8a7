"""Logistic regression on features: scikit-learn where it has an answer, laws where it has none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from judgebench.learning.learnt import TrainingSet
from judgebench.records import Answer
from judgebench.rubric import Metric, Rubric
from judgebench.tuning.training import Recipe, Regression, chosen, fitted

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


def one(X: object, y: np.ndarray, k: int, *, ordinal: bool, C: float = 1.0) -> Regression:
    (found,) = fitted(X, y, k, Recipe(ordinal, (C,)))
    return found


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_nominal_is_what_scikit_learn_says(C: float) -> None:
    X, y = drawn(200, 4)
    y = np.array([0, 2, 3, 5])[y]  # the labels 1 and 4 of six never occur
    p = one(X[:150], y[:150], 6, ordinal=False, C=C).probabilities(X[150:])
    direct = LogisticRegression(C=C, max_iter=5_000).fit(X[:150], y[:150])
    assert p[:, [0, 2, 3, 5]] == pytest.approx(direct.predict_proba(X[150:]), abs=1e-12)
    assert (p[:, [1, 4]] == 0).all()


def test_ordinal_of_two_labels_is_what_scikit_learn_says() -> None:
    X, y = drawn(200, 2)
    direct = LogisticRegression(max_iter=5_000).fit(X, y).predict_proba(X)
    for ordinal in (True, False):
        found = one(X, y, 2, ordinal=ordinal).probabilities(X)
        assert found == pytest.approx(direct, abs=1e-12)


def test_ordinal_finds_the_odds_that_were_planted() -> None:
    X, y = drawn(5_000, 4)
    found = one(X, y, 4, ordinal=True, C=10.0)
    assert found.weights[0] == pytest.approx([1.5, -1.0, 0.0], abs=0.12)
    assert -found.bias == pytest.approx([-1.0, 0.5, 2.0], abs=0.12)
    true = expit((X @ [1.5, -1.0, 0.0])[:, None] - [-1.0, 0.5, 2.0])
    p = found.probabilities(X)
    assert 1 - np.cumsum(p, axis=1)[:, :-1] == pytest.approx(true, abs=0.08)


@given(st.integers(2, 5), st.integers(0, 1000), st.sampled_from([0.1, 1.0, 10.0]))
def test_laws_of_proportional_odds(k: int, seed: int, C: float) -> None:
    X, y = drawn(60, k, seed)
    found = one(X, y, k, ordinal=True, C=C)
    p = found.probabilities(X)
    assert (p >= 0).all()
    assert p.sum(axis=1) == pytest.approx(1)
    # Of a free threshold the mean is the share: no label is given more often than people gave it.
    assert p.mean(axis=0) == pytest.approx(np.bincount(y, minlength=k) / len(y), abs=0.02)
    assert (np.diff(found.bias) <= 1e-9).all()


def test_sparse_features_are_the_same_features() -> None:
    X, y = drawn(100, 3)
    held_once = np.diag(np.linspace(0.2, 2.0, 100)) @ np.eye(100)[:, :80]
    X = np.hstack([X, held_once, np.zeros((100, 2)), held_once[:, ::2]])
    for ordinal in (True, False):
        dense = one(X, y, 3, ordinal=ordinal)
        sparse = one(csr_array(X), y, 3, ordinal=ordinal)
        assert sparse.weights == pytest.approx(dense.weights, abs=1e-3)
        assert sparse.probabilities(csr_array(X)) == pytest.approx(dense.probabilities(X), abs=1e-3)
        assert (sparse.weights[:, 83:85] == 0).all()


def test_of_one_label_it_is_the_constant() -> None:
    X = np.zeros((4, 3))
    found = one(X, np.full(4, 2), 3, ordinal=True).probabilities(X)
    assert found.tolist() == [[0.0, 0.0, 1.0]] * 4


def test_what_cannot_be_learnt_is_regularised_most() -> None:
    X, y = drawn(120, 3)
    answers = [Answer(f"i{n}", f"text {n}", question=f"q{n}") for n in range(120)]
    codes = np.arange(120)
    rubric = Rubric(name="r", version="1", instructions="?", metrics=(HARM,))
    train = TrainingSet(rubric, answers, {"harm": y}, codes, codes)
    noise = np.random.default_rng(1).normal(size=X.shape)
    recipes = [Recipe(ordinal=True), Recipe(ordinal=False)]
    assert chosen(train, noise, HARM, recipes).strengths[0] <= 0.1
    assert chosen(train, X, HARM, recipes).strengths[0] >= 0.3
    assert chosen(train, X, HARM, [Recipe(False, (7.0,))]) == Recipe(False, (7.0,))
