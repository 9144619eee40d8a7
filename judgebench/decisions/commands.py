"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.options import (
    AS_DESIGNED,
    AS_IN_THE_RUN,
    NO_FILES,
    Again,
    AllowIncomplete,
    AsJudge,
    Commands,
    DecisionRuleOption,
    Design,
    Files,
    RunOrTables,
    Sign,
    Truth,
)
from judgebench.cli.score import open_study, page_of
from judgebench.cli.show import ONE_SCREEN, UNMET, Output, exit_unmet, show
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from judgebench.decisions.result import Decisions

commands = Commands()


@dataclass(frozen=True)
class Certify:
    """Whether a certificate is written, and what stands in it."""

    certificate: Annotated[
        str,
        typer.Option(
            metavar="[JUDGE=]FILE",
            help="Also write a certificate of the decision, which expires and can be watched: of "
            "the only judge, or of the one that is named.",
        ),
    ] = ""
    again: Again = None
    with_anchors: Annotated[
        bool,
        typer.Option(
            "--with-anchors",
            help="With --certificate: keep the texts of the answers that are to be judged again.",
        ),
    ] = False
    sign: Sign = None

    def write(self, decisions: Decisions) -> Path | None:
        """Write the certificate that is asked for. Raises SetupError for options without one."""
        from judgebench import api

        if not self.certificate:
            if given := [n for n in ("again", "with_anchors", "sign") if getattr(self, n)]:
                option = f"--{given[0].replace('_', '-')}"
                raise SetupError(Problem("is for --certificate", field=option))
            return None
        judge, is_named, file = self.certificate.partition("=")
        path = Path(file if is_named else judge)
        if path.exists():
            raise SetupError(Problem("exists: a certificate is never overwritten", str(path)))
        again = [api.open_run(one) if one.is_dir() else one for one in self.again or ()]
        made = decisions.certificate(
            judge if is_named else "", again=again, with_anchors=self.with_anchors, key=self.sign
        )
        written: Path = made.write(path)
        return written


NO_CERTIFICATE = Certify()


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
    certify: Certify = NO_CERTIFICATE,
    output: Output = ONE_SCREEN,
    to: Annotated[
        str, typer.Option(hidden=True, metavar="FOLDER", help="An option of `judgebench report`.")
    ] = "",
) -> None:
    """Decide for each metric whether a judge can replace annotators, assist them, or neither.

    Tables usually need three options: the --order of labels and the column of the --question,
    without which no judge can get REPLACE, and whether people labelled --blind. In a pipeline
    --require demands an outcome: of several judges it names one; REPLACE also meets a demand for
    ASSIST, and is itself met only by labels made blind.
    """
    from judgebench import api
    from judgebench.decisions.result import demands, unreached, why_unreached

    if to:
        raise SetupError(f"decide writes no page: use `judgebench report … --to {to}`")
    study = open_study(
        run, files, {**truth.given, **design.given}, as_judge or (), allow_incomplete, output
    )
    decisions = api.decide(study, rule=rule)
    asked = demands(require or (), decisions)
    missed = unreached(asked, decisions)
    made = certify.write(decisions)
    beside = {"not_reached": [str(demand) for demand in missed]} if asked else {}
    page = page_of(run)
    show({"decide": decisions}, study.name, output, page, beside)
    if not page and not output.json:
        command = f"{shlex.join(['judgebench', 'report', *map(str, run or ())])} … --to FOLDER"
        output.console().print(
            f"For a page with every item, call report with the same options: {command}",
            soft_wrap=True,
        )
    if made and not output.json:
        output.console().print(f"Certificate: {made}. Next: judgebench watch {made} NEW")
    exit_unmet(output, "not reached", [why_unreached(demand, decisions) for demand in missed])
