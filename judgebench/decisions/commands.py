"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

from typing import Annotated

import typer

from judgebench.cli.options import (
    AS_DESIGNED,
    AS_IN_THE_RUN,
    NO_FILES,
    AllowIncomplete,
    AsJudge,
    Commands,
    DecisionRuleOption,
    Design,
    Files,
    RunOrTables,
    Truth,
)
from judgebench.cli.score import open_study, page_of
from judgebench.cli.show import ONE_SCREEN, UNMET, Output, exit_unmet, show
from judgebench.errors import SetupError

commands = Commands()


@commands.command(
    epilog="Example: judgebench decide labels.xlsx gpt4.xlsx --order 'Safe < Unsure < Unsafe'"
)
def decide(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    design: Design = AS_DESIGNED,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    allow_incomplete: AllowIncomplete = False,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTCOME:METRIC[:JUDGE]",
            help=f"The exit code is {UNMET} if this is not reached. Repeatable.",
        ),
    ] = None,
    output: Output = ONE_SCREEN,
    to: Annotated[
        str, typer.Option(hidden=True, metavar="FOLDER", help="An option of `judgebench report`.")
    ] = "",
) -> None:
    """Decide for each metric whether a judge can replace annotators, assist them, or neither.

    Tables usually need three options: the --order of labels, the column of the --question, and
    whether people labelled --blind, which REPLACE requires. In a pipeline --require demands an
    outcome; of several judges it names one, and REPLACE also meets a demand for ASSIST.
    """
    from judgebench import api
    from judgebench.decisions.result import demands, unreached

    if to:
        raise SetupError(f"decide writes no page: use `judgebench report … --to {to}`")
    study = open_study(
        run, files, {**truth.given, **design.given}, as_judge or (), allow_incomplete, output
    )
    decisions = api.decide(study, rule=rule)
    asked = demands(require or (), decisions)
    missed = unreached(asked, decisions)
    beside = {"not_reached": [str(demand) for demand in missed]} if asked else {}
    page = page_of(run)
    show({"decide": decisions}, study.name, output, page, **beside)
    if not page and not output.json:
        output.console().print(
            "report.html has every item: `judgebench report … --to FOLDER` writes it."
        )
    exit_unmet(output, "not reached", missed)
