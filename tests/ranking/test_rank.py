import dataclasses
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rank_scores import FEW, scored, systems_of

from judgebench.ranking.rank import NO_INSTANCE, places, rank
from judgebench.stats.ranks import groups, nemenyi_critical_difference

NAMES = ("gold", "gpt", "llama", "noise")
QUARTERS = st.integers(0, 4).map(lambda i: i / 4)
tables = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 4), elements=QUARTERS),
        arrays(np.float64, (n, 4), elements=QUARTERS),
        arrays(np.int64, n, elements=st.integers(0, 5)),
    )
)


def ranked(values, names=NAMES, correct=None, clusters=None, resampling=FEW, **more):
    scores = scored(values, names, correct, clusters, **more)
    return rank(scores, systems_of(names), resampling, "accuracy")


def by_name(ranking):
    return {s.system: s for s in ranking.systems}


def numbers(value):
    """Every number within a record."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, float | int):
        yield value


@settings(deadline=None, max_examples=40)
@given(tables)
def test_scores_places_and_average_ranks_equal_scipy(table) -> None:
    values, correct, clusters = table
    found = by_name(ranked(values, correct=correct, clusters=clusters))
    ranks = scipy.stats.rankdata(-values, axis=1).mean(axis=0)
    score = correct.mean(axis=0)
    place = scipy.stats.rankdata(-score.round(9))
    for i, name in enumerate(NAMES):
        assert found[name].score.value == pytest.approx(score[i])
        assert found[name].average_rank.value == pytest.approx(ranks[i])
        assert found[name].place == place[i]
        assert found[name].score.n == len(values)


@settings(deadline=None, max_examples=40)
@given(tables)
def test_control_cases_below_every_argument_are_counted_one_by_one(table) -> None:
    values, correct, clusters = table
    names = ("gold", "noise", "gpt", "label-only")
    found = ranked(values, names, correct, clusters)
    below = [v[c] < min(v[0], v[2]) for v in values for c in (1, 3)]
    assert found.controls_below.value == pytest.approx(np.mean(below))
    assert found.average.value == pytest.approx(correct[:, [0, 2]].mean())


@settings(deadline=None, max_examples=40)
@given(tables)
def test_the_order_in_which_systems_are_given_changes_nothing(table) -> None:
    values, correct, clusters = table
    turned = [2, 0, 3, 1]
    names = [NAMES[i] for i in turned]
    again = ranked(values[:, turned], names, correct[:, turned], clusters)
    assert again == ranked(values, NAMES, correct, clusters)


@settings(deadline=None, max_examples=40)
@given(tables)
def test_the_same_added_to_all_values_changes_nothing_for_an_evaluator(table) -> None:
    values, correct, clusters = table
    once = ranked(values, correct=correct, clusters=clusters)
    assert ranked(values + 2.5, correct=correct, clusters=clusters) == once


@settings(deadline=None, max_examples=40)
@given(tables)
def test_the_same_added_to_all_values_of_a_judge_moves_its_scores_alone(table) -> None:
    values, _, _ = table
    once, moved = ranked(values), ranked(values + 2.5)
    assert [s.system for s in moved.systems] == [s.system for s in once.systems]
    for a, b in zip(once.systems, moved.systems, strict=True):
        assert b.score.value == pytest.approx(a.score.value + 2.5)
        assert (b.place, b.place_range, b.group) == (a.place, a.place_range, a.group)
        assert b.average_rank == a.average_rank
    assert (moved.p, moved.above, moved.controls_below) == (once.p, once.above, once.controls_below)


@settings(deadline=None, max_examples=40)
@given(tables, st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12))
def test_no_number_is_ever_nan_whatever_is_missing(table, holes) -> None:
    values, correct, clusters = table
    for row, column in holes:
        if row < len(values):
            values[row, column] = np.nan
    found = ranked(values, correct=correct, clusters=clusters)
    assert all(math.isfinite(x) for x in numbers(found))
    assert found.n + found.n_missing == len(values)


def test_a_system_that_is_always_best_is_first_in_every_way() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((30, 4))
    values[:, 1] = 2
    found = ranked(values)
    first = found.systems[0]
    assert (first.system, first.place, first.place_range) == ("gpt", 1, (1, 1))
    assert first.average_rank.value == 1
    assert "every resample gives the same value" in first.average_rank.reason
    assert [a.share for a in found.above if a.upper == "gpt"] == [1.0] * 3


def test_pairs_are_given_once_neighbours_first() -> None:
    found = ranked(np.tile([3.0, 1, 2, 0], (10, 1)))
    assert [(a.upper, a.lower) for a in found.above] == [
        ("gold", "llama"), ("llama", "gpt"), ("gpt", "noise"),
        ("gold", "gpt"), ("llama", "noise"), ("gold", "noise"),
    ]  # fmt: skip


def test_shares_above_and_place_ranges_equal_a_plain_bootstrap_of_clusters() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(40), rng.integers(1, 4, 40))
    correct = (rng.random((len(clusters), 4)) < [0.7, 0.66, 0.6, 0.4]).astype(float)
    found = ranked(
        correct,
        correct=correct,
        clusters=clusters,
        resampling=dataclasses.replace(FEW, resamples=4000),
    )
    rows = [np.flatnonzero(clusters == g) for g in range(40)]
    means = np.array(
        [
            correct[np.concatenate([rows[g] for g in rng.integers(0, 40, 40)])].mean(axis=0)
            for _ in range(4000)
        ]
    )
    place = scipy.stats.rankdata(-means.round(9), axis=1)
    for pair in found.above:
        i, j = NAMES.index(pair.upper), NAMES.index(pair.lower)
        share = np.mean(place[:, i] < place[:, j]) + np.mean(place[:, i] == place[:, j]) / 2
        assert pair.share == pytest.approx(share, abs=0.04)
    for i, name in enumerate(NAMES):
        low, high = by_name(found)[name].place_range
        expected = np.quantile(place[:, i], [0.025, 0.975])
        assert [low, high] == pytest.approx(expected, abs=0.5)


def test_friedman_equals_scipy_and_groups_are_nemenyis() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(60, 4)) + np.array([1, 0.9, 0.2, 0])
    found = ranked(values)
    expected = scipy.stats.friedmanchisquare(*values.T)
    assert found.chi_square == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.critical_difference == pytest.approx(nemenyi_critical_difference(4, 60))
    ranks = scipy.stats.rankdata(-values, axis=1).mean(axis=0)
    letters = groups(ranks, found.critical_difference)
    assert [by_name(found)[name].group for name in NAMES] == letters
    assert len(set(letters)) > 1
    assert found.reason == ""


def test_systems_that_do_not_differ_are_of_one_group() -> None:
    values = np.tile([[1.0, 2, 3, 4], [4, 3, 2, 1]], (5, 1))
    found = ranked(values)
    assert found.p == pytest.approx(1)
    assert {s.group for s in found.systems} == {"a"}


def test_copies_of_an_instance_within_its_cluster_add_no_certainty() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(20, 4)) + np.array([0.5, 0.3, 0, 0])
    once = ranked(values)
    thrice = ranked(np.repeat(values, 3, axis=0), clusters=np.repeat(np.arange(20), 3))
    assert (thrice.chi_square, thrice.p) == (pytest.approx(once.chi_square), pytest.approx(once.p))
    assert thrice.critical_difference == once.critical_difference
    assert "20 clusters" in thrice.reason
    assert "60 instances are not independent" in thrice.reason
    assert [a.share for a in thrice.above] == pytest.approx([a.share for a in once.above])
    for a, b in zip(once.systems, thrice.systems, strict=True):
        assert (b.place_range, b.group) == (a.place_range, a.group)
        assert b.average_rank.low == pytest.approx(a.average_rank.low)
        assert b.score.high == pytest.approx(a.score.high)


def test_clusters_of_several_instances_are_friedmans_blocks() -> None:
    rng = np.random.default_rng(4)
    clusters = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 5])
    values = rng.normal(size=(10, 4)) + np.array([1, 0.5, 0, 0])
    ranks = scipy.stats.rankdata(-values, axis=1)
    blocks = np.array([ranks[clusters == g].mean(axis=0) for g in range(6)]).round(9)
    expected = scipy.stats.friedmanchisquare(*blocks.T)
    found = ranked(values, clusters=clusters)
    assert found.chi_square == pytest.approx(expected.statistic)
    assert found.critical_difference == pytest.approx(nemenyi_critical_difference(4, 6))


def test_instances_without_every_score_are_missing_for_all_systems() -> None:
    values = np.array([[4.0, 3, 2, 1], [np.nan, 9, 9, 9], [4, 3, 1, 2], [1, 2, 3, np.inf]])
    found = ranked(values, n_missing=5)
    assert (found.n, found.n_missing) == (2, 7)
    assert {(s.score.n, s.score.n_missing) for s in found.systems} == {(2, 7)}
    assert by_name(found)["gpt"].score.value == 3


def test_a_system_without_any_score_is_left_out_and_named() -> None:
    values = np.array([[3.0, 2, np.nan, 1]] * 3)
    found = ranked(values)
    assert [s.system for s in found.systems] == ["gold", "gpt", "noise"]
    assert (found.n, found.n_missing) == (3, 0)
    assert "without any score: llama" in found.reason


@pytest.mark.parametrize(
    "values", [np.zeros((0, 4)), np.diag([np.nan] * 4), np.full((2, 4), np.nan)]
)
def test_without_a_complete_instance_there_is_no_ranking(values) -> None:
    found = ranked(values)
    assert (found.systems, found.n, found.n_missing) == ((), 0, len(values))
    assert NO_INSTANCE in found.reason


def test_only_named_systems_are_ranked() -> None:
    scores = scored(np.tile([1.0, 2, 3, 4], (4, 1)), NAMES)
    found = rank(scores, systems_of(["gpt", "gold", "nobody"]), FEW, "accuracy")
    assert [(s.system, s.average_rank.value) for s in found.systems] == [("gpt", 1), ("gold", 2)]
    assert rank(scores, [], FEW, "accuracy").systems == ()


@pytest.mark.parametrize(
    ("values", "names", "reason"),
    [
        (
            [[1.0, 2], [1, 2], [2, 1]],
            ("gold", "gpt"),
            "needs 3 systems and 2 instances; here are 2",
        ),
        ([[1.0, 2, 3, 4]], NAMES, "here are 4 and 1"),
        (np.ones((5, 4)), NAMES, "all systems tie in all 5 instances"),
    ],
)
def test_without_friedmans_test_the_reason_is_told(values, names, reason: str) -> None:
    found = ranked(values, names)
    assert reason in found.reason
    assert found.chi_square is found.p is found.critical_difference is None
    assert {s.group for s in found.systems} == {""}


def test_one_cluster_shows_no_place_range() -> None:
    found = ranked([[1.0, 2, 3, 4]] * 3, clusters=[7, 7, 7])
    assert found.above == ()
    assert {s.place_range for s in found.systems} == {None}
    assert "one cluster only" in found.systems[0].score.reason
    assert "2 clusters" in found.reason


def test_what_cannot_be_compared_says_why() -> None:
    no_control = ranked(np.ones((3, 2)), ("gold", "gpt"))
    assert "no control case" in no_control.controls_below.reason
    no_argument = ranked(np.ones((3, 2)), ("noise", "passages"))
    assert "no real argument" in no_argument.controls_below.reason
    assert no_argument.average.value is None


def test_all_control_cases_below_have_an_exact_interval_over_clusters() -> None:
    found = ranked([[4.0, 3, 2, 1]] * 12, clusters=np.repeat(np.arange(6), 2))
    assert found.controls_below.value == 1
    assert found.controls_below.low == pytest.approx(0.025 ** (1 / 6))  # Clopper-Pearson, 6 of 6


def test_only_evaluators_have_a_metric() -> None:
    values = np.ones((3, 4))
    assert ranked(values, correct=values).metric == "accuracy"
    assert ranked(values).metric == ""


def test_places_rank_any_list_of_scores() -> None:
    assert places(np.array([0.2, 0.9, 0.9, 0.1])).tolist() == [3, 1.5, 1.5, 4]
