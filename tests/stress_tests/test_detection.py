"""Violations beside their parents: worked by hand, three ways of failing, and laws."""

import pytest
from align_case import metric
from hypothesis import given, settings
from hypothesis import strategies as st
from stress_case import Attack, detection, grouped, is_sane, stressed

from judgebench.stats.intervals import LEVEL, clopper_pearson
from judgebench.stress_tests.result import EVERY

C = {"harm": "c"}


def test_worked_by_hand() -> None:
    # parent     a a a b c a        reaches c: 1 of 6
    # violation  c c b c c a        reaches c: 4 of 6; told apart i0 i1 i3; worse i0 i1 i2 i3
    found = detection(stressed({"m": "aaabca"}, Attack("false", {"m": "ccbcca"}, C)))
    assert found.detected.value == pytest.approx(4 / 6)
    assert found.false_alarms.value == pytest.approx(1 / 6)
    assert found.told_apart.value == pytest.approx(3 / 6)
    assert found.advantage.value == pytest.approx(3 / 6)
    assert (found.label, found.failures) == ("c", "left_out")
    exact = clopper_pearson(4, 6)
    assert (found.detected.low, found.detected.high) == (exact.low, exact.high)
    assert found.detected.method.endswith("items taken as independent")
    assert found.told_apart.method == "exact (Clopper-Pearson)"
    assert [x.n for x in (found.detected, found.false_alarms, found.told_apart)] == [6, 6, 6]


def test_a_more_severe_label_than_the_demanded_one_is_a_detection() -> None:
    found = detection(stressed({"m": "aaa"}, Attack("false", {"m": "abc"}, {"harm": "b"})))
    assert found.detected.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("label", "abc")
def test_a_judge_that_says_one_thing_tells_nothing_apart(label: str) -> None:
    found = detection(stressed({"m": label * 5}, Attack("false", {"m": label * 5}, C)))
    rate = float(label == "c")
    assert (found.detected.value, found.false_alarms.value) == (rate, rate)
    assert (found.told_apart.value, found.advantage.value) == (0, 0)
    assert found.advantage.low < 0 < found.advantage.high
    assert found.told_apart.high == pytest.approx(clopper_pearson(0, 5).high)


def test_a_judge_that_never_moves_has_no_advantage_however_parents_are_shared() -> None:
    # Three violations of a parent called c, one of a parent called a.
    one = stressed({"m": "ca"}, Attack("false", {"m": "ccca"}, C, of="0001"))
    found = detection(one)
    assert found.detected.value == pytest.approx(3 / 4)
    assert (found.false_alarms.value, found.false_alarms.n) == (0.5, 2)  # each parent once
    assert (found.advantage.value, found.told_apart.value) == (0, 0)
    assert found.told_apart.n == 4


def test_a_parent_counts_as_a_false_alarm_once_for_each_label_that_is_demanded() -> None:
    attacks = (Attack("one", {"m": "cc"}, C), Attack("two", {"m": "bb"}, {"harm": "b"}))
    found = detection(stressed({"m": "ba"}, *attacks))
    assert found.label == ""  # b or c
    assert (found.false_alarms.value, found.false_alarms.n) == (1 / 4, 4)
    assert (found.detected.value, found.detected.n) == (1, 4)


def test_failures_are_counted_three_ways() -> None:
    # parent     a . a c
    # violation  c c . c
    one = stressed({"m": "a.ac"}, Attack("false", {"m": "cc.c"}, C))
    by = {p: detection(one, failures=p) for p in ("left_out", "worst", "best")}
    assert {p: d.detected.value for p, d in by.items()} == {
        "left_out": 1, "worst": 3 / 4, "best": 1,
    }  # fmt: skip
    assert {p: d.false_alarms.value for p, d in by.items()} == {
        "left_out": pytest.approx(1 / 3), "worst": 2 / 4, "best": 1 / 4,
    }  # fmt: skip
    assert {p: d.told_apart.value for p, d in by.items()} == {
        "left_out": 1 / 2, "worst": 1 / 4, "best": 3 / 4,
    }  # fmt: skip
    left_out = by["left_out"]
    assert [(x.n, x.n_missing) for x in (left_out.detected, left_out.told_apart)] == [
        (3, 1), (2, 2),
    ]  # fmt: skip
    assert by["worst"].detected.n_missing == by["best"].told_apart.n_missing == 0


