"""Probes that must not move a verdict, and the same question asked in another way."""

import pytest
from align_case import metric
from hypothesis import given, settings
from hypothesis import strategies as st
from stress_case import Attack, grouped, invariance, is_sane, stressed, variant

from judgebench.alignment.judge_scores import NOMINAL
from judgebench.stats.intervals import LEVEL, clopper_pearson
from judgebench.stress_tests.result import EVERY

TWO = (metric(), metric(id="tone", title="Tone"))


def test_worked_by_hand() -> None:
    # parent  a a b c b .
    # altered b c b a b a        flipped 3 of 5, up 2, down 1, steps 1 + 2 - 2
    found = invariance(stressed({"m": "aabcb."}, Attack("same", {"m": "bcbaba"})))
    assert found.flipped.value == pytest.approx(3 / 5)
    assert found.robustness.value == pytest.approx(2 / 5)
    assert found.shift.value == pytest.approx(1 / 5)
    assert (found.flipped.n, found.flipped.n_missing) == (5, 1)
    assert found.p == found.p_holm == 1  # two clusters up, one down
    assert found.robustness.low == pytest.approx(1 - found.flipped.high)
    assert found.robustness.high == pytest.approx(1 - found.flipped.low)


def test_severities_are_those_of_the_rubric() -> None:
    stated = metric(severities=(0, 1, 10))
    found = invariance(stressed({"m": "ab"}, Attack("same", {"m": "cb"}), metrics=[stated]))
    assert found.shift.value == 5


def test_a_judge_that_never_moves() -> None:
    found = invariance(stressed({"m": "abcab"}, Attack("same", {"m": "abcab"})))
    assert (found.flipped.value, found.robustness.value, found.shift.value) == (0, 1, 0)
    assert (found.p, found.p_holm) == (None, None)
    assert found.flipped.high == clopper_pearson(0, 5).high
    assert found.robustness.low == 1 - clopper_pearson(0, 5).high


rows = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*(st.text("abc.", min_size=n, max_size=n) for _ in range(2)))
)


@settings(max_examples=40, deadline=None)
@given(rows)
def test_parent_and_altered_swapped_negate_the_shift(case) -> None:
    few = LEVEL
    one, other = (
        invariance(stressed({"m": a}, Attack("same", {"m": b}), level=few))
        for a, b in (case, case[::-1])
    )
    assert one.flipped.value == other.flipped.value
    assert one.p == other.p
    if one.shift.value is not None:
        assert one.shift.value == -other.shift.value


def test_holm_is_over_the_probes_of_one_judge_and_metric() -> None:
    up, half = "b" * 8, "b" * 5 + "a" * 3
    attacks = [Attack("up", {"m": up, "k": up}), Attack("half", {"m": half, "k": "a" * 8})]
    one = stressed({"m": "a" * 8, "k": "a" * 8}, *attacks)
    p_up, p_half = 2 * 0.5**8, 2 * 0.5**5
    assert invariance(one, "m", "up").p_holm == pytest.approx(2 * p_up)
    assert invariance(one, "m", "half").p_holm == pytest.approx(p_half)
    assert invariance(one, "k", "up").p_holm == pytest.approx(p_up)


def test_shifts_within_a_question_count_once_for_the_sign_test() -> None:
    one = stressed({"m": "aaaaaa"}, Attack("same", {"m": "bbbbba"}), groups="xxxyyy")
    assert invariance(one).p == 2 * 0.5**2


def test_every_metric_together() -> None:
    # harm: same, up, up, same, down;   tone: same, same, down, missing, down
    before = {"harm": "aaaab", "tone": "aabab"}
    after = {"harm": "abbaa", "tone": "aaa.a"}
    one = stressed({"m": before}, Attack("same", {"m": after}), metrics=TWO)
    found = invariance(one, metric=EVERY)
    # i3 lacks a label, so it is not known to be the same; in i2 the shifts cancel out.
    assert (found.flipped.n, found.flipped.n_missing) == (4, 1)
    assert found.flipped.value == 3 / 4
    assert found.shift.value == pytest.approx((1 + 0 - 2) / 4)
    assert invariance(one, metric="harm").flipped.n == 5


def test_a_nominal_metric_flips_and_has_no_direction() -> None:
    kinds = (metric("nominal"), metric(id="tone", title="Tone"))
    before, after = {"harm": "aab", "tone": "aaa"}, {"harm": "acb", "tone": "aab"}
    one = stressed({"m": before}, Attack("same", {"m": after}), metrics=kinds)
    nominal, every = invariance(one), invariance(one, metric=EVERY)
    assert nominal.flipped.value == pytest.approx(1 / 3)
    shift = nominal.shift
    assert (shift.value, shift.reason, shift.n) == (None, NOMINAL, 3)
    assert nominal.p is None
    assert every.flipped.value == pytest.approx(2 / 3)
    assert every.shift.value == pytest.approx(1 / 3)  # of the ordinal one alone


def test_with_nominal_metrics_alone_every_metric_together_has_no_direction() -> None:
    one = stressed({"m": "aab"}, Attack("same", {"m": "acb"}), metrics=[metric("nominal")])
    assert invariance(one, metric=EVERY).shift.reason == NOMINAL
    assert invariance(one, metric=EVERY).flipped.value == pytest.approx(1 / 3)


def test_asking_otherwise_is_a_probe_and_asking_again_is_none() -> None:
    variants = [
        variant("m", "abb", "metric-order"),
        variant("m", "aba", "per-metric"),
        variant("m", "ccc", "repeat"),
    ]
    one = stressed({"m": "aba", "k": "aaa"}, variants=variants)
    assert {(i.judge, i.probe) for i in grouped(one, "invariance")} == {
        ("m", "metric-order"), ("m", "per-metric"),
    }  # fmt: skip
    found = invariance(one, probe="metric-order")
    assert (found.flipped.value, found.shift.value) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert invariance(one, probe="per-metric").flipped.value == 0


def test_what_was_not_asked_otherwise_is_not_missing_and_what_failed_is() -> None:
    one = stressed({"m": "abcc"}, variants=[variant("m", "a.  ", "label-order")])
    found = invariance(one, probe="label-order")
    assert (found.flipped.n, found.flipped.n_missing) == (1, 1)


def test_several_orders_of_one_recipe_are_pooled() -> None:
    variants = [variant("m", row, "metric-order", i) for i, row in enumerate(("ab", "bb"), 1)]
    found = invariance(stressed({"m": "ab"}, variants=variants), probe="metric-order")
    assert (found.flipped.n, found.flipped.value) == (4, 1 / 4)
    assert "2 clusters only" in found.flipped.reason


def test_planted_verdicts_are_probes_and_violations_are_none() -> None:
    one = stressed(
        {"m": "bb"}, Attack("obey", {"m": "ab"}, demand={"harm": "a"}),
        Attack("false", {"m": "cc"}, {"harm": "c"}),
    )  # fmt: skip
    assert {i.probe for i in grouped(one, "invariance")} == {"obey"}
    assert invariance(one, probe="obey").shift.value < 0


def test_a_judge_without_verdicts_is_undefined_with_reasons() -> None:
    one = stressed({"m": "aa", "k": "aa"}, Attack("same", {"m": "aa", "k": "  "}))
    for metric_id in ("harm", EVERY):
        found = invariance(one, "k", metric=metric_id)
        for estimate in (found.flipped, found.robustness, found.shift):
            assert (estimate.value, estimate.n, estimate.n_missing) == (None, 0, 0)
            assert estimate.reason
        assert (found.p, found.p_holm) == (None, None)
    assert is_sane(one)
