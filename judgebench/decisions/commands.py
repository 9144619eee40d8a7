"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    AsJudge,
    Commands,
    DecisionRuleOption,
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
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTCOME:METRIC[:JUDGE]",
            help=f"The exit code is {UNMET} if this is not reached. Repeatable.",
        ),
    ] = None,
    certificate: Annotated[
        str,
        typer.Option(
            metavar="[JUDGE=]FILE",
            help="Also write a certificate of the decision, which expires and can be watched: of "
            "the only judge, or of the one that is named.",
        ),
    ] = "",
    output: Output = ONE_SCREEN,
    to: Annotated[
        str, typer.Option(hidden=True, metavar="FOLDER", help="An option of `judgebench report`.")
    ] = "",
) -> None:
    """Decide for each metric whether a judge can replace annotators, assist them, or neither.

    Tables usually need three declarations, without which no judge can get REPLACE: the --order of
    labels, the column of the --question and whether people labelled --blind. In a pipeline
    --require demands an outcome: of several judges it names one; REPLACE also meets a demand for
    ASSIST.
    """
    from judgebench import api
    from judgebench.decisions.result import unreached

    if to:
        raise SetupError(f"decide writes no page: use `judgebench report … --to {to}`")
    study = open_study(run, files, truth.settings, as_judge or (), output)
    decisions = api.decide(study, rule=rule)
    missed = unreached(require or (), decisions)
    beside = {"not_reached": [*missed]} if require else {}
    page = page_of(run)
    show({"decide": decisions}, study.name, output, page, beside)
    if not page and not output.json:
        command = f"{shlex.join(['judgebench', 'report', *map(str, run or ())])} … --to FOLDER"
        output.console().print(
            f"For a page with every item, call report with the same options: {command}",
            soft_wrap=True,
        )
    judge, _, file = certificate.rpartition("=")
    certified = decisions.certificate(judge).write(file) if certificate else None
    if certified and not output.json:
        command = f"judgebench watch {shlex.quote(str(certified))} LABELS VERDICTS"
        output.console().print(f"Certificate: {certified}. Next: {command}", soft_wrap=True)
    exit_unmet(output, "not reached", [*missed.values()])
