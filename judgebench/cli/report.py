"""The verbs that score a run again from its folder alone: align and report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.cli.groups import option, options
from judgebench.cli.options import (
    AS_IN_THE_RUN,
    NO_FILES,
    AnchorsOption,
    AsJudge,
    DecisionRuleOption,
    Every,
    Figures,
    Files,
    ProtocolOption,
    RunOrTables,
    Truth,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judgebench.data.layout import Layout
    from judgebench.results.shown import Shown
    from judgebench.rubric import Rubric
    from judgebench.studies.study import Study

_MANY = 40  # judges and annotators, compared in some seconds


@options
class Analysed:
    """The parts of an analysis that people choose, and how it counts."""

    as_judge: AsJudge = None
    rule: DecisionRuleOption = None
    every: Every = False
    columns: str = option(
        "", "STATISTIC,…", "The statistics of the table for a paper: accuracy,mae,kappa."
    )
    by: str = option("", "COLUMN", "Also show each judge in each group of answers, such as system.")


PLAINLY = Analysed()


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
    import judgebench as jb

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
            return jb.open_run(paths[0], truth=truth, as_judges=people)
        layout = _layout(paths, files, truth, as_judges, rubric)
        _show_layout(layout, files, truth, output)
        return jb.study(layout, truth=truth, as_judges=people, expected=files.expected)
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


def _layout(
    paths: Sequence[Path], files: Files, truth: Mapping[str, object], as_judges: Sequence[str],
    rubric: Rubric | None,
) -> Layout:  # fmt: skip
    """The layout of tables. Raises Unsettled with every question that options must answer."""
    from judgebench.data.layout import is_layout, load_layout
    from judgebench.data.reading import given_tables
    from judgebench.rubric import load_rubric
    from judgebench.runs.from_tables import layout_of

    rubric = rubric if files.rubric is None else load_rubric(files.rubric)
    if len(paths) == 1 and is_layout(paths[0]):
        return load_layout(paths[0], rubric)
    settings = files.settings
    return layout_of(given_tables(paths, settings), settings, rubric, truth, as_judges)


def _show_layout(layout: Layout, files: Files, truth: Mapping[str, object], output: Output) -> None:
    """Print what every column is, and write it where that is asked for."""
    from judgebench.data.layout import layout_lines
    from judgebench.setup_files import save

    console = output.console()
    for line in layout_lines(layout):
        console.print(line, soft_wrap=True, highlight=False)
    if files.save is not None:
        for path in save(layout, files.save, truth).files:
            console.print(f"Wrote {path}", soft_wrap=True)
    console.print()


def align(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    chosen: Analysed = PLAINLY,
    output: Output = ONE_SCREEN,
) -> None:
    """Compare judges and annotators, and print the tables.

    Example: judgebench align runs/demo --truth majority --annotator 'expert*'
    """
    study = _opened(run, files, truth, chosen, output)
    show(_analysed(study, chosen, output), study.name, output, tables=True)


def report(
    run: RunOrTables = None,
    files: Files = NO_FILES,
    truth: Truth = AS_IN_THE_RUN,
    chosen: Analysed = PLAINLY,
    anchors: AnchorsOption = None,
    to: Path | None = option(None, "FOLDER", "Where to write. Default: RUN/report."),
    figures: Figures = False,
    checklist: str | None = option(
        None, "NAME|FILE", "Also fill a reporting checklist: `grras`, or a YAML file like it."
    ),
    protocol: ProtocolOption = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Write the report of a run or of tables: HTML, CSV, Markdown and LaTeX.

    Example: judgebench report runs/demo --to paper/tables
    """
    from judgebench.checklist import with_checklist
    from judgebench.runs.from_tables import with_anchors

    folder = to or (run[0] / "report" if run and not run[0].is_file() else None)
    if folder is None and (run or files.labels):
        raise SetupError(Problem("say where to write the report of files", field="--to"))
    study = _opened(run, files, truth, chosen, output)
    assert folder
    study = with_anchors(study, anchors) if anchors else study
    found = _analysed(study, chosen, output, protocol)
    if checklist:
        found = with_checklist(found, checklist, study, folder)
    _report(study, found, folder, output, figures)
    if checklist:
        output.console().print(*found["checklist"].part.blocks[0].text, soft_wrap=True)


def _opened(
    run: RunOrTables, files: Files, truth: Truth, chosen: Analysed, output: Output
) -> Study:
    """The study, with the column `by` kept; an error about this column names the option `--by`."""
    by = chosen.by
    try:
        study = open_study(run, keep(files, by), truth.settings, chosen.as_judge or (), output)
        _check_no_labels(study, by, files.column or ())
        return study
    except SetupError as error:
        problems = [
            replace(p, field="--by") if by and (p.field, p.found) == ("--column", by) else p
            for p in error.problems
        ]
        raise SetupError(problems) from None


def _check_no_labels(study: Study, column: str, said: Sequence[str]) -> None:
    """Raise SetupError where a column that is kept for its groups alone holds labels: without it,
    one who labelled would be missing from all tables."""
    cells = {*study.cells.get(column, ())} - {""}
    of = [m for m in study.rubric.metrics if cells and all(map(m.parse, cells))]
    if of and f"{column}=kept" not in said:
        message = f"it holds labels of {of[0].title}, which then count for nobody: if that is meant"
        raise SetupError(Problem(message, field="--by", found=column,
                                 allowed=f"--column {column}=kept"))  # fmt: skip


def keep(files: Files, column: str) -> Files:
    """The files, of whose answers this column is kept."""
    from judgebench.studies.reference_labels import kept_columns

    kept = [f"{name}=kept" for name in kept_columns((), column)]
    return replace(files, column=[*kept, *(files.column or ())]) if kept else files


def _analysed(
    study: Study, chosen: Analysed, output: Output, protocol: Path | None = None
) -> Mapping[str, Shown]:
    """The analyses, with the chosen columns of the table and the groups of answers."""
    import judgebench as jb
    from judgebench.alignment import Alignment

    is_long = len(study.judges) + len(study.makers) > _MANY and not output.quiet
    found = jb.analyse(
        study, chosen.rule, every=chosen.every, protocol=protocol, show_progress=is_long
    )
    aligned, names = found["align"], [*filter(None, map(str.strip, chosen.columns.split(",")))]
    assert isinstance(aligned, Alignment)
    try:
        return {**found, "align": aligned.chosen(names, chosen.by)}
    except SetupError as error:
        raise SetupError([replace(p, field=f"--{p.field}") for p in error.problems]) from None


def report_and_print(run: Path, output: Output) -> bool:
    """Write and print the report that ends a run. True where every model gave a verdict that could
    be read; those that gave none are named."""
    import judgebench as jb
    from judgebench.studies.item_table import decided_lines

    study = open_study(run)
    for line in decided_lines(study):
        output.console().print(line, soft_wrap=True, highlight=False)
    _report(study, jb.analyse(study), run / "report", output)
    silent = [f"failed: {judge.name}: {judge.silence}" for judge in study.judges if judge.silence]
    echo_each(silent, err=True)
    return not silent


def _report(
    study: Study, found: Mapping[str, Shown], to: Path, output: Output, figures: bool = False
) -> None:
    from judgebench.reporting import parts as parts_of
    from judgebench.results.documents import write_in_place

    parts, name, answers = parts_of(found), study.name, study.n_judged
    written, notice = write_in_place(
        parts, to, name=name, answers=answers, figures=figures, sources=study.sources
    )
    show(found, name, output, written)
    if notice:
        output.console().print(f"! {notice}.", soft_wrap=True)
