"""Real human labels: numbers that others published, and a reference library on ragged data.

Zheng et al. (2023), agreement on MT-bench in the first turn, printed in whole percents: human
against human 63 % of 721 pairs of votes, 81 % of 479 without ties; GPT-4 against human 66 % of
1,343 votes, 85 % of 859 without ties. The third decimal here is recomputed from their votes.
"""

import ast
import csv
import gzip
import json
import re
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from cluster_case import apart, together
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.agreement import (
    ICC_2_1,
    OBSERVED_AGREEMENT,
    agreement_counts_by_cluster,
    all_agree,
    at_least_two_agree,
    coincidences_by_cluster,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    score_sums_by_cluster,
    vote_pairs_by_cluster,
)
from judgebench.stats.arrays import Clusters
from judgebench.stats.classification import cohen_kappa, confusion_by_cluster
from judgebench.stats.intervals import LEVEL, clustered_estimate

K = 4
SEVERITIES = [0.0, 1.0, 2.5, 7.0]
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
    counts = np.stack([(pairable == label).sum(axis=1) for label in range(K)], axis=1)
    used = counts.any(axis=0)
    return krippendorff.alpha(
        value_counts=counts[:, used], value_domain=np.arange(K)[used], level_of_measurement=level
    )


@settings(max_examples=300, deadline=None)
@given(ragged, st.sampled_from(["nominal", "ordinal"]))
def test_alpha_equals_the_krippendorff_package(ratings, level) -> None:
    o = in_one_cluster(coincidences_by_cluster, ratings)
    found = krippendorff_alpha(level).formula(o)
    assert found == pytest.approx(oracle_alpha(ratings, level), abs=1e-9, nan_ok=True)


@settings(deadline=None)
@given(arrays(np.int64, (4, 6, 3), elements=st.integers(-1, K - 1)))
def test_alpha_is_vectorised_and_undefined_agrees_with_nan(samples) -> None:
    o = np.stack([in_one_cluster(coincidences_by_cluster, ratings) for ratings in samples])
    for level in ("nominal", "ordinal"):
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
    # Published: nominal .743, ordinal .815.
    rows = ["1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3"]
    rows += [". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 ."]
    ratings = np.array([[-1 if x == "." else int(x) - 1 for x in row.split()] for row in rows]).T
    o = coincidences_by_cluster(ratings, together(12), 5)[0]
    for level, published in (("nominal", 0.743), ("ordinal", 0.815)):
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
    found = clustered_estimate(counts, krippendorff_alpha("nominal"), LEVEL, n=len(ratings))
    assert found.value is None
    assert re.search(reason, found.reason)


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
    two = at_least_two_agree(ratings, Clusters(clusters, 3))
    everyone = all_agree(ratings, Clusters(clusters, 3))
    for found in (two, everyone):
        assert (found.n, found.n_missing) == (len(usable), len(units) - len(usable))
    if not usable:
        assert two.value is everyone.value is None
        assert "labelled by two annotators" in two.reason
        return
    assert two.value == pytest.approx(np.mean([len(set(u)) < len(u) for u in usable]))
    assert everyone.value == pytest.approx(np.mean([len(set(u)) == 1 for u in usable]))


WEIGHTS = ("identity", "quadratic")
# Figures of other people's packages, with their versions and inputs.
FROZEN = json.loads((Path(__file__).parent / "data/chance_corrected.json").read_text("utf-8"))

ragged_corrected = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, K - 1))
)


def counts_of(ratings, k: int = K) -> np.ndarray:
    ratings = np.asarray(ratings)
    return agreement_counts_by_cluster(ratings, together(len(ratings)), k)[0]


