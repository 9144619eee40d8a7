"""Which outcome follows from which conditions."""

from __future__ import annotations

import pytest

from judgebench.decide.outcome import outcome_of, reason_for
from judgebench.decide.result import Condition, Outcome, State
from judgebench.records import Estimate

MET, NOT_MET, UNCLEAR = State.MET, State.NOT_MET, State.UNCLEAR


def _conditions(*states: State, keys: tuple[str, ...] = ("humans_accuracy", "severe_recall")):
    return tuple(
        Condition(key, "t", state, Estimate(0.5, 0.4, 0.6, "m", 10), 0.5, True)
        for key, state in zip(keys, states, strict=False)
    )


@pytest.mark.parametrize(
    ("replace", "assist", "outcome"),
    [
        ((MET, MET), (), Outcome.REPLACE),
        ((MET, MET), (NOT_MET,), Outcome.REPLACE),
        ((MET, UNCLEAR), (MET, MET), Outcome.ASSIST),
        ((MET, NOT_MET), (MET, MET), Outcome.ASSIST),
        ((MET, NOT_MET), (MET, UNCLEAR), Outcome.DONT),
        ((UNCLEAR, NOT_MET), (), Outcome.DONT),
        ((MET, UNCLEAR), (), Outcome.CANT_TELL),
        ((MET, UNCLEAR), (NOT_MET, NOT_MET), Outcome.CANT_TELL),
        ((), (), Outcome.CANT_TELL),
    ],
)
def test_the_outcome_follows_from_the_conditions(
    replace: tuple[State, ...], assist: tuple[State, ...], outcome: Outcome
) -> None:
    asked = _conditions(*replace), _conditions(*assist, keys=("sent", "missed"))
    assert outcome_of(*asked) is outcome


def test_the_reason_names_what_fails_and_not_what_is_met() -> None:
    reason = reason_for(Outcome.DONT, _conditions(MET, NOT_MET), ())
    assert reason == "Severe recall 0.500 [0.400, 0.600] (≥ 0.500)."


def test_an_undefined_number_is_told_by_its_reason() -> None:
    none = Condition("severe_recall", "t", UNCLEAR, Estimate(None, reason="no severe"), 0.7, True)
    assert reason_for(Outcome.CANT_TELL, [none], ()) == "Severe recall: no severe."


def test_differences_carry_a_sign() -> None:
    reason = reason_for(Outcome.REPLACE, _conditions(MET), ())
    assert reason == "Against an annotator +0.500 [+0.400, +0.600] (≥ +0.500)."
