"""Cuts on a score, and probabilities that rise with it."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from judgebench.stats.recalibration import best_cuts, rises, rising

K = 3
Rows = list[tuple[int, int]]
ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, K - 1)), min_size=1, max_size=12)


def arrays(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    score, label = np.array(rows).T
    return score / 4, label


def cut(score: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    return (cuts[None, :] < score[:, None]).sum(axis=1)


def worth(label: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    """Accuracy and balanced accuracy, by their definitions."""
    right = label == said
    return float(right.mean() + np.mean([right[label == x].mean() for x in np.unique(label)]))


@given(ROWS)
def test_no_other_cuts_are_better(rows: Rows) -> None:
    score, label = arrays(rows)
    found = best_cuts(score, label, K)
    values = np.unique(score)
    edges = [-np.inf, *(values[:-1] + values[1:]) / 2, np.inf]
    every = (np.array(cuts) for cuts in combinations_with_replacement(edges, K - 1))
    most = max(worth(label, cut(score, cuts)) for cuts in every)
    assert worth(label, cut(score, found)) == pytest.approx(most, abs=1e-12)
    assert (found[:-1] <= found[1:]).all()
    assert set(cut(np.linspace(-1, 9, 99), found)) <= set(label)  # never a label not learnt


@given(ROWS)
def test_only_the_order_of_scores_counts(rows: Rows) -> None:
    score, label = arrays(rows)
    turned = np.exp(score) ** 3
    same = cut(turned, best_cuts(turned, label, K)) == cut(score, best_cuts(score, label, K))
    assert same.all()
    p, q = (rising(x, label, K).at(x) for x in (score, turned))
    np.testing.assert_allclose(p, q, atol=1e-12)
    assert rises(turned, label) == pytest.approx(rises(score, label))


def test_rare_severe_labels_count() -> None:
    """Of 20 answers 2 are severe, above 3 of 18 that are not: accuracy alone would give them up."""
    score = np.arange(20.0)
    label = np.zeros(20, dtype=np.int64)
    label[[15, 16]] = 1
    assert best_cuts(score, label, 2).tolist() == [14.5]


@given(ROWS)
def test_probabilities_rise_and_add_up(rows: Rows) -> None:
    score, label = arrays(rows)
    p = rising(score, label, K).at(np.linspace(-1, 3, 41))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()
    above = np.cumsum(p[:, ::-1], axis=1)  # P(at least), from the most severe
    assert (np.diff(above, axis=0) >= -1e-12).all()
    assert (above[:, :-1] < 1).all()


def test_isotonic_as_scikit_learn_has_it() -> None:
    sklearn = pytest.importorskip("sklearn.isotonic")
    rng = np.random.default_rng(0)
    score = rng.normal(size=200).round(1)
    label = (score + rng.normal(size=200) > 0.3).astype(np.int64)
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(score, label)
    new = rng.normal(size=50)
    share = (label.sum() + 1) / 202
    expected = (200 * theirs.predict(new) + 2 * share) / 202
    np.testing.assert_allclose(rising(score, label, 2).at(new)[:, 1], expected, atol=1e-9)


@given(ROWS)
def test_direction_is_spearmans(rows: Rows) -> None:
    from scipy.stats import spearmanr

    score, label = arrays(rows)
    if len(set(score)) > 1 and len(set(label)) > 1:
        assert rises(score, label) == pytest.approx(spearmanr(score, label).statistic)
    else:
        assert rises(score, label) == 0


def test_a_label_outside_is_refused() -> None:
    for act in (best_cuts, rising):
        with pytest.raises(ValueError, match=r"label must lie in 0\.\.1; found 0\.\.2"):
            act(np.arange(3.0), np.arange(3), 2)
