import numpy as np
import pytest
import scipy.stats
from cluster_case import together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, ratio
from judgebench.stats.confusion import ACCURACY, cohen_kappa, confusion_by_cluster, recall
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.resample import (
    MOST_GROUPS,
    ClusterCounts,
    Resampling,
    Statistic,
    cluster_bootstrap,
    grouping_told,
    random_groups,
)

FEW = Resampling(resamples=200)


def one_item_clusters(hits: int, misses: int) -> np.ndarray:
    counts = np.zeros((hits + misses, 2, 2))
    counts[:hits, 0, 0] = 1
    counts[hits:, 0, 1] = 1
    return counts


def clustered_labels(rng: np.random.Generator, clusters: int, size: int, k: int = 3):
    truth = rng.choice(k, clusters * size, p=[0.6, 0.3, 0.1])
    hard = np.repeat(rng.random(clusters) < 0.3, size)  # in a hard cluster the judge guesses
    judged = np.where(hard, rng.choice(k, len(truth)), truth)
    return truth, judged, np.repeat(np.arange(clusters), size)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_one_item_clusters_give_the_quantiles_of_the_binomial(level: float) -> None:
    # A resample of one-item clusters holds Binomial(G, p) hits: the limits are its quantiles.
    G, hits = 400, 317
    found = cluster_bootstrap(
        one_item_clusters(hits, G - hits), ACCURACY, Resampling(20_000, level=level), n=G
    )
    tail = (1 - level) / 2
    expected = scipy.stats.binom.ppf([tail, 1 - tail], G, hits / G) / G
    assert found.value == hits / G
    assert [found.low, found.high] == pytest.approx(expected, abs=1.01 / G)
    assert found.level == level


def test_same_distribution_as_drawing_cluster_indices_and_copying_rows() -> None:
    rng = np.random.default_rng(3)
    G, size, k = 60, 4, 3
    truth, judged, clusters = clustered_labels(rng, G, size)
    counts = confusion_by_cluster(truth, judged, Clusters(clusters, G), k)
    statistic = cohen_kappa("quadratic")
    found = cluster_bootstrap(counts, statistic, Resampling(8000), n=len(truth))

    plain = []
    for _ in range(4000):
        rows = (rng.integers(G, size=G)[:, None] * size + np.arange(size)).ravel()
        copied = confusion_by_cluster(truth[rows], judged[rows], together(len(rows)), k)
        plain.append(statistic.formula(copied[0]))
    assert [found.low, found.high] == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=0.015)


def test_whole_clusters_are_resampled_not_rows() -> None:
    counts = one_item_clusters(35, 15)
    single = cluster_bootstrap(counts, ACCURACY, n=50)
    tenfold = cluster_bootstrap(10 * counts, ACCURACY, n=500)  # ten equal items a cluster
    as_rows = cluster_bootstrap(np.repeat(counts, 10, axis=0), ACCURACY, n=500)
    assert (tenfold.low, tenfold.high) == (single.low, single.high)
    assert as_rows.high - as_rows.low < 0.5 * (single.high - single.low)


counts_of_clusters = st.integers(2, 12).flatmap(
    lambda G: arrays(np.int64, (G, 3, 3), elements=st.integers(0, 3))
)


@settings(max_examples=60, deadline=None)
@given(counts_of_clusters, st.randoms(use_true_random=False))
def test_order_and_empty_clusters_do_not_matter(counts, random) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    with_gaps = np.concatenate([np.zeros((2, 3, 3)), counts[order], np.zeros((1, 3, 3))])
    assert cluster_bootstrap(counts, ACCURACY, FEW, n=7) == cluster_bootstrap(
        with_gaps, ACCURACY, FEW, n=7
    )


@settings(max_examples=100, deadline=None)
@given(counts_of_clusters, st.sampled_from([ACCURACY, cohen_kappa(), recall(2)]))
def test_every_estimate_has_a_value_and_interval_or_says_why_not(counts, statistic) -> None:
    found = cluster_bootstrap(counts, statistic, FEW, n=9, n_missing=2)
    assert (found.n, found.n_missing) == (9, 2)
    assert (found.value is None) == (statistic.undefined(counts.sum(axis=0)) != "")
    if found.low is None or found.high is None:
        assert found.reason
        assert found.low is found.high is None
        assert found.method == ""
    else:
        assert found.reason == ""
        assert found.low < found.high
        assert found.method


def test_the_seed_decides_and_is_told() -> None:
    truth, judged, clusters = clustered_labels(np.random.default_rng(1), 40, 3)
    counts = confusion_by_cluster(truth, judged, Clusters(clusters, 40), 3)
    a, again, other = (
        cluster_bootstrap(counts, cohen_kappa(), Resampling(500, seed=seed), n=120)
        for seed in (5, 5, 6)
    )
    assert a == again
    assert (a.low, a.high) != (other.low, other.high)
    assert a.method == "percentile bootstrap over 40 clusters, 500 resamples, seed 5"


@pytest.mark.parametrize(("hits", "value"), [(30, 1.0), (0, 0.0)])
def test_a_share_of_all_or_none_has_the_exact_interval_over_clusters(hits, value) -> None:
    counts = 4 * one_item_clusters(hits, 30 - hits)
    found = cluster_bootstrap(counts, ACCURACY, FEW, n=120)
    exact = clopper_pearson(hits, 30)
    assert (found.value, found.low, found.high) == (value, exact.low, exact.high)
    assert found.method.startswith("exact (Clopper-Pearson) over 30 clusters")
    assert found.n == 120


