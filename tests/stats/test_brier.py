from __future__ import annotations

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import brier_score_loss

from judgebench.stats.calibration_error import (
    NO_ITEM,
    ONE_TRUTH,
    bins_for,
    brier_decomposition,
    equal_mass_bins,
    one_hot,
)
from judgebench.stats.resample import Resampling

FEW = Resampling(resamples=100)
# No label has one probability in two groups, so that a label's groups are the forecasts' groups.
GROUPS = np.array([[0.7, 0.2, 0.1], [0.05, 0.8, 0.15], [0.3, 0.3, 0.4]])


def decompose(p, q, resampling=FEW):
    return brier_decomposition(p, q, apart(len(p)), resampling)


def murphy(group: list[int], truth: list[int]) -> tuple[float, float, float]:
    """Reliability, resolution and uncertainty of grouped forecasts, as Murphy defines them."""
    n, base = len(truth), [truth.count(j) / len(truth) for j in range(3)]
    reliability = resolution = 0.0
    for g in set(group):
        inside = [t for i, t in zip(group, truth, strict=True) if i == g]
        for j in range(3):
            share = inside.count(j) / len(inside)
            reliability += len(inside) / n * (GROUPS[g][j] - share) ** 2
            resolution += len(inside) / n * (share - base[j]) ** 2
    return reliability, resolution, sum(b * (1 - b) for b in base)


def test_of_grouped_forecasts_it_is_murphys() -> None:
    """Each forecast fills a third, so that no bin holds two."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 80)
    truth = np.array([rng.choice(3, p=GROUPS[(g + 1) % 3]) for g in group])
    found = decompose(GROUPS[group], one_hot(truth, 3))
    reliability, resolution, uncertainty = murphy(group.tolist(), truth.tolist())
    assert found.reliability.value == pytest.approx(reliability)
    assert found.resolution.value == pytest.approx(resolution)
    assert found.uncertainty.value == pytest.approx(uncertainty)
    brier = brier_score_loss(truth, GROUPS[group], labels=range(3), scale_by_half=False)
    assert found.brier.value == pytest.approx(brier)
    assert found.skill.value == pytest.approx(1 - brier / uncertainty)


def stephenson(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """REL and RES - WBV + WBC of one label by loops over its bins."""
    n, code = len(x), equal_mass_bins(x, bins_for(len(x)))
    reliability = resolution = 0.0
    for b in set(code.tolist()):
        said, was = x[code == b], y[code == b]
        reliability += len(said) / n * (said.mean() - was.mean()) ** 2
        resolution += len(said) / n * (was.mean() - y.mean()) ** 2
        for f, o in zip(said, was, strict=True):
            resolution -= (f - said.mean()) ** 2 / n
            resolution += 2 * (o - was.mean()) * (f - said.mean()) / n
    return reliability, resolution


@settings(deadline=None, max_examples=30)
@given(
    w=arrays(np.float64, (60, 3), elements=st.floats(0.01, 1)),
    truth=arrays(np.int64, (60,), elements=st.integers(0, 2)),
)
def test_the_terms_add_up_and_are_those_of_stephenson(w, truth) -> None:
    p, q = w / w.sum(axis=1, keepdims=True), one_hot(truth, 3)
    found = decompose(p, q)
    reliability, resolution = np.sum([stephenson(p[:, j], q[:, j]) for j in range(3)], axis=0)
    assert found.reliability.value == pytest.approx(reliability, abs=1e-9)
    assert found.resolution.value == pytest.approx(resolution, abs=1e-9)
    total = found.reliability.value - found.resolution.value + found.uncertainty.value
    assert found.brier.value == pytest.approx(total, abs=1e-9)
    for e in (found.brier, found.reliability, found.resolution, found.uncertainty):
        assert e.value is not None
        assert e.reason if e.low is None else e.low <= e.value <= e.high


def test_base_rates_have_neither_skill_nor_resolution() -> None:
    truth = np.repeat([0, 1, 2], [50, 30, 20])
    found = decompose(np.tile([0.5, 0.3, 0.2], (100, 1)), one_hot(truth, 3))
    for nothing in (found.reliability, found.resolution, found.skill):
        assert nothing.value == pytest.approx(0, abs=1e-12)
    assert found.brier.value == pytest.approx(1 - (0.25 + 0.09 + 0.04))


def test_soft_labels_have_the_variance_of_their_shares_as_uncertainty() -> None:
    q = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]] * 10)
    found = decompose(q, q)
    assert found.brier.value == pytest.approx(0)
    assert found.uncertainty.value == pytest.approx(2 * q[:, 0].var())
    assert found.skill.value == pytest.approx(1)


def test_one_truth_leaves_skill_undefined_and_nothing_leaves_all_undefined() -> None:
    p = np.tile([0.9, 0.1], (30, 1))
    one = decompose(p, one_hot(np.zeros(30, dtype=int), 2))
    assert (one.skill.value, one.skill.reason) == (None, ONE_TRUTH)
    assert one.uncertainty.value == pytest.approx(0)
    assert one.brier.value == pytest.approx(0.02)
    nothing = decompose(np.full((4, 2), np.nan), one_hot(np.zeros(4, dtype=int), 2))
    for e in (nothing.brier, nothing.reliability, nothing.resolution, nothing.skill):
        assert (e.value, e.n, e.n_missing, e.reason) == (None, 0, 4, NO_ITEM)


def test_the_interval_of_the_reliability_of_a_calibrated_judge_holds_0() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 300)
    truth = (rng.random((300, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = decompose(p, one_hot(truth, 3), Resampling(resamples=400))
    assert found.reliability.low == 0
    assert "bias-corrected" in found.reliability.method
    assert "10 bins of equal mass per label" in found.reliability.method
    assert found.brier.low is not None
    assert found.brier.low > 0
