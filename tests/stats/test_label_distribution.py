from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.calibration_error import (
    annotator_against_others,
    base_rates,
    cross_entropy,
    hold_back,
    judge_against_others,
    squared_distance,
    total_variation,
)

K = 3
counts = arrays(np.int64, (6, K), elements=st.integers(0, 4))


def by_loop(n_uc: np.ndarray, p: np.ndarray | None) -> list[float]:
    """One annotator after another, each with his label taken out; p is None for his own label."""
    found = []
    for row, votes in enumerate(n_uc):
        labels = [j for j in range(K) for _ in range(votes[j])]
        distances = []
        for i, label in enumerate(labels):
            others = labels[:i] + labels[i + 1 :]
            said = np.eye(K)[label] if p is None else p[row]
            if others:
                share = np.array([others.count(j) / len(others) for j in range(K)])
                distances.append(abs(said - share).sum() / 2)
        found.append(float(np.mean(distances)) if distances else np.nan)
    return found


@settings(deadline=None)
@given(n_uc=counts, p=arrays(np.float64, (6, K), elements=st.floats(0.01, 1)))
def test_every_annotator_in_turn_is_held_against_the_others(n_uc, p) -> None:
    p /= p.sum(axis=1, keepdims=True)
    held = hold_back(n_uc)
    np.testing.assert_allclose(annotator_against_others(total_variation, held), by_loop(n_uc, None))
    np.testing.assert_allclose(judge_against_others(total_variation, p, held), by_loop(n_uc, p))


@settings(deadline=None)
@given(n_uc=counts, p=arrays(np.float64, (6, K), elements=st.floats(0.01, 1)))
def test_the_cross_entropy_is_that_of_all_labels_whoever_is_left_out(n_uc, p) -> None:
    p /= p.sum(axis=1, keepdims=True)
    m = n_uc.sum(axis=1)
    several = m >= 2
    found = judge_against_others(cross_entropy, p, hold_back(n_uc))
    assert np.isnan(found).tolist() == (~several).tolist()
    q = n_uc[several] / m[several, None]
    np.testing.assert_allclose(found[several], cross_entropy(p[several], q))


def test_a_gap_of_the_judge_stays_a_gap() -> None:
    p = np.array([[0.5, 0.5], [np.nan, np.nan]])
    found = judge_against_others(squared_distance, p, hold_back(np.array([[2, 0], [2, 0]])))
    assert found[0] == pytest.approx(0.5)
    assert np.isnan(found[1])


def test_base_rates_weigh_every_item_the_same() -> None:
    assert base_rates(np.array([[9, 1], [0, 1], [0, 0]])).tolist() == pytest.approx([0.45, 0.55])
    assert np.isnan(base_rates(np.zeros((2, 3), dtype=int))).all()
    assert np.isnan(base_rates(np.zeros((0, 3), dtype=int))).all()
