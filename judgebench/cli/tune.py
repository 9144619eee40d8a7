"""`judgebench tune`: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgebench.cli.groups import Commands, argument, option
from judgebench.cli.options import (
    EVERYTHING,
    BenchPath,
    DataFolder,
    Extent,
    LocalOnly,
    RunDir,
    RunOption,
    Seed,
    pairs_of,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each

if TYPE_CHECKING:
    from judgebench.runs.bench import Bench

app = Commands(default="bench")

Decisions = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="What a person saved of the page. Repeatable: one per person."
    ),
]


@app.command()
def bench(
    bench: BenchPath,
    run: RunOption = None,
    export: str | None = option(None, "NAME", "Also write what this judge learns from all labels."),
    to: Path | None = option(None, "FOLDER", "Where the exported judge is written."),
    extent: Extent = EVERYTHING,
    local_only: LocalOnly = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Run a benchmark whose judges learn, and examine what they learnt.

    Beside the verdicts of `judgebench run`: what they would seem to be worth without folds, on a
    system that nothing was learnt of, and with fewer labels. Safe to interrupt; rerun to resume.

    Example: judgebench tune bench.yaml --export my-judge --to exported
    """
    import judgebench as jb
    from judgebench.cli.benchmark import Asked, benchmark
    from judgebench.tuning.export import check_export
    from judgebench.tuning.judges import TuningExtension

    if (export is None) is not (to is None):
        raise typer.BadParameter("--export and --to are given together")
    asked = Asked(bench, run, extent, output, local_only)
    check: Callable[[Bench], object] = bool
    if export and to:
        check = partial(check_export, name=export, to=to)
    benchmark(asked, TuningExtension(check=check))
    if export and to and not extent.dry_run:
        loaded = jb.load_bench(bench, data_folder=extent.data_folder)
        jb.export_judge(loaded, export, to, folder=run)
        typer.echo(f"{export} is in {to}; for its entry, read {to / 'README.md'}", err=True)


@app.command()
def rounds(
    run: RunDir,
    name: str = argument("NAME", "A judge with `rounds`."),
    decisions: Decisions = None,
) -> None:
    """Write a page on which people review the corrections that two models propose for a judge.

    With --decisions, take these; once all is decided, the next `judgebench tune` learns from it.
    What one of several people rejects is rejected.

    Example: judgebench tune rounds runs/mine my-judge
    """
    from judgebench.tuning.rounds import revisions

    review = revisions(run, name, decisions or ())
    typer.echo(f"{review.decided:,} of {review.waiting:,} that wait are decided: {review.page}")
    if review.waiting and review.decided == review.waiting:
        typer.echo("All is decided: run judgebench tune again to learn from it.")


@app.command()
def review(
    run: RunDir,
    judges: list[str] = argument("JUDGE", "Judges whose labels and reasons are checked."),
    to: Path = option(..., "FOLDER", "Where items and page are written."),
    decisions: Decisions = None,
    quality: str | None = option(
        None,
        "ENCODER",
        "Learn from the decisions which of the other items are good: `words`, minilm or a folder.",
    ),
) -> None:
    """Make training items of what judges said, and a page on which people check them.

    With --decisions, split the items: what anybody fails on knowledge, attribution or fluency is
    rejected, what was passed on all is accepted. With --quality, a classifier splits the others.
    The labels are a machine's ("silver"): judges may learn from them in `stages`, and they never
    count as labels of people.

    Example: judgebench tune review runs/demo gpt-4o --to silver --decisions ann.csv
    """
    from judgebench.tuning.review import (
        rate_sentences,
        reviewed,
        teacher_items,
        write_items,
        write_page,
    )

    if quality and not decisions:
        raise typer.BadParameter("--quality learns from --decisions: give both")
    items, n_left_out = teacher_items(run, judges)
    typer.echo(f"{n_left_out:,} left out, without every label")
    parts = {"items": items}
    if decisions:
        split = reviewed(items, decisions)
        parts |= {"accepted": split.accepted, "rejected": split.rejected}
        echo_each(rate_sentences(split.rates))
        if quality:
            from judgebench.tuning.quality import Classifier, sentences

            classifier = Classifier(split.accepted, split.rejected, quality)
            echo_each(sentences(classifier.measured()))
            parts |= classifier.split(split.undecided)
    for name, some in parts.items():
        typer.echo(f"{len(some):,} {name}: {write_items(some, to / f'{name}.jsonl')}")
    typer.echo(f"the page for people: {write_page(items, to / 'review.html')}")


@app.command()
def generator(
    task: str = argument("TASK", "A proxy task: a file, or a shipped name."),
    model: str = option(..., "MODEL", "What is tuned: as in `learn: lora`."),
    to: Path = option(..., "FOLDER", "Where the tuned model is written."),
    recipe: list[str] = option(
        (), "KEY=VALUE", "rank, epochs, batch, context, learning_rate, seed of `learn: lora`."
    ),
    data_folder: DataFolder = None,
    seed: Seed = 0,
) -> None:
    """Tune a model that writes arguments on a task's gold ones; it then enters `judgebench rank`.

    As a generator of its bench.yaml, `backend: transformers:FOLDER`, beside the untuned one. Give
    the `seed` of that file: it draws the training split. Safe to interrupt; rerun to resume.

    Example: judgebench tune generator nli --model smollm2 --to tuned --data-folder data
    """
    from judgebench.files import parse_yaml, validate
    from judgebench.learning.trainer import Watch
    from judgebench.progress import ProgressDisplay
    from judgebench.ranking.task import write_pairs
    from judgebench.ranking.task_file import load_task
    from judgebench.runs.judging import PATIENCE_S, Stop, ctrl_c
    from judgebench.tuning.config import LoraConfig
    from judgebench.tuning.generator import tune_generator

    texts = pairs_of(recipe, "--recipe")
    settings = {key: parse_yaml(text, "--recipe") for key, text in texts.items()}
    entry = {"name": "generator", "learn": "lora", "model": model, **settings}
    lora, stop = validate(entry, LoraConfig, "--recipe"), Stop()
    pairs = to.with_name(f"{to.name}.pairs.jsonl")
    write_pairs(load_task(task, data_folder=data_folder, seed=seed), pairs)
    with ProgressDisplay(ONE_SCREEN.console()) as display, ctrl_c(stop, display.say, PATIENCE_S):
        facts = tune_generator(pairs, lora, to, Watch(f"tuning {to.name}", display, stop))
    typer.echo(
        f"{facts['steps']:,} steps, loss {facts['first_loss']:.3f} to {facts['last_loss']:.3f}; "
        f"to write with it: backend: transformers:{to}"
    )
