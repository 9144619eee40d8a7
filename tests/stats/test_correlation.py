from itertools import combinations

import numpy as np
import pytest
from cluster_case import together
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgebench.stats.arrays import Clusters
from judgebench.stats.means import (
    ALL_CONSTANT,
    CORRELATION_DIFFERENCE,
    MEAN_CORRELATION,
    NO_COMMON_PAIR,
    NO_WHOLE_ITEM,
    moments_by_cluster,
)

scales = st.tuples(st.integers(1, 15), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 3))
)


def moments(x: np.ndarray) -> np.ndarray:
    return moments_by_cluster(x, together(len(x)))[0]


def by_numpy(x: np.ndarray) -> dict[tuple[int, int], float]:
    varied = [c for c in range(x.shape[1]) if len(set(x[:, c])) > 1]
    return {(a, b): np.corrcoef(x[:, a], x[:, b])[0, 1] for a, b in combinations(varied, 2)}


@given(scales)
def test_mean_correlation_equals_numpy(x) -> None:
    expected = list(by_numpy(x).values())
    found = MEAN_CORRELATION.formula(moments(x))
    if expected:
        assert found == pytest.approx(np.mean(expected), abs=1e-9)
        assert MEAN_CORRELATION.undefined(moments(x)) == ""
    else:
        assert np.isnan(found)
        assert MEAN_CORRELATION.undefined(moments(x)) == ALL_CONSTANT


@given(scales, st.randoms(use_true_random=False))
def test_the_difference_is_over_pairs_that_vary_on_both_sides(x, random) -> None:
    y = np.array([random.choices(range(3), k=x.shape[1]) for _ in x], dtype=np.int64)
    one, two = by_numpy(x), by_numpy(y)
    common = [one[pair] - two[pair] for pair in one.keys() & two.keys()]
    both = np.stack([moments(x), moments(y)])
    if common:
        assert CORRELATION_DIFFERENCE.formula(both) == pytest.approx(np.mean(common), abs=1e-9)
        assert CORRELATION_DIFFERENCE.undefined(both) == ""
    else:
        assert np.isnan(CORRELATION_DIFFERENCE.formula(both))
        assert CORRELATION_DIFFERENCE.undefined(both) == NO_COMMON_PAIR


@given(arrays(np.int64, (12, 3), elements=st.integers(0, 2)))
def test_moments_add_up_over_clusters_and_formulas_are_vectorised(x) -> None:
    clusters = np.arange(12) % 4
    found = moments_by_cluster(x, Clusters(clusters, 5))
    assert found.shape == (5, 4, 4)
    assert np.array_equal(found.sum(axis=0), moments(x))
    together = MEAN_CORRELATION.formula(found)
    np.testing.assert_allclose(together, [MEAN_CORRELATION.formula(c) for c in found])


def test_scales_that_are_one_correlate_fully_and_opposites_not_at_all() -> None:
    x = np.array([0, 1, 2, 2, 0])
    assert MEAN_CORRELATION.formula(moments(np.stack([x, x], axis=1))) == pytest.approx(1)
    assert MEAN_CORRELATION.formula(moments(np.stack([x, 2 - x], axis=1))) == pytest.approx(-1)
    both = np.stack([moments(np.stack(s, axis=1)) for s in ([x, x], [x, 2 - x])])
    assert CORRELATION_DIFFERENCE.formula(both) == pytest.approx(2)


def test_without_items_it_is_undefined_and_says_why() -> None:
    nothing = np.zeros((3, 3))
    assert MEAN_CORRELATION.undefined(nothing) == NO_WHOLE_ITEM
    assert CORRELATION_DIFFERENCE.undefined(np.stack([nothing, nothing])) == NO_WHOLE_ITEM


def test_lengths_and_clusters_must_fit() -> None:
    with pytest.raises(ValueError, match="same length"):
        moments_by_cluster(np.zeros((2, 2), dtype=int), Clusters(np.array([0]), 1))
    with pytest.raises(ValueError, match="clusters must lie in"):
        moments_by_cluster(np.zeros((1, 2), dtype=int), Clusters(np.array([1]), 1))
