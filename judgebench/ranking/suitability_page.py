"""Whether tasks are fit to rank arguments by: the verdict, its reasons, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgebench.ranking.suitability import LEAST_RANKED, Fitness, Suitability, TaskFitness
from judgebench.report.words import counted, listed
from judgebench.results.part import Block, Part
from judgebench.results.rows import Results
from judgebench.results.tables import Cell, Table

_FEW_ITEMS = 20  # in simulations the interval of so many and more held what it promises


def suitability_part(found: Suitability) -> Part:
    """A block of sentences for each task, then the tables of all."""
    rows = Results(tuple(row for task in found.tasks for row in task.rows))
    tables = (_measures(found.tasks, rows), _mean_ranks(rows), _labels(rows))
    verdicts = [
        Block(f"{task.task}: {headline(task)}", tuple(fitness_sentences(task)), on_screen=True)
        for task in found.tasks
    ]
    return Part(
        key="suitability",
        title="is the task fit to rank arguments by?",
        results=rows,
        blocks=(*verdicts, Block("What it rests on", tables=tables, on_screen=True)),
        notes=found.notes,
    )


def headline(found: TaskFitness) -> str:
    """`suitable`, or `suitable, for now` where the interval of alpha leaves it open."""
    is_open = found.fitness is not Fitness.CANT_TELL and not found.is_firm
    return f"{found.fitness.value}, for now" if is_open else found.fitness.value


def fitness_sentences(found: TaskFitness) -> list[str]:
    """The reasons, what they rest on, and how many more items would make it clear."""
    left_out = [f"Left out: items of {listed(found.left_out)}."] if found.left_out else []
    ranked = f"{counted(found.alpha.n, 'item')} ranked by two experts or more"
    missing = f", {found.alpha.n_missing:,} not" if found.alpha.n_missing else ""
    rests_on = f"It rests on {ranked}{missing}; experts: {listed(found.experts)}."
    return [*found.reasons, *left_out, rests_on, *_on_the_interval(found)]


def _on_the_interval(found: TaskFitness) -> Iterator[str]:
    if found.alpha.low is None or found.alpha.n < LEAST_RANKED:
        return
    if found.alpha.n < _FEW_ITEMS:
        yield (
            f"An interval from fewer than {_FEW_ITEMS} items is too narrow: where it should hold "
            "the true alpha in 95 of 100 cases, it did in 75 to 90 of 100 simulated ones."
        )
    if found.more_items is None:
        yield "How many more items would clear the bar cannot be said: alpha lies too close to it."
    elif found.more_items:
        yield (
            f"With about {counted(found.more_items, 'more item')} the interval would clear the "
            "bar, if alpha stays as it is: a simple projection, by the root of the number of items."
        )


def _measures(tasks: Sequence[TaskFitness], rows: Results) -> Table:
    def cells(task: str) -> Iterator[Cell]:
        for statistic in ("alpha", "chi_square", "p"):
            yield Cell(estimate=rows.find(statistic, "suitability", task=task))

    return Table(
        "suitability",
        "Agreement of experts and difference of systems",
        ("task", "bar of alpha", "alpha", "Friedman chi-square", "p", "items tested"),
        tuple(
            (
                Cell(one.task),
                Cell(f"{one.min_alpha:.2f}"),
                *cells(one.task),
                Cell(f"{rows.find('p', 'suitability', task=one.task).n:,}"),
            )
            for one in tasks
        ),
        ("Alpha is Krippendorff's, ordinal, over the ranks of each argument.",),
    )


def _mean_ranks(rows: Results) -> Table:
    tasks = rows.values("task", "mean_rank")
    ordered = sorted(
        rows.select("mean_rank"), key=lambda r: (tasks.index(r["task"]), r.estimate.value or 0.0)
    )
    return Table(
        "suitability_mean_ranks",
        "Mean rank of each system, 1 the best",
        ("task", "system", "mean rank"),
        tuple(
            (Cell(row["task"]), Cell(row["system"]), Cell(f"{row.estimate.value or 0:.2f}"))
            for row in ordered
        ),
        ("Over the items of the test, each by the mean over its experts.",),
        stubs=2,
    )


def _labels(rows: Results) -> Table:
    both = zip(rows.select("label", "alpha"), rows.select("label", "without"), strict=True)
    return Table(
        "suitability_labels",
        "Agreement by label",
        ("task", "label", "items", "alpha", "alpha without them"),
        tuple(
            (
                Cell(of["task"]),
                Cell(of["label"]),
                Cell(f"{of.estimate.n + of.estimate.n_missing:,}"),
                Cell(estimate=of.estimate),
                Cell(estimate=without.estimate),
            )
            for of, without in both
        ),
        stubs=2,
    )
