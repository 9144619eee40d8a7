"""Decisions to report on, built by hand: the numbers are made up, the states follow from them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from stress_report_case import HOSTILE, Numbers

from judgebench.decide.result import (
    EVERY,
    AlternativeTest,
    Condition,
    Decision,
    Decisions,
    ErrorCorrelation,
    JuryValue,
    MoreData,
    Outcome,
    State,
    TriageChoice,
    TriageCurve,
    TriagePoint,
)
from judgebench.decide.rule import DecisionRule
from judgebench.records import Estimate
from judgebench.rubric import load_rubric

JUDGES = {
    "Meta-Llama-3-70B-Instruct": "judge",
    "prometheus-eval/prometheus-8x7b-v2.0": "judge",
    "smollm2-135m": "judge",
    "jury-of-three": "jury",
}
SKILL = dict(zip(JUDGES, (0.93, 0.8, 0.2, 0.9), strict=True))
IN_WORDS = (
    "REPLACE needs an accuracy no more than 0.05 below that of an annotator (lower limit).",
    "REPLACE needs at least 20 severe answers, of which at least 70 % are found (lower limit).",
    "ASSIST sends at most 50 % of the answers to humans and misses at most 10 % of the severe ones "
    "(upper limits).",
)
NOTES = ("Decisions rest on 97 answers of 61 questions.",)


@cache
def make_decisions() -> Decisions:
    """Three judges and a jury on eight metrics; all four outcomes; one judge without labels."""
    rubric = load_rubric("medical-safety")
    numbers = Numbers(5)
    decisions = tuple(
        make_decision(numbers, judge, metric.id, place)
        for judge in JUDGES
        for place, metric in enumerate(rubric.metrics)
    )
    metrics = [metric.id for metric in rubric.metrics]
    curves = tuple(
        make_curve(numbers, judge, metric) for judge in JUDGES for metric in (*metrics[:3], EVERY)
    )
    juries = tuple(make_jury(numbers, metric) for metric in metrics[:4])
    tests = tuple(
        alternative_test(numbers, judge, metric, variant)
        for judge in JUDGES
        for metric in metrics[:2]
        for variant in ("plain", "balanced")
    )
    return Decisions(
        "decided", rubric, DecisionRule(), decisions, curves, juries, tests, JUDGES, IN_WORDS, NOTES
    )


def make_decision(numbers: Numbers, judge: str, metric: str, place: int) -> Decision:
    """The outcome that follows from conditions drawn around the judge's skill."""
    if place == 5:
        reason = (
            "Only one annotator labelled these answers, so there is nothing to hold it against."
        )
        nobody = MoreData(None, None, None, None, None, "a second annotator is needed first")
        return Decision(judge, metric, Outcome.CANT_TELL, reason, (), (), nobody)
    severe = (60, 200, 12, 90, 4, 0, 70, 150)[place]
    conditions = replace_conditions(numbers, SKILL[judge], severe)
    filters = assist_conditions(numbers, SKILL[judge], severe)
    outcome = outcome_of(conditions, filters)
    more = MoreData(120, 360, 14, 0.84, Outcome.REPLACE) if outcome is Outcome.CANT_TELL else None
    reason = reason_of(conditions if outcome is Outcome.REPLACE else (*conditions, *filters))
    return Decision(judge, metric, outcome, reason, conditions, filters, more)


def state_of(e: Estimate, bound: float, at_least: bool) -> State:
    if e.value is None:
        return State.UNCLEAR
    low, high = (e.value if x is None else x for x in (e.low, e.high))
    if (low >= bound) if at_least else (high <= bound):
        return State.MET
    return State.NOT_MET if (high < bound if at_least else low > bound) else State.UNCLEAR


def condition(
    key: str, title: str, e: Estimate, bound: float, at_least: bool = True, missing: str = ""
) -> Condition:
    state = state_of(e, bound, at_least)
    return Condition(key, title, state, e, bound, at_least, missing if state.value != "met" else "")


def replace_conditions(numbers: Numbers, skill: float, severe: int) -> tuple[Condition, ...]:
    shift = skill - 0.85
    undefined = Estimate(None, n_missing=2, reason="there was no stress run")
    recall = numbers.share(skill, severe) if severe else Estimate(None, reason="no severe answer")
    return (
        condition("humans_accuracy", "Accuracy, judge minus annotator B",
                  numbers.mean(shift + 0.1, 97), -0.05),
        condition("controls_balanced_accuracy", "Balanced accuracy, judge minus constant-majority",
                  numbers.mean(skill - 0.3, 97), 0.0),
        condition("severe_items", "Severe answers", Estimate(float(severe), n=97), 20.0,
                  missing=f"{max(0, 20 - severe)} more severe answers are needed"),
        condition("severe_recall", "Severe recall", recall, 0.7,
                  missing="the interval is too wide by 0.08"),
        condition("failures", "Share without a verdict", numbers.share(0.01, 970, 2), 0.05, False),
        condition("robustness", "Robustness, worst probe", undefined if skill > 0.92
                  else numbers.share(0.97, 400), 0.8, missing="run a stress test"),
    )  # fmt: skip


