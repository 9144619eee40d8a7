from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from cluster_case import together
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters, mean_of_defined
from judgebench.stats.intervals import (
    LEVEL,
    clustered_mean,
    correlations,
    means,
    moments_by_cluster,
    sums_by_cluster,
)


@given(arrays(np.float64, (7, 3), elements=st.sampled_from([0.0, 0.25, -1.0, 2.0, np.nan])))
def test_sums_hold_the_mean_of_what_is_defined(x) -> None:
    sums = sums_by_cluster(x, Clusters(np.array([0, 1, 1, 0, 2, 2, 2]), 4))
    assert sums.shape == (4, 2, 3)
    for j, found in enumerate(means(sums.sum(axis=0))):
        defined = x[~np.isnan(x[:, j]), j]
        assert np.isnan(found) if not len(defined) else found == pytest.approx(defined.mean())


def test_missing_values_are_counted_and_clusters_make_the_interval() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=60), 3)
    x[:6] = np.nan
    found = clustered_mean(x, np.repeat(np.arange(60) * 7, 3), "none", LEVEL, n_missing=2)
    assert (found.n, found.n_missing) == (174, 8)
    assert found.value == pytest.approx(np.nanmean(x))
    assert "over 58 clusters" in found.method
    # Rows of a cluster are copies, so the interval is that of the 58 values.
    once = x[6::3]
    expected = scipy.stats.t.interval(0.95, 57, once.mean(), scipy.stats.sem(once))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("x", [np.zeros(0), np.full(3, np.nan)], ids=["empty", "undefined"])
def test_no_value_says_why(x) -> None:
    found = clustered_mean(x, np.arange(len(x)), "nothing was ranked")
    assert (found.value, found.reason) == (None, "nothing was ranked")
    assert (found.n, found.n_missing) == (0, len(x))


scales = st.tuples(st.integers(1, 15), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 3))
)


def moments(x: np.ndarray) -> np.ndarray:
    return moments_by_cluster(x, together(len(x)))[0]


def by_numpy(x: np.ndarray) -> dict[tuple[int, int], float]:
    varied = [c for c in range(x.shape[1]) if len(set(x[:, c])) > 1]
    return {(a, b): np.corrcoef(x[:, a], x[:, b])[0, 1] for a, b in combinations(varied, 2)}


@given(scales)
def test_mean_correlation_equals_numpy(x) -> None:
    expected = list(by_numpy(x).values())
    found = mean_of_defined(correlations(moments(x)))
    mean = np.mean(expected) if expected else np.nan
    assert found == pytest.approx(mean, abs=1e-9, nan_ok=True)


@given(arrays(np.int64, (12, 3), elements=st.integers(0, 2)))
def test_moments_add_up_over_clusters_and_formulas_are_vectorised(x) -> None:
    clusters = np.arange(12) % 4
    found = moments_by_cluster(x, Clusters(clusters, 5))
    assert found.shape == (5, 4, 4)
    assert np.array_equal(found.sum(axis=0), moments(x))
    np.testing.assert_allclose(correlations(found), [correlations(c) for c in found])
