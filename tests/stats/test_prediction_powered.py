"""PPI++ against ppi-python, whose figures are frozen, and against what must hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from partly_case import alone, sample_of

from judgebench.stats.arrays import Clusters
from judgebench.stats.partly_labelled import (
    ALL_ALIKE,
    ALL_LABELLED,
    NO_LABEL,
    ONE_CLUSTER,
    Asked,
    Sample,
    cross_fitted,
    labels_for_width,
    of_labels,
    power_tuned,
    prediction_powered,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "prediction_powered.json").read_text())
CASES = {case["name"]: case for case in FROZEN["cases"]}
cells = st.lists(st.integers(0, 30), min_size=6, max_size=6)


def powered(table, cluster: int = 1):
    sample, f = sample_of(table, cluster)
    return prediction_powered(sample, alone(f))


def normal(value: float, variance: float) -> tuple[float, float, float]:
    """The interval of the PPI++ paper, value +- 1.96 sqrt(variance), with the value before it."""
    half = scipy.stats.norm.ppf(0.975) * variance**0.5
    return value, value - half, value + half


@pytest.mark.parametrize("name", CASES)
def test_the_point_and_the_normal_interval_equal_those_of_ppi_python(name: str) -> None:
    case = CASES[name]
    sample, f = sample_of(case["counts"])
    tuned = power_tuned(sample, alone(f))
    # ppi-python divides 0 by 0 where the judge is constant; lambda 0 is the human labels alone
    expected = case["classical"] if name == "constant judge" else case["tuned"]
    found = normal(tuned.value, sample.cluster_variance(tuned.influence))
    assert found == pytest.approx(tuple(expected.values()), rel=1e-9)
    labelled = sample.at(sample.labelled)
    human = of_labels(labelled)
    influence = (labelled.y - labelled.y.mean()) / labelled.n
    assert human.value == pytest.approx(case["classical"]["value"], rel=1e-9)
    assert normal(human.value, labelled.cluster_variance(influence)) == pytest.approx(
        tuple(case["classical"].values()), rel=1e-9
    )


def test_the_frozen_cases_span_lambda_from_0_to_nearly_1() -> None:
    found = {}
    for name, case in CASES.items():
        sample, f = sample_of(case["counts"])
        N, n = len(f), sample.n
        found[name] = power_tuned(sample, alone(f)).tuning * (N - n) / N  # as in the paper
    assert found["judge that turns the label round"] == found["constant judge"] == 0
    assert 0 < found["few unlabelled items"] < 0.25
    assert 0.75 < found["perfect judge"] < 1


@given(cells)
def test_a_label_and_its_opposite_have_rates_that_add_up_to_1(table) -> None:
    table = np.array(table).reshape(3, 2)
    if not table[:2].any():
        return
    (one, f), (other, g) = sample_of(table), sample_of(table[[1, 0, 2]][:, ::-1])
    yes, no = power_tuned(one, alone(f)), power_tuned(other, alone(g))
    assert yes.value + no.value == pytest.approx(1)
    assert yes.tuning == pytest.approx(no.tuning)
    assert one.cluster_variance(yes.influence) == pytest.approx(
        other.cluster_variance(no.influence), abs=1e-15
    )


@given(cells)
def test_every_outcome_has_a_value_with_an_interval_or_a_reason(table) -> None:
    found = powered(table)
    for e in (found.estimate, found.human):
        assert (e.value is not None and e.low is not None and e.method) or e.reason
        if e.low is not None:
            assert 0 <= e.low <= e.value <= e.high <= 1
    assert found.estimate.n == sum(table)
    assert found.human.n == sum(table[:4])
    assert (found.effective is None) == (found.estimate.value is None)


def variance_item_by_item(truth, judged, clusters, tuning: float) -> float:
    """Sum over clusters of their summed residuals, squared, written out in the paper's terms."""
    labelled = ~np.isnan(truth)
    residual = np.where(labelled, truth - tuning * judged, tuning * judged).astype(float)
    for part in (labelled, ~labelled):
        residual[part] = (residual[part] - residual[part].mean()) / part.sum()
    return sum(residual[clusters == g].sum() ** 2 for g in np.unique(clusters))


def test_the_cluster_robust_variance_is_the_one_written_out() -> None:
    random = np.random.default_rng(3)
    clusters, judged = random.integers(0, 30, 200), random.integers(0, 2, 200).astype(float)
    truth = np.where(random.random(200) < 0.8, judged, 1 - judged)
    truth[random.random(200) < 0.7] = np.nan  # most clusters have both kinds of items
    sample = Sample(truth, Clusters(clusters, 30))
    tuned = power_tuned(sample, alone(judged))
    in_paper = tuned.tuning * (200 - sample.n) / 200
    expected = variance_item_by_item(truth, judged, clusters, in_paper)
    assert sample.cluster_variance(tuned.influence) == pytest.approx(expected)


def test_a_good_judge_saves_labels_and_a_constant_or_guessing_one_none() -> None:
    good = powered(CASES["good judge"]["counts"])
    e, human = good.estimate, good.human
    assert e.high - e.low < 0.7 * (human.high - human.low)
    # n V_human / V_ppi, the variances read off the normal intervals of ppi-python
    case = CASES["good judge"]
    width = {k: case[k]["high"] - case[k]["low"] for k in ("classical", "tuned")}
    ratio = (width["classical"] / width["tuned"]) ** 2
    assert good.effective / 100 == pytest.approx(ratio, rel=0.12)
    assert good.effective / 100 < ratio
    for name in ("constant judge", "judge that turns the label round"):
        none = powered(CASES[name]["counts"])
        assert (none.estimate.low, none.estimate.high) == pytest.approx(
            (none.human.low, none.human.high)
        )
        assert none.effective == pytest.approx(none.human.n)


