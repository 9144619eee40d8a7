"""Reasons, bounds, thresholds and missing data in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgebench.decisions.result import (
    AT_SEVERE,
    Condition,
    InCamp,
    Outcome,
    State,
    percent,
)
from judgebench.words import counted, listed

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.REPLACE: "the judge may replace the human annotators on that metric",
    Outcome.ASSIST: "as a first-pass filter, it may sort out answers that no human needs to read",
    Outcome.DO_NOT_USE: "it may do neither for single answers",
    Outcome.CANT_TELL: "the data show neither",
}
STATES = (
    f"{State.MET.value.capitalize()}: the whole interval lies on the right side of its bound. "
    f"{State.NOT_MET.value.capitalize()}: the whole interval lies on the wrong side. "
    f"{State.UNCLEAR.value.capitalize()}: neither."
)
_NAMES = {
    "humans_accuracy": "agreement gap",
    "humans_balanced_accuracy": "balanced agreement gap",
    "humans_distance": "levels further from the others than annotators",
    "systems": "agreement gap on {rival}",
    "controls_accuracy": "lead over {rival}",
    "controls_balanced_accuracy": "balanced lead over {rival}",
    "severe_items": "severe answers",
    "severe_recall": "severe recall",
    "severe_gap": "severe recall gap",
    "failures": "without a label",
    "robustness": "robustness",
    "planted": "planted verdicts followed",
    "sent": "new answers sent to humans, expected",
    "missed": "new severe answers missed, expected",
}
_WITH_EACH_OTHER = "they agree with each other"
IN_SIGHT = "Labels were made in sight of a model's label"
NO_QUESTIONS = (
    "No column says which items belong to the same question, so that intervals may be too narrow "
    "for REPLACE: add a column `question` or `group`, or declare with --independent-items (or "
    "`truth: {independent_items: true}`) that each item is a question of its own"
)
NOT_KNOWN_BLIND = (
    "It is not known whether the labels were made without sight of any model's label; declare it "
    "with --blind yes or `truth: {blind: yes}`."
)
OF_ONE = (
    "One annotator's labels are taken for the truth: what that annotator misses, nobody knows, and "
    "more severe answers than expected may be missed."
)
_AGREEMENT = ("humans_accuracy", "humans_balanced_accuracy")
_ABOVE = "more than the margin: labels leave open how much better the typical annotator is"
_SHARED = "If annotators and judge do not share errors,"


def outcomes_sentence() -> str:
    """A sentence with the meaning of the four outcomes."""
    return "; ".join(f"{outcome.value}: {words}" for outcome, words in OUTCOMES.items()) + "."


def reason_for(
    outcome: Outcome, replace: Sequence[Condition], assist: Sequence[Condition]
) -> tuple[str, str]:
    """A sentence to act on, and the numbers that the outcome rests on."""
    failed = [c for c in replace if c.state is State.NOT_MET]
    unclear = [c for c in replace if c.state is State.UNCLEAR]
    if outcome is Outcome.REPLACE:
        return f"{_SHARED} it {_clauses(_successes(replace))}.", _numbers(replace)
    if outcome is Outcome.ASSIST:
        but = f"it must not replace annotators: it {_clauses(_failures(failed))}"
        if not failed:
            but = "whether it may replace annotators is unclear"
        sends = " that sends what it labels severe," if AT_SEVERE in assist[0].title else ""
        does = _clauses(_failures(assist))
        sentence = f"As a first-pass filter{sends} it is expected to {does}; {but}."
        return sentence, _numbers([*assist, *(failed or unclear)])
    if outcome is Outcome.DO_NOT_USE:
        return f"It {_clauses(_failures(failed))}.", _numbers([*failed, *_no_filter(assist)])
    return _uncertainty(unclear), _numbers([*unclear, *_no_filter(assist)])


def _no_filter(assist: Sequence[Condition]) -> list[Condition]:
    """The condition that keeps the judge from being a filter: one that fails, else an unclear
    one."""
    for state in (State.NOT_MET, State.UNCLEAR):
        if found := [c for c in assist if c.state is state]:
            return found[:1]
    return []


def _successes(conditions: Sequence[Condition]) -> Iterator[str]:
    by_key = {c.key: c for c in conditions}
    keys = {key.split("_")[0] for key in by_key}
    if humans := [c for c in conditions if c.key in _AGREEMENT]:
        yield f"agrees with annotators {_at_most(humans[0], 'less')} {_WITH_EACH_OTHER}"
    if "controls" in keys:
        yield "does better than every control judge"
    yield from _failures([c for c in conditions if c.key == "severe_recall"])
    if gap := by_key.get("severe_gap"):
        yield f"misses severe answers {_at_most(gap, 'more')} an annotator"
    if not keys & {"humans", "controls", "severe"}:
        yield "meets every requirement"


def _at_most(c: Condition, less: str) -> str:
    """`at most 5 points less often than`, by what the condition requires."""
    points = round(-100 * c.bound)
    return f"at most {counted(points, 'point')} {less} often than" if points > 0 else "as often as"


def _failures(conditions: Sequence[Condition]) -> Iterator[str]:
    """Clauses on what a judge did, as its conditions measured it; what holds by both measures is
    said once."""
    said: set[str] = set()
    for c in conditions:
        value, n = c.estimate.value or 0.0, c.estimate.n
        points = counted(round(abs(100 * value)), "point")
        about = c.key.split("_")[0]
        # Who agrees too rarely overall is also far off, and falls short on some system.
        if about in said or (about == "systems" and "humans" in said):
            continue
        said.add(about)
        if c.key in _AGREEMENT:
            equally = ", counting every label equally," if "balanced" in c.key else ""
            yield f"agrees with annotators{equally} {points} less often than {_WITH_EACH_OTHER}"
        elif c.key.startswith("controls_"):
            yield f"does no better than the control judge {c.rival}"
        else:
            yield {
                "severe_recall": f"found {value * n:.0f} of {n:,} severe answers",
                "severe_gap": f"missed severe answers {points} more often than an annotator",
                "humans_distance": f"is {value:.2f} levels further from the others than they are",
                "systems": f"agrees {points} less often than annotators on answers of {c.rival}",
                "failures": f"gave no label on {percent(value)} of the answers",
                "robustness": f"changed {percent(1 - value)} of its labels where it must not",
                "planted": f"followed {percent(value)} of the verdicts planted in the text",
                "sent": f"send {percent(value)} of new answers to humans",
                "missed": f"miss {percent(value)} of the severe ones",
            }[c.key]


def _uncertainty(conditions: Sequence[Condition]) -> str:
    """A sentence on the requirements that the data leave open, and why."""
    known = [c for c in conditions if c.estimate.value is not None]
    items = [c for c in known if c.key == "severe_items"]
    beaten = [c for c in known if c.key.startswith("controls_") and c.missing]
    others = [c for c in known if c not in items and c not in beaten]
    no_better = (f"the judge does no better than the control judge {c.rival}" for c in beaten)
    parts = [f"{said}; nor do the annotators" for said in dict.fromkeys(no_better)]
    if others:
        clauses = _clauses(dict.fromkeys(map(_open, others)))
        few = "The data are too few to tell whether the judge"
        if all(map(_looks_met, others)):
            few = "The judge looks good enough, but the data are too few to be sure that it"
        parts.append(f"{few} {clauses}")
    parts += [
        f"there are {c.estimate.value:,.0f} severe answers, and {c.bound:,.0f} are required"
        for c in items
    ]
    parts += dict.fromkeys(
        c.estimate.reason.rstrip(".") for c in conditions if c.estimate.value is None
    )
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _open(c: Condition) -> str:
    """A clause on what it would take for an unclear condition to be met."""
    if c.key in _AGREEMENT:
        return f"agrees with annotators {_at_most(c, 'less')} {_WITH_EACH_OTHER}"
    if c.key.startswith("controls_"):
        return f"does better than the control judge {c.rival}"
    return {
        "severe_recall": f"finds {percent(c.bound)} of the severe answers",
        "severe_gap": f"misses severe answers {_at_most(c, 'more')} an annotator",
        "humans_distance": f"is at most {c.bound:.2f} levels further from the others than they are",
        "failures": f"leaves at most {percent(c.bound)} of the answers without a label",
        "robustness": "keeps its labels in the stress test",
        "planted": "resists verdicts planted in the text",
    }[c.key]


def _looks_met(c: Condition) -> bool:
    value = c.estimate.value or 0.0
    return value >= c.bound if c.at_least else value <= c.bound


def camps_sentence(camps: Sequence[InCamp]) -> str:
    """A sentence: no single bar exists, who is in which camp, and what each would decide."""
    count = {2: "two", 3: "three"}[len(camps)]
    who = "; ".join(listed(camp.names) for camp in camps)
    each = "; ".join(f"by {listed(camp.names)} alone, {camp.outcome.value}" for camp in camps)
    return (
        f"The annotators are in {count} camps that agree within and differ across ({who}), so that "
        f"no single bar exists. Decided {each}"
    )


def _clauses(parts: Iterable[str]) -> str:
    """`agrees with annotators, beats every control, and found 8 of 10`."""
    *head, last = [*parts] or [""]
    comma = "," if len(head) > 1 else ""
    return f"{', '.join(head)}{comma} and {last}" if head else last


def _numbers(conditions: Sequence[Condition]) -> str:
    """`severe recall 0.812 [0.774, 0.850], required ≥ 0.700 · …`"""
    return " · ".join(map(_measured, conditions))


def _measured(c: Condition) -> str:
    e, name = c.estimate, _NAMES[c.key].replace("{rival}", c.rival)
    if e.value is None:
        return f"{name} undefined: {e.reason.rstrip('.')}"
    spec = ".0f" if c.key == "severe_items" else "+.3f" if c.is_difference else ".3f"
    bound = "> 0" if _above_zero(c) else f"{'≥' if c.at_least else '≤'} {c.bound:{spec}}"
    explained = _ABOVE if c.key in _AGREEMENT and c.bound > 0 else c.missing
    missing = f" ({explained})" if explained and c.key != "severe_items" else ""
    return f"{name} {e:{spec}}, required {bound}{missing}"


def _above_zero(c: Condition) -> bool:
    return c.key.startswith("controls_")


def bound_text(c: Condition) -> str:
    """`at least 0.7`, `at most 0.05`, `above 0`."""
    if _above_zero(c):
        return "above 0"
    return f"{'at least' if c.at_least else 'at most'} {round(c.bound, 3):,g}"


def threshold_text(threshold: float) -> str:
    """`0.31`; infinite where only answers without a verdict are sent, or where all are."""
    if math.isinf(threshold):
        return "none is sent" if threshold > 0 else "all are sent"
    return f"{threshold:.3g}"
