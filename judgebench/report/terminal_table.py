"""A table of the report in a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.report.words import printable, wrapped
from judgebench.results.tables import Cell, Footnotes, Table, footnotes, split_columns

_STUB = 22  # the width that the first column may take before it is folded
_COLOURS: Mapping[str, str] = {"good": "green", "fair": "cyan", "bad": "red", "unclear": "yellow"}
_VALUE = 16  # the width of a value over its interval, with padding


def print_table(table: Table, console: Console) -> None:
    """The table in blocks of columns that fit the console, and its notes under it."""
    notes = footnotes(table)
    room = console.width - table.stubs * _STUB
    for i, part in enumerate(split_columns(table, max(1, room // _VALUE))):
        console.print()
        title = table.title if i == 0 else f"{table.title} (continued)"
        console.print(Text(printable(title), style="bold"))
        console.print(_grid(part, notes))
    for sentence in notes.sentences(table):
        console.print(Text(printable(sentence), style="dim"))
    for text, mark in notes.marks.items():
        console.print(Text(f"{mark}: {printable(text)}", style="dim"))


def _grid(table: Table, notes: Footnotes) -> RichTable:
    grid = RichTable(show_edge=False, header_style="bold")
    for i, column in enumerate(table.columns):
        left = i < table.stubs
        heading = Text(wrapped(column, _STUB if left else _VALUE - 2))
        grid.add_column(heading, justify="left" if left else "right", overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(cell, notes.mark(cell)) for cell in row))
    return grid


def _cell(cell: Cell, mark: str) -> Text:
    """The value with its mark, and under it the interval."""
    text = Text()
    style = "bold" if cell.best else _COLOURS.get(cell.look, "")
    text.append(wrapped(cell.value, _STUB), style=style)
    if mark:
        text.append(f" {mark}", style="dim")
    if cell.interval:
        text.append(f"\n{cell.interval}", style="dim")
    return text
