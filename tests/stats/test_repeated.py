"""Scores of responses side by side: against reference libraries and by hand."""

from collections.abc import Mapping

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import f_oneway, pearsonr, spearmanr

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import LEVEL, clustered_estimate
from judgebench.stats.repeated_measures import (
    AMONG_HUMANS,
    BESIDE_HUMANS,
    BETWEEN_SD,
    CONSTANT,
    ICC,
    NO_SPREAD,
    NO_UNIT,
    NO_ZERO,
    ONE_UNIT,
    WITHIN_SD,
    coefficient_of_variation,
    runs_for_reliability,
    score_agreement,
    spread_sums,
    variance_over_range,
)

nan = np.nan


def one_cluster(n: int) -> Clusters:
    return Clusters(np.zeros(n, dtype=np.int64), 1)


def sums_of(x) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    return spread_sums(x, one_cluster(len(x)))[0]


def value(statistic, x) -> float:
    return float(statistic.formula(sums_of(x)))


def drawn(between: float, within: float, shape=(4000, 6), seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, between, (shape[0], 1)) + rng.normal(0, within, shape)


tables = st.tuples(st.integers(2, 8), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 9))
)


@settings(deadline=None)
@given(tables)
def test_with_as_many_runs_for_each_unit_the_icc_is_that_of_shrout_and_fleiss(x) -> None:
    n, k = x.shape
    BMS = k * x.mean(axis=1).var(ddof=1)
    WMS = x.var(axis=1, ddof=1).sum() / n
    whole = BMS + (k - 1) * WMS
    expected = (BMS - WMS) / whole if whole > 1e-9 else nan
    assert value(ICC, x) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_with_unequal_numbers_it_follows_from_the_f_of_an_analysis_of_variance() -> None:
    units = [[1.0, 2.0, 4.0], [5.0, 7.0], [9.0, 8.0, 8.5, 7.0]]
    x = np.full((4, 4), nan)
    for row, unit in enumerate(units):
        x[row, : len(unit)] = unit
    x[3, 0] = 100.0  # scored once, so that it says nothing
    F = f_oneway(*units).statistic
    k0 = (9 - (9 + 4 + 16) / 9) / 2
    assert value(ICC, x) == pytest.approx((F - 1) / (F - 1 + k0))


@pytest.mark.parametrize(("between", "within"), [(2.0, 1.0), (0.3, 1.0), (1.0, 0.0)])
def test_recovers_what_the_numbers_were_drawn_from(between: float, within: float) -> None:
    x = drawn(between, within)
    x[::3, 4:] = nan
    assert value(WITHIN_SD, x) == pytest.approx(within, abs=0.02)
    assert value(BETWEEN_SD, x) == pytest.approx(between, abs=0.06)
    assert value(ICC, x) == pytest.approx(between**2 / (between**2 + within**2), abs=0.03)


def test_so_many_runs_have_the_reliability() -> None:
    unit = drawn(1.0, 0.0, (20_000, 1))
    x = drawn(1.0, 1.5)
    runs = int(runs_for_reliability(Estimate(value(ICC, x))).value)
    assert runs in (20, 21)  # 9 * 1.5 ** 2 = 20.25
    mean = unit[:, 0] + np.random.default_rng(5).normal(0, 1.5 / np.sqrt(runs), 20_000)
    assert np.corrcoef(unit[:, 0], mean)[0, 1] ** 2 == pytest.approx(0.9, abs=0.01)


def test_limits_of_runs_are_those_of_what_they_follow_from() -> None:
    icc = Estimate(0.6, 0.5, 0.75, "m", 9)
    assert str(runs_for_reliability(icc)) == "6.000 [3.000, 9.000]"
    unsure = runs_for_reliability(Estimate(0.6, -0.1, 0.9))
    assert (unsure.value, unsure.low) == (6.0, None)
    assert unsure.reason == "1 or more: no number of runs is surely enough"
    none = runs_for_reliability(Estimate(-0.2, -0.5, 0.3))
    assert (none.value, none.reason) == (None, NO_SPREAD)


@given(tables, st.floats(0.01, 100), st.floats(-100, 100))
def test_the_icc_has_no_unit_and_the_papers_measure_has(x, factor: float, shift: float) -> None:
    y = factor * x + shift
    assert value(ICC, y) == pytest.approx(value(ICC, x), abs=1e-6, nan_ok=True)
    assert value(WITHIN_SD, y) == pytest.approx(factor * value(WITHIN_SD, x), abs=1e-6)
    over = [value(variance_over_range(np.ptp(z)), z) for z in (x, y)]
    assert over[1] == pytest.approx(factor * over[0], abs=1e-6, nan_ok=True)


