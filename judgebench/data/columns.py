"""A table whose columns are called by name: the texts and numbers of its columns, its rows one by
one, and tables that people fill in with a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.data.cells import Cell
from judgebench.data.findings import Findings, nearest
from judgebench.data.guess import roles_by_name
from judgebench.data.open_table import DataTable, frame_table, open_table
from judgebench.errors import Problem, raise_any, some
from judgebench.stats.arrays import FloatArray

_NO_SCORES = ("row", "repeat", "run", "seed")  # numbers that stand beside scores


@dataclass(frozen=True)
class Columns:
    """Every column of a table as texts (rows,), "" where a cell is blank. `lines` count as a
    spreadsheet shows them."""

    file: str
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]

    def numeric(self) -> list[str]:
        """The columns that hold numbers and blanks alone, one number at least."""
        return [c for c, cells in self.cells.items() if any(cells) and all(map(_fits, cells))]

    def scores(self, *aside: str | None) -> list[str]:
        """The columns that may be scores: neither ids nor those named `aside`, and most of what
        they hold is numbers, so that a slip in a cell is reported and does not hide a column."""
        ids = [*_NO_SCORES, *aside, roles_by_name(self.cells).get("item_id")]
        held = {c: [*map(_fits, filter(None, cells))] for c, cells in self.cells.items()}
        return [c for c, fits in held.items() if 2 * sum(fits) > len(fits) and c not in ids]

    def filled(self, column: str) -> Sequence[str]:
        """The texts (rows,) of a column. Raises SetupError with every cell that is blank."""
        cells = list(zip(self.lines, self.cells[column], strict=True))
        raise_any([Problem("is blank", self.file, n, column) for n, cell in cells if not cell])
        return self.cells[column]

    def numbers(self, *columns: str) -> FloatArray:
        """(rows, columns), NaN where a cell is blank or `nan`. Raises SetupError with every cell
        that holds no finite number."""
        wrong = [
            Problem("is no number", self.file, line, column, cell)
            for column in columns
            for line, cell in zip(self.lines, self.cells[column], strict=True)
            if not _fits(cell)
        ]
        raise_any(wrong)
        rows = [[float(cell or "nan") for cell in self.cells[column]] for column in columns]
        return np.array(rows, dtype=np.float64).reshape(len(columns), len(self.lines)).T


def _fits(cell: str) -> bool:
    try:
        return not cell or not math.isinf(float(cell))
    except ValueError:
        return False


def read_columns(table: Any, needed: Iterable[str] = (), name: str = "the table") -> Columns:
    """A file of any format, or a DataFrame, which messages call by `name`.

    Raises SetupError with every problem, and for columns of `needed` that there are not.
    """
    findings = Findings()
    given = isinstance(table, str | Path)
    opened = open_table(Path(table), findings) if given else frame_table(table, name, findings)
    problems = missing_columns(opened, dict.fromkeys(needed)) if opened else []
    rows = list(filled_rows(opened)) if opened else []
    raise_any([*findings.errors, *problems])
    assert opened is not None  # otherwise the findings say why
    cells = {c: [row[c].strip() for _, row in rows] for c in opened.columns if c}
    return Columns(opened.file, [line for line, _ in rows], cells)


_HEADERLESS = (".json", ".jsonl", ".ndjson")  # of these the first row is row 1, of others row 2


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a file. `row` counts from 0 without the header; `line` as a spreadsheet shows
    it."""

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


# Space, breaks and invisible characters before the sign do not always keep it from being run, and
# some programs read signs of full width as the plain ones.
_FORMULA = re.compile(
    r"'*([\t\r\n]|[ \t\n\v\f\r\u00a0\u2000-\u200f\u2028\u2029\u3000\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf)", re.ASCII)


def quoted(text: str) -> str:
    """A text that no spreadsheet runs. `unquoted` gives the text back."""
    return f"'{text}" if _FORMULA.match(text) else text


def is_run(text: str) -> bool:
    """True where a spreadsheet may run the text, which is no number."""
    return _FORMULA.match(text) is not None and not _NUMBER.fullmatch(text)


def unquoted(cell: str) -> str:
    """The text of a cell that `quoted` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The table, marked as UTF-8. Every cell is quoted and lines end with a line feed: the
    scripts of the pages write the same."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode("utf-8-sig")


def filled_rows(table: DataTable) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and texts by column of every row; one that cannot be read was reported by the table."""
    for line, cells, sound, _ in table.rows:
        if sound:
            named = zip(table.columns, cells, strict=True)
            yield line, {column: unquoted(str(cell)) for column, cell in named if column}


def missing_columns(table: DataTable, needed: Iterable[str]) -> list[Problem]:
    """One problem for each column that the table lacks."""
    found = some(filter(None, table.columns))
    return [
        Problem("the column is missing", table.file, 1, column, found)
        for column in needed
        if column not in table.columns
    ]
