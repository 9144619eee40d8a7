"""The published list of what the names of columns say, and of words in cells. Data, not guesses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from judgebench.records import HUMAN_COLUMN

_FILE = Path(__file__).with_name("vocabulary.yaml")


@cache
def words(kind: str) -> frozenset[str]:
    """The words of a list that names no role, such as `people`."""
    return frozenset(_vocabulary()[kind].split())


@cache
def role_words() -> Mapping[str, tuple[str, ...]]:
    """The names of columns by the role that they say."""
    return {role: tuple(names.split()) for role, names in _vocabulary()["roles"].items()}


@cache
def _vocabulary() -> dict[str, Any]:
    vocabulary: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return vocabulary


@cache
def _role_by_name() -> Mapping[str, str]:
    return {name: role for role, names in role_words().items() for name in names}


@cache
def plain_name(name: str) -> str:
    """The words of a column's name in lower case, without accents, joined by `_`.

    >>> plain_name("traceId"), plain_name("Trace ID"), plain_name("Prüfer"), plain_name("#")
    ('trace_id', 'trace_id', 'prufer', 'nr')
    """
    if name.strip() == "#":
        return "nr"
    parted = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name))
    letters = "".join(c for c in parted if not unicodedata.combining(c)).casefold()
    return "_".join(re.findall(r"[^\W_]+", letters))


def last_word(name: str) -> str:
    """The last word of a column's name.

    >>> last_word("Previous label"), last_word("convId")
    ('label', 'id')
    """
    return plain_name(name).rpartition("_")[2]


def role_of(name: str) -> str:
    """The role that a column's name says, or the end of a path into nested values; empty where it
    says none. The human labels beside the verdicts of a report's verdicts.csv are not read.

    >>> role_of("Rater ID"), role_of("responses.worker_id"), role_of("Kim")
    ('annotator', 'annotator', '')
    """
    if name.startswith(HUMAN_COLUMN):
        return "ignored"
    path, _, end = name.rpartition(".")
    is_path = path and end[:1].strip() and plain_name(path) not in words("titles")
    whole = _role_by_name().get(plain_name(name), "")
    return whole or (_role_by_name().get(plain_name(end), "") if is_path else "")


def columns_by_role(columns: Iterable[str], roles: Iterable[str]) -> dict[str, str]:
    """The column of each of these roles, by the names of columns: that of the first word in the
    list.

    >>> columns_by_role(["id", "Answer", "Frage"], ["item", "text", "question", "system"])
    {'item': 'id', 'text': 'Answer', 'question': 'Frage'}
    """
    by_name = {plain_name(column): column for column in columns}
    named = {role: [by_name[w] for w in role_words()[role] if w in by_name] for role in roles}
    return {role: among[0] for role, among in named.items() if among}


def has_word(name: str, kind: str) -> bool:
    """True where a word of the name, with or without digits behind it, is in that list.

    >>> has_word("gpt4_label", "models"), has_word("1st reviewer", "people")
    (True, True)
    """
    parts = plain_name(name).split("_")
    return not words(kind).isdisjoint({w for p in parts for w in (p, p.rstrip("0123456789"))})


def is_model(name: str) -> bool:
    """True of a name with a word for one model, and not only for models.

    >>> is_model("gpt4_label"), is_model("judge vs final")
    (True, False)
    """
    models = words("models") - words("machine")
    return any(part.rstrip("0123456789") in models for part in plain_name(name).split("_"))


def is_person(name: str) -> bool:
    """True of `rater 1`, `Annotator B`, `Dr. Meyer` and `Expert`.

    >>> [is_person(name) for name in ("rater 1", "Dr. Meyer", "Expert", "Kim", "expert tone")]
    [True, True, True, False, False]
    """
    parts = plain_name(name).split("_")
    rest = [p for p in parts if p.rstrip("0123456789") not in words("people") and p != ""]
    marks = all(re.fullmatch(r"\d+(st|nd|rd|th)?|[a-z]", p) for p in rest)
    return has_word(name, "people") and (marks or has_word(name, "titles"))
