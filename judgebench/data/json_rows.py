"""JSON and JSON lines as columns. Objects inside of objects become columns, annotations rows.

Numbers stay texts: "3.0" stays "3.0".
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOBase
from itertools import chain
from json import JSONDecoder
from typing import Any

from judgebench.data.cells import RawTable, shared
from judgebench.data.findings import Findings
from judgebench.data.vocabulary import role_of
from judgebench.errors import Problem, SetupError

_MAX_LEVELS = 8  # of objects in objects that become columns
_MAX_CELLS, _MAX_BLANKS = 5_000_000, 20  # of a table; times those that hold something
_ANNOTATION_ROLES = {"annotator", "judge", "kind", "value"}
_MESSAGES = ({"role", "content"}, {"from", "value"})  # keys of a turn in a conversation
_SHAPES = "a list of objects, an object with one such list, or objects by id"


def read_json(text: TextIOBase, file: str, findings: Findings, *, is_lines: bool) -> RawTable:
    """The columns of all objects; faulty ones are reported. Raises SetupError where the whole is no
    table."""
    lines, objects = array("q"), list[dict[str, Any]]()
    for line, value in (_read_lines if is_lines else _read_document)(text, file, findings):
        if isinstance(value, dict):
            lines.append(line)
            objects.append(value)
        else:
            findings.add("malformed", "must hold an object", (file, line), found=str(value))
    return flat_table(values_by_key(objects, file).items(), lines, file)


def _to_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    # The same few keys in every object, and often the text of a row above.
    value = {
        sys.intern(key): shared(cell) if isinstance(cell, str) else cell for key, cell in pairs
    }
    if len(value) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"duplicate key {key!r}")
    return value


# Control characters spoil a cell, not the file: `strict` would refuse them.
_DECODER = JSONDecoder(
    object_pairs_hook=_to_object,
    parse_int=str,
    parse_float=str,
    parse_constant=str,
    strict=False,
)
_FAULTS = (ValueError, RecursionError)


def _read_lines(text: TextIOBase, file: str, findings: Findings) -> Iterator[tuple[int, Any]]:
    for line, found in enumerate(text, start=1):
        if content := found.strip():
            try:
                value = _DECODER.decode(content)
            except _FAULTS as error:
                _report(error, (file, line), findings)
            else:
                yield line, value


def _read_document(text: TextIOBase, file: str, findings: Findings) -> Iterable[tuple[int, Any]]:
    try:
        return enumerate(_entries(_DECODER.decode(text.read() or "[]"), file), start=1)
    except _FAULTS as error:
        if getattr(error, "msg", "") == "Extra data":  # one object on each line
            text.seek(0)
            return _read_lines(text, file, findings)
        _report(error, (file, getattr(error, "lineno", None)), findings)
        return ()


def _report(error: Exception, at: tuple[str, int | None], findings: Findings) -> None:
    deep = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    findings.add("malformed", f"is not JSON: {getattr(error, 'msg', deep)}", at)


def _entries(value: Any, file: str) -> Sequence[Any]:
    """The entries of a document that are rows. Raises SetupError where it has none."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists: list[list[Any]] = list(filter(_is_list_of_objects, value.values()))
        if len(lists) == 1:
            return lists[0]
        if value and all(isinstance(entry, dict) for entry in value.values()):
            name = "key" if any("id" in entry for entry in value.values()) else "id"
            return [{name: key, **entry} for key, entry in value.items()]
    shape = "an object" if isinstance(value, dict) else type(value).__name__
    raise SetupError(Problem("holds no rows", file, None, "", shape, _SHAPES))


def values_by_key(objects: Sequence[Mapping[str, Any]], file: str) -> dict[str, list[Any]]:
    """The values (rows,) of each key, None where an object lacks it.

    Raises SetupError where the objects share so few keys that a table of them is mostly blank.
    """
    keys = dict.fromkeys(chain.from_iterable(objects))
    n_cells, n_filled = len(objects) * len(keys), sum(map(len, objects))
    if n_cells > max(_MAX_CELLS, _MAX_BLANKS * n_filled):
        message = (
            f"its {len(objects):,} objects have {len(keys):,} different keys, too many for a table:"
            " give every object the same few keys, such as annotator, metric and label"
        )
        raise SetupError(Problem(message, file))
    return {key: [value.get(key) for value in objects] for key in keys}


def flat_table(
    columns: Iterable[tuple[str, Sequence[Any]]], lines: Sequence[int], file: str
) -> RawTable:
    """The table without objects where these can be columns or rows: a column `a.b` for the key b
    of the objects in a, a row for each annotation in a list. Other lists of objects stay."""

    def flatten(name: str, values: Sequence[Any], levels: int) -> Iterator[tuple[str, Any]]:
        types = set(map(type, values))
        if dict in types and levels:
            objects = [value if isinstance(value, dict) else {} for value in values]
            singles = [None if isinstance(value, dict) else value for value in values]
            parts = values_by_key(objects, file)
            if any(singles) or not parts:
                yield name, singles
            for key, inner in parts.items():
                yield from flatten(f"{name}.{key}", inner, levels - 1)
        elif list in types and levels and _has_single_objects(values):
            entries = [value[0] if value else None for value in values]
            yield from flatten(f"{name}[0]", entries, levels)
        else:
            yield name, values

    flat = [pair for name, values in columns for pair in flatten(name, values, _MAX_LEVELS)]
    name = _annotations_column(flat)
    if not name:
        return RawTable(flat, lines)
    lists = [entries or [None] for entries in dict(flat)[name]]  # a row without any stays a row
    rows = [row for row, entries in enumerate(lists) for _ in entries]
    long: list[tuple[str, Sequence[Any]]] = []
    for column, values in flat:
        if column == name:
            long += flatten(name, list(chain.from_iterable(lists)), _MAX_LEVELS)
        else:
            long.append((column, [values[row] for row in rows]))
    return RawTable(long, [lines[row] for row in rows])


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) for e in value)


def _object_lists(values: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The lists of objects in a column; none where it holds anything else but blanks, or the turns
    of conversations."""
    lists = [value for value in values if value]
    if not all(map(_is_list_of_objects, lists)):
        return []
    is_chat = any(turn <= entries[0].keys() for entries in lists for turn in _MESSAGES)
    return [] if is_chat else lists


def _has_single_objects(values: Sequence[Any]) -> bool:
    lists = _object_lists(values)
    return bool(lists) and max(map(len, lists)) == 1


def _annotations_column(columns: Iterable[tuple[str, Sequence[Any]]]) -> str:
    """The column whose lists hold annotations; of several the first that names annotators. Empty
    where there is none."""
    roles_by_column = {name: _roles_inside(values) for name, values in columns}
    likely = [name for name, roles in roles_by_column.items() if roles & _ANNOTATION_ROLES]
    if len(likely) > 1:
        likely = [name for name in likely if "annotator" in roles_by_column[name]]
    return likely[0] if likely else ""


def _roles_inside(values: Sequence[Any]) -> set[str]:
    """The roles that the keys of objects in lists say."""
    entries = chain.from_iterable(_object_lists(values))
    keys = {key for entry in entries for key in _keys(entry, _MAX_LEVELS)}
    return {role_of(key.rpartition(".")[2]) for key in keys}


def _keys(value: dict[str, Any], levels: int) -> Iterator[str]:
    for key, inner in value.items():
        yield str(key)
        if isinstance(inner, dict) and levels:
            yield from _keys(inner, levels - 1)
