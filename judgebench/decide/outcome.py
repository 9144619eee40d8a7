"""From conditions to an outcome, and the sentence that gives its reason."""

from __future__ import annotations

from collections.abc import Sequence

from judgebench.decide.result import Condition, Outcome, State


def outcome_of(replace: Sequence[Condition], assist: Sequence[Condition]) -> Outcome:
    """REPLACE where all its conditions are met, else ASSIST where all of that are; DON'T where
    the data say that one of REPLACE fails, and CAN'T TELL where they say nothing.

    Nothing is met and nothing fails where there is no condition.
    """
    if replace and all(c.state is State.MET for c in replace):
        return Outcome.REPLACE
    if assist and all(c.state is State.MET for c in assist):
        return Outcome.ASSIST
    if any(c.state is State.NOT_MET for c in replace):
        return Outcome.DONT
    return Outcome.CANT_TELL


def reason_for(outcome: Outcome, replace: Sequence[Condition], assist: Sequence[Condition]) -> str:
    """One sentence with the numbers that the outcome rests on."""
    if outcome is Outcome.REPLACE:
        return _sentence([_told(c) for c in replace])
    short = [_told(c) for c in replace if c.state is State.NOT_MET]
    unclear = [_told(c) for c in replace if c.state is State.UNCLEAR]
    if outcome is Outcome.ASSIST:
        why = "it falls short" if short else "it is not clear"
        told = [_told(c) for c in assist]
        return _sentence([*told, f"to replace annotators {why}: {'; '.join(short or unclear)}"])
    if outcome is Outcome.DONT:
        return _sentence([*short, *_filter(assist)])
    return _sentence([*unclear, *_filter(assist)])


def _filter(assist: Sequence[Condition]) -> list[str]:
    """What keeps the judge from being a first-pass filter."""
    if not assist:
        return []
    failed = [c for c in assist if c.state is State.NOT_MET]
    if failed:
        return [f"no filter either: {_told(failed[0])}"]
    unclear = next(c for c in assist if c.state is State.UNCLEAR)
    return [f"as a filter not clear: {_told(unclear)}"]


_SHORT = {
    "humans_accuracy": "against an annotator",
    "humans_balanced_accuracy": "against an annotator, balanced",
    "controls_accuracy": "above {rival}",
    "controls_balanced_accuracy": "above {rival}, balanced",
    "severe_items": "severe answers",
    "severe_recall": "severe recall",
    "failures": "without a label",
    "robustness": "robustness",
    "planted": "planted verdicts obeyed",
    "sent": "sent to humans",
    "missed": "severe answers missed",
}
_DIFFERENCES = ("humans_", "controls_")


def _told(condition: Condition) -> str:
    """`severe recall 0.812 [0.774, 0.850] (≥ 0.700)`: the number and what is asked of it."""
    e = condition.estimate
    name = _SHORT[condition.key].replace("{rival}", condition.rival)
    side = "≥" if condition.at_least else "≤"
    if condition.key == "severe_items":
        have = 0 if e.value is None else round(e.value)
        return f"{have} {name} ({side} {condition.bound:.0f})"
    if e.value is None:
        return f"{name}: {e.reason}"
    spec = "+.3f" if condition.key.startswith(_DIFFERENCES) else ".3f"
    asked = f"({side} {condition.bound:{spec}})"
    if condition.key.startswith("controls_"):
        asked = "(> 0)"
    told = f"{name} {e:{spec}} {asked}"
    return f"{told}, {condition.missing}" if condition.missing else told


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(part.rstrip(".") for part in parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
