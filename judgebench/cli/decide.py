"""`judgebench decide`: may a judge replace annotators, and was an outcome reached?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.cli.exit_codes import UNMET
from judgebench.cli.groups import option
from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    AnchorsOption,
    AsJudge,
    DecisionRuleOption,
    Files,
    ProtocolOption,
    RunOrTables,
    Truth,
)
from judgebench.cli.report import open_study
from judgebench.cli.show import ONE_SCREEN, Output, exit_unmet, show
from judgebench.errors import NotReached, Problem, SetupError, raise_any
from judgebench.text import counted

if TYPE_CHECKING:
    from judgebench.decisions.decision import Decisions


def decide(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    require: list[str] = option(
        (), "OUTCOME:METRIC[:JUDGE]", f"Exit code {UNMET} unless reached. Repeatable."
    ),
    anchors: AnchorsOption = None,
    looks: list[float] = option((), "SHARE", "Share labelled at an interim analysis. Repeatable."),
    protocol: ProtocolOption = None,
    certificate: str = option("", "[JUDGE=]FILE", "A certificate, for `judgebench watch`."),
    to: list[str] = option(
        (), "WHERE", "Also write verdicts to mlflow:URI, otel:FILE or inspect:FILE. Repeatable."
    ),
    output: Output = ONE_SCREEN,
) -> None:
    """Decide if a judge can replace annotators, assist them, or neither.

    REPLACE needs the --order of labels, the --question column and --blind.

    Example: judgebench decide labels.xlsx gpt4.xlsx --order 'Safe < Unsure < Unsafe'
    """
    import judgebench as jb
    from judgebench.exporting import check_place
    from judgebench.files import check_new

    judge, _, file = certificate.rpartition("=")
    if certificate:
        check_new(Path(file))
    kinds = {place: check_place(place)[0] for place in to}
    study = open_study(run, files, truth.settings, as_judge or (), output)
    decisions = jb.decide(study, rule=rule, looks=looks, protocol=protocol, anchors=anchors)
    missed = _unreached(require, decisions)
    beside = {"not_reached": [*missed]} if require else {}
    show({"decide": decisions}, study.name, output, beside=beside)
    if not output.json:
        output.console().print(
            "For a page with every item: judgebench report, with the same options and --to FOLDER.",
            soft_wrap=True,
        )
    certified = decisions.certificate(judge) if certificate else None
    for place in sorted(kinds, key=lambda place: kinds[place] != "mlflow"):  # it may refuse
        n_verdicts = jb.export(decisions, place)
        output.console().print(f"Wrote {counted(n_verdicts, 'verdict')} to {place}", soft_wrap=True)
    if certified:
        certified.write(file)
    if certified and not output.json:
        command = f"judgebench watch {shlex.quote(file)} LABELS VERDICTS"
        output.console().print(f"Certificate: {file}. Next: {command}", soft_wrap=True)
    exit_unmet(output, "not reached", [*missed.values()])


def _unreached(demands: Sequence[str], decisions: Decisions) -> dict[str, NotReached]:
    """The demands, such as `REPLACE:tone:my-judge`, that are not reached, each with its error.

    Raises SetupError with every text that is no demand or names what was not decided.
    """
    missed, problems = dict[str, NotReached](), list[Problem]()
    for text in demands:
        try:
            decisions.require(*(*text.split(":", 2), "")[:3])  # a judge's name may hold colons
        except NotReached as error:
            missed[text] = error
        except SetupError as error:
            problems += [replace(p, field="--require", found=text) for p in error.problems]
    raise_any(problems)
    return missed
