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
from judgebench.results.tables import Cell, Layout, Table, in_per_cent
from judgebench.text import percent, wrapped

_TITLE = "The chance of each outcome by the number of labelled answers"
_COLOURS = ("#1a7f4b", "#0b5cad", "#b3261e", "#777777")  # of outcomes
_TICKS = (100, 200, 500, 1000, 2000, 5000)  # more would touch each other
_ENOUGH = percent(ENOUGH)
_OF_NEEDED = (
    "In brackets: the least and the greatest number that the simulation leaves possible. Designs "
    "with a wide range had few simulated studies: plan such a design by itself before choosing it."
)
_OF_CHANCES = (
    "Each chance is that of simulated studies, decided by the code that decides real ones; its "
    "interval is that of the simulation. An outcome that none of them had has no column."
)


def plan_part(plan: Plan) -> ReportSection:
    """The part of the plan."""
    block = Block(
        "", tuple(_sentences(plan)), (_chances_table(plan), _designs_table(plan)),
        (Drawing("plan_chances", _TITLE, partial(draw_chances, plan)),), lead=True, on_screen=True,
    )  # fmt: skip
    return ReportSection(
        "plan", "how many labels a study needs", Results(tuple(plan.rows())), (block,),
        _assumptions(plan.design), (described(plan.design),),
        headline=described(plan.design), answer=_needs(plan),
    )  # fmt: skip


def described(design: Design) -> str:
    """`3 annotators who agree on 85 %; 20 % of the answers severe, 1 to a question; 2 labels;
    accuracy of judge minus annotator: +3 points, on severe answers +3`."""
    return (
        f"{_annotators(design)}; {100 * design.severe_share:.3g} % of the answers severe, "
        f"{design.per_question} to a question; {design.n_labels} labels; accuracy of judge minus "
        f"annotator: {100 * design.judge:+.3g} points, on severe answers "
        f"{100 * (design.error - design.judge_errors[-1]):+.3g}"
    )


def _annotators(design: Design) -> str:
    """`3 annotators who agree on 85 %, severe oversampled`."""
    drawn = ", severe oversampled" if design.oversampled else ""
    return f"{design.n_annotators} annotators who agree on {100 * design.agreement:.3g} %{drawn}"


def _sentences(plan: Plan) -> Iterator[str]:
    """Sentences: first for annotators who agree less, then on the numbers that the study needs."""
    which = plan.goal or Outcome.CANT_TELL
    answers = plan.needed[plan.design].value or SIZES[-1]
    for other in plan.others:
        if other.design.agreement < plan.design.agreement:
            yield (
                f"If two annotators agree on only {100 * other.design.agreement:.3g} %: {which} in "
                f"{in_per_cent(other.at(answers)[which])} of studies of {answers:,.0f} answers."
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
    """`400 [300, 520] answers by 3 annotators who agree on 85 %: 1,200 [900, 1,560] labels`."""
    needed = plan.needed[design]
    return (
        f"{_range(needed)} answers by {_annotators(design)}: "
        f"{_range(needed, design.n_annotators)} labels"
    )


def _range(needed: Estimate, times: int = 1) -> str:
    """`400 [300, 520]`, or `> 5,000` for what is not within the sizes that are simulated; so many
    times."""
    most = f">\u00a0{SIZES[-1] * times:,}"
    value, low, high = (
        f"{n * times:,.0f}" if n else most for n in (needed.value, needed.low, needed.high)
    )
    return f"{value} [{low}, {high}]" if needed.low else most


def _assumptions(design: Design) -> tuple[str, ...]:
    other, *_, severe = design.judge_errors.tolist()
    return (
        f"Taken as known: annotators err on {percent(design.error)} of the answers, the judge on "
        f"{percent(severe)} of the severe ones and on {percent(other)} of the "
        "others; errors are one label away. Errors that annotators and judge share are in no plan. "
        "One metric is planned: of several, plan the one that annotators agree on least.",
        _OF_CHANCES,
    )


def _chances_table(plan: Plan) -> Table:
    # The likeliest first, for narrow screens.
    shown = tuple(
        which
        for n, which in sorted(zip(-plan.chances.ended.sum(axis=0), Outcome, strict=True))
        if n
    )
    chances = {n: plan.chances.at(n) for n in SIZES}
    return Layout("plan_chances", _TITLE, ("Answers",), (_OF_CHANCES,), shown).listing(
        [n, *(Cell(estimate=chances[n][which], percent=True) for which in shown)] for n in SIZES
    )


def _designs_table(plan: Plan) -> Table:
    title = f"Designs with a chance of {_ENOUGH} of {plan.goal or 'an outcome'}"
    columns = ("Answers", "Labels")
    return Layout("plan_designs", title, ("Design",), (_OF_NEEDED,), columns).listing(
        (_annotators(design), _range(needed), _range(needed, design.n_annotators))
        for design, needed in plan.needed.items()
    )


def draw_chances(plan: Plan, new: Any = None, ax: Any = None) -> Any:
    """Answers across, the chance of each outcome up."""
    axes = ax or (new or new_figure)(5.6, 3.4).subplots()
    answers = np.geomspace(SIZES[0], SIZES[-1], 120)
    chances = [plan.chances.at(n) for n in answers]
    for which, colour in zip(Outcome, _COLOURS, strict=True):
        line = [chance[which] for chance in chances]
        axes.plot(answers, [e.value for e in line], color=colour, label=which.value)
        axes.fill_between(
            answers, [e.low for e in line], [e.high for e in line], color=colour, alpha=0.15
        )
    axes.axhline(ENOUGH, color="#444444", linestyle=":")
    axes.set(xscale="log", ylim=(0, 1), xlabel="Labelled answers", ylabel="Chance")
    axes.set_xticks(_TICKS)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter(lambda y, _: percent(y))
    axes.set_title(wrapped(described(plan.design), 72), loc="left", fontsize=9)
    axes.legend(fontsize=8)
    return axes.figure
