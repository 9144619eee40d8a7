"""Conversations in a cell: a list of {role, content}, of which one or more turns are judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from judgebench.data.cells import Cell, Fault, has_forbidden, is_blank, nested
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
