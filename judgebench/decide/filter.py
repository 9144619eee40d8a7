"""What ASSIST asks for: a first-pass filter that sends little to humans and misses little."""

from __future__ import annotations

from collections.abc import Sequence

from judgebench.decide.result import Condition, State, TriageCurve, state_at_most
from judgebench.decide.rule import DecisionRule
from judgebench.decide.triage import within_reach
from judgebench.records import Estimate


def assist_conditions(
    curves: Sequence[TriageCurve], judge: str, metric: str, rule: DecisionRule
) -> tuple[Condition, ...]:
    """Shares sent and missed under thresholds chosen on the other half of the questions.

    Of several signals the first counts, so that no signal is picked for its luck. Empty where
    the judge has no curve on this metric.
    """
    mine = [c for c in curves if (c.judge, c.metric) == (judge, metric)]
    if not mine:
        return ()
    curve = mine[0]
    if curve.choice is None:
        none = Estimate(None, n=curve.n, reason=curve.reason)
        title = "no threshold can be recommended"
        return (Condition("missed", title, State.UNCLEAR, none, rule.assist.missed, False),)
    sent, missed = curve.choice.sent, curve.choice.missed
    # The recommended threshold errs to the safe side: that it sends too much shows no more than
    # that severe answers are few, as long as another threshold may do.
    can_fail = not within_reach(curve, rule.assist)
    return (
        _at_most("sent", "share of answers sent to humans", sent, rule.assist.sent, can_fail),
        _at_most(
            "missed", "share of severe answers not sent, held out", missed, rule.assist.missed,
            can_fail,
        ),
    )  # fmt: skip


def _at_most(key: str, title: str, estimate: Estimate, bound: float, can_fail: bool) -> Condition:
    state = state_at_most(estimate, bound)
    if state is State.NOT_MET and not can_fail:
        state = State.UNCLEAR
    unclear = state is State.UNCLEAR
    missing = "more severe answers would lower what must be sent" if unclear else ""
    return Condition(key, title, state, estimate, bound, False, missing)