def by_name(name: str, weights="identity", severities=None):
    of = {"ac": gwet_ac, "fleiss": fleiss_kappa}[name]
    return of() if weights == "identity" else of(severities)


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
@given(ragged_corrected, st.randoms(use_true_random=False))
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
@given(ragged_corrected, st.sampled_from(WEIGHTS), st.randoms(use_true_random=False))
def test_who_gave_which_label_of_an_item_is_no_matter(ratings, weights, random) -> None:
    mixed = np.array([random.sample(list(unit), len(unit)) for unit in ratings])
    np.testing.assert_allclose(counts_of(mixed), counts_of(ratings))
    scaled = [10 * s + 3 for s in SEVERITIES]
    for name in ("ac", "fleiss"):
        found = by_name(name, weights, scaled).formula(counts_of(ratings))
        expected = by_name(name, weights, SEVERITIES).formula(counts_of(ratings))
        assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


# --- undefined is never 0 or 1 -------------------------------------------------------------------


def estimated(name: str, ratings, weights="identity", severities=None):
    ratings = np.array(ratings)
    units = len(ratings)
    counts = agreement_counts_by_cluster(ratings, apart(units), 3)
    return clustered_estimate(counts, by_name(name, weights, severities), LEVEL, n=units)


@pytest.mark.parametrize("name", ["ac", "fleiss"])
@pytest.mark.parametrize(
    ("ratings", "weights", "severities", "reason"),
    [
        ([[0, -1], [-1, 1]], "identity", None, "no item was labelled by two annotators"),
        ([[1, 1], [1, 1]], "identity", None, "only one label was ever used"),
        ([[1, 1], [1, 1], [0, -1]], "quadratic", [0, 1, 2], "only one label was ever used"),
        ([[0, 1], [1, 1]], "quadratic", [2, 2, 2], "the same severity"),
    ],
)
def test_undefined_says_why(name, ratings, weights, severities, reason: str) -> None:
    found = estimated(name, ratings, weights, severities)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert re.search(reason, found.reason)


@pytest.mark.parametrize("name", ["ac", "fleiss"])
def test_without_a_pair_of_judge_and_truth_it_says_so(name: str) -> None:
    found = clustered_estimate(np.zeros((2, 3, 3)), by_name(name), LEVEL, n=0)
    assert found.value is None
    assert found.reason == "no item has both a reference label and a label of the judge"


def test_kappa_has_no_interval_where_one_item_defines_it() -> None:
    kappa = estimated("fleiss", [[0, 0]] * 30 + [[0, 1]])
    assert kappa.value is not None
    assert kappa.low is None
    assert "undefined without one of the clusters" in kappa.reason


K_ICC = 11
ALL = {"icc2": ICC_2_1}
# Figures of somebody else's package, with its version and input.
FROZEN_ICC = json.loads((Path(__file__).parent / "data/icc.json").read_text("utf-8"))

tables = st.tuples(st.integers(2, 8), st.integers(2, 4)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 3))
)


def scores(ratings: np.ndarray, severities: object = None) -> np.ndarray:
    values = np.array(range(K_ICC) if severities is None else severities, dtype=np.float64)
    return np.where(ratings < 0, np.nan, values[ratings])


def sums_of(ratings, severities=None) -> np.ndarray:
    ratings = np.asarray(ratings)
    one = np.zeros(len(ratings), dtype=np.int64)
    return score_sums_by_cluster(scores(ratings, severities), Clusters(one, 1))[0]


def test_published_figures_of_shrout_and_fleiss() -> None:
    # Shrout and Fleiss (1979), Table 2: six targets, four judges. Their estimate: .29.
    ratings = FROZEN_ICC["cases"][0]["severities"]
    assert round(float(ICC_2_1.formula(sums_of(ratings))), 2) == 0.29


@pytest.mark.parametrize("case", FROZEN_ICC["cases"], ids=lambda case: case["name"])
@pytest.mark.parametrize("name", ALL)
def test_equals_pingouin(case, name: str) -> None:
    found = ALL[name].formula(sums_of(case["severities"]))
    assert found == pytest.approx(case[name], abs=1e-12)


