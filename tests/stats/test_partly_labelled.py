"""Samples with weights, strata and clusters, and what their estimates must agree with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partly_case import alone, sample_of
from scipy.stats import t as student

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.partly_labelled import (
    EMPTY_STRATUM,
    ONE_CLUSTER,
    Asked,
    Prediction,
    Sample,
    adjusted,
    correlation,
    difference,
    interval,
    of_labels,
    prediction_powered,
    unlike,
)

DATA = Path(__file__).parent / "data"
CLUSTERED = json.loads((DATA / "clustered_mean.json").read_text())
WEIGHTED = json.loads((DATA / "weighted_mean.json").read_text())


def apart(n: int) -> Clusters:
    return Clusters(np.arange(n), n)


def linear(sample: Sample):
    """The mean of the labels alone with its influences."""
    nothing = np.zeros(len(sample.y))
    return adjusted(sample, Prediction(nothing, nothing), 0.0)


def test_the_cluster_variance_equals_that_of_statsmodels() -> None:
    y, codes = np.array(CLUSTERED["y"], dtype=float), np.array(CLUSTERED["clusters"])
    sample = Sample(y, Clusters(codes, 12))
    found = linear(sample)
    assert found.value == pytest.approx(CLUSTERED["mean"])
    assert sample.cluster_variance(found.influence) == pytest.approx(
        CLUSTERED["variance"], rel=1e-12
    )


def test_the_weighted_mean_and_its_variance_equal_those_of_statsmodels() -> None:
    y, weights = np.array(WEIGHTED["y"]), np.array(WEIGHTED["weights"])
    codes = np.array(WEIGHTED["clusters"])
    among = np.concatenate([y, np.full(300, np.nan)])  # unlabelled answers change nothing
    more = np.concatenate([weights, np.full(300, np.nan)])
    for clusters, name in (
        (np.concatenate([codes, np.arange(300) + 100]), "clustered"),
        (np.arange(380), "independent"),
    ):
        sample = Sample(among, Clusters(clusters, 400), weights=more)
        found = linear(sample)
        assert found.value == pytest.approx(WEIGHTED["mean"], rel=1e-12)
        assert sample.cluster_variance(found.influence) == pytest.approx(WEIGHTED[name], rel=1e-12)


def test_a_stratified_sample_has_the_mean_and_variance_of_the_text_book() -> None:
    """Cochran (1977), section 5.3: sum W_h y_h, and sum W_h^2 s_h^2 / n_h, here of a population
    that is itself drawn: plus the spread of the strata's means over all answers."""
    random = np.random.default_rng(4)
    strata = np.repeat([0, 1, 2], [600, 300, 100])
    y = random.random(1000) + strata
    y[random.permutation(1000)[:800]] = np.nan
    sample = Sample(y, apart(1000), strata=strata)
    found, W = linear(sample), np.array([0.6, 0.3, 0.1])
    parts = [y[(strata == h) & sample.labelled] for h in range(3)]
    means = np.array([x.mean() for x in parts])
    assert found.value == pytest.approx(W @ means)
    within = sum(w**2 * x.var() / len(x) for w, x in zip(W, parts, strict=True))
    between = W @ (means - W @ means) ** 2 / 1000
    assert sample.cluster_variance(found.of_labels) == pytest.approx(within)
    assert sample.cluster_variance(found.of_verdicts) == pytest.approx(between)


def test_a_stratum_without_a_label_leaves_nothing_to_estimate() -> None:
    y = np.array([1.0, 0.0, np.nan, np.nan])
    found = of_labels(Sample(y, apart(4), strata=np.array([0, 0, 0, 1])))
    assert (found.value, found.reason) == (None, EMPTY_STRATUM)


def test_weights_undo_a_choice_of_what_to_label() -> None:
    """Answers that the judge flags are labelled four times as often."""
    random = np.random.default_rng(9)
    truth = (random.random(20_000) < 0.1).astype(float)
    said = np.where(random.random(20_000) < 0.85, truth, 1 - truth)
    chance = np.where(said == 1, 0.2, 0.05)
    y = np.where(random.random(20_000) < chance, truth, np.nan)
    naive = prediction_powered(Sample(y, apart(20_000)), alone(said)).estimate
    for sample in (
        Sample(y, apart(20_000), weights=1 / chance),
        Sample(y, apart(20_000), strata=said.astype(np.int64)),
    ):
        found = prediction_powered(sample, alone(said)).estimate
        assert found.low < truth.mean() < found.high
        assert unlike(sample, {"judge": said}) == []
    assert not naive.low <= truth.mean() <= naive.high
    (alarm,) = unlike(Sample(y, apart(20_000)), {"judge": said, "noise": random.random(20_000)})
    assert alarm.name == "judge"
    assert alarm.labelled > 1.5 * alarm.every


