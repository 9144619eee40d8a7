"""The rows of a table that has the columns asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgebench.data.cells import Cell
from judgebench.data.findings import Findings, nearest
from judgebench.data.open_table import open_table
from judgebench.errors import Problem, some

_HEADERLESS = (".json", ".jsonl", ".ndjson")  # of these the first row is row 1, of others row 2


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a file. `row` counts from 0 without the header; `line` as a spreadsheet shows it."""

    file: str
    row: int
    line: int
    cells: Mapping[str, Cell]

    def text(self, column: str | None) -> str:
        """The stripped text of the column; '' where none is named."""
        cell = "" if column is None else self.cells[column]
        return cell.strip() if isinstance(cell, str) else ""

    def problem(self, message: str, column: str, found: str, allowed: str = "") -> Problem:
        """A problem with a cell of this row."""
        return Problem(message, self.file, self.line, column, found, allowed)


def read_source(path: Path, columns: Sequence[str], problems: list[Problem]) -> list[SourceRow]:
    """The sound rows of a file, plain or gzipped; everything wrong with it goes to `problems`."""
    findings = Findings()
    rows = list(source_rows(path, columns, findings))
    problems += findings.errors
    return rows


def source_rows(path: Path, columns: Sequence[str], findings: Findings) -> Iterator[SourceRow]:
    """The sound rows of a file that has all columns, one by one."""
    table = open_table(path, findings)
    if table is None:
        return
    first = 1 if path.name.lower().removesuffix(".gz").endswith(_HEADERLESS) else 2
    names = [name for name in table.columns if name]
    places = {column: table.find(column) for column in columns}
    known = {column: place for column, place in places.items() if place is not None}
    for column in (c for c in places if c not in known):
        message, allowed = f"has no such column{nearest(column, names)}", some(names)
        findings.add("missing_column", message, (str(path), 1), column, allowed=allowed)
    for line, cells, sound, _ in table.rows:
        if sound and len(known) == len(places):
            held = {column: cells[place] for column, place in known.items()}
            yield SourceRow(str(path), line - first, line, held)
