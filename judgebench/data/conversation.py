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


_MOST = 200  # criteria of an item


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
        where, one = f"[{number}]", {"text": one} if isinstance(one, str) else one
        if not isinstance(one, dict):
            faults.append(Fault("is no criterion", where, str(one), "{id, text, points, tags}"))
            continue
        named = {"id": str(number + 1), **{k: v for k, v in one.items() if v is not None}}
        criterion, wrong = _criterion(named)
        faults += [fault._replace(where=f"{where}.{fault.where}") for fault in wrong]
        if not wrong and found.setdefault(criterion.id, criterion) is not criterion:
            repeated.append(
                Fault(
                    f"two criteria of {shorten(item_id)} have this id", f"{where}.id", criterion.id
                )
            )
    if len(found) > _MOST:
        faults.append(Fault(f"{shorten(item_id)} has more than {_MOST} criteria", f"[{_MOST}].id"))
    return list(found.values()), faults + repeated


def _criterion(named: dict[str, Any]) -> tuple[Criterion, list[Fault]]:
    """The criterion of these values, and what is wrong with it. Without points it has one."""
    faults, texts = [], {}
    named["text"] = named.get("text", named.get("criterion", ""))
    for key in ("id", "text", "points"):
        try:
            texts[key] = scalar_text(named.get(key)).strip()
        except ValueError as error:
            faults.append(Fault(str(error), key))
            texts[key] = "1"
        if has_forbidden(texts[key]):
            faults.append(Fault("holds a character that is not allowed in a text", key, texts[key]))
    for key in ("id", "text"):
        if is_blank(texts[key]):
            faults.append(Fault(f"the criterion has no {key}", key))
    value = number_in(texts["points"] or "1")
    if not math.isfinite(value) or value == 0:
        faults.append(
            Fault(
                "is no number of points",
                "points",
                texts["points"],
                "a number other than 0, below 0 for what should not be",
            )
        )
    points = str(int(value)) if value.is_integer() else repr(value)
    tags, wrong = _tags(named.get("tags"))
    return Criterion(texts["id"], texts["text"], points, tags), [*faults, *wrong]


def _tags(value: Any) -> tuple[str, list[Fault]]:
    try:
        listed = split_list(value) if isinstance(value, str) else value or ()
        if not isinstance(listed, list | tuple):
            raise ValueError
        texts = [scalar_text(one).strip() for one in listed]
    except ValueError:
        return "", [Fault("is no list of tags", "tags", str(value))]
    if bad := next((text for text in texts if "|" in text or has_forbidden(text)), None):
        return "", [Fault("is no tag", "tags", bad, "a text without |")]
    return "|".join(filter(None, texts)), []


def criterion_row(answer: Answer, one: Criterion) -> Answer:
    """The row on which the criterion of the answer is labelled."""
    return replace(
        answer,
        item_id=f"{answer.item_id}#{one.id}",
        metadata={**answer.metadata, "points": one.points, "tags": one.tags},
        parts=(*answer.parts, Part("criterion", one.text, one.id, answer.item_id)),
    )
