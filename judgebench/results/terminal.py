"""The screen that tables and progress are drawn on."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import IO, Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from judgebench.results.blocks import (
    FEW_OUTCOMES,
    MISSES,
    STRESSED,
    UNDERSTOOD,
    Block,
    DecisionSummary,
    ReportSection,
    blocks_of,
    caveats,
    one_screen,
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
from judgebench.text import counted, for_terminal, longest_word, printable, wrapped


class Screen(Console):
    """A rich Console on which text is text: no markup, no emoji codes, and nothing in it that a
    terminal would obey. Its own colours and bars are drawn as ever."""

    def __init__(self, file: IO[str] | None = None, *, quiet: bool = False) -> None:
        super().__init__(file=file, quiet=quiet, markup=False, highlight=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As `Console.render`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=for_terminal(segment.text))


_BESIDE = 3  # what padding and the space between columns take
_STUB = 16  # the width that is left for names
_TEXT = 22  # of texts in other columns
_HEADING = 12  # of headings that are not broken
_COLOURS: Mapping[str, str] = {"good": "green", "fair": "cyan", "bad": "red", "unclear": "yellow"}
_LINE = 100  # of sentences
_WORD = 24  # that is never broken
_SHARES = 55  # of an outcome and its numbers
_NUMBER = re.compile(r"[+−-]?[.\d]")
_Shown = Callable[[Cell, int], Text]  # a cell, folded at a width
_MOST_STEPS = 3
_MOST_SAID = (FEW_OUTCOMES, 24)  # whose next steps, and whose reasons, are printed


def print_parts(
    parts: Sequence[ReportSection],
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
    first = one_screen(parts, tables)
    every = [*one_screen(parts), *(b for b in blocks_of(parts) if b.on_screen)]
    for block in (*first, *(b for b in every if everything and b not in first)):
        _print_block(block, console, everything)
    if notes := caveats(parts, read=False) if everything else urgent(parts):
        console.print()
    for note in notes:
        read = note.startswith(UNDERSTOOD)  # no caveat
        console.print(Text(f"{'' if read else '! '}{printable(note)}", "" if read else "yellow"))


def as_text(part: ReportSection, width: int = 100) -> str:
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
        print_table(table, console, block.brief)


def _print_standings(
    standings: Sequence[DecisionSummary], console: Console, everything: bool
) -> None:
    """Group by metric: a line of numbers for each judge, and under it why and what to do next. With
    many of them the next steps stand together at the end, and with very many the reason is left to
    `everything`."""
    start = 4 + max(cell_len(printable(one.judge)) for one in standings)
    start = start if start + _SHARES <= console.width else 4
    has_steps, has_reasons = (len(standings) <= most or everything for most in _MOST_SAID)
    for metric, same in groupby(standings, key=lambda one: one.metric):
        console.print()
        _print_wrapped(metric, console, style="bold")
        for one in same:
            _print_numbers(one, console, start)
            texts = [one.why] if has_reasons else []
            texts += [one.numbers] if everything and one.numbers else []
            texts += filter(None, [one.alone])
            texts += [f"Next: {_here(one.next)}"] if has_steps else []
            for text in texts:
                _print_wrapped(text, console, start if has_steps else 4)
    if not has_steps:
        _print_next_steps(standings, console)


def _print_next_steps(standings: Sequence[DecisionSummary], console: Console) -> None:
    """The most common next steps, each once, and how to see the others."""
    console.print()
    steps = Counter(one.next for one in standings).most_common()
    for text, n in steps[:_MOST_STEPS]:
        first = next(one for one in standings if one.next == text)
        which = (
            f"{n} of {len(standings)} decisions" if n > 1 else f"{first.judge} on {first.metric}"
        )
        _print_wrapped(f"Next, for {which}: {_here(text)}", console)
    if len(steps) > _MOST_STEPS:
        left = counted(len(steps) - _MOST_STEPS, "other next step")
        _print_wrapped(f"-v and the page add {left}, and say which decision each is for.", console)


def _here(step: str) -> str:
    """A next step after a colon, with the place of what a page links to."""
    for place in (MISSES, STRESSED):
        step = step.replace(place, f"{place} (in the report)")
    return f"{step[:1].lower()}{step[1:]}"


def _print_numbers(one: DecisionSummary, console: Console, start: int) -> None:
    """The name, the outcome and the numbers on a line; the name on its own where it is long."""
    line = Text(f"  {printable(one.judge)}")
    if line.cell_len + 2 > start:
        _print_wrapped(one.judge, console, 2)
        line = Text()
    line.pad_right(start - line.cell_len)
    line.append(f"{one.outcome:<10}", _COLOURS.get(one.look, "")).append(f"  {one.shares}")
    missing = ", ".join(filter(None, (one.asked, one.failures)))
    if missing and len(line) + 2 + len(missing) <= console.width:
        line.append(f"  {missing}")
        missing = ""
    console.print(line, no_wrap=len(line) <= console.width)
    if missing:
        _print_wrapped(missing, console, start)


def _print_wrapped(text: str, console: Console, indent: int = 0, style: str = "") -> None:
    """Whole words in lines that begin at the same place, short enough to be read."""
    room = min(console.width, _LINE) - indent
    for line in wrapped(text, max(20, room)).split("\n"):
        console.print(Text(" " * indent + line, style=style))


def print_table(table: Table, console: Console, is_brief: bool = False) -> None:
    """The table, in blocks of columns where it does not fit the console, and its notes under it. A
    brief one is as a paper prints it: two digits, an interval beside each, a line for what its
    first stubs say, and one sentence on what all numbers rest on. Without a row nothing is
    printed."""
    if not table.rows:
        return
    notes = Footnotes(("", ""), {}) if is_brief else footnotes(table)
    shown: _Shown = _brief if is_brief else partial(_full, notes)
    first = table.stubs - 1 if is_brief else 0
    widths = _widths(table, shown)
    names = sum(min(width, _STUB + _BESIDE) for width in widths[first : table.stubs])
    title = table.title
    for block in split_columns(table, widths[table.stubs :], console.width + 1 - names):
        console.print(Text(f"\n{printable(title)}", style="bold"))
        console.print(_grid(block, first, shown, console.width))
        title = f"{table.title} (continued)"
    for sentence in (*table.notes, *rests_on(table)) if is_brief else notes.sentences(table):
        console.print(Text(printable(sentence), style="dim"))
    for text, mark in notes.marks.items():
        console.print(Text(f"{mark}: {printable(text)}", style="dim"))


def _grid(table: Table, first: int, shown: _Shown, width: int) -> RichTable:
    """The columns from the `first` stub on, after what the stubs before it say on a line of its
    own; long names share the room that all else leaves."""
    widths, n_names = _widths(table, shown)[first:], table.stubs - first
    long = [w for w in widths[:n_names] if w > _STUB + _BESIDE] or widths[:1]
    room = max(_STUB // 2, (width + 1 - sum(widths) + sum(long)) // len(long) - _BESIDE)
    grid = RichTable(box=SIMPLE_HEAD, show_edge=False, header_style="bold")
    for i, heading in enumerate(table.columns[first:]):
        texts = (shown(row[first + i], _TEXT).plain for row in table.rows)
        is_number = i >= n_names and any(map(_NUMBER.match, texts))
        name = wrapped(heading, room if i < n_names else widths[i] - _BESIDE)
        grid.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for group, rows in groupby(table.rows, key=lambda row: ": ".join(c.value for c in row[:first])):
        if group:
            grid.add_row(Text(printable(group), style="bold"))
        for row in rows:
            names = (shown(cell, room) for cell in row[first : table.stubs])
            grid.add_row(*names, *(shown(cell, _TEXT) for cell in row[table.stubs :]))
    return grid


def _widths(table: Table, shown: _Shown) -> list[int]:
    """The signs that each column needs; a long heading breaks between words."""
    widths = []
    for heading, column in zip(table.columns, zip(*table.rows, strict=True), strict=True):
        lines = "\n".join(shown(cell, _TEXT).plain for cell in column).split("\n")
        words = max(min(cell_len(heading), _HEADING), min(longest_word(heading), _WORD))
        widths.append(_BESIDE + max(words, *map(cell_len, lines)))
    return widths


def _brief(cell: Cell, room: int) -> Text:
    return Text(wrapped(brief(cell), room))


def _full(notes: Footnotes, cell: Cell, room: int) -> Text:
    """The value with its mark, and under it the interval."""
    value = "\n".join(wrapped(line, room) for line in cell.value.split("\n"))
    text = Text(value, style="bold" if cell.best else _COLOURS.get(cell.look, ""))
    mark = notes.mark(cell)
    text.append(f" {mark}" if mark else "", "dim")
    return text.append(f"\n{cell.interval}" if cell.interval else "", "dim")
