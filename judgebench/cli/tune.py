"""`judgebench tune`: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgebench.cli.groups import Commands, argument, flag, option
from judgebench.cli.options import (
    EVERYTHING,
    BenchPath,
    DataFolder,
    Extent,
    LocalOnly,
    RunDir,
    RunOption,
    pairs_of,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each

app = Commands(default="bench")

SilverPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="Items of `judgebench tune data`: JSONL.")
]


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
    extent: Extent = EVERYTHING,
    local_only: LocalOnly = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Run a benchmark whose judges learn, and examine what they learnt.

    Beside the verdicts of `judgebench run`: what they would seem to be worth without folds, on a
    system that nothing was learnt of, and with fewer labels. Safe to interrupt; rerun to resume.

    Example: judgebench tune bench.yaml
    """
    from judgebench.cli.benchmark import Asked, benchmark
    from judgebench.tuning.judges import TuningExtension

    asked = Asked(bench, run, extent, output, local_only)
    benchmark(asked, TuningExtension())


@app.command()
def rounds(
    run: RunDir,
    name: str = argument("NAME", "A judge with `rounds`."),
    decisions: Decisions = None,
) -> None:
    """Write a page on which people review the corrections that two models propose for a judge.

    With --decisions, take these; once all is decided, the next `judgebench tune` learns from it.

    Example: judgebench tune rounds runs/mine my-judge
    """
    from judgebench.tuning.rounds import revisions

    found = revisions(run, name, decisions or ())
    talks = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(found.outcomes.items()))
    typer.echo(f"talks about what {name} gets wrong: {talks or 'none'}")
    typer.echo(f"{found.decided:,} of {found.waiting:,} that wait are decided: {found.page}")
    if found.waiting and found.decided == found.waiting:
        typer.echo("All is decided: run judgebench tune again to learn from it.")


@app.command()
def generator(
    pairs: Path = argument("FILE", "Lines of `judgebench rank pairs`: JSONL."),
    model: str = option(..., "MODEL", "What is tuned: as in `learn: lora`."),
    to: Path = option(..., "FOLDER", "Where the tuned model is written."),
    recipe: list[str] = option(
        (), "KEY=VALUE", "rank, epochs, batch, context, learning_rate, seed of `learn: lora`."
    ),
) -> None:
    """Tune a model that writes arguments on gold arguments; it then enters `judgebench rank`.

    As a generator of its bench.yaml, `backend: transformers:FOLDER`, beside the untuned one. Safe
    to interrupt; rerun to resume.

    Example: judgebench tune generator pairs.jsonl --model smollm2 --to tuned
    """
    from judgebench.files import parse_yaml, validate
    from judgebench.learning.trainer import Watch
    from judgebench.progress import ProgressDisplay
    from judgebench.runs.judging import PATIENCE_S, Stop, ctrl_c
    from judgebench.tuning.config import LoraConfig
    from judgebench.tuning.rounds import read_pairs, tune_generator
    from judgebench.tuning.train import recipe_of

    given = pairs_of(recipe, "--recipe")
    settings = {key: parse_yaml(text, "--recipe") for key, text in given.items()}
    asked = {"name": "generator", "learn": "lora", "model": model, **settings}
    lora, stop = recipe_of(validate(asked, LoraConfig, "--recipe")), Stop()
    with ProgressDisplay(ONE_SCREEN.console()) as display, ctrl_c(stop, display.say, PATIENCE_S):
        watch = Watch(f"tuning {to.name}", display, stop)
        facts = tune_generator(read_pairs(pairs), model, to, lora, watch)
    typer.echo(
        f"{facts['steps']:,} steps, loss {facts['first_loss']:.3f} to {facts['last_loss']:.3f}; "
        f"to write with it: backend: transformers:{to}"
    )


@app.command()
def export(
    name: str = argument("NAME", "A judge that learns."),
    folder: Path = argument("FOLDER", "Where it is written."),
    bench: Path = option(Path("bench.yaml"), "BENCH", "The benchmark of the judge."),
    run: RunOption = None,
    merged: bool = flag("A whole model in place of an adapter."),
    data_folder: DataFolder = None,
) -> None:
    """Write what a judge learns from all labels into a folder, to be used on other data.

    Beside it stand judgebench.json and a model card. Run the benchmark first: what the judge is
    worth is measured out of fold. What `judgebench tune` learnt from all labels is taken as it is.

    Example: judgebench tune export my-judge exported/my-judge
    """
    import judgebench as jb

    loaded = jb.load_bench(bench, data_folder=data_folder)
    jb.export_judge(loaded, name, folder, folder=run, merged=merged, show_progress=True)
    typer.echo(f"{name} is in {folder}; for its entry, read {folder / 'README.md'}")


