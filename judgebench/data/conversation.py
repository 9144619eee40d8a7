"""Cells that hold more than a text: conversations, of which turns are judged, and criteria."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from judgebench.data.cells import (
    Cell,
    Fault,
    has_forbidden,
    is_blank,
    nested,
    number_in,
    scalar_text,
    split_list,
)
from judgebench.errors import shorten
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
        return Fault(
            "is no content",
            f"{where}.content",
            str(content),
            "a text, or a list of {type: text, text}",
        )
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
    """Yield what is judged of a conversation: its last turn of the assistant, every one, or the
    whole.

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


class Criterion(NamedTuple):
    """A criterion that a text is checked by. `points` are a number, `tags` stand between `|`."""

    id: str
    text: str
    points: str
    tags: str


def criteria_of(cell: Cell, item_id: str = "") -> tuple[list[Criterion], list[Fault]]:
    """The criteria of the item that a cell holds, and everything that is wrong with them.

    One may be its text alone. Without an id it has the number of its place, from 1.
    """
    try:
        value = nested(cell) or []
    except ValueError as error:
        return [], [Fault(str(error))]
    if not isinstance(value, list):
        return [], [Fault("is no list of criteria", allowed="a list of {id, text, points, tags}")]
    found: dict[str, Criterion] = {}
    faults, repeated = [], []
    for number, one in enumerate(value):
        criterion = _criterion(one, number)
        if isinstance(criterion, Fault):
            faults.append(criterion)
        elif found.setdefault(criterion.id, criterion) is not criterion:
            message = f"two criteria of {shorten(item_id)} have this id"
            repeated.append(Fault(message, f"[{number}].id", criterion.id))
    return list(found.values()), faults + repeated


def _criterion(value: Any, number: int) -> Criterion | Fault:
    """The criterion of a value, or what is wrong with it first. Without points it has one."""
    where, value = f"[{number}]", {"text": value} if isinstance(value, str) else value
    if not isinstance(value, dict):
        return Fault("is no criterion", where, str(value), "{id, text, points, tags}")
    stated = {key: one for key, one in value.items() if one not in (None, "")}
    named = {"id": number + 1, "points": 1, "text": stated.get("criterion", ""), **stated}
    texts = {}
    for key in ("id", "text", "points"):
        try:
            text = texts[key] = scalar_text(named[key]).strip()
        except ValueError as error:
            return Fault(str(error), f"{where}.{key}")
        if has_forbidden(text):
            message = "holds a character that is not allowed in a text"
            return Fault(message, f"{where}.{key}", text)
        if is_blank(text):
            return Fault(f"the criterion has no {key}", f"{where}.{key}")
    points = number_in(texts["points"])
    if not math.isfinite(points) or points == 0:
        allowed = "a number other than 0, below 0 for what should not be"
        return Fault("is no number of points", f"{where}.points", texts["points"], allowed)
    try:
        tags = _tags(stated.get("tags", ()))
    except ValueError:
        return Fault("is no list of tags", f"{where}.tags", str(stated["tags"]))
    return Criterion(texts["id"], texts["text"], repr(points).removesuffix(".0"), tags)


def _tags(value: Any) -> str:
    """The tags of a list as one text. Raises ValueError where it is none."""
    listed = split_list(value) if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise ValueError
    return "|".join(filter(None, (scalar_text(one).strip() for one in listed)))


def criterion_row(answer: Answer, one: Criterion) -> Answer:
    """The row on which the criterion of the answer is labelled."""
    return replace(
        answer,
        item_id=f"{answer.item_id}#{one.id}",
        metadata={**answer.metadata, "points": one.points, "tags": one.tags},
        parts=(*answer.parts, Part("criterion", one.text, one.id, answer.item_id)),
    )
