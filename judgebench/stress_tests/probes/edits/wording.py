"""Other words, or fewer, that say the same: neutral synonyms, and a redundant sentence dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from judgebench.records import Answer
from judgebench.shipped import find_file
from judgebench.stress_tests.probes.altered import Edit, Edited, Nothing
from judgebench.stress_tests.probes.text import (
    content_words,
    facts,
    mentions,
    negations,
    statements,
    words,
)
from judgebench.stress_tests.probes.words import word_names
from judgebench.texts import Sentence, sentences
from judgebench.yaml_file import Strict, load_model

_MOST_REPLACED = 6
_VOWEL_SOUND = re.compile(r"(?!one|once|eu|uni|us[ei]|ut[ei])[aeiou]|hour|honest|heir")
_MOST_SENTENCES = 500  # of an answer, in which one may be redundant
_LEAST_WORDS = 3  # content words of a sentence that can be redundant
_NUMBER_MARK = re.compile(r"\d+[.)]")  # of a list; it would be left over
_COURTESY = re.compile(
    r"(?:i |we )?hope (?:this|that|it) (?:helps|is helpful|was helpful)"
    r"(?: you| to you| for you)?"
    r"|thank(?: you|s)(?: so much| very much)? for (?:asking|your question|reaching out)"
    r"|(?:please )?(?:feel free to ask|let (?:me|us) know)(?: me| us)?"
    r"(?: if you have)?(?: any)?(?: more| other| further)? questions"
    r"|(?:please )?feel free to ask",
    re.IGNORECASE,
)
_POINTER = re.compile(  # to another page, of which the text holds no more than the name
    r"top of page|more on: [^\n]+"
    r"|for (?:more|further|additional) (?:information|details)\b"
    r"(?!.*\b(?:doctor|physician|provider|professional|clinic|hospital|pharmacist|nurse)s?\b)"
    r"[^\n]*?,? (?:please )?(?:see|visit|view|read|go to) [^\n]+",
    re.IGNORECASE,
)
# What limits a claim, so that the same claim without it says more.
_LIMITS = frozenset(
    ("if", "when", "while", "until", "except", "only", "may", "might", "can", "could", "should",
     "must", "will", "would", "some", "many", "most", "all", "every", "few", "often", "usually",
     "sometimes", "rarely", "seldom", "generally", "always", "also", "more", "less", "before",
     "after", "or", "but")
)  # fmt: skip
# A sentence that begins so needs the one before it.
_REFERS_BACK = frozenset(
    ("it", "its", "they", "their", "these", "those", "this", "that", "such", "he", "she", "however",
     "therefore", "thus", "so", "then", "but", "also", "both", "otherwise", "instead", "and", "or")
)  # fmt: skip

Phrase = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z' ,-]*$")]


class Synonyms(Strict):
    """A word list of pairs, in lower case, that may be put for each other wherever they stand.

    A word or phrase stands in one pair only. `about` tells a reader how the list was made.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    version: Annotated[str, StringConstraints(min_length=1)]
    about: Annotated[str, StringConstraints(min_length=1)]
    pairs: tuple[tuple[Phrase, Phrase], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _neutral(self) -> Synonyms:
        listed = [phrase for pair in self.pairs for phrase in pair]
        twice = sorted({phrase for phrase in listed if listed.count(phrase) > 1})
        if twice:
            raise ValueError(f"stands in two pairs, or twice in one: {', '.join(twice)}")
        denies = [" / ".join(pair) for pair in self.pairs if facts(pair[0]) != facts(pair[1])]
        if denies:
            raise ValueError(f"one of the two denies something: {', '.join(denies)}")
        return self

    @property
    def other(self) -> Mapping[str, str]:
        """Every word or phrase -> what may stand in its place."""
        return {a: b for pair in self.pairs for a, b in (pair, pair[::-1])}


def load_synonyms(name: str | Path, relative_to: Path | None = None) -> Synonyms:
    """The list of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file("adversarial/words", str(name), ".yaml", relative_to)
    return load_model(path, Synonyms)


def reword(synonyms: Synonyms) -> Edit:
    """The edit that puts synonyms for up to six words or phrases, drawn from all that occur."""
    other = synonyms.other
    longest_first = sorted(other, key=len, reverse=True)
    phrases = "|".join(re.escape(p).replace(r"\ ", r"\s+") for p in longest_first)
    pattern = re.compile(rf"(?<![\w-])(?:(an?)(\s+))?({phrases})(?![\w-])", re.IGNORECASE)

    def edit(answer: Answer, random: Random) -> Edited | Nothing:
        found = [
            (match, new)
            for sentence in statements(answer.text)
            for match in pattern.finditer(answer.text, sentence.start, sentence.end)
            if (new := _replacement(match, sentence, other))
        ]
        if not found:
            return Nothing(f"no word or phrase of the list {synonyms.name} stands in the text")
        chosen = random.sample(found, min(_MOST_REPLACED, len(found)))
        text = answer.text
        for match, new in sorted(chosen, key=lambda pair: pair[0].start(), reverse=True):
            text = text[: match.start()] + new + text[match.end() :]
        return Edited(text)

    return edit


def _replacement(match: re.Match[str], sentence: Sentence, other: Mapping[str, str]) -> str:
    """What to put for a match, article and capital included; '' where it had better stay.

    A capital inside a sentence marks a name or a title. A sentence that holds the synonym already
    would say the same word twice.
    """
    article, blank, old = match.groups()
    new = other[" ".join(old.lower().split())]
    before = match.string[sentence.start : match.start()]
    after = match.string[match.end() : sentence.end].split()
    begins = not re.search(r"[^\W\d_]", before)
    inner = match.group().split()[int(begins) :]
    titled = old.isupper() or any(word[0].isupper() for word in inner)
    if titled or (begins and after and after[0][0].isupper()) or mentions(sentence.text, new):
        return ""
    if not article:
        return new[0].upper() + new[1:] if old[0].isupper() else new
    return article[0] + ("n" if _VOWEL_SOUND.match(new) else "") + blank + new


def drop_redundant(answer: Answer, random: Random) -> Edited | Nothing:
    """One sentence less: a courtesy, a pointer to another page, or what another sentence says.

    What is dropped has no number, negation or listed name, and nothing behind it refers to it.
    """
    text, found = answer.text, sentences(answer.text)[:_MOST_SENTENCES]
    if len(found) < 2:
        return Nothing("the text is one sentence")
    dispensable = [
        sentence
        for place, sentence in enumerate(found)
        if _is_dispensable(place, found)
        and not _names_something(sentence.text)
        and _keeps_facts(text, place, found)
    ]
    if not dispensable:
        return Nothing("no sentence is a courtesy or says what another one says already")
    return Edited(_without(text, random.choice(dispensable)))


def _keeps_facts(text: str, place: int, found: Sequence[Sentence]) -> bool:
    """Whether the text keeps its facts without that sentence, which has none itself: those before
    and after it could become one number with its unit."""
    sentence, start = found[place], found[max(0, place - 1)].start
    around = text[start : found[min(place + 1, len(found) - 1)].end]
    inside = Sentence(sentence.start - start, sentence.end - start, sentence.text)
    return facts(_without(around, inside)) == facts(around)


def _is_dispensable(place: int, found: Sequence[Sentence]) -> bool:
    text = found[place].text
    following = words(found[place + 1].text)[:1] if place + 1 < len(found) else []
    numbered = place > 0 and _NUMBER_MARK.fullmatch(found[place - 1].text)
    if numbered or facts(text) or _REFERS_BACK & set(following):
        return False
    plain = text.rstrip(".! ")
    return bool(_COURTESY.fullmatch(plain) or _POINTER.fullmatch(plain)) or _is_said(place, found)


def _is_said(place: int, found: Sequence[Sentence]) -> bool:
    """Whether another sentence says it; of two that say the same, the later is the repetition."""
    text = found[place].text
    told = _told(text)
    whole = text[0].isupper() and text[-1] in ".!" and len(told) >= _LEAST_WORDS
    if not whole or _REFERS_BACK & set(words(text)):
        return False  # the same words about something else, perhaps
    return any(
        _says(other.text, text) and (_told(other.text) != told or i < place)
        for i, other in enumerate(found)
        if i != place
    )


def _says(other: str, text: str) -> bool:
    """Whether `other` has the content words of `text` in their order, with the same limits on
    what is claimed and no negation."""
    if _denies(other) or _limits(other) != _limits(text):
        return False
    left = iter(_told(other))
    return all(word in left for word in _told(text))


# Every sentence is compared with every other one.
_denies = lru_cache(_MOST_SENTENCES)(negations)


@lru_cache(_MOST_SENTENCES)
def _limits(text: str) -> frozenset[str]:
    return _LIMITS.intersection(words(text))


@lru_cache(_MOST_SENTENCES)
def _told(text: str) -> list[str]:
    return [stem for word in words(text) for stem in content_words(word)]


def _names_something(text: str) -> bool:
    return any(mentions(text, name) for name in word_names() if name.lower() in text.lower())


def _without(text: str, sentence: Sentence) -> str:
    """The text without a sentence; of the gaps around it the one with more line ends stays."""
    before, after = text[: sentence.start], text[sentence.end :]
    head, tail = before.rstrip(), after.lstrip()
    gaps = before[len(head) :], after[: len(after) - len(tail)]
    if not head or not tail:
        return head + tail
    return head + max(gaps, key=lambda gap: gap.count("\n")) + tail
