"""Rows of CSV and TSV, and CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from io import TextIOBase
from itertools import islice

from judgebench.data.cells import shared
from judgebench.errors import Problem, SetupError

_LONGEST_CELL = 2**31 - 1  # characters; the csv module stops at 131,072 unless set
_SAMPLE_SIZE = 2**18  # characters at the start, which show the delimiter
_SAMPLE_ROWS = 100


def read_delimited(text: TextIOBase, delimiter: str, file: str) -> list[list[str]]:
    """The rows of a text, in which newlines are as in the file. Without a `delimiter` it is a
    comma, a semicolon or a tab.

    Raises SetupError for a quote without its match.
    """
    csv.field_size_limit(_LONGEST_CELL)
    sample, rows = text.read(_SAMPLE_SIZE), list[list[str]]()
    text.seek(0)
    delimiter = delimiter or max(",;\t", key=lambda candidate: _fit(sample, candidate))
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            rows.append([*map(shared, row)])
    except csv.Error:
        message = "a quote opens in this row, and none closes it at the end of its cell"
        allowed = 'quotes around a whole cell; those inside of it twice: ""'
        raise SetupError(Problem(message, file, len(rows) + 1, allowed=allowed)) from None
    return rows


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """The share of the first rows that have the commonest number of cells, and this number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    widths = Counter(len(row) for row in islice(reader, _SAMPLE_ROWS) if any(row))
    if not widths:
        return 0.0, 0
    width, n_rows = max(widths.items(), key=lambda item: (item[1], item[0]))
    return (n_rows / widths.total() if width > 1 else 0.0), width


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


def unquoted(cell: str) -> str:
    """The text of a cell that `quoted` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def is_run(text: str) -> bool:
    """True where a spreadsheet may run the text, which is no number."""
    return _FORMULA.match(text) is not None and not _NUMBER.fullmatch(text)


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The table, marked as UTF-8. Every cell is quoted and lines end with a line feed: the
    scripts of the pages write the same."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode("utf-8-sig")
