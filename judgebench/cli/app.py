"""The command line: a verb reads its arguments, calls one public function, prints what came back.

Heavy imports stand inside the verbs, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from judgebench import __version__
from judgebench.cli import attack as cli_attack
from judgebench.cli import rank as cli_rank
from judgebench.cli import score as cli_score
from judgebench.cli.attack import INTERRUPTED
from judgebench.errors import JudgebenchError, RunError, SetupError

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.errors import Problem
    from judgebench.runner.bench import Attacking, Bench
    from judgebench.store.folder import RunFolder
    from judgebench.stress.probes.plan import Made

MOST_PROBLEMS_SHOWN = 50  # of one kind

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich alone would take a quarter of a second to import
    help="May this LLM judge stand in for your human annotators?\n\n"
    "Start with `judgebench demo`, then write a bench.yaml of your own.",
)

app.add_typer(cli_attack.app, name="attack")
app.add_typer(cli_rank.app, name="rank")

BenchPath = Annotated[Path, typer.Argument(help="bench.yaml, or the name of a shipped example.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take the first N answers only.")]
Budget = Annotated[
    float | None, typer.Option(min=0, help="US dollars that this run folder may cost in all.")
]
ShardOption = Annotated[
    str | None,
    typer.Option(help="Do part K of N of the answers, beside other processes: 2/8."),
]
EngineOption = Annotated[
    Literal["threads", "ray"], typer.Option(help="ray: spread the answers over a Ray cluster.")
]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Ray workers. Default: one a GPU, else one a machine.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say how many calls, tokens and dollars.")
]
RunOption = Annotated[
    Path | None, typer.Option("--run", help="The run folder. Default: runs/NAME, here.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data-folder", help="Where data files lie, if not where the YAML says."),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgebench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of judgebench itself."""


@app.command(epilog="Example: judgebench demo --run runs/demo")
def demo(run: RunOption = None) -> None:
    """Judge a synthetic set with a small embedded model. Start here."""
    from judgebench.backends.weights import fetch as fetch_weights

    console = _console()
    console.print("The demo's answers and labels are synthetic and not clinically reviewed.")
    fetch_weights("smollm2")
    _benchmark(Path("demo"), run, None, None, None, False)


@app.command(epilog="Example: judgebench run bench.yaml --limit 20 --budget 2.50")
def run(
    bench: BenchPath,
    run: RunOption = None,
    limit: Limit = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    data_folder: DataFolder = None,
    shard: ShardOption = None,
    engine: EngineOption = "threads",
    workers: WorkersOption = None,
) -> None:
    """Judge what is not judged yet, then align and report.

    Ctrl-C lets answers in flight finish, twice stops at once; the same command goes on from there.
    """
    _benchmark(
        bench, run, limit, budget, data_folder, dry_run, None, Sharing(shard, engine, workers)
    )


@app.command(epilog="Example: judgebench stress bench.yaml --sample 20")
def stress(
    bench: BenchPath = Path("stress"),
    run: RunOption = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="At most N altered answers a recipe.")
    ] = None,
    reviewed: Annotated[
        bool, typer.Option("--reviewed", help="Count only what people accepted in its sheet.")
    ] = False,
    limit: Limit = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    data_folder: DataFolder = None,
) -> None:
    """Judge altered answers too: what must worsen a verdict, and what must not move it.

    Without an argument the shipped example runs with the embedded model. Verdicts of an earlier
    `judgebench run` in the same folder are used; Ctrl-C keeps what is done.
    """
    from judgebench.runner.bench import Attacking

    attacking = Attacking(sample=sample, reviewed=reviewed)
    _benchmark(bench, run, limit, budget, data_folder, dry_run, attacking)


@app.command(epilog="Example: judgebench check answers.csv labels.csv --rubric medical-safety")
def check(
    files: Annotated[
        list[Path],
        typer.Argument(help="Bench, judge, rubric, task, recipe, data YAML; prompts; data; sets."),
    ],
    rubric: Annotated[
        str, typer.Option(help="The rubric that data files are read against: path or name.")
    ] = "medical-safety",
    data_folder: DataFolder = None,
) -> None:
    """Tell every problem in files, with file and row. Calls no model."""
    from judgebench.check import check_all

    console = _console()
    outcome = check_all(files, rubric, data_folder)
    for line in outcome.facts:
        console.print(line, highlight=False, markup=False)
    _show(console, outcome.warnings, "warning")
    _show(console, outcome.errors, "error")
    if outcome.errors:
        raise typer.Exit(2)
    console.print("No errors.")


app.command(epilog="Example: judgebench align runs/demo --truth majority --annotator 'expert*'")(
    cli_score.align
)
app.command(epilog="Example: judgebench decide runs/demo --require REPLACE:scientific_consensus")(
    cli_score.decide
)
app.command(epilog="Example: judgebench report runs/demo --to paper/tables")(cli_score.report)


@app.command(name="list", epilog="Example: judgebench list rubrics")
def list_(
    what: Annotated[
        Literal[
            "rubrics", "prompts", "tasks", "attacks", "examples", "backends", "controls", "weights"
        ]
        | None,
        typer.Argument(help="One kind; everything without it."),
    ] = None,
) -> None:
    """List what ships: rubrics, prompts, attacks, examples, controls and more."""
    from judgebench.check import listing

    for heading, lines in listing(what).items():
        typer.secho(heading, bold=True)
        for name, about in lines:
            typer.echo(f"  {name:24} {about}".rstrip())


