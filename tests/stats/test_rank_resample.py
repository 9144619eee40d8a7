import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.ranks import firmness

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
