import json
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, entropy
from sklearn.calibration import calibration_curve as sklearn_curve
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from judgebench.stats.arrays import Clusters
from judgebench.stats.calibration import (
    LEAST_IN_BIN,
    LEAST_PROBABILITY,
    MOST_BINS,
    NO_ITEM,
    ONE_TRUTH,
    annotator_against_others,
    base_rates,
    bins_for,
    brier_skill,
    calibration_curve,
    cells_by_cluster,
    cross_entropy,
    debiased_gap,
    equal_mass_bins,
    expected_calibration_error,
    judge_against_others,
    one_hot,
    squared_distance,
    total_gap,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "calibration.json").read_text())
P, TRUTH = np.array(FROZEN["p"]), np.array(FROZEN["truth"])
EACH = np.arange(len(P))


def judged(n: int, boldness: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities of two labels at boldness 1; too bold above it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-boldness * z))
    return np.stack([1 - p, p], axis=1), truth


def test_it_agrees_with_the_uncertainty_calibration_package() -> None:
    found = expected_calibration_error(P, one_hot(TRUTH, 3), Clusters(EACH, len(P)))
    assert found.plug_in.value == pytest.approx(FROZEN["ece_em"]["value"])
    assert "6 bins of equal mass" in found.plug_in.method


def test_the_curve_agrees_with_scikit_learn_and_scipys_exact_interval() -> None:
    found = calibration_curve(P, TRUTH)
    confidence, right = P.max(axis=1), P.argmax(axis=1) == TRUTH
    share, mean = sklearn_curve(right, confidence, n_bins=6, strategy="quantile")
    assert [point.confidence for point in found] == pytest.approx(mean.tolist())
    assert [point.right.value for point in found] == pytest.approx(share.tolist())
    for point in found:
        exact = binomtest(round(point.right.value * 20), 20).proportion_ci(method="exact")
        assert (point.right.low, point.right.high, point.right.n) == (
            pytest.approx(exact.low), pytest.approx(exact.high), 20,
        )  # fmt: skip


def test_grouped_forecasts_are_bins_of_their_own() -> None:
    p = np.array([[0.5, 0.5]] * 100 + [[0.2, 0.8]] * 100)
    truth = np.array([0] * 40 + [1] * 60 + [1] * 70 + [0] * 30)
    first, second = calibration_curve(p, truth)
    assert (first.confidence, first.right.value) == (0.5, 0.4)  # the first of equal labels
    assert (second.confidence, second.right.value) == (pytest.approx(0.8), 0.7)
    found = expected_calibration_error(p, one_hot(truth, 2), apart(200))
    assert found.plug_in.value == pytest.approx(0.1)


@pytest.mark.parametrize(("boldness", "true"), [(1.0, 0.0), (3.0, 0.150)])
def test_the_interval_holds_the_true_error_and_debiasing_comes_nearer_to_it(boldness, true) -> None:
    """`true` is that of 400,000 draws; a percentile interval never holds 0."""
    held, plain, debiased = 0, [], []
    for seed in range(40):
        p, truth = judged(200, boldness, seed)
        found = expected_calibration_error(p, one_hot(truth, 2), apart(200))
        low, high = found.debiased.low, found.debiased.high
        for estimate in (found.plug_in, found.debiased):
            assert low == estimate.low <= estimate.value <= estimate.high == high
        held += low <= true <= high
        plain.append(found.plug_in.value)
        debiased.append(found.debiased.value)
    assert held >= 34  # 38 are expected of 40; 34 or more with 98 % at a coverage of 92 %
    assert abs(np.mean(debiased) - true) < abs(np.mean(plain) - true)


def test_shares_of_annotators_count_as_shares_right() -> None:
    p = np.tile([0.3, 0.7], (50, 1))
    q = np.tile([0.25, 0.75], (50, 1))
    found = expected_calibration_error(p, q, apart(50))
    assert found.plug_in.value == pytest.approx(0.05)
    assert found.plug_in.low is None  # all items are alike
    assert found.plug_in.reason


