"""Outcomes, bounds, thresholds and what is missing, in words that every format uses."""

from __future__ import annotations

import math
from collections.abc import Mapping

from judgebench.decide.result import Condition, Decision, Decisions, MoreData, Outcome, State
from judgebench.report.words import counted
from judgebench.results.tables import DASH, NO_REASON, Cell

NO_DECISIONS = "There is no judge with human labels beside it, so there is nothing to decide."

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.REPLACE: "the judge may stand in for the human annotators on that metric",
    Outcome.ASSIST: "it may sort out, as a first-pass filter, the answers that no human need see",
    Outcome.DONT: "it may do neither",
    Outcome.CANT_TELL: "the data cannot carry a decision",
}
STATES = (
    f"{State.MET.value.capitalize()}: the whole interval lies on the right side of its bound. "
    f"{State.NOT_MET.value.capitalize()}: the whole interval lies on the wrong side. "
    f"{State.UNCLEAR.value.capitalize()}: neither."
)
_COUNTS = ("severe_items",)
_DIFFERENCES = ("humans_", "controls_")


def outcomes_sentence() -> str:
    """What the four outcomes mean."""
    return "; ".join(f"{outcome.value}: {words}" for outcome, words in OUTCOMES.items()) + "."


def rule_sentences(decisions: Decisions) -> tuple[str, ...]:
    """The rule's demands, and how a condition is held against its bound."""
    return (*decisions.in_words, STATES)


def is_count(condition: Condition) -> bool:
    """Whether the estimate of a condition is a number of items and no share."""
    return condition.key in _COUNTS


def is_difference(condition: Condition) -> bool:
    """Whether it is a difference, whose sign is to be shown."""
    return condition.key.startswith(_DIFFERENCES)


def bound_text(condition: Condition) -> str:
    """`at least 0.7`, `at most 0.05`, `above 0`."""
    if condition.at_least and condition.bound == 0:
        return "above 0"
    return f"{'at least' if condition.at_least else 'at most'} {condition.bound:,g}"


def estimate_cell(condition: Condition) -> Cell:
    """The estimate of a condition, with its sign where it is a difference."""
    e = condition.estimate
    if is_count(condition) and e.value is not None:
        return Cell(f"{e.value:,.0f}", remark=e.reason)
    return Cell(estimate=e, signed=is_difference(condition))


def missing_data(decision: Decision) -> str:
    """What data a decision still needs; empty where it is clear or its reason says it already."""
    more = decision.more
    said = decision.reason.rstrip(".")
    return "" if more is None or (said and said in more.reason) else more_sentence(more)


def more_sentence(more: MoreData) -> str:
    """How much more data would make a decision clear, and how surely; or why nobody can say."""
    if more.items is None:
        reason = (more.reason or NO_REASON).rstrip(".")
        return f"More data: {reason[0].lower()}{reason[1:]}."
    within = [
        *([counted(more.labels, "label")] if more.labels is not None else []),
        *(
            [f"{counted(more.severe, 'severe answer')} among them"]
            if more.severe is not None
            else []
        ),
    ]
    what = f"{counted(more.items, 'more answer')} with human labels"
    held = f" ({', '.join(within)})" if within else ""
    return f"To make it clear: about {what}{held}{_chance(more)}."


def _chance(more: MoreData) -> str:
    if more.clear is None:
        return ""
    towards = f", most of them with {more.towards.value}" if more.towards else ""
    return f"; {percent(more.clear)} of simulated studies of that size end clear{towards}"


def percent(share: float | None) -> str:
    """`84 %`; a dash where there is none."""
    return DASH if share is None else f"{100 * share:.0f} %"


def threshold_text(threshold: float) -> str:
    """`0.31`; infinite where only answers without a verdict are sent, or where all are."""
    if math.isinf(threshold):
        return "none is sent" if threshold > 0 else "all are sent"
    return f"{threshold:.3g}"
