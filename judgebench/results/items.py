"""Every item of a study with what annotators and judges say of it, to be browsed in a page.

A label is one sign of a text that has a sign for each item, so that 20,000 items by six people are
120 kB: the label's place among those of its metric, from `0` on, or one of NO_LABEL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgebench.records import TRAINED_ON
from judgebench.words import printable

# What a stretch of text is: plain, deleted or inserted; or the heading of what follows it, which is
# a turn of a conversation or a column beside others.
Mark = Literal["", "del", "ins", "turn", "column"]
HEADINGS: tuple[Mark, ...] = ("turn", "column")
Passage = str | Sequence[tuple[Mark, str]]
Texts = tuple[tuple[str, Passage], ...]  # under headings
# Signs of what is no label, and the words for them. All stand before `0` in ASCII.
NO_LABEL: Mapping[str, str] = {
    " ": "", "!": "unparsed", "#": "refused", "$": "failed", "%": "skipped", "*": "no label",
    "-": "not judged", ".": TRAINED_ON, "/": "",
}  # fmt: skip
NOT_LABELLED, NOT_ABOUT = " ", "/"
SIGNS: Mapping[str, str] = {words: sign for sign, words in NO_LABEL.items() if words}
_FIRST = ord("0")


def sign(place: int) -> str:
    """The sign of the label in that place; of none where the place is negative.

    >>> sign(0), sign(2), sign(-1)
    ('0', '2', ' ')
    """
    return chr(_FIRST + place) if place >= 0 else NOT_LABELLED


@dataclass(frozen=True, slots=True)
class Said:
    """The labels of one metric: a sign for each item in `reference` and in the text of each
    annotator and each judge. `severities` of the labels are empty where these have no order."""

    title: str
    labels: Sequence[str]
    severities: Sequence[float]
    reference: str
    annotators: Mapping[str, str]
    judges: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Items:
    """All items: their ids, the system that answered each, what was said by metric, and of each the
    texts that are shown and those that are folded."""

    ids: Sequence[str]
    systems: Sequence[str]
    said: Sequence[Said]
    texts: Iterable[tuple[Texts, Texts]]

    def data(self) -> dict[str, Any]:
        """The data of a page, for JSON. A text that occurs several times stands there once."""
        places: dict[str, int] = {}

        def place(text: str) -> int:
            return places.setdefault(text, len(places))

        def passage(text: Passage) -> Any:
            if isinstance(text, str):
                return place(text)
            shown = ((mark, printable(x) if mark in HEADINGS else x) for mark, x in text)
            return [[mark, place(part)] for mark, part in shown]

        def texts(named: Texts) -> list[Any]:
            return [[place(printable(heading)), passage(text)] for heading, text in named]

        of_items = [(texts(shown), texts(folded)) for shown, folded in self.texts]
        return {
            "ids": self.ids, "systems": [place(printable(system)) for system in self.systems],
            "noLabel": NO_LABEL, "metrics": [*map(_metric, self.said)],
            "texts": [shown for shown, _ in of_items], "strings": list(places),
            "folded": {i: folded for i, (_, folded) in enumerate(of_items) if folded},
        }  # fmt: skip


def _metric(said: Said) -> dict[str, Any]:
    return {
        "title": said.title, "labels": [*said.labels], "severities": [*said.severities],
        "reference": _short(said.reference), "annotators": _by_name(said.annotators),
        "judges": _by_name(said.judges),
    }  # fmt: skip


def _by_name(signs: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, _short(text)) for name, text in signs.items()]


def _short(signs: str) -> str:
    """The signs with long runs of missing labels as their number: `2(30)1`."""
    return re.sub(r" {6,}", lambda run: f"({len(run[0])})", signs)
