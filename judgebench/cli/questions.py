"""What a terminal is asked once: how tables are read, and what a decision rests on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judgebench.data.layout import Layout
    from judgebench.data.reading import GivenTables
    from judgebench.data.settings import Question, TableSettings
    from judgebench.rubric import Metric, Rubric

_MAX_ASKED = 20  # questions, after which something is wrong


def ask_open(
    tables: GivenTables, settings: TableSettings, rubric: Rubric | None, truth: dict[str, object]
) -> tuple[Layout, dict[str, object]]:
    """The layout of tables, and what is declared of them. Raises Unsettled with all questions where
    no terminal can answer."""
    from judgebench.data.reading import infer_layout
    from judgebench.data.settings import TableSettings, Unsettled

    for _ in range(_MAX_ASKED):
        try:
            layout = infer_layout(tables, settings, rubric)
            break
        except Unsettled as unsettled:
            if not _can_answer():
                raise
            settings = settings.with_more(_answer(unsettled.questions[0]))
    if _can_answer() and rubric is None:
        orders = [order for metric in layout.rubric.metrics if (order := _order(metric))]
        question = _question(layout, truth)
        more = TableSettings(order=tuple(orders), columns=question.columns)
        if orders or question.columns:
            layout = infer_layout(tables, settings.with_more(more), rubric)
        _declare_blind(truth)
    return layout, truth


def _can_answer() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _answer(question: Question) -> TableSettings:
    """The settings of the reading that somebody chooses, which are printed as options."""
    lines = [f"  {n} {reading.means}" for n, reading in enumerate(question.readings, start=1)]
    typer.echo("\n".join([f"{question.table}: {question.asks}", *lines]), err=True)
    number = 0
    while not 1 <= number <= len(question.readings):
        number = typer.prompt(f"Number, 1 to {len(question.readings)}", type=int, err=True)
    chosen = question.readings[number - 1].settings
    typer.echo(f"The same without a question: {chosen.flags()}", err=True)
    return chosen


def _order(metric: Metric) -> str:
    """The order of a metric's labels, where a person at a terminal knows it."""
    if metric.order != "unknown":
        return ""
    listed = "  ".join(f"{i} {text}" for i, text in enumerate(metric.label_texts, start=1))
    typer.echo(f"{metric.title}: {listed}", err=True)
    asks = "Numbers from the least to the most severe, such as 1 3 2 (0: no label is worse than "
    asks += "another; Enter: not known)"
    text = str(typer.prompt(asks, default="", show_default=False, err=True)).split()
    places = [int(n) - 1 for n in text if n.isdecimal()]
    if sorted(places) == list(range(len(metric.labels))):
        return f"{metric.title}: " + " < ".join(metric.label_texts[i] for i in places)
    if text:
        typer.echo("Taken as no order." if text == ["0"] else "Not all numbers.", err=True)
    return f"{metric.title}: none" if text == ["0"] else ""


def _question(layout: Layout, truth: dict[str, object]) -> TableSettings:
    """The column of questions that a person confirms; that there is none goes into `truth`."""
    from judgebench.data.settings import TableSettings, each_as

    columns = list(dict.fromkeys(_question_columns(layout)))
    is_named = any(sheet.of("group", "question") for sheet in layout.sheets)
    if truth.get("independent_items") or (is_named and not layout.unconfirmed_question):
        return TableSettings()
    lines = [f"  {n} {column}" for n, column in enumerate(columns, start=1)]
    typer.echo("\n".join(["Which column says which items share a question?", *lines]), err=True)
    asks = "Number (0: each item is a question of its own; Enter: not known)"
    text = str(typer.prompt(asks, default="", show_default=False, err=True)).strip()
    if text == "0":
        truth["independent_items"] = True
    is_column = text.isdecimal() and 0 < int(text) <= len(columns)
    return each_as("group", [columns[int(text) - 1]]) if is_column else TableSettings()


def _question_columns(layout: Layout) -> Iterator[str]:
    """The columns that may say which items share a question, the likeliest first."""
    for sheet in (sheet for sheet in layout.sheets if sheet.has_labels):
        yield from sheet.of("group", "question")
        yield from (c for c in sheet.of("ignored", "kept") if _repeats(sheet.table, c))


def _repeats(table: object, column: str) -> bool:
    texts: Sequence[str] = getattr(table, "texts")(column)  # noqa: B009
    return 1 < len({*texts}) < len(texts)


def _declare_blind(truth: dict[str, object]) -> None:
    if "blind" in truth:
        return
    asks = "Did people label without sight of any model's label? yes or no (Enter: not known)"
    text = str(typer.prompt(asks, default="", show_default=False, err=True)).strip().casefold()
    if text in ("yes", "no", "y", "n"):
        truth["blind"] = "yes" if text.startswith("y") else "no"