def test_missing_rows_are_counted_and_nothing_has_a_reason() -> None:
    p, truth = judged(60, 1.0, 0)
    p[:10] = np.nan
    truth[10:20] = -1
    found = expected_calibration_error(p, one_hot(truth, 2), apart(60))
    assert (found.plug_in.n, found.plug_in.n_missing) == (40, 20)
    assert sum(point.right.n for point in calibration_curve(p, truth)) == 40
    nothing = expected_calibration_error(p[:10], one_hot(truth[:10], 2), apart(10))
    for estimate in (nothing.plug_in, nothing.debiased):
        assert (estimate.value, estimate.reason) == (None, NO_ITEM)
    assert calibration_curve(p[:10], truth[:10]) == ()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_items_are_no_error(n: int) -> None:
    p, truth = judged(n, 1.0, 1)
    found = expected_calibration_error(p, one_hot(truth, 2), apart(n))
    expected = abs(p.max(axis=1).mean() - (p.argmax(axis=1) == truth).mean())
    assert found.plug_in.value == pytest.approx(expected)
    assert found.plug_in.low is not None or found.plug_in.reason


K = 3


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
    expected = entropy(q, axis=1) + entropy(q, p, axis=1)
    assert cross_entropy(p, q) == pytest.approx(expected, abs=1e-9)


def test_a_certain_mistake_costs_what_the_clip_says() -> None:
    p = np.array([[1.0, 0.0]])
    assert cross_entropy(p, one_hot(np.array([1]), 2)) == pytest.approx(-np.log(LEAST_PROBABILITY))


def test_a_gap_on_either_side_is_a_missing_score() -> None:
    p = np.array([[0.5, 0.5], [np.nan, np.nan], [0.5, 0.5]])
    q = one_hot(np.array([0, 1, -1]), 2)
    for score in (squared_distance, cross_entropy):
        assert np.isnan(score(p, q)).tolist() == [False, True, True]


def skill(p, q):
    return brier_skill(p, q, apart(len(p)))


def test_skill_is_what_scikit_learns_brier_score_takes_off_the_base_rates() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    truth = (rng.random((200, 1)) > p.cumsum(axis=1)).sum(axis=1)
    base = np.bincount(truth, minlength=3) / 200
    brier = brier_score_loss(truth, p, labels=range(3), scale_by_half=False)
    found = skill(p, one_hot(truth, 3))
    assert found.value == pytest.approx(1 - brier / (base * (1 - base)).sum())
    assert found.low < found.value < found.high <= 1


def test_base_rates_have_no_skill() -> None:
    truth = np.repeat([0, 1, 2], [50, 30, 20])
    found = skill(np.tile([0.5, 0.3, 0.2], (100, 1)), one_hot(truth, 3))
    assert found.value == pytest.approx(0, abs=1e-12)


def test_soft_labels_said_as_they_are_have_all_skill() -> None:
    q = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]] * 10)
    assert skill(q, q).value == pytest.approx(1)


def test_one_truth_or_none_leaves_skill_undefined() -> None:
    one = skill(np.tile([0.9, 0.1], (30, 1)), one_hot(np.zeros(30, dtype=int), 2))
    assert (one.value, one.reason) == (None, ONE_TRUTH)
    nothing = skill(np.full((4, 2), np.nan), one_hot(np.zeros(4, dtype=int), 2))
    assert (nothing.value, nothing.n, nothing.n_missing, nothing.reason) == (None, 0, 4, NO_ITEM)


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
                distances.append(((said - share) ** 2).sum())
        found.append(float(np.mean(distances)) if distances else np.nan)
    return found


