"""The view in a terminal: what matters most, and the caveats last."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from judgebench.report.contents import blocks_of, caveats
from judgebench.report.terminal_table import print_table
from judgebench.report.words import printable
from judgebench.results.part import Block, Part


def print_parts(parts: Sequence[Part], console: Console, name: str = "") -> None:
    """Print the blocks that are meant for a screen; the files of the report hold the rest."""
    if name:
        console.print(Text(printable(name), style="bold"))
    for lead in (True, False):
        for block in blocks_of(parts, lead=lead):
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
    blocks = [*blocks_of([part], lead=True), *blocks_of([part], lead=False)]
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, force_terminal=False)
    for block in [block for block in blocks if block.on_screen and block.tables][:1]:
        _print_block(block, console)
    for note in caveats([part]):
        console.print(Text(f"! {printable(note)}"))
    return out.getvalue().strip("\n")
