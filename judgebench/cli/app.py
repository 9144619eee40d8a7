"""The command line: a command parses its arguments, calls one public function, prints the result.

Heavy imports stand inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

import judgebench
from judgebench.cli.annotate import app as annotate_commands
from judgebench.cli.benchmark import Asked, benchmark, this_command
from judgebench.cli.compare import compare
from judgebench.cli.decide import decide
from judgebench.cli.estimate import estimate
from judgebench.cli.exit_codes import BAD_INPUT, EXIT_CODES, FAILED
from judgebench.cli.groups import Commands, Group, argument, flag, option
from judgebench.cli.options import (
    EVERYTHING,
    NOBODY,
    NOT_NAMED,
    BenchPath,
    DataFolder,
    Extent,
    LocalOnly,
    Named,
    People,
    RunOption,
    StudyRubric,
    said_of_tables,
)
from judgebench.cli.plan import plan
from judgebench.cli.rank import app as rank_commands
from judgebench.cli.report import align, report
from judgebench.cli.score import app as score_commands
from judgebench.cli.show import (
    ONE_SCREEN,
    AsJson,
    Output,
    entries,
    guarded_streams,
    problem_lines,
    show,
    show_problems,
    told,
)
from judgebench.cli.stress import app as stress_commands
from judgebench.cli.tune import app as tune_commands
from judgebench.cli.watch import watch
from judgebench.errors import JudgebenchError, MissingExtra, RunError, SetupError
from judgebench.files import shipped_folder
from judgebench.results.documents import COMMAND
from judgebench.version import VERSION

_ORDER = (  # of the labels in docs/tables, from the least to the most severe
    "Refused: no < yes", "Harmful: no < yes", "Tone: friendly < curt < rude",
    "False claim: no < yes",
)  # fmt: skip
_GARBAGE = 100_000  # new objects before they are searched for garbage: what loads is none


class _Front(Group):
    """All commands, and the exit codes."""

    sections: ClassVar = {
        "Start": ("decide", "init", "check", "demo"),
        "Judge": ("run", "compare", "stress"),
        "Labels": ("plan", "annotate", "import"),
        "Report": ("report", "align", "estimate", "watch"),
    }
    rest = "More"

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


app = Commands(
    "Can this LLM judge replace, or assist, your human annotators?\n\n"
    "Labels and verdicts in two tables: judgebench decide LABELS VERDICTS\n\n"
    "Answers that a model is to judge: judgebench init FILE, then judgebench run",
    _Front,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgebench {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of judgebench itself."""


@app.command()
def demo(
    recorded: bool = flag(
        "Call no model: decide on its recorded verdicts, and on a synthetic study that "
        "has all four outcomes. Needs no extra and takes a few seconds."
    ),
    run: RunOption = None,
    output: Output = ONE_SCREEN,
) -> None:
    """Judge a synthetic set with a small embedded model, in about two minutes.

    Needs the extra `embedded`, and downloads the weights (92 MB) once; --recorded needs neither.

    Example: judgebench demo --recorded
    """
    from judgebench.models.checkpoints import fetch

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

    import judgebench as jb

    with TemporaryDirectory() as folder:
        bench = shipped_folder("examples") / "demo" / "recorded.yaml"
        models = jb.run(bench, run or folder)
        decisions = jb.decide(models)
    tables = shipped_folder("docs/tables")
    synthetic = jb.decide(
        tables / "labels.csv",
        tables / "my-judge.csv",
        truth={"blind": "yes", "independent_items": True},
        columns={"order": _ORDER},
    )
    if output.json:
        show(
            {"decide": decisions},
            models.name,
            output,
            beside={"synthetic study": synthetic.records()},
        )
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


@app.command()
def run(
    bench: BenchPath,
    run: RunOption = None,
    extent: Extent = EVERYTHING,
    engine: Literal["threads", "ray"] = option(
        "threads", "threads|ray", "`ray` spreads the answers over a Ray cluster."
    ),
    workers: int | None = option(
        None, "N", "Ray workers. Default: one per GPU, without GPUs one per machine.", min=1
    ),
    local_only: LocalOnly = False,
    batch: bool = flag(
        "Send remote judges batches, which cost less and take up to a day. Rerun to collect."
    ),
    output: Output = ONE_SCREEN,
) -> None:
    """Judge every answer that has no verdict yet, decide and report.

    Safe to interrupt: Ctrl-C finishes the answers in flight, a second Ctrl-C stops at once. Rerun
    to resume. In batches, for less: judgebench run bench.yaml --batch

    Example: judgebench run bench.yaml --limit 20 --budget 2.50
    """
    from judgebench.runs.run_bench import Parallelism

    benchmark(
        Asked(bench, run, extent, output, local_only, batch),
        parallelism=Parallelism(engine, workers),
    )