@settings(deadline=None)
@given(n_uc=counts, p=arrays(np.float64, (6, K), elements=st.floats(0.01, 1)))
def test_every_annotator_in_turn_is_held_against_the_others(n_uc, p) -> None:
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(annotator_against_others(n_uc), by_loop(n_uc, None), atol=1e-12)
    np.testing.assert_allclose(judge_against_others(p, n_uc), by_loop(n_uc, p), atol=1e-12)


def test_base_rates_weigh_every_item_the_same() -> None:
    assert base_rates(np.array([[9, 1], [0, 1], [0, 0]])).tolist() == pytest.approx([0.45, 0.55])
    assert np.isnan(base_rates(np.zeros((2, 3), dtype=int))).all()
    assert np.isnan(base_rates(np.zeros((0, 3), dtype=int))).all()


FROZEN_BRIER = json.loads((Path(__file__).parent / "data" / "calibration.json").read_text())[
    "grouped"
]


@settings(deadline=None)
@given(
    x=st.lists(st.sampled_from(np.linspace(0, 1, 7).tolist()), max_size=40).map(np.array),
    bins=st.integers(1, 6),
)
def test_bins_rise_with_the_value_and_ties_share_one(x, bins) -> None:
    code = equal_mass_bins(x.astype(float), bins)
    rank = np.array([(x < value).sum() for value in x], dtype=int)
    assert code.tolist() == (rank * bins // max(1, len(x))).tolist()


def test_few_items_make_few_bins() -> None:
    assert [bins_for(n) for n in (0, 1, 2 * LEAST_IN_BIN - 1, 2 * LEAST_IN_BIN)] == [1, 1, 1, 2]
    assert bins_for(10**6) == MOST_BINS


def grouped() -> np.ndarray:
    """The frozen example: every item a cluster of its own, and all cells added up."""
    n, right = FROZEN_BRIER["n"], FROZEN_BRIER["right"]
    code = np.repeat(np.arange(3), n)
    hit = np.concatenate([np.arange(size) < k for size, k in zip(n, right, strict=True)])
    gap = hit - np.repeat(FROZEN_BRIER["confidence"], n)
    return cells_by_cluster(code, gap, apart(len(gap)), 3).sum(axis=0)


def test_gaps_agree_with_the_uncertainty_calibration_package() -> None:
    cells, n = grouped(), sum(FROZEN_BRIER["n"])
    assert total_gap(cells) / n == pytest.approx(FROZEN_BRIER["plug_in"])
    # The package divides by n, not n - 1, and draws what is here a formula.
    assert debiased_gap(cells) / n == pytest.approx(FROZEN_BRIER["debiased_by_draws"], abs=3e-4)


def test_items_that_go_together_count_as_one_for_the_variance() -> None:
    """Ten copies of every item tell no more than one of each."""
    rng = np.random.default_rng(1)
    gap, code = rng.normal(0.05, 0.3, 60), np.repeat([0, 1], 30)
    once = cells_by_cluster(code, gap, apart(60), 2).sum(axis=0)
    copies = cells_by_cluster(
        np.repeat(code, 10), np.repeat(gap, 10), Clusters(np.repeat(np.arange(60), 10), 60), 2
    ).sum(axis=0)
    for gap_of in (total_gap, debiased_gap):
        assert gap_of(copies) == pytest.approx(10 * gap_of(once))


@settings(deadline=None)
@given(gap=arrays(np.float64, (12,), elements=st.floats(-1, 1)))
def test_bias_is_never_negative(gap) -> None:
    code, clusters = np.arange(12) % 2, np.arange(12) // 3
    cells = cells_by_cluster(code, gap, Clusters(clusters, 4), 3)
    total = cells.sum(axis=0)
    assert debiased_gap(total) <= total_gap(total) + 1e-9
    # Vectorised over samples.
    two = np.stack([total, cells[0] + cells[1]])
    for function in (total_gap, debiased_gap):
        each = [float(function(one)) for one in two]
        assert function(two).tolist() == pytest.approx(each)
