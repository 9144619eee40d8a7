"""The verbs that score a run again from its folder alone: align and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.options import (
    AS_IN_THE_RUN,
    Annotators,
    AsJudge,
    DecisionRuleOption,
    Rule,
    RunDir,
    Scoring,
    Ties,
)
from judgebench.cli.show import AsJson, Output, Quiet, Verbose, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judgebench.study.study import Study


def open_study(run: Path, scoring: Scoring = AS_IN_THE_RUN) -> Study:
    """A run as a study, from its folder alone."""
    from judgebench import api

    annotators = tuple(scoring.annotators) if scoring.annotators else None
    asked = {"rule": scoring.truth, "ties": scoring.ties, "annotators": annotators}
    given = {key: value for key, value in asked.items() if value is not None}
    return api.open_run(run, truth=given, as_judges=scoring.as_judges)


def page_of(run: Path) -> Mapping[str, Path]:
    """Where the page of the run's report is, once there is one."""
    page = run / "report" / "report.html"
    return {"html": page} if page.is_file() else {}


def align(
    run: RunDir,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare judges and annotators again, from the run folder alone, and print the tables."""
    from judgebench import api

    output = Output(verbose, quiet, as_json)
    scoring = Scoring(truth, ties, annotator, as_judge or (), rule)
    study = open_study(run, scoring)
    show(api.analyse(study, scoring.rule), study.name, output, page_of(run))


def report(
    run: RunDir,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write. Default: RUN/report."),
    ] = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run: one HTML page, Markdown, LaTeX, CSV and figures."""
    output = Output(verbose, quiet, as_json)
    study = open_study(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    _report(study, to or run / "report", output, rule)


def report_and_print(run: Path, output: Output) -> None:
    """What ends a run: the report's files, and what they hold on the screen."""
    _report(open_study(run), run / "report", output)


def _report(study: Study, to: Path, output: Output, rule: str | None = None) -> None:
    from judgebench import api
    from judgebench.report.place import write_in_place

    found = api.analyse(study, rule)
    parts, name = api.parts(found), study.name
    written, told = write_in_place(parts, to, name=name, answers=study.n_judged)
    show(found, name, output, written)
    if told:
        output.console().print(f"! {told}.", highlight=False, markup=False, soft_wrap=True)
