"""Sentences, facts and claims of a text, found by rule: no model, and no understanding.

Everything here is lexical. It can be wrong about meaning, so what rests on it is called a check and
recorded with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from judgebench.rubric import normalise

_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs|ms|prof|st|spp?|subsp|u\.s|a\.m|p\.m)"
    r"|\b[A-Z])\.$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
NUMBER = re.compile(r"(?<![\w.,])(?>\d+(?:[.,]\d+)*)")
UNITS = (
    "mg", "mcg", "µg", "g", "kg", "ml", "l", "litre", "litres", "liter", "liters", "iu", "units",
    "unit", "mmol", "mmhg", "mm", "cm", "m", "km", "second", "seconds", "minute", "minutes",
    "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "percent",
    "%", "°c", "°f", "degrees", "tablet", "tablets", "dose", "doses", "drops", "cups", "glasses",
)  # fmt: skip
_ANY_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
NUMBER_AND_UNIT = re.compile(rf"({NUMBER.pattern})(?:[\s-]*({_ANY_UNIT})(?!\w))?", re.IGNORECASE)
NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nor", "neither", "without", "cannot", "nobody", "nothing",
     "nowhere", "hardly", "unless")
)  # fmt: skip
_FUNCTION_WORDS = frozenset(  # a list of sixty strings would be harder to read
    "a an the of to in on at by for from with and or but as is are was were be been being it its "
    "this that these those they them their he she his her you your we our i my me do does did has "
    "have had can could may might will would shall should must so than then there here which who "
    "whom whose what when where why how also very more most much many some any all each such into "
    "about over under between through during after before if because while both other only just "
    "too up out off own same s t".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, a bullet or a heading, and where it stands: text[start:end]."""

    start: int
    end: int
    text: str


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text in order, without the white space around them."""
    found, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if match.group()[0] == "." and _ABBREVIATION.search(text[start : match.start() + 1]):
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


def words(text: str) -> list[str]:
    """The words of a text, folded as labels are."""
    return list(_WORD.findall(normalise(text)))


def content_words(text: str) -> set[str]:
    """Roughly stemmed words without those that carry grammar only; negations are kept apart."""
    return {_stem(w) for w in words(text) if w not in _FUNCTION_WORDS and w not in NEGATIONS}


def _stem(word: str) -> str:
    """`viruses` and `virus` alike: the common English endings cut from words of some length."""
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is")):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def negations(text: str) -> int:
    """How many words deny something."""
    return sum(w in NEGATIONS or w.endswith(("n't", "n’t")) for w in words(text))


def mentions(text: str, term: str) -> bool:
    """Whether a term stands in a text as whole words, whatever the case."""
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def facts(text: str, names: Collection[str] = ()) -> Counter[str]:
    """What an edit that keeps the meaning must keep, counted: numbers with their units,
    negations, and every one of `names` (drugs, pathogens, tests) that is mentioned."""
    counted = Counter(
        f"{match[1]} {(match[2] or '').lower()}".strip() for match in NUMBER_AND_UNIT.finditer(text)
    )
    if denied := negations(text):
        counted["(negations)"] = denied
    for name in names:
        found = re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        if found:
            counted[name.lower()] = len(found)
    return counted


def asserts(text: str, claim: str, beyond: str = "", share: float = 0.8) -> bool:
    """Whether one sentence of `text` says what `claim` says, as far as words can tell.

    It must hold `share` of the claim's content words, deny as often (odd or even) as the claim
    does, and hold every content word of the claim that the claim `beyond` lacks: two claims that
    differ in one word are so kept apart.
    """
    wanted = content_words(claim)
    if not wanted:
        return False
    telling = wanted - content_words(beyond) if beyond else set()
    for sentence in sentences(text):
        held = content_words(sentence.text)
        agree = negations(sentence.text) % 2 == negations(claim) % 2
        if agree and telling <= held and len(wanted & held) >= share * len(wanted):
            return True
    return normalise(claim) in normalise(text)
