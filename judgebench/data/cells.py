"""The contents of one cell of a table, and the damage that spreadsheets and copying do to it."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from functools import lru_cache
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Nested:
    """A value with objects inside, which only conversations and criteria are read from."""

    value: Any


# The text as in the file, "" where blank; a list of such texts (from JSON or Parquet);
# or a nested value.
Cell = str | tuple[str, ...] | Nested


class Fault(NamedTuple):
    """A fault at a place inside a cell, such as `[3].role`."""

    message: str
    where: str = ""
    found: str | None = None
    allowed: str = ""


class RawTable(NamedTuple):
    """The columns of a table as a reader gives them: the values (rows,) beside each name, and the
    row in which each stands. `header` is the row of the names."""

    columns: Sequence[tuple[str, Sequence[Any]]]
    lines: Sequence[int]
    header: int = 1


# Zero-width characters, soft hyphen, direction marks and the C1 controls that a wrong decoding
# leaves behind: they are invisible, and two ids that differ in them look equal.
INVISIBLE = re.compile("[\u00ad\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

# What no text should hold: NUL and its kin, lone surrogates, bytes that were no UTF-8.
FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")

_ERROR_VALUE = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NUM!|NULL!)")
_LONGEST_CELL = 32_767  # characters; a spreadsheet cuts off what is longer


@lru_cache(1 << 12)
def shared(text: str) -> str:
    """The same text as one object, where it stands in rows that are not far from each other."""
    return text


def clean(text: str) -> str:
    """`text` without invisible characters and outer space."""
    seen = text if text.isprintable() else INVISIBLE.sub("", text)  # the first test is quicker
    return seen.strip()


def is_blank(text: str) -> bool:
    """True where nothing is visible in it. `NA`, `None` and `null` are not blank."""
    return not text or (not text[0].isalnum() and not clean(text))


def is_blank_cell(cell: Cell) -> bool:
    """True of an empty list, and of a text of nothing but space."""
    return not cell or (isinstance(cell, str) and cell.isspace())


def has_invisible(text: str) -> bool:
    """True where it has invisible characters."""
    return not text.isprintable() and INVISIBLE.search(text) is not None


def has_forbidden(text: str) -> bool:
    """True where it has forbidden characters."""
    return not text.isprintable() and FORBIDDEN.search(text) is not None


def mark_forbidden(text: str) -> str:
    """`text` with U+FFFD for each forbidden character."""
    return FORBIDDEN.sub("\ufffd", text)


def mark_cell(cell: Cell) -> Cell:
    """The cell with U+FFFD for each forbidden character of its texts."""
    if isinstance(cell, tuple):
        return tuple(map(mark_forbidden, cell))
    return mark_forbidden(cell) if isinstance(cell, str) else cell


def spreadsheet_damage(text: str) -> str:
    """What a spreadsheet wrote in the place of a text; empty where it seems unchanged."""
    if len(text) == _LONGEST_CELL:
        return "is cut at 32,767 characters, the most that a spreadsheet's cell holds"
    return "is a spreadsheet's error value" if _ERROR_VALUE.fullmatch(text) else ""


def split_list(cell: str | tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a list cell: a JSON list, a Python list, or texts between `|` or `;`.

    Raises ValueError where it is none of these.
    """
    if isinstance(cell, tuple):
        return cell
    text = cell.strip()
    if not text:
        return ()
    if text[0] not in "[(":
        return tuple(text.split("|" if "|" in text else ";"))
    values = _literal(text)
    if not isinstance(values, list | tuple):
        raise ValueError("is not a list")
    return tuple(scalar_text(value) for value in values)


def nested(cell: Cell) -> Any:
    """The value in a cell, which may be JSON or a Python literal as text; numbers stay texts.

    Raises ValueError where it is neither.
    """
    if isinstance(cell, str):
        return _literal(cell) if cell.strip() else None
    return cell.value if isinstance(cell, Nested) else list(cell)


def _literal(text: str) -> object:
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)  # reads literals only: nothing is run
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("is neither a JSON list nor a Python list") from None


def number_in(text: str) -> float:
    """The number that a text says; NaN where it says none."""
    try:  # Python also reads 0_1, and digits of any script
        return float(text if text.isascii() and "_" not in text else "nan")
    except ValueError:
        return math.nan


def scalar_text(value: object) -> str:
    """A single value as text: null is blank, a float keeps its point, a date without a time of day
    is written without one. ValueError for a list or an object."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict | set):
        raise ValueError(f"holds a {type(value).__name__}, where one value was expected")
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, datetime) and value.timetz() == time():
        return str(value.date())
    return str(value)


def cell_of(value: Any) -> Cell:
    """A value of JSON, a workbook, Parquet or a DataFrame as a cell."""
    try:
        is_list = isinstance(value, list | tuple)
        return tuple(map(scalar_text, value)) if is_list else scalar_text(value)
    except ValueError:
        return Nested(value)