def test_the_exact_interval_counts_only_clusters_that_inform_it() -> None:
    counts = one_item_clusters(100, 0)
    counts[:3] = [[0, 0], [0, 1]]  # three clusters hold the severe label, all found
    found = cluster_bootstrap(counts, recall(1), FEW, n=3)
    exact = clopper_pearson(3, 3)
    assert (found.value, found.low, found.high) == (1.0, exact.low, 1.0)
    assert "over 3 clusters" in found.method


def test_one_miss_in_a_million_is_not_rounded_to_all_right() -> None:
    counts = np.zeros((1000, 2, 2))
    counts[:, 0, 0] = 1000
    counts[0, 0] = [999, 1]
    found = cluster_bootstrap(counts, ACCURACY, FEW, n=1_000_000)
    assert found.value == 1 - 1e-6
    assert found.method.startswith("percentile bootstrap")


@pytest.mark.parametrize(
    ("counts", "statistic", "value", "reason"),
    [
        (np.tile(np.diag([3.0, 2.0]), (20, 1, 1)), cohen_kappa(), 1.0, "the same value"),
        (np.tile([[1.0, 1.0], [0.0, 0.0]], (20, 1, 1)), ACCURACY, 0.5, "the same value"),
        (np.array([[[8.0, 1], [1, 2]]]), ACCURACY, 10 / 12, "one cluster only"),
    ],
)
def test_what_cannot_vary_has_no_interval(counts, statistic, value, reason) -> None:
    found = cluster_bootstrap(counts, statistic, FEW, n=40)
    assert (found.value, found.low, found.high) == (pytest.approx(value), None, None)
    assert reason in found.reason


@pytest.mark.parametrize("G", [0, 3])
def test_no_data_at_all_is_undefined(G: int) -> None:
    found = cluster_bootstrap(np.zeros((G, 2, 2)), ACCURACY, FEW, n=0, n_missing=8)
    assert found.value is None
    assert found.n_missing == 8
    assert "no item" in found.reason


def test_undefined_resamples_are_counted_or_forbid_the_interval() -> None:
    def counts_with(severe: int) -> np.ndarray:
        counts = one_item_clusters(60, 0)
        counts[:severe] = [[0, 0], [0, 1]]
        counts[0] = [[0, 0], [1, 0]]  # one of them missed
        return counts

    # Chance that a resample holds no severe item: (1 - 3/60)^60 = 0.046 and (1 - 2/60)^60 = 0.13
    some = cluster_bootstrap(counts_with(3), recall(1), n=3)
    assert some.low is not None
    left_out = int(some.method.split(", ")[-1].split()[0])
    assert left_out / 2000 == pytest.approx((57 / 60) ** 60, abs=0.015)

    many = cluster_bootstrap(counts_with(2), recall(1), n=2)
    assert (many.value, many.low) == (0.5, None)
    assert "resamples are undefined" in many.reason


def test_many_unlike_clusters_are_drawn_in_chunks() -> None:
    # The mean of 6,000 distinct values: 2,000 x 6,000 multiplicities are three chunks.
    x = np.random.default_rng(0).normal(5, 2, 6000)
    counts = np.stack([x, np.ones_like(x)], axis=-1)
    mean = Statistic(lambda c: ratio(c[..., 0], c[..., 1]), lambda c: "")
    found = cluster_bootstrap(counts, mean, n=6000)
    error = x.std() / np.sqrt(6000)
    assert found.value == pytest.approx(x.mean())
    assert [found.low, found.high] == pytest.approx(
        [x.mean() - 1.96 * error, x.mean() + 1.96 * error], abs=0.15 * error
    )


@settings(max_examples=30, deadline=None)
@given(counts_of_clusters)
def test_counts_prepared_once_give_the_same_estimates(counts) -> None:
    prepared = ClusterCounts(counts)
    assert prepared.total.tolist() == counts.sum(axis=0).tolist()
    for statistic in (ACCURACY, cohen_kappa(), recall(2)):
        assert cluster_bootstrap(prepared, statistic, FEW, n=9) == cluster_bootstrap(
            counts, statistic, FEW, n=9
        )


def test_unlike_clusters_are_never_taken_for_one_kind(monkeypatch) -> None:
    counts = one_item_clusters(30, 20)
    expected = cluster_bootstrap(counts, ACCURACY, FEW, n=50)

    class Ones:
        def random(self, size: int) -> np.ndarray:
            return np.ones(size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Ones())
    prepared = ClusterCounts(counts)
    monkeypatch.undo()
    assert len(prepared.kinds) == 50
    found = cluster_bootstrap(prepared, ACCURACY, FEW, n=50)
    assert found.value == expected.value
    assert [found.low, found.high] == pytest.approx([expected.low, expected.high], abs=0.05)


def test_few_clusters_stay_as_they_are() -> None:
    clusters = Clusters(np.array([0, 2, 1, 2]), 3)
    assert random_groups(clusters) is clusters
    assert grouping_told(Estimate(1.0, 0.0, 2.0, "m"), 3).method == "m"


def test_many_clusters_stay_whole_in_groups_of_nearly_equal_numbers() -> None:
    clusters = Clusters(np.repeat(np.arange(4999), 2), 4999)
    groups = random_groups(clusters, seed=3)
    codes, n = groups.codes, groups.n
    assert n == MOST_GROUPS
    assert (codes[::2] == codes[1::2]).all()
    assert set(np.bincount(codes[::2], minlength=n).tolist()) == {2, 3}
    assert (codes == random_groups(clusters, seed=3).codes).all()
    assert (codes != random_groups(clusters, seed=4).codes).any()
    assert "4,999 clusters" in grouping_told(Estimate(1.0, 0.0, 2.0, "m"), 4999).method
    assert grouping_told(Estimate(1.0, reason="none"), 4999).method == ""