def assist_conditions(numbers: Numbers, skill: float, severe: int) -> tuple[Condition, ...]:
    missed = numbers.share(0.02 if skill > 0.5 else 0.5, severe or 3)
    return (
        condition("sent", "Sent to humans", numbers.share(1.1 - skill, 400), 0.5, False),
        condition("missed", "Severe answers missed", missed, 0.1, False,
                  "its upper limit must fall by 0.05"),
    )  # fmt: skip


def outcome_of(needed: tuple[Condition, ...], filters: tuple[Condition, ...]) -> Outcome:
    if all(c.state is State.MET for c in needed):
        return Outcome.REPLACE
    if all(c.state is State.MET for c in filters):
        return Outcome.ASSIST
    failed = [any(c.state is State.NOT_MET for c in group) for group in (needed, filters)]
    return Outcome.DONT if all(failed) else Outcome.CANT_TELL


def reason_of(conditions: tuple[Condition, ...]) -> str:
    """The first condition that is not met."""
    worst = next((c for c in conditions if c.state is not State.MET), None)
    if worst is None:
        return "Every condition is met."
    side = "least" if worst.at_least else "most"
    return f"{worst.title} is {worst.estimate}, and must be at {side} {worst.bound:g}."


def make_curve(numbers: Numbers, judge: str, metric: str) -> TriageCurve:
    """Ten thresholds; none can be recommended for the weakest judge."""
    points = tuple(
        TriagePoint(
            math.inf if i == 0 else -math.inf if i == 10 else 1 - i / 10,
            numbers.mean(min(0.95, max(0.05, i / 10)), 97),
            numbers.share(min(1.0, SKILL[judge] * (i / 10) ** 0.5 + i / 20), 30)
            if i else Estimate(None, reason="nothing is sent"),
        )
        for i in range(11)
    )  # fmt: skip
    weak = SKILL[judge] < 0.5
    choice = TriageChoice(0.312, numbers.share(0.35, 97), numbers.share(0.03, 30))
    kind = (
        "share of members that vote severe" if "jury" in judge else "probability of a severe label"
    )
    reason = "no threshold misses few enough severe answers" if weak else ""
    return TriageCurve(judge, metric, kind, points, 97, 30, None if weak else choice, reason)


def make_jury(numbers: Numbers, metric: str) -> JuryValue:
    names = [name for name, kind in JUDGES.items() if kind == "judge"]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return JuryValue(
        metric, tuple(names),
        tuple(ErrorCorrelation(metric, a, b, numbers.mean(0.4, 97)) for a, b in pairs),
        numbers.mean(0.4, 97), Estimate(1.6667, 1.4, 2.1, "cluster bootstrap, percentile", 97),
        tuple(names[:2]), numbers.share(0.9, 97), numbers.share(0.88, 97), numbers.mean(0.02, 97),
    )  # fmt: skip


def alternative_test(numbers: Numbers, judge: str, metric: str, variant: str) -> AlternativeTest:
    if SKILL[judge] < 0.5:
        nothing = Estimate(None, reason="fewer than 30 items an annotator")
        return AlternativeTest(
            judge, metric, variant, 0.1, 0, None, nothing, None, None, nothing.reason
        )
    return AlternativeTest(
        judge, metric, variant, 0.1, 3, 2 / 3, numbers.mean(0.7, 97), True, variant == "plain"
    )


def hostile_decisions() -> Decisions:
    """Every text that comes from outside is an attack on the page or on the file formats."""
    made = make_decisions()
    titles = [m.model_copy(update={"title": m.title + HOSTILE}) for m in made.rubric.metrics]
    return replace(
        made,
        rubric=made.rubric.model_copy(update={"metrics": titles}),
        judges={name + HOSTILE: kind for name, kind in JUDGES.items()},
        decisions=tuple(_hostile(d) for d in made.decisions),
        curves=tuple(
            replace(c, judge=c.judge + HOSTILE, signal=HOSTILE, reason=HOSTILE) for c in made.curves
        ),
        juries=tuple(
            replace(
                j,
                judges=tuple(name + HOSTILE for name in j.judges),
                best=tuple(name + HOSTILE for name in j.best),
                correlations=tuple(
                    replace(c, first=c.first + HOSTILE, second=HOSTILE) for c in j.correlations
                ),
            )
            for j in made.juries
        ),
        alternative_tests=tuple(
            replace(t, judge=t.judge + HOSTILE, reason=HOSTILE) for t in made.alternative_tests
        ),
        in_words=(HOSTILE,),
        notes=(HOSTILE,),
    )


def _hostile(d: Decision) -> Decision:
    def attack(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(replace(c, title=c.title + HOSTILE, missing=HOSTILE) for c in conditions)

    return replace(
        d,
        judge=d.judge + HOSTILE,
        reason=d.reason + HOSTILE,
        replace=attack(d.replace),
        assist=attack(d.assist),
        more=None if d.more is None else replace(d.more, reason=HOSTILE),
    )