@pytest.mark.parametrize("cluster", [1, 4])
def test_labels_drawn_at_random_seldom_raise_an_alarm(cluster: int) -> None:
    random, alarms = np.random.default_rng(10), 0
    for _ in range(400):
        codes = np.arange(1200) // cluster
        said = (random.random(codes.max() + 1) < 0.1)[codes].astype(float)
        drawn = np.isin(codes, random.permutation(codes.max() + 1)[: 60 // cluster])
        sample = Sample(np.where(drawn, 1.0, np.nan), Clusters(codes, int(codes.max()) + 1))
        alarms += bool(unlike(sample, {"judge": said, "length": random.random(1200)}))
    assert alarms <= 0.02 * 400


def test_clusters_that_balance_each_other_out_are_no_better_than_independent_items() -> None:
    sample = Sample(np.tile([0.0, 1.0], 20), Clusters(np.arange(40) // 2, 20))
    influence = linear(sample).influence
    assert sample.cluster_variance(influence) == pytest.approx(0, abs=1e-20)
    assert sample.variance(influence) == pytest.approx(0.25 / 40 * 20 / 19)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.8, 0.99))
def test_the_limits_are_the_rates_that_the_share_is_t_standard_errors_away_from(
    no: int, yes: int, level: float
) -> None:
    sample, _ = sample_of([[no, 0], [yes, 0], [0, 0]])
    found, n = of_labels(sample, Asked(level)), no + yes
    t = student.ppf((1 + level) / 2, n - 1)
    assert found.value == pytest.approx(yes / n)
    for limit in (found.low, found.high):
        spread = limit * (1 - limit) / (n - 1)
        assert (yes / n - limit) ** 2 == pytest.approx(t**2 * spread, rel=1e-6)
    assert 0 <= found.low < found.value < found.high <= 1
    assert (found.n, found.level) == (n, level)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_labels_that_are_all_alike_have_the_exact_interval_over_clusters(value: float) -> None:
    y = np.full(30, value)
    found, exact = of_labels(Sample(y, apart(30))), clopper_pearson(round(30 * value), 30)
    assert (found.value, found.low, found.high) == pytest.approx(
        (exact.value, exact.low, exact.high)
    )
    assert "over 30 clusters, since all labels are alike" in found.method
    of_three = of_labels(Sample(y, Clusters(np.arange(30) // 10, 3)))
    assert of_three.high - of_three.low == pytest.approx(clopper_pearson(0, 3).high)
    weights = np.ones(30)
    weights[0] = 100  # nearly all that is known is of one answer
    assert "over 1 clusters" in of_labels(Sample(y, apart(30), weights=weights)).method


def test_without_an_item_there_is_no_share_and_with_one_cluster_no_interval() -> None:
    nothing = of_labels(Sample(np.full(4, np.nan), apart(4)))
    assert nothing.value is None
    assert nothing.reason
    one = of_labels(Sample(np.array([0.0, 0, 0, 1]), Clusters(np.zeros(4, dtype=int), 1)))
    assert (one.value, one.low, one.high, one.reason) == (0.25, None, None, ONE_CLUSTER)


@given(st.floats(0, 1), st.floats(1e-6, 10), st.floats(0.01, 0.99), st.integers(2, 500),
       st.booleans())  # fmt: skip
def test_an_interval_holds_its_value_and_stays_between_0_and_1(
    value, V, p, clusters, anytime
) -> None:
    found = interval(value, V, p, clusters, Asked(anytime=anytime))
    assert 0 <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= 1
    assert anytime is False or found.high - found.low >= (
        (usual := interval(value, V, p, clusters, Asked())).high - usual.low
    )


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="same shape"):
        Sample(np.zeros(3), apart(4))
    with pytest.raises(ValueError, match="same shape"):
        Sample(np.zeros(3), apart(3), weights=np.ones(2))


def test_a_difference_of_rates_has_the_limits_of_newcombe() -> None:
    """Newcombe (1998), "Interval estimation for the difference between independent proportions",
    method 10, his example (a): 56/70 - 48/80, .0524 to .3339, from Wilson's limits."""
    found = difference(Estimate(0.8, 0.6918, 0.8777), Estimate(0.6, 0.4904, 0.7002), 0.0)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=1e-3)


def test_what_two_estimates_share_narrows_their_difference() -> None:
    one, other = np.array([0.1, -0.1, 0.2, -0.2]), np.array([0.1, -0.1, 0.1, -0.1])
    shared = correlation(apart(4), one, other)
    assert shared == pytest.approx(np.corrcoef(one, other)[0, 1])
    a, b = Estimate(0.5, 0.4, 0.6), Estimate(0.4, 0.3, 0.5)
    wide, narrow = difference(a, b, 0.0), difference(a, b, shared)
    assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)
    lacking = difference(a, Estimate(None, reason="no label"), 0.0)
    assert (lacking.value, lacking.reason) == (None, "no label")
