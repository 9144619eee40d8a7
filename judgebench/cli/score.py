"""`judgebench score`: scores of answers, and what follows from scores without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.benchmark import stoppable, the_writer, writing
from judgebench.cli.groups import Commands, argument, flag, option, options
from judgebench.cli.options import Budget as BudgetOption
from judgebench.cli.options import (
    Limit,
    LocalOnly,
    Seed,
    pairs_of,
)
from judgebench.cli.show import NO_REPORT, ONE_SCREEN, Output, ReportFolder, echo_each, show
from judgebench.errors import Problem, SetupError

ScoreTable = Annotated[Path, typer.Argument(metavar="FILE", help="A table with scores.")]
MODEL_HELP = "The model: a backend such as llamacpp:smollm2, or the YAML file of a judge."
ModelOption = Annotated[
    str,
    typer.Option(
        "--backend", metavar="BACKEND", help=MODEL_HELP,
    ),
]  # fmt: skip


@options
class Columns:
    """The columns of a table with scores."""

    group: str = option("", "COLUMN", "The column that names the question.")
    system: str = option("", "COLUMN", "The column that names the system.")
    column: list[str] = option((), "COLUMN", "A score. Default: all numbers. Repeatable.")


@options
class FlippedColumns(Columns):
    """Such columns, of which lower is better in some."""

    flip: list[str] = option(
        (), "COLUMN", "Lower is better: change the sign. '*' fits any. Repeatable."
    )


NO_COLUMNS, NO_FLIPS = Columns(), FlippedColumns()
_TOP_P = 0.9  # of the likeliest words, the share that an answer is drawn from

app = Commands(default="table")


def _check_target(to: Path, table: Path) -> None:
    """Raises SetupError where nothing can be written there, before any work is done."""
    if to.resolve() == table.resolve():
        raise SetupError(Problem("is the table itself: write to another file", str(to)))
    if not to.parent.is_dir():
        raise SetupError(Problem("no such folder", str(to.parent), field="--to"))


@app.command()
def table(
    answers: Path = argument("ANSWERS", "A table of any format; labels are not needed."),
    scorer: list[str] = option(
        (),
        "SCORER",
        "A name of `judgebench list scorers`, or settings such as "
        "'{scorer: rouge-l, stemmer: true}'. Repeatable.",
    ),
    role: list[str] = option(
        (),
        "ROLE=COLUMN",
        "Which column is the text, reference, question, system or group, where its name "
        "does not say so. Repeatable.",
    ),
    to: Path | None = option(None, "FILE", "A CSV file for the scores, beside ids and numbers."),
    kept: Path = option(
        Path("runs/scores"), "FOLDER", "Keeps the scores, so that a rerun resumes."
    ),
    output: Output = ONE_SCREEN,
) -> None:
    """Score the answers of any table, without labels.

    Prints what the scores depend on and why answers have none. Safe to interrupt; rerun to resume.

    Example: judgebench score answers.csv --scorer rouge-l --scorer chrf --to scores.csv
    """
    import judgebench as jb
    from judgebench.files import parse_yaml, write_atomically
    from judgebench.progress import ProgressDisplay

    console = output.console()
    asked = [parse_yaml(text, "--scorer") for text in scorer]
    if not asked:
        raise SetupError("name a scorer: --scorer rouge-l")
    if to:
        _check_target(to, answers)
    columns = pairs_of(role, "--role")
    message = f"Stopped. Scores so far are kept in {kept}. To resume, rerun."
    with stoppable(message), ProgressDisplay(console) as display:
        found = jb.score(answers, asked, columns=columns, folder=kept, progress=display)
    if to:
        write_atomically(to, found.to_frame().to_csv(index=False).encode())
    show({"scores": found}, answers.name, output)
    if to:
        console.print(f"Wrote {to}", soft_wrap=True)


@app.command()
def answers(
    backend: ModelOption,
    questions: Path = argument("QUESTIONS", "A table with questions, of any format."),
    to: Path = option(..., "FILE", "The CSV file to write."),
    repeats: int = option(11, "N", "How often each question is answered.", min=1),
    temperature: float = option(1.0, "T", "How freely answers are drawn.", min=0, max=2),
    name: str | None = option(None, "NAME", "What the table calls the system."),
    limit: Limit = None,
    seed: Seed = 0,
    budget: BudgetOption = None,
    local_only: LocalOnly = False,
) -> None:
    """Have a model answer every question several times, with another seed each time.

    The table can be judged and scored. Safe to interrupt; rerun to resume.

    Example: judgebench score answers questions.csv --backend llamacpp:smollm2 --to a.csv
    """
    from judgebench.data.tables import read_table
    from judgebench.scorers.table import questions_of, replies_path, write_answers
    from judgebench.writer import TextWriter

    _check_target(to, questions)
    rows, replies = questions_of(read_table(questions))[:limit], replies_path(to)
    model = the_writer(backend, replies, local_only)
    given = {"temperature": temperature, "top_p": _TOP_P, "seed": seed}
    left_out = model.decoding.left_out  # what the engine takes none of, by its file
    drawn = {key: value for key, value in given.items() if key not in left_out}
    decoding = model.decoding.model_copy(update=drawn)
    system = name or (backend.partition(":")[2] if backend == model.backend else model.name)
    with writing(model, replies, budget) as (engine, terms):
        found = write_answers(
            rows, repeats, system, to, TextWriter(engine, decoding, replies, terms)
        )
    typer.echo(f"{found[0]}: {to}")
    echo_each(f"  {line}" for line in found[1:])


@app.command()
def consistency(
    file: ScoreTable,
    columns: Columns = NO_COLUMNS,
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """How much of a score is noise? Rows of one question and system are runs of the same.

    Example: judgebench score consistency scores.csv --group question --system model
    """
    import judgebench as jb

    found = jb.consistency(file, group=columns.group, system=columns.system, scores=columns.column)
    show({"consistency": found}, found.name, output, report.write(found))


@app.command()
def correlate(
    files: list[Path] = argument("FILE", "Tables with scores, joined by question and system."),
    against: list[str] = option(
        (),
        "COLUMN",
        "Hold all others against this one, or against a mean of raters (human=ann,ben). "
        "Repeatable.",
    ),
    columns: FlippedColumns = NO_FLIPS,
    report: ReportFolder = NO_REPORT,
    output: Output = ONE_SCREEN,
) -> None:
    """Which scores go together, and which say the same? A row for each system, or for each item
    where --group names its question.

    Example: judgebench score correlate scores.csv --against accuracy --flip '*perplexity'
    """
    import judgebench as jb

    targets = [text.partition("=") for text in against]
    raters = {name: [*filter(None, names.split(","))] for name, _, names in targets}
    found = jb.correlate(
        files, raters, group=columns.group, system=columns.system,
        flip=columns.flip, scores=columns.column or ("*",),
    )  # fmt: skip
    show({"correlate": found}, found.name, output, report.write(found))


@app.command()
def openqa(
    source: Path = argument("FILE", "Questions with options: a table of any format."),
    backend: str = option("", "BACKEND", MODEL_HELP),
    to: Path | None = option(None, "FOLDER", "Where to write."),
    called: list[str] = option(
        (),
        "ROLE=COLUMN",
        "What a column is called if not question, option_1, option_2, …, key, item_id or "
        "group: --called key=cop. Repeatable.",
    ),
    checked: bool = flag("FILE holds people's labels of the open questions: say how they agree."),
    limit: Limit = None,
    budget: BudgetOption = None,
    local_only: LocalOnly = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Rewrite exam questions so that they can be asked without options; keep what has one right
    answer.

    Left out, and written to left-out.jsonl with the reason: what asks for what is wrong, what no
    rewriting opens, what another answer fits too. People check the rest: judgebench annotate init
    FOLDER/annotate.yaml. Safe to interrupt; rerun to resume.

    Example: judgebench score openqa exam.csv --backend writer.yaml --to open
    """
    from judgebench.scorers import open_questions as asking
    from judgebench.writer import TextWriter

    if checked:
        show({"openqa": asking.checked(source)}, "", output)
        return
    if not (backend and to):
        raise SetupError("name the model and the folder: --backend BACKEND --to FOLDER")
    closed = asking.read_questions(source, pairs_of(called, "--called"))[:limit]
    replies = to / asking.REPLIES
    model = the_writer(backend, replies, local_only)
    to.mkdir(parents=True, exist_ok=True)
    with writing(model, replies, budget) as (engine, terms):
        writer = TextWriter(engine, model.decoding, replies, terms)
        questions = asking.open_questions(closed, writer)
        left_out = asking.write_questions(questions, writer)
    waiting = sum(not one.question and not one.reason for one in questions)
    kept = len(questions) - waiting - sum(left_out.values())
    typer.echo(f"{kept:,} of {len(questions):,} questions can be asked openly: {to / asking.KEPT}")
    echo_each(f"  {n:,} left out: {reason}" for reason, n in left_out.items())
    if waiting:
        typer.echo(f"  {waiting:,} wait for a reply that failed: rerun to ask again")