@app.command()
def init(
    files: list[Path] = argument(
        "FILE",
        "Tables of answers, human labels and verdicts: CSV, TSV, JSON, JSONL, Parquet or Excel.",
    ),
    to: Path | None = option(None, "FOLDER", "Where to write. Default: the folder of FILE."),
    named: Named = NOT_NAMED,
    people: People = NOBODY,
) -> None:
    """Write a bench.yaml, layout.yaml and rubric from tables.

    The layout says what every column is; where the tables leave that open, the options that settle
    it are printed. Without --order the rubric says how to state the order of labels. Nothing is
    overwritten.

    Example: judgebench init labels.xlsx gpt4.xlsx --to mine
    """
    from judgebench.setup_files import init as init_from

    typer.echo(init_from(files, to, said_of_tables(named, people)))


@app.command("import")
def import_(
    file: Path = argument(
        "FILE",
        "A log of inspect_ai, lm-evaluation-harness, promptfoo, DeepEval or Label Studio. "
        "What it is follows from its content.",
    ),
    to: Path | None = option(None, "FOLDER", "Where to write. Default: the folder of FILE."),
) -> None:
    """Write the log of another tool as tables of answers, labels, verdicts.

    Reports what was read, and what was left out and why. Nothing is overwritten.

    Example: judgebench import logs/library.eval --to library
    """
    from judgebench.setup_files import import_file

    typer.echo(import_file(file, to))


@app.command()
def check(
    files: list[Path] = argument(
        "FILE", "YAML files of any kind, prompts, data files, sets of altered answers."
    ),
    rubric: StudyRubric = None,
    data_folder: DataFolder = None,
    named: Named = NOT_NAMED,
    people: People = NOBODY,
    as_json: AsJson = False,
) -> None:
    """Report every problem in files, and what they support today. Calls no model.

    Each use of the data is printed with the next command, or with what is missing.

    Tables are checked against --rubric, or a rubric among the files; without any, by the
    layout that they have, which is printed.

    Example: judgebench check answers.csv labels.csv
    """
    import judgebench as jb
    from judgebench.supported import support_lines

    console, columns = ONE_SCREEN.console(), said_of_tables(named, people)
    report = jb.check(files, rubric, data_folder=data_folder, columns=columns)
    if as_json:
        typer.echo(json.dumps(asdict(report), ensure_ascii=False, indent=1))
        raise typer.Exit(BAD_INPUT if report.errors else 0)
    for line in report.facts:
        console.print(line, soft_wrap=True)
    show_problems(console, report.warnings, "warning")
    show_problems(console, report.errors, "error")
    if report.errors:
        raise typer.Exit(BAD_INPUT)
    console.print("No errors.")
    for line in support_lines(report.supports):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


@app.command("list")
def list_(
    what: str | None = argument(
        "KIND", "Such as rubrics or prompts. Default: everything.", default=None
    ),
) -> None:
    """List what ships: rubrics, prompts, examples, baselines and more.

    Example: judgebench list rubrics
    """
    from judgebench.setup_files import listing

    for heading, lines in listing(what).items():
        ONE_SCREEN.console().print(heading, style="bold")
        for name, about in lines:
            typer.echo(f"  {name:24} {about}".rstrip())


@app.command()
def skill() -> None:
    """Print a SKILL.md for coding agents: which command for which data.

    Example: judgebench skill > .claude/skills/judgebench/SKILL.md
    """
    typer.echo(
        Path(judgebench.__file__).with_name("skill.md").read_text(encoding="utf-8"), nl=False
    )


for _verb in (decide, compare, align, report, estimate, plan, watch):
    app.command()(_verb)
app.add_typer(annotate_commands, name="annotate")
app.add_typer(rank_commands, name="rank")
app.add_typer(score_commands, name="score")
app.add_typer(stress_commands, name="stress")
app.add_typer(tune_commands, name="tune")


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
        raise SystemExit(copy_context().run(_exit_code))


def _exit_code() -> int | str | None:
    """Run the command, and print the error that ended it."""
    COMMAND.set(this_command())
    try:
        try:
            _command()()
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        return ended.code
    except SetupError as error:
        _say(*problem_lines(error.problems, "error"))
        return BAD_INPUT
    except RunError as error:
        _say(f"stopped: {error}")
    except JudgebenchError as error:
        _say(f"error: {error}")
    except OSError as error:
        _say(*(f"stopped: {line}" for line in told(error)))
    return FAILED


def _say(*lines: str) -> None:
    with suppress(OSError):  # nobody is left to read it
        for line in entries(lines):
            print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
