"""Tables that people fill in with a spreadsheet, which must not run the text of a cell.

A text that a spreadsheet would run as a formula gets a leading apostrophe in the table, which is
taken off again when the table is read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from judgebench.data.open_table import DataTable
from judgebench.errors import Problem, some

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
    """Whether a spreadsheet may run the text, which is no number."""
    return _FORMULA.match(text) is not None and not _NUMBER.fullmatch(text)


def unquoted(cell: str) -> str:
    """The text of a cell that `quoted` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The table, marked as UTF-8. Every cell is quoted and lines end with a line feed: the
    scripts of the pages write the same."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([columns, *rows])
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
