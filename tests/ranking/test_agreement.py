import dataclasses

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rank_scores import FEW, scored

from judgebench.ranking.rankers import FEW_COMMON, LEVEL_AVERAGES, LEVEL_RANKS, NO_COMMON, agree

NAMES = ("gold", "gpt", "llama", "bio")
pairs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*[arrays(np.float64, (n, 4), elements=st.integers(0, 3).map(float))] * 2)
)


def agreed(*about):
    """The estimates by statistic."""
    return {row.statistic: row.estimate for row in agree(*about)}


def agreement(x, y, names=NAMES, **more):
    return agreed(scored(x, NAMES, **more), scored(y, NAMES, ranker="s"), names, FEW)


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


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_a_ranker_agrees_with_itself_and_is_the_opposite_of_its_reverse(pair) -> None:
    x, _ = pair
    assume((np.sort(x, axis=1)[:, 1:] > np.sort(x, axis=1)[:, :-1]).all(axis=1).any())
    same, turned = agreement(x, x), agreement(x, -x)
    assert (same["tau_b"].value, same["spearman"].value) == (pytest.approx(1), pytest.approx(1))
    assert (turned["tau_b"].value, turned["spearman"].value) == (
        pytest.approx(-1),
        pytest.approx(-1),
    )
    if same["tau_b_of_averages"].value is not None:
        assert same["tau_b_of_averages"].value == pytest.approx(1)
        assert turned["tau_b_of_averages"].value == pytest.approx(-1)


@settings(deadline=None, max_examples=40)
@given(pairs)
def test_it_does_not_matter_who_is_named_first(pair) -> None:
    x, y = pair
    for one, other in zip(estimates(agreement(x, y)), estimates(agreement(y, x)), strict=True):
        assert (one.value is None) == (other.value is None)
        if one.value is not None:
            assert other.value == pytest.approx(one.value)


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
    found = agreed(a, b, ("gpt", "gold", "x"), FEW)
    assert agree(a, b, ("gpt", "gold", "x"), FEW)[0]["over"] == "gpt, gold"
    # p alike, s the other way round; q has a gap, and z is nothing to a.
    assert (found["tau_b"].value, found["tau_b"].n, found["tau_b"].n_missing) == (0, 2, 1)
    only_p = dataclasses.replace(a, items=("p", "k", "l"))
    assert agreed(only_p, b, ("gpt", "gold"), FEW)["tau_b"].value == 1


def test_intervals_resample_whole_clusters() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 40, 4))
    y += x
    once = agreement(x, y)
    copied = agreed(
        scored(np.repeat(x, 3, axis=0), NAMES, clusters=np.repeat(np.arange(40), 3)),
        scored(np.repeat(y, 3, axis=0), NAMES), NAMES, FEW,
    )  # fmt: skip
    for one, three in zip(estimates(once), estimates(copied), strict=True):
        assert three.value == pytest.approx(one.value)
        assert three.low == pytest.approx(one.low)
        assert three.n == 3 * one.n
    assert once["tau_b"].low < once["tau_b"].value < once["tau_b"].high


def test_a_planted_agreement_lies_in_its_interval() -> None:
    """With independent normal noise rho of x and x + e is known from a long run."""
    rng = np.random.default_rng(2)

    def world(n: int):
        x = rng.normal(size=(n, 4))
        return x, x + rng.normal(size=(n, 4))

    long = agreement(*world(40_000))["tau_b"].value
    hits = sum(
        (found := agreement(*world(60))["tau_b"]).low <= long <= found.high for _ in range(60)
    )
    assert hits >= 51  # 57 expected; fewer than 51 of 60 happens once in a thousand at 95 %


@pytest.mark.parametrize(
    ("names", "items", "reason"),
    [(("gold", "nobody"), ("i0", "i1"), FEW_COMMON), (NAMES, ("k", "l"), NO_COMMON)],
)
def test_nothing_in_common_says_why(names, items, reason: str) -> None:
    x = np.arange(8.0).reshape(2, 4)
    found = agreed(scored(x, NAMES), scored(x, NAMES, items=items), names, FEW)
    for estimate in estimates(found):
        assert (estimate.value, estimate.n, estimate.reason) == (None, 0, reason)


def test_the_agreement_names_both_rankers() -> None:
    x = np.arange(8.0).reshape(2, 4)
    for row in agree(scored(x, NAMES), scored(x, NAMES, ranker="s"), NAMES, FEW):
        assert (row["task"], row["ranker"], row["other"]) == ("t", "r", "s")
