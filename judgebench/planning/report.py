"""The presentation of a plan: the chances by the number of answers, and what designs need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from judgebench.decisions.decision import Outcome
from judgebench.planning.design import Design
from judgebench.planning.plan import ENOUGH, SIZES, Plan
from judgebench.records import Estimate, Results
from judgebench.results.blocks import Block, Drawing, ReportSection
from judgebench.results.figures import new_figure
from judgebench.results.tables import Layout, Table, in_per_cent
from judgebench.text import percent

_TITLE = "The chance of each outcome by the number of labelled answers"
_COLOURS = {
    Outcome.REPLACE: "#1a7f4b", Outcome.ASSIST: "#0b5cad", Outcome.DO_NOT_USE: "#b3261e",
    Outcome.CANT_TELL: "#777777",
}  # fmt: skip
_TICKS = (100, 200, 500, 1000, 2000, 5000)  # more would touch each other
OVERSAMPLED = "severe oversampled"
_ENOUGH = percent(ENOUGH)
_OF_NEEDED = f"In brackets: the numbers of answers whose chance may be {_ENOUGH}."
_OF_CHANCES = (
    "Each chance is that of simulated studies, decided by the code that decides real ones; its "
    "interval is that of the simulation."
)


def plan_part(plan: Plan) -> ReportSection:
    """The part of the plan."""
    sentences = tuple(_sentences(plan))
    chances, designs = _chances_table(plan), _designs_table(plan)
    figure = Drawing("plan_chances", _TITLE, partial(draw_chances, plan))
    return ReportSection(
        "plan", "how many labels a study needs", Results(tuple(plan.rows())),
        (Block("Plan", sentences, (chances, designs), (figure,), lead=True),),
        _assumptions(plan.design),
        screen=(Block(text=sentences), Block(tables=(chances, designs))),
        headline=described(plan.design), answer=_needs(plan),
    )  # fmt: skip


def described(design: Design) -> str:
    """`3 annotators who agree on 85 %, 20 % of the answers severe`."""
    questions = f", {design.per_question} a question" if design.per_question > 1 else ""
    drawn = f", {OVERSAMPLED}" if design.oversampled else ""
    return (
        f"{design.n_annotators} annotators who agree on {percent(design.agreement)}, "
        f"{percent(design.severe_share)} of the answers severe{questions}{drawn}"
    )


def _sentences(plan: Plan) -> Iterator[str]:
    """Sentences: first for annotators who agree less, then on the numbers that the study needs."""
    goal, needed = plan.goal, plan.needed[plan.design]
    which, answers = goal or Outcome.CANT_TELL, int(needed.value or SIZES[-1])
    for less in (c for c in plan.others if c.design.agreement < plan.design.agreement):
        yield (
            f"If two annotators agree on {percent(less.design.agreement)} and not on "
            f"{percent(plan.design.agreement)}: {which.value} in "
            f"{in_per_cent(less.at(answers)[which])} of studies of {answers:,} answers."
        )
    yield _needs(plan)
    if plan.cheaper:
        yield f"Cheaper: {_cost(plan, plan.cheaper)}."
    elif plan.goal:
        yield "No other design is shown to need fewer labels."
    if plan.promised:
        ends = ", ".join(
            f"{which} in {in_per_cent(chance)}"
            for which, chance in plan.chances.at(plan.promised).items()
        )
        yield f"Studies of the promised {plan.promised:,} answers end in {ends}."


def _needs(plan: Plan) -> str:
    """`The chance of REPLACE is 80 % with …`."""
    if plan.goal and plan.needed[plan.design].value:
        return f"The chance of {plan.goal} is {_ENOUGH} with {_cost(plan, plan.design)}."
    return (
        f"No clear outcome has a chance of {_ENOUGH} within {SIZES[-1]:,} answers: such a judge "
        "lies close to what the rule allows."
    )


def _cost(plan: Plan, design: Design) -> str:
    """`400 [300, 520] answers by 3 annotators: 1,200 labels`."""
    needed = plan.needed[design]
    labels = f"{(needed.value or 0) * design.n_annotators:,.0f} labels"
    how = f" ({OVERSAMPLED})" if design.oversampled else ""
    return f"{_range(needed)} answers{how} by {design.n_annotators} annotators: {labels}"


def _range(needed: Estimate) -> str:
    """`400 [300, 520]`, or `> 5,000` for what is not within the sizes that are simulated."""
    most = f"> {SIZES[-1]:,}"
    value, low, high = (f"{n:,.0f}" if n else most for n in (needed.value, needed.low, needed.high))
    return f"{value} [{low}, {high}]" if needed.low else most


def _assumptions(design: Design) -> tuple[str, ...]:
    judge = design.judge_errors
    return (
        f"Taken as known: annotators err on {percent(design.error)} of the answers, the judge on "
        f"{percent(float(judge[-1]))} of the severe ones and on {percent(float(judge[0]))} of the "
        "others; errors are one label away. Errors that annotators and judge share are in no plan. "
        "One metric is planned: of several, plan the one that annotators agree on least.",
        _OF_CHANCES,
    )


def _chances_table(plan: Plan) -> Table:
    outcomes = tuple(which.value for which in Outcome)
    layout = Layout("plan_chances", _TITLE, ("Answers",), (_OF_CHANCES,), beside=outcomes)
    return layout.listing(
        [n, *(in_per_cent(chance) for chance in plan.chances.at(n).values())] for n in SIZES
    )


def _designs_table(plan: Plan) -> Table:
    title = f"Designs with a chance of {_ENOUGH} of {plan.goal or 'an outcome'}"
    stubs, beside = ("Annotators", "Who agree on", "Answers"), ("How many", "Labels")
    lines = (
        (d.n_annotators, percent(d.agreement), OVERSAMPLED if d.oversampled else "at random",
         _range(n), int((n.value or 0) * d.n_annotators) or None)
        for d, n in plan.needed.items()
    )  # fmt: skip
    return Layout("plan_designs", title, stubs, (_OF_NEEDED,), beside).listing(lines)


def draw_chances(plan: Plan, new: Any = None, ax: Any = None) -> Any:
    """Answers across, the chance of each outcome up."""
    axes = ax or (new or new_figure)(5.6, 3.4).subplots()
    answers = np.geomspace(SIZES[0], SIZES[-1], 120)
    chances = [plan.chances.at(n) for n in answers]
    for which, colour in _COLOURS.items():
        values = [chance[which].value for chance in chances]
        axes.plot(answers, values, color=colour, label=which.value)
    axes.axhline(ENOUGH, color="#444444", linestyle=":")
    axes.set(xscale="log", ylim=(0, 1), xlabel="Labelled answers", ylabel="Chance")
    axes.set_xticks(_TICKS, [f"{n:,}" for n in _TICKS])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda y, _: percent(y))
    axes.set_title(described(plan.design), loc="left", fontsize=9)
    axes.legend(fontsize=8)
    return axes.figure
