import math

import numpy as np
import pytest
import scipy.stats
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rank_scores import one, scored, systems_of

from judgebench.ranking.rank import NO_INSTANCE, ONCE, friedman_of, rank
from judgebench.stats.arrays import Clusters

NAMES = ("gold", "gpt", "llama", "noise")
REAL = ("gold", "gpt", "llama", "qwen")
QUARTERS = st.integers(0, 4).map(lambda i: i / 4)
tables = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 4), elements=QUARTERS),
        arrays(np.float64, (n, 4), elements=QUARTERS),
        arrays(np.int64, n, elements=st.integers(0, 5)),
    )
)


def ranked(values, names=NAMES, correct=None, clusters=None, **more):
    scores = scored(values, names, correct, clusters, **more)
    return one(rank(scores, systems_of(names)))


def p_of(ranking):
    return ranking.whole["p"].value


def reason_of(ranking):
    return ranking.whole["chi_square"].reason


def ranges(ranking):
    return {system: (e.low, e.high) for system, e in ranking.places.items()}


@settings(deadline=None, max_examples=40)
@given(tables)
def test_scores_places_and_average_ranks_equal_scipy(table) -> None:
    values, correct, clusters = table
    found = ranked(values, correct=correct, clusters=clusters)
    ranks = scipy.stats.rankdata(-values[:, :3], axis=1).mean(axis=0)
    above, level = values[:, :3] > values[:, 3:], values[:, :3] == values[:, 3:]
    beside = 1 + above.sum(axis=1) + level.sum(axis=1) / 2  # the control case among the arguments
    ranks = [*ranks, beside.mean()]
    score = correct.mean(axis=0)
    place = scipy.stats.rankdata(-score.round(9))
    for i, name in enumerate(NAMES):
        assert found.scores[name].value == pytest.approx(score[i])
        assert found.average_ranks[name].value == pytest.approx(ranks[i])
        assert found.places[name].value == place[i]
        assert found.scores[name].n == len(values)


@settings(deadline=None, max_examples=40)
@given(tables)
def test_control_cases_below_every_argument_are_counted_one_by_one(table) -> None:
    values, correct, clusters = table
    names = ("gold", "noise", "gpt", "label-only")
    found = ranked(values, names, correct, clusters)
    below = [v[c] < min(v[0], v[2]) for v in values for c in (1, 3)]
    assert found.whole["controls_below"].value == pytest.approx(np.mean(below))
    assert found.whole["average"].value == pytest.approx(correct[:, [0, 2]].mean())


@settings(deadline=None, max_examples=40)
@given(tables)
def test_the_order_in_which_systems_are_given_changes_nothing(table) -> None:
    values, correct, clusters = table
    turned = [2, 0, 3, 1]
    names = [NAMES[i] for i in turned]
    scores = scored(values[:, turned], names, correct[:, turned], clusters)
    again = rank(scores, systems_of(names))
    scores = scored(values, NAMES, correct, clusters)
    assert again == rank(scores, systems_of(NAMES))


@settings(deadline=None, max_examples=40)
@given(tables, st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12))
def test_no_number_is_ever_nan_whatever_is_missing(table, holes) -> None:
    values, correct, clusters = table
    for row, column in holes:
        if row < len(values):
            values[row, column] = np.nan
    rows = rank(scored(values, NAMES, correct, clusters), systems_of(NAMES))
    for e in (row.estimate for row in rows):
        assert all(x is None or math.isfinite(x) for x in (e.value, e.low, e.high))
    test = one(rows).whole["p"]
    assert test.n + test.n_missing == len(values)


def test_a_system_that_is_always_best_is_first_in_every_way() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((30, 4))
    values[:, 1] = 2
    found = ranked(values)
    assert (next(iter(found.scores)), found.places["gpt"].value) == ("gpt", 1)
    assert ranges(found)["gpt"] == (1, 1)
    assert found.average_ranks["gpt"].value == 1
    assert "no single cluster changes the value" in found.average_ranks["gpt"].reason


def test_pairs_are_given_once_neighbours_first() -> None:
    scores = scored(np.tile([3.0, 1, 2, 0], (10, 1)), NAMES)
    rows = rank(scores, systems_of(NAMES))
    assert [(r["system"], r["other"]) for r in rows if r.analysis == "above"] == [
        ("gold", "llama"), ("llama", "gpt"), ("gpt", "noise"),
        ("gold", "gpt"), ("llama", "noise"), ("gold", "noise"),
    ]  # fmt: skip


def test_ranges_of_places_are_what_tests_of_all_pairs_leave() -> None:
    rng = np.random.default_rng(1)
    correct = (rng.random((200, 4)) < [0.9, 0.6, 0.55, 0.2]).astype(float)
    found = ranked(correct, correct=correct, trainings=np.stack([correct, correct]))
    first, middle, third, last = NAMES
    assert found.p[first, middle] < 0.01 < 0.05 < found.p[middle, third]
    assert ranges(found) == {first: (1, 1), middle: (2, 3), third: (2, 3), last: (4, 4)}


