from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from judgebench.stats import partly_labelled
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.partly_labelled import (
    JUDGED,
    JUDGED_THIS,
    LABELLED,
    ONE_CLUSTER,
    TRUTH_IS_THIS,
    JudgedCounts,
    LabelCounts,
    judged_counts,
    rate_interval,
    share,
    share_influence,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "clustered_mean.json").read_text())
K, G = 3, 5
items = st.lists(
    st.tuples(st.integers(-1, K - 1), st.integers(-1, K - 1), st.integers(0, G - 1)), max_size=40
)


def columns(rows) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 3).T


def counted(rows) -> JudgedCounts:
    truth, judged, clusters = columns(rows)
    return judged_counts(truth, judged, Clusters(clusters, G), K)


def of_clusters(found: JudgedCounts) -> list[list[int]]:
    """The counts of every cluster, in an order of their own."""
    whole = found.kinds.reshape(-1, (K + 1) * K).repeat(found.how_many, axis=0)
    return sorted(whole.astype(int).tolist())


def one_by_one(rows) -> list[list[int]]:
    counts = np.zeros((G, K + 1, K), dtype=int)
    for truth, judged, cluster in rows:
        if judged >= 0:
            counts[cluster, truth if truth >= 0 else K, judged] += 1
    return sorted(c.ravel().tolist() for c in counts if c.any())


@given(items)
def test_items_are_counted_as_one_by_one(rows) -> None:
    assert of_clusters(counted(rows)) == one_by_one(rows)


def test_unlike_clusters_that_share_a_key_are_kept_apart(monkeypatch) -> None:
    monkeypatch.setattr(partly_labelled, "_weights", np.ones)
    rows = [(0, 1, 0), (2, 2, 1), (2, 2, 4), (-1, 0, 3), (-1, -1, 2)]
    assert of_clusters(counted(rows)) == one_by_one(rows)


def test_a_million_like_clusters_are_one_kind() -> None:
    none = np.zeros(10_000, dtype=np.int64)
    found = judged_counts(none, none, apart(10_000), 2)
    assert (found.kinds.shape, found.how_many.tolist()) == ((1, 3, 2), [10_000])


@given(items, st.integers(0, K - 1))
def test_the_counts_of_one_label_are_those_of_yes_or_no(rows, label: int) -> None:
    expected = np.zeros((3, 2))
    for truth, judged, _ in rows:
        if judged >= 0:
            expected[2 if truth < 0 else int(truth == label), int(judged == label)] += 1
    assert np.array_equal(counted(rows).of_label(label).total, expected)


@pytest.mark.parametrize(
    ("truth", "judged", "clusters", "told"),
    [([0], [0, 1], [0], "same shape"), ([3], [0], [0], "truth"), ([0], [3], [0], "judged"),
     ([0], [0], [5], "clusters")],
)  # fmt: skip
def test_items_out_of_range_are_refused(truth, judged, clusters, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        judged_counts(np.array(truth), np.array(judged), Clusters(np.array(clusters), G), K)


def test_the_cluster_variance_equals_that_of_statsmodels() -> None:
    y, clusters = np.array(FROZEN["y"]), np.array(FROZEN["clusters"])
    counts = judged_counts(y, 0 * y, Clusters(clusters, 12), 2).of_label(1)
    mean, influence = share_influence(counts, TRUTH_IS_THIS, LABELLED)
    assert mean == pytest.approx(FROZEN["mean"])
    assert counts.cluster_variance(influence) == pytest.approx(FROZEN["variance"], rel=1e-12)


def test_clusters_that_balance_each_other_out_are_no_better_than_independent_items() -> None:
    pairs = LabelCounts(np.array([[[1.0, 0], [1, 0], [0, 0]]]), np.array([20]))
    p, influence = share_influence(pairs, TRUTH_IS_THIS, LABELLED)
    assert pairs.cluster_variance(influence) == 0
    assert pairs.variance(influence) == pytest.approx(p * (1 - p) / 40)


def singles(table) -> LabelCounts:
    """A cluster for each item."""
    return LabelCounts(np.eye(6).reshape(6, 3, 2), np.array(table).ravel())


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.8, 0.99))
def test_the_limits_are_the_rates_that_the_share_is_t_standard_errors_away_from(
    no: int, yes: int, level: float
) -> None:
    found = share(singles([[no, 0], [yes, 0], [0, 0]]), TRUTH_IS_THIS, LABELLED, level)
    n = no + yes
    t = student.ppf((1 + level) / 2, n - 1)
    assert found.value == pytest.approx(yes / n)
    for limit in (found.low, found.high):
        assert (yes / n - limit) ** 2 == pytest.approx(t**2 * limit * (1 - limit) / n, rel=1e-6)
    assert 0 <= found.low < found.value < found.high <= 1
    assert (found.n, found.level) == (n, level)


@pytest.mark.parametrize(("table", "successes"), [([[30, 0]], 0), ([[0, 30]], 30)])
def test_labels_that_are_all_alike_have_the_exact_interval_over_clusters(table, successes) -> None:
    counts = singles([*table, [0, 0], [0, 0]])
    found, exact = share(counts, JUDGED_THIS, JUDGED), clopper_pearson(successes, 30)
    assert (found.value, found.low, found.high) == (exact.value, exact.low, exact.high)
    assert "over 30 clusters, since all labels are alike" in found.method
    of_three = LabelCounts(10 * np.array([[[table[0][0] / 30, table[0][1] / 30], [0, 0], [0, 0]]]),
                           np.array([3]))  # fmt: skip
    wider = share(of_three, JUDGED_THIS, JUDGED)
    assert (wider.value, wider.n) == (exact.value, 30)
    assert wider.high - wider.low == pytest.approx(clopper_pearson(0, 3).high)


def test_without_an_item_there_is_no_share_and_with_one_cluster_no_interval() -> None:
    nothing = share(singles(np.zeros((3, 2), dtype=int)), JUDGED_THIS, JUDGED)
    assert (nothing.value, nothing.reason) == (None, "there is no item to count")
    one = share(LabelCounts(np.array([[[3.0, 1], [0, 0], [0, 0]]]), np.array([1])),
                JUDGED_THIS, JUDGED)  # fmt: skip
    assert (one.value, one.low, one.high, one.reason) == (0.25, None, None, ONE_CLUSTER)


@given(st.floats(0, 1), st.floats(1e-6, 10), st.floats(0.01, 0.99), st.integers(2, 500))
def test_an_interval_holds_its_value_and_stays_between_0_and_1(value, V, p, clusters) -> None:
    found = rate_interval(value, V, p, clusters, 0.95)
    assert 0 <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= 1
