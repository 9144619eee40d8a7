"""A report as GitHub-flavoured Markdown. All text is escaped; nothing in it can be markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from judgebench.results.part import Block, Part, blocks_of, caveats, report_title
from judgebench.results.tables import Cell, Table, footnotes
from judgebench.words import printable

# A backslash before a bar would end a cell in some readers, so it is written as an entity.
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"} | {
    c: f"\\{c}" for c in "`*_[]|~$#@"
}
_LIST_OR_RULE = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def to_markdown(parts: Sequence[Part], name: str) -> str:
    """The whole report: lead blocks, caveats, all other blocks."""
    facts = Block(text=tuple(fact for part in parts for fact in part.facts))
    notes = Block("Caveats", tuple(caveats(parts)))
    blocks = (facts, *blocks_of(parts, lead=True), notes, *blocks_of(parts, lead=False))
    lines = (line for block in blocks for line in _block_lines(block))
    return "\n".join((f"# {escape(report_title(parts, name))}", "", *lines))


def _block_lines(block: Block) -> Iterator[str]:
    if block.heading and (block.text or block.tables):
        yield from (f"## {escape(block.heading)}", "")
    if block.text:
        yield from (*bullets(block.text), "")
    for table in block.tables:
        yield from (*table_lines(table), "")


def escape(text: str) -> str:
    """`text` on one line, as Markdown that shows it as it is."""
    return "".join(_ESCAPED.get(c, c) for c in " ".join(printable(text).split()))


def _sentence(text: str) -> str:
    """Escaped text that begins a line, where a number or a dash would begin a list."""
    return _LIST_OR_RULE.sub(r"\1\\", escape(text))


def bullets(sentences: Iterable[str]) -> list[str]:
    """A list with one sentence per line."""
    return [f"- {_sentence(sentence)}" for sentence in sentences]


def table_lines(table: Table) -> Iterator[str]:
    """A heading, the table, and under it what its numbers rest on."""
    notes = footnotes(table)
    yield f"### {escape(table.title)}"
    yield ""
    yield _row(escape(column) for column in table.columns)
    yield _row("---" if i < table.stubs else "---:" for i in range(len(table.columns)))
    for row in table.rows:
        yield _row(_cell(cell, notes.mark(cell)) for cell in row)
    yield ""
    yield from (f"{_sentence(sentence)}  " for sentence in notes.sentences(table))
    yield from (f"<sup>{mark}</sup> {escape(text)}  " for text, mark in notes.marks.items())


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, mark: str) -> str:
    shown = cell.value if cell.estimate else escape(cell.text)
    if cell.best and shown:
        shown = f"**{shown}**"
    if cell.interval:
        shown += f" {cell.interval}"
    return shown + (f"<sup>{mark}</sup>" if mark else "")
