"""Means over items and trainings: by hand, beside other tests, and how often they are wrong."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from cluster_case import apart

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.paired import (
    p_of_differences,
    p_of_mean,
    resampled_trainings,
    with_trainings,
)


def test_with_items_alone_it_is_the_paired_t_test() -> None:
    x = np.random.default_rng(0).normal([0.2, 0, 0.4], size=(1, 50, 3))
    found = p_of_differences(x, apart(50))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        p = scipy.stats.ttest_rel(x[0, :, i], x[0, :, j]).pvalue
        assert found[i, j] == found[j, i] == pytest.approx(p, rel=1e-6)
    assert np.diag(found).tolist() == [1, 1, 1]
    p = scipy.stats.ttest_1samp(x[0, :, 0], 0).pvalue
    assert p_of_mean(np.append(x[0, :, 0], np.nan), apart(51)) == pytest.approx(p, rel=1e-6)


def test_with_trainings_alone_it_is_the_t_test_over_trainings() -> None:
    means = np.random.default_rng(1).normal(size=(6, 2)) / 10 + [0.7, 0.6]
    x = np.repeat(means[:, None], 500, axis=1)  # every item alike: nothing varies over items
    expected = scipy.stats.ttest_rel(*means.T).pvalue
    assert p_of_differences(x, apart(500))[0, 1] == pytest.approx(expected, rel=1e-6)


def test_copies_of_an_item_in_its_cluster_add_no_certainty() -> None:
    x = np.random.default_rng(2).normal(size=(3, 40, 3))
    thrice = np.repeat(x, 3, axis=1)
    found = p_of_differences(thrice, Clusters(np.repeat(np.arange(40), 3), 40), (0, 1, 2))
    assert found == pytest.approx(p_of_differences(x, apart(40), (0, 1, 2)))


def test_trainings_of_alike_systems_are_pooled_and_never_below_those_of_the_pair() -> None:
    rng = np.random.default_rng(3)
    means = 0.5 + rng.normal(size=(3, 5)) * [0.01, 0.01, 0.01, 0.01, 0.3]
    means[:, 0] += 0.2
    x = np.repeat(means[:, None], 200, axis=1)
    alone, pooled = (p_of_differences(x, apart(200), alike) for alike in ((), (0, 1, 2, 3)))
    assert pooled[0, 1] < alone[0, 1]  # six degrees of freedom instead of two
    assert pooled[0, 4] <= 1
    loose = p_of_differences(x, apart(200), (0, 1, 2, 3, 4))
    assert loose[0, 1] > pooled[0, 1]


@pytest.mark.parametrize("n", [3, 8])
def test_few_clusters_that_all_agree_prove_no_more_than_a_sign_test(n: int) -> None:
    x = np.zeros((2, n, 2))
    x[..., 0] = 1
    p = scipy.stats.binomtest(n, n).pvalue
    assert p_of_differences(x, apart(n))[0, 1] == pytest.approx(p)


def test_no_difference_proves_nothing() -> None:
    assert p_of_mean(np.zeros(9), apart(9)) == 1
    assert p_of_differences(np.ones((3, 7, 2)), apart(7))[0, 1] == 1


def test_an_interval_is_widened_on_both_sides() -> None:
    items = Estimate(0.5, 0.4, 0.55, "items", 9)
    means = np.array([0.4, 0.5, 0.6])
    half = scipy.stats.t.ppf(0.975, 2) * scipy.stats.sem(means)
    found = with_trainings(items, means)
    assert (found.low, found.high) == pytest.approx(
        (0.5 - np.hypot(0.1, half), 0.5 + np.hypot(0.05, half))
    )
    wild = with_trainings(items, np.array([0.0, 1.0]))
    assert (wild.low, wild.high) == (0, 1)
    for same in (items, Estimate(None, reason="none")):
        assert with_trainings(same, means[:1]) is same


def test_resampled_trainings_vary_as_their_mean_does() -> None:
    means = np.random.default_rng(4).normal(size=(3, 2))
    away = resampled_trainings(means, 100_000, 0)
    assert away.mean(axis=0) == pytest.approx([0, 0], abs=0.01)
    assert away.std(axis=0) == pytest.approx(scipy.stats.sem(means), rel=0.02)
    assert not resampled_trainings(means[:1], 10, 0).any()


def world(rng: np.random.Generator, n: int, spread: float, lead: float = 0.0) -> FloatArray:
    """Decisions of three trainings with four arguments, the first of which leads; trainings differ
    by `spread` in how much each argument helps."""
    good = 0.4 + np.array([lead, 0, 0, 0]) + rng.normal(0, spread, (3, 1, 4))
    item = rng.normal(size=(1, n, 1)) + rng.normal(0, 0.7, (1, n, 4))
    return (good + item + rng.normal(0, 0.5, (3, n, 4)) > 0).astype(float)


def first_of_all(x: FloatArray) -> int | None:
    """The argument that is claimed to be above every other one."""
    best = int(x.mean(axis=(0, 1)).argmax())
    p = p_of_differences(x, apart(x.shape[1]), (0, 1, 2, 3))
    return best if np.delete(p[best], best).max() < 0.05 else None


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_equal_arguments_are_hardly_ever_told_apart_and_a_better_one_is(spread: float) -> None:
    rng = np.random.default_rng(5)
    assert sum(first_of_all(world(rng, 147, spread)) is not None for _ in range(150)) <= 6
    led = [first_of_all(world(rng, 147, 0.0, lead=0.8)) for _ in range(40)]
    assert led.count(0) >= 36