@app.command()
def data(
    run: RunDir,
    judge: str = option(..., "NAME", "A judge of the run."),
    to: Path = option(..., "FILE", "Where to write the items: JSONL."),
    metric: list[str] = option((), "ID", "Only this metric. Repeatable."),
    filters: Path | None = option(
        None,
        "FILE",
        "YAML: irrelevant (regular expressions), characters ([20, 4000]), duplicates.",
        "--filter",
    ),
) -> None:
    """Make training items from the verdicts of a teacher judge: labels, reasons, what it looked up.

    Left out, and written to FILE.left-out.jsonl with the reason: verdicts without every label,
    near-duplicates, and what the filters name. The labels are a machine's ("silver"): judges may
    learn from them in `stages`, and they never count as labels of people.

    Example: judgebench tune data runs/demo --judge gpt-4o --to silver.jsonl
    """
    from judgebench.files import load_model
    from judgebench.tuning.export import Filters, build

    chosen = load_model(filters, Filters) if filters else None
    built = build(run, judge, chosen, metric)
    written = built.write(to)
    typer.echo(f"{len(built.kept):,} items of {judge}: {written['items']}")
    echo_each(f"  {n:,} left out: {reason}" for reason, n in built.counts.items())
    if built.left_out:
        typer.echo(f"  with the reasons: {written['left_out']}")


@app.command()
def review(
    path: SilverPath,
    decisions: Decisions = None,
) -> None:
    """Write a local page on which people check items; with --decisions, split the items by it.

    Three criteria, after AutoMedEval: knowledge, attribution, fluency. An item that anybody fails
    on any of them is rejected; one that was passed on all is accepted; the rest waits. Writes
    FILE.review.html, and with --decisions FILE.accepted.jsonl and FILE.rejected.jsonl.

    Example: judgebench tune review silver.jsonl --decisions ann.csv
    """
    from judgebench.files import write_atomically
    from judgebench.people.page import read_decisions, review_page
    from judgebench.tuning.export import write_items
    from judgebench.tuning.rounds import CRITERIA, read_items, reviewed, shown_item

    lines = read_items(path, unique=True)
    items = [shown_item(line) for line in lines]
    if not decisions:
        page = path.with_suffix(".review.html")
        write_atomically(page, review_page(path.stem, items, CRITERIA).encode())
        typer.echo(page)
        return
    found = reviewed(lines, [read_decisions(one, items, CRITERIA) for one in decisions])
    for name, some in (("accepted", found.accepted), ("rejected", found.rejected)):
        typer.echo(f"{len(some):,} {name}: {write_items(some, path.with_suffix(f'.{name}.jsonl'))}")
    typer.echo(f"{len(found.undecided):,} without a decision, in neither file")
    echo_each(found.lines())


@app.command()
def quality(
    accepted: SilverPath,
    rejected: SilverPath,
    encoder: str = option("words", "NAME", "minilm, a folder, or `words`, which needs no model."),
    score: Path | None = option(None, "FILE", "Items to score and split."),
    threshold: float = option(0.5, "P", "The least score of the better part.", min=0, max=1),
    to: tuple[Path, Path] | None = option(
        None, "HIGH LOW", "Where both parts of the scored items go."
    ),
) -> None:
    """Learn from checked items which are good, and say what that is worth; then split others by it.

    Sentence embeddings and a support vector machine (AutoMedEval, Appendix B). Beside its accuracy,
    on questions that it never saw, stands a control that knows only who wrote an item. The same
    files give the same classifier: nothing of it is saved.

    Example: judgebench tune quality silver.accepted.jsonl silver.rejected.jsonl
    """
    from judgebench.tuning.export import write_items
    from judgebench.tuning.quality import Classifier, in_words
    from judgebench.tuning.rounds import read_items

    if (score is None) is not (to is None):
        raise typer.BadParameter("--score and --to are given together")
    others = read_items(score) if score else []
    classifier = Classifier(read_items(accepted), read_items(rejected), encoder)
    echo_each(in_words(classifier.measured()))
    if to:
        scored = classifier.scored(others)
        for path, better in zip(to, (True, False), strict=True):
            some = [item for item in scored if (item["quality"]["p"] >= threshold) is better]
            typer.echo(f"{len(some):,} items: {write_items(some, path)}")
