"""The screen that an annotator sees at once: texts, and what is asked about them. Blind: a screen
knows no system, no id of the data and nobody's labels."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field as Limits
from pydantic import SerializerFunctionWrapHandler, TypeAdapter, ValidationError, model_serializer

from judgebench.people.markdown import markdown_tree
from judgebench.records import content_hash
from judgebench.rubric import BETWEEN
from judgebench.yaml_file import Strict

LETTERS = string.ascii_uppercase
WHOLE, SKIP = "", "skip"  # the field and the label of a screen that is skipped
PART = "part"  # the field that says how many parts were shown to the end
CANNOT_TELL = ""
# Before the key of a field: the field of the words that are the reason for its label, as a JSON
# list of [section, start, end], counted in characters from 0.
SPANS = "spans "
_SPANS = TypeAdapter(tuple[tuple[int, int, int], ...])

Labels = Mapping[str, str | None]  # by field; None where a label was taken back
State = Literal["new", "begun", "skipped", "done"]


class Wanted(Strict):
    """The items that the lead looks for: the one `screen`, those of `annotator`, in that `state`,
    with that `label` on the `metric` (`""`: cannot tell), on which people `differ`, whose texts
    hold `text`. What is empty, or None, does not matter. At most `most` of them are shown."""

    screen: str = ""
    state: State | Literal[""] = ""
    annotator: str = ""
    metric: str = ""
    label: str | None = None
    differ: bool = False
    text: str = ""
    most: int = Limits(default=50, ge=1, le=1000)


class Section(Strict):
    """A text under its heading. `slot` counts texts that are compared, in an order that says
    nothing; each annotator sees them in another order, under letters."""

    heading: str
    text: str
    slot: int | None = None
    part: int = 0


class Option(Strict):
    """A label that may be given: `value` is stored, `text` is shown."""

    value: str
    text: str
    about: str = ""


class Field(Strict):
    """One thing that is asked. Without options it is answered in words.

    `metric` is what figures are grouped by, least severe option first where `ordinal`; `about`
    tells apart the fields of one metric. `when` names another field and its label: only then is
    this one asked. Where `prefers`, the first two options are for the texts in slots 0 and 1. Of
    the first `together` options several may be given, with ` | ` between them.
    """

    metric: str
    title: str
    question: str
    options: tuple[Option, ...] = ()
    ordinal: bool = False
    slot: int | None = None
    part: int = 0
    about: str = ""
    required: bool = True
    when: tuple[str, str] | None = None
    prefers: bool = False
    together: int = 0

    @model_serializer(mode="wrap")
    def _as_before(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # So that the hash of a screen is what it was before several could be given together.
        return {k: v for k, v in plain(self).items() if v or k != "together"}

    @property
    def key(self) -> str:
        """Its name on the screen."""
        return f"{self.metric}@{self.about}" if self.about else self.metric

    @property
    def values(self) -> tuple[str, ...]:
        """The labels that may be given."""
        return tuple(option.value for option in self.options)

    def given_in(self, label: str | None) -> list[str]:
        """The labels that were given as one, in the order of giving."""
        if label is None:
            return []
        return label.split(BETWEEN) if self.together else [label]

    def admits(self, label: str) -> bool:
        """True where the label is among the options, or each of several once."""
        given = self.given_in(label)
        several = {*given} <= {*self.values[: self.together]} and len({*given}) == len(given)
        return several or label in self.values


class Screen(Strict):
    """Texts and what is asked about them. A second part is shown once the first is complete, which
    can then no longer be changed. `group` says which screens belong together (a question)."""

    id: str
    group: str
    sections: tuple[Section, ...]
    fields: tuple[Field, ...]

    @cached_property
    def hash(self) -> str:
        """Changes with anything that the annotator reads."""
        return content_hash([self._texts, [f.model_dump(mode="json") for f in self.fields]])

    def field_hash(self, key: str) -> str:
        """Changes with the texts and with what this field asks; a field of another metric may come
        or go. Empty for a field that is not there; the whole screen is a field too."""
        if key in (WHOLE, PART):
            return self.hash
        field = self.field(key.removeprefix(SPANS))
        return content_hash([self._texts, field.model_dump(mode="json")]) if field else ""

    @cached_property
    def _texts(self) -> list[Any]:
        return [section.model_dump(mode="json") for section in self.sections]

    def field(self, key: str) -> Field | None:
        """The field of that key."""
        return next((field for field in self.fields if field.key == key), None)

    @property
    def parts(self) -> int:
        """The number of parts that are shown one after the other."""
        return 1 + max(*(s.part for s in self.sections), *(f.part for f in self.fields))

    def asked(self, labels: Labels, part: int | None = None) -> list[Field]:
        """The fields that are asked, given the labels so far; of one part or of all."""
        return [
            field
            for field in self.fields
            if part in (None, field.part)
            and (field.when is None or labels.get(field.when[0]) == field.when[1])
        ]

    def complete(self, labels: Labels, part: int | None = None) -> bool:
        """True where everything that must be answered is."""
        asked = self.asked(labels, part)
        return all(labels.get(f.key) is not None for f in asked if f.required)

    def revealed(self, labels: Labels) -> int:
        """The last part that may be shown."""
        return min(int(labels.get(PART) or 0), self.parts - 1)

    def state(self, labels: Labels) -> State:
        """The state of an annotator's work on it."""
        if self.revealed(labels) == self.parts - 1 and self.complete(labels):
            return "done"
        if labels.get(WHOLE) == SKIP:
            return "skipped"
        return "begun" if any(label is not None for label in labels.values()) else "new"

    def shown_to(self, annotator: str, seed: int, revealed: int = 0) -> dict[str, Any]:
        """The screen as JSON for one annotator, up to the part that is `revealed`.

        Texts that are compared stand in an order of the annotator's own, unless a second part may
        speak of the first one. The labels that come back do not depend on it.
        """
        order = sorted({s.slot for s in self.sections if s.slot is not None})
        if self.parts == 1:
            random.Random(content_hash([seed, annotator, self.id])).shuffle(order)
        letter = {slot: LETTERS[place] for place, slot in enumerate(order)}
        by_slot = {s.slot: s for s in self.sections if s.slot is not None}
        turn = (by_slot[slot] for slot in order)  # they change places among themselves
        sections = [s if s.slot is None else next(turn) for s in self.sections]
        fields = [f for f in self.fields if f.part <= revealed]
        fields.sort(key=lambda f: (f.part, letter.get(f.slot, "") if f.slot is not None else ""))
        return {
            "id": self.id,
            "parts": self.parts,
            "revealed": revealed,
            "sections": [
                {
                    "n": self.sections.index(s),
                    "heading": s.heading if s.slot is None else f"{s.heading} {letter[s.slot]}",
                    "text": s.text,
                    "tree": markdown_tree(s.text),
                    "compared": s.slot is not None,
                    "part": s.part,
                }
                for s in sections
                if s.part <= revealed
            ],
            "fields": [_shown_field(field, letter) for field in fields],
        }


def spans_in(screen: Screen, said: str | None) -> list[dict[str, Any]]:
    """The words that are marked: `section`, its `heading`, `start`, `end` and `text`. Empty where
    anything is no part of a text."""
    try:
        spans = _SPANS.validate_json(said or "[]", strict=True)
    except ValidationError:
        return []
    texts = [(s.heading, s.text) for s in screen.sections]
    if not all(0 <= n < len(texts) and 0 <= a < b <= len(texts[n][1]) for n, a, b in spans):
        return []
    return [
        {"section": n, "heading": texts[n][0], "start": a, "end": b, "text": texts[n][1][a:b]}
        for n, a, b in spans
    ]


def _shown_field(field: Field, letter: Mapping[int, str]) -> dict[str, Any]:
    options = [option.model_dump() for option in field.options]
    if field.prefers:
        for slot in (0, 1):
            options[slot]["text"] = f"{letter[slot]} is better"
        options[:2] = sorted(options[:2], key=lambda option: str(option["text"]))
    return {
        "key": field.key,
        "title": field.title if field.slot is None else f"{letter[field.slot]}: {field.title}",
        "question": field.question,
        "options": options,
        "part": field.part,
        "required": field.required,
        "when": field.when,
        "together": field.together,
    }
