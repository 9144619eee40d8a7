import re
import warnings

import numpy as np
import pytest
import sklearn.metrics
from cluster_case import together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgebench.stats.arrays import Clusters
from judgebench.stats.classification import (
    ACCURACY,
    BALANCED_ACCURACY,
    KENDALL_TAU_B,
    MACRO_F1,
    MATTHEWS,
    SPEARMAN,
    cohen_kappa,
    confusion_by_cluster,
    fill_failures,
    limit_of_agreement,
    mean_absolute_severity_error,
    mean_severity_error,
    of_label,
    overestimated,
    pearson,
)

K = 4
pairs = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
    )
)


def counts_of(truth, judged) -> np.ndarray:
    one = np.zeros(len(truth), dtype=np.int64)
    return confusion_by_cluster(truth, judged, Clusters(one, 1), K)[0]


def sklearn_score(function, *args, **kwargs) -> float:
    with warnings.catch_warnings():  # it warns of what it then defines
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


@settings(deadline=None)
@given(pairs)
def test_equals_scikit_learn(pair) -> None:
    truth, judged = pair
    C = counts_of(truth, judged)
    oracle = sklearn.metrics
    assert np.array_equal(C, oracle.confusion_matrix(truth, judged, labels=range(K)))
    assert ACCURACY.formula(C) == pytest.approx(oracle.accuracy_score(truth, judged))
    assert MACRO_F1.formula(C) == pytest.approx(
        sklearn_score(oracle.f1_score, truth, judged, average="macro")
    )
    assert BALANCED_ACCURACY.formula(C) == pytest.approx(
        sklearn_score(oracle.balanced_accuracy_score, truth, judged)
    )
    for weights in ("none", "linear", "quadratic"):
        expected = sklearn_score(
            oracle.cohen_kappa_score,
            truth,
            judged,
            labels=range(K),
            weights=None if weights == "none" else weights,
        )
        found = cohen_kappa(weights).formula(C)
        assert found == pytest.approx(expected, nan_ok=True)


@given(arrays(np.int64, (5, K, K), elements=st.integers(0, 2)))
def test_formulas_are_vectorised_and_undefined_agrees_with_nan(C) -> None:
    C = C.astype(np.float64)
    for statistic in (
        ACCURACY,
        MACRO_F1,
        MATTHEWS,
        BALANCED_ACCURACY,
        cohen_kappa(),
        cohen_kappa("linear", [0, 0, 1, 5]),
        mean_severity_error(range(K)),
        mean_absolute_severity_error(range(K)),
        limit_of_agreement(range(K), 1),
        overestimated(),
        of_label("recall", 1),
        of_label("precision", 1),
        of_label("f1", 1),
        of_label("specificity", 1),
        MATTHEWS,
        pearson([0.0, 0.1, 2.5, 7.0]),
        SPEARMAN,
        KENDALL_TAU_B,
    ):
        together = statistic.formula(C)
        one_by_one = [statistic.formula(c) for c in C]
        np.testing.assert_allclose(together, one_by_one, atol=1e-12)
        assert [bool(statistic.undefined(c)) for c in C] == list(np.isnan(together))


def test_a_label_only_the_judge_uses_counts_against_f1_and_one_nobody_uses_does_not() -> None:
    C = np.zeros((3, 3))
    C[0, 0], C[0, 1] = 3, 1  # label 1 from the judge only, label 2 from nobody
    assert MACRO_F1.formula(C) == pytest.approx((6 / 7 + 0) / 2)
    assert BALANCED_ACCURACY.formula(C) == pytest.approx(3 / 4)


@pytest.mark.parametrize(
    ("statistic", "C", "reason"),
    [
        (ACCURACY, np.zeros((2, 2)), "no item has both"),
        (cohen_kappa(), np.zeros((2, 2)), "no item has both"),
        (cohen_kappa(), np.diag([5.0, 0]), r"one label only \(the same\)"),
        (cohen_kappa("linear", [1, 1]), np.ones((2, 2)), "the same severity"),
        (of_label("recall", 1), np.diag([5.0, 0]), "no item has this label as its reference label"),
        (of_label("recall", 1), np.zeros((2, 2)), "no item has both"),
    ],
)
def test_undefined_says_why(statistic, C, reason: str) -> None:
    assert np.isnan(statistic.formula(C))
    assert re.search(reason, statistic.undefined(C))


