"""The view in a terminal: what matters most, and the caveats last."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.results.part import (
    FEW_OUTCOMES,
    MISSES,
    UNDERSTOOD,
    Block,
    Part,
    Standing,
    blocks_of,
    caveats,
    one_screen,
    opening,
    urgent,
)
from judgebench.results.tables import (
    Cell,
    Footnotes,
    Table,
    brief,
    footnotes,
    rests_on,
    split_columns,
)
from judgebench.words import counted, longest_word, printable, wrapped

# Widths of the stubs and of the other columns before they are folded; the first that fits is used.
_FOLDS = ((28, 22), (22, 14), (20, 10))
_BESIDE = 3  # what padding and the line between columns take
_STUB = 22  # the widths in a table that is printed in several blocks of columns
_COLOURS: Mapping[str, str] = {"good": "green", "fair": "cyan", "bad": "red", "unclear": "yellow"}
_VALUE = 14  # of a value over its interval
_LINE = 100  # of sentences
_WORD = 24  # that is never broken
_SHARES = 55  # of an outcome and its numbers
_MOST_STEPS = 3
_MOST_SAID = (FEW_OUTCOMES, 24)  # whose next steps, and whose reasons, are printed


def print_parts(
    parts: Sequence[Part],
    console: Console,
    name: str = "",
    *,
    everything: bool = True,
    tables: bool = False,
) -> None:
    """Print what the parts show first, on one screen, and the urgent caveats; with `tables` those
    that a paper would show stand in its place. Where `everything` is asked for, after it all blocks
    that are meant for a screen, and all caveats."""
    title = next((part.headline for part in parts if part.headline), name)
    if title:
        _print_wrapped(title, console, style="bold")
    first = one_screen(parts)
    if tables and (papers := [part for part in parts if part.paper]):
        first = [*opening(papers[-1]), *first * everything]
    every = [b for b in blocks_of(parts) if b.on_screen and b not in first] if everything else []
    for block in (*first, *every):
        _print_block(block, console, everything)
    if notes := caveats(parts, read=False) if everything else urgent(parts):
        console.print()
    for note in notes:
        read = note.startswith(UNDERSTOOD)  # no caveat
        console.print(Text(f"{'' if read else '! '}{printable(note)}", "" if read else "yellow"))


def as_text(part: Part, width: int = 100) -> str:
    """The first thing that a part has to say on a screen, without colours, and its caveats."""
    out = io.StringIO()
    plain: dict[str, Any] = {"no_color": True, "force_terminal": False, "force_jupyter": False}
    console = Console(file=out, width=width, **plain)  # in a notebook, too, text is only returned
    print_parts([replace(part, urgent=tuple(caveats([part])))], console, everything=False)
    return out.getvalue().strip("\n")


def _print_block(block: Block, console: Console, everything: bool) -> None:
    if block.text and block.heading:
        console.print(Text(f"\n{printable(block.heading)}", style="bold"))
    if block.standings:
        _print_standings(block.standings, console, everything)
        console.print()
    for sentence in block.text:
        console.print(Text(printable(sentence)))
    for table in block.tables:
        (print_brief if block.brief else print_table)(table, console)


def _print_standings(standings: Sequence[Standing], console: Console, everything: bool) -> None:
    """Group by metric: a line of numbers for each judge, and under it why and what to do next. With
    many of them the next steps stand together at the end, and with very many the reason is left to
    `everything`."""
    longest = max(cell_len(printable(one.judge)) for one in standings)
    start = 2 + longest + 2 if 2 + longest + 2 + _SHARES <= console.width else 4
    few, many = (len(standings) <= most or everything for most in _MOST_SAID)
    for metric, same in groupby(standings, key=lambda one: one.metric):
        console.print()
        _print_wrapped(metric, console, style="bold")
        for one in same:
            _print_numbers(one, console, start)
            after = f"Next: {_here(one.next)}"
            for text in filter(None, (one.why * many, one.numbers * everything, after * few)):
                _print_wrapped(text, console, start if few else 4)
    if not few:
        _print_next_steps(standings, console)


def _print_next_steps(standings: Sequence[Standing], console: Console) -> None:
    """The most common next steps, each once, and how to see the others."""
    steps: dict[str, list[Standing]] = {}
    for one in standings:
        steps.setdefault(one.next, []).append(one)
    common = sorted(steps.items(), key=lambda step: -len(step[1]))
    console.print()
    for text, same in common[:_MOST_STEPS]:
        of = f"{len(same)} of {len(standings)} decisions" if len(same) > 1 else ""
        who = of or f"{same[0].judge} on {same[0].metric}"
        _print_wrapped(f"Next, for {who}: {_here(text)}", console)
    if len(common) > _MOST_STEPS:
        left = counted(len(common) - _MOST_STEPS, "other next step")
        _print_wrapped(f"-v and the page add {left}, and say which decision each is for.", console)


def _here(step: str) -> str:
    """A next step after a colon, with the place of what a page links to."""
    return f"{step[:1].lower()}{step[1:]}".replace(MISSES, f"{MISSES} (in the report)")


def _print_numbers(one: Standing, console: Console, start: int) -> None:
    """The name, the outcome and the numbers on a line; the name on its own where it is long."""
    outcome = Text(f"{one.outcome:<10}", style=_COLOURS.get(one.look, "")) + Text(f"  {one.shares}")
    name = printable(one.judge)
    if 2 + cell_len(name) + 2 > start:
        _print_wrapped(name, console, 2)
        name = ""
    numbers = Text(f"  {name}{' ' * (start - 2 - cell_len(name))}") + outcome
    failed = [f"{one.failures:,} failed"] if one.failures else []
    missing = ", ".join([*filter(None, [one.asked]), *failed])
    if missing and len(numbers) + 2 + len(missing) <= console.width:
        numbers, missing = numbers + Text(f"  {missing}"), ""
    console.print(numbers, no_wrap=len(numbers) <= console.width)
    if missing:
        _print_wrapped(missing, console, start)


def _print_wrapped(text: str, console: Console, indent: int = 0, style: str = "") -> None:
    """Whole words in lines that begin at the same place, short enough to be read."""
    room = min(console.width, _LINE) - indent
    for line in wrapped(text, max(20, room)).split("\n"):
        console.print(Text(" " * indent + line, style=style))


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


def print_brief(table: Table, console: Console) -> None:
    """The table as a paper prints it: two digits, an interval beside each, and one sentence on what
    all rest on."""
    values = [[brief(cell) for cell in row] for row in table.rows]
    first = table.stubs - 1
    inside = [*zip(table.columns, *values, strict=True)][table.stubs :]
    used = sum(max(map(cell_len, column)) + _BESIDE for column in inside)
    room = max(_STUB // 2, console.width - used - _BESIDE)
    grid = RichTable(box=SIMPLE_HEAD, show_edge=False, header_style="bold")
    for i, heading in enumerate(table.columns[first:]):
        column = [row[first + i] for row in values]
        right = i and any(cell[:1].isdigit() or cell[:1] == "." for cell in column)
        grid.add_column(heading, justify="right" if right else "left", overflow="fold")
    for group, same in groupby(values, key=lambda row: ": ".join(row[:first])):
        if group:
            grid.add_row(Text(printable(group), style="bold"))
        for row in same:
            cells = (wrapped(row[first], room), *map(printable, row[table.stubs :]))
            grid.add_row(*map(Text, cells))
    console.print(Text(f"\n{printable(table.title)}", style="bold"))
    console.print(grid)
    for sentence in (*table.notes, *rests_on(table)):
        console.print(Text(printable(sentence), style="dim"))


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
        words = [longest_word(text) for text in (heading, *(row[i].value for row in table.rows))]
        room = max(stub if i < table.stubs else value, min(_WORD, max(words)))
        narrow = max(min(room, _VALUE), min(_WORD, words[0])) if i >= table.stubs else room
        head = Text(wrapped(heading, narrow))
        cells = (_cell(row[i], notes.mark(row[i]), room) for row in table.rows)
        found.append([head, *cells])
    return found


def _cell(cell: Cell, mark: str, room: int) -> Text:
    """The value with its mark, and under it the interval."""
    style = "bold" if cell.best else _COLOURS.get(cell.look, "")
    shown = "\n".join(wrapped(line, room) for line in cell.value.split("\n"))
    beside = f" {mark}" * bool(mark), f"\n{cell.interval}" * bool(cell.interval)
    return Text().append(shown, style=style).append(beside[0], "dim").append(beside[1], "dim")
