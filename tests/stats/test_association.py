import re

import numpy as np
import pytest
from cluster_case import together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import KENDALL_TAU_B, SPEARMAN, confusion_by_cluster, pearson
from judgebench.stats.resample import Resampling, cluster_bootstrap

K = 4
SEVERITIES = [0.0, 0.1, 2.5, 7.0]
ALL = {"pearson": pearson(SEVERITIES), "spearman": SPEARMAN, "tau_b": KENDALL_TAU_B}

pairs = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
        arrays(np.int64, n, elements=st.integers(0, K - 1)),
    )
)


def counts_of(truth, judged) -> np.ndarray:
    return confusion_by_cluster(truth, judged, together(len(truth)), K)[0]


@settings(max_examples=200, deadline=None)
@given(pairs)
def test_equals_scipy(pair) -> None:
    truth, judged = pair
    C = counts_of(truth, judged)
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


@settings(deadline=None)
@given(arrays(np.int64, (5, K, K), elements=st.integers(0, 2)))
def test_formulas_are_vectorised_and_undefined_agrees_with_nan(C) -> None:
    for statistic in ALL.values():
        together = statistic.formula(C.astype(float))
        one_by_one = [statistic.formula(c) for c in C.astype(float)]
        np.testing.assert_allclose(together, one_by_one, atol=1e-12)
        assert [bool(statistic.undefined(c)) for c in C] == list(np.isnan(together))


@settings(deadline=None)
@given(arrays(np.int64, (K, K), elements=st.integers(0, 9)))
def test_truth_and_judge_may_change_places_and_a_scale_turned_round_turns_the_sign(C) -> None:
    turned = [-s for s in SEVERITIES[::-1]]
    for name, statistic in ALL.items():
        value = statistic.formula(C)
        assert statistic.formula(C.T) == pytest.approx(value, abs=1e-9, nan_ok=True)
        if name != "pearson":
            assert statistic.formula(C[:, ::-1]) == pytest.approx(-value, abs=1e-9, nan_ok=True)
        else:
            both = pearson(turned).formula(C[::-1, ::-1])
            assert both == pytest.approx(value, abs=1e-9, nan_ok=True)


def test_a_judge_one_label_too_severe_throughout_correlates_fully() -> None:
    C = np.diag([3.0, 4, 5], k=1)
    assert SPEARMAN.formula(C) == pytest.approx(1)
    assert KENDALL_TAU_B.formula(C) == pytest.approx(1)
    assert pearson().formula(C) == pytest.approx(1)
    assert pearson(SEVERITIES).formula(C) < 1


def test_whole_clusters_are_resampled() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, K, 40)
    judged = np.where(rng.random(40) < 0.6, truth, rng.integers(0, K, 40))
    clusters = np.arange(40)
    few = Resampling(resamples=500)

    def of(times: int, statistic):
        labels = (np.tile(x, times) for x in (truth, judged))
        counts = confusion_by_cluster(*labels, Clusters(np.tile(clusters, times), 40), K)
        return cluster_bootstrap(counts, statistic, few, n=40 * times)

    for statistic in ALL.values():
        once, copied = of(1, statistic), of(3, statistic)
        assert once.low is not None
        assert once.low < once.value < once.high
        assert "over 40 clusters" in once.method
        assert copied.value == pytest.approx(once.value)
        assert copied.low == pytest.approx(once.low)


@pytest.mark.parametrize("statistic", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    ("C", "reason"),
    [
        (np.zeros((K, K)), "no item has both"),
        (np.diag([5.0, 0, 0, 0]), "one label only"),
        (np.array([[3.0, 2, 1, 0]] + [[0.0] * K] * 3), "one label only"),
    ],
)
def test_undefined_says_why(statistic, C, reason: str) -> None:
    assert np.isnan(statistic.formula(C))
    assert re.search(reason, statistic.undefined(C))


def test_labels_of_one_severity_leave_pearson_undefined() -> None:
    same = pearson([3, 3])
    C = np.array([[2.0, 1], [1, 2]])
    assert np.isnan(same.formula(C))
    assert "one severity only" in same.undefined(C)
