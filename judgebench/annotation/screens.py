"""What an annotator sees of one item: its texts, what is asked about them, and how far they are."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from pydantic import Field as Limits

from judgebench.files import StrictModel
from judgebench.people.markdown import markdown_tree
from judgebench.records import content_hash
from judgebench.rubric import BETWEEN

LETTERS = string.ascii_uppercase
WHOLE, SKIP = "", "skip"  # the field and the label of a screen that is skipped
MARK, MARKED = (
    "come back",
    "yes",
)  # of one that the annotator is unsure of; no metric's id has a space
CANNOT_TELL = ""

Labels = Mapping[str, str | None]  # by field; None where a label was taken back
State = Literal["new", "begun", "skipped", "done"]
# The labels of `main` are the study's; screens of the other rounds are for everybody.
Round = Literal["main", "calibration", "anchor"]


class Section(StrictModel):
    """A text under its heading. `slot` counts texts that are compared, in an order that says
    nothing; each annotator sees them in another order, under letters."""

    heading: str
    text: str
    slot: int | None = None


class Option(StrictModel):
    """A label that may be given: `value` is stored, `text` is shown."""

    value: str
    text: str
    about: str = ""


class ScreenField(StrictModel):
    """One thing that is asked.

    `metric` is what figures are grouped by; `about` tells apart the fields of one metric. Where
    `prefers`, the first two options are for the texts in slots 0 and 1. Of the first `together`
    options several may be given, with ` | ` between them.
    """

    metric: str
    title: str
    question: str
    options: tuple[Option, ...] = Limits(min_length=1)
    slot: int | None = None
    about: str = ""
    prefers: bool = False
    together: int = 0

    @property
    def key(self) -> str:
        """Its name on the screen."""
        return f"{self.metric}@{self.about}" if self.about else self.metric

    def labels_in(self, label: str | None) -> list[str]:
        """The labels that were given as one, in the order of giving."""
        if label is None:
            return []
        return label.split(BETWEEN) if self.together else [label]

    def is_same(self, label: str, other: str) -> bool:
        """True where both are the same label, or the same labels in any order."""
        return sorted(self.labels_in(label)) == sorted(self.labels_in(other))

    def admits(self, label: str) -> bool:
        """True where the label is among the options, or each of several once."""
        values = [option.value for option in self.options]
        labels = self.labels_in(label)
        is_set = {*labels} <= {*values[: self.together]} and len({*labels}) == len(labels)
        return is_set or label in values


class Screen(StrictModel):
    """Texts and what is asked about them. `group` says which screens belong together: those of a
    question."""

    id: str
    group: str
    round: Round = "main"
    sections: tuple[Section, ...]
    fields: tuple[ScreenField, ...] = Limits(min_length=1)

    @cached_property
    def hash(self) -> str:
        """Changes with anything that the annotator reads."""
        return content_hash(self.model_dump(mode="json", include={"sections", "fields"}))

    @cached_property
    def field_hashes(self) -> dict[str, str]:
        """What changes with the texts and with what a field asks, by field: one of another metric
        may come or go. The whole screen is a field too."""
        texts = [section.model_dump(mode="json") for section in self.sections]
        hashes = {f.key: content_hash([texts, f.model_dump(mode="json")]) for f in self.fields}
        return {**dict.fromkeys((WHOLE, MARK), self.hash), **hashes}

    def field(self, key: str) -> ScreenField | None:
        """The field of that key."""
        return next((field for field in self.fields if field.key == key), None)

    def state(self, labels: Labels) -> State:
        """The state of an annotator's work on it."""
        if all(labels.get(field.key) is not None for field in self.fields):
            return "done"
        if labels.get(WHOLE) == SKIP:
            return "skipped"
        return "begun" if any(label is not None for label in labels.values()) else "new"

    def slots_for(self, annotator: str, seed: int) -> list[int]:
        """The slots of texts that are compared, in the order in which an annotator sees them."""
        slots = sorted({s.slot for s in self.sections if s.slot is not None})
        random.Random(content_hash([seed, annotator, self.id])).shuffle(slots)
        return slots

    def shown_to(self, annotator: str, seed: int) -> dict[str, Any]:
        """The screen as JSON for one annotator, with texts that are compared in an order of their
        own. The labels that come back do not depend on it."""
        slots = self.slots_for(annotator, seed)
        letters: dict[int | None, str] = {None: "", **dict(zip(slots, LETTERS, strict=False))}
        compared = {section.slot: section for section in self.sections}
        following = (compared[slot] for slot in slots)  # they change places among themselves
        sections = [s if s.slot is None else next(following) for s in self.sections]
        fields = sorted(self.fields, key=lambda field: letters[field.slot])
        return {
            "id": self.id,
            "sections": [_shown_section(section, letters) for section in sections],
            "fields": [_shown_field(field, letters) for field in fields],
        }


def _shown_section(section: Section, letters: Mapping[int | None, str]) -> dict[str, Any]:
    return {
        "heading": f"{section.heading} {letters[section.slot]}".rstrip(),
        "text": section.text,
        "tree": markdown_tree(section.text),
        "compared": section.slot is not None,
    }


def _shown_field(field: ScreenField, letters: Mapping[int | None, str]) -> dict[str, Any]:
    options = [option.model_dump() for option in field.options]
    if field.prefers:
        for slot in (0, 1):
            letter = letters[slot]
            options[slot] |= {"text": f"{letter} is better", "letter": letter}
        options[:2] = sorted(options[:2], key=lambda option: str(option["text"]))
    letter = letters[field.slot]
    return {
        "key": field.key,
        "title": f"{letter}: {field.title}" if letter else field.title,
        "question": field.question,
        "options": options,
        "together": field.together,
    }