def test_friedman_equals_scipy() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(60, 4)) + np.array([1, 0.9, 0.2, 0])
    found = ranked(values, REAL)
    expected = scipy.stats.friedmanchisquare(*values.T)
    assert found.whole["chi_square"].value == pytest.approx(expected.statistic)
    assert p_of(found) == pytest.approx(expected.pvalue)
    assert reason_of(found) == ""


def test_copies_of_an_instance_within_its_cluster_add_no_certainty() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(20, 4)) + np.array([0.5, 0.3, 0, 0])
    once = ranked(values)
    thrice = ranked(np.repeat(values, 3, axis=0), clusters=np.repeat(np.arange(20), 3))
    for statistic in ("chi_square", "p"):
        value = once.whole[statistic].value
        assert thrice.whole[statistic].value == pytest.approx(value)
    assert "20 clusters" in reason_of(thrice)
    assert "60 instances are not independent" in reason_of(thrice)
    assert thrice.p == pytest.approx(once.p)
    assert ranges(thrice) == ranges(once)
    for system in NAMES:
        low, high = once.average_ranks[system].low, once.scores[system].high
        assert thrice.average_ranks[system].low == pytest.approx(low)
        assert thrice.scores[system].high == pytest.approx(high)


def test_clusters_of_several_instances_are_friedmans_blocks() -> None:
    rng = np.random.default_rng(4)
    clusters = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 5])
    values = rng.normal(size=(10, 4)) + np.array([1, 0.5, 0, 0])
    ranks = scipy.stats.rankdata(-values, axis=1)
    blocks = np.array([ranks[clusters == g].mean(axis=0) for g in range(6)]).round(9)
    expected = scipy.stats.friedmanchisquare(*blocks.T)
    found = ranked(values, REAL, clusters=clusters)
    assert found.whole["chi_square"].value == pytest.approx(expected.statistic)


def test_instances_without_every_score_are_missing_for_all_systems() -> None:
    values = np.array([[4.0, 3, 2, 1], [np.nan, 9, 9, 9], [4, 3, 1, 2], [1, 2, 3, np.inf]])
    found = ranked(values, n_missing=5)
    assert {(e.n, e.n_missing) for e in (found.whole["p"], *found.scores.values())} == {(2, 7)}
    assert found.scores["gpt"].value == 3


def test_a_system_without_any_score_is_left_out_and_named() -> None:
    values = np.array([[3.0, 2, np.nan, 1]] * 3)
    found = ranked(values)
    assert list(found.scores) == ["gold", "gpt", "noise"]
    assert (found.whole["p"].n, found.whole["p"].n_missing) == (3, 0)
    assert "without any score: llama" in reason_of(found)


@pytest.mark.parametrize(
    "values", [np.zeros((0, 4)), np.diag([np.nan] * 4), np.full((2, 4), np.nan)]
)
def test_without_a_complete_instance_there_is_no_ranking(values) -> None:
    found = ranked(values)
    assert found.scores == {}
    assert (found.whole["p"].n, found.whole["p"].n_missing) == (0, len(values))
    assert NO_INSTANCE in reason_of(found)


def test_only_named_systems_are_ranked() -> None:
    scores = scored(np.tile([1.0, 2, 3, 4], (4, 1)), NAMES)
    found = one(rank(scores, systems_of(["gpt", "gold", "nobody"])))
    assert [(s, e.value) for s, e in found.average_ranks.items()] == [("gpt", 1), ("gold", 2)]
    assert one(rank(scores, [])).scores == {}


@pytest.mark.parametrize(
    ("values", "names", "reason"),
    [
        (
            [[1.0, 2], [1, 2], [2, 1]],
            ("gold", "gpt"),
            "needs 3 real arguments and 2 instances; here are 2",
        ),
        ([[1.0, 2, 3, 4]], NAMES, "here are 3 and 1"),
        (np.ones((5, 4)), NAMES, "all systems tie in all 5 instances"),
    ],
)
def test_without_friedmans_test_the_reason_is_told(values, names, reason: str) -> None:
    found = ranked(values, names)
    assert reason in reason_of(found)
    for statistic in ("chi_square", "p"):
        assert found.whole[statistic].value is None


def test_one_cluster_shows_no_place_range() -> None:
    found = ranked([[1.0, 2, 3, 4]] * 3, clusters=[7, 7, 7])
    assert set(ranges(found).values()) == {(None, None)}
    assert "one cluster only" in found.scores["noise"].reason
    assert "2 clusters" in reason_of(found)


def test_what_cannot_be_compared_says_why() -> None:
    no_control = ranked(np.ones((3, 2)), ("gold", "gpt"))
    assert "no control case" in no_control.whole["controls_below"].reason
    no_argument = ranked(np.ones((3, 2)), ("noise", "passages"))
    assert "no real argument" in no_argument.whole["controls_below"].reason
    assert no_argument.whole["average"].value is None


