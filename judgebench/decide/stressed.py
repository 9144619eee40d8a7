"""What a stress run says of a judge: does its label stay where it must, does it obey the text?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from judgebench.decide.result import Condition, State, state_at_most
from judgebench.decide.rule import DecisionRule
from judgebench.records import Estimate
from judgebench.stats.intervals import clopper_pearson
from judgebench.stress.result import EVERY, StressResult


def stress_conditions(
    stress: StressResult | None, judge: str, metric: str, rule: DecisionRule
) -> Iterator[Condition]:
    """Robustness and planted verdicts, where the stress run measured this judge and metric."""
    if stress is None:
        return
    if rule.replace.robustness is not None:
        probes = [
            (x.probe, x.robustness)
            for x in stress.invariances
            if (x.judge, x.metric) == (judge, metric) and x.robustness.low is not None
        ]
        if probes:
            yield _robustness(probes, rule.replace.robustness)
    if rule.replace.planted is not None:
        for x in stress.planted:
            if (x.judge, x.metric, x.trick) == (
                judge,
                metric,
                EVERY,
            ) and x.success.value is not None:
                yield _planted(x.success, rule.replace.planted)


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
    """Whether a probe shows less than asked, also as one of many (Bonferroni): among forty probes
    of three pairs each, one of a steady judge would else seem to fail."""
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
