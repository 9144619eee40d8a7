"""Correlations of scores with humans, where the true ones are known: `benchmarks/decisions.py
--correlations`."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from decision_worlds import decisions


@pytest.fixture(scope="module")
def bed() -> ModuleType:
    return decisions("correlated_worlds")


def of_systems(found: object, interval: str) -> np.ndarray:
    """(held, left out, width) of the coefficients over systems (4, 3)."""
    return np.array([by[interval] for (level, _), by in found.items() if level == "system"])


def test_no_interval_leaves_its_estimate_out(bed: ModuleType) -> None:
    found = bed.cover(bed.CORRELATED[1], 1, 0)
    assert all(by_name["judgebench"][1] == 0 for by_name in found.values())
    np.testing.assert_allclose(of_systems(found, "judgebench"), of_systems(found, "symmetric"), 0.1)


@pytest.mark.long
def test_intervals_over_few_systems_hold_the_truth_and_percentiles_do_not(bed: ModuleType) -> None:
    found = bed.cover(bed.CORRELATED[1], 60, 1)
    assert all(by_name["judgebench"][1] == 0 for by_name in found.values())
    assert all(by_name["judgebench"][0] >= 0.85 for by_name in found.values())
    pearson = found["system", "pearson"]
    assert pearson["percentile"][0] < 0.8 < 0.9 <= pearson["judgebench"][0]
    for other in ("percentile", "basic", "BC", "BCa"):
        assert of_systems(found, other)[:, 0].mean() < of_systems(found, "judgebench")[:, 0].mean()
