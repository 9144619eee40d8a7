"""`judgebench score`: scores of answers, and what follows from scores without labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.benchmark import stoppable, the_writer, writing
from judgebench.cli.options import Budget as BudgetOption
from judgebench.cli.options import (
    Commands,
    Figures,
    Limit,
    LocalOnly,
    Seed,
    columns_of,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.errors import Problem, SetupError

ScoreTable = Annotated[Path, typer.Argument(metavar="FILE", help="A table with scores.")]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="The column that names the question."),
]
SystemColumn = Annotated[
    str | None,
    typer.Option("--system", metavar="COLUMN", help="The column that names the system."),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="COLUMN", help="A score. Default: all numbers. Repeatable."),
]
FlippedColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--flip", metavar="COLUMN",
        help="Lower is better: change the sign. '*' fits any. Repeatable.",
    ),
]  # fmt: skip
ReportFolder = Annotated[
    Path | None, typer.Option("--to", metavar="FOLDER", help="Where to write a report.")
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--backend", metavar="BACKEND",
        help="The model: a backend such as llamacpp:smollm2, or the YAML file of a judge.",
    ),
]  # fmt: skip

app = Commands(default="table")
commands = Commands()
commands.add_typer(app, name="score")


def _check_target(to: Path, table: Path) -> None:
    """Raises SetupError where nothing can be written there, before any work is done."""
    if to.resolve() == table.resolve():
        raise SetupError(Problem("is the table itself: write to another file", str(to)))
    if not to.parent.is_dir():
        raise SetupError(Problem("no such folder", str(to.parent), field="--to"))


@app.command(
    epilog="Example: judgebench score answers.csv --scorer rouge-l --scorer chrf --to scores.csv"
)
def table(
    answers: Annotated[
        Path,
        typer.Argument(metavar="ANSWERS", help="A table of any format; labels are not needed."),
    ],
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCORER",
            help="A name of `judgebench list scorers`, or settings such as "
            "'{scorer: chrf, references: mean}'. Repeatable.",
        ),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=COLUMN",
            help="Which column is the text, reference, question, system or group, where its name "
            "does not say so. Repeatable.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file for the scores, beside ids and numbers."),
    ] = None,
    kept: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Keeps the scores, so that a rerun resumes."),
    ] = Path("runs/scores"),
    output: Output = ONE_SCREEN,
) -> None:
    """Score the answers of any table, without labels.

    Prints what the scores depend on and why answers have none. Safe to interrupt; rerun to resume.
    """
    from judgebench.files import write_atomically
    from judgebench.progress import ProgressDisplay
    from judgebench.scorers.table import score_table
    from judgebench.yaml_file import parse_yaml

    console = output.console()
    asked = [parse_yaml(text, "--scorer") for text in scorer or ()]
    if not asked:
        raise SetupError("name a scorer: --scorer rouge-l")
    if to:
        _check_target(to, answers)
    columns = columns_of(role, "--role")
    message = f"Stopped. Scores so far are kept in {kept}. To resume, rerun."
    with stoppable(message), ProgressDisplay(console) as display:
        found = score_table(answers, asked, columns, kept, display)
    if to:
        write_atomically(to, found.to_frame().to_csv(index=False).encode())
    show({"scores": found}, answers.name, output)
    if to:
        console.print(f"Wrote {to}", soft_wrap=True)


@app.command(
    epilog="Example: judgebench score answers questions.csv --backend llamacpp:smollm2 --to a.csv"
)
def answers(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="A table with questions, of any format.")
    ],
    backend: ModelOption,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The CSV file to write.")],
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="How often each question is answered.")
    ] = 11,
    temperature: Annotated[
        float, typer.Option(min=0, max=2, metavar="T", help="How freely answers are drawn.")
    ] = 1.0,
    top_p: Annotated[
        float, typer.Option(min=0.01, max=1, metavar="P", help="Of the likeliest words, the share.")
    ] = 0.9,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The longest answer, in tokens.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the table calls the system.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    budget: BudgetOption = None,
    local_only: LocalOnly = False,
) -> None:
    """Have a model answer every question several times, with another seed each time.

    The table can be judged and scored. Safe to interrupt; rerun to resume.
    """
    from judgebench.data.tables import read_table
    from judgebench.scorers.answering import (
        AnswerOrder,
        questions_of,
        replies_path,
        write_answers,
    )

    _check_target(to, questions)
    rows, replies = questions_of(read_table(questions))[:limit], replies_path(to)
    model = the_writer(backend, replies, local_only)
    given = {"temperature": temperature, "top_p": top_p, "seed": seed, "max_tokens": max_tokens}
    left_out = model.decoding.left_out  # what the engine takes none of, by its file
    drawn = {k: v for k, v in given.items() if v is not None and k not in left_out}
    decoding = model.decoding.model_copy(update=drawn)
    system = name or (backend.partition(":")[2] if backend == model.backend else model.name)
    with writing(model, replies, budget) as (engine, terms):
        found = write_answers(rows, AnswerOrder(repeats, system, decoding), to, engine, terms)
    typer.echo(f"{found[0]}: {to}")
    echo_each(f"  {line}" for line in found[1:])


@app.command(
    epilog="Example: judgebench score consistency scores.csv --group question --system model"
)
def consistency(
    file: ScoreTable,
    group: GroupColumn = None,
    system: SystemColumn = None,
    column: ScoreColumns = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A score with a true zero. Repeatable."),
    ] = None,
    standard_error: Annotated[
        float | None,
        typer.Option(min=0, metavar="X", help="Say how many runs give a mean this standard error."),
    ] = None,
    to: ReportFolder = None,
    figures: Figures = False,
    output: Output = ONE_SCREEN,
) -> None:
    """How much of a score is noise? Rows of one question and system are runs of the same."""
    import judgebench as jb

    found = jb.consistency(
        file, group=group or "", system=system or "", scores=column or (),
        ratio=ratio or (), standard_error=standard_error,
    )  # fmt: skip
    written = jb.report(found, to, figures=figures) if to else {}
    show({"consistency": found}, found.name, output, written)


@app.command(
    epilog="Example: judgebench score correlate scores.csv --against accuracy --flip '*perplexity'"
)
def correlate(
    file: ScoreTable,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Hold all others against this one. Repeatable."),
    ] = None,
    group: GroupColumn = None,
    system: SystemColumn = None,
    column: ScoreColumns = None,
    flip: FlippedColumns = None,
    without_system: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Leave out the rows of this system. Repeatable."),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN:WEIGHT,…", help="A new column: a weighted mean. Repeatable."
        ),
    ] = None,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="first, second and winner: Bradley-Terry strengths as a column. Repeatable.",
        ),
    ] = None,
    to: ReportFolder = None,
    figures: Figures = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Which scores go together, and which say the same? A row for each system, or for each item
    where --group names its question."""
    import judgebench as jb
    from judgebench.scorers.correlate import parse_weights

    more: dict[str, Mapping[str, float] | Path] = {**parse_weights(weights or ())}
    more |= {path.stem: path for path in pairs or ()}
    found = jb.correlate(
        file, against or (), group=group or "", system=system or "", flip=flip or (),
        scores=column or ("*",), more=more, without=without_system or (),
    )  # fmt: skip
    written = jb.report(found, to, figures=figures) if to else {}
    show({"correlate": found}, found.name, output, written)


