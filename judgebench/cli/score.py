"""The verbs that score a run again from its folder alone: align and report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.options import (
    AS_DESIGNED,
    AS_IN_THE_RUN,
    NO_FILES,
    AllowIncomplete,
    AsJudge,
    DecisionRuleOption,
    Design,
    Every,
    Figures,
    Files,
    RunOrFiles,
    Truth,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judgebench.results.shown import Shown
    from judgebench.studies.study import Study


def open_study(
    run: Path | None,
    files: Files = NO_FILES,
    truth: Mapping[str, object] = {},
    as_judges: Sequence[str] = (),
    allow_incomplete: bool = False,
) -> Study:
    """A run as a study, from its folder alone, or a study of files; `truth` are keys of a
    TruthConfig.

    Raises SetupError where neither or both are given.
    """
    from judgebench import api

    people = dict.fromkeys(as_judges, files.expected)
    if run is not None:
        of_files = replace(files, expected="items") if as_judges else files
        if replace(of_files, verdicts=of_files.verdicts or None) != NO_FILES:
            raise SetupError(Problem("give either a run folder or files", found=str(run)))
        return api.open_run(run, truth=truth, as_judges=people, allow_incomplete=allow_incomplete)
    if files.labels is None:
        raise SetupError(Problem("give a run folder, or --labels and --rubric with --verdicts"))
    if files.rubric is None:
        hint = f"`judgebench init {files.labels}` writes a rubric from the labels"
        raise SetupError(Problem(f"give the --rubric of these labels; {hint}"))
    verdicts = [{"verdicts": path, "expected": files.expected} for path in files.verdicts or ()]
    return api.study(
        files.labels, verdicts, files.answers, rubric=files.rubric, truth=truth, as_judges=people
    )


def page_of(run: Path | None) -> Mapping[str, Path]:
    """The page of the run's report, once there is one."""
    page = (run or Path()) / "report" / "report.html"
    return {"html": page} if run and page.is_file() else {}


def align(
    run: RunOrFiles = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    design: Design = AS_DESIGNED,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    allow_incomplete: AllowIncomplete = False,
    every: Every = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare judges and annotators, from a run folder or from files, and print the tables."""
    from judgebench import api

    given = {**truth.given, **design.given}
    study = open_study(run, files, given, as_judge or (), allow_incomplete)
    show(api.analyse(study, rule, every=every), study.name, output, page_of(run))


def report(
    run: RunOrFiles = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    design: Design = AS_DESIGNED,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    allow_incomplete: AllowIncomplete = False,
    every: Every = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write. Default: RUN/report."),
    ] = None,
    figures: Figures = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Write the report of a run or of files: one HTML page, CSV, Markdown and LaTeX."""
    from judgebench import api

    study = open_study(
        run, files, {**truth.given, **design.given}, as_judge or (), allow_incomplete
    )
    folder = to or (run and run / "report")
    if folder is None:
        raise SetupError(Problem("say where to write the report of files", field="--to"))
    _report(study, api.analyse(study, rule, every=every), folder, output, figures)


def report_and_print(run: Path, output: Output) -> bool:
    """Write and print the report that ends a run. True where every model gave a verdict that could
    be read; those that gave none are named."""
    from judgebench import api

    study = open_study(run)
    _report(study, api.analyse(study), run / "report", output)
    silent = [f"failed: {judge.name}: {judge.silence}" for judge in study.judges if judge.silence]
    echo_each(silent, err=True)
    return not silent


def _report(
    study: Study, found: Mapping[str, Shown], to: Path, output: Output, figures: bool = False
) -> None:
    from judgebench import api
    from judgebench.results.write import write_in_place

    parts, name, answers = api.parts(found), study.name, study.n_judged
    written, notice = write_in_place(parts, to, name=name, answers=answers, figures=figures)
    show(found, name, output, written)
    if notice:
        output.console().print(f"! {notice}.", soft_wrap=True)
