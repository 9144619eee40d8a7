"""The tables as GitHub-flavoured Markdown. All text is escaped; nothing in it can be markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from judgebench.align import Alignment
from judgebench.decide.part import NO_DECISIONS
from judgebench.decide.result import Decisions
from judgebench.ranking.rankings import Rankings
from judgebench.report.old.contents import (
    NO_LABELS,
    about_what,
    all_notes,
    compared_sentences,
    opening_tables,
    shown_tables,
    shows_alignment,
)
from judgebench.report.words import printable
from judgebench.results.tables import Cell, Table, footnotes
from judgebench.stress.result import StressResult

# A backslash before a bar would end a cell in some readers, so it is written as an entity.
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"} | {
    c: f"\\{c}" for c in "`*_[]|~$#@"
}
_LIST_OR_RULE = re.compile(r"^(\d+(?=[.)])|(?=[-+=]))")


def escape(text: str) -> str:
    """`text` on one line, as Markdown that shows it as it is."""
    return "".join(_ESCAPED.get(c, c) for c in " ".join(printable(text).split()))


def _sentence(text: str) -> str:
    """Escaped text that begins a line, where a number or a dash would begin a list."""
    return _LIST_OR_RULE.sub(r"\1\\", escape(text))


def to_markdown(
    alignment: Alignment,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> str:
    """The whole report as Markdown: decisions, caveats, what was compared, every table."""
    title = about_what(alignment, stress, decisions, rankings)
    lines = [f"# {escape(alignment.name)}: {title}", ""]
    opening = opening_tables(decisions)
    for table in opening:
        lines += [*table_lines(table), ""]
    if decisions and not opening:
        lines += [NO_DECISIONS, ""]
    notes = all_notes(alignment, stress, decisions, rankings)
    if notes:
        lines += ["## Caveats", "", *bullets(notes), ""]
    compared = compared_sentences(alignment, rankings)
    if compared and not shows_alignment(alignment, stress, rankings):
        compared.append(NO_LABELS)
    if compared:
        lines += ["## What was compared", "", *bullets(compared), ""]
    if decisions is not None:
        lines += ["## The rule of the decisions", "", *bullets(decisions.rule.in_words()), ""]
    for table in shown_tables(alignment, stress, decisions, rankings)[len(opening) :]:
        lines += [*table_lines(table), ""]
    return "\n".join(lines)


def bullets(sentences: Iterable[str]) -> list[str]:
    """A list with one sentence a line."""
    return [f"- {_sentence(sentence)}" for sentence in sentences]


def table_lines(table: Table) -> Iterator[str]:
    """A heading, the table, and under it what its numbers rest on."""
    notes = footnotes(table)
    yield f"## {escape(table.title)}"
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
