"""The contents of one cell of a table, and the damage that spreadsheets and copying do to it."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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


class RawRow(NamedTuple):
    """`line` counts as a spreadsheet shows it: the header is row 1, a cell may span lines.

    In JSONL it is the line, in a JSON list the number of the object. A row that is not `sound`
    was reported; its cells may be in the wrong columns. In a `plain` one every cell is a text
    without invisible or forbidden characters, so that it need not be checked again.
    """

    line: int
    cells: Sequence[Cell]
    sound: bool = True
    plain: bool = False


# Zero-width characters, soft hyphen, direction marks and the C1 controls that a wrong decoding
# leaves behind: they are invisible, and two ids that differ in them look equal.
INVISIBLE = re.compile("[\u00ad\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

# What no text should hold: NUL and its kin, lone surrogates, bytes that were no UTF-8.
FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")

_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"""\d{{1,2}}[-/.\ ]{_MONTH}([-/.\ ]\d{{2,4}})?          # 2-Mar, 2-Mar-26
    | {_MONTH}[-/.\ ]\d{{1,4}}                                 # Mar-02
    | \d{{4}}-\d{{2}}-\d{{2}}([T\ ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?)?(Z|[+-]\d{{2}}:\d{{2}})?
    | \d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}(\ \d{{1,2}}:\d{{2}}(:\d{{2}})?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SERIAL = re.compile(r"[2-6]\d{4}(\.\d+)?")  # days since 1900: 20000 is 1954, 69999 is 2091
_ERROR_VALUE = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NUM!|NULL!)")
_LONGEST_CELL = 32_767  # characters; a spreadsheet cuts off what is longer


def clean(text: str) -> tuple[str, bool, bool]:
    """`text` without invisible characters and outer space, and whether it had any of each."""
    seen = text if text.isprintable() else INVISIBLE.sub("", text)  # the first test is quicker
    stripped = seen.strip()
    return stripped, len(seen) < len(text), len(stripped) < len(seen)


def is_blank(text: str) -> bool:
    """True where nothing is visible in it. `NA`, `None` and `null` are not blank."""
    return not text or (not text[0].isalnum() and not clean(text)[0])


def has_invisible(text: str) -> bool:
    """True where it has invisible characters."""
    return not text.isprintable() and INVISIBLE.search(text) is not None


def has_forbidden(text: str) -> bool:
    """True where it has forbidden characters."""
    return not text.isprintable() and FORBIDDEN.search(text) is not None


def mark_forbidden(text: str) -> str:
    """`text` with U+FFFD for each forbidden character."""
    return FORBIDDEN.sub("\ufffd", text)


def is_date(text: str) -> bool:
    """True of a date, with or without a time."""
    return _DATE.fullmatch(text) is not None


def spreadsheet_damage(text: str) -> str:
    """Describe how a spreadsheet seems to have changed the text; empty where it seems
    unchanged."""
    text = text.strip()
    if len(text) == _LONGEST_CELL:
        return "is cut at 32,767 characters, the most that a spreadsheet's cell holds"
    if len(text) > 40:
        return ""
    if is_date(text):
        return "is a date, as a spreadsheet makes them of other text"
    if _SERIAL.fullmatch(text):
        return "is a bare number, as a spreadsheet writes a date"
    if _ERROR_VALUE.fullmatch(text):
        return "is a spreadsheet's error value"
    return ""


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
    try:
        return _objects(cell.value) if isinstance(cell, Nested) else list(cell)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _objects(value: Any) -> Any:
    """The value with every object as a dict, also one that is the tuple of its pairs."""
    if isinstance(value, tuple | dict):
        return {key: _objects(one) for key, one in dict(value).items()}
    return [_objects(one) for one in value] if isinstance(value, list) else value


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


def with_point(text: str) -> str:
    """A number with a decimal comma as one with a point; any other text as it is.

    >>> with_point("2,5"), with_point("1,2,3")
    ('2.5', '1,2,3')
    """
    return re.sub(r"\A(-?\d+),(\d+)\Z", r"\1.\2", text)


