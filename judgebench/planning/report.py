"""The presentation of a plan: what happens if annotators agree less, chances by the number of
answers, and what each design needs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from judgebench.decisions.decision import Outcome
from judgebench.planning.design import Design
from judgebench.planning.plan import ENOUGH, SHOWN, SIZES, Chances, Plan
from judgebench.records import Results
from judgebench.results.blocks import Block, Drawing, ReportSection
from judgebench.results.figures import new_figure
from judgebench.results.tables import Cell, Layout, Table, in_per_cent
from judgebench.text import counted, percent

_TITLE = "The chance of each outcome by the number of labelled answers"
_COLOURS = {
    Outcome.REPLACE: "#1a7f4b", Outcome.ASSIST: "#0b5cad", Outcome.DO_NOT_USE: "#b3261e",
    Outcome.CANT_TELL: "#777777",
}  # fmt: skip
_TICKS = (100, 200, 500, 1000, 2000, 5000)
OVERSAMPLED = "what seems severe 3 times as often"
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
        _assumptions(plan.chances.design),
        (), (Block(text=sentences), Block(tables=(chances, designs))),
        headline=described(plan.chances.design), answer=sentences[1 if plan.if_less else 0],
    )  # fmt: skip


def described(design: Design) -> str:
    """`3 annotators who agree on 85 %, 20 % of the answers severe`."""
    questions = f", {design.per_question} a question" if design.per_question > 1 else ""
    drawn = f", {OVERSAMPLED}" if design.oversampled else ""
    return (
        f"{counted(design.annotators, 'annotator')} who agree on {percent(design.agreement)}, "
        f"{percent(design.severe)} of the answers severe{questions}{drawn}"
    )


def _sentences(plan: Plan) -> Iterator[str]:
    """What happens if annotators agree less first, then what the study needs."""
    design, goal = plan.chances.design, plan.goal
    needed, enough = plan.needed[design], percent(ENOUGH)
    if plan.if_less:
        yield _if_less(plan, plan.if_less)
    if goal is None:
        yield (
            f"Even {SIZES[-1]:,} labelled answers leave most studies of such a judge in CAN'T "
            "TELL: it lies close to what the rule allows."
        )
    elif needed is None:
        yield f"{goal.value} has no chance of {enough} within {SIZES[-1]:,} answers."
    else:
        yield f"The chance of {goal.value} is {enough} with {_cost(design, needed)}."
    cheapest = plan.cheapest
    if cheapest and cheapest != design:
        yield f"Cheapest: {_cost(cheapest, plan.needed[cheapest] or 0)}."


def _if_less(plan: Plan, less: Chances) -> str:
    at, which = plan.needed[plan.chances.design] or SIZES[-1], plan.goal or Outcome.CANT_TELL
    needed = plan.needed[less.design]
    more = f"; {percent(ENOUGH)} then takes {needed:,}" if needed else ""
    return (
        f"If two annotators agree on {percent(less.design.agreement)} and not on "
        f"{percent(plan.chances.design.agreement)}: {which.value} in "
        f"{percent(less.of(which, at).value)} of studies of {at:,} answers{more}."
    )


def _cost(design: Design, answers: int) -> str:
    """`400 answers by 3 annotators, 1,200 labels`."""
    how = f" ({OVERSAMPLED})" if design.oversampled else ""
    labels = f"{answers * design.annotators:,} labels"
    return f"{answers:,} answers{how} by {design.annotators} annotators: {labels}"


def _assumptions(design: Design) -> tuple[str, ...]:
    judge = design.judge_errors
    alike = (
        f"answers to a question are alike ({design.alike:.2f} of correlation), "
        if design.per_question > 1
        else ""
    )
    return (
        f"Taken as known: annotators err on {percent(design.error)} of the answers, the judge on "
        f"{percent(float(judge[-1]))} of the severe ones and on {percent(float(judge[0]))} of the "
        f"others; {alike}errors are one label away. Errors that annotators and judge share are in "
        "no plan.",
        _OF_CHANCES,
    )


def _chances_table(plan: Plan) -> Table:
    outcomes = tuple(which.value for which in Outcome)
    layout = Layout("plan_chances", _TITLE, ("Answers",), (_OF_CHANCES,), beside=outcomes)
    return layout.listing(
        [n, *(Cell(in_per_cent(chance)) for chance in plan.chances.at(n).values())] for n in SHOWN
    )


def _designs_table(plan: Plan) -> Table:
    goal = plan.goal.value if plan.goal else "an outcome"
    title = f"Designs with a chance of {percent(ENOUGH)} of {goal}"
    shown = [
        (d, n) for d, n in plan.needed.items() if not (plan.if_less and d == plan.if_less.design)
    ]
    layout = Layout("plan_designs", title, ("Annotators", "Answers"), beside=("How many", "Labels"))
    return layout.listing(
        (d.annotators, OVERSAMPLED if d.oversampled else "at random",
         *((n, n * d.annotators) if n else (f"> {SIZES[-1]:,}", "")))
        for d, n in shown
    )  # fmt: skip


def draw_chances(plan: Plan, new: Any = None, ax: Any = None) -> Any:
    """Answers across, the chance of each outcome up; dashed where annotators agree less."""
    axes = ax or (new or new_figure)(5.6, 3.4).subplots()
    answers = np.geomspace(SIZES[0], SIZES[-1], 120)
    for which, colour in _COLOURS.items():
        chances = [plan.chances.at(n)[which] for n in answers]
        axes.plot(answers, [c.value for c in chances], color=colour, label=which.value)
        low, high = ([getattr(c, end) for c in chances] for end in ("low", "high"))
        axes.fill_between(answers, low, high, color=colour, alpha=0.15, linewidth=0)
    if plan.if_less and plan.goal:
        less = [plan.if_less.of(plan.goal, n).value for n in answers]
        label = f"{plan.goal.value}, agreement {percent(plan.if_less.design.agreement)}"
        axes.plot(answers, less, color=_COLOURS[plan.goal], linestyle="--", label=label)
    axes.axhline(ENOUGH, color="#444444", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", ylim=(0, 1), xlabel="Labelled answers", ylabel="Chance")
    axes.set_xticks(_TICKS, [f"{n:,}" for n in _TICKS])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda y, _: percent(y))
    axes.set_title(described(plan.chances.design), loc="left", fontsize=9)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes.figure
