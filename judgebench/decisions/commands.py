"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

from typing import Annotated

import typer

from judgebench.cli.options import (
    AllowIncomplete,
    Annotators,
    AnswersOption,
    AsJudge,
    Blind,
    DecisionRuleOption,
    ExpectedOption,
    Files,
    IndependentItems,
    LabelsOption,
    Rule,
    RunOrFiles,
    Scoring,
    StudyRubric,
    Ties,
    VerdictsOption,
)
from judgebench.cli.score import open_study, page_of
from judgebench.cli.show import AsJson, Output, Quiet, Verbose, show

NOT_REACHED = 3  # exit code where an outcome that --require names was not reached


def decide(
    run: RunOrFiles = None,
    labels: LabelsOption = None,
    verdicts: VerdictsOption = None,
    answers: AnswersOption = None,
    rubric: StudyRubric = None,
    expected: ExpectedOption = "items",
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTCOME:METRIC[:JUDGE]",
            help=f"The exit code is {NOT_REACHED} if this is not reached. Repeatable.",
        ),
    ] = None,
    rule: DecisionRuleOption = None,
    as_judge: AsJudge = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    blind: Blind = None,
    independent_items: IndependentItems = False,
    allow_incomplete: AllowIncomplete = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Decide for each metric whether a judge can replace annotators, assist them, or neither.

    A required ASSIST is also met by REPLACE. Among several judges --require names one. REPLACE
    also requires that labels are known to be made without sight of a model's label (--blind yes).
    """
    from judgebench import api
    from judgebench.decisions.result import demands, unreached

    output = Output(verbose, quiet, as_json)
    files = Files(labels, tuple(verdicts or ()), answers, rubric, expected)
    scoring = Scoring(
        truth, ties, annotator, as_judge or (), rule, allow_incomplete, blind, independent_items
    )
    study = open_study(run, scoring, files)
    decisions = api.decide(study, rule)
    asked = demands(require or (), decisions)
    missed = unreached(asked, decisions)
    beside = {"not_reached": [str(demand) for demand in missed]} if asked else {}
    show({"decide": decisions}, study.name, output, page_of(run), **beside)
    for demand in missed:
        output.console().print(f"not reached: {demand}", style="red")
    if missed:
        raise typer.Exit(NOT_REACHED)