@app.command(epilog="Example: judgebench fetch smollm2")
def fetch(
    name: Annotated[str, typer.Argument(help="Weights by name; see: judgebench list weights.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder. Default: judgebench's cache folder.")
    ] = None,
) -> None:
    """Fetch the weights of the embedded judge and check their SHA-256."""
    from judgebench.backends.weights import fetch as fetch_weights

    typer.echo(fetch_weights(name, to))


@dataclass(frozen=True)
class Sharing:
    """How several processes share the work of a run."""

    shard: str | None = None
    engine: Literal["threads", "ray"] = "threads"
    workers: int | None = None

    def arguments(self) -> dict[str, Any]:
        """For `runner.run`. Raises SetupError where `shard` is none."""
        from judgebench.store.folder import Shard

        shard = Shard.parse(self.shard) if self.shard else None
        return {"shard": shard, "engine": self.engine, "workers": self.workers}


ALONE = Sharing()


def _benchmark(
    path: Path,
    run_path: Path | None,
    limit: int | None,
    budget: float | None,
    data_folder: Path | None,
    dry_run: bool,
    attacking: Attacking | None = None,
    sharing: Sharing = ALONE,
) -> None:
    from judgebench.runner.bench import default_run_folder, load_bench
    from judgebench.store.folder import RunFolder

    console = _console()
    bench = load_bench(
        path, limit=limit, data_folder=data_folder, attacking=attacking, run_folder=run_path
    )
    try:
        folder = RunFolder(run_path or default_run_folder(bench.config))
        _show(console, bench.dataset.warnings, "warning")
        if dry_run:
            _print_forecast(console, bench, folder)
            return
        _judge(console, bench, folder, budget, sharing)
    finally:
        bench.close()
    if sharing.shard is None or folder.manifest().get("state") == "finished":
        cli_score.report_and_print(folder.path, console)


def _judge(
    console: Console, bench: Bench, folder: RunFolder, budget: float | None, sharing: Sharing
) -> None:
    from judgebench import runner
    from judgebench.progress import ProgressDisplay
    from judgebench.report.words import counted

    parts = [
        counted(len(bench.dataset.answers), "answer"),
        counted(len(bench.dataset.labels), "human label"),
        counted(len(bench.judges), "judge"),
        counted(len(bench.juries), "jury", "juries"),
        counted(len(bench.controls), "control judge"),
    ]
    if bench.calibrations:
        parts.insert(-1, counted(len(bench.calibrations), "calibrated judge"))
    if bench.plan:
        parts[0] = counted(len(bench.plan.parents), "answer")
        parts.insert(1, counted(len(bench.plan.items), "altered answer"))
        for made in bench.plan.made:
            _tell_made(console, made)
    console.print(
        f"{bench.config.name}: {', '.join(parts)}; run folder {folder.path}",
        highlight=False,
        markup=False,
    )
    display = ProgressDisplay(console)
    try:
        with display:
            runner.run(bench, folder, budget=budget, progress=display, **sharing.arguments())
    except runner.Interrupted as stopped:
        for line in display.summary():
            typer.echo(line, err=True)
        typer.echo(
            f"Stopped. What is done is kept in {folder.path}. Go on from there with:\n"
            f"  {shlex.join(['judgebench', *sys.argv[1:]])}\n"
            f"or score what there is: judgebench align {shlex.quote(str(folder.path))}",
            err=True,
        )
        if stopped.at_once:
            _leave_at_once()
        raise typer.Exit(INTERRUPTED) from None


def _leave_at_once() -> NoReturn:
    """End the process without waiting for engines at work; all that was written is on the disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _tell_made(console: Console, made: Made) -> None:
    """What an attack could not make: an edit that finds nothing to change says so."""
    gaps = [f"{len(made.rejected)} failed a check"] if made.rejected else []
    gaps += [f"nothing to change in {len(made.nothing)}"] if made.nothing else []
    gaps += [f"{made.attack.undecided} not accepted"] if made.attack.undecided else []
    if gaps:
        line = f"{made.attack.name}: {len(made.items)} items; {', '.join(gaps)}"
        console.print(line, highlight=False, markup=False)


def _print_forecast(console: Console, bench: Bench, folder: RunFolder) -> None:
    from rich.table import Table

    from judgebench.runner import forecast

    table = Table(title="What a run would ask (tokens are rough)")
    for heading in ("judge", "answers", "judged before", "calls", "prompt tokens", "reply tokens"):
        table.add_column(heading, justify="left" if heading == "judge" else "right")
    table.add_column("cost", justify="right")
    for f in forecast(bench, folder):
        cost = "unknown" if f.cost is None else f"${f.cost:.2f}"
        counts = (f.answers, f.done, f.calls, f.prompt_tokens, f.completion_tokens)
        table.add_row(f.judge, *(f"{n:,}" for n in counts), cost)
    console.print(table)
    console.print("Nobody was asked and nothing was written.")


def _console() -> Console:
    from rich.console import Console

    return Console()


def _show(console: Console, problems: Sequence[Problem], word: str) -> None:
    """Every problem, one a line, many of one kind cut short and counted."""
    shown: dict[str, int] = {}
    for problem in problems:
        shown[problem.kind] = shown.get(problem.kind, 0) + 1
        if shown[problem.kind] <= MOST_PROBLEMS_SHOWN:
            console.print(f"{word}: {problem}", highlight=False, markup=False, soft_wrap=True)
    for kind, count in shown.items():
        if count > MOST_PROBLEMS_SHOWN:
            console.print(f"{word}: … and {count - MOST_PROBLEMS_SHOWN} more of the kind {kind!r}")


def main() -> None:
    """The entry point: errors of ours are told in a line each, never as a traceback."""
    try:
        app()
    except SetupError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
    except RunError as error:
        print(f"stopped: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except JudgebenchError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
