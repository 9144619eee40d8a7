"""Sentences, facts and claims of a text, found by rule: no model, and no understanding.

Everything here is lexical. It can be wrong about meaning, so what rests on it is called a check and
recorded with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from judgebench.rubric import normalise
from judgebench.texts import Sentence, sentences

_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")
NUMBER = re.compile(r"(?<![\w.,])(?>\d+(?:[.,]\d+)*)")
UNITS = (
    "mg", "mcg", "µg", "g", "kg", "ml", "l", "litre", "litres", "liter", "liters", "iu", "units",
    "unit", "mmol", "mmhg", "mm", "cm", "m", "km", "second", "seconds", "minute", "minutes",
    "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "percent",
    "%", "°c", "°f", "degrees", "tablet", "tablets", "dose", "doses", "drops", "cups", "glasses",
)  # fmt: skip
_ANY_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
NUMBER_AND_UNIT = re.compile(rf"({NUMBER.pattern})(?:[\s-]*({_ANY_UNIT})(?!\w))?", re.IGNORECASE)
_LONGEST_CLAIM = 4000  # characters
NEAR = 200  # characters on each side of a place that bear on what is said there
MOST_TRIED = 100  # places of one text that an edit chooses from
NEGATIONS = frozenset(
    ("not", "no", "never", "none", "nor", "neither", "without", "cannot", "nobody", "nothing",
     "nowhere", "hardly", "unless")
)  # fmt: skip
_GRAMMAR = (
    "a an the of to in on at by for from with and or but as is are was were be been being it its "
    "this that these those they them their he she his her you your we our i my me do does did has "
    "have had can could may might will would shall should must so than then there here which who "
    "whom whose what when where why how also very more most much many some any all each such into "
    "about over under between through during after before if because while both other only just "
    "too up out off own same s t"
)
_FUNCTION_WORDS = frozenset(_GRAMMAR.split())


def words(text: str) -> list[str]:
    """The words of a text, folded as labels are."""
    return list(_WORD.findall(normalise(text)))


@lru_cache(maxsize=4096)  # the search for near-duplicates asks for the same texts again and again
def content_words(text: str) -> frozenset[str]:
    """Roughly stemmed words without those that carry grammar only; negations are kept apart."""
    told = (w for w in words(text) if w not in _FUNCTION_WORDS and w not in NEGATIONS)
    return frozenset(_stem(w) for w in told)


def _stem(word: str) -> str:
    """`viruses` and `virus` alike: the common English endings cut from words of some length."""
    for ending, least in (("ies", 5), ("ing", 6), ("es", 5), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if word.endswith("e") and len(word) >= 5 else word


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
    telling = wanted - content_words(beyond) if beyond else frozenset()
    for sentence in sentences(text):
        held = content_words(sentence.text)
        says = telling <= held and len(wanted & held) >= share * len(wanted)
        if says and negations(sentence.text) % 2 == negations(claim) % 2:
            return True
    return normalise(claim) in normalise(text)


def statements(text: str) -> list[Sentence]:
    """The sentences that can say something, in order: what is longer is no sentence."""
    return [sentence for sentence in sentences(text) if len(sentence.text) <= _LONGEST_CLAIM]


_LETTER_SAID_WITH_A_VOWEL = frozenset("AEFHILMNORSX")
_SAID_WITH_A_CONSONANT = re.compile(r"(?:eu|one\b|u[bcfhjkqrst][aeiou]|uni)", re.IGNORECASE)
_NUMBER_SAID_WITH_A_VOWEL = re.compile(r"8|1[18](?![\d])")
_ARTICLE = re.compile(r"(?<![\w'’-])(?:(a)n?)(?=\s+$)", re.IGNORECASE)


def article(word: str) -> str:
    """`a` or `an`, as the word is spoken: an x-ray, a urine test, an MRI, an 8-day course."""
    first = re.split(r"[\s-]", word, maxsplit=1)[0]
    if first[:1].isdigit():
        return "an" if _NUMBER_SAID_WITH_A_VOWEL.match(first) else "a"
    if len(first) == 1 or (first.isupper() and len(first) < 5 and first != "AIDS"):
        return "an" if first[0].upper() in _LETTER_SAID_WITH_A_VOWEL else "a"
    vowel = first[0].lower() in "aeiou" and not _SAID_WITH_A_CONSONANT.match(first)
    return "an" if vowel else "a"


def put(text: str, places: Sequence[tuple[int, int]], new: Sequence[str]) -> str:
    """The text with each span of `places` (in order, apart from each other) replaced by the text
    of `new` at the same index, and an article `a` or `an` right before it made to fit."""
    parts, end = [], 0
    for (start, stop), word in zip(places, new, strict=True):
        before = text[end:start]
        if article(word) != article(text[start:stop]):
            before = _ARTICLE.sub(rf"\1{article(word)[1:]}", before)
        parts += [before, word]
        end = stop
    return "".join([*parts, text[end:]])


# Bounds keep the time in proportion to the text: 64 characters before the @ of an address and 63 in
# a part of a host's name are the most that there can be.
_REFERENCE = re.compile(
    r"(?:https?://|www\.)\S+|\S{1,64}@\S+|\b[\w-]{1,63}\.(?:gov|org|com|edu|int|net)\b\S*"
    r"|\[[^\]\n]{0,300}\]|\((?=[^()\n]*\))[^()\n]*(?:et al|doi|ISBN)[^()\n]*\)"
)
_CAPITALISED = r"[A-Z](?=\w*[a-z])\w*+"
_NAME = re.compile(
    rf"\b{_CAPITALISED}(?:[ ](?:of|for|and|the|on|in|&|{_CAPITALISED}))*[ ]{_CAPITALISED}"
)


def references(text: str) -> list[tuple[int, int]]:
    """Spans of links, mail addresses and citations."""
    return [match.span() for match in _REFERENCE.finditer(text)]


def names(text: str) -> list[tuple[int, int]]:
    """Spans of capitalised words in a row, small words between them: names and titles."""
    return [match.span() for match in _NAME.finditer(text)]


def marks(text: str, spans: Iterable[tuple[int, int]]) -> bytearray:
    """For each character of a text 1 where it is in any of the spans, else 0."""
    marked = bytearray(len(text))
    for start, end in spans:
        marked[start:end] = b"\1" * (end - start)
    return marked