def test_a_judge_without_an_error_among_few_labels_claims_no_certainty() -> None:
    found = powered([[14, 0], [0, 6], [70_000, 30_000]])
    assert found.estimate.high - found.estimate.low > 0.1
    assert found.effective < 200


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[0, 0], [0, 0], [5, 5]], NO_LABEL),
        ([[6, 2], [1, 7], [0, 0]], ALL_LABELLED),
        ([[20, 1], [0, 0], [40, 9]], ALL_ALIKE),
        ([[0, 0], [3, 9], [40, 9]], ALL_ALIKE),
    ],
)
def test_where_verdicts_can_add_nothing_the_human_labels_stand_and_why(table, reason) -> None:
    found = powered(table)
    assert found.estimate.reason == reason
    assert (found.estimate.value, found.estimate.low) == (found.human.value, found.human.low)
    if found.human.value is not None:
        assert found.human.low < found.human.high  # no 0 [0, 0]


def test_with_one_cluster_there_is_a_value_and_no_interval() -> None:
    found = powered([[6, 2], [1, 7], [9, 9]], cluster=100)
    assert found.estimate.value is not None
    assert (found.estimate.low, found.estimate.reason) == (None, ONE_CLUSTER)


def test_means_have_intervals_that_may_leave_0_to_1() -> None:
    random = np.random.default_rng(1)
    truth = random.normal(30, 9, 400)
    said = truth + random.normal(0, 3, 400)
    y = np.where(np.arange(400) % 8 == 0, truth, np.nan)
    sample = Sample(y, Clusters(np.arange(400), 400))
    found = prediction_powered(sample, alone(said), Asked(is_rate=False))
    assert found.estimate.low < truth.mean() < found.estimate.high
    assert found.estimate.low > 20
    assert found.effective > 150
    plain = of_labels(sample, Asked(is_rate=False))
    student = scipy.stats.t.interval(0.95, 49, truth[::8].mean(), scipy.stats.sem(truth[::8]))
    assert (plain.low, plain.high) == pytest.approx(student)


def test_several_judges_are_worth_more_than_the_best_of_them() -> None:
    random = np.random.default_rng(5)
    gains = []
    for _ in range(20):
        truth = (random.random(3000) < 0.2).astype(float)
        X = np.stack([np.where(random.random(3000) < 0.8, truth, 1 - truth) for _ in range(4)], 1)
        y = np.where(np.arange(3000) % 12 == 0, truth, np.nan)
        sample = Sample(y, Clusters(np.arange(3000), 3000))
        F = cross_fitted(y, X, sample.clusters)
        alone_best = max(prediction_powered(sample, alone(x)).effective for x in X.T)
        gains.append(prediction_powered(sample, F).effective / alone_best)
    assert np.median(gains) > 1.1


def test_what_is_learnt_of_an_item_does_not_know_its_own_label() -> None:
    """Of noise nothing is learnt: held against labels that it has not seen it explains none."""
    random = np.random.default_rng(6)
    y, X = random.integers(0, 2, 60).astype(float), random.random((60, 25))
    F = cross_fitted(y, X, Clusters(np.arange(60) // 2, 30))
    assert np.corrcoef(F.own, y)[0, 1] < 0.2
    flipped = y.copy()
    flipped[:2] = 1 - flipped[:2]  # a whole cluster
    again = cross_fitted(flipped, X, Clusters(np.arange(60) // 2, 30))
    assert again.own[:2] == pytest.approx(F.own[:2])


def test_the_labels_for_a_width_give_about_that_width() -> None:
    sample, f = sample_of([[70, 10], [4, 16], [7000, 2000]])
    now = prediction_powered(sample, alone(f))
    width = (now.estimate.high - now.estimate.low) / 2
    more = labels_for_width(sample, now, width, Asked()).value
    grown = (100 + more) / 100
    labelled = np.round(np.array([[70, 10], [4, 16]]) * grown)
    later = powered([*labelled, [7000, 2000]])
    assert later.estimate.high - later.estimate.low == pytest.approx(width, rel=0.05)
    assert labels_for_width(sample, now, 0.9, Asked()).value == 0
    never = labels_for_width(sample, now, 0.001, Asked())
    assert never.value is None
    assert "more answers are needed" in never.reason


def test_limits_for_all_looks_hold_while_labels_arrive() -> None:
    """At 10 looks from 50 to 1,600 labels: of a usual interval one misses far more often."""
    random = np.random.default_rng(8)
    looks = np.unique(np.geomspace(50, 1600, 10).astype(int))
    missed = {False: 0, True: 0}
    for _ in range(60):
        truth = (random.random(1700) < 0.15).astype(float)
        said = np.where(random.random(1700) < 0.85, truth, 1 - truth)
        for anytime in missed:
            found = []
            for n in looks:
                y = np.where(np.arange(1700) < n, truth, np.nan)
                sample = Sample(y, Clusters(np.arange(1700), 1700))
                e = prediction_powered(sample, alone(said), Asked(anytime=anytime)).estimate
                found.append(e.low <= 0.15 <= e.high)
            missed[anytime] += not all(found)
    assert missed[True] <= 0.05 * 60
    assert missed[False] > 0.1 * 60
    none = of_labels(replace(sample, y=np.where(np.isnan(y), y, 0.0)), Asked(anytime=True))
    assert none.high > of_labels(replace(sample, y=np.where(np.isnan(y), y, 0.0))).high > 0
