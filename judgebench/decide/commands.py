"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

from typing import Annotated

import typer

from judgebench.cli.options import (
    Annotators,
    AsJudge,
    DecisionRuleOption,
    Rule,
    RunDir,
    Scoring,
    Ties,
)
from judgebench.cli.score import open_study

NOT_REACHED = 3  # exit code where an outcome that --require names was not reached


def decide(
    run: RunDir,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="OUTCOME:METRIC or OUTCOME:METRIC:JUDGE; the exit code is "
            f"{NOT_REACHED} if it is not reached. Repeatable."
        ),
    ] = None,
    rule: DecisionRuleOption = None,
    as_judge: AsJudge = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
) -> None:
    """Decide for each metric whether a judge can replace annotators, assist them, or neither.

    A required ASSIST is also met by REPLACE; without a judge's name, any judge may meet it.
    """
    from rich.console import Console

    from judgebench import api
    from judgebench.decide.outcome import demands, unreached
    from judgebench.report.terminal import print_parts

    study = open_study(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    decisions = api.decide(study, rule)
    asked = demands(require or (), decisions)
    console = Console()
    print_parts([decisions.part], console)
    missed = unreached(asked, decisions)
    for demand in missed:
        console.print(f"not reached: {demand}", style="red", highlight=False, markup=False)
    if missed:
        raise typer.Exit(NOT_REACHED)
