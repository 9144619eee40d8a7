import dataclasses

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rank_scores import scored

from judgebench.ranking.rankers import FEW_COMMON, LEVEL_AVERAGES, LEVEL_RANKS, NO_COMMON, agree

NAMES = ("gold", "gpt", "llama", "bio")
pairs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, (n, 4), elements=st.integers(0, 3).map(float))] * 2)
)


def agreed(*about):
    """The estimates by statistic."""
    return {row.statistic: row.estimate for row in agree(*about)}


def agreement(x, y, names=NAMES, **more):
    return agreed(scored(x, NAMES, **more), scored(y, NAMES, ranker="s"), names)


def estimates(found):
    return list(found.values())


@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
@settings(deadline=None, max_examples=40)
@given(pairs)
def test_equals_the_mean_of_scipys_correlations(pair) -> None:
    x, y = pair
    found = agreement(x, y)
    rows = [(a, b) for a, b in zip(x, y, strict=True) if np.ptp(a) and np.ptp(b)]
    assert (found["tau_b"].n, found["tau_b"].n_missing) == (len(rows), len(x) - len(rows))
    if not rows:
        assert found["tau_b"].value is found["spearman"].value is None
        assert found["tau_b"].reason == LEVEL_RANKS
    else:
        tau = np.mean([scipy.stats.kendalltau(a, b).statistic for a, b in rows])
        rho = np.mean([scipy.stats.spearmanr(a, b).statistic for a, b in rows])
        assert found["tau_b"].value == pytest.approx(tau)
        assert found["spearman"].value == pytest.approx(rho)
    averages = [scipy.stats.rankdata(t, axis=1).mean(axis=0).round(9) for t in pair]
    tau = scipy.stats.kendalltau(*averages).statistic
    if np.isnan(tau):
        assert found["tau_b_of_averages"].reason == LEVEL_AVERAGES
    else:
        assert found["tau_b_of_averages"].value == pytest.approx(tau)


def test_the_best_meet_by_chance_where_ties_are_broken_at_random() -> None:
    x = np.array([[3.0, 2, 1, 0], [3, 3, 0, 0], [1, 1, 1, 1]])
    y = np.array([[3.0, 2, 1, 0], [0, 3, 3, 0], [0, 0, 0, 1]])
    found = agreement(x, y)["top_1"]
    assert found.value == pytest.approx((1 + 1 / 4 + 1 / 4) / 3)
    assert (found.n, found.n_missing) == (3, 0)


def test_only_common_instances_and_systems_count() -> None:
    a = scored([[1.0, 2, 3], [3, 2, 1], [1, 2, 3]], ("gold", "gpt", "noise"), items=("p", "q", "s"))
    b = scored(
        [[9.0, 2, 1], [9, 1, 2], [9, 1, 2], [9, 1, np.nan]],
        ("x", "gold", "gpt"),
        items=("s", "z", "p", "q"),
    )
    found = agreed(a, b, ("gpt", "gold", "x"))
    assert agree(a, b, ("gpt", "gold", "x"))[0]["over"] == "gpt, gold"
    # p alike, s the other way round; q has a gap, and z is nothing to a.
    assert (found["tau_b"].value, found["tau_b"].n, found["tau_b"].n_missing) == (0, 2, 1)
    only_p = dataclasses.replace(a, items=("p", "k", "l"))
    assert agreed(only_p, b, ("gpt", "gold"))["tau_b"].value == 1


def test_whole_clusters_make_the_intervals() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 40, 4))
    y += x
    once = agreement(x, y)
    copied = agreed(
        scored(np.repeat(x, 3, axis=0), NAMES, clusters=np.repeat(np.arange(40), 3)),
        scored(np.repeat(y, 3, axis=0), NAMES), NAMES,
    )  # fmt: skip
    for one, three in zip(estimates(once), estimates(copied), strict=True):
        assert three.value == pytest.approx(one.value)
        assert (three.low is None) == (one.low is None)
        assert one.low is None or three.low == pytest.approx(one.low, abs=0.01)
        assert three.n == 3 * one.n
    assert once["tau_b"].low < once["tau_b"].value < once["tau_b"].high


def test_a_planted_agreement_lies_in_its_interval() -> None:
    """With independent normal noise rho of x and x + e is known from a long run."""
    rng = np.random.default_rng(2)

    def world(n: int):
        x = rng.normal(size=(n, 4))
        return x, x + rng.normal(size=(n, 4))

    long = agreement(*world(40_000))["tau_b"].value
    intervals = [agreement(*world(60))["tau_b"] for _ in range(10)]
    hits = sum(found.low <= long <= found.high for found in intervals)
    assert hits >= 8  # fewer than 8 of 10 happens once in ninety at 95 %


@pytest.mark.parametrize(
    ("names", "items", "reason"),
    [(("gold", "nobody"), ("i0", "i1"), FEW_COMMON), (NAMES, ("k", "l"), NO_COMMON)],
)
def test_nothing_in_common_says_why(names, items, reason: str) -> None:
    x = np.arange(8.0).reshape(2, 4)
    found = agreed(scored(x, NAMES), scored(x, NAMES, items=items), names)
    for estimate in estimates(found):
        assert (estimate.value, estimate.n, estimate.reason) == (None, 0, reason)
