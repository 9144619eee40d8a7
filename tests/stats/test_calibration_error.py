from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve as sklearn_curve

from judgebench.stats.arrays import Clusters
from judgebench.stats.calibration_error import (
    NO_ITEM,
    calibration_curve,
    expected_calibration_error,
    one_hot,
)
from judgebench.stats.resample import Resampling

FROZEN = json.loads((Path(__file__).parent / "data" / "calibration.json").read_text())
P, TRUTH = np.array(FROZEN["p"]), np.array(FROZEN["truth"])
EACH = np.arange(len(P))
FEW = Resampling(resamples=300)


def judged(n: int, boldness: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities of two labels at boldness 1; too bold above it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-boldness * z))
    return np.stack([1 - p, p], axis=1), truth


def test_it_agrees_with_the_uncertainty_calibration_package() -> None:
    found = expected_calibration_error(P, one_hot(TRUTH, 3), Clusters(EACH, len(P)), FEW)
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
    found = expected_calibration_error(p, one_hot(truth, 2), apart(200), FEW)
    assert found.plug_in.value == pytest.approx(0.1)


@pytest.mark.parametrize(("boldness", "true"), [(1.0, 0.0), (3.0, 0.150)])
def test_the_interval_holds_the_true_error_and_debiasing_comes_nearer_to_it(boldness, true) -> None:
    """`true` is that of 400,000 draws; a percentile interval never holds 0."""
    held, plain, debiased = 0, [], []
    for seed in range(40):
        p, truth = judged(200, boldness, seed)
        found = expected_calibration_error(p, one_hot(truth, 2), apart(200), FEW)
        low, high = found.debiased.low, found.debiased.high
        assert low is not None
        assert high is not None
        for estimate in (found.plug_in, found.debiased):
            assert estimate.value is not None
            assert low == estimate.low <= estimate.value <= estimate.high == high
        held += low <= true <= high
        plain.append(found.plug_in.value)
        debiased.append(found.debiased.value)
    assert held >= 34  # 38 are expected of 40; 34 or more with 98 % at a coverage of 92 %
    assert abs(np.mean(debiased) - true) < abs(np.mean(plain) - true)


def test_shares_of_annotators_count_as_shares_right() -> None:
    p = np.tile([0.3, 0.7], (50, 1))
    q = np.tile([0.25, 0.75], (50, 1))
    found = expected_calibration_error(p, q, apart(50), FEW)
    assert found.plug_in.value == pytest.approx(0.05)
    assert found.plug_in.low is None  # every resample agrees
    assert found.plug_in.reason


def test_missing_rows_are_counted_and_nothing_has_a_reason() -> None:
    p, truth = judged(60, 1.0, 0)
    p[:10] = np.nan
    truth[10:20] = -1
    found = expected_calibration_error(p, one_hot(truth, 2), apart(60), FEW)
    assert (found.plug_in.n, found.plug_in.n_missing) == (40, 20)
    assert sum(point.right.n for point in calibration_curve(p, truth)) == 40
    nothing = expected_calibration_error(p[:10], one_hot(truth[:10], 2), apart(10), FEW)
    for estimate in (nothing.plug_in, nothing.debiased):
        assert (estimate.value, estimate.reason) == (None, NO_ITEM)
    assert calibration_curve(p[:10], truth[:10]) == ()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_items_are_no_error(n: int) -> None:
    p, truth = judged(n, 1.0, 1)
    found = expected_calibration_error(p, one_hot(truth, 2), apart(n), FEW)
    expected = abs(p.max(axis=1).mean() - (p.argmax(axis=1) == truth).mean())
    assert found.plug_in.value == pytest.approx(expected)
    assert found.plug_in.low is not None or found.plug_in.reason
