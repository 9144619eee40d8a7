"""Labels as they stand in a JSON object: where, and in which letters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_SPACE = re.compile(r"[ \t\n\r]*")
_ENDED = re.compile(rb'"[ \t\n\r]*(?:[,}].*)?', re.DOTALL)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Value:
    """Where a key's value begins in a text, in characters, and what it is."""

    start: int
    of: object


def values(text: str) -> dict[str, Value | None] | None:
    """The values of a JSON object by key, None for a key that comes twice; None for any other
    text."""
    found: dict[str, Value | None] = {}
    try:
        for key, place in _members(text):
            found[key] = None if key in found else place
    except (ValueError, IndexError, RecursionError):
        return None
    return found


def _members(text: str) -> Iterator[tuple[str, Value]]:
    """Key and value of each member of a JSON object. Raises ValueError or IndexError for text
    that is none."""
    at = _expect(text, 0, "{")
    if text[at] == "}":
        at = _after_space(text, at + 1)
    while at < len(text):
        key, at = _DECODER.raw_decode(text, at)
        at = _expect(text, at, ":")
        value, end = _DECODER.raw_decode(text, at)
        if not isinstance(key, str):
            raise ValueError("a key is no string")
        yield key, Value(at, value)
        end = _after_space(text, end)
        if text[end] == "}":
            if _after_space(text, end + 1) != len(text):
                raise ValueError("text behind the object")
            return
        at = _expect(text, end, ",")


def _expect(text: str, at: int, mark: str) -> int:
    """The place behind a mark and the space around it."""
    at = _after_space(text, at)
    if text[at] != mark:
        raise ValueError(f"no {mark} at {at}")
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def begins(value: bytes, option: str) -> bool:
    """Whether `value` begins the JSON string of `option`, or is all of it and what may follow."""
    if value[:1] != b'"':
        return False
    at = 1
    for char in option:
        if at >= len(value):
            return True
        form = next((form for form in _forms(char) if value.startswith(form, at)), None)
        if form is None:
            return any(form.startswith(value[at:]) for form in _forms(char))
        at += len(form)
    return at >= len(value) or _ENDED.fullmatch(value, at) is not None


@lru_cache(maxsize=4096)
def _forms(char: str) -> tuple[bytes, ...]:
    """The ways to write a character in a JSON string (RFC 8259, section 7). None of them begins
    another, so the first that fits is the one."""
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    forms = [escaped, re.sub("[a-f]", lambda hex_: hex_[0].upper(), escaped)]
    if char in _SHORT:
        forms.append("\\" + _SHORT[char])
    if char not in '"\\' and char >= " ":
        forms.append(char)
    return tuple(map(as_bytes, forms))


_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def grammar(rests: Sequence[str]) -> str:
    """One of the rests of labels, each with its closing quote, and what may stand behind it in an
    object: in the notation that llama.cpp and xgrammar share."""
    labels = " | ".join(map(_literal, rests))
    return f'root ::= ({labels}) ws ("," [^\\x00]* | "}}" ws)\nws ::= [ \\t\\n]*'


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def as_bytes(text: str) -> bytes:
    """UTF-8, also of half a surrogate pair, which JSON can hold."""
    return text.encode("utf-8", "surrogatepass")