def test_the_coefficient_of_variation_is_for_ratio_scales_and_means_above_zero() -> None:
    x = [[1.0, 3.0], [0.0, 0.0], [4.0, 4.0]]
    assert value(coefficient_of_variation(True), x) == pytest.approx(np.sqrt(2) / 2 / 2)
    none = coefficient_of_variation(False)
    assert none.undefined(sums_of(x)) == NO_ZERO
    assert coefficient_of_variation(True).undefined(sums_of([[-1.0, -2.0]])) != ""


def test_why_a_number_is_undefined() -> None:
    assert ICC.undefined(sums_of(np.zeros((0, 3)))) == NO_UNIT == "nothing was scored twice"
    assert ICC.undefined(sums_of([[1.0, nan], [2.0, nan]])) == NO_UNIT
    assert ICC.undefined(sums_of([[1.0, 2.0]])) == ONE_UNIT == "only one unit was scored twice"
    assert WITHIN_SD.undefined(sums_of([[1.0, 2.0]])) == ""
    assert ICC.undefined(sums_of(np.full((3, 3), 0.1))) == CONSTANT == "all scores are the same"
    assert NO_SPREAD.startswith("the units differ no more than their repeats do")
    assert NO_ZERO.startswith("its scale is not known to have a true zero")


def test_equal_repeats_have_no_noise_at_all() -> None:
    x = np.repeat([[0.1], [0.3], [0.7]], 7, axis=1)
    assert value(WITHIN_SD, x) == 0
    assert value(ICC, x) == 1


def test_the_interval_of_the_icc_covers() -> None:
    held = 0
    for seed in range(100):
        x = drawn(1.0, 1.0, (60, 4), seed)
        sums = spread_sums(x, Clusters(np.arange(60), 60))
        found = clustered_estimate(sums, ICC, LEVEL, n=60)
        held += found.low <= 0.5 <= found.high
    assert held >= 88


RNG = np.random.default_rng(3)
HUMANS = np.round(RNG.uniform(0, 4, (40, 3)) * 3) / 3
CLUSTERS = Clusters(np.repeat(np.arange(20), 2), 20)
# Shrout and Fleiss (1979), Table 2: four judges on six targets; ICC(2, 1) .29
SHROUT = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
) / 1.0  # fmt: skip


def beside(judged: np.ndarray, humans: np.ndarray) -> Mapping[str, Estimate]:
    return score_agreement(np.stack([judged, humans], axis=1), BESIDE_HUMANS, CLUSTERS)


def test_alpha_is_that_of_the_reference_also_with_missing_scores() -> None:
    x = np.where(RNG.random(HUMANS.shape) < 0.2, np.nan, HUMANS)
    found = score_agreement(x, AMONG_HUMANS, CLUSTERS)["alpha"]
    wanted = krippendorff.alpha(x.T, level_of_measurement="interval")
    assert found.value == pytest.approx(wanted)
    assert found.low < wanted < found.high
    assert found.n + found.n_missing == 40


def test_icc_of_a_published_example() -> None:
    found = score_agreement(SHROUT, AMONG_HUMANS, Clusters(np.arange(6), 6))
    assert found["icc"].value == pytest.approx(0.29, abs=0.005)


def test_a_judge_beside_the_mean_of_the_humans() -> None:
    mean = HUMANS.mean(axis=1).round(9)  # else the same mean may be two numbers
    judged = np.clip(np.rint(mean + RNG.normal(0, 1, 40)), 0, 4)
    judged[:3] = np.nan
    found = beside(judged, mean)
    both = judged[3:], mean[3:]
    assert found["pearson"].value == pytest.approx(pearsonr(*both).statistic)
    assert found["spearman"].value == pytest.approx(spearmanr(*both).statistic)
    assert found["alpha"].value == pytest.approx(
        krippendorff.alpha(np.stack(both), level_of_measurement="interval")
    )
    assert {(e.n, e.n_missing) for e in found.values()} == {(37, 3)}
    for estimate in found.values():
        assert estimate.low < estimate.value < estimate.high


def test_what_is_undefined_has_a_reason() -> None:
    mean = HUMANS.mean(axis=1)
    found = beside(np.full(40, 1 / 3), mean)
    assert found["pearson"].value is None
    assert found["pearson"].reason == "the scores or the human severities do not vary"
    none = beside(np.full(40, np.nan), mean)
    assert none["pearson"].reason == "no item has both a score and a human severity"
    assert none["alpha"].reason == "no response has two scores"
    assert none["pearson"].n_missing == 40
    same = score_agreement(np.full((4, 2), 1 / 3), AMONG_HUMANS, Clusters(np.arange(4), 4))["alpha"]
    assert same.reason == "all scores are the same, so agreement beyond chance is undefined"
