from __future__ import annotations

import numpy as np
import pytest
from cluster_case import apart, together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from judgebench.stats.arrays import Clusters
from judgebench.stats.calibration_error import (
    LEAST_PROBABILITY,
    NO_ITEM,
    cross_entropy,
    jensen_shannon,
    kl_divergence,
    mean_score,
    one_hot,
    squared_distance,
    total_variation,
)
from judgebench.stats.resample import MOST_GROUPS, Resampling

K = 3
FEW = Resampling(resamples=200)
DISTANCES = (squared_distance, kl_divergence, total_variation, jensen_shannon)


def shares(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(axis=1, keepdims=True)


weights = arrays(np.float64, (5, K), elements=st.floats(0, 1)).map(lambda w: shares(w + 1e-9))
labels = arrays(np.int64, (5,), elements=st.integers(0, K - 1))


@settings(deadline=None, max_examples=30)
@given(p=weights, truth=labels)
def test_against_one_label_they_are_scikit_learns_brier_score_and_log_loss(p, truth) -> None:
    q = one_hot(truth, K)
    brier = brier_score_loss(truth, p, labels=range(K), scale_by_half=False)
    assert squared_distance(p, q).mean() == pytest.approx(brier)
    loss = sklearn_log_loss(truth, p, labels=range(K))
    assert cross_entropy(p, q).mean() == pytest.approx(loss, abs=1e-9)


@settings(deadline=None)
@given(p=weights, q=weights)
def test_against_a_distribution_they_are_scipys(p, q) -> None:
    assert kl_divergence(p, q) == pytest.approx(entropy(q, p, axis=1), abs=1e-9)
    m = (p + q) / 2
    halves = entropy(p, m, base=2, axis=1) + entropy(q, m, base=2, axis=1)
    assert jensen_shannon(p, q) == pytest.approx(halves / 2, abs=1e-9)
    assert total_variation(p, q) == pytest.approx(np.maximum(p - q, 0).sum(axis=1))
    expected = entropy(q, axis=1) + entropy(q, p, axis=1)
    assert cross_entropy(p, q) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(p=weights, q=weights)
def test_only_what_the_humans_say_has_no_distance_and_bounds_hold(p, q) -> None:
    for distance in DISTANCES:
        assert distance(p, p) == pytest.approx(0, abs=1e-9)
        assert (distance(p, q) >= 0).all()
    assert (squared_distance(p, q) <= 2).all()
    for bounded in (total_variation, jensen_shannon):
        assert (bounded(p, q) <= 1 + 1e-12).all()
        assert bounded(p, q) == pytest.approx(bounded(q, p))


@settings(deadline=None)
@given(q=weights, p=weights)
def test_no_report_scores_better_on_average_than_the_truth_itself(q, p) -> None:
    """Both are proper: the expected score under q is least where the report is q."""
    for score in (squared_distance, cross_entropy):
        expected = [
            sum(q[:, j] * score(said, np.tile(np.eye(K)[j], (len(q), 1))) for j in range(K))
            for said in (q, p)
        ]
        assert (expected[0] <= expected[1] + 1e-9).all()


def test_a_certain_mistake_costs_what_the_clip_says() -> None:
    p = np.array([[1.0, 0.0]])
    assert cross_entropy(p, one_hot(np.array([1]), 2)) == pytest.approx(-np.log(LEAST_PROBABILITY))
    assert kl_divergence(p, np.array([[0.5, 0.5]])) == pytest.approx(
        -np.log(LEAST_PROBABILITY) / 2 - np.log(2)
    )


def test_a_gap_on_either_side_is_a_missing_score() -> None:
    p = np.array([[0.5, 0.5], [np.nan, np.nan], [0.5, 0.5]])
    q = one_hot(np.array([0, 1, -1]), 2)
    for score in (*DISTANCES, cross_entropy):
        assert np.isnan(score(p, q)).tolist() == [False, True, True]
    found = mean_score(squared_distance(p, q), apart(3), FEW)
    assert (found.value, found.n, found.n_missing) == (0.5, 1, 2)
    assert found.low is None
    assert found.reason


def test_without_an_item_there_is_a_reason() -> None:
    nothing = mean_score(np.full(3, np.nan), apart(3), FEW)
    assert (nothing.value, nothing.n, nothing.n_missing, nothing.reason) == (None, 0, 3, NO_ITEM)
    assert mean_score(np.zeros(0), Clusters(np.zeros(0, dtype=int), 0), FEW).reason == NO_ITEM
    with pytest.raises(ValueError, match="same shape"):
        mean_score(np.zeros(2), together(1))


def test_the_interval_of_a_mean_is_that_of_its_standard_error_over_clusters() -> None:
    rng = np.random.default_rng(0)
    of_cluster = rng.normal(size=200)
    scores, clusters = np.repeat(of_cluster, 5), np.repeat(np.arange(200), 5)
    found = mean_score(scores, Clusters(clusters, 200))
    assert found.value == pytest.approx(of_cluster.mean())
    assert found.low is not None
    assert found.high is not None
    width = 2 * 1.96 * of_cluster.std() / np.sqrt(200)
    assert found.high - found.low == pytest.approx(width, rel=0.05)


def test_very_many_clusters_are_resampled_in_random_groups_and_the_method_says_so() -> None:
    n = 5 * MOST_GROUPS
    scores = np.random.default_rng(1).normal(size=n)
    found = mean_score(scores, apart(n))
    assert found.value == pytest.approx(scores.mean())
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 / np.sqrt(n), rel=0.08)
    assert f"random groups of {n:,} clusters" in found.method
    few = mean_score(scores[:50], apart(50))
    assert "groups" not in few.method
