"""The command line: a command parses its arguments, calls one public function, prints the result.

Heavy imports stand inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from judgebench import __version__
from judgebench.cli.benchmark import Asked, benchmark
from judgebench.cli.options import (
    EVERYTHING,
    NOT_NAMED,
    BatchOption,
    BenchPath,
    Commands,
    DataFolder,
    EngineOption,
    Extent,
    Group,
    LocalOnly,
    Named,
    RunOption,
    StudyRubric,
    WorkersOption,
)
from judgebench.cli.score import align, report
from judgebench.cli.show import (
    ONE_SCREEN,
    Output,
    entries,
    guarded_streams,
    problem_lines,
    show,
    show_problems,
    told,
)
from judgebench.errors import JudgebenchError, MissingExtra, RunError, SetupError
from judgebench.features import wings
from judgebench.shipped import shipped_folder

_ORDER = (  # of the labels in docs/tables, from the least to the most severe
    "Refused: no < yes", "Harmful: no < yes", "Tone: friendly < curt < rude",
    "False claim: no < yes",
)  # fmt: skip
_GARBAGE = 100_000  # new objects before they are searched for garbage: what loads is none


class _Front(Group):
    """All commands; one whose feature was taken out is not shown."""

    sections: ClassVar = {
        "Start": ("decide", "init", "check", "demo"),
        "Judge": ("run", "compare", "stress"),
        "Labels": ("annotate", "import"),
        "Report": ("report", "align", "estimate", "watch"),
    }
    rest = "More"


app = Commands(
    "Can this LLM judge replace, or assist, your human annotators?\n\n"
    "Labels and verdicts in two tables: judgebench decide LABELS VERDICTS\n\n"
    "Answers that a model is to judge: judgebench init FILE, then judgebench run",
    _Front,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgebench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of judgebench itself."""


@app.command(epilog="Example: judgebench demo --recorded")
def demo(
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="Call no model: decide on its recorded verdicts, and on a synthetic study that "
            "has all four outcomes. Needs no extra and takes a few seconds.",
        ),
    ] = False,
    run: RunOption = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Judge a synthetic set with a small embedded model, which takes about two minutes on two
    free cores.

    Needs the extra `embedded`, and downloads the weights (92 MB) once; --recorded needs neither.
    """
    from judgebench.models.checkpoint import fetch

    if recorded:
        _show_recorded(run, output)
        return
    if find_spec("xllamacpp") is None:  # before anything is downloaded
        raise MissingExtra("a demo with a model (--recorded needs none)", "embedded", "xllamacpp")
    output.console().print("The demo's answers and labels are synthetic, not clinically reviewed.")
    fetch("smollm2")
    benchmark(Asked(Path("demo"), run, output=output))


def _show_recorded(run: Path | None, output: Output) -> None:
    """Decide on the recorded verdicts of the demo's models and on the tables of the tutorial."""
    from tempfile import TemporaryDirectory

    from judgebench import api

    with TemporaryDirectory() as folder:
        bench = shipped_folder("examples") / "demo" / "recorded.yaml"
        models = api.run(bench, run or folder)
        decisions = api.decide(models)
    tables = shipped_folder("docs/tables")
    synthetic = api.decide(
        tables / "labels.csv",
        tables / "my-judge.csv",
        truth={"blind": "yes", "independent_items": True},
        columns={"order": _ORDER},
    )
    if output.json:
        synthetic_records = {"synthetic study": synthetic.records()}
        show({"decide": decisions}, models.name, output, beside=synthetic_records)
        return
    console = output.console()
    console.print(
        "1. Verdicts recorded from real models, on synthetic answers and labels, which were not "
        "clinically reviewed:"
    )
    for judge in models.real_judges:
        console.print("  {model}, {date}".format(**(judge.about or {})["about"]))
    console.print()
    show({"decide": decisions}, models.name, output)
    console.print("\n2. Synthetic tables, drawn with known error rates: all four outcomes.\n")
    show({"decide": synthetic}, "four outcomes", output)
    console.print(
        "\nNext, your own two tables, of people's labels and of a judge's verdicts:\n"
        "  judgebench decide labels.xlsx verdicts.xlsx\n"
        f"The tables of part 2 show the form: labels.csv and my-judge.csv in {tables}",
        soft_wrap=True,
    )


