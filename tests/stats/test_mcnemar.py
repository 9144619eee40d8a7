import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from cluster_case import apart
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import confusion_by_cluster
from judgebench.stats.paired import (
    ACCURACY_DIFFERENCE,
    NO_SHARED_TRUTH,
    discordance_by_cluster,
    discordant,
    mcnemar_clustered,
    mcnemar_mid_p,
)
from judgebench.stats.resample import ClusterCounts

FROZEN = json.loads((Path(__file__).parent / "data" / "mcnemar.json").read_text())
G = 4
outcomes = st.lists(
    st.tuples(st.integers(-1, 1), st.integers(-1, 1), st.integers(0, G - 1)), max_size=40
)
counts = st.integers(0, 400)


def exact_p(b: int, c: int) -> float | None:
    return None if b + c == 0 else scipy.stats.binomtest(b, b + c).pvalue


def discordance(rows) -> np.ndarray:
    first, second, clusters = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return discordance_by_cluster(first, second, Clusters(clusters, G))


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda c: f"{c['b']}-{c['c']}")
def test_the_clustered_test_equals_the_exact_one_of_statsmodels(case) -> None:
    b, c = case["b"], case["c"]
    counts = np.repeat([[1, 0, 0], [0, 1, 0]], [b, c], axis=0)
    assert mcnemar_clustered(ClusterCounts(counts)) == pytest.approx(case["exact"], rel=1e-9)


def test_published_example_of_mid_p() -> None:
    # Fagerland et al. (2013): airway hyper-responsiveness of 21 children before and after
    # transplantation; 1 and 7 of them changed either way.
    assert mcnemar_mid_p(1, 7) == pytest.approx(0.0391, abs=5e-5)


@given(counts, counts)
def test_mid_p_is_below_exact_p_by_the_chance_of_what_was_seen(b: int, c: int) -> None:
    exact, mid = exact_p(b, c), mcnemar_mid_p(b, c)
    if b + c == 0:
        assert exact is mid is None
        return
    assert exact is not None
    assert mid is not None
    assert 0 < mid <= exact <= 1
    assert mcnemar_mid_p(c, b) == mid
    if b == c:
        assert exact == 1
        assert mid == pytest.approx(1)
    else:
        x = 2.0 ** -(b + c)
        for i in range(min(b, c)):
            x *= (b + c - i) / (i + 1)
        assert exact - mid == pytest.approx(x, rel=1e-6, abs=1e-300)


@given(outcomes)
def test_discordance_agrees_with_the_table_of_right_and_wrong(rows) -> None:
    first, second, clusters = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    table = confusion_by_cluster(first, second, Clusters(clusters, G), 2)
    found = discordance(rows)
    assert np.array_equal(found[:, 0], table[:, 1, 0])
    assert np.array_equal(found[:, 1], table[:, 0, 1])
    assert np.array_equal(found.sum(axis=1), table.sum(axis=(1, 2)))
    total = found.sum(axis=0)
    assert discordant(total) == (table.sum(axis=0)[1, 0], table.sum(axis=0)[0, 1])
    if total.any():
        both = (first >= 0) & (second >= 0)
        expected = first[both].mean() - second[both].mean()
        assert ACCURACY_DIFFERENCE.formula(total) == pytest.approx(expected)
        assert ACCURACY_DIFFERENCE.undefined(total) == ""
    else:
        assert np.isnan(ACCURACY_DIFFERENCE.formula(total))
        assert ACCURACY_DIFFERENCE.undefined(total) == NO_SHARED_TRUTH


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_with_one_item_a_cluster_the_clustered_test_is_the_exact_one(rows) -> None:
    first, second = np.array(rows).T
    found = discordance_by_cluster(first, second, apart(len(rows)))
    expected = exact_p(*discordant(found.sum(axis=0)))
    clustered = mcnemar_clustered(ClusterCounts(found))
    assert clustered == (None if expected is None else pytest.approx(expected))


def test_clusters_that_repeat_themselves_do_not_count_as_more_evidence() -> None:
    # 8 questions, on each of which all 5 answers say the same: 6 questions against 2
    first = np.repeat([1, 1, 1, 1, 1, 1, 0, 0], 5)
    clusters = np.repeat(np.arange(8), 5)
    found = discordance_by_cluster(first, 1 - first, Clusters(clusters, 8))
    assert mcnemar_clustered(ClusterCounts(found)) == pytest.approx(exact_p(6, 2))
    assert exact_p(*discordant(found.sum(axis=0))) < 0.01
    one_sided = mcnemar_clustered(ClusterCounts(found), "greater")
    assert one_sided == pytest.approx(exact_p(6, 2) / 2)


@pytest.mark.parametrize(
    ("first", "second", "clusters", "told"),
    [
        ([1], [0, 0], [0, 0], "same shape"),
        ([2, 0], [0, 0], [0, 0], "first"),
        ([1, 0], [0, -2], [0, 0], "second"),
        ([1, 0], [0, 0], [0, 9], "clusters"),
    ],
)
def test_what_is_out_of_range_is_refused(first, second, clusters, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        discordance_by_cluster(np.array(first), np.array(second), Clusters(np.array(clusters), 2))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar_mid_p(-1, 3)
