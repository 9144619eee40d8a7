"""The verbs that score a run again from its folder alone: align and report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    AsJudge,
    Checklist,
    DecisionRuleOption,
    Every,
    Figures,
    Files,
    RunOrTables,
    Truth,
)
from judgebench.cli.questions import ask_open
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judgebench.data.layout import Layout
    from judgebench.data.reading import GivenTables
    from judgebench.results.shown import Shown
    from judgebench.rubric import Rubric
    from judgebench.studies.study import Study

_MANY = 40  # judges and annotators, compared in some seconds


def open_study(
    run: Sequence[Path] | Path | None,
    files: Files = NO_FILES,
    truth: Mapping[str, object] = {},
    as_judges: Sequence[str] = (),
    output: Output = ONE_SCREEN,
    rubric: Rubric | None = None,
) -> Study:
    """A run as a study, from its folder alone, or a study of tables; `truth` are keys of a
    TruthConfig. Raises SetupError where neither or both are given."""
    from judgebench import api

    people = dict.fromkeys(as_judges, files.expected)
    paths = [run] if isinstance(run, Path) else list(run or ())
    has_tables = replace(files, column=None, expected="items") != NO_FILES
    if not paths and not files.labels:
        raise SetupError(Problem("give a run folder, or tables: labels.xlsx gpt4.xlsx"))
    is_run = len(paths) == 1 and not (paths[0].is_file() or _is_missing_table(paths[0]))
    if is_run and has_tables:
        raise SetupError(Problem("give either a run folder or tables", found=str(paths[0])))
    try:
        if is_run:
            return api.open_run(paths[0], truth=truth, as_judges=people)
        layout, declared = settled_layout(paths, files, truth, as_judges, output, rubric)
        return api.study(layout, truth=declared, as_judges=people, expected=files.expected)
    except SetupError as error:
        named = [_by_option(problem) for problem in error.problems]
        if named == [*error.problems]:  # of another kind, such as of a damaged run
            raise
        raise SetupError(named) from None


def _by_option(problem: Problem) -> Problem:
    """The problem of a key of a TruthConfig, by the option that gives it."""
    key = problem.field if problem.file == "truth" else problem.field.partition("truth.")[2]
    option = {"rule": "truth", "annotators": "annotator"}.get(key, key).replace("_", "-")
    return replace(problem, file="", field=f"--{option}") if key else problem


def _is_missing_table(path: Path) -> bool:
    return bool(path.suffix) and not path.exists()


def settled_layout(
    paths: Sequence[Path], files: Files, truth: Mapping[str, object], as_judges: Sequence[str],
    output: Output, rubric: Rubric | None = None,
) -> tuple[Layout, dict[str, object]]:  # fmt: skip
    """The layout of tables, which is printed, and what is declared of them. Where a terminal can
    answer, what is open is asked for."""
    from judgebench.data.layout import is_layout, layout_lines, load_layout
    from judgebench.data.settings import TableSettings, settings_of
    from judgebench.rubric import load_rubric
    from judgebench.starter import save
    from judgebench.studies.drawn import kept_columns

    rubric = rubric if files.rubric is None else load_rubric(files.rubric)
    if len(paths) == 1 and is_layout(paths[0]):
        layout, declared = load_layout(paths[0], rubric), dict(truth)
    else:
        people: Any = truth.get("annotators") or ()
        drawn: Any = truth.get("drawn") or ()
        more = TableSettings(person=tuple(people), as_judge=tuple(as_judges))
        settings = settings_of(kept_columns(drawn)).with_more(files.settings).with_more(more)
        layout, declared = ask_open(_tables(paths, files), settings, rubric, dict(truth))
    console = output.console()
    for line in layout_lines(layout):
        console.print(line, soft_wrap=True, highlight=False)
    if files.save is not None:
        for path in save(layout, files.save, declared).files:
            console.print(f"Wrote {path}", soft_wrap=True)
    console.print()
    return layout, declared


def _tables(paths: Sequence[Path], files: Files) -> GivenTables:
    """The tables by what the options say that they hold."""
    from judgebench.data.reading import GivenTables, sources_of

    labels, verdicts, unsorted = (
        [source for path in given or () for source in sources_of(path, str(path))]
        for given in (files.labels, files.verdicts, paths)
    )
    rest = [source for source in unsorted if source not in (*labels, *verdicts)]
    return GivenTables(labels, verdicts, sources_of(files.answers, "answers"), rest)


def page_of(run: Sequence[Path] | None) -> Mapping[str, Path]:
    """The page of the run's report, once there is one."""
    pages = (folder / "report" / "report.html" for folder in run or ())
    page = next((page for page in pages if page.is_file()), None)
    return {"html": page} if page else {}


def _takes_long(study: Study, output: Output) -> bool:
    """True where so many judges and annotators are compared that progress is to be seen."""
    return len(study.judges) + len(study.makers) > _MANY and not output.quiet


def align(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    every: Every = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare judges and annotators, from a run folder or from files, and print the tables."""
    from judgebench import api

    study = open_study(run, files, truth.settings, as_judge or (), output)
    found = api.analyse(study, rule, every=every, show_progress=_takes_long(study, output))
    show(found, study.name, output, page_of(run), tables=True)


def report(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    every: Every = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write. Default: RUN/report."),
    ] = None,
    figures: Figures = False,
    checklist: Checklist = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Write the report of a run or of files: one HTML page, CSV, Markdown and LaTeX."""
    from judgebench import api
    from judgebench.checklist import with_checklist

    folder = to or (run[0] / "report" if run and not run[0].is_file() else None)
    if folder is None and (run or files.labels):
        raise SetupError(Problem("say where to write the report of files", field="--to"))
    study = open_study(run, files, truth.settings, as_judge or (), output)
    assert folder
    findings = api.analyse(study, rule, every=every, show_progress=_takes_long(study, output))
    if checklist:
        findings = with_checklist(findings, checklist, study, folder)
    _report(study, findings, folder, output, figures)
    if checklist:
        output.console().print(*findings["checklist"].part.blocks[0].text, soft_wrap=True)


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
