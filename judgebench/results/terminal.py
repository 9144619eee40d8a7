"""The view in a terminal: what matters most, and the caveats last."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.results.part import Block, Part, blocks_of, caveats, one_screen, opening, urgent
from judgebench.results.tables import Cell, Footnotes, Table, footnotes, split_columns
from judgebench.words import printable, wrapped

# Widths of the stubs and of the other columns before they are folded; the first that fits is used.
_FOLDS = ((28, 22), (22, 14), (20, 10))
_BESIDE = 3  # what padding and the line between columns take
_STUB = 22  # the widths in a table that is printed in several blocks of columns
_COLOURS: Mapping[str, str] = {"good": "green", "fair": "cyan", "bad": "red", "unclear": "yellow"}
_VALUE = 14  # of a value over its interval


def print_parts(
    parts: Sequence[Part], console: Console, name: str = "", *, everything: bool = True
) -> None:
    """Print the blocks that are meant for a screen, and all caveats; unless `everything` is asked
    for, what the parts show first, on one screen, and the urgent caveats."""
    if name:
        console.print(Text(printable(name), style="bold"))
    on_screen = [block for block in blocks_of(parts) if block.on_screen]
    for block in on_screen if everything else one_screen(parts):
        _print_block(block, console)
    if notes := caveats(parts) if everything else urgent(parts):
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
    """The table, in blocks of columns where it does not fit the console, and its notes under it."""
    notes = footnotes(table)
    for i, grid in enumerate(_grids(table, notes, console.width)):
        console.print()
        title = table.title if i == 0 else f"{table.title} (continued)"
        console.print(Text(printable(title), style="bold"))
        console.print(grid)
    for sentence in notes.sentences(table):
        console.print(Text(printable(sentence), style="dim"))
    for text, mark in notes.marks.items():
        console.print(Text(f"{mark}: {printable(text)}", style="dim"))


def _grids(table: Table, notes: Footnotes, width: int) -> list[RichTable]:
    """The whole table, folded as little as its width needs; else several of its columns each."""
    for fold in _FOLDS:
        columns = _columns(table, notes, *fold)
        widest = (
            max(cell_len(line) for text in c for line in text.plain.split("\n")) for c in columns
        )
        if sum(widest) + _BESIDE * len(columns) <= width:
            return [_grid(columns, table.stubs)]
    most = max(1, (width - table.stubs * _STUB) // (_VALUE + _BESIDE - 1))
    parts = split_columns(table, most)
    return [_grid(_columns(part, notes, _STUB, _STUB), table.stubs) for part in parts]


def _grid(columns: Sequence[Sequence[Text]], stubs: int) -> RichTable:
    grid = RichTable(show_edge=False, header_style="bold")
    for i, (heading, *_) in enumerate(columns):
        grid.add_column(heading, justify="left" if i < stubs else "right", overflow="fold")
    for row in list(zip(*columns, strict=True))[1:]:
        grid.add_row(*row)
    return grid


def _columns(table: Table, notes: Footnotes, stub: int, value: int) -> list[list[Text]]:
    """Heading and cells of each column, folded at these widths."""
    found = []
    for i, heading in enumerate(table.columns):
        room = stub if i < table.stubs else value
        head = Text(wrapped(heading, min(room, _VALUE) if i >= table.stubs else room))
        cells = (_cell(row[i], notes.mark(row[i]), room) for row in table.rows)
        found.append([head, *cells])
    return found


def _cell(cell: Cell, mark: str, room: int) -> Text:
    """The value with its mark, and under it the interval."""
    style = "bold" if cell.best else _COLOURS.get(cell.look, "")
    shown = "\n".join(wrapped(line, room) for line in cell.value.split("\n"))
    beside = f" {mark}" * bool(mark), f"\n{cell.interval}" * bool(cell.interval)
    return Text().append(shown, style=style).append(beside[0], "dim").append(beside[1], "dim")
