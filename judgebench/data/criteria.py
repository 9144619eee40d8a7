"""Criteria that an item brings: in a cell, as a list of {id, text, points, tags}."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

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
from judgebench.records import Answer, Part

_MOST = 200  # criteria of an item


class Criterion(NamedTuple):
    """What a text is checked by. `points` are a number, `tags` stand between `|`."""

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
            message = f"two criteria of {shorten(item_id)} have this id"
            repeated.append(Fault(message, f"{where}.id", criterion.id))
    if len(found) > _MOST:
        message = f"{shorten(item_id)} has more than {_MOST} criteria"
        faults.append(Fault(message, f"[{_MOST}].id"))
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
        allowed = "a number other than 0, below 0 for what should not be"
        faults.append(Fault("is no number of points", "points", texts["points"], allowed))
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
