"""`judgebench stress`: run a stress test; make sets of altered answers and review them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judgebench.cli.benchmark import Asked, benchmark, stoppable, the_writer
from judgebench.cli.groups import Commands, argument, flag, option
from judgebench.cli.options import (
    EVERYTHING,
    BenchPath,
    DataFolder,
    Extent,
    LocalOnly,
    RubricOption,
    RunOption,
    Seed,
)
from judgebench.cli.show import ONE_SCREEN, Output, echo_each
from judgebench.files import find_file

if TYPE_CHECKING:
    from judgebench.stress_tests.make import GenerationCounts

app = Commands(default="bench")
attacks = Commands("Make sets of altered answers for `judgebench stress`, and review them.")
app.add_typer(attacks, name="attacks")


@app.command()
def bench(
    bench: BenchPath = Path("stress"),
    run: RunOption = None,
    sample: int | None = option(
        None, "N", "At most N altered answers per recipe, at random.", min=1
    ),
    reviewed: bool = flag("Count only violations that reviewers accepted."),
    extent: Extent = EVERYTHING,
    local_only: LocalOnly = False,
    output: Output = ONE_SCREEN,
) -> None:
    """Judge altered answers: what must change a verdict, what must not.

    Without an argument, the shipped example runs with the embedded model. Verdicts of an earlier
    `judgebench run` in the same folder are reused. Safe to interrupt; rerun to resume.

    Example: judgebench stress bench.yaml --sample 20
    """
    from judgebench.stress_tests.make import StressExtension

    benchmark(
        Asked(bench, run, extent, output, local_only),
        StressExtension(sample=sample, reviewed=reviewed),
    )


@attacks.command()
def make(
    recipe: str = argument("RECIPE", "A recipe: a file or a name; see `judgebench list attacks`."),
    data: list[Path] = option(..., "FILE", "Answers; or rubrics and prompts. Repeatable."),
    by: str = option("", "BACKEND", "The model that writes: a backend, or a judge's YAML file."),
    to: Path | None = option(
        None, "SET", "Where to write. Default: RECIPE.jsonl in the current folder."
    ),
    rubric: RubricOption = "medical-safety",
    sample: int | None = option(None, "N", "At most N answers, drawn at random.", min=1),
    seed: Seed = 0,
    data_folder: DataFolder = None,
    local_only: LocalOnly = False,
) -> None:
    """Alter answers by one recipe, check each, and add it to a set.

    Safe to interrupt; rerun to resume.

    Example: judgebench stress attacks make consensus-violation --data a.csv --by gpt.yaml
    """
    from judgebench.data.load import load_data
    from judgebench.progress import ProgressDisplay
    from judgebench.rubric import load_rubric
    from judgebench.stress_tests.best_of import bad_answers
    from judgebench.stress_tests.make import SetOrder, make_set
    from judgebench.stress_tests.recipes import load_recipe
    from judgebench.stress_tests.wordings import instruction_texts

    whole, alters = load_rubric(rubric), load_recipe(recipe).alters
    if alters == "instructions":
        answers = instruction_texts(data)
    else:
        dataset = load_data(data, whole, folder=data_folder)
        answers = list(dataset.answers)
        if alters == "bad":
            answers = bad_answers(answers, dataset.labels, whole)
    target = to or Path(f"{Path(recipe).stem}.jsonl")
    order = SetOrder(the_writer(by, target, local_only) if by else None, seed, sample)
    stop = stoppable(f"Stopped. Answers so far are kept in {target}.")
    with ProgressDisplay(ONE_SCREEN.console()) as display, stop:
        found = make_set(recipe, answers, whole, target, order, display)
    _tell(found, target)


@attacks.command()
def review(path: Path = argument("SET", "A set: one JSON object per line.")) -> None:
    """Write the page on which people accept or reject altered answers; it saves SET.decisions.csv.

    A shipped set is copied here first. `reviewed: true` under `stress` in a bench.yaml, or
    `judgebench stress --reviewed`, counts violations accepted in the table beside the set only.

    Example: judgebench stress attacks review consensus-violation.jsonl
    """
    from judgebench.files import write_atomically
    from judgebench.stress_tests.item_sets import write_review

    source = find_file("adversarial", str(path), ".jsonl")
    if source != path:
        path = Path(source.name)
        if not path.exists():
            write_atomically(path, source.read_bytes())
    typer.echo(write_review(path))


def _tell(found: GenerationCounts, to: Path) -> None:
    counts = {
        "made before, kept as they are": found.made_before,
        "answers with nothing to change": found.nothing_to_change,
        f"without a reply ({found.why_no_reply}): the same command asks again": found.no_reply,
    }
    typer.echo(f"{found.accepted} of {found.asked} passed every check: {to}")
    if found.rejected:
        typer.echo(f"{found.rejected} rejected: they stay in {to} and do not count")
        echo_each(f"  {n} failed {name!r}" for name, n in found.failed.most_common())
    echo_each(f"{n} {what}" for what, n in counts.items() if n)
