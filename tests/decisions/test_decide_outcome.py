"""Which outcome follows from which conditions."""

import pytest

from judgebench.decisions.decision import Condition, Outcome, State, outcome_of
from judgebench.decisions.sentences import reason_for
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
        ((MET, NOT_MET), (MET, UNCLEAR), Outcome.DO_NOT_USE),
        ((UNCLEAR, NOT_MET), (), Outcome.DO_NOT_USE),
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
    sentence, numbers = reason_for(Outcome.DO_NOT_USE, _conditions(MET, NOT_MET), ())
    assert sentence == "It finds only 5 of 10 severe answers."
    assert numbers == "severe recall 0.500 [0.400, 0.600], required ≥ 0.500"


def test_a_failure_by_both_measures_is_said_once() -> None:
    keys = ("humans_accuracy", "humans_balanced_accuracy")
    conditions = _conditions(NOT_MET, NOT_MET, keys=keys)
    sentence, numbers = reason_for(Outcome.DO_NOT_USE, conditions, ())
    assert sentence == (
        "It agrees with the annotators 50 points less often than they agree with each other."
    )
    assert numbers.count("agreement gap +0.500") == 2


def test_a_sentence_on_the_balanced_measure_names_it() -> None:
    balanced = "averaged over the labels"
    for keys in (("humans_accuracy", "humans_balanced_accuracy"),):
        said = {
            states: reason_for(outcome, _conditions(*states, keys=keys), ())[0]
            for states, outcome in (
                ((MET, UNCLEAR), Outcome.CANT_TELL),
                ((UNCLEAR, MET), Outcome.CANT_TELL),
                ((UNCLEAR, UNCLEAR), Outcome.CANT_TELL),
                ((MET, NOT_MET), Outcome.DO_NOT_USE),
                ((MET, MET), Outcome.REPLACE),
            )
        }
        assert {states for states, text in said.items() if balanced in text} == {
            (MET, UNCLEAR),
            (MET, NOT_MET),
        }


def test_an_undefined_number_is_told_by_its_reason() -> None:
    none = Condition("severe_recall", "t", UNCLEAR, Estimate(None, reason="no severe"), 0.7, True)
    told = reason_for(Outcome.CANT_TELL, [none], ())
    assert told == ("No severe.", "severe recall undefined: no severe")


def test_what_looks_good_but_is_unclear_is_told_apart_from_what_does_not() -> None:
    def unclear(value: float) -> Condition:
        e = Estimate(value, value - 0.2, value + 0.2, "m", 20)
        return Condition("severe_recall", "t", UNCLEAR, e, 0.7, True)

    good, _ = reason_for(Outcome.CANT_TELL, [unclear(0.8)], ())
    bad, _ = reason_for(Outcome.CANT_TELL, [unclear(0.6)], ())
    assert good.startswith("The judge looks good enough, but there is too little data to be sure")
    assert bad.startswith("There is too little data to tell whether the judge finds at least 70 %")


def test_of_many_open_requirements_two_are_said_and_the_numbers_tell_all() -> None:
    keys = ("humans_accuracy", "severe_recall", "failures", "humans_distance")
    e = Estimate(0.1, 0.0, 0.2, "m", 20)
    conditions = [Condition(key, "t", UNCLEAR, e, 0.05, False) for key in keys]
    told, numbers = reason_for(Outcome.CANT_TELL, conditions, ())
    assert told.endswith("; 2 other requirements are open, too.")
    assert numbers.count("required") == len(keys)
    three, _ = reason_for(Outcome.CANT_TELL, conditions[:3], ())
    assert "other requirements" not in three


def test_differences_carry_a_sign() -> None:
    _, numbers = reason_for(Outcome.REPLACE, _conditions(MET), ())
    assert numbers.startswith("agreement gap +0.500 [+0.400, +0.600], required ≥ +0.500 (more")