# Bland and Altman (1986), Table 1: peak expiratory flow (l/min) of 17 people by a large and by a
# mini Wright meter; their differences have the mean -2.1 and the standard deviation 38.8.
LARGE = (494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427)
MINI = (512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451)


def test_limits_of_agreement_are_as_published() -> None:
    values = np.unique([LARGE, MINI])
    truth, judged = (np.searchsorted(values, column) for column in (MINI, LARGE))
    clusters = Clusters(np.arange(17), 17)
    C = confusion_by_cluster(truth, judged, clusters, len(values)).sum(axis=0)
    lower, upper = (float(limit_of_agreement(values, sign).formula(C)) for sign in (-1, 1))
    assert (lower + upper) / 2 == pytest.approx(-2.1, abs=0.05)
    assert (upper - lower) / 2 / 1.96 == pytest.approx(38.8, abs=0.05)


def test_a_constant_judge_on_varied_truth_has_kappa_zero() -> None:
    assert cohen_kappa().formula(np.array([[5.0, 0], [2, 0]])) == pytest.approx(0)


def test_missing_pairs_are_dropped_and_clusters_kept_apart() -> None:
    truth = np.array([0, 1, -1, 1, 0])
    judged = np.array([0, -1, 1, 0, 1])
    clusters = np.array([0, 0, 1, 2, 2])
    counts = confusion_by_cluster(truth, judged, Clusters(clusters, 4), 2)
    expected = np.zeros((4, 2, 2))
    expected[0, 0, 0] = expected[2, 1, 0] = expected[2, 0, 1] = 1
    assert np.array_equal(counts, expected)


SEVERITIES = [0.0, 0.1, 2.5, 7.0]
ALL = {"pearson": pearson(SEVERITIES), "spearman": SPEARMAN, "tau_b": KENDALL_TAU_B}

pairs_scale = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
    )
)


def counts_of_scale(truth, judged) -> np.ndarray:
    return confusion_by_cluster(truth, judged, together(len(truth)), K)[0]


@settings(max_examples=200, deadline=None)
@given(pairs_scale)
def test_equals_scipy(pair) -> None:
    truth, judged = pair
    C = counts_of_scale(truth, judged)
    if min(len(set(truth)), len(set(judged))) == 1:
        assert all(np.isnan(statistic.formula(C)) for statistic in ALL.values())
        return
    x, y = (np.array(SEVERITIES)[labels] for labels in pair)
    expected = {
        "pearson": stats.pearsonr(x, y).statistic,
        "spearman": stats.spearmanr(truth, judged).statistic,
        "tau_b": stats.kendalltau(truth, judged, variant="b").statistic,
    }
    for name, value in expected.items():
        assert ALL[name].formula(C) == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("name", ALL)
def test_a_million_items_equal_scipy(name: str) -> None:
    rng = np.random.default_rng(1)
    C = rng.integers(1, 125_000, (K, K))
    cells = np.repeat(np.arange(K * K), C.ravel())
    truth, judged = cells // K, cells % K
    x, y = (np.array(SEVERITIES)[labels] for labels in (truth, judged))
    oracle = {
        "pearson": lambda: stats.pearsonr(x, y),
        "spearman": lambda: stats.spearmanr(truth, judged),
        "tau_b": lambda: stats.kendalltau(truth, judged),
    }[name]
    assert ALL[name].formula(C.astype(float)) == pytest.approx(oracle().statistic, abs=1e-9)


def test_a_judge_one_label_too_severe_throughout_correlates_fully() -> None:
    C = np.diag([3.0, 4, 5], k=1)
    assert SPEARMAN.formula(C) == pytest.approx(1)
    assert KENDALL_TAU_B.formula(C) == pytest.approx(1)
    assert pearson().formula(C) == pytest.approx(1)
    assert pearson(SEVERITIES).formula(C) < 1


