import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import (
    ACCURACY,
    NO_SOFT_ITEM,
    SOFT_AGREEMENT,
    confusion_by_cluster,
    soft_agreement_by_cluster,
)
from judgebench.stats.consensus import label_shares
from judgebench.stats.resample import Resampling, cluster_bootstrap

K = 3
FEW = Resampling(resamples=200)
cases = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        arrays(np.int64, (n, 4), elements=st.integers(-1, K - 1)),
        arrays(np.int64, n, elements=st.integers(-1, K - 1)),
        arrays(np.int64, n, elements=st.integers(0, 2)),
    )
)


def estimate(ratings, judged, clusters=None):
    share = label_shares(np.asarray(ratings), K)
    clusters = np.arange(len(share)) if clusters is None else np.asarray(clusters)
    sums = soft_agreement_by_cluster(
        share, np.asarray(judged), Clusters(clusters, int(clusters.max()) + 1)
    )
    return cluster_bootstrap(sums, SOFT_AGREEMENT, FEW, n=len(share))


@given(cases)
def test_the_mean_share_of_annotators_who_agree_by_brute_force(case) -> None:
    ratings, judged, clusters = case
    shares = [
        [int(x) for x in unit].count(int(label)) / len([x for x in unit if x >= 0])
        for unit, label in zip(ratings, judged, strict=True)
        if label >= 0 and (unit >= 0).any()
    ]
    found = estimate(ratings, judged, clusters)
    if shares:
        assert found.value == pytest.approx(sum(shares) / len(shares))
    else:
        assert (found.value, found.reason) == (None, NO_SOFT_ITEM)


@given(cases)
def test_it_is_accuracy_where_each_item_has_one_label(case) -> None:
    ratings, judged, clusters = case
    counts = confusion_by_cluster(ratings[:, 0], judged, Clusters(clusters, 3), K)
    accuracy = cluster_bootstrap(counts, ACCURACY, FEW, n=len(judged))
    found = estimate(ratings[:, :1], judged, clusters)
    if accuracy.value is None:
        assert found.value is None
    else:
        assert found.value == pytest.approx(accuracy.value)


def test_a_judge_without_a_single_agreement_has_an_exact_interval() -> None:
    found = estimate([[0, 1], [0, 0], [1, 1]], [2, 2, 2])
    assert (found.value, found.low) == (0, 0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 3))


def test_codes_out_of_range_are_refused() -> None:
    share = np.eye(K)
    with pytest.raises(ValueError, match="judged labels must lie in"):
        soft_agreement_by_cluster(share, np.array([0, 1, 3]), apart(3))
    with pytest.raises(ValueError, match="clusters must lie in"):
        soft_agreement_by_cluster(share, np.array([0, 1, 2]), Clusters(np.arange(3), 2))
