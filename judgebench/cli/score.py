"""The verbs that score a run again from its folder alone: align and report."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.options import (
    AS_DESIGNED,
    AS_IN_THE_RUN,
    NO_FILES,
    AsJudge,
    DecisionRuleOption,
    Design,
    Every,
    Figures,
    Files,
    Named,
    RunOrTables,
    Truth,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judgebench.data.understand import Understood
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
    TruthConfig. Of tables that are watched the `rubric` is known, and verdicts are due on the items
    with a row alone.

    Raises SetupError where neither or both are given.
    """
    try:
        return _opened(run, files, truth, as_judges, output, rubric)
    except SetupError as error:
        named = [_by_option(problem) for problem in error.problems]
        if named == [*error.problems]:  # of another kind, such as of a damaged run
            raise
        raise SetupError(named) from None


def _opened(
    run: Sequence[Path] | Path | None, files: Files, truth: Mapping[str, object],
    as_judges: Sequence[str], output: Output, rubric: Rubric | None,
) -> Study:  # fmt: skip
    from judgebench import api

    people = dict.fromkeys(as_judges, files.expected)
    paths = [run] if isinstance(run, Path) else list(run or ())
    of_files = replace(files, expected="items") if as_judges else files
    given = replace(of_files, verdicts=of_files.verdicts or None, keep=None) != NO_FILES
    if len(paths) == 1 and not (paths[0].is_file() or _is_missing_table(paths[0])):
        if given:
            raise SetupError(Problem("give either a run folder or tables", found=str(paths[0])))
        return api.open_run(paths[0], truth=truth, as_judges=people)
    if not paths and files.labels is None:
        raise SetupError(Problem("give a run folder, or tables: labels.xlsx gpt4.xlsx"))
    if paths and files.labels is not None:
        raise SetupError(Problem("give tables either as arguments or with --labels"))
    if rubric is not None:
        files = replace(files, expected="rows")
    if files.rubric is None:
        found = _understood(paths, files, truth, output, rubric)
        found = replace(found, expected=files.expected)
        return api.study(found, truth=truth, as_judges=people)
    labels, *others = [*paths, *([files.labels] if files.labels else [])]
    verdicts = [
        {"verdicts": path, "expected": files.expected}
        for path in (*others, *(files.verdicts or ()))
    ]
    return api.study(
        labels, verdicts, files.answers, rubric=files.rubric, truth=truth, as_judges=people
    )


def _by_option(problem: Problem) -> Problem:
    """The problem of a key of a TruthConfig, by the option that gives it."""
    key = problem.field if problem.file == "truth" else problem.field.partition("truth.")[2]
    option = {"rule": "truth", "annotators": "annotator"}.get(key, key).replace("_", "-")
    return replace(problem, file="", field=f"--{option}") if key else problem


def _is_missing_table(path: Path) -> bool:
    from judgebench.data.open_table import SUFFIXES, TO_EXPORT

    return not path.exists() and path.suffix.lower() in (*SUFFIXES, *TO_EXPORT)


def _understood(
    paths: Sequence[Path], files: Files, truth: Mapping[str, object], output: Output,
    rubric: Rubric | None,
) -> Understood:  # fmt: skip
    """The tables as they are understood, which is said first; where a terminal can answer, the
    order of labels is asked for."""
    from judgebench.data.guess import Hints
    from judgebench.data.understand import understand_files, understand_given
    from judgebench.starter import save

    def understand(columns: Mapping[str, Sequence[str]]) -> Understood:
        hints = replace(Hints.given(columns), rubric=rubric)
        if paths and not (files.verdicts or files.answers):
            return understand_files(paths, hints)
        labels, *verdicts = [*paths, *([files.labels] if files.labels else [])]
        return understand_given(labels, [*verdicts, *(files.verdicts or ())], files.answers, hints)

    console = output.console()
    try:
        found = understand(files.given)
        for line in found.lines:
            console.print(line, soft_wrap=True, highlight=False)
        if rubric is None and (orders := list(_asked(found))):
            found = understand({**files.given, "order": [*(files.order or ()), *orders]})
        if files.save is not None:
            for path in save(found, files.save, truth).files:
                console.print(f"Wrote {path}", soft_wrap=True)
        console.print()
    except SetupError as error:
        raise SetupError([_with_flag(problem) for problem in error.problems]) from None
    return found


def _with_flag(problem: Problem) -> Problem:
    """The problem, which names the option that settles it."""
    known = {field.name for field in fields(Named)}
    return replace(problem, field=f"--{problem.field}") if problem.field in known else problem


def _asked(found: Understood) -> Iterator[str]:
    """The order of each metric's labels, where a person at a terminal knows it."""
    from judgebench.data.understand import NO_ORDER

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    for metric in found.rubric.metrics:
        if metric.kind != "nominal" or metric.preference:
            continue
        listed = "  ".join(f"{i} {text}" for i, text in enumerate(metric.label_texts, start=1))
        typer.echo(f"{metric.title}: {listed}", err=True)
        question = (
            "Numbers from the least to the most severe, such as 1 3 2 (0: no label is worse than "
            "another; Enter: not known)"
        )
        given = str(typer.prompt(question, default="", show_default=False, err=True)).split()
        places = [int(n) - 1 for n in given if n.isdecimal()]
        if sorted(places) == list(range(len(metric.labels))):
            yield f"{metric.title}: " + " < ".join(metric.label_texts[i] for i in places)
        elif given == ["0"]:
            yield f"{metric.title}: {NO_ORDER}"
        elif given:
            typer.echo("These are not all numbers, each once: taken as no order.", err=True)


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
    design: Design = AS_DESIGNED,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
    every: Every = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare judges and annotators, from a run folder or from files, and print the tables."""
    from judgebench import api

    given = {**truth.given, **design.given}
    study = open_study(run, files, given, as_judge or (), output)
    found = api.analyse(study, rule, every=every, show_progress=_takes_long(study, output))
    show(found, study.name, output, page_of(run), tables=True)


def report(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    design: Design = AS_DESIGNED,
    as_judge: AsJudge = None,
    rule: DecisionRuleOption = None,
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

    folder = to or (run[0] / "report" if run and not run[0].is_file() else None)
    if folder is None and (run or files.labels):
        raise SetupError(Problem("say where to write the report of files", field="--to"))
    study = open_study(run, files, {**truth.given, **design.given}, as_judge or (), output)
    assert folder
    found = api.analyse(study, rule, every=every, show_progress=_takes_long(study, output))
    _report(study, found, folder, output, figures)


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
