import re
import warnings

import numpy as np
import pytest
import sklearn.metrics
from cluster_case import together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import (
    ACCURACY,
    BALANCED_ACCURACY,
    MACRO_F1,
    cohen_kappa,
    confusion_by_cluster,
    mean_absolute_severity_error,
    mean_severity_error,
    overestimated,
    recall,
    underestimated,
)

# Rows truth, columns judge. Worked by hand: 10 items.
HAND = np.array([[4.0, 1, 0], [1, 2, 0], [1, 0, 1]])

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


@given(pairs)
def test_shares_add_up(pair) -> None:
    C = counts_of(*pair)
    parts = [s.formula(C) for s in (ACCURACY, overestimated(), underestimated())]
    assert sum(parts) == pytest.approx(1)


@given(arrays(np.int64, (5, K, K), elements=st.integers(0, 2)))
def test_formulas_are_vectorised_and_undefined_agrees_with_nan(C) -> None:
    C = C.astype(np.float64)
    for statistic in (
        ACCURACY,
        MACRO_F1,
        BALANCED_ACCURACY,
        cohen_kappa(),
        cohen_kappa("linear", [0, 0, 1, 5]),
        mean_severity_error(range(K)),
        mean_absolute_severity_error(range(K)),
        overestimated(),
        recall(1),
    ):
        together = statistic.formula(C)
        one_by_one = [statistic.formula(c) for c in C]
        np.testing.assert_allclose(together, one_by_one)
        assert [bool(statistic.undefined(c)) for c in C] == list(np.isnan(together))


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        (ACCURACY, 7 / 10),
        # F1: 8/11, 4/6, 2/3
        (MACRO_F1, (8 / 11 + 4 / 6 + 2 / 3) / 3),
        (BALANCED_ACCURACY, (4 / 5 + 2 / 3 + 1 / 2) / 3),
        # expected agreement (5*6 + 3*3 + 2*1) / 100 = .41
        (cohen_kappa(), 1 - 0.3 / 0.59),
        # linear: observed (1 + 1 + 2) / 10; expected (5*3 + 3*6 + 3*1 + 2*3 + 2*(5*1 + 2*6)) / 100
        (cohen_kappa("linear"), 1 - 0.4 / 0.76),
        # severities 0, 1, 10, linear: observed (1 + 1 + 10) / 10;
        # expected (5*3 + 3*6 + 9*(3*1 + 2*3) + 10*(5*1 + 2*6)) / 100
        (cohen_kappa("linear", [0, 1, 10]), 1 - 1.2 / 2.84),
        (mean_severity_error([0, 1, 10]), (1 - 1 - 10) / 10),
        (mean_absolute_severity_error([0, 1, 10]), (1 + 1 + 10) / 10),
        (overestimated(), 1 / 10),
        (underestimated(), 2 / 10),
        (underestimated([0, 0, 1]), 1 / 10),
        (recall(2), 1 / 2),
    ],
)
def test_worked_by_hand(statistic, value: float) -> None:
    assert statistic.formula(HAND) == pytest.approx(value)
    assert statistic.undefined(HAND) == ""


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
        (recall(1), np.diag([5.0, 0]), "no item has this label as its reference label"),
        (recall(1), np.zeros((2, 2)), "no item has both"),
    ],
)
def test_undefined_says_why(statistic, C, reason: str) -> None:
    assert np.isnan(statistic.formula(C))
    assert re.search(reason, statistic.undefined(C))


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


def test_weights() -> None:
    truth, judged = np.array([0, 1, 1]), np.array([0, 1, 0])
    counts = confusion_by_cluster(truth, judged, together(3), 2, weights=np.array([2.0, 0.5, 1.5]))
    assert np.array_equal(counts, [[[2, 0], [1.5, 0.5]]])


@pytest.mark.parametrize(
    ("truth", "judged", "clusters"),
    [([2], [0], [0]), ([0], [2], [0]), ([0], [-2], [0]), ([0], [0], [1]), ([0], [0], [-1])],
)
def test_codes_out_of_range_are_refused(truth, judged, clusters) -> None:
    with pytest.raises(ValueError, match="must lie in"):
        confusion_by_cluster(np.array(truth), np.array(judged), Clusters(np.array(clusters), 1), 2)


def test_shapes_and_severities_must_fit() -> None:
    with pytest.raises(ValueError, match="same shape"):
        confusion_by_cluster(np.array([0, 1]), np.array([0]), Clusters(np.array([0, 0]), 1), 2)
    with pytest.raises(ValueError, match="3 labels need 3 severities"):
        mean_severity_error([0, 1]).formula(HAND)
