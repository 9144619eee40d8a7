"""Sentences, facts and claims of a text, found by rule: no model, and no understanding.

Everything here is lexical. It can be wrong about meaning, so what rests on it is called a check and
recorded with its reason.

Word lists: terms, what may be put in their place, and the fact that each swap breaks.

What differs between two lists of words, in a time in proportion to their length.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, StringConstraints

from judgebench.errors import Problem, raise_any
from judgebench.rubric import normalise
from judgebench.shipped import find_file
from judgebench.texts import Sentence, sentences
from judgebench.yaml_file import Strict, load_with_lines, node_below, validate

Words = Sequence[str]
Span = tuple[int, int, int, int]  # a[i1:i2] became b[j1:j2]
# Pairs of words that difflib compares: its time grows with the cube of the length, a second here.
_WHOLE = 250_000
_PART = 10_000  # of the parts of longer texts
_RUN = 4  # words in a row


def differing(a: Words, b: Words) -> list[Span]:
    """The spans that differ, in order. Long parts that have little in common are one span.

    >>> differing("one two three four".split(), "one 2 three four".split())
    [(1, 2, 1, 2)]
    """
    if len(a) * len(b) <= _WHOLE:
        return _compared(a, b, 0, 0)
    start, after = _ends(a, b)
    a, b = a[start : len(a) - after], b[start : len(b) - after]
    if len(a) * len(b) <= _WHOLE:
        return _compared(a, b, start, start)
    spans: list[Span] = []
    i = j = 0
    for i_end, j_end in [*_common(a, b), (len(a), len(b))]:
        if i_end >= i and j_end >= j:
            before, after = _ends(a[i:i_end], b[j:j_end])
            i1, i2, j1, j2 = i + before, i_end - after, j + before, j_end - after
            if (i2 - i1) * (j2 - j1) > _PART:
                spans.append((start + i1, start + i2, start + j1, start + j2))
            else:
                spans += _compared(a[i1:i2], b[j1:j2], start + i1, start + j1)
            i, j = i_end, j_end
    return spans


def _compared(a: Words, b: Words, i: int, j: int) -> list[Span]:
    """The spans that difflib finds to differ, seen from the places `i` and `j`."""
    found = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(i + i1, i + i2, j + j1, j + j2) for tag, i1, i2, j1, j2 in found if tag != "equal"]


def _ends(a: Words, b: Words) -> tuple[int, int]:
    """The number of equal words at the beginning and at the end. The longer end is taken first:
    of an `I` that is put before `I think`, the first is new."""
    n = min(len(a), len(b))
    before = next((i for i in range(n) if a[i] != b[i]), n)
    after = next((i for i in range(n) if a[-1 - i] != b[-1 - i]), n)
    return (before, min(after, n - before)) if before >= after else (min(before, n - after), after)


def _common(a: Words, b: Words) -> list[tuple[int, int]]:
    """The places where the same runs of words begin in both: the most that are in order.

    A run counts where both have it equally often; the first is then the first, and so on.
    """
    runs = [list(zip(*(words[i:] for i in range(_RUN)), strict=False)) for words in (a, b)]
    often = [Counter(found) for found in runs]
    numbered: list[dict[tuple[tuple[str, ...], int], int]] = [{}, {}]
    for found, places in zip(runs, numbered, strict=True):
        seen: Counter[tuple[str, ...]] = Counter()
        for place, run in enumerate(found):
            if often[0][run] == often[1][run]:
                seen[run] += 1
                places[run, seen[run]] = place
    pairs = [(place, numbered[1][key]) for key, place in numbered[0].items()]
    # The longest rising part, by the smallest last place of each length (Fredman 1975).
    ends: list[int] = []
    lasts: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(lasts[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        lasts[length : length + 1] = [n]
    kept = []
    n = lasts[-1] if lasts else -1
    while n >= 0:
        kept.append(pairs[n])
        n = before[n]
    return kept[::-1]


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Forms = Annotated[tuple[Text, ...], Field(min_length=1)]
Term = Text | Forms
_FOLDER = "adversarial/words"
_OF_NAMES = ("pathogens", "drugs", "tests")


class Fact(Strict):
    """A true claim that no longer stands once its term is swapped.

    `about`: what the question or the answer must mention, any of them; empty = no condition.
    `says` is the sound term and `instead` maps a kind of replacement to alternatives: each the
    name of one of the list's `forms`, its forms themselves, or its only form, which then stands
    for every form of `says` (a drug for another drug and its abbreviation). `unless`: words
    beside which the swapped text would contradict itself. `fact` is the claim in one sentence,
    `source` the title and organisation of a public page.
    """

    about: tuple[Text, ...] = ()
    says: Term
    instead: Annotated[
        Mapping[Text, Annotated[tuple[Term, ...], Field(min_length=1)]], Field(min_length=1)
    ]
    unless: tuple[Text, ...] = ()
    fact: Annotated[str, StringConstraints(pattern=r"^\S.*\.$")]
    source: Text


class WordList(Strict):
    """The facts of one kind. `forms` names terms that have several forms, such as `viruses`.

    `speaks_of`: words of which a sentence that makes such a claim, or the question, holds one;
    empty = any sentence may. So `older women need calcium` is no claim about who is at risk.
    """

    name: Text
    version: Text
    about: Text
    notice: Text
    forms: Mapping[Text, Forms] = Field(default_factory=dict)
    speaks_of: tuple[Text, ...] = ()
    facts: tuple[Fact, ...] = Field(min_length=1)

    def forms_of(self, term: Term) -> tuple[str, ...]:
        """The forms of a term, as they stand in texts."""
        return self.forms.get(term, (term,)) if isinstance(term, str) else term

    def alternatives(self, fact: Fact, to: str = "") -> list[tuple[str, ...]]:
        """The terms for the place of the fact's term, of one kind or, for '', of any: one
        form for each of the term's."""
        n = len(self.forms_of(fact.says))
        return [
            forms * n if len(forms) == 1 else forms
            for kind, terms in fact.instead.items()
            for forms in map(self.forms_of, terms)
            if to in ("", kind)
        ]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of replacement that the list offers, sorted."""
        return tuple(sorted({kind for fact in self.facts for kind in fact.instead}))


def load_words(name: str | Path, relative_to: Path | None = None) -> WordList:
    """The word list of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file(_FOLDER, str(name), ".yaml", relative_to)
    value, node = load_with_lines(path)
    words = validate(value, WordList, str(path), node)
    raise_any(list(_problems(words, str(path), node)))
    return words


