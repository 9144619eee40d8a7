"""JSON objects as rows under the union of their keys; numbers stay texts."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from json import JSONDecoder
from typing import Any

from pydantic_core import from_json

from judgebench.data.cells import Cell, Nested, RawRow, scalar_text
from judgebench.data.findings import Findings
from judgebench.data.nested import Paths, Steps, dig

_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str, "parse_constant": str}
# A list is a list and an object the tuple of its pairs, so that a duplicate key is noticed.
_AS_PAIRS = JSONDecoder(object_pairs_hook=tuple, **_AS_TEXT)
_AS_DICTS = JSONDecoder(**_AS_TEXT)
_LINE_ENDS = ("\n", "\r\n", "")
_TEXTS = {str}
LIST_NAME = "list_name"  # the column of the name of a list, where a file holds several
_MOST_CELLS, _MOST_BLANK = 5_000_000, 20  # of a table; times those that hold something
_Object = tuple[int, tuple[tuple[str, Any], ...]]  # its line, and its keys and values


def jsonl_columns(
    text: Iterable[str], paths: Paths, file: str, findings: Findings
) -> tuple[str, ...]:
    """The keys of all lines, in the order in which they occur; faulty lines are reported.
    `paths` learns which of them lead anywhere."""
    return _columns(_jsonl_objects(text, file, findings), paths, file, findings)


def jsonl_rows(
    text: Iterable[str], columns: Sequence[str], paths: Sequence[Steps]
) -> Iterator[RawRow]:
    """The lines under `columns`, which are all their keys, and under `paths` into their values;
    faulty ones are skipped."""
    for line, content in enumerate(text, start=1):
        if content.isspace():
            continue
        try:
            value = _read_dict(content)
        except ValueError:
            continue
        if isinstance(value, dict):
            cells, all_texts = _cells(value, columns, paths)
            yield RawRow(line, cells, True, all_texts and _is_plain(content))


def read_json(
    text: io.TextIOWrapper, paths: Paths, file: str, findings: Findings
) -> Iterator[RawRow]:
    """The columns and then the rows of a list of objects. All of it is held in memory."""
    objects = list(_json_objects(text, file, findings))
    if columns := _columns(objects, paths, file, findings):
        deep = paths.found(columns)
        yield RawRow(0, (*columns, *deep))
        for number, pairs in objects:
            yield RawRow(number, _cells(dict(pairs), columns, tuple(deep.values()))[0])


def json_cell(value: Any) -> Cell:
    """A value as a cell."""
    try:
        return tuple(map(scalar_text, value)) if isinstance(value, list) else scalar_text(value)
    except ValueError:
        return Nested(value)


def _cells(
    value: dict[str, Any], columns: Sequence[str], paths: Sequence[Steps]
) -> tuple[tuple[Cell, ...], bool]:
    """An object's values under `columns` and `paths`, and whether each was a text."""
    found = tuple([value.get(column, "") for column in columns])
    if paths:
        found += tuple([dig(value, steps) for steps in paths])
    if set(map(type, found)) == _TEXTS:
        return found, True
    return tuple(map(json_cell, found)), False


def _is_plain(line: str) -> bool:
    """Whether no text in this line of JSON can hold what is invisible or forbidden.

    JSON has no bare control character but U+007F. Escapes may encode any.
    """
    return line.isascii() and "\\u" not in line and "\\b" not in line and "\x7f" not in line


def _columns(
    objects: Iterable[_Object], paths: Paths, file: str, findings: Findings
) -> tuple[str, ...]:
    """The union of the keys; a duplicate key in an object is reported."""
    columns: dict[str, None] = {}
    usual: list[str] = []  # most objects have the keys of the one before
    rows = filled = 0
    for line, pairs in objects:
        paths.look(pairs)
        names = [name for name, _ in pairs]
        rows, filled = rows + 1, filled + len(names)
        if names == usual:
            continue
        columns.update(dict.fromkeys(names))
        if len(set(names)) == len(names):
            usual = names
            continue
        seen: set[str] = set()
        for name in names:
            if name in seen:
                message = "duplicate key in the object"
                findings.add("duplicate_key", message, (file, line), name)
            seen.add(name)
    if rows * len(columns) > max(_MOST_BLANK * filled, _MOST_CELLS):
        message = (
            f"its {rows:,} objects have {len(columns):,} different keys, too many for a table: "
            "give every object the same few keys, such as annotator, metric and label"
        )
        findings.add("malformed", message, (file, None))
        return ()
    return tuple(columns)


def _jsonl_objects(text: Iterable[str], file: str, findings: Findings) -> Iterator[_Object]:
    for line, content in enumerate(text, start=1):
        if content.isspace():
            continue
        try:
            value = _parse(content, _AS_PAIRS)
        except ValueError as error:
            findings.add("malformed", f"is not JSON: {_reason(error)}", (file, line))
            continue
        if _is_object(line, value, file, findings):
            yield line, value


def _json_objects(text: io.TextIOWrapper, file: str, findings: Findings) -> Iterator[_Object]:
    try:
        values = _parse(text.read(), _AS_PAIRS)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        findings.add("malformed", f"is not JSON: {_reason(error)}", (file, line))
        return
    if isinstance(values, tuple) and values and all(map(_is_rows, dict(values).values())):
        values = [(*one, (LIST_NAME, name)) for name, rows in values for one in rows]
    if not isinstance(values, list):
        found = "an object" if isinstance(values, tuple) else type(values).__name__
        allowed = f"a list, or several by name: the name is then the column {LIST_NAME}"
        message = f"must hold a list of objects, holds {found}"
        findings.add("malformed", message, (file, None), allowed=allowed)
        return
    for number, value in enumerate(values, start=1):
        if _is_object(number, value, file, findings):
            yield number, value


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and {tuple}.issuperset(map(type, value))


def _is_object(line: int, value: Any, file: str, findings: Findings) -> bool:
    if isinstance(value, tuple):
        return True
    findings.add("malformed", "must hold an object", (file, line), found=str(value))
    return False


def _parse(text: str, decoder: JSONDecoder) -> Any:
    """The value that `text` holds. Raises ValueError where it holds none."""
    try:
        if text and not text[0].isspace():  # then this is quicker than `decode`
            value, end = decoder.raw_decode(text)
            if text[end:] in _LINE_ENDS:
                return value
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _read_dict(text: str) -> Any:
    """Like `_parse`; three times as fast for an object of texts only."""
    with suppress(ValueError):
        value = from_json(text, cache_strings="keys")
        if isinstance(value, dict) and set(map(type, value.values())) == _TEXTS:
            return value
    return _parse(text, _AS_DICTS)


def _reason(error: ValueError) -> str:
    return str(getattr(error, "msg", error))
