from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.calibration_error import (
    LEAST_IN_BIN,
    MOST_BINS,
    bins_for,
    bins_in_words,
    cells_by_cluster,
    debiased_gap,
    equal_mass_bins,
    gap_by_chance,
    total_gap,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "calibration.json").read_text())["grouped"]


@settings(deadline=None)
@given(
    x=st.lists(st.sampled_from(np.linspace(0, 1, 7).tolist()), max_size=40).map(np.array),
    bins=st.integers(1, 6),
)
def test_bins_rise_with_the_value_and_ties_share_one(x, bins) -> None:
    code = equal_mass_bins(x.astype(float), bins)
    rank = np.array([(x < value).sum() for value in x], dtype=int)
    assert code.tolist() == (rank * bins // max(1, len(x))).tolist()


@pytest.mark.parametrize("n", [12, 100, 101])
def test_without_ties_bins_are_of_equal_mass(n: int) -> None:
    x = np.random.default_rng(0).permutation(n).astype(float)
    sizes = np.bincount(equal_mass_bins(x, 4))
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) <= 1


def test_few_items_make_few_bins() -> None:
    assert [bins_for(n) for n in (0, 1, 2 * LEAST_IN_BIN - 1, 2 * LEAST_IN_BIN)] == [1, 1, 1, 2]
    assert bins_for(10**6) == MOST_BINS
    assert (bins_in_words(1), bins_in_words(3)) == ("1 bin of equal mass", "3 bins of equal mass")


def grouped() -> np.ndarray:
    """The frozen example: every item a cluster of its own, and all cells added up."""
    n, right = FROZEN["n"], FROZEN["right"]
    code = np.repeat(np.arange(3), n)
    hit = np.concatenate([np.arange(size) < k for size, k in zip(n, right, strict=True)])
    gap = hit - np.repeat(FROZEN["confidence"], n)
    return cells_by_cluster(code, gap, apart(len(gap)), 3).sum(axis=0)


def test_gaps_agree_with_the_uncertainty_calibration_package() -> None:
    cells, n = grouped(), sum(FROZEN["n"])
    assert total_gap(cells, 1) / n == pytest.approx(FROZEN["plug_in"])
    assert total_gap(cells, 2) / n == pytest.approx(FROZEN["squared"])
    assert debiased_gap(cells, 2) / n == pytest.approx(FROZEN["debiased_squared"])
    # The package divides by n, not n - 1, and draws what is here a formula.
    assert debiased_gap(cells, 1) / n == pytest.approx(FROZEN["debiased_by_draws"], abs=3e-4)


def test_the_mean_of_a_folded_normal_is_that_of_many_draws() -> None:
    cells, n = grouped(), np.array(FROZEN["n"])
    p = np.array(FROZEN["right"]) / n
    d, s = p - FROZEN["confidence"], np.sqrt(p * (1 - p) / (n - 1))
    draws = np.abs(np.random.default_rng(0).normal(d, s, (400_000, 3))).mean(axis=0)
    assert debiased_gap(cells, 1) == pytest.approx((n * (2 * np.abs(d) - draws)).sum(), abs=0.02)


def test_items_that_go_together_count_as_one_for_the_variance() -> None:
    """Ten copies of every item tell no more than one of each."""
    rng = np.random.default_rng(1)
    gap, code = rng.normal(0.05, 0.3, 60), np.repeat([0, 1], 30)
    once = cells_by_cluster(code, gap, apart(60), 2).sum(axis=0)
    copies = cells_by_cluster(
        np.repeat(code, 10), np.repeat(gap, 10), Clusters(np.repeat(np.arange(60), 10), 60), 2
    ).sum(axis=0)
    for power in (1, 2):
        assert debiased_gap(copies, power) == pytest.approx(10 * debiased_gap(once, power))
        assert total_gap(copies, power) == pytest.approx(10 * total_gap(once, power))


@settings(deadline=None)
@given(gap=arrays(np.float64, (12,), elements=st.floats(-1, 1)), power=st.sampled_from([1, 2]))
def test_a_sample_shows_no_chance_against_itself_and_bias_is_never_negative(gap, power) -> None:
    code, clusters = np.arange(12) % 2, np.arange(12) // 3
    cells = cells_by_cluster(code, gap, Clusters(clusters, 4), 3)
    total = cells.sum(axis=0)
    assert gap_by_chance(total, power, total) == pytest.approx(0, abs=1e-12)
    assert debiased_gap(total, power) <= total_gap(total, power) + 1e-9
    # Vectorised over samples.
    two = np.stack([total, cells[0] + cells[1]])
    for function in (total_gap, debiased_gap):
        each = [float(function(one, power)) for one in two]
        assert function(two, power).tolist() == pytest.approx(each)
