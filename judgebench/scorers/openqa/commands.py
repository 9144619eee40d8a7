"""`judgebench openqa`: exam questions with options, asked openly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.commands import Commands
from judgebench.cli.options import Budget as BudgetOption
from judgebench.cli.options import Limit, LocalOnly, Seed, columns_of
from judgebench.cli.show import AsJson, Output, Quiet, Verbose, show
from judgebench.scorers.commands import (
    FlippedColumns,
    GroupColumn,
    ModelOption,
    ReportFolder,
    ScoreColumns,
    SystemColumn,
)

app = Commands("Turn exam questions with options into open ones, have people check them, compare.")

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="What `judgebench openqa make` wrote.")
]


@app.command(epilog="Example: judgebench openqa make exam.csv --backend writer.yaml --to open")
def make(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Questions with options: a table of any format.")
    ],
    backend: ModelOption,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")],
    called: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=COLUMN",
            help="What a column is called if not question, option_1, option_2, …, key, item_id or "
            "group: --called key=cop. Repeatable.",
        ),
    ] = None,
    first: Annotated[
        int, typer.Option(min=0, max=1, metavar="0|1", help="Number of the first option in keys.")
    ] = 1,
    limit: Limit = None,
    budget: BudgetOption = None,
    local_only: LocalOnly = False,
) -> None:
    """Rewrite questions so that they can be asked without options; keep what has one right answer.

    Left out, and written to left-out.jsonl with the reason: what asks for what is wrong, what no
    rewriting opens, what another answer fits too. Safe to interrupt; rerun to resume.
    """
    from judgebench.cli.writing import the_writer, writing
    from judgebench.scorers.openqa import questions, rewriting

    names, replies = columns_of(called, "--called"), to / rewriting.REPLIES
    closed = questions.read_questions(file, names, first)[:limit]
    model = the_writer(backend, replies, local_only)
    to.mkdir(parents=True, exist_ok=True)
    with writing(model, replies, budget) as (engine, terms):
        writer = rewriting.QuestionWriter(engine, model.decoding, replies)
        found = rewriting.open_questions(closed, writer, terms)
        left_out = rewriting.write_questions(found, writer)
    waiting = sum(not one.question and not one.reason for one in found)
    kept = len(found) - waiting - sum(left_out.values())
    typer.echo(f"{kept:,} of {len(found):,} questions can be asked openly: {to / rewriting.KEPT}")
    for reason, n in left_out.items():
        typer.echo(f"  {n:,} left out: {reason}")
    if waiting:
        typer.echo(f"  {waiting:,} wait for a reply that failed: rerun to ask again")


@app.command(epilog="Example: judgebench openqa sheet open --checker ann --checker ben")
def sheet(
    folder: Folder,
    checker: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Who checks. Repeatable. Default: three, by number."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="N questions, drawn at random.")
    ] = None,
    left_out: Annotated[
        bool,
        typer.Option("--left-out", help="Also draw what the second pass left out, to measure it."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Write a local page for each person: is the answer right, and the only right one?

    All check the same questions, in different orders, and none sees which model or prompt wrote
    them, nor what the model left out. Each saves a table for `judgebench openqa agreement`.
    """
    from judgebench.scorers.openqa.validation import write_sheets

    names = checker or [f"checker-{n}" for n in (1, 2, 3)]
    for path in write_sheets(folder, names, sample, seed, every=left_out):
        typer.echo(path)


@app.command(epilog="Example: judgebench openqa agreement open ann.decisions.csv ben.decisions.csv")
def agreement(
    folder: Folder,
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE", help="What annotators saved, one table each.")
    ],
    half_width: Annotated[
        float,
        typer.Option(min=0.001, max=0.5, metavar="X", help="Say how many more for +/- this."),
    ] = 0.05,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say how many questions 1, 2, … of the annotators call correct, and how far they agree."""
    from judgebench.scorers.openqa.validation import checked

    show({"openqa": checked(folder, tables, half_width)}, "", Output(verbose, quiet, as_json))


@app.command(epilog="Example: judgebench openqa compare scores.csv closed.csv --system model")
def compare(
    opened: Annotated[
        Path, typer.Argument(metavar="OPEN", help="Scores of open answers: `judgebench score`.")
    ],
    closed: Annotated[
        Path,
        typer.Argument(metavar="CLOSED", help="Which answers with options were right: a table."),
    ],
    correct: Annotated[
        str, typer.Option(metavar="COLUMN", help="Was it right? 1 or 0, yes or no.")
    ] = "correct",
    group: GroupColumn = None,
    system: SystemColumn = None,
    column: ScoreColumns = None,
    flip: FlippedColumns = None,
    to: ReportFolder = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Do systems that choose the right option also answer well without options?

    Question and system stand in both tables (default: exam_id and system). Coefficients with
    intervals over all answers, within questions and over systems.
    """
    from judgebench import api
    from judgebench.scorers.correlate import Roles
    from judgebench.scorers.openqa.compare import open_against_closed

    where = Roles((), group or "exam_id", system or "system", flip or ())
    found = open_against_closed(opened, closed, where, correct, column or ())
    found = replace(found, name=opened.stem)
    written = api.report(found, to) if to else {}
    show({"openqa": found}, found.name, Output(verbose, quiet, as_json), written)
