"""`judgebench rank`: rank systems by their arguments, with people beside models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judgebench.cli.benchmark import confirm_keys, stoppable, this_command
from judgebench.cli.exit_codes import UNMET
from judgebench.cli.groups import Commands, argument, flag, option
from judgebench.cli.options import (
    BenchPath,
    Budget,
    DataFolder,
    DryRun,
    LocalOnly,
    RunOption,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each, show
from judgebench.text import counted

if TYPE_CHECKING:
    from judgebench.ranking.rank_bench import RankBench

app = Commands("Rank systems by how much their arguments help to decide.")


@app.command()
def run(
    bench: BenchPath = Path("rank"),
    run: RunOption = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    data_folder: DataFolder = None,
    local_only: LocalOnly = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Let models write arguments, train evaluators, judge, rank and report.

    The bench.yaml has the key `proxy`. Without an argument, the shipped example runs with embedded
    models. Safe to interrupt; rerun to resume.

    Example: judgebench rank run bench.yaml --dry-run
    """
    from judgebench.cli.report import report_and_print
    from judgebench.progress import ProgressDisplay
    from judgebench.ranking.rank_bench import load_rank_bench, rank_all
    from judgebench.runs.bench import default_run_folder
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.judging import Interrupted

    loaded = load_rank_bench(bench, data_folder, local_only=local_only)
    folder = RunFolder(run or default_run_folder(loaded.config))
    console = output.console()
    lines = [f"{loaded.config.name}: run folder {folder.path}", *_ahead(loaded)]
    lines += ["No model was called or trained, nothing was written."] * dry_run
    for line in lines:
        console.print(line, soft_wrap=True)
    if not dry_run:
        if not folder.manifest():
            confirm_keys(loaded.file, loaded.proxy.generators)
        message = (
            f"Stopped. Results so far are kept in {folder.path}. To resume, rerun:\n"
            f"  {this_command()}"
        )
        with stoppable(message, by=Interrupted), ProgressDisplay(console) as display:
            rank_all(loaded, folder, display, budget)
        if not report_and_print(folder.path, output):
            raise typer.Exit(1)


def _ahead(bench: RankBench) -> Iterator[str]:
    """The lines on what is about to be run, one per task."""
    from judgebench.ranking.examples import evaluator_names
    from judgebench.ranking.task import SPLITS

    evaluators, generators = bench.proxy.evaluators, bench.proxy.generators
    for task in bench.tasks:
        names = (evaluator_names(task.name, kind, evaluators.draws) for kind in evaluators.kinds)
        sizes = ", ".join(f"{split} {len(task.of(split)):,}" for split in SPLITS)
        yield (
            f"{task.name}: {sizes}; {counted(len(task.ranked), 'instance')} ranked; "
            f"{counted(len(generators), 'generator')}; "
            f"{counted(sum(map(len, names)), 'evaluator')}"
        )


@app.command()
def init(
    file: Path = argument("FILE", "Questions with their key: CSV, TSV, JSON, JSONL or Parquet."),
    to: Path | None = option(None, "FOLDER", "Where to write. Default: the folder of FILE."),
) -> None:
    """Write a task, a bench.yaml and a prompt from a table of questions.

    Columns are found by their names: question, key, option_1 or A, explanation, group, split.
    Nothing is overwritten.

    Example: judgebench rank init questions.csv --to mine
    """
    from judgebench.ranking.rank_bench import init as init_from

    echo_each(init_from(file, to))


@app.command()
def suitability(
    ranks: list[Path] = argument(
        "RUN|TABLE", "A ranking run with tables of ranks in its folder `human`, or such tables."
    ),
    min_alpha: float | None = option(
        None, "ALPHA", "Least alpha of a suitable task. Default: 2/3.", min=-1, max=1
    ),
    leave_out: list[str] = option((), "LABEL", "Leave out items with this label. Repeatable."),
    require_suitable: bool = flag(f"Exit code {UNMET} unless every task is suitable."),
    output: Output = ONE_SCREEN,
) -> None:
    """Test whether experts agree enough on arguments for a task to be used in a ranking.

    Five items ranked by two experts are enough for a first test. Tables have the columns task,
    item_id, annotator, system and rank, as `judgebench annotate export` writes them.

    Example: judgebench rank suitability runs/mine
    """
    from judgebench.ranking.human import ranks_in
    from judgebench.ranking.suitability import MIN_ALPHA, Fitness
    from judgebench.ranking.suitability import suitability as suitability_of

    bar = MIN_ALPHA if min_alpha is None else min_alpha
    found = suitability_of(ranks_in(ranks).without(leave_out), min_alpha=bar)
    show({"suitability": found}, "", output)
    if require_suitable and any(task.fitness is not Fitness.SUITABLE for task in found.tasks):
        raise typer.Exit(UNMET)