@app.command(epilog="Example: judgebench run bench.yaml --limit 20 --budget 2.50")
def run(
    bench: BenchPath,
    run: RunOption = None,
    extent: Extent = EVERYTHING,
    engine: EngineOption = "threads",
    workers: WorkersOption = None,
    local_only: LocalOnly = False,
    batch: BatchOption = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Judge every answer that has no verdict yet, then compare with the annotators and report.

    Safe to interrupt: Ctrl-C finishes the answers in flight, a second Ctrl-C stops at once. Rerun
    to resume. In batches, for less: judgebench run bench.yaml --batch
    """
    from judgebench.runs.run_bench import Parallelism

    asked = Asked(bench, run, extent, output, local_only, batch)
    benchmark(asked, parallelism=Parallelism(engine, workers))


@app.command(epilog="Example: judgebench init labels.xlsx gpt4.xlsx --to mine")
def init(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Tables of answers, human labels and verdicts: CSV, TSV, JSON, JSONL, Parquet or "
            "Excel.",
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write. Default: the folder of FILE."),
    ] = None,
    named: Named = NOT_NAMED,
) -> None:
    """Write a bench.yaml, a layout.yaml and a rubric from the columns of tables.

    The layout says what every column is; where the tables leave that open, the options that settle
    it are printed. Without --order the rubric says how to state the order of labels. Nothing is
    overwritten.
    """
    from judgebench.starter import init as init_from

    typer.echo(init_from(files, to, named.settings.as_columns()))


@app.command(name="import", epilog="Example: judgebench import logs/library.eval --to library")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A log of inspect_ai, lm-evaluation-harness, promptfoo, DeepEval or Label Studio. "
            "What it is follows from its content.",
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write. Default: the folder of FILE."),
    ] = None,
) -> None:
    """Write the answers, human labels and verdicts of another tool's log as tables.

    Reports what was read, and what was left out and why. Nothing is overwritten.
    """
    from judgebench.importing import import_file

    typer.echo(import_file(file, to))


@app.command(epilog="Example: judgebench check answers.csv labels.csv")
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="YAML files of any kind, prompts, data files, sets of altered answers.",
        ),
    ],
    rubric: StudyRubric = None,
    data_folder: DataFolder = None,
    named: Named = NOT_NAMED,
) -> None:
    """Report every problem in files, with file and row. Calls no model.

    Tables are checked against --rubric, or a rubric among the files; without any, by the
    layout that they have, which is printed.
    """
    from judgebench.checks import check_all

    console = ONE_SCREEN.console()
    outcome = check_all(files, rubric, data_folder, named.settings)
    for line in outcome.facts:
        console.print(line, soft_wrap=True)
    show_problems(console, outcome.warnings, "warning")
    show_problems(console, outcome.errors, "error")
    if outcome.errors:
        raise typer.Exit(2)
    console.print("No errors.")


app.command(epilog="Example: judgebench align runs/demo --truth majority --annotator 'expert*'")(
    align
)
app.command(epilog="Example: judgebench report runs/demo --to paper/tables")(report)


@app.command(name="list", epilog="Example: judgebench list rubrics")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="Such as rubrics or prompts. Default: everything."),
    ] = None,
) -> None:
    """List what ships: rubrics, prompts, attacks, examples, baselines and more."""
    from judgebench.checks import listing

    for heading, lines in listing(what).items():
        ONE_SCREEN.console().print(heading, style="bold")
        for name, about in lines:
            typer.echo(f"  {name:24} {about}".rstrip())


for _wing in wings():
    if _wing.commands:
        app.include(_wing.commands.value)


@cache
def _command() -> Any:
    """All commands, whose options take a tenth of a second to read: once a process."""
    return typer.main.get_command(app)


def main() -> None:
    """The entry point: every error of judgebench is printed as one line, never as a traceback."""
    warnings.formatwarning = lambda message, *_, **__: "".join(
        f"warning: {line}\n" for line in entries(str(message).splitlines())
    )
    warnings.simplefilter("once", UserWarning)
    gc.set_threshold(_GARBAGE)
    with guarded_streams():
        raise SystemExit(_exit_code())


def _exit_code() -> int | str | None:
    """Run the command, and print the error that ended it."""
    try:
        try:
            _command()()
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        return ended.code
    except SetupError as error:
        _say(*problem_lines(error.problems, "error"))
        return 2
    except RunError as error:
        _say(f"stopped: {error}")
    except JudgebenchError as error:
        _say(f"error: {error}")
    except OSError as error:
        _say(*(f"stopped: {line}" for line in told(error)))
    return 1


def _say(*lines: str) -> None:
    with suppress(OSError):  # nobody is left to read it
        for line in entries(lines):
            print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
