import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.interrater import ICC_1, ICC_2_1, ICC_2_K, severity_sums_by_cluster
from judgebench.stats.resample import Resampling, cluster_bootstrap

K = 11
ALL = {"icc1": ICC_1, "icc2": ICC_2_1, "icc2k": ICC_2_K}
FEW = Resampling(resamples=200)
# Figures of somebody else's package, with its version and input.
FROZEN = json.loads((Path(__file__).parent / "data/icc.json").read_text("utf-8"))

tables = st.tuples(st.integers(2, 8), st.integers(2, 4)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 3))
)


def sums_of(ratings, severities=None) -> np.ndarray:
    ratings = np.asarray(ratings)
    one = np.zeros(len(ratings), dtype=np.int64)
    return severity_sums_by_cluster(ratings, Clusters(one, 1), K, severities)[0]


def test_published_figures_of_shrout_and_fleiss() -> None:
    # Shrout and Fleiss (1979), Table 2: six targets, four judges. Their estimates: .17, .29, .62.
    ratings = FROZEN["cases"][0]["severities"]
    found = [round(float(icc.formula(sums_of(ratings))), 2) for icc in ALL.values()]
    assert found == [0.17, 0.29, 0.62]


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda case: case["name"])
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
    WMS = ((x - row[:, None]) ** 2).sum() / (n * (k - 1))
    JMS = n * ((column - grand) ** 2).sum() / (k - 1)
    EMS = ((x - row[:, None] - column + grand) ** 2).sum() / ((n - 1) * (k - 1))
    wholes = {
        "icc1": (BMS - WMS, BMS + (k - 1) * WMS),
        "icc2": (BMS - EMS, BMS + (k - 1) * EMS + k * (JMS - EMS) / n),
        "icc2k": (BMS - EMS, BMS + (JMS - EMS) / n),
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
    found = severity_sums_by_cluster(x, Clusters(clusters, 3), K)
    assert found.shape == (3, 3 + x.shape[1])
    assert np.array_equal(found.sum(axis=0), sums_of(x))
    for icc in ALL.values():
        np.testing.assert_allclose(icc.formula(found), [icc.formula(each) for each in found])
        assert [bool(icc.undefined(each)) for each in found] == list(np.isnan(icc.formula(found)))


@settings(deadline=None)
@given(tables)
def test_a_shift_or_another_unit_of_the_severities_changes_nothing(x) -> None:
    other = [7 + 3 * label for label in range(K)]
    for icc in ALL.values():
        found, expected = icc.formula(sums_of(x, other)), icc.formula(sums_of(x))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def test_severities_count_and_not_positions() -> None:
    x = np.array([[0, 0], [1, 2], [2, 2], [0, 1]])
    positions = ICC_2_1.formula(sums_of(x))
    assert ICC_2_1.formula(sums_of(np.array([[0, 0], [1, 9], [9, 9], [0, 1]]))) == pytest.approx(
        ICC_2_1.formula(sums_of(x, [0, 1, 9, *range(10, 18)]))
    )
    assert ICC_2_1.formula(sums_of(x, [0, 1, 9, *range(10, 18)])) != pytest.approx(positions)


def test_an_annotator_who_is_always_more_severe_lowers_absolute_agreement() -> None:
    x = np.arange(6)[:, None] + np.array([0, 0])
    assert [icc.formula(sums_of(x)) for icc in ALL.values()] == pytest.approx([1, 1, 1])
    shifted = sums_of(x + np.array([0, 3]))
    assert 0 < ICC_1.formula(shifted) < ICC_2_1.formula(shifted) < ICC_2_K.formula(shifted) < 1


def test_items_that_somebody_did_not_rate_are_left_out() -> None:
    x = np.array([[0, 1], [-1, 3], [2, 2], [3, -1], [1, 0]])
    clusters = np.arange(5)
    found = severity_sums_by_cluster(x, Clusters(clusters, 5), K)
    assert found[:, 0].tolist() == [1, 0, 1, 0, 1]
    assert np.array_equal(found.sum(axis=0), sums_of(x[[0, 2, 4]]))
    estimate = cluster_bootstrap(found, ICC_1, FEW, n=3, n_missing=2)
    assert (estimate.n, estimate.n_missing) == (3, 2)
    assert "over 3 clusters" in estimate.method


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
def test_undefined_says_why(ratings, reason: str, icc) -> None:
    assert np.isnan(icc.formula(sums_of(ratings)))
    assert re.search(reason, icc.undefined(sums_of(ratings)))


def test_a_variance_estimated_below_0_leaves_the_mean_of_annotators_undefined() -> None:
    crossed = sums_of([[0, 2], [2, 0], [0, 2], [2, 0]])  # every item has the mean 1
    assert ICC_1.formula(crossed) == -1
    assert np.isnan(ICC_2_K.formula(crossed))
    assert "estimated as 0 or less" in ICC_2_K.undefined(crossed)


def test_bad_codes_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must lie in"):
        sums_of([[0, K]])
    with pytest.raises(ValueError, match="same length"):
        severity_sums_by_cluster(np.array([[0, 1]]), Clusters(np.array([0, 0]), 1), K)
    with pytest.raises(ValueError, match="clusters must lie in"):
        severity_sums_by_cluster(np.array([[0, 1]]), Clusters(np.array([1]), 1), K)
