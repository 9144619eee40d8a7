import re
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from cluster_case import apart, together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.interrater import (
    OBSERVED_AGREEMENT,
    all_agree,
    at_least_two_agree,
    coincidences_by_cluster,
    krippendorff_alpha,
    vote_pairs_by_cluster,
)
from judgebench.stats.resample import Resampling, cluster_bootstrap

K = 4
SEVERITIES = [0.0, 1.0, 2.5, 7.0]
FEW = Resampling(resamples=200)

ragged = st.tuples(st.integers(1, 15), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K - 1))
)


def in_one_cluster(by_cluster, ratings) -> np.ndarray:
    return by_cluster(ratings, together(len(ratings)), K)[0]


def oracle_alpha(ratings: np.ndarray, level: str) -> float:
    """The alpha of the krippendorff package, which raises where fewer than two labels occur."""
    pairable = ratings[(ratings >= 0).sum(axis=1) >= 2]
    if len(np.unique(pairable[pairable >= 0])) < 2:
        return np.nan
    values = np.array(SEVERITIES if level == "interval" else range(K))
    counts = np.stack([(pairable == label).sum(axis=1) for label in range(K)], axis=1)
    used = counts.any(axis=0)
    return krippendorff.alpha(
        value_counts=counts[:, used], value_domain=values[used], level_of_measurement=level
    )


@settings(max_examples=300, deadline=None)
@given(ragged, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_equals_the_krippendorff_package(ratings, level) -> None:
    o = in_one_cluster(coincidences_by_cluster, ratings)
    found = krippendorff_alpha(level, SEVERITIES).formula(o)
    assert found == pytest.approx(oracle_alpha(ratings, level), abs=1e-9, nan_ok=True)


@settings(deadline=None)
@given(arrays(np.int64, (4, 6, 3), elements=st.integers(-1, K - 1)))
def test_alpha_is_vectorised_and_undefined_agrees_with_nan(samples) -> None:
    o = np.stack([in_one_cluster(coincidences_by_cluster, ratings) for ratings in samples])
    for level in ("nominal", "ordinal", "interval"):
        alpha = krippendorff_alpha(level)
        at_once = alpha.formula(o)
        np.testing.assert_allclose(at_once, [alpha.formula(each) for each in o])
        assert [bool(alpha.undefined(each)) for each in o] == list(np.isnan(at_once))


@given(ragged, st.integers(1, 3), st.randoms(use_true_random=False))
def test_coincidences_of_clusters_add_up_and_count_pairable_labels(ratings, G, random) -> None:
    clusters = np.array([random.randrange(G) for _ in ratings])
    by_cluster = coincidences_by_cluster(ratings, Clusters(clusters, G), K)
    whole = in_one_cluster(coincidences_by_cluster, ratings)
    np.testing.assert_allclose(by_cluster.sum(axis=0), whole)
    m = (ratings >= 0).sum(axis=1)
    assert whole.sum() == pytest.approx(m[m >= 2].sum())
    assert np.array_equal(whole, whole.T)


def test_alpha_of_a_worked_example() -> None:
    # Krippendorff (2011), section C: 12 units, 4 observers, values 1 to 5, missing data.
    # Published: nominal .743, ordinal .815, interval .849.
    rows = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3"]
    rows += [". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]
    ratings = np.array([[-1 if x == "." else int(x) - 1 for x in row.split()] for row in rows]).T
    o = coincidences_by_cluster(ratings, together(12), 5)[0]
    for level, published in (("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)):
        assert round(float(krippendorff_alpha(level).formula(o)), 3) == published


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[0, -1], [-1, 1]], "no item was labelled by two annotators"),
        ([[1, 1], [1, 1], [0, -1]], "only one label was ever used"),
    ],
)
def test_undefined_alpha_says_why(ratings, reason: str) -> None:
    ratings = np.array(ratings)
    counts = coincidences_by_cluster(ratings, apart(len(ratings)), 2)
    found = cluster_bootstrap(counts, krippendorff_alpha("nominal"), FEW, n=len(ratings))
    assert found.value is None
    assert re.search(reason, found.reason)


def test_labels_of_equal_severity_leave_interval_alpha_undefined() -> None:
    o = np.array([[2.0, 1], [1, 2]])
    alpha = krippendorff_alpha("interval", [3, 3])
    assert np.isnan(alpha.formula(o))
    assert "same severity" in alpha.undefined(o)


@given(ragged)
def test_vote_pairs_and_observed_agreement_by_brute_force(ratings) -> None:
    pairs = [
        pair
        for unit in ratings
        for pair in combinations([label for label in unit if label >= 0], 2)
    ]
    counts = in_one_cluster(vote_pairs_by_cluster, ratings)
    assert counts.sum() == len(pairs)
    assert np.array_equal(counts, counts.T)
    found = OBSERVED_AGREEMENT.formula(counts)
    expected = np.mean([a == b for a, b in pairs]) if pairs else np.nan
    assert found == pytest.approx(expected, nan_ok=True)
    assert bool(OBSERVED_AGREEMENT.undefined(counts)) == (not pairs)


@settings(deadline=None)
@given(ragged)
def test_agreement_of_units_by_brute_force(ratings) -> None:
    units = [[label for label in unit if label >= 0] for unit in ratings]
    usable = [labels for labels in units if len(labels) >= 2]
    clusters = np.arange(len(ratings)) % 3
    two = at_least_two_agree(ratings, Clusters(clusters, 3), FEW)
    everyone = all_agree(ratings, Clusters(clusters, 3), FEW)
    for found in (two, everyone):
        assert (found.n, found.n_missing) == (len(usable), len(units) - len(usable))
    if not usable:
        assert two.value is everyone.value is None
        assert "labelled by two annotators" in two.reason
        return
    assert two.value == pytest.approx(np.mean([len(set(u)) < len(u) for u in usable]))
    assert everyone.value == pytest.approx(np.mean([len(set(u)) == 1 for u in usable]))


def test_units_of_several_metrics_can_be_pooled() -> None:
    first = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2]])
    second = np.array([[3, 3, -1], [4, 3, -1], [4, -1, -1]])
    pooled = np.concatenate([first, second]), Clusters(np.array([0, 1, 2, 0, 1, 2]), 3)
    two = at_least_two_agree(*pooled)
    assert (two.value, two.n, two.n_missing) == (3 / 5, 5, 1)
    assert all_agree(*pooled).value == 2 / 5
    assert "over 3 clusters" in two.method


def test_bad_codes_are_refused() -> None:
    ratings = np.array([[0, 4]])
    with pytest.raises(ValueError, match=r"labels must lie in -1\.\.3"):
        coincidences_by_cluster(ratings, Clusters(np.array([0]), 1), K)
    with pytest.raises(ValueError, match="clusters must lie in"):
        vote_pairs_by_cluster(ratings - 1, Clusters(np.array([1]), 1), K)
    with pytest.raises(ValueError, match="same length"):
        vote_pairs_by_cluster(ratings - 1, Clusters(np.array([0, 0]), 1), K)


def test_two_missing_labels_are_no_agreement() -> None:
    ratings = np.array([[0, -1, 1, -1], [2, 2, -1, -1]])
    found = at_least_two_agree(ratings, Clusters(np.array([0, 1]), 2), FEW)
    assert (found.value, found.n) == (0.5, 2)