def test_all_control_cases_below_have_an_exact_interval_over_clusters() -> None:
    found = ranked([[4.0, 3, 2, 1]] * 12, clusters=np.repeat(np.arange(6), 2))
    assert found.whole["controls_below"].value == 1
    assert found.whole["controls_below"].low == pytest.approx(
        0.025 ** (1 / 6)
    )  # Clopper-Pearson, 6 of 6


def test_only_evaluators_have_a_metric() -> None:
    values = np.ones((3, 4))
    for correct, metric in ((values, "accuracy"), (None, "")):
        rows = rank(scored(values, NAMES, correct), systems_of(NAMES))
        assert {row.metric for row in rows} == {metric}


def test_weaker_control_cases_make_no_difference_between_equal_arguments() -> None:
    rng = np.random.default_rng(5)
    real = rng.normal(size=(40, 3))
    controls = rng.normal(size=(40, 4)) - 3
    names = ("gold", "gpt", "llama", "label-only", "no-argument", "noise", "passages")
    found = ranked(np.hstack([real, controls]), names)
    expected = scipy.stats.friedmanchisquare(*real.T)
    assert p_of(found) == pytest.approx(expected.pvalue)
    assert p_of(found) > 0.05
    assert scipy.stats.friedmanchisquare(*np.hstack([real, controls]).T).pvalue < 1e-20
    alone = ranked(real, names[:3])
    for name in names[:3]:
        assert found.average_ranks[name].value == alone.average_ranks[name].value
    assert all(3.5 < found.average_ranks[name].value <= 4 for name in names[3:])


def trained(each, names=REAL[:3], **more):
    """An evaluator of several trainings, (trainings, instances, systems) of decisions."""
    each = np.asarray(each, dtype=float)
    return ranked(each.mean(axis=0), names, each.mean(axis=0), trainings=each, **more)


def test_an_order_that_turns_with_the_training_is_not_claimed() -> None:
    rng = np.random.default_rng(6)
    lucky = (rng.random((100, 3)) < [0.9, 0.6, 0.6]).astype(float)
    others = [(rng.random((100, 3)) < 0.7).astype(float) for _ in range(2)]
    alone = trained([lucky])
    assert alone.unsure == ONCE
    together = trained([lucky, *others])
    assert together.unsure == ""
    assert not any(together.clearly_above("gold", other) for other in REAL[1:3])
    assert together.p["gold", "gpt"] > 0.05
    again = trained([(rng.random((100, 3)) < [0.9, 0.6, 0.6]).astype(float) for _ in range(3)])
    assert all(again.clearly_above("gold", other) for other in REAL[1:3])


def test_intervals_hold_trainings_too() -> None:
    rng = np.random.default_rng(7)
    each = [(rng.random((80, 3)) < p).astype(float) for p in (0.5, 0.7, 0.9)]
    items, both = trained([np.mean(each, axis=0)]), trained(each)
    for name in REAL[:3]:
        assert both.scores[name].value == pytest.approx(items.scores[name].value)
        assert both.scores[name].low < items.scores[name].low - 0.1
        assert both.scores[name].high > items.scores[name].high + 0.1
        assert "3 trainings" in both.scores[name].method
    same = trained([each[1]] * 3)
    assert same.scores["gold"].low == pytest.approx(trained([each[1]]).scores["gold"].low)


def test_nothing_is_claimed_of_a_control_ranker() -> None:
    values = np.tile([3.0, 2, 1], (60, 1))
    assert ranked(values, REAL[:3]).clearly_above("gold", "gpt")
    assert not ranked(values, REAL[:3], kind="control").clearly_above("gold", "gpt")


def test_fewer_than_ten_items_are_too_few_to_test_their_order() -> None:
    values = np.tile([4.0, 3, 2, 1], (10, 1))
    few, enough = (ranked(values[:n], kind="humans") for n in (9, 10))
    assert p_of(few) < 0.001
    assert "fewer than 10 groups of instances are too few to test an order" in few.unsure
    assert not few.clearly_above("gold", "noise")
    assert enough.unsure == ""
    assert enough.clearly_above("gold", "noise")


def test_clusters_that_cancel_out_tie() -> None:
    ranks = np.array([[1.0, 2, 3], [3, 2, 1]] * 2)
    p = friedman_of(ranks, Clusters(np.array([0, 0, 1, 1]), 2))["p"]
    assert p.value is None
    assert p.reason == "all systems tie in all 2 clusters"


def test_ranks_that_all_agree_differ() -> None:
    tested = friedman_of(np.tile([1.0, 2, 3, 4], (40, 1)), apart(40))
    assert tested["chi_square"].value == pytest.approx(120)
    assert tested["p"].reason == ""
