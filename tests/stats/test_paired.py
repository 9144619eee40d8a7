import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stats.arrays import Clusters
from judgebench.stats.confusion import (
    ACCURACY,
    BALANCED_ACCURACY,
    confusion_by_cluster,
    diagonal_share,
    mean_severity_error,
    overestimated,
    underestimated,
)
from judgebench.stats.paired import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    NET_CHANGE,
    NO_PAIR,
    SHIFT,
    TURNED_YES,
    discordance_by_cluster,
    holm,
    mcnemar_clustered,
    moves_by_cluster,
    sign_test,
    swap_test,
)
from judgebench.stats.resample import ClusterCounts

K, G = 4, 3
labels = st.lists(
    st.tuples(st.integers(0, K - 1), st.integers(0, K - 1), st.integers(0, G - 1)), max_size=40
)
p_values = st.lists(st.none() | st.floats(0, 1), max_size=12)


def moves(rows) -> np.ndarray:
    before, after, clusters = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return moves_by_cluster((before != after).astype(int), after - before, Clusters(clusters, G))


@given(labels)
def test_moves_equal_the_statistics_of_the_table_of_before_and_after(rows) -> None:
    before, after, clusters = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    C = confusion_by_cluster(before, after, Clusters(clusters, G), K)
    found = moves(rows)
    for statistic, formula in (
        (FLIPPED, lambda C: 1 - diagonal_share(C)),
        (MORE_SEVERE, overestimated().formula),
        (LESS_SEVERE, underestimated().formula),
        (MEAN_SHIFT, mean_severity_error(range(K)).formula),
    ):
        np.testing.assert_allclose(statistic.formula(found), formula(C))
        undefined = np.isnan(statistic.formula(found))
        assert [statistic.undefined(c) for c in found] == [NO_PAIR if x else "" for x in undefined]


@given(labels)
def test_before_and_after_the_other_way_round_turns_the_shift_and_nothing_else(rows) -> None:
    there, back = moves(rows), moves([(b, a, c) for a, b, c in rows])
    assert np.array_equal(back, there[:, [0, 1, 3, 2, 4]] * [1, 1, 1, 1, -1])
    assert sign_test(there[:, SHIFT]) == sign_test(back[:, SHIFT])


def test_moves_worked_by_hand() -> None:
    flipped, shift = np.array([1, 0, 1, 1]), np.array([2, 0, -1, 0])
    counts = moves_by_cluster(flipped, shift, Clusters(np.array([0, 0, 1, 1]), 2))
    assert counts.tolist() == [[2, 1, 1, 0, 2], [2, 2, 0, 1, -1]]
    whole = counts.sum(axis=0)
    assert [s.formula(whole) for s in (FLIPPED, MORE_SEVERE, LESS_SEVERE, MEAN_SHIFT)] == [
        3 / 4, 1 / 4, 1 / 4, 1 / 4,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flipped", "clusters", "told"),
    [([1], [0, 0], "same shape"), ([2, 0], [0, 0], "flipped"), ([1, 0], [0, 2], "clusters")],
)
def test_moves_out_of_range_are_refused(flipped, clusters, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        moves_by_cluster(np.array(flipped), np.array([1, 0]), Clusters(np.array(clusters), 2))


def test_yes_or_no_worked_by_hand() -> None:
    C = np.array([[4.0, 3], [1, 2]])  # 3 of 10 turn yes, 1 turns no
    assert TURNED_YES.formula(C) == pytest.approx(0.3)
    assert NET_CHANGE.formula(C) == pytest.approx(0.5 - 0.3)
    for statistic in (TURNED_YES, NET_CHANGE):
        assert statistic.undefined(C) == ""
        assert statistic.undefined(np.zeros((2, 2))) == NO_PAIR


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_sign_test_equals_scipy(shifts) -> None:
    up, down = sum(s > 0 for s in shifts), sum(s < 0 for s in shifts)
    found = sign_test(np.array(shifts, dtype=np.float64))
    if up + down == 0:
        assert found is None
    else:
        expected = scipy.stats.binomtest(up, up + down, 0.5).pvalue
        assert found == pytest.approx(expected, rel=1e-9)


def test_holm_worked_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04 raised to 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(p_values)
def test_holm_never_lowers_a_p_never_passes_1_and_keeps_the_order(ps) -> None:
    found = holm(ps)
    assert [f is None for f in found] == [p is None for p in ps]
    pairs = sorted((p, f) for p, f in zip(ps, found, strict=True) if p is not None)
    assert all(p <= f <= 1 for p, f in pairs)
    assert [f for _, f in pairs] == sorted(f for _, f in pairs)
    # It is no stricter than Bonferroni, and as strict for the smallest.
    assert all(f <= min(1, p * len(pairs)) for p, f in pairs)
    if pairs:
        assert pairs[0][1] == min(1, pairs[0][0] * len(pairs))


@given(p_values)
def test_none_is_not_counted_by_holm(ps) -> None:
    assert [f for f in holm(ps) if f is not None] == holm([p for p in ps if p is not None])


@given(p_values, st.floats(0.001, 0.2))
def test_holm_rejects_what_the_step_down_rule_rejects(ps, level: float) -> None:
    known = sorted(p for p in ps if p is not None)
    rejected = 0
    while rejected < len(known) and (len(known) - rejected) * known[rejected] <= level:
        rejected += 1
    assert sum(f is not None and f <= level for f in holm(ps)) == rejected


def test_swapping_two_raters_at_random_gives_the_p_of_the_exact_test() -> None:
    rng = np.random.default_rng(5)
    truth, clusters = rng.integers(0, 3, 120), Clusters(np.arange(120) // 2, 60)
    first = np.where(rng.random(120) < 0.5, truth, (truth + 1) % 3)
    second = np.where(rng.random(120) < 0.65, truth, (truth + 1) % 3)
    counts = np.stack(
        [confusion_by_cluster(truth, rater, clusters, 3) for rater in (first, second)], axis=-1
    )
    apart = discordance_by_cluster(
        (second == truth).astype(int), (first == truth).astype(int), clusters
    )
    exact = mcnemar_clustered(ClusterCounts(apart))
    assert swap_test(counts, ACCURACY, 20_000) == pytest.approx(exact, abs=0.015)
    assert swap_test(counts[..., ::-1], ACCURACY, 20_000) == pytest.approx(exact, abs=0.015)


def test_two_raters_that_are_alike_have_no_p_of_swapping() -> None:
    counts = np.ones((5, 2, 2, 1)).repeat(2, axis=-1)
    assert swap_test(counts, BALANCED_ACCURACY) is None
    assert swap_test(np.zeros((5, 2, 2, 2)), BALANCED_ACCURACY) is None


def test_a_difference_on_every_cluster_has_the_p_of_its_sign() -> None:
    counts = np.zeros((10, 2, 2, 2))
    counts[:, 0, 0, 1] = counts[:, 0, 1, 0] = 1  # the second is right everywhere, the first nowhere
    assert swap_test(counts, ACCURACY, 50_000) == pytest.approx(2 / 2**10, abs=0.0006)
