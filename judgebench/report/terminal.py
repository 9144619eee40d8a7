"""The view in a terminal: what matters most, and the caveats last."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.report.words import printable, wrapped
from judgebench.results.part import Block, Part, blocks_of, caveats, opening
from judgebench.results.tables import Cell, Footnotes, Table, footnotes, split_columns

_STUB = 22  # the width that the first column may take before it is folded
_COLOURS: Mapping[str, str] = {"good": "green", "fair": "cyan", "bad": "red", "unclear": "yellow"}
_VALUE = 16  # the width of a value over its interval, with padding


def print_parts(parts: Sequence[Part], console: Console, name: str = "") -> None:
    """Print the blocks that are meant for a screen; the files of the report hold the rest."""
    if name:
        console.print(Text(printable(name), style="bold"))
    for block in blocks_of(parts):
        if block.on_screen:
            _print_block(block, console)
    if notes := caveats(parts):
        console.print()
    for note in notes:
        console.print(Text(f"! {printable(note)}", style="yellow"))


def _print_block(block: Block, console: Console) -> None:
    if block.text and block.heading:
        console.print(Text(f"\n{printable(block.heading)}", style="bold"))
    for sentence in block.text:
        console.print(Text(printable(sentence)))
    for table in block.tables:
        print_table(table, console)


def as_text(part: Part, width: int = 100) -> str:
    """The first thing that a part has to say on a screen, without colours, and its caveats."""
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, force_terminal=False)
    for block in opening(part):
        _print_block(block, console)
    for note in caveats([part]):
        console.print(Text(f"! {printable(note)}"))
    return out.getvalue().strip("\n")


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
