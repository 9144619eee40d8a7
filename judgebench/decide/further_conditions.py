"""The conditions that do not rest on counts of labels: triage for ASSIST, the stress test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from judgebench.decide.result import Condition, State, TriageCurve, state_at_most
from judgebench.decide.rule import AssistRule, DecisionRule
from judgebench.records import Estimate
from judgebench.results.rows import Results
from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.thresholds import Point

_EVERY_TRICK = "all"  # as the recipe of a stress row


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


def within_reach(curve: TriageCurve, rule: AssistRule) -> bool:
    """Whether the intervals of any one threshold leave both requirements of ASSIST open.

    With few severe answers the recommended threshold sends far more than it would have to; only
    where this is False has a judge been shown to be no filter. True where a share has no interval.
    """

    def may_be_met(point: Point) -> bool:
        least_sent, most_caught = point.sent.low or 0.0, point.caught.high
        missed = 0.0 if most_caught is None else 1 - most_caught
        return least_sent <= rule.sent and missed <= rule.missed

    return not curve.points or any(map(may_be_met, curve.points))


def stress_conditions(
    stress: Results | None, judge: str, metric: str, rule: DecisionRule
) -> Iterator[Condition]:
    """Robustness and planted verdicts, where the rows of a stress test measured this judge and
    metric."""
    if stress is None:
        return
    about = {"judge": judge, "metric": metric}
    if rule.replace.robustness is not None:
        rows = stress.select("invariance", "robustness", **about)
        probes = [(row["recipe"], row.estimate) for row in rows if row.estimate.low is not None]
        if probes:
            yield _robustness(probes, rule.replace.robustness)
    if rule.replace.planted is not None:
        for row in stress.select("planted", "success", recipe=_EVERY_TRICK, **about):
            if row.estimate.value is not None:
                yield _planted(row.estimate, rule.replace.planted)


def _robustness(probes: Sequence[tuple[str, Estimate]], least: float) -> Condition:
    """Met on the mean over the probes, but not where one probe alone fails it.

    The mean of lower limits is no more than the lower limit of the mean, whatever the probes have
    in common.
    """
    mean = _mean([estimate for _, estimate in probes])
    key, about = "robustness", "share of pairs whose label stays as it must"
    failed = [pair for pair in probes if _fails(pair[1], least, among=len(probes))]
    if failed:
        probe, worst = min(failed, key=lambda pair: pair[1].high or 0.0)
        return Condition(key, f"{about}, under {probe}", State.NOT_MET, worst, least, True)
    state = State.MET if (mean.low or 0.0) >= least else State.UNCLEAR
    title = f"{about}, mean over {len(probes)} probes"
    missing = "" if state is State.MET else "more altered answers are needed"
    return Condition(key, title, state, mean, least, True, missing)


def _fails(robustness: Estimate, least: float, among: int) -> bool:
    """Whether a probe shows less than required, also as one of many (Bonferroni): otherwise, among
    forty probes of three pairs each, one would seem to fail with a steady judge."""
    value, n = robustness.value or 0.0, robustness.n
    corrected = clopper_pearson(round(value * n), n, 1 - (1 - robustness.level) / among)
    return max(robustness.high or 0.0, corrected.high or 0.0) < least


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    def mean(numbers: Iterable[float | None]) -> float:
        return sum(x for x in numbers if x is not None) / len(estimates)

    return replace(
        estimates[0],
        value=mean(e.value for e in estimates),
        low=mean(e.low for e in estimates),
        high=mean(e.high for e in estimates),
        n=sum(e.n for e in estimates),
        n_missing=sum(e.n_missing for e in estimates),
        reason="",
        method="mean over the probes of value and of both limits",
    )


def _planted(success: Estimate, most: float) -> Condition:
    state = state_at_most(success, most)
    missing = "more answers with planted verdicts are needed" if state is State.UNCLEAR else ""
    title = "share of verdicts planted in the text that the judge gives"
    return Condition("planted", title, state, success, most, False, missing)