openqa = Commands(
    "Turn exam questions with options into open ones, have people check them, compare."
)
app.add_typer(openqa, name="openqa")

OpenqaFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="What `judgebench score openqa make` wrote.")
]


@openqa.command(
    epilog="Example: judgebench score openqa make exam.csv --backend writer.yaml --to open"
)
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
    from judgebench.scorers.openqa import questions as asking

    names, replies = columns_of(called, "--called"), to / asking.REPLIES
    closed = asking.read_questions(file, names, first)[:limit]
    model = the_writer(backend, replies, local_only)
    to.mkdir(parents=True, exist_ok=True)
    with writing(model, replies, budget) as (engine, terms):
        writer = asking.QuestionWriter(engine, model.decoding, replies)
        found = asking.open_questions(closed, writer, terms)
        left_out = asking.write_questions(found, writer)
    waiting = sum(not one.question and not one.reason for one in found)
    kept = len(found) - waiting - sum(left_out.values())
    typer.echo(f"{kept:,} of {len(found):,} questions can be asked openly: {to / asking.KEPT}")
    echo_each(f"  {n:,} left out: {reason}" for reason, n in left_out.items())
    if waiting:
        typer.echo(f"  {waiting:,} wait for a reply that failed: rerun to ask again")


@openqa.command(epilog="Example: judgebench score openqa sheet open --checker ann --checker ben")
def sheet(
    folder: OpenqaFolder,
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
    them, nor what the model left out. Each saves a table for `judgebench score openqa agreement`.
    """
    from judgebench.scorers.openqa.validation import write_sheets

    names = checker or [f"checker-{n}" for n in (1, 2, 3)]
    echo_each(write_sheets(folder, names, sample, seed, every=left_out))


@openqa.command(
    epilog="Example: judgebench score openqa agreement open ann.decisions.csv ben.decisions.csv"
)
def agreement(
    folder: OpenqaFolder,
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE", help="What annotators saved, one table each.")
    ],
    half_width: Annotated[
        float,
        typer.Option(min=0.001, max=0.5, metavar="X", help="Say how many more for +/- this."),
    ] = 0.05,
    output: Output = ONE_SCREEN,
) -> None:
    """Say how many questions 1, 2, … of the annotators call correct, and how far they agree."""
    from judgebench.scorers.openqa.validation import checked

    show({"openqa": checked(folder, tables, half_width)}, "", output)


@openqa.command(
    epilog="Example: judgebench score openqa compare scores.csv closed.csv --system model"
)
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
    figures: Figures = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Do systems that choose the right option also answer well without options?

    Question and system stand in both tables (default: exam_id and system). Coefficients with
    intervals over all answers, within questions and over systems.
    """
    import judgebench as jb
    from judgebench.scorers.correlate import Roles, open_against_closed

    where = Roles((), group or "exam_id", system or "system", flip or ())
    found = open_against_closed(opened, closed, where, correct, column or ())
    found = replace(found, name=opened.stem)
    written = jb.report(found, to, figures=figures) if to else {}
    show({"openqa": found}, found.name, output, written)
