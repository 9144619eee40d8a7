import json
import re
from pathlib import Path

import numpy as np
import pytest
from cluster_case import apart, together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import cohen_kappa, confusion_by_cluster
from judgebench.stats.interrater import agreement_counts_by_cluster, fleiss_kappa, gwet_ac
from judgebench.stats.resample import Resampling, cluster_bootstrap

K = 4
SEVERITIES = [0.0, 1.0, 2.5, 7.0]
WEIGHTS = ("identity", "linear", "quadratic", "ordinal")
FEW = Resampling(resamples=200)
# Figures of other people's packages, with their versions and inputs.
FROZEN = json.loads((Path(__file__).parent / "data/chance_corrected.json").read_text("utf-8"))

ragged = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K - 1))
)


def counts_of(ratings, k: int = K) -> np.ndarray:
    ratings = np.asarray(ratings)
    return agreement_counts_by_cluster(ratings, together(len(ratings)), k)[0]


def by_name(name: str, *args):
    return {"ac": gwet_ac, "fleiss": fleiss_kappa}[name](*args)


# --- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FROZEN["irrCAC"]["cases"], ids=lambda case: case["name"])
@pytest.mark.parametrize("name", ["ac", "fleiss"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_equals_irrcac(case, name: str, weights) -> None:
    counts = counts_of(case["ratings"], len(case["severities"]))
    found = by_name(name, weights, case["severities"]).formula(counts)
    assert found == pytest.approx(case["figures"][weights][name], abs=1e-12)


@pytest.mark.parametrize("case", FROZEN["statsmodels"]["fleiss"])
def test_fleiss_kappa_equals_statsmodels(case) -> None:
    found = fleiss_kappa().formula(counts_of(case["ratings"], case["k"]))
    assert found == pytest.approx(case["fleiss"], abs=1e-12)


@pytest.mark.parametrize("case", FROZEN["statsmodels"]["cohen"], ids=lambda case: case["weights"])
def test_weighted_kappa_by_severity_equals_statsmodels(case) -> None:
    found = cohen_kappa(case["weights"], case["severities"]).formula(np.array(case["counts"]))
    assert found == pytest.approx(case["kappa"], abs=1e-12)


def test_published_figures_of_four_raters() -> None:
    # Gwet's own example in the R package irrCAC: AC1 0.77544, Fleiss' kappa 0.76117.
    (case,) = (c for c in FROZEN["irrCAC"]["cases"] if c["name"].startswith("raw_4raters"))
    counts = counts_of(case["ratings"], 5)
    assert round(float(gwet_ac().formula(counts)), 5) == 0.77544
    assert round(float(fleiss_kappa().formula(counts)), 5) == 0.76117


def test_ac1_and_fleiss_worked_by_hand() -> None:
    # Units: aab, aa, b alone, of three possible labels. p_a = (1/3 + 1) / 2 = 2/3.
    # pi: a (2/3 + 1) / 3 = 5/9, b (1/3 + 1) / 3 = 4/9.
    counts = counts_of([[0, 0, 1], [0, 0, -1], [-1, -1, 1]], 3)
    p_e = 2 * (5 / 9) * (4 / 9) / 2
    assert gwet_ac().formula(counts) == pytest.approx((2 / 3 - p_e) / (1 - p_e))
    p_e = (5 / 9) ** 2 + (4 / 9) ** 2
    assert fleiss_kappa().formula(counts) == pytest.approx((2 / 3 - p_e) / (1 - p_e))


# --- laws ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(arrays(np.int64, (4, 6, 3), elements=st.integers(-1, 1)), st.sampled_from(WEIGHTS))
def test_formulas_are_vectorised_and_what_is_nan_says_why(samples, weights) -> None:
    counts = np.stack([counts_of(ratings) for ratings in samples])
    for name in ("ac", "fleiss"):
        statistic = by_name(name, weights, SEVERITIES)
        together = statistic.formula(counts)
        np.testing.assert_allclose(together, [statistic.formula(each) for each in counts])
        assert all(statistic.undefined(c) for c in counts[np.isnan(together)])


@settings(deadline=None)
@given(ragged, st.randoms(use_true_random=False))
def test_counts_add_up_over_clusters_and_tell_how_many_units_there_are(ratings, random) -> None:
    clusters = np.array([random.randrange(3) for _ in ratings])
    whole = counts_of(ratings)
    by_cluster = agreement_counts_by_cluster(ratings, Clusters(clusters, 3), K)
    np.testing.assert_allclose(by_cluster.sum(axis=0), whole, atol=1e-12)
    r = (ratings >= 0).sum(axis=1)
    assert whole[:K].sum() == pytest.approx((r >= 2).sum())
    assert whole[K].sum() == (r == 1).sum()


@settings(deadline=None)
@given(arrays(np.int64, (8, 2), elements=st.integers(0, K - 1)), st.sampled_from(WEIGHTS))
def test_confusion_counts_are_the_counts_of_two_annotators(pair, weights) -> None:
    first, second = pair.T
    C = confusion_by_cluster(first, second, together(8), K)[0]
    for name in ("ac", "fleiss"):
        statistic = by_name(name, weights, SEVERITIES)
        found, expected = statistic.formula(C), statistic.formula(counts_of(pair))
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert bool(statistic.undefined(C)) == bool(statistic.undefined(counts_of(pair)))


@settings(deadline=None)
@given(ragged)
def test_agreement_is_full_where_it_is_unanimous_and_labels_vary(ratings) -> None:
    ratings = np.where(ratings < 0, -1, (np.arange(len(ratings)) % K)[:, None])
    for name in ("ac", "fleiss"):
        statistic = by_name(name, "quadratic", SEVERITIES)
        if not statistic.undefined(counts_of(ratings)):
            assert statistic.formula(counts_of(ratings)) == pytest.approx(1)


@settings(deadline=None)
@given(ragged, st.sampled_from(WEIGHTS), st.randoms(use_true_random=False))
def test_who_gave_which_label_of_an_item_is_no_matter(ratings, weights, random) -> None:
    mixed = np.array([random.sample(list(unit), len(unit)) for unit in ratings])
    np.testing.assert_allclose(counts_of(mixed), counts_of(ratings))
    scaled = [10 * s + 3 for s in SEVERITIES]
    for name in ("ac", "fleiss"):
        found = by_name(name, weights, scaled).formula(counts_of(ratings))
        expected = by_name(name, weights, SEVERITIES).formula(counts_of(ratings))
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_of_two_constant_annotators_ac1_hardly_falls_where_kappa_is_0() -> None:
    """What AC is for, and why it is no evidence on skewed labels."""
    C = np.array([[98.0, 0], [2, 0]])
    assert gwet_ac().formula(C) == pytest.approx(0.98, abs=0.001)
    assert cohen_kappa().formula(C) == pytest.approx(0)


# --- undefined is never 0 or 1 -------------------------------------------------------------------


def bootstrapped(name: str, ratings, weights="identity", severities=None):
    ratings = np.array(ratings)
    units = len(ratings)
    counts = agreement_counts_by_cluster(ratings, apart(units), 3)
    return cluster_bootstrap(counts, by_name(name, weights, severities), FEW, n=units)


@pytest.mark.parametrize("name", ["ac", "fleiss"])
@pytest.mark.parametrize(
    ("ratings", "weights", "severities", "reason"),
    [
        ([[0, -1], [-1, 1]], "identity", None, "no item was labelled by two annotators"),
        ([[1, 1], [1, 1]], "identity", None, "only one label was ever used"),
        ([[1, 1], [1, 1], [0, -1]], "quadratic", None, "only one label was ever used"),
        ([[0, 1], [1, 1]], "linear", [2, 2, 2], "the same severity"),
    ],
)
def test_undefined_says_why(name, ratings, weights, severities, reason: str) -> None:
    found = bootstrapped(name, ratings, weights, severities)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert re.search(reason, found.reason)


@pytest.mark.parametrize("name", ["ac", "fleiss"])
def test_without_a_pair_of_judge_and_truth_it_says_so(name: str) -> None:
    found = cluster_bootstrap(np.zeros((2, 3, 3)), by_name(name), FEW, n=0)
    assert found.value is None
    assert found.reason == "no item has both a reference label and a label of the judge"


def test_resamples_of_one_label_count_for_ac_and_are_left_out_for_kappa() -> None:
    rare = [[0, 0]] * 30 + [[0, 1]]
    ac, kappa = bootstrapped("ac", rare), bootstrapped("fleiss", rare)
    assert ac.high == 1
    assert ac.low is not None
    assert ac.low < ac.value < 1
    assert "left out" not in ac.method
    assert kappa.low is None
    assert "resamples are undefined" in kappa.reason


def test_bad_codes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels must lie in -1\.\.3"):
        counts_of([[0, 4]])
    with pytest.raises(ValueError, match="clusters must lie in"):
        agreement_counts_by_cluster(np.array([[0, 1]]), Clusters(np.array([1]), 1), K)
    with pytest.raises(ValueError, match="same length"):
        agreement_counts_by_cluster(np.array([[0, 1]]), Clusters(np.array([0, 0]), 1), K)
    with pytest.raises(ValueError, match="4 labels need 4 severities"):
        gwet_ac("linear", [0, 1]).formula(np.ones((K, K)))
