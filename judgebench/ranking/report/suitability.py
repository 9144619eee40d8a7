"""Whether a task is fit to rank arguments by: in a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from judgebench.ranking.suitability import LEAST_ITEMS, Fitness, Suitability
from judgebench.records import Estimate
from judgebench.report.markdown import bullets, escape, table_lines
from judgebench.report.terminal_table import print_table
from judgebench.report.words import counted, listed, printable
from judgebench.results.tables import Cell, Table

_STYLES = {
    Fitness.SUITABLE: "bold blue",
    Fitness.NOT_SUITABLE: "bold red",
    Fitness.CANT_TELL: "yellow",
}
_FEW_ITEMS = 20  # in simulations the interval of so many and more held what it promises
TITLE = "Is the task fit to rank arguments by?"


def print_suitability(found: Suitability, console: Console) -> None:
    """Print the verdict, its reasons, and what it rests on."""
    console.print(Text(f"\n{printable(found.task)}: ", style="bold"), end="")
    console.print(Text(headline(found), style=_STYLES[found.fitness]))
    for sentence in sentences(found):
        console.print(Text(f"- {printable(sentence)}"))
    for table in suitability_tables([found]):
        print_table(table, console)


def suitability_markdown(found: Sequence[Suitability], warnings: Iterable[str] = ()) -> str:
    """All tasks on one page; `warnings` are told first."""
    lines = [f"# {TITLE}", ""]
    if told := list(warnings):
        lines += [*bullets(told), ""]
    for one in found:
        lines += [f"## {escape(one.task)}: {headline(one)}", "", *bullets(sentences(one)), ""]
    for table in suitability_tables(found):
        lines += [*table_lines(table), ""]
    return "\n".join(lines)


def headline(found: Suitability) -> str:
    """`suitable`, or `suitable, for now` where the interval of alpha leaves it open."""
    is_open = found.fitness is not Fitness.CANT_TELL and not found.is_firm
    return f"{found.fitness.value}, for now" if is_open else found.fitness.value


def sentences(found: Suitability) -> list[str]:
    """The reasons, what they rest on, and how many more items would make it clear."""
    left_out = [f"Left out: items of {listed(found.left_out)}."] if found.left_out else []
    ranked = f"{counted(found.alpha.n, 'item')} ranked by two experts or more"
    missing = f", {found.alpha.n_missing:,} not" if found.alpha.n_missing else ""
    rests_on = f"It rests on {ranked}{missing}; experts: {listed(found.experts)}."
    return [*found.reasons, *left_out, rests_on, *_on_the_interval(found)]


def _on_the_interval(found: Suitability) -> Iterator[str]:
    if found.alpha.low is None or found.alpha.n < LEAST_ITEMS:
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


def suitability_tables(found: Sequence[Suitability]) -> list[Table]:
    """Agreement and difference of every task, mean ranks, and agreement by label."""
    tables = [_measures(found), _mean_ranks(found), _labels(found)]
    return [table for table in tables if table.rows]


def _measures(found: Sequence[Suitability]) -> Table:
    return Table(
        "suitability",
        "Agreement of experts and difference of systems",
        ("task", "alpha", "bar", "Friedman chi-square", "p", "items tested"),
        tuple(
            (
                Cell(one.task),
                Cell(estimate=one.alpha),
                Cell(f"{one.min_alpha:.2f}"),
                Cell(estimate=_tested(one, one.chi_square)),
                Cell(estimate=_tested(one, one.p)),
                Cell(f"{one.n_friedman:,}"),
            )
            for one in found
        ),
        ("Alpha is Krippendorff's, ordinal, over the ranks of each argument.",),
    )


def _tested(one: Suitability, value: float | None) -> Estimate:
    reason = one.no_friedman or "a test statistic has no interval"
    return Estimate(value, n=one.n_friedman, reason=reason)


def _mean_ranks(found: Sequence[Suitability]) -> Table:
    return Table(
        "suitability_mean_ranks",
        "Mean rank of each system, 1 the best",
        ("task", "system", "mean rank"),
        tuple(
            (Cell(one.task), Cell(system), Cell(f"{rank:.2f}"))
            for one in found
            for system, rank in sorted(one.mean_ranks.items(), key=lambda pair: pair[1])
        ),
        ("Over the items of the test, each by the mean over its experts.",),
        stubs=2,
    )


def _labels(found: Sequence[Suitability]) -> Table:
    return Table(
        "suitability_labels",
        "Agreement by label",
        ("task", "label", "items", "alpha", "alpha without them"),
        tuple(
            (
                Cell(one.task),
                Cell(of.label),
                Cell(f"{of.n_items:,}"),
                Cell(estimate=of.alpha),
                Cell(estimate=of.without),
            )
            for one in found
            for of in one.by_label
        ),
        stubs=2,
    )
