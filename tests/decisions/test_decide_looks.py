"""A look at a study before its end: the level of a look, in every condition."""

from dataclasses import replace

import pytest
from align_case import verdicts
from decide_case import HUMANS, TRUE, noisy, scoped

import judgebench as jb
from judgebench.decisions.decide import decide_study
from judgebench.decisions.decision import Condition, Decisions, Outcome
from judgebench.decisions.rule import DecisionRule
from judgebench.errors import SetupError
from judgebench.records import Estimate, Results, Row
from judgebench.stats.intervals import look_levels
from judgebench.studies.study import Study


def study(noise: float, more: str = "") -> Study:
    """A judge beside three annotators; `more` are its first labels."""
    said, found = more + noisy(TRUE, noise, 9)[len(more) :], scoped(HUMANS)
    judges = (("j", said, "judge"), ("constant", "a" * len(TRUE), "control"))
    made = tuple(verdicts(name, row, found.answers, kind) for name, row, kind in judges)
    return replace(found, judges=made)


def intervals(decisions: Decisions) -> dict[str, Condition]:
    (decision,) = decisions.decisions
    found = (*decision.replace, *decision.assist)
    return {c.key: c for c in found if c.estimate.low is not None}


def test_every_condition_of_labels_has_the_level_of_the_look() -> None:
    judged = study(0.05, more="?")  # a missing label too
    once, look = intervals(jb.decide(judged)), jb.decide(judged, looks=[0.2, 0.4])
    level = look_levels([0.2, 0.4])[1]
    assert level > 0.999
    assert look.rule.level == level
    stricter = intervals(look)
    assert {*once} == {
        "humans_accuracy", "humans_balanced_accuracy", "humans_distance", "controls", "severe_gap",
        "failures", "sent", "missed",
    }  # fmt: skip
    for key, condition in stricter.items():
        wide, narrow = condition.estimate, once[key].estimate
        assert wide.level == level, key
        assert narrow.level == 0.95
        assert (wide.low, wide.high) != (narrow.low, narrow.high), key
        assert wide.low <= narrow.low, key
        assert wide.high >= narrow.high, key
    assert any("interim analysis 2, at 40 % of the planned answers" in note for note in look.notes)


@pytest.mark.parametrize(("looks", "level"), [([0.5, 1], "95.1"), ([0.2], "99.99989")])
def test_the_level_of_an_interim_analysis_is_rounded(looks: list[float], level: str) -> None:
    decisions = jb.decide(study(0.06), looks=looks)
    assert any(f"intervals are of {level} %" in note for note in decisions.notes)


def test_an_early_look_needs_clearer_evidence_and_plans_for_the_end() -> None:
    judged = study(0.06)
    (once,), (early,), (strict,) = (
        found.decisions for found in (
            jb.decide(judged), jb.decide(judged, looks=[0.1]),
            jb.decide(judged, rule=DecisionRule(level=look_levels([0.1])[0])),
        )
    )  # fmt: skip
    assert once.outcome is Outcome.REPLACE
    assert early.outcome is strict.outcome is Outcome.CANT_TELL
    assert early.more.towards is Outcome.REPLACE
    # the end is decided by the rule's level, which asks for much less
    assert strict.more.items is None or 2 * early.more.items < strict.more.items


def test_one_look_at_the_end_is_the_rule_itself() -> None:
    judged = study(0.05)
    rule = DecisionRule(level=0.9)
    decided = [jb.decide(judged, rule=rule, looks=looks).decisions for looks in ((), (1.0,))]
    (once,), (looked,) = decided
    assert looked.outcome is once.outcome
    for a, b in zip(once.replace, looked.replace, strict=True):
        assert a.estimate.low == pytest.approx(b.estimate.low)


def test_a_stress_test_keeps_its_own_level() -> None:
    """More labels do not change it, so no look tries it again."""
    steady = Estimate(0.98, 0.92, 1.0, "m", 50)
    rows = Results((Row("invariance", "robustness", steady, "j", "harm", {"recipe": "padding"}),))
    (robust,) = (
        c for c in decide_study(study(0.02), stress=rows, looks=[0.3]).decisions[0].replace
        if c.key == "robustness"
    )  # fmt: skip
    assert (robust.estimate.low, robust.estimate.level) == (0.92, 0.95)


@pytest.mark.parametrize("looks", [[0.5, 0.5], [0.7, 0.3], [0.0], [1.5]])
def test_shares_that_do_not_rise_are_refused(looks: list[float]) -> None:
    with pytest.raises(SetupError, match="looks: shares must rise"):
        jb.decide(study(0.05), looks=looks)