def scalar_text(value: object) -> str:
    """A single value as text: null is blank, a float keeps its point. ValueError for the rest."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "" if value != value else repr(value)  # a number that is NaN is a missing one
    raise ValueError(f"holds a {type(value).__name__}, where one value was expected")


Steps = tuple[str | int, ...]

_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[-?\d+\])+")
_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")
_DEEPEST = 5  # steps that are named
_NAMED = 40  # paths that are named
_LOOKED_AT = 20  # objects whose paths are named


def steps_of(name: str) -> Steps | None:
    """The keys and places that a path goes through; None where it is none.

    >>> steps_of("messages[-1].content")
    ('messages', -1, 'content')
    """
    if not _PATH.fullmatch(name):
        return None
    return tuple(int(place) if place else key for place, key in _STEP.findall(name))


def dig(value: Any, steps: Steps, missing: Any = "") -> Any:
    """The value at the end of a path, else `missing`. An object is a dict, or the tuple of its
    pairs."""
    for step in steps:
        value = dict(value) if isinstance(value, tuple) else value
        if isinstance(value, Anywhere) and isinstance(step, int):
            step = 0
        if isinstance(step, int):
            inside = isinstance(value, list) and -len(value) <= step < len(value)
        else:
            inside = isinstance(value, dict) and step in value
        if not inside:
            return missing
        value = value[step]
    return value


class Anywhere(list[Any]):
    """A list that has the same value at every place, of one whose length is not known."""

    def __init__(self, value: Any) -> None:
        super().__init__([value])


class Paths:
    """The paths that are asked for, which of them lead anywhere, and where others would. `rows` is
    the path of a list of which each entry makes a row."""

    def __init__(self, asked: Iterable[str], rows: str | None = None) -> None:
        self._asked = {name: steps for name in asked if (steps := steps_of(name))}
        self._rows = tuple(rows.split(".")) if rows else ()
        self.has_rows = not rows
        self._found: dict[str, Steps] = {}
        self._there: dict[str, None] = {}
        self._seen = 0

    def look(self, value: Any) -> None:
        """See which paths lead anywhere in an object."""
        if self._rows:
            entries = dig(value, self._rows)
            self.has_rows = self.has_rows or isinstance(entries, list)
            value = next(self.each(value))
        asked = self._asked if len(self._found) < len(self._asked) else {}
        for name, steps in asked.items():
            if name not in self._found and dig(value, steps, self) is not self:
                self._found[name] = steps
        if self._seen < _LOOKED_AT:
            self._seen += 1
            self._there.update(dict.fromkeys(_inside(value, "", _DEEPEST)))

    def found(self, columns: Iterable[str]) -> dict[str, Steps]:
        """Those that lead anywhere; the name of a column is no path."""
        taken = set(columns)
        there = [name for name in self._asked if name in self._found and name not in taken]
        return {name: self._found[name] for name in there}

    def each(self, value: Any) -> Iterator[Any]:
        """The object for each entry of the list of rows, which stands in the list's place."""
        return _each(value, self._rows) if self._rows else iter((value,))

    @property
    def there(self) -> list[str]:
        """Some paths that lead to single values."""
        return list(self._there)[:_NAMED]


def _each(value: Any, steps: Steps) -> Iterator[dict[str, Any]]:
    """The object for each entry of the list at the end of the steps; once where there is none."""
    value = dict(value) if isinstance(value, dict | tuple) else {}
    inside = value.get(str(steps[0]), "")
    entries = inside if isinstance(inside, list) else []
    for one in _each(inside, steps[1:]) if steps[1:] else entries or [""]:
        yield {**value, str(steps[0]): one}


def _inside(value: Any, path: str, depth: int) -> Iterator[str]:
    value = dict(value) if isinstance(value, tuple) else value
    if depth and isinstance(value, dict):
        for key, one in value.items():
            yield from _inside(one, f"{path}.{key}" if path else str(key), depth - 1)
    elif depth and isinstance(value, list) and value and isinstance(value[0], dict | tuple):
        yield from _inside(value[0], f"{path}[0]", depth - 1)
    elif path:
        yield path