@settings(deadline=None)
@given(tables)
def test_equals_the_mean_squares_of_an_analysis_of_variance(x) -> None:
    n, k = x.shape
    grand, row, column = x.mean(), x.mean(axis=1), x.mean(axis=0)
    BMS = k * ((row - grand) ** 2).sum() / (n - 1)
    JMS = n * ((column - grand) ** 2).sum() / (k - 1)
    EMS = ((x - row[:, None] - column + grand) ** 2).sum() / ((n - 1) * (k - 1))
    wholes = {
        "icc2": (BMS - EMS, BMS + (k - 1) * EMS + k * (JMS - EMS) / n),
    }
    for name, (part, whole) in wholes.items():
        found = ALL[name].formula(sums_of(x))
        expected = part / whole if whole > 1e-9 else np.nan
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)
        assert bool(ALL[name].undefined(sums_of(x))) == np.isnan(found)


@settings(deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_sums_add_up_over_clusters_and_formulas_are_vectorised(x, random) -> None:
    clusters = np.array([random.randrange(3) for _ in x])
    found = score_sums_by_cluster(scores(x), Clusters(clusters, 3))
    assert found.shape == (3, 3 + x.shape[1])
    assert np.array_equal(found.sum(axis=0), sums_of(x))
    for icc in ALL.values():
        np.testing.assert_allclose(icc.formula(found), [icc.formula(each) for each in found])
        assert [bool(icc.undefined(each)) for each in found] == list(np.isnan(icc.formula(found)))


@settings(deadline=None)
@given(tables)
def test_a_shift_or_another_unit_of_the_severities_changes_nothing(x) -> None:
    other = [7 + 3 * label for label in range(K_ICC)]
    for icc in ALL.values():
        found, expected = icc.formula(sums_of(x, other)), icc.formula(sums_of(x))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[0, -1], [-1, 1]], "no item was labelled by every annotator"),
        ([[0, 1], [-1, 1]], "only one item was labelled by every annotator"),
        ([[2, 2], [2, 2]], "all labels have the same severity"),
        ([[0], [1]], "one annotator only"),
    ],
)
@pytest.mark.parametrize("icc", ALL.values(), ids=ALL)
def test_undefined_says_why_icc(ratings, reason: str, icc) -> None:
    assert np.isnan(icc.formula(sums_of(ratings)))
    assert re.search(reason, icc.undefined(sums_of(ratings)))


@pytest.fixture(scope="module")
def crowd_ratings(shared_data: Path) -> np.ndarray:
    """The 861 queries of Abercrombie and Rieser (2022), each with 3 to 12 crowd labels."""
    labels = ["Not medical", "Non-serious", "Serious", "Critical"]
    path = shared_data / "medical-safety-crowd" / "medicheck-crowd.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        crowd = [ast.literal_eval(row["query-cws"]) for row in csv.DictReader(file)]
    ratings = np.full((len(crowd), max(map(len, crowd))), -1)
    for i, said in enumerate(crowd):
        ratings[i, : len(said)] = [labels.index(label) for label in said]
    assert len(ratings) == 861
    return ratings


@pytest.mark.parametrize(
    ("statistic", "value", "low", "high"),
    [
        (gwet_ac(), 0.482988306021946, 0.454227506392365, 0.511749105651527),
        (gwet_ac(range(4)), 0.846829240823699, 0.830945584070126, 0.862712897577271),
        (fleiss_kappa(), 0.330297697082161, 0.292777454711581, 0.367817939452742),
        (fleiss_kappa(range(4)), 0.488691617840367, 0.444902184218888, 0.532481051461845),
    ],
)
def test_the_crowds_agreement_and_its_interval_are_those_of_irrcac(
    crowd_ratings, statistic, value, low, high
) -> None:
    """Figures of irrCAC 0.4.4, whose interval is Gwet's, from a linearised variance."""
    counts = agreement_counts_by_cluster(crowd_ratings, apart(861), 4)
    found = clustered_estimate(counts, statistic, n=861)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.003)
