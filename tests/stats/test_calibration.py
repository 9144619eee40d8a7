from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.recalibration import (
    LEAST_LOG,
    batch_prior,
    content_free_prior,
    normalised,
    without_prior,
)

logs = st.floats(-30, 0)
K = 3
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
    prior = content_free_prior(log_p)
    assert without_prior(log_p + shift, prior) == pytest.approx(without_prior(log_p, prior))


@settings(deadline=None)
@given(log_p=sets, bias=rows)
def test_a_bias_that_content_free_texts_show_too_vanishes(log_p, bias) -> None:
    """A model that says of every empty text what its bias alone says."""
    empty = normalised(np.tile(bias, (3, 1)))
    calibrated = without_prior(normalised(log_p + bias), content_free_prior(empty))
    assert calibrated == pytest.approx(normalised(log_p), abs=1e-9)


@settings(deadline=None)
@given(log_p=sets, where=st.integers(0, 11), column=st.integers(0, K - 1))
def test_a_missing_row_stays_missing_and_moves_no_other(log_p, where, column) -> None:
    holed = np.insert(log_p, where % (len(log_p) + 1), 0.0, axis=0)
    hole = where % (len(log_p) + 1)
    holed[hole, column] = np.nan
    found = batch_calibrated(holed)
    assert np.isnan(found[hole]).all()
    assert np.delete(found, hole, axis=0) == pytest.approx(batch_calibrated(log_p))


@settings(deadline=None)
@given(row=rows)
def test_a_set_of_one_item_tells_nothing_about_it(row) -> None:
    assert batch_calibrated(row[None, :]) == pytest.approx(np.log(1 / K))


def test_the_two_methods_on_numbers_worked_by_hand() -> None:
    log_p = np.log([[0.8, 0.2], [0.5, 0.5]])
    # Means of logs: log sqrt(0.4) and log sqrt(0.1); the ratio 2 is divided out of 4 : 1 and 1 : 1.
    assert np.exp(batch_calibrated(log_p)) == pytest.approx(np.array([[2, 1], [1, 2]]) / 3)
    prior = content_free_prior(np.log([[0.9, 0.1], [0.7, 0.3]]))
    assert np.exp(prior) == pytest.approx([0.8, 0.2])
    assert np.exp(without_prior(log_p, prior)) == pytest.approx(np.array([[0.5, 0.5], [0.2, 0.8]]))


def test_without_any_item_there_is_no_prior() -> None:
    assert np.isnan(batch_prior(np.full((2, K), np.nan))).all()
    assert np.isnan(batch_prior(np.empty((0, K)))).all()
    assert np.isnan(content_free_prior(np.empty((0, K)))).all()
    one_of_two = np.array([[-1.0, -1.0, -1.0], [np.nan, np.nan, np.nan]])
    assert np.isnan(content_free_prior(one_of_two)).all()
    assert np.isnan(without_prior(np.zeros((1, K)), np.full(K, np.nan))).all()


def test_a_probability_of_zero_stays_finite() -> None:
    log_p = np.array([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]])
    assert batch_prior(log_p)[1] == pytest.approx((LEAST_LOG + np.log(0.5)) / 2)
    assert np.isfinite(batch_calibrated(log_p)).all()
    assert np.isfinite(content_free_prior(log_p[:1])).all()
