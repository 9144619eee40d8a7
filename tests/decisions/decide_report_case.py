"""Decisions to report on, built by hand: the numbers are made up, the states follow from them."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from random import Random

from judgebench.decisions.decision import (
    EVERY,
    Condition,
    Context,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    State,
    TriageCurve,
    outcome_of,
)
from judgebench.decisions.rule import DecisionRule
from judgebench.decisions.sentences import reason_for
from judgebench.records import Estimate, Results, Row
from judgebench.rubric import load_rubric
from judgebench.stats.classification import Choice, Point
from judgebench.stats.intervals import clopper_pearson

HOSTILE = (
    "</script><script>document.title='pwned'</script><!--{{ 7*7 }} {% raw %}\u2028 =1 | $x_1$ \\"
)
JUDGES = {
    "Meta-Llama-3-70B-Instruct": "judge",
    "prometheus-eval/prometheus-8x7b-v2.0": "judge",
    "smollm2-135m": "judge",
    "jury-of-three": "jury",
}
SKILL = dict(zip(JUDGES, (0.93, 0.8, 0.2, 0.9), strict=True))
NOTES = ("Decisions rest on 97 answers of 61 questions.",)


class Numbers:
    """Shares drawn around a rate, with their exact intervals."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)

    def share(self, rate: float, n: int, missing: int = 0) -> Estimate:
        hits = sum(self.random.random() < rate for _ in range(n))
        found = clopper_pearson(hits, n)
        return Estimate(found.value, found.low, found.high, found.method, n, missing)

    def mean(self, value: float, n: int) -> Estimate:
        return Estimate(value, value - 0.1, value + 0.1, "cluster bootstrap, percentile", n)


@cache
def make_decisions() -> Decisions:
    """Three judges and a jury on eight metrics; all four outcomes; one judge without labels."""
    rubric = load_rubric("medical-safety")
    numbers = Numbers(5)
    decisions = tuple(
        make_decision(numbers, judge, metric.id, place)
        for place, metric in enumerate(rubric.metrics)
        for judge in JUDGES
    )
    metrics = [metric.id for metric in rubric.metrics]
    curves = tuple(
        make_curve(numbers, judge, metric) for judge in JUDGES for metric in (*metrics[:3], EVERY)
    )
    tests = tuple(
        row
        for judge in JUDGES
        for metric in metrics[:2]
        for row in alternative_test(numbers, judge, metric)
    )
    context = partial(Context, rows=Results(tests), notes=NOTES)
    return Decisions("decided", rubric, DecisionRule(), decisions, curves, JUDGES, context)


def in_context(made: Decisions, **parts: object) -> Decisions:
    """The decisions with other parts beside them."""
    return replace(made, describe=lambda: replace(made.context, **parts))


def make_decision(numbers: Numbers, judge: str, metric: str, place: int) -> Decision:
    """The outcome that follows from conditions drawn around the judge's skill."""
    if place == 5:
        reason = (
            "Only one annotator labelled these answers, so there is nothing to hold it against."
        )
        nobody = partial(MoreData, reason="a second annotator is needed first")
        return Decision(judge, metric, Outcome.CANT_TELL, reason, plan=nobody)
    severe = (60, 200, 12, 90, 4, 0, 70, 150)[place]
    conditions = replace_conditions(numbers, SKILL[judge], severe)
    filters = assist_conditions(numbers, SKILL[judge], severe)
    outcome = outcome_of(conditions, filters)
    needed = partial(MoreData, 120, 360, 14, 0.84, Outcome.REPLACE, "", 75, 97, 61)
    more = needed if outcome is Outcome.CANT_TELL else None
    reason, told = reason_for(outcome, conditions, filters)
    return Decision(judge, metric, outcome, reason, told, conditions, filters, more)


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
        condition("controls", "Balanced accuracy, judge minus constant-majority",
                  numbers.mean(skill - 0.3, 97), 0.0),
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


def make_curve(numbers: Numbers, judge: str, metric: str) -> TriageCurve:
    """Ten thresholds; none can be recommended for the weakest judge."""
    points = tuple(
        Point(
            math.inf if i == 0 else -math.inf if i == 10 else 1 - i / 10,
            numbers.mean(min(0.95, max(0.05, i / 10)), 97),
            numbers.share(min(1.0, SKILL[judge] * (i / 10) ** 0.5 + i / 20), 30)
            if i else Estimate(None, reason="nothing is sent"),
        )
        for i in range(11)
    )  # fmt: skip
    weak = SKILL[judge] < 0.5
    sent, missed = numbers.share(0.35, 97), numbers.share(0.03, 30)
    choice = Choice(0.312, sent, missed, sent, missed)
    kind = (
        "share of members that vote severe" if "jury" in judge else "probability of a severe label"
    )
    reason = "no threshold misses few enough severe answers" if weak else ""
    return TriageCurve(judge, metric, kind, points, 97, 30, None if weak else choice, reason)


def alternative_test(numbers: Numbers, judge: str, metric: str) -> Iterator[Row]:
    nothing = Estimate(None, reason="fewer than 30 items an annotator")
    weak = SKILL[judge] < 0.5
    for statistic, estimate in {
        "epsilon": Estimate(0.1),
        "annotators": Estimate(0 if weak else 3),
        "winning_rate": nothing if weak else Estimate(2 / 3),
        "advantage": nothing if weak else numbers.mean(0.7, 97),
        "passes": nothing if weak else Estimate(1.0),
        "guarded": nothing if weak else Estimate(1.0),
    }.items():
        yield Row("alternative_test", statistic, estimate, judge, metric)


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
        describe=lambda: Context(
            Results(tuple(_hostile_row(row) for row in made.context.rows)), notes=(HOSTILE,)
        ),
    )


def _hostile_row(row: Row) -> Row:
    judge = row.judge and row.judge + HOSTILE
    who = row["who"] if row.analysis == "alternative_test" else row["who"] + HOSTILE
    e = (
        replace(row.estimate, reason=HOSTILE)
        if row.analysis == "alternative_test"
        else row.estimate
    )
    return replace(row, judge=judge, keys={"who": who}, estimate=e)


def _hostile(d: Decision) -> Decision:
    def attack(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(replace(c, title=c.title + HOSTILE, missing=HOSTILE) for c in conditions)

    return replace(
        d,
        judge=d.judge + HOSTILE,
        reason=d.reason + HOSTILE,
        replace=attack(d.replace),
        assist=attack(d.assist),
        plan=d.plan and partial(MoreData, reason=HOSTILE),
    )
