"""The roles that a column may have: exactly one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from judgebench.records import DECIDED_COLUMN, HUMAN_COLUMN

SAID = "said"  # why a column is what it is, where somebody says it
ROLES: Mapping[str, str] = {
    "item": "which answer a row is about; several columns together, also `item system`",
    "group": "which items share a question",
    "question": "what was asked",
    "text": "the answer",
    "system": "what gave the answer",
    "reference": "a right answer",
    "first": "the first of two responses that a row compares",
    "second": "the second of them",
    "criterion": "which criterion of the item the row is about",
    "messages": "a conversation, of which a turn is judged",
    "criteria": "what the item is to be checked by",
    "annotator": "who labelled",
    "annotators": "a list of who gave the `labels` of a row",
    "metric": "what the label is about",
    "label": "a label that a person gave: `label [METRIC] [by NAME]`",
    "labels": "a list of the labels of several people",
    "adjudicated": "a label that was settled on, of nobody",
    "judge": "whose verdict the row is",
    "verdict": "a judge's label: `verdict [METRIC] [by NAME]`",
    "reply": "a judge's whole reply, in which its label stands: `reply [by NAME]`",
    "raw": "the reply behind a verdict",
    "status": "how the judging of a row ended",
    "rationale": "the judge's reasons",
    "repeat": "which of a judge's draws the row is",
    "shown_first": "the response that the judge was shown first",
    "probability": "the judge's probability of a label: `probability METRIC=LABEL`",
    "kind": "whether people or a model gave the row's label",
    "blind": "whether the label was made without sight of a model's: `yes` or `no`",
    "kept": "stays with the item",
    "ignored": "not read",
}


@dataclass(frozen=True)
class Column:
    """What a column is. `metric` and `who` are empty where another column, or the file, says it.

    >>> str(Column.parse("label harm by Kim")), Column.parse("verdict by gpt-4").who
    ('label harm by Kim', 'gpt-4')
    """

    role: str
    metric: str = ""
    who: str = ""
    why: str = SAID

    @classmethod
    def parse(cls, text: str, why: str = SAID) -> Column:
        """The column of a role in words. Raises ValueError where it is none."""
        role, _, rest = text.strip().partition(" ")
        if role not in ROLES:
            raise ValueError(f"is no role of a column; roles: {', '.join(ROLES)}")
        metric, by, who = f" {rest.strip()} ".rpartition(" by ")
        metric, who = (metric, who) if by else (who, "")
        return cls(role, metric.strip(), who.strip(), why)

    def __str__(self) -> str:
        by = f" by {self.who}" if self.who else ""
        return " ".join(filter(None, (self.role, self.metric))) + by

    @property
    def in_words(self) -> str:
        """The content of the column, in words."""
        kind = re.split("[:;]", ROLES[self.role])[0]
        joint = ": " if self.role == "probability" else " on "
        about = f"{joint}{self.metric}" if self.metric else ""
        return f"{kind}{about} by {self.who}" if self.who else f"{kind}{about}"


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
    says none. What stands beside the verdicts in a report's verdicts.csv is not read.

    >>> role_of("Rater ID"), role_of("responses.worker_id"), role_of("Kim")
    ('annotator', 'annotator', '')
    """
    if name.startswith((HUMAN_COLUMN, DECIDED_COLUMN)):
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
