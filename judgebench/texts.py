"""Sentences and passages of a text, found by rule."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from itertools import chain

_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs|ms|prof|st|spp?|subsp|u\.s|a\.m|p\.m)"
    r"|\b[A-Z])\.$",
    re.IGNORECASE,
)
_LONGEST = 10  # characters before the full stop, so that where a word begins can be seen
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, a bullet or a heading, at text[start:end]."""

    start: int
    end: int
    text: str


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text in order, without the white space around them."""
    found, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        last = text[max(start, match.start() - _LONGEST) : match.start() + 1]
        if match.group()[0] == "." and _ABBREVIATION.search(last):
            continue
        found.append(_trimmed(text, start, match.end()))
        start = match.end()
    found.append(_trimmed(text, start, len(text)))
    return [sentence for sentence in found if sentence.text]


def _trimmed(text: str, start: int, end: int) -> Sentence:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    part = part.strip()
    return Sentence(start, start + len(part), part)


def passages_of(text: str, characters: int = 300) -> list[str]:
    """`text` cut into passages of at most so many characters, white space folded.

    A cut falls between sentences; within a sentence only where it is too long, then between
    words; within a word only where that is too long.
    """
    whole = [" ".join(sentence.text.split()) for sentence in sentences(text)]
    parts = chain.from_iterable(
        textwrap.wrap(sentence, characters, break_on_hyphens=False) for sentence in whole
    )
    passages: list[str] = []
    for part in parts:
        if passages and len(passages[-1]) + 1 + len(part) <= characters:
            passages[-1] += f" {part}"
        else:
            passages.append(part)
    return passages
