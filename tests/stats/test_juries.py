"""What several judges are worth together."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import PredefinedSplit

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters
from judgebench.stats.consensus import majority_label, median_label
from judgebench.stats.juries import (
    FOLDS,
    MOST_MEMBERS,
    MOST_SUBSETS,
    NO_COMMON_ITEM,
    NO_ERRORS,
    ONE_CLUSTER,
    best_jury,
    effective_judges,
    error_correlations,
    subsets,
)


def vote(labels):
    return median_label(labels, "upper")


def drawn(n: int, skills, k: int, seed: int):
    """Labels of judges that see the truth with the probability `skills` and else draw one."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    size = (n, len(skills))
    labels = np.where(rng.random(size) < skills, truth[:, None], rng.integers(0, k, size))
    return labels, truth


def test_error_correlations_equal_the_matthews_coefficient_of_scikit_learn() -> None:
    labels, truth = drawn(80, [0.5, 0.6, 0.2], 3, seed=1)
    labels[3, 1], truth[7] = -1, -1
    used = np.delete(np.arange(80), [3, 7])
    errs = labels[used] != truth[used, None]
    found = error_correlations(labels, truth, Clusters(np.arange(80) // 2, 40))
    expected = {p: matthews_corrcoef(*errs[:, p].T) for p in combinations(range(3), 2)}
    assert {p: e.value for p, e in found.pairs.items()} == pytest.approx(expected)
    assert found.mean.value == pytest.approx(np.mean(list(expected.values())))
    for estimate in (found.mean, *found.pairs.values()):
        assert (estimate.n, estimate.n_missing) == (78, 2)
        assert estimate.low < estimate.value < estimate.high
        assert "40 clusters" in estimate.method


def test_a_judge_without_errors_has_no_correlation_and_is_left_out_of_the_mean() -> None:
    labels, truth = drawn(60, [1.0, 0.5, 0.5], 3, seed=2)
    found = error_correlations(labels, truth, apart(60))
    assert (found.pairs[0, 1].value, found.pairs[0, 1].reason) == (None, NO_ERRORS)
    assert found.mean.value == pytest.approx(found.pairs[1, 2].value)
    perfect = error_correlations(labels[:, [0, 0]], truth, apart(60)).mean
    assert (perfect.value, perfect.reason) == (None, NO_ERRORS)
    assert effective_judges(perfect, 2).value is None


def test_twins_are_worth_one_judge_and_strangers_as_many_as_they_are() -> None:
    labels, truth = drawn(2000, [0.5] * 4, 3, seed=3)
    shared = (truth, apart(2000))
    twins = error_correlations(labels[:, [0, 0, 0]], *shared).mean
    assert effective_judges(twins, 3).value == pytest.approx(1)
    strangers = effective_judges(error_correlations(labels, *shared).mean, 4)
    assert strangers.value > 3.7
    assert strangers.low < strangers.value <= strangers.high <= 4


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted), st.integers(2, 30)
)  # fmt: skip
def test_the_effective_number_lies_between_one_and_all_and_falls_as_errors_go_together(r, m):
    low, value, high = r
    found = effective_judges(Estimate(value, low, high, n=9), m)
    assert 1 - 1e-9 <= found.low <= found.value <= found.high <= m
    assert found.n == 9
    assert ("negative" in found.reason) == (value < 0)
    if value >= 0:
        # Kish: the variance of a mean of m is (1 + (m - 1) r) / m that of one.
        assert 1 / found.value == pytest.approx((1 + (m - 1) * value) / m)


def test_an_effective_number_without_an_interval_keeps_its_reason() -> None:
    found = effective_judges(Estimate(-0.2, reason="too few clusters"), 3)
    assert (found.value, found.low, found.high) == (3, None, None)
    assert found.reason == "the mean correlation is negative: 0 is used; too few clusters"