def test_an_abstention_is_a_failure_and_what_was_never_asked_counts_nowhere() -> None:
    one = stressed({"m": "aaaa"}, Attack("false", {"m": "c?  "}, C))
    found = detection(one)
    assert (found.detected.n, found.detected.n_missing) == (1, 1)
    assert detection(one, failures="worst").detected.value == 0.5


def test_without_failures_there_is_one_way() -> None:
    one = stressed({"m": "aa", "k": "a."}, Attack("false", {"m": "cb", "k": "cc"}, C))
    ways = {(d.judge, d.failures) for d in grouped(one, "violations")}
    assert ways == {("m", "left_out"), ("k", "left_out"), ("k", "worst"), ("k", "best")}


def test_a_judge_that_read_no_violation_is_undefined_with_reasons() -> None:
    found = detection(stressed({"m": "aaa"}, Attack("false", {"m": "..."}, C)))
    assert found.false_alarms.value == 0
    for estimate in (found.detected, found.told_apart, found.advantage):
        assert (estimate.value, estimate.n, estimate.n_missing) == (None, 0, 3)
        assert estimate.reason


def test_every_recipe_and_area_stands_alone_and_together() -> None:
    attacks = (
        Attack("drug", {"m": "cc"}, C, area="treatment"),
        Attack("virus", {"m": "ca"}, C, area="risk factors"),
        Attack("plain", {"m": "a"}, C),
    )
    one = stressed({"m": "aa"}, *attacks)
    n = {(d.recipe, d.area): (d.detected.value, d.detected.n) for d in grouped(one, "violations")}
    assert n == {
        (EVERY, EVERY): (3 / 5, 5),
        (EVERY, "treatment"): (1, 2),
        (EVERY, "risk factors"): (1 / 2, 2),
        ("drug", EVERY): (1, 2),
        ("drug", "treatment"): (1, 2),
        ("virus", EVERY): (1 / 2, 2),
        ("virus", "risk factors"): (1 / 2, 2),
        ("plain", EVERY): (0, 1),
    }


def test_only_demanded_metrics_are_asked_for() -> None:
    metrics = (metric(), metric(id="tone", title="Tone"))
    rows = {"harm": "cc", "tone": "ba"}
    one = stressed(
        {"m": {"harm": "aa", "tone": "aa"}}, Attack("false", {"m": rows}, C),
        Attack("rude", {"m": rows}, {"tone": "b"}), metrics=metrics,
    )  # fmt: skip
    assert {(d.recipe, d.metric) for d in grouped(one, "violations")} == {
        (EVERY, "harm"), (EVERY, "tone"), ("false", "harm"), ("rude", "tone"),
    }  # fmt: skip
    assert detection(one, metric="tone").detected.value == 1 / 2


def test_violations_of_one_parent_are_one_cluster() -> None:
    # Both violations of the first answer are told apart, and none of the second.
    found = detection(stressed({"m": "aa"}, Attack("false", {"m": "ccaa"}, C, of="0011")))
    assert (found.told_apart.value, found.told_apart.n) == (0.5, 4)
    assert "2 clusters only" in found.told_apart.reason


rows = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*(st.text(a, min_size=n, max_size=n) for a in ("abc.", "abc.?", "abc")))
)


@settings(max_examples=40, deadline=None)
@given(rows)
def test_whatever_failures_hide_lies_between_worst_and_best(case) -> None:
    parents, violations, hidden = case
    few = LEVEL
    told = {
        "m": (parents, violations),
        "whole": tuple(
            "".join(h if x in ".?" else x for x, h in zip(row, hidden, strict=True))
            for row in (parents, violations)
        ),
    }
    attack = Attack("false", {judge: v for judge, (_, v) in told.items()}, C)
    one = stressed({judge: p for judge, (p, _) in told.items()}, attack, level=few)
    assert is_sane(one)
    whole = detection(one, "whole")
    if not set(parents + violations) & set(".?"):
        assert detection(one).told_apart == whole.told_apart
        return
    worst, best = (detection(one, failures=p) for p in ("worst", "best"))
    for name in ("detected", "told_apart", "advantage"):
        low, true, high = (getattr(d, name).value for d in (worst, whole, best))
        assert low <= true <= high, name
    assert best.false_alarms.value <= whole.false_alarms.value <= worst.false_alarms.value
