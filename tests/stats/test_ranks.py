import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.ranks import (
    firmness,
    friedman,
    groups,
    nemenyi_critical_difference,
)

FROZEN = json.loads((Path(__file__).parent / "data" / "nemenyi.json").read_text())
tables = st.tuples(st.integers(2, 9), st.integers(3, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 4).map(float))
)

# Demsar (2006): C4.5 plain, with m, with cf, with both, on 14 data sets.
DEMSAR = np.array([3.143, 2.000, 2.893, 1.964])


@given(tables)
def test_friedman_equals_scipy_ties_and_all(scores) -> None:
    found = friedman(scores)
    ranks = scipy.stats.rankdata(-scores, axis=1)
    np.testing.assert_allclose(found.average_ranks, ranks.mean(axis=0))
    assert found.blocks == len(scores)
    if (scores == scores[:, :1]).all():
        assert found.p is found.chi_square is None
        return
    expected = scipy.stats.friedmanchisquare(*scores.T)
    assert found.chi_square == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)


@given(tables)
def test_worse_for_all_is_better_for_none(scores) -> None:
    up, down = friedman(scores), friedman(-scores)
    np.testing.assert_allclose(up.average_ranks + down.average_ranks, scores.shape[1] + 1)
    assert up.chi_square == pytest.approx(down.chi_square)


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda c: str(np.shape(c["scores"])))
def test_nemenyi_equals_scikit_posthocs(case) -> None:
    scores = np.array(case["scores"])
    ranks, p = scipy.stats.rankdata(-scores, axis=1).mean(axis=0), np.array(case["nemenyi"])
    for i, j in np.argwhere((p > 1e-6) & (p < 0.99)):
        found = nemenyi_critical_difference(len(ranks), len(scores), level=1 - p[i, j])
        assert found == pytest.approx(abs(ranks[i] - ranks[j]), rel=1e-4)


def test_the_published_comparison_of_four_classifiers() -> None:
    assert nemenyi_critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    wider = nemenyi_critical_difference(4, 14, level=0.90)
    assert wider == pytest.approx(1.12, abs=0.005)
    assert groups(DEMSAR, wider) == ["b", "a", "ab", "a"]
    assert groups(DEMSAR, nemenyi_critical_difference(4, 14)) == ["a"] * 4


@given(tables)
def test_two_judges_share_a_group_exactly_where_they_lie_closer_than_the_difference(scores) -> None:
    ranks = scipy.stats.rankdata(-scores, axis=1).mean(axis=0)
    limit = 1.3  # no difference of mean ranks of up to 9 blocks is 1.3 itself
    apart = np.abs(ranks[:, None] - ranks[None, :])
    assume((np.abs(apart - limit) > 1e-9).all())
    letters = [set(group) for group in groups(ranks, limit)]
    shared = np.array([[bool(a & b) for b in letters] for a in letters])
    assert np.array_equal(shared, apart < limit)
    assert "a" in letters[int(np.argmin(ranks))]


def test_more_groups_than_letters_are_numbered() -> None:
    found = groups(np.arange(30.0), 0.5)
    assert (found[0], found[25], found[26]) == ("a", "z", "[27]")
    assert len(set(found)) == 30


@pytest.mark.parametrize("shape", [(5, 2), (1, 4)])
def test_too_few_judges_or_blocks_are_refused(shape) -> None:
    with pytest.raises(ValueError, match="3 judges and 2 blocks"):
        friedman(np.zeros(shape))


def test_a_missing_score_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        friedman(np.array([[1.0, 2, 3], [1, np.nan, 3]]))


resamples = st.tuples(st.integers(1, 40), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 3).map(float))
)


@given(resamples)
def test_shares_above_equal_a_count_pair_by_pair(scores) -> None:
    above = firmness(scores).above
    for i, j in np.ndindex(above.shape):
        won = np.mean(scores[:, i] > scores[:, j]) + np.mean(scores[:, i] == scores[:, j]) / 2
        assert above[i, j] == pytest.approx(won)


@given(resamples)
def test_the_limits_are_places_that_hold_at_least_the_level(scores) -> None:
    found = firmness(scores, 0.8)
    place = scipy.stats.rankdata(-scores, axis=1)
    for j in range(scores.shape[1]):
        assert {found.low[j], found.high[j]} <= set(place[:, j])
        inside = (place[:, j] >= found.low[j]) & (place[:, j] <= found.high[j])
        assert inside.mean() >= 0.8 - 1e-9


def test_nineteen_of_twenty_resamples() -> None:
    scores = np.tile([2.0, 1.0], (20, 1))
    scores[0] = [1, 2]
    found = firmness(scores, 0.8)
    assert found.above[0, 1] == pytest.approx(0.95)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 2], [1, 2])
    assert firmness(scores, 0.95).high.tolist() == [2, 2]
