"""Samples with weights, strata and clusters, and what their estimates must agree with."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from partly_case import alone, sample_of
from scipy.stats import t as student

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.partly_labelled import (
    ALL_ALIKE,
    ALL_HAVE_IT,
    ALL_LABELLED,
    EMPTY_STRATUM,
    NO_LABEL,
    NONE_HAS_IT,
    ONE_CLUSTER,
    Asked,
    Prediction,
    Sample,
    adjusted,
    corrected_rate,
    correlation,
    cross_fitted,
    difference,
    interval,
    labels_for_width,
    of_labels,
    prediction_powered,
    rogan_gladen,
    tuning_of,
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


def power_tuned(sample: Sample, F: Prediction):
    """The mean by the lambda that is best for it."""
    return adjusted(sample, F, tuning_of([(sample, F)]))


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
    chosen = Sample(np.where(random.random(20_000) < chance, truth, np.nan), apart(20_000))
    naive = prediction_powered(chosen, alone(said)).estimate
    assert not naive.low <= truth.mean() <= naive.high
    (alarm,) = unlike(chosen, {"judge": said, "noise": random.random(20_000)})
    assert alarm.name == "judge"
    for known in ({"weights": 1 / chance}, {"strata": said.astype(np.int64)}):
        sample = replace(chosen, **known)
        found = prediction_powered(sample, alone(said)).estimate
        assert found.low < truth.mean() < found.high
        assert unlike(sample, {"judge": said}) == []


def test_clusters_that_balance_each_other_out_are_no_better_than_independent_items() -> None:
    sample = Sample(np.tile([0.0, 1.0], 20), Clusters(np.arange(40) // 2, 20))
    influence = linear(sample).influence
    assert sample.cluster_variance(influence) == pytest.approx(0, abs=1e-20)
    assert sample.variance(influence) == pytest.approx(0.25 / 40 * 20 / 19)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.8, 0.99))
def test_independent_labels_have_the_exact_interval(no: int, yes: int, level: float) -> None:
    sample, _ = sample_of([[no, 0], [yes, 0], [0, 0]])
    found, n = of_labels(sample, Asked(level)), no + yes
    exact = clopper_pearson(yes, n, level)
    assert (found.value, found.low, found.high) == pytest.approx(
        (exact.value, exact.low, exact.high)
    )
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


def corrected(table, cluster: int = 1):
    sample, f = sample_of(table, cluster)
    return rogan_gladen(sample, f)


@pytest.mark.parametrize(
    ("positive", "tested", "sensitivity", "specificity", "per_100"),
    [(23, 150, 0.96, 0.89, 5.1), (6, 151, 0.964, 0.927, -3.7)],
)
def test_the_corrected_rate_is_that_of_the_published_examples(
    positive: int, tested: int, sensitivity: float, specificity: float, per_100: float
) -> None:
    """Brucellosis in a herd and Helicobacter in children, from the manual of epiR's epi.prev, which
    prints 5.1 and, for a rate below 0, 0."""
    found = corrected_rate(positive / tested, sensitivity, specificity)
    assert 100 * found == pytest.approx(per_100, abs=0.05)


@given(st.floats(0, 1), st.floats(0.51, 1), st.floats(0.5, 1))
def test_the_correction_undoes_what_a_judge_with_these_errors_does(rate, Se, Sp) -> None:
    assert corrected_rate(rate * Se + (1 - rate) * (1 - Sp), Se, Sp) == pytest.approx(rate)


@given(st.lists(st.integers(1, 40), min_size=4, max_size=4))
def test_where_every_item_has_a_human_label_the_corrected_rate_is_theirs(table) -> None:
    tn, fp, fn, tp = table
    found = corrected([[tn, fp], [fn, tp], [0, 0]])
    if found.value is None:
        assert tp / (tp + fn) + tn / (tn + fp) <= 1
    else:
        assert found.value == pytest.approx((tp + fn) / sum(table))
        assert found.low < found.value < found.high


def test_with_many_verdicts_the_variance_is_that_of_rogan_and_gladen() -> None:
    """Eq. (4) of Lang and Reiczigel (2014), of three independent samples, and the one added
    disagreement; the interval is Wilson's for as many items as that variance stands for."""
    n_0, n_1, N = 120, 60, 1_000_000
    table = [[108, 12], [9, 51], [600_000, 400_000]]
    found = corrected(table)
    p, Se, Sp = 0.4, 51 / 60, 108 / 120
    theta, J = (p + Sp - 1) / (Se + Sp - 1), Se + Sp - 1
    V = p * (1 - p) / N + theta**2 * Se * (1 - Se) / n_1 + (1 - theta) ** 2 * Sp * (1 - Sp) / n_0
    V = (V + (theta / n_1) ** 2 / 2 + ((1 - theta) / n_0) ** 2 / 2) / J**2
    assert found.value == pytest.approx(theta, abs=1e-4)
    t, n_star = student.ppf(0.975, n_0 + n_1 - 1), n_1 * n_0 / (n_1 + n_0) ** 2 / V
    for limit in (found.low, found.high):
        assert (theta - limit) ** 2 == pytest.approx(t**2 * limit * (1 - limit) / n_star, rel=0.01)


def test_items_of_one_question_count_as_less() -> None:
    random = np.random.default_rng(2)
    truth = np.repeat(random.integers(0, 2, 60), 5).astype(float)
    judged = np.where(random.random(300) < 0.9, truth, 1 - truth)
    y = np.where(np.arange(300) < 100, truth, np.nan)
    single = rogan_gladen(Sample(y, Clusters(np.arange(300), 300)), judged)
    whole = rogan_gladen(Sample(y, Clusters(np.arange(300) // 5, 60)), judged)
    assert whole.value == single.value
    assert whole.high - whole.low > 1.3 * (single.high - single.low)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[0, 0], [0, 0], [5, 5]], NO_LABEL),
        ([[9, 1], [0, 0], [5, 5]], NONE_HAS_IT),
        ([[0, 0], [1, 9], [5, 5]], ALL_HAVE_IT),
        ([[10, 10], [10, 10], [5, 5]], "sensitivity 0.50 and specificity 0.50 add up to no more"),
        ([[20, 0], [10, 0], [30, 0]], "sensitivity 0.00 and specificity 1.00 add up to no more"),
    ],
)
def test_where_the_errors_are_unknown_or_too_many_there_is_no_rate(table, reason: str) -> None:
    found = corrected(table)
    assert found.value is None
    assert found.reason.startswith(reason)
    assert found.n == np.sum(table)


def test_a_rate_below_0_is_clipped_and_told() -> None:
    found = corrected([[80, 20], [1, 9], [970, 30]])
    assert (found.value, found.low) == (0, 0)
    assert 0 < found.high < 0.5
    assert found.reason == "the corrected rate is -0.210, clipped to 0"