@pytest.mark.parametrize("m", [2, 4, 6, 10, 14, 60, 1200])
def test_subsets_are_whole_sizes_that_can_be_counted(m: int) -> None:
    found = subsets(m)
    sizes = {len(subset) for subset in found}
    most = max(sizes)
    assert sizes == set(range(1, most + 1))
    assert len(set(found)) == len(found) == sum(comb(m, size) for size in sizes)
    assert len(found) <= max(MOST_SUBSETS, m)
    assert most <= MOST_MEMBERS
    assert most in (m, MOST_MEMBERS) or len(found) + comb(m, most + 1) > MOST_SUBSETS


def slow_reference(labels, truth, clusters):
    """Cross-validation in the words of scikit-learn, one subset, fold and item after the other."""
    fold_of = np.random.default_rng(0).permutation(clusters.max() + 1) % FOLDS
    m = labels.shape[1]
    candidates = [s for size in range(1, m + 1) for s in combinations(range(m), size)]
    right = {s: vote(labels[:, list(s)]) == truth for s in candidates}
    jury, single = np.zeros(len(truth)), np.zeros(len(truth))
    for train, test in PredefinedSplit(fold_of[clusters]).split():
        best = max(candidates, key=lambda s: right[s][train].sum())
        alone = max(candidates[:m], key=lambda s: right[s][train].sum())
        jury[test], single[test] = right[best][test], right[alone][test]
    return max(candidates, key=lambda s: right[s].sum()), jury.mean(), single.mean()


@pytest.mark.parametrize(("n", "per"), [(97, 1), (120, 4), (2300, 2)])
def test_the_best_jury_equals_a_slow_cross_validation(n: int, per: int) -> None:
    labels, truth = drawn(n, [0.7, 0.6, 0.6, 0.3], 4, seed=n)
    clusters = np.arange(n) // per
    found = best_jury(labels, truth, Clusters(clusters, clusters.max() + 1), vote)
    best, jury, single = slow_reference(labels, truth, clusters)
    assert found.best == best
    assert (found.accuracy.value, found.single.value) == pytest.approx((jury, single))
    assert found.gain.value == pytest.approx(jury - single)
    assert "15 subsets of at most 4" in found.gain.method


def test_judges_that_draw_their_labels_gain_nothing() -> None:
    gained = []
    for seed in range(80):
        labels, truth = drawn(100, [0.0] * 4, 2, seed)
        gained.append(best_jury(labels, truth, apart(100), vote).gain.value)
    # Chosen on the very items that score it, the best of 15 subsets would seem 0.05 to 0.1 better.
    assert abs(np.mean(gained)) < 0.02


def test_independent_judges_gain_by_voting() -> None:
    labels, truth = drawn(400, [0.5] * 5, 3, seed=5)
    found = best_jury(labels, truth, apart(400), vote)
    assert len(found.best) >= 3
    assert found.gain.value > 0.05


def test_one_good_judge_among_bad_ones_is_left_alone() -> None:
    labels, truth = drawn(300, [0.95, 0.0, 0.0], 3, seed=6)
    found = best_jury(labels, truth, apart(300), vote)
    assert found.best == (0,)
    assert (found.gain.value, found.gain.low) == (0, None)
    assert found.gain.reason


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.integers(-1, 2)] * 3, st.integers(-1, 2), st.integers(0, 5)), max_size=25
    )
)
def test_any_labels_give_a_share_or_a_reason(rows) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    labels, truth, clusters = table[:, :3], table[:, 3], table[:, 4]
    used = (table[:, :4] >= 0).all(axis=1)
    found = best_jury(labels, truth, Clusters(clusters, 6), lambda x: majority_label(x, 3, "upper"))
    correlations = error_correlations(labels, truth, Clusters(clusters, 6))
    for estimate in (*found[1:], *correlations.pairs.values(), correlations.mean):
        assert (estimate.n, estimate.n_missing) == (used.sum(), (~used).sum())
        assert estimate.value is not None or estimate.reason
        assert estimate.low is not None or estimate.reason
    if not used.any():
        assert found.gain.reason == correlations.mean.reason == NO_COMMON_ITEM
        assert found.best == ()
    elif len(set(clusters[used])) == 1:
        assert found.gain.reason == ONE_CLUSTER
    else:
        assert 0 <= found.single.value <= 1
        assert found.gain.value == pytest.approx(found.accuracy.value - found.single.value)
