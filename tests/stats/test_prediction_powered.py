"""PPI++ against ppi-python, whose figures are frozen, and against what must hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.partly_labelled import (
    ALL_ALIKE,
    ALL_LABELLED,
    LABELLED,
    NO_LABEL,
    ONE_CLUSTER,
    TRUTH_IS_THIS,
    LabelCounts,
    judged_counts,
    power_tuned,
    prediction_powered,
    share_influence,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "prediction_powered.json").read_text())
CASES = {case["name"]: case for case in FROZEN["cases"]}
cells = st.lists(st.integers(0, 30), min_size=6, max_size=6)


def singles(table) -> LabelCounts:
    """A cluster for each item."""
    return LabelCounts(np.eye(6).reshape(6, 3, 2), np.array(table).ravel())


def limits(e: Estimate) -> tuple:
    return e.value, e.low, e.high


def normal(value: float, variance: float) -> tuple[float, float, float]:
    """The interval of the PPI++ paper, value +- 1.96 sqrt(variance), with the value before it."""
    half = scipy.stats.norm.ppf(0.975) * variance**0.5
    return value, value - half, value + half


@pytest.mark.parametrize("name", CASES)
def test_the_point_and_the_normal_interval_equal_those_of_ppi_python(name: str) -> None:
    case, counts = CASES[name], singles(CASES[name]["counts"])
    tuned = power_tuned(counts)
    # ppi-python divides 0 by 0 where the judge is constant; lambda 0 is the human labels alone
    expected = case["classical"] if name == "constant judge" else case["tuned"]
    found = normal(tuned.value, counts.cluster_variance(tuned.influence))
    assert found == pytest.approx(tuple(expected.values()), rel=1e-9)
    human, influence = share_influence(counts, TRUTH_IS_THIS, LABELLED)
    assert normal(human, counts.cluster_variance(influence)) == pytest.approx(
        tuple(case["classical"].values()), rel=1e-9
    )
    assert 0 <= tuned.tuning <= 1


def test_the_frozen_cases_span_lambda_from_0_to_nearly_1() -> None:
    found = {name: power_tuned(singles(case["counts"])).tuning for name, case in CASES.items()}
    assert found["judge that turns the label round"] == found["constant judge"] == 0
    assert 0 < found["few unlabelled items"] < 0.25
    assert 0.75 < found["perfect judge"] < 1


@given(cells)
def test_a_label_and_its_opposite_have_rates_that_add_up_to_1(table) -> None:
    table = np.array(table).reshape(3, 2)
    if not table[:2].any():
        return
    sides = singles(table), singles(table[[1, 0, 2]][:, ::-1])
    yes, no = map(power_tuned, sides)
    assert yes.value + no.value == pytest.approx(1)
    assert yes.tuning == pytest.approx(no.tuning)
    variances = [c.cluster_variance(t.influence) for c, t in zip(sides, (yes, no), strict=True)]
    assert variances[0] == pytest.approx(variances[1])


@given(cells)
def test_every_outcome_has_a_value_with_an_interval_or_a_reason(table) -> None:
    found = prediction_powered(singles(np.array(table).reshape(3, 2)))
    for e in (found.rate, found.human):
        assert (e.value is not None and e.low is not None and e.method) or e.reason
        if e.low is not None:
            assert 0 <= e.low <= e.value <= e.high <= 1
    assert found.rate.n == sum(table)
    assert found.human.n == sum(table[:4])
    assert (found.saved is None) == (found.effective is None) == (found.rate.value is None)


def variance_item_by_item(truth, judged, clusters, tuning: float) -> float:
    """Sum over clusters of their summed residuals, squared, written out."""
    labelled = truth >= 0
    residual = np.where(labelled, truth - tuning * judged, tuning * judged).astype(float)
    for part in (labelled, ~labelled):
        residual[part] = (residual[part] - residual[part].mean()) / part.sum()
    return sum(residual[clusters == g].sum() ** 2 for g in np.unique(clusters))


def test_the_cluster_robust_variance_is_the_one_written_out() -> None:
    random = np.random.default_rng(3)
    clusters, judged = random.integers(0, 30, 200), random.integers(0, 2, 200)
    truth = np.where(random.random(200) < 0.8, judged, 1 - judged)
    truth[random.random(200) < 0.7] = -1  # most clusters have both kinds of items
    counts = judged_counts(truth, judged, Clusters(clusters, 30), 2).of_label(1)
    tuned = power_tuned(counts)
    expected = variance_item_by_item(truth, judged, clusters, tuned.tuning)
    assert counts.cluster_variance(tuned.influence) == pytest.approx(expected)
    _, influence = share_influence(counts, TRUTH_IS_THIS, LABELLED)
    human = variance_item_by_item(truth, judged, clusters, 0)
    assert counts.cluster_variance(influence) == pytest.approx(human)


def test_items_counted_twice_in_their_cluster_tell_nothing_new() -> None:
    table = CASES["good judge"]["counts"]
    once = singles(table)
    twice = LabelCounts(2 * once.kinds, once.how_many)
    one, two = prediction_powered(once), prediction_powered(twice)
    assert limits(two.human) == pytest.approx(limits(one.human))
    # lambda and the disagreement added hang on the items, and barely move
    assert limits(two.rate) == pytest.approx(limits(one.rate), abs=0.003)
    assert two.rate.n == 2 * one.rate.n


def test_a_good_judge_saves_labels_and_a_constant_or_guessing_one_none() -> None:
    good = prediction_powered(singles(CASES["good judge"]["counts"]))
    assert good.rate.high - good.rate.low < 0.7 * (good.human.high - good.human.low)
    ratio = good.effective / 100
    # n V_human / V_ppi, the variances read off the normal intervals of ppi-python
    case = CASES["good judge"]
    width = {k: case[k]["high"] - case[k]["low"] for k in ("classical", "tuned")}
    assert ratio == pytest.approx((width["classical"] / width["tuned"]) ** 2, rel=0.12)
    assert ratio < (width["classical"] / width["tuned"]) ** 2
    assert good.saved == pytest.approx(good.effective - 100)
    for name in ("constant judge", "judge that turns the label round"):
        none = prediction_powered(singles(CASES[name]["counts"]))
        assert limits(none.rate) == pytest.approx(limits(none.human))
        assert none.saved == pytest.approx(0)


def test_a_judge_without_an_error_among_few_labels_claims_no_certainty() -> None:
    found = prediction_powered(singles([[14, 0], [0, 6], [70_000, 30_000]]))
    assert found.rate.high - found.rate.low > 0.1
    assert found.effective < 200


def test_without_a_human_label_there_is_no_rate() -> None:
    found = prediction_powered(singles([[0, 0], [0, 0], [7, 3]]))
    assert (found.rate.value, found.rate.reason, found.rate.n) == (None, NO_LABEL, 10)
    assert (found.human.value, found.human.reason) == (None, NO_LABEL)
    assert (found.effective, found.saved) == (None, None)


@pytest.mark.parametrize(
    ("table", "reason"),
    [([[30, 5], [5, 20], [0, 0]], ALL_LABELLED), ([[30, 5], [0, 0], [90, 9]], ALL_ALIKE),
     ([[0, 0], [4, 9], [90, 9]], ALL_ALIKE)],
)  # fmt: skip
def test_where_verdicts_cannot_help_the_human_rate_stands_with_the_reason(table, reason) -> None:
    found = prediction_powered(singles(table))
    assert limits(found.rate) == limits(found.human)
    assert found.rate.low is not None
    assert found.rate.reason == reason
    assert found.saved == 0


def test_one_cluster_gives_a_value_and_no_interval() -> None:
    one = LabelCounts(np.array([[[3.0, 1], [1, 2], [9, 4]]]), np.array([1]))
    found = prediction_powered(one)
    assert found.rate.value == pytest.approx(power_tuned(one).value)
    assert (found.rate.low, found.rate.reason) == (None, ONE_CLUSTER)


def test_a_point_below_0_is_clipped() -> None:
    table = [[90, 9], [0, 1], [9_700, 300]]
    assert power_tuned(singles(table)).value < 0
    found = prediction_powered(singles(table)).rate
    assert (found.value, found.low) == (0, 0)
    assert 0 < found.high < 0.2


def draws(n: int, N: int, rate: float, sensitivity: float, specificity: float, times: int):
    """Counts of independent items, labelled at random."""
    random = np.random.default_rng(1)
    joint = np.array([
        [(1 - rate) * specificity, (1 - rate) * (1 - specificity)],
        [rate * (1 - sensitivity), rate * sensitivity],
    ])  # fmt: skip
    for _ in range(times):
        labelled = random.multinomial(n, joint.ravel()).reshape(2, 2)
        yield singles([*labelled, random.multinomial(N, joint.sum(axis=0))])


def covers(e: Estimate, rate: float) -> bool:
    return e.low is not None and e.low <= rate <= e.high


@pytest.mark.parametrize(
    ("n", "rate", "sensitivity", "specificity"),
    [(50, 0.3, 0.8, 0.9), (100, 0.05, 0.8, 0.95), (200, 0.1, 0.7, 0.95)],
)
def test_in_repeated_draws_the_interval_covers_the_rate_and_is_narrower(
    n: int, rate: float, sensitivity: float, specificity: float
) -> None:
    found = [
        prediction_powered(c) for c in draws(n, 2000, rate, sensitivity, specificity, times=600)
    ]
    assert np.mean([covers(f.rate, rate) for f in found]) == pytest.approx(0.95, abs=0.03)
    narrower = [f.rate.high - f.rate.low < f.human.high - f.human.low for f in found]
    assert np.mean(narrower) > 0.8
    assert np.mean([f.rate.value for f in found]) == pytest.approx(rate, abs=0.15 * rate)
