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

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.results.part import Part
    from judgebench.study.study import Study


def open_study(run: Path, scoring: Scoring = AS_IN_THE_RUN) -> Study:
    """A run as a study, from its folder alone."""
    from judgebench import api

    annotators = tuple(scoring.annotators) if scoring.annotators else None
    asked = {"rule": scoring.truth, "ties": scoring.ties, "annotators": annotators}
    given = {key: value for key, value in asked.items() if value is not None}
    return api.open_run(run, truth=given, as_judges=scoring.as_judges)


def _parts(study: Study, scoring: Scoring = AS_IN_THE_RUN) -> list[Part]:
    """What all analyses show."""
    from judgebench import api

    return api.parts(api.analyse(study, scoring.rule))


def align(
    run: RunDir,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
) -> None:
    """Compare judges and annotators again, from the run folder alone, and print the tables."""
    from rich.console import Console

    from judgebench.report.terminal import print_parts

    scoring = Scoring(truth, ties, annotator, as_judge or (), rule)
    study = open_study(run, scoring)
    print_parts(_parts(study, scoring), Console(), study.name)


def report(
    run: RunDir,
    to: Annotated[Path | None, typer.Option(help="Where to write. Default: RUN/report.")] = None,
    truth: Rule = None,
    ties: Ties = None,
    annotator: Annotators = None,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
) -> None:
    """Write the report of a run: one HTML page, Markdown, LaTeX, CSV and figures."""
    from judgebench import api

    study = open_study(run, Scoring(truth, ties, annotator, as_judge or (), rule))
    for path in api.report(study, to or run / "report", rule).values():
        typer.echo(path)


def report_and_print(run: Path, console: Console) -> None:
    """What ends a run: the report's files, and the tables on the screen."""
    from judgebench.report.terminal import print_parts
    from judgebench.report.write import write_report

    study = open_study(run)
    shown = _parts(study)
    written = write_report(shown, run / "report", name=study.name)
    print_parts(shown, console, study.name)
    console.print(f"Report: {written['html']}", highlight=False, markup=False, soft_wrap=True)
