import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.means import clustered_mean, means, sums_by_cluster
from judgebench.stats.resample import Resampling

FEW = Resampling(resamples=500)


@given(arrays(np.float64, (7, 3), elements=st.sampled_from([0.0, 0.25, -1.0, 2.0, np.nan])))
def test_sums_hold_the_mean_of_what_is_defined(x) -> None:
    sums = sums_by_cluster(x, Clusters(np.array([0, 1, 1, 0, 2, 2, 2]), 4))
    assert sums.shape == (4, 2, 3)
    for j, found in enumerate(means(sums.sum(axis=0))):
        defined = x[~np.isnan(x[:, j]), j]
        assert np.isnan(found) if not len(defined) else found == pytest.approx(defined.mean())


def test_missing_values_are_counted_and_the_interval_resamples_clusters() -> None:
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=60), 3)
    x[:6] = np.nan
    found = clustered_mean(x, np.repeat(np.arange(60) * 7, 3), "none", FEW, n_missing=2)
    assert (found.n, found.n_missing) == (174, 8)
    assert found.value == pytest.approx(np.nanmean(x))
    assert "over 58 clusters" in found.method
    # Rows of a cluster are copies, so the interval is that of the 58 values.
    once = x[6::3]
    half = (found.high - found.low) / 2
    assert half == pytest.approx(1.96 * once.std() / np.sqrt(58), rel=0.15)


def test_the_interval_is_that_of_scipys_bootstrap() -> None:
    x = np.random.default_rng(2).exponential(size=80)
    found = clustered_mean(x, np.arange(80), "none", Resampling(resamples=9999))
    expected = scipy.stats.bootstrap((x,), np.mean, method="percentile", rng=3)
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.02)


@pytest.mark.parametrize("x", [np.zeros(0), np.full(3, np.nan)], ids=["empty", "undefined"])
def test_no_value_says_why(x) -> None:
    found = clustered_mean(x, np.arange(len(x)), "nothing was ranked", FEW)
    assert (found.value, found.reason) == (None, "nothing was ranked")
    assert (found.n, found.n_missing) == (0, len(x))


def test_clusters_out_of_range_or_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.\.1"):
        sums_by_cluster(np.zeros((2, 1)), Clusters(np.array([0, 2]), 2))
    with pytest.raises(ValueError, match="same length"):
        sums_by_cluster(np.zeros((2, 1)), Clusters(np.array([0]), 2))
