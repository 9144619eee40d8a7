"""Means over items and trainings: by hand, beside other tests, and how often they are wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.classification import (
    ACCURACY,
    BALANCED_ACCURACY,
    confusion_by_cluster,
    diagonal_share,
    mean_severity_error,
    overestimated,
    underestimated,
)
from judgebench.stats.paired_tests import (
    FLIPPED,
    LESS_SEVERE,
    MEAN_SHIFT,
    MORE_SEVERE,
    NET_CHANGE,
    NO_PAIR,
    SHIFT,
    TURNED_YES,
    benjamini_yekutieli,
    holm,
    mcnemar_clustered,
    moves_by_cluster,
    p_of_differences,
    p_of_mean,
    permutation_test,
    swap_test,
    with_trainings,
)

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
    assert permutation_test(np.sign(there[:, SHIFT])) == permutation_test(np.sign(back[:, SHIFT]))


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
    found = permutation_test(np.sign(shifts))
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
    exact = mcnemar_clustered((second == truth) * 1.0 - (first == truth), clusters)
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


FROZEN = json.loads((Path(__file__).parent / "data" / "mcnemar.json").read_text())


def exact_p(b: int, c: int) -> float | None:
    return None if b + c == 0 else scipy.stats.binomtest(b, b + c).pvalue


@pytest.mark.parametrize("case", FROZEN["cases"], ids=lambda c: f"{c['b']}-{c['c']}")
def test_the_clustered_test_equals_the_exact_one_of_statsmodels(case) -> None:
    b, c = case["b"], case["c"]
    found = mcnemar_clustered(np.repeat([1.0, -1.0], [b, c]), apart(b + c))
    assert found == pytest.approx(case["exact"], rel=1e-9)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_with_one_item_a_cluster_the_clustered_test_is_the_exact_one(rows) -> None:
    first, second = np.array(rows).T
    expected = exact_p(int((first > second).sum()), int((first < second).sum()))
    clustered = mcnemar_clustered(1.0 * first - second, apart(len(rows)))
    assert clustered == (None if expected is None else pytest.approx(expected))


def test_clusters_that_repeat_themselves_do_not_count_as_more_evidence() -> None:
    # 8 questions, on each of which all 5 answers say the same: 6 questions against 2
    first = np.repeat([1, 1, 1, 1, 1, 1, 0, 0], 5)
    found, clusters = 2.0 * first - 1, Clusters(np.repeat(np.arange(8), 5), 8)
    assert mcnemar_clustered(found, clusters) == pytest.approx(exact_p(6, 2))
    assert exact_p(30, 10) < 0.01
    one_sided = mcnemar_clustered(found, clusters, "greater")
    assert one_sided == pytest.approx(exact_p(6, 2) / 2)


differences = st.lists(st.integers(-3, 3), max_size=11)


@given(differences)
@settings(max_examples=30)
def test_both_alternatives_equal_scipy_where_all_sign_patterns_are_listed(found) -> None:
    x = np.array(found, dtype=np.float64)
    if not x.any():
        assert permutation_test(x) is None
        return
    x = np.append(x, 0)  # scipy wants two or more
    for alternative in ("two-sided", "greater"):
        expected = scipy.stats.permutation_test(
            (x,), np.sum, permutation_type="samples", alternative=alternative, n_resamples=1 << 12
        )
        assert permutation_test(x, alternative=alternative) == pytest.approx(expected.pvalue)


@given(st.integers(0, 3000), st.integers(1, 3000))
def test_equal_differences_are_an_exact_binomial_test(up: int, down: int) -> None:
    expected = scipy.stats.binomtest(up, up + down, alternative="greater").pvalue
    found = permutation_test(np.repeat([0.5, -0.5], [up, down]), "greater")
    assert found == pytest.approx(expected, rel=1e-7)


def test_drawn_signs_come_close_to_the_exact_p_and_are_repeated_by_their_seed() -> None:
    # Sizes so unlike each other that 2^30 sums are too many to list.
    x = np.sqrt(np.arange(1.0, 31)) * np.where(np.arange(30) % 3, 1, -1)
    first, *others = (permutation_test(x, seed=seed) for seed in range(5))
    assert first == permutation_test(x, seed=0)
    assert set(others) != {first}
    z = x.sum() / np.sqrt((x**2).sum())
    assert first == pytest.approx(2 * scipy.stats.norm.sf(z), abs=0.02)


def test_drawn_p_is_never_zero() -> None:
    x = np.sqrt(np.arange(1.0, 61))
    assert permutation_test(x, permutations=99) == 1 / 100


def test_a_million_clusters_of_few_kinds_are_listed_exactly() -> None:
    x = np.repeat([-1, 1], [500_000, 502_000])
    expected = 2 * scipy.stats.norm.sf(2000 / np.sqrt(1_002_000))
    assert permutation_test(x) == pytest.approx(expected, rel=1e-2)


@given(p_values)
def test_benjamini_yekutieli_equals_scipy_and_none_stays_uncounted(ps) -> None:
    found = benjamini_yekutieli(ps)
    assert [f is None for f in found] == [p is None for p in ps]
    known = [p for p in ps if p is not None]
    if known:
        expected = scipy.stats.false_discovery_control(known, method="by")
        assert [f for f in found if f is not None] == pytest.approx(list(expected))


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
