"""JSON objects as rows under the union of their keys; numbers stay texts.

Paths into nested values, such as `doc.question` and `messages[-1].content`.

Conversations in a cell: a list of {role, content}, of which one or more turns are judged.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from json import JSONDecoder
from typing import Any, Literal

from pydantic_core import from_json

from judgebench.data.cells import (
    Cell,
    Fault,
    Nested,
    RawRow,
    has_forbidden,
    is_blank,
    nested,
    scalar_text,
)
from judgebench.data.findings import Findings
from judgebench.records import Answer, Part, in_words

Judged = Literal["last", "every", "whole"]
ROLES = ("system", "developer", "user", "assistant", "tool")


def turns_of(cell: Cell) -> tuple[list[Part], list[Fault]]:
    """The turns that a cell holds, and everything that is wrong with them."""
    try:
        value = nested(cell)
    except ValueError as error:
        return [], [Fault(str(error))]
    if not value:
        return [], [Fault("the conversation is empty", allowed="a list of {role, content}")]
    if not isinstance(value, list):
        return [], [Fault("is no list of turns", allowed="a list of {role, content}")]
    found = [_turn(one, f"[{number}]") for number, one in enumerate(value)]
    turns = [one for one in found if isinstance(one, Part)]
    return turns, [one for one in found if isinstance(one, Fault)]


def _turn(one: Any, where: str) -> Part | Fault:
    if not isinstance(one, dict):
        return Fault("is no turn", where, str(one), "{role, content}")
    role, content = one.get("role"), one.get("content")
    if role not in ROLES:
        return Fault("is no role", f"{where}.role", str(role or ""), ", ".join(ROLES))
    text = text_of(content)
    if text is None:
        allowed = "a text, or a list of {type: text, text}"
        return Fault("is no content", f"{where}.content", str(content), allowed)
    if has_forbidden(text):
        return Fault("holds a character that is not allowed in a text", f"{where}.content", text)
    return Part(role, "\n".join(filter(None, (text, *_calls(one.get("tool_calls"))))))


def text_of(content: Any) -> str | None:
    """The text of a turn's content, which may be in pieces; of an image and the like its kind in
    brackets. None where it is no content."""
    if content is None or isinstance(content, str):  # None where a tool is called
        return content or ""
    pieces = []
    for piece in content if isinstance(content, list) else [None]:
        about = piece if isinstance(piece, dict) else {"text": piece}
        text = about["text"] if "text" in about else f"[{about.get('type')}]"
        if not isinstance(text, str):
            return None
        pieces.append(text)
    return "\n".join(pieces)


def _calls(value: Any) -> Iterator[str]:
    """The tools that an assistant calls, as a text."""
    for call in value if isinstance(value, list) else ():
        of = call.get("function") if isinstance(call, dict) else None
        if isinstance(of, dict):
            yield f"[calls {of.get('name')}({of.get('arguments') or ''})]"


def judged(answer: Answer, turns: Sequence[Part], how: Judged) -> Iterator[Answer]:
    """What is judged of a conversation: its last turn of the assistant, every one, or the whole.

    Of a turn the question is the conversation before it. All rows of conversations that begin with
    the same turns, up to the first of the assistant, are one group, unless `answer` names another.
    Empty turns are passed over, except the very last. Some turn must be the assistant's.
    """
    of_assistant = [i for i, turn in enumerate(turns) if turn.role == "assistant"]
    places = [i for i in of_assistant if not is_blank(turns[i].text) or i == len(turns) - 1]
    places = places or of_assistant[-1:]
    group = answer.group
    if group in (answer.question, answer.item_id):  # by default
        group = in_words(turns[: of_assistant[0]]) or answer.item_id
    if how == "whole":
        yield replace(answer, text=in_words(turns), group=group, parts=tuple(turns))
        return
    for place in places if how == "every" else places[-1:]:
        yield replace(
            answer,
            item_id=f"{answer.item_id}@{place + 1}" if how == "every" else answer.item_id,
            text=turns[place].text,
            question=in_words(turns[:place]),
            group=group,
            parts=tuple(turns[:place]),
        )


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
    """What is there, else `missing`. An object is a dict, or the tuple of its pairs."""
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
    """The paths that are asked for, which of them lead anywhere, and where others would."""

    def __init__(self, asked: Iterable[str]) -> None:
        self._asked = {name: steps for name in asked if (steps := steps_of(name))}
        self._found: dict[str, Steps] = {}
        self._there: dict[str, None] = {}
        self._seen = 0

    def look(self, value: Any) -> None:
        """See which paths lead anywhere in an object."""
        if len(self._found) == len(self._asked):
            return
        for name, steps in self._asked.items():
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

    @property
    def there(self) -> list[str]:
        """Some paths that lead to single values."""
        return list(self._there)[:_NAMED]


def _inside(value: Any, path: str, depth: int) -> Iterator[str]:
    value = dict(value) if isinstance(value, tuple) else value
    if depth and isinstance(value, dict):
        for key, one in value.items():
            yield from _inside(one, f"{path}.{key}" if path else str(key), depth - 1)
    elif depth and isinstance(value, list) and value and isinstance(value[0], dict | tuple):
        yield from _inside(value[0], f"{path}[0]", depth - 1)
    elif path:
        yield path


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
