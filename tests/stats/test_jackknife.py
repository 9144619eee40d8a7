import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.agreement import coincidences_by_cluster, krippendorff_alpha
from judgebench.stats.arrays import Clusters, ratio
from judgebench.stats.classification import (
    ACCURACY,
    BALANCED_ACCURACY,
    MACRO_F1,
    SPEARMAN,
    cohen_kappa,
    confusion_by_cluster,
    of_label,
)
from judgebench.stats.intervals import (
    MAX_GROUPS,
    ClusterCounts,
    Statistic,
    clopper_pearson,
    clustered_estimate,
    clustered_share,
    mean_difference,
    random_groups,
)
from judgebench.stats.paired_tests import difference_of

MEAN = Statistic(lambda c: ratio(c[..., 0], c[..., 1]), lambda c: "")


def one_item_clusters(hits: int, misses: int) -> np.ndarray:
    counts = np.zeros((hits + misses, 2, 2))
    counts[:hits, 0, 0] = 1
    counts[hits:, 0, 1] = 1
    return counts


def unequal_clusters(seed: int = 0, clusters: int = 23):
    """Reference and judge of clusters of 1 to 9 items, and the cluster of each item."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(clusters), rng.integers(1, 10, clusters))
    truth = rng.choice(3, len(codes), p=[0.5, 0.3, 0.2])
    judged = np.where(rng.random(len(codes)) < 0.7, truth, rng.integers(0, 3, len(codes)))
    return truth, judged, codes


def looped(value, codes, level=0.95):
    """Limits by a loop over clusters: `value` is of the rows (items,) that are kept."""
    z = np.arctanh([value(codes != cluster) for cluster in np.unique(codes)])
    error = np.sqrt((len(z) - 1) / len(z) * ((z - z.mean()) ** 2).sum())
    half = scipy.stats.t.ppf((1 + level) / 2, len(z) - 1) * error
    middle = np.arctanh(value(codes >= 0))
    return np.tanh([middle - half, middle + half])


def plain_kappa(truth, judged):
    shares = [np.bincount(x, minlength=3) / len(x) for x in (truth, judged)]
    by_chance = shares[0] @ shares[1]
    return ((truth == judged).mean() - by_chance) / (1 - by_chance)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_kappa_has_the_interval_of_a_plain_loop(level: float) -> None:
    truth, judged, codes = unequal_clusters()
    counts = confusion_by_cluster(truth, judged, Clusters(codes, 23), 3)
    estimate = clustered_estimate(counts, cohen_kappa(), level, n=len(codes))
    limits = looped(lambda rows: plain_kappa(truth[rows], judged[rows]), codes, level)
    assert [estimate.low, estimate.high] == pytest.approx(limits, abs=1e-9)
    assert estimate.method == "jackknife-t over 23 clusters"
    assert estimate.level == level


def test_spearman_has_the_interval_of_a_plain_loop() -> None:
    truth, judged, codes = unequal_clusters(1)
    counts = confusion_by_cluster(truth, judged, Clusters(codes, 23), 3)
    estimate = clustered_estimate(counts, SPEARMAN, n=len(codes))

    def rho(rows: np.ndarray) -> float:
        return scipy.stats.spearmanr(truth[rows], judged[rows]).statistic

    assert [estimate.low, estimate.high] == pytest.approx(looped(rho, codes), abs=1e-9)


def test_alpha_has_the_interval_of_a_plain_loop() -> None:
    krippendorff = pytest.importorskip("krippendorff")
    truth, judged, codes = unequal_clusters(2)
    ratings = np.stack([truth, judged, np.where(codes % 3 == 0, -1, truth)], axis=1)
    counts = coincidences_by_cluster(ratings, Clusters(codes, 23), 3)
    estimate = clustered_estimate(counts, krippendorff_alpha("ordinal"), n=len(codes))

    def alpha(rows: np.ndarray) -> float:
        known = np.where(ratings[rows] < 0, np.nan, ratings[rows])
        return krippendorff.alpha(known.T, level_of_measurement="ordinal")

    assert [estimate.low, estimate.high] == pytest.approx(looped(alpha, codes), abs=1e-9)


def test_a_mean_without_bounds_has_students_interval() -> None:
    x = np.random.default_rng(0).normal(5, 2, 600)
    estimate = clustered_estimate(np.stack([x, np.ones_like(x)], axis=-1), MEAN, n=600)
    expected = scipy.stats.t.interval(0.95, 599, x.mean(), scipy.stats.sem(x))
    assert [estimate.low, estimate.high] == pytest.approx(expected, abs=1e-9)


def test_limits_are_cut_at_bounds_that_are_not_both_finite() -> None:
    counts = np.stack([[0, 0, 0, 0, 0, 9], np.ones(6)], axis=-1)
    statistic = Statistic(MEAN.formula, MEAN.undefined, (0.0, np.inf))
    assert clustered_estimate(counts, statistic, n=6).low == 0


@pytest.mark.parametrize("hits", [0, 3, 30])
def test_a_share_of_single_items_has_the_binomial_interval(hits: int) -> None:
    estimate = clustered_estimate(one_item_clusters(hits, 30 - hits), ACCURACY, n=30)
    exact = clopper_pearson(hits, 30)
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert estimate.method == exact.method


def test_a_share_of_clusters_has_the_interval_of_effective_items() -> None:
    truth, judged, codes = unequal_clusters(3)
    counts = confusion_by_cluster(truth, judged, Clusters(codes, 23), 3)
    severe = truth == 2
    x, n = (np.bincount(codes, kept, 23) for kept in (severe & (judged == 2), severe))
    estimate = clustered_estimate(counts, of_label("recall", 2), n=int(severe.sum()))
    expected = clustered_share(x, n, np.ones((1, 23)), 0.95)
    assert estimate.value == pytest.approx(x.sum() / n.sum())
    assert (estimate.low, estimate.high) == pytest.approx((expected.low[0], expected.high[0]))


def test_a_difference_of_shares_has_the_interval_of_mean_difference() -> None:
    truth, judged, codes = unequal_clusters(4)
    other = np.where(np.arange(len(truth)) % 4 == 0, (truth + 1) % 3, truth)
    pair = [confusion_by_cluster(truth, x, Clusters(codes, 23), 3) for x in (judged, other)]
    counts = np.stack(pair, axis=-1)
    estimate = clustered_estimate(counts, difference_of(ACCURACY), n=len(truth))
    apart = np.bincount(codes, 1.0 * (other == truth) - (judged == truth), 23)
    n = np.bincount(codes, minlength=23).astype(float)
    expected = mean_difference(apart[:, None], n[:, None], np.ones((1, 23)), 0.95, balanced=False)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low[0], expected.high[0]))


@pytest.mark.parametrize(
    ("clusters", "statistic", "has_interval"),
    [
        (4, cohen_kappa(), False),
        (4, ACCURACY, False),
        (5, cohen_kappa(), True),
        (5, ACCURACY, True),
    ],
)
def test_below_five_clusters_there_is_no_interval(clusters, statistic, has_interval) -> None:
    truth, judged, codes = unequal_clusters(5, clusters)
    counts = confusion_by_cluster(truth, judged, Clusters(codes, clusters), 3)
    estimate = clustered_estimate(counts, statistic, n=len(codes))
    assert (estimate.low is not None) == has_interval
    assert has_interval or estimate.reason == "there are 4 clusters only, and an interval needs 5"


def test_independent_items_have_the_exact_interval_at_any_number() -> None:
    estimate = clustered_estimate(one_item_clusters(1, 1), ACCURACY, n=2)
    exact = clopper_pearson(1, 2)
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(
    ("counts", "statistic", "value", "reason"),
    [
        (np.tile(np.diag([3.0, 2.0]), (20, 1, 1)), cohen_kappa(), 1.0, "at its bound"),
        (np.tile([[2.0, 1.0], [1.0, 2.0]], (20, 1, 1)), cohen_kappa(), 1 / 3, "no single cluster"),
        (np.array([[[8.0, 1], [1, 2]]]), ACCURACY, 10 / 12, "one cluster only"),
    ],
)
def test_what_cannot_vary_has_no_interval(counts, statistic, value, reason) -> None:
    estimate = clustered_estimate(counts, statistic, n=40)
    assert (estimate.value, estimate.low, estimate.high) == (pytest.approx(value), None, None)
    assert reason in estimate.reason


def test_no_interval_where_it_is_undefined_without_a_cluster() -> None:
    counts = np.concatenate([one_item_clusters(8, 0), [[[0, 0], [1, 1]]]])
    estimate = clustered_estimate(counts, cohen_kappa(), n=10)
    assert estimate.value is not None
    assert estimate.low is None
    assert "undefined without one of the clusters" in estimate.reason


@pytest.mark.parametrize(("statistic", "least"), [(BALANCED_ACCURACY, 10), (MACRO_F1, 5)])
def test_a_rare_label_leaves_no_interval(statistic, least: int) -> None:
    def estimate(rare: int):
        counts = one_item_clusters(20, 5)
        severe = np.tile([[0.0, 0], [0, 1]], (rare, 1, 1))
        severe[0] = [[0, 0], [1, 0]]
        return clustered_estimate(np.concatenate([counts, severe]), statistic, n=25 + rare)

    assert estimate(least).low is not None
    rare = estimate(least - 1)
    assert (rare.value is None, rare.low) == (False, None)
    assert f"only {least - 1} items of a label: an interval needs {least}" in rare.reason


counts_of_clusters = st.integers(2, 12).flatmap(
    lambda G: arrays(np.int64, (G, 3, 3), elements=st.integers(0, 3))
)


@settings(max_examples=60, deadline=None)
@given(counts_of_clusters, st.randoms(use_true_random=False))
def test_order_and_empty_clusters_do_not_matter(counts, random) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)
    with_gaps = np.concatenate([np.zeros((2, 3, 3)), counts[order], np.zeros((1, 3, 3))])
    for statistic in (ACCURACY, cohen_kappa()):
        a, b = (clustered_estimate(c, statistic, n=7) for c in (counts, with_gaps))
        assert (a.value, a.reason, a.method) == (b.value, b.reason, b.method)
        assert (a.low, a.high) == (b.low, b.high) or (a.low, a.high) == pytest.approx(
            (b.low, b.high), abs=1e-9
        )


@settings(max_examples=100, deadline=None)
@given(counts_of_clusters, st.sampled_from([ACCURACY, cohen_kappa(), of_label("recall", 2)]))
def test_every_estimate_has_a_value_and_interval_or_says_why_not(counts, statistic) -> None:
    estimate = clustered_estimate(counts, statistic, n=9, n_missing=2)
    assert (estimate.n, estimate.n_missing) == (9, 2)
    assert (estimate.value is None) == (statistic.undefined(counts.sum(axis=0)) != "")
    if estimate.low is None or estimate.high is None:
        assert estimate.reason
        assert estimate.low is estimate.high is None
        assert estimate.method == ""
    else:
        assert estimate.reason == ""
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.low < estimate.high
        assert estimate.method


@pytest.mark.parametrize("G", [0, 3])
def test_no_data_at_all_is_undefined(G: int) -> None:
    estimate = clustered_estimate(np.zeros((G, 2, 2)), ACCURACY, n=0, n_missing=8)
    assert estimate.value is None
    assert estimate.n_missing == 8
    assert "no item" in estimate.reason


def test_unlike_clusters_are_never_taken_for_one_kind(monkeypatch) -> None:
    counts = one_item_clusters(30, 20)
    expected = clustered_estimate(counts, ACCURACY, n=50)

    class Ones:
        def random(self, size: int) -> np.ndarray:
            return np.ones(size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Ones())
    prepared = ClusterCounts(counts)
    monkeypatch.undo()
    assert len(prepared.kinds) == 50
    estimate = clustered_estimate(prepared, ACCURACY, n=50)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )


def test_few_clusters_stay_as_they_are() -> None:
    clusters = Clusters(np.array([0, 2, 1, 2]), 3)
    assert random_groups(clusters) is clusters


def test_many_clusters_stay_whole_in_groups_of_nearly_equal_numbers() -> None:
    groups = random_groups(Clusters(np.repeat(np.arange(4999), 2), 4999))
    codes, n = groups.codes, groups.n
    assert n == MAX_GROUPS
    assert (codes[::2] == codes[1::2]).all()
    assert set(np.bincount(codes[::2], minlength=n).tolist()) == {2, 3}
