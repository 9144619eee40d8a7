"""Run a benchmark from the command line: progress, a summary, and the report."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from judgebench.cli.consent import confirm_keys, models_of
from judgebench.cli.options import INTERRUPTED
from judgebench.cli.score import report_and_print
from judgebench.cli.show import ONE_SCREEN, Output, show_problems
from judgebench.errors import JudgesStopped

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.runs.bench import Bench
    from judgebench.runs.extension import Extend
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.run_bench import Sharing


@dataclass(frozen=True)
class Asked:
    """What is to be run, as the command line says."""

    bench: Path
    run: Path | None = None
    limit: int | None = None
    budget: float | None = None
    data_folder: Path | None = None
    dry_run: bool = False
    output: Output = ONE_SCREEN
    local_only: bool = False
    batch: bool = False


def benchmark(asked: Asked, extend: Extend | None = None, sharing: Sharing | None = None) -> None:
    """Judge what has no verdict yet, with what a wing adds; then write and print the report."""
    from judgebench.runs.bench import check_local, default_run_folder, load_bench
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.run_bench import batched

    console, stopped, failed = asked.output.console(), None, False
    if asked.local_only:
        check_local(asked.bench, on_ray=sharing is not None and sharing.engine == "ray")
    bench = load_bench(
        asked.bench,
        limit=asked.limit,
        data_folder=asked.data_folder,
        run_folder=asked.run,
        extend=extend,
    )
    try:
        folder = RunFolder(asked.run or default_run_folder(bench.config))
        show_problems(console, bench.warnings, "warning")
        if asked.dry_run:
            _print_forecast(console, bench, folder)
            return
        if asked.batch:
            bench = batched(bench, folder, asked.budget, sharing)
        if not folder.manifest():
            confirm_keys(bench.file, models_of(bench))
        _judge(console, bench, folder, asked.budget, sharing)
    except JudgesStopped as error:  # the others have earned their report
        stopped = error
    finally:
        bench.close()
    if sharing is None or sharing.shard is None or folder.manifest().get("state") == "finished":
        failed = not report_and_print(folder.path, asked.output)
        if not (bench.judges or bench.recorded or bench.learning):
            _say_no_judge(console, bench, folder)
    if stopped:
        typer.echo(f"stopped: {stopped}\nTo resume, rerun:\n  {_this_command()}", err=True)
    if stopped or failed:
        raise typer.Exit(1)


def _judge(
    console: Console, bench: Bench, folder: RunFolder, budget: float | None, sharing: Sharing | None
) -> None:
    from judgebench.progress import ProgressDisplay
    from judgebench.runs import run_bench
    from judgebench.runs.stop import Interrupted
    from judgebench.words import counted

    parts = [
        counted(len(bench.answers), "answer"),
        counted(bench.dataset.n_labels, "human label"),
        counted(bench.n_judges, "judge"),
        counted(len(bench.juries), "jury", "juries"),
        counted(len(bench.controls), "control judge"),
    ]
    if bench.calibrations:
        parts.insert(-1, counted(len(bench.calibrations), "calibrated judge"))
    if bench.extension:
        parts[1:1] = [bench.extension.counted] if bench.extension.counted else []
        for line in bench.extension.told:
            console.print(line)
    console.print(
        f"{bench.config.name}: {', '.join(parts)}; run folder {folder.path}",
    )
    display = ProgressDisplay(console)
    try:
        with display:
            shared = sharing or run_bench.Sharing()
            run_bench.run(bench, folder, budget=budget, progress=display, sharing=shared)
    except Interrupted as stopped:
        for line in display.summary():
            typer.echo(line, err=True)
        typer.echo(
            f"Stopped. Verdicts so far are kept in {folder.path}. To resume, rerun:\n"
            f"  {_this_command()}\n"
            f"To score what there is: judgebench align {shlex.quote(str(folder.path))}",
            err=True,
        )
        if stopped.at_once:
            _leave_at_once()
        raise typer.Exit(INTERRUPTED) from None


def _say_no_judge(console: Console, bench: Bench, folder: RunFolder) -> None:
    """What can be done about a benchmark without a judge."""
    run = shlex.quote(str(folder.path))
    console.print(
        f"! {bench.file.name} names no judge: this report is about annotators and control judges "
        "alone. To compare a judge,\n"
        "  - add an entry under `judges:`, such as {name: NAME, backend: BACKEND};\n"
        "  - or, if its verdicts are in a file: {name: NAME, verdicts: FILE};\n"
        f"  - or compare an annotator with the others: judgebench decide {run} --as-judge NAME",
        soft_wrap=True,
    )  # fmt: skip


def _this_command() -> str:
    return shlex.join(["judgebench", *sys.argv[1:]])


def _leave_at_once() -> NoReturn:
    """End the process without waiting for engines at work; all that was written is on the disk."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _print_forecast(console: Console, bench: Bench, folder: RunFolder) -> None:
    from rich.table import Table

    from judgebench.runs.forecast import forecast
    from judgebench.runs.run_bench import with_learnt

    table = Table(title="Estimate of this run (token counts are rough)")
    for heading in ("judge", "answers", "judged before", "calls", "prompt tokens", "reply tokens"):
        table.add_column(heading, justify="left" if heading == "judge" else "right")
    table.add_column("cost", justify="right")
    for f in forecast(bench, folder):
        most = "up to " if f.at_most else ""
        cost = "unknown" if f.cost is None else f"{most}${f.cost:.2f}"
        counts = (f"{most}{n:,}" for n in (f.calls, f.prompt_tokens, f.completion_tokens))
        table.add_row(f.judge, f"{f.answers:,}", f"{f.done:,}", *counts, cost)
    console.print(table)
    for judge in bench.recorded:
        told = f"{judge.name}: recorded verdicts on {judge.n_rows:,} items, no call."
        console.print(told)
    for learnt in with_learnt(bench, folder).learnt:
        console.print(f"{learnt.ahead}.")
    console.print("No model was called, nothing was written.")