def words_in_words(path: Path, rubric: str) -> str:
    """Read a word list and say what it holds. Raises SetupError."""
    words = load_words(path)
    return f"the word list {words.name}, version {words.version}, {len(words.facts)} facts"


def _problems(words: WordList, file: str, node: yaml.Node | None) -> Iterator[Problem]:
    """The contradictions between parts of a list that are each right alone."""
    for i, fact in enumerate(words.facts):
        says = words.forms_of(fact.says)
        if not any(mentions(fact.fact, form) for form in says):
            line = _line(node, i, "fact")
            yield Problem("must hold the term", file, line, f"facts.{i}.fact", fact.fact, says[0])
        for kind, terms in fact.instead.items():
            for forms in map(words.forms_of, terms):
                line, where = _line(node, i, "instead", kind), f"facts.{i}.instead.{kind}"
                found = ", ".join(forms)
                if len(forms) not in (1, len(says)):
                    message, allowed = "must have one form, or as many as `says`", ", ".join(says)
                    yield Problem(message, file, line, where, found, allowed)
                if {form.lower() for form in forms} & {form.lower() for form in says}:
                    yield Problem("is what the fact says already", file, line, where, found)


def _line(node: yaml.Node | None, fact: int, *loc: str) -> int | None:
    below = node_below(node, "facts", fact, *loc)
    return below.start_mark.line + 1 if below else None


@cache
def word_names() -> frozenset[str]:
    """Every pathogen, drug and test of the shipped word lists, in all its forms: the names that
    an edit which keeps the meaning must keep."""
    return frozenset(
        form
        for words in map(load_words, _OF_NAMES)
        for fact in words.facts
        for forms in (words.forms_of(fact.says), *words.alternatives(fact))
        for form in forms
    )


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
    """The number of words that deny something."""
    return sum(w in NEGATIONS or w.endswith(("n't", "n’t")) for w in words(text))


def mentions(text: str, term: str) -> bool:
    """Return whether a term stands in a text as whole words, whatever the case."""
    if text.isascii() and term.isascii() and term.lower() not in text.lower():
        return False  # known far sooner
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def facts(text: str, names: Collection[str] = ()) -> Counter[str]:
    """Counts of all that an edit which keeps the meaning must keep: numbers with their units,
    negations, and every one of `names` (drugs, pathogens, tests) that is mentioned."""
    counted = Counter(
        f"{match[1]} {(match[2] or '').lower()}".strip() for match in NUMBER_AND_UNIT.finditer(text)
    )
    if denied := negations(text):
        counted["(negations)"] = denied
    for name in (name for name in names if mentions(text, name)):
        found = re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        counted[name.lower()] = len(found)
    return counted


def asserts(text: str, claim: str, beyond: str = "", share: float = 0.8) -> bool:
    """Return whether a sentence of `text` says what `claim` says, as far as words can tell.

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
