"""Models at work for a command: a benchmark with its report, a writer, and keys that are sent."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import typer

from judgebench.cli.exit_codes import FAILED, INTERRUPTED
from judgebench.cli.options import EVERYTHING, Extent
from judgebench.cli.report import report_and_print
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show_problems
from judgebench.errors import JudgesStopped
from judgebench.files import shipped_folder

if TYPE_CHECKING:
    from rich.console import Console

    from judgebench.judges.config import JudgeConfig
    from judgebench.models.contract import Backend
    from judgebench.models.settings import BackendSettings
    from judgebench.runs.bench import Bench, Extend
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.run_bench import Parallelism
    from judgebench.writer import WritingTerms


@dataclass(frozen=True)
class Asked:
    """The work that is to be done, as the command line says."""

    bench: Path
    run: Path | None = None
    extent: Extent = EVERYTHING
    output: Output = ONE_SCREEN
    local_only: bool = False
    batch: bool = False


def benchmark(
    asked: Asked, extend: Extend | None = None, parallelism: Parallelism | None = None
) -> Path | None:
    """Judge what has no verdict yet, with what a feature adds; then write and print the report.
    Returns the run folder, None of a dry run."""
    from judgebench.runs.load import check_local, load_bench
    from judgebench.runs.run_bench import THREADS, batched, choose_run_folder

    console, stopped = asked.output.console(), None
    parallelism = parallelism or THREADS
    if asked.local_only:
        check_local(asked.bench, on_ray=parallelism.engine == "ray")
    bench = load_bench(
        asked.bench,
        limit=asked.extent.limit,
        data_folder=asked.extent.data_folder,
        run_folder=asked.run,
        extend=extend,
    )
    try:
        folder, notice = choose_run_folder(bench, asked.run)
        told = [problem for problem in bench.warnings if problem.kind != "blank_label"]  # a caveat
        show_problems(console, told, "warning")
        if notice:
            console.print(f"! {notice}.", soft_wrap=True)
        for line in bench.extension.told if bench.extension else ():
            console.print(line)
        if asked.extent.dry_run:
            _print_forecast(console, bench, folder)
            return None
        if asked.batch:
            bench = batched(bench, folder, asked.extent.budget, parallelism)
        if not folder.manifest():
            confirm_keys(bench.file, models_of(bench))
        _judge(console, bench, folder, asked.extent.budget, parallelism)
    except JudgesStopped as error:  # the others have earned their report
        stopped = error
    finally:
        bench.close()
    del bench  # the report reads its answers from the run folder, and a million fill memory
    failed = not report_and_print(folder.path, asked.output)
    if stopped:
        typer.echo(f"stopped: {stopped}\nTo resume, rerun:\n  {this_command()}", err=True)
    if stopped or failed:
        raise typer.Exit(FAILED)
    return folder.path


def _judge(
    console: Console,
    bench: Bench,
    folder: RunFolder,
    budget: float | None,
    parallelism: Parallelism,
) -> None:
    from judgebench.progress import ProgressDisplay
    from judgebench.runs import run_bench
    from judgebench.runs.judging import Interrupted

    if not (bench.judges or bench.recorded or bench.learning):
        console.print(
            f"! {bench.file.name} names no judge: the report is about annotators and baselines "
            "alone. Add under `judges:` {name: NAME, backend: BACKEND}, or, of verdicts in a file, "
            "{name: NAME, verdicts: FILE}.",
            soft_wrap=True,
        )  # fmt: skip
    console.print(f"{bench.config.name}: {bench.in_words}; run folder {folder.path}")
    display = ProgressDisplay(console)
    try:
        with display:
            run_bench.run(bench, folder, budget=budget, progress=display, parallelism=parallelism)
    except Interrupted as stopped:
        echo_each(display.summary(), err=True)
        typer.echo(
            f"Stopped. Verdicts so far are kept in {folder.path}. To resume, rerun:\n"
            f"  {this_command()}\n"
            f"To score what there is: judgebench align {shlex.quote(str(folder.path))}",
            err=True,
        )
        if stopped.at_once:  # without waiting for engines at work: all that was written is on disk
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise typer.Exit(INTERRUPTED) from None


def this_command() -> str:
    """The command line, to be typed again."""
    return shlex.join(["judgebench", *sys.argv[1:]])


def _print_forecast(console: Console, bench: Bench, folder: RunFolder) -> None:
    from judgebench.runs.forecast import forecast
    from judgebench.runs.run_bench import with_learnt

    console.print("Estimate of this run (token counts are rough)")
    for f in forecast(bench, folder):
        most = "up to " if f.at_most else ""
        cost = "cost unknown" if f.cost is None else f"${f.cost:.2f}"
        console.print(
            f"{f.judge}: {f.answers:,} answers, {f.done:,} judged before: {most}{f.calls:,} calls, "
            f"{f.prompt_tokens:,} prompt tokens, {f.completion_tokens:,} reply tokens, {cost}",
            soft_wrap=True,
        )
    for judge in bench.recorded:
        console.print(f"{judge.name}: recorded verdicts on {judge.n_rows:,} items, no call.")
    for learnt in with_learnt(bench, folder).learnt:
        console.print(f"{learnt.ahead}.")
    console.print("No model was called, nothing was written.")


@runtime_checkable
class Model(Protocol):
    """A judge or a writer as a file names it."""

    @property
    def backend(self) -> str: ...

    @property
    def settings(self) -> BackendSettings: ...


def confirm_keys(file: Path, models: Iterable[Model]) -> None:
    """Say on standard error which variable a file outside the current folder sends to which host,
    and ask whether to go on where somebody can answer.

    Raises typer.Abort where the answer is no.
    """
    if any(map(file.resolve().is_relative_to, (Path.cwd(), shipped_folder("examples")))):
        return
    sent = dict.fromkeys(_sent(models))
    outside = f"{file} lies outside the current folder and sends"
    echo_each((f"{outside} {line}." for line in sent), err=True)
    if sent and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm("Go on?", abort=True, err=True)


def models_of(bench: Bench) -> list[Model]:
    """The models that judges and scorers of a benchmark ask."""
    hows = [getattr(entry, "how", None) for entry in bench.learning]
    found: list[Model] = [judge.config for judge in bench.judges]
    return found + [how for how in hows if isinstance(how, Model)]


def _sent(models: Iterable[Model]) -> Iterator[str]:
    from judgebench.models import hosts_of

    for model in models:
        if key := model.settings.api_key_env:
            hosts = hosts_of(model.backend, model.settings) or [f"what {model.backend} asks"]
            yield f"the value of ${key} to {hosts[0]}"


def the_writer(by: str, replies: Path, local_only: bool) -> JudgeConfig:
    """The model of a judge's YAML file, or a backend such as `llamacpp:smollm2`. Before the first
    of the `replies` is asked for, says which keys of this machine somebody else's file sends.

    Raises SetupError, also where it would contact another machine and must not, and typer.Abort.
    """
    from judgebench.files import load_model
    from judgebench.judges.config import JudgeConfig
    from judgebench.models import check_hosts, hosts_of, kind_of
    from judgebench.runs.load import Gathered

    if of_file := by.endswith((".yaml", ".yml")):
        model = load_model(Path(by), JudgeConfig)
    else:
        kind_of(by)
        model = JudgeConfig(name="writer", backend=by)
    if local_only:
        gather = Gathered(by)
        gather("backend", check_hosts, hosts_of(model.backend, model.settings))
        gather.raise_any()
    if of_file and not replies.exists():
        confirm_keys(Path(by), [model])
    return model


@contextmanager
def stoppable(message: str, by: type[KeyboardInterrupt] = KeyboardInterrupt) -> Iterator[None]:
    """Run work that its user may stop: the message then goes to standard error, and the command
    ends with the exit code of Ctrl-C."""
    try:
        yield
    except by:
        typer.echo(message, err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def writing(
    model: JudgeConfig, replies: Path, budget: float | None
) -> Iterator[tuple[Backend, WritingTerms]]:
    """The open model, and terms with progress, Ctrl-C and a budget that counts the `replies` that
    are kept already; a work that was interrupted ends the command."""
    from judgebench.models import open_backend
    from judgebench.models.contract import drain
    from judgebench.progress import ProgressDisplay
    from judgebench.runs.judging import Budget, Interrupted, Stop, ctrl_c
    from judgebench.writer import WritingTerms, kept_replies

    paid, stop = [reply.cost or 0.0 for reply in kept_replies(replies).values()], Stop()
    limited = Budget(budget, sum(paid), max(paid, default=0.0))
    message = f"Stopped. Replies so far are kept in {replies}; rerun to resume."
    with (
        stoppable(message, by=Interrupted),
        closing(open_backend(model.backend, model.settings)) as backend,
        ProgressDisplay(ONE_SCREEN.console()) as display,
        ctrl_c(stop, display.say),
    ):
        stop.then(partial(drain, backend))
        yield backend, WritingTerms("", display, stop, limited, "settings.price")
