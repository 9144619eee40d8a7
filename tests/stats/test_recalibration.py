"""Cuts on a score, and probabilities that rise with it."""

import json
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from judgebench.stats.calibration import (
    LEAST_LOG,
    batch_prior,
    best_cuts,
    normalised,
    rises,
    rising,
    without_prior,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "calibration.json").read_text())


K = 3
Rows = list[tuple[int, int]]
ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, K - 1)), min_size=1, max_size=12)


def scored(rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
    score, label = scored(rows)
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
    score, label = scored(rows)
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
    score, label = scored(rows)
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

    score, label = scored(rows)
    if len(set(score)) > 1 and len(set(label)) > 1:
        assert rises(score, label) == pytest.approx(spearmanr(score, label).statistic)
    else:
        assert rises(score, label) == 0


logs = st.floats(-30, 0)
sets = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, K), elements=logs))
rows = arrays(np.float64, (K,), elements=logs)


def batch_calibrated(log_p: np.ndarray) -> np.ndarray:
    return without_prior(log_p, batch_prior(log_p))


@settings(deadline=None)
@given(log_p=sets, prior=rows)
def test_calibrated_rows_add_up_to_one(log_p, prior) -> None:
    assert np.exp(without_prior(log_p, prior)).sum(axis=1) == pytest.approx(1)


@settings(deadline=None)
@given(log_p=sets, bias=rows)
def test_a_labels_constant_bias_vanishes_from_a_batch(log_p, bias) -> None:
    biased = normalised(log_p + bias)
    assert batch_calibrated(biased) == pytest.approx(batch_calibrated(log_p), abs=1e-9)


@settings(deadline=None)
@given(log_p=sets, shift=st.floats(-50, 50))
def test_a_shift_of_a_whole_row_changes_nothing(log_p, shift) -> None:
    assert normalised(log_p + shift) == pytest.approx(normalised(log_p), abs=1e-9)
    prior = batch_prior(log_p)
    assert without_prior(log_p + shift, prior) == pytest.approx(without_prior(log_p, prior))


@settings(deadline=None)
@given(log_p=sets, where=st.integers(0, 11), column=st.integers(0, K - 1))
def test_a_missing_row_stays_missing_and_moves_no_other(log_p, where, column) -> None:
    holed = np.insert(log_p, where % (len(log_p) + 1), 0.0, axis=0)
    hole = where % (len(log_p) + 1)
    holed[hole, column] = np.nan
    found = batch_calibrated(holed)
    assert np.isnan(found[hole]).all()
    assert np.delete(found, hole, axis=0) == pytest.approx(batch_calibrated(log_p))


def test_numbers_worked_by_hand() -> None:
    log_p = np.log([[0.8, 0.2], [0.5, 0.5]])
    # Means of logs: log sqrt(0.4) and log sqrt(0.1); the ratio 2 is divided out of 4 : 1 and 1 : 1.
    assert np.exp(batch_calibrated(log_p)) == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)


def test_without_any_item_there_is_no_prior() -> None:
    assert np.isnan(batch_prior(np.full((2, K), np.nan))).all()
    assert np.isnan(batch_prior(np.empty((0, K)))).all()
    assert np.isnan(without_prior(np.zeros((1, K)), np.full(K, np.nan))).all()


def test_a_probability_of_zero_stays_finite() -> None:
    log_p = np.array([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]])
    assert batch_prior(log_p)[1] == pytest.approx((LEAST_LOG + np.log(0.5)) / 2)
    assert np.isfinite(batch_calibrated(log_p)).all()