@pytest.mark.parametrize("statistic", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    ("C", "reason"),
    [
        (np.zeros((K, K)), "no item has both"),
        (np.diag([5.0, 0, 0, 0]), "one label only"),
        (np.array([[3.0, 2, 1, 0]] + [[0.0] * K] * 3), "one label only"),
    ],
)
def test_undefined_says_why_scale(statistic, C, reason: str) -> None:
    assert np.isnan(statistic.formula(C))
    assert re.search(reason, statistic.undefined(C))


def test_labels_of_one_severity_leave_pearson_undefined() -> None:
    same = pearson([3, 3])
    C = np.array([[2.0, 1], [1, 2]])
    assert np.isnan(same.formula(C))
    assert "one severity only" in same.undefined(C)


K_FILLED = 3
cells = st.lists(
    st.tuples(st.integers(-1, K_FILLED - 1), st.integers(-1, K_FILLED - 1)), min_size=1, max_size=30
).map(lambda pairs: tuple(np.array(pairs).T))


def accuracy(truth, judged) -> float:
    counts = confusion_by_cluster(truth, judged, together(len(truth)), K_FILLED)[0]
    return float(ACCURACY.formula(counts))


@given(cells, st.booleans())
def test_only_failures_with_a_truth_change_and_accuracy_is_bracketed(pair, ordinal) -> None:
    truth, judged = pair
    before = judged.copy()
    failed = (judged < 0) & (truth >= 0)
    filled = {
        p: fill_failures(truth, judged, p, K_FILLED, ordinal) for p in ("left_out", "worst", "best")
    }
    assert np.array_equal(judged, before)
    assert np.array_equal(filled["left_out"], judged)
    for labels in filled.values():
        assert np.array_equal(labels[~failed], judged[~failed])
    assert np.array_equal(filled["best"][failed], truth[failed])
    assert (filled["worst"][failed] >= 0).all()
    assert (filled["worst"][failed] != truth[failed]).all()
    if (truth >= 0).any() and ((truth >= 0) & (judged >= 0)).any():
        worst, left_out, best = (accuracy(truth, filled[p]) for p in ("worst", "left_out", "best"))
        assert worst <= left_out + 1e-12
        assert left_out <= best + 1e-12


def test_worst_ordinal_is_the_farther_end_and_the_lower_of_two() -> None:
    truth, failed = np.arange(5), np.full(5, -1)
    assert fill_failures(truth, failed, "worst", 5, ordinal=True).tolist() == [4, 4, 0, 0, 0]
    assert fill_failures(truth[:4], failed[:4], "worst", 4, ordinal=True).tolist() == [3, 3, 0, 0]


@given(st.lists(st.integers(0, K_FILLED - 1), min_size=1, max_size=20).map(np.array))
def test_no_filling_is_farther_than_worst(truth) -> None:
    def error(judged) -> float:
        C = confusion_by_cluster(truth, judged, together(len(truth)), K_FILLED)[0]
        distance = np.abs(np.subtract.outer(range(K_FILLED), range(K_FILLED)))
        return float((C * distance).sum())

    worst = error(fill_failures(truth, np.full(len(truth), -1), "worst", K_FILLED, ordinal=True))
    assert all(error(np.full(len(truth), label)) <= worst for label in range(K_FILLED))


@pytest.mark.parametrize(
    ("truth", "worst"),
    [
        ([2, 2, 2, 0, 0, 1, -1], [0, 0, 0, 2, 2, 2, -1]),
        ([1, 2, 0, 0, 0], [0, 0, 1, 1, 1]),  # of a tie the lower label
    ],
)
def test_worst_nominal_is_the_most_frequent_other_truth(truth, worst) -> None:
    filled = fill_failures(np.array(truth), np.full(len(truth), -1), "worst", 3, ordinal=False)
    assert filled.tolist() == worst
