"""Edits by rules that are data: each finds places in a text, puts in what a list offers for them,
and leaves the text alone where that would not do what the recipe promises.

A term is swapped for one that breaks its fact, a quantity changed, a sentence turned or left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from functools import cached_property
from operator import itemgetter
from random import Random
from re import Pattern
from typing import Literal

from pydantic import Field

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel
from judgebench.records import Answer
from judgebench.stress_tests.recipes import (
    MOST_TRIED,
    NEAR,
    NUMBER,
    Edit,
    Edited,
    Fact,
    Nothing,
    Outcome,
    RuleList,
    WordList,
    asserts,
    content_words,
    facts,
    marks,
    mentions,
    names,
    negations,
    put,
    references,
    statements,
    word_names,
)
from judgebench.text import Sentence, sentences

Direction = Literal["up", "down"]
Rounding = Literal["ROUND_UP", "ROUND_DOWN", "exact"]
Place = tuple[int, int]  # text[start:end]


# --- a quantity changed --------------------------------------------------------------------------


class QuantityChange(StrictModel):
    """How quantities in `units` change: by the factors of `up` or `down`, or to another unit.

    A factor has the rounding to the decimals of the number. `other_units` maps a unit to the
    smaller and the larger one of its kind, '' for none. `missing` is the reason where no quantity
    can be changed.
    """

    missing: str
    units: tuple[str, ...] = ()
    up: Mapping[Decimal, Rounding] = Field(default_factory=dict)
    down: Mapping[Decimal, Rounding] = Field(default_factory=dict)
    other_units: Mapping[str, tuple[str, str]] = Field(default_factory=dict)

    @cached_property
    def pattern(self) -> Pattern[str]:
        """A number, or a range of two, with one of the units."""
        units = [*self.units, *self.other_units, *(f"{unit}s" for unit in self.other_units)]
        any_unit = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
        second = r"(?:(\s?(?:-|–|—|to|or)\s?)((?>\d+(?:[.,]\d+)*)))?"
        quantity = rf"({NUMBER.pattern}){second}(\s?-?)({any_unit})(?![\w°])"
        return re.compile(quantity, re.IGNORECASE)


class Quantities(RuleList):
    """The shipped list of quantities. What stands before a number says which way it may go
    (`bounds`), what stands before or after it that it makes no claim of its own."""

    changes: Mapping[str, QuantityChange]
    bounds: Mapping[Direction, Pattern[str]]
    precaution: Pattern[str]
    always: Pattern[str]
    unless_before: Pattern[str]
    unless_after: Pattern[str]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A number, or a range of two, with its unit, at text[start:end]; it may go `ways`."""

    start: int
    end: int
    text: str
    numbers: tuple[str, ...]
    between: str  # what joins a range
    gap: str  # what stands between number and unit
    unit: str
    sentence: Sentence
    ways: tuple[Direction, ...]

    @property
    def place(self) -> Place:
        """Where it stands in its sentence."""
        return self.start - self.sentence.start, self.end - self.sentence.start

    def written(self, numbers: Sequence[str], unit: str) -> str:
        """It with other numbers or another unit."""
        return self.between.join(numbers) + self.gap + unit


def change_quantity(rules: Quantities, name: str) -> Edit:
    """The edit that makes the change of that name to one quantity wherever it stands; one that
    stands once comes first, for then nothing but one claim becomes false."""
    change = rules.changes[name]

    def edit(answer: Answer, rng: Random) -> Outcome:
        quantities = _quantities(answer.text, change.pattern, rules)
        texts = Counter(quantity.text for quantity in quantities)
        once = [quantity for quantity in quantities if texts[quantity.text] == 1]
        each = list({quantity.text: quantity for quantity in reversed(quantities)}.values())
        for group in (once[:MOST_TRIED], each[-MOST_TRIED:]):
            candidates = [(q, new) for q in group for new in _rewritten(q, change)]
            offers = [(q, new) for q, new in candidates if _tells(q, new, answer.text)]
            if offers:
                quantity, new = rng.choice(offers)
                places = [(q.start, q.end) for q in quantities if q.text == quantity.text]
                claim = put(quantity.sentence.text, [quantity.place], [new])
                text = put(answer.text, places, [new] * len(places))
                return Edited(text, claim, quantity.sentence.text)
        return Nothing(change.missing)

    return edit


def _tells(quantity: _Quantity, new: str, text: str) -> bool:
    """Return whether the words tell old and new claim apart, and the new one is new."""
    old = quantity.sentence.text
    before, after = content_words(old), content_words(put(old, [quantity.place], [new]))
    return bool(before - after) and bool(after - before) and new not in text


def _quantities(text: str, pattern: Pattern[str], rules: Quantities) -> list[_Quantity]:
    """The quantities of a text that carry a claim: in a statement, and not part of a larger one."""
    kept = marks(text, [*references(text), *names(text)])
    return [
        quantity
        for sentence in statements(text)
        if not sentence.text.endswith("?") and len(content_words(sentence.text)) >= _MIN_WORDS
        for match in pattern.finditer(text, sentence.start, sentence.end)
        if (quantity := _quantity(match, sentence, rules)) and not any(kept[slice(*match.span())])
    ]


def _quantity(match: re.Match[str], sentence: Sentence, rules: Quantities) -> _Quantity | None:
    first, between, second, gap, unit = match.groups()
    (start, end), text = match.span(), match.string
    before = text[max(sentence.start, start - NEAR) : start]
    after = text[end : min(sentence.end, end + NEAR)]
    no_claim = rules.unless_before.search(before) or rules.unless_after.match(after)
    if no_claim or rules.always.match(unit + after):
        return None
    numbers = (first,) if second is None else (first, second)
    if any(_value(n) <= 0 for n in numbers) or (second and _value(first) >= _value(second)):
        return None
    only: tuple[Direction, ...] = ("down",) if rules.precaution.search(sentence.text) else ()
    bound = tuple(way for way, pattern in rules.bounds.items() if pattern.search(before))[:1]
    ways = bound or only or ("up", "down")
    return _Quantity(start, end, match[0], numbers, between or "", gap, unit, sentence, ways)


def _value(number: str) -> Decimal:
    return Decimal(number.replace(",", ""))


def _written(value: Decimal, like: str) -> str:
    """A number as people write it: no exponent, no zeros at the end, commas in large ones."""
    comma = "," if value >= 10_000 or ("," in like and value >= 1000) else ""
    return f"{value.normalize():{comma}f}"


def _rewritten(quantity: _Quantity, change: QuantityChange) -> Iterator[str]:
    """What may be put for the quantity."""
    for way in quantity.ways:
        for factor, rounding in (change.up if way == "up" else change.down).items():
            values = [_times(_value(n), factor, way, rounding) for n in quantity.numbers]
            if _is_other(quantity, values, rounding) and _can_agree(quantity, values[-1]):
                numbers = list(map(_written, values, quantity.numbers))
                yield quantity.written(numbers, _agreeing(quantity, values[-1]))
    unit, units = quantity.unit, change.other_units
    is_plural = unit not in units and unit[:-1] in units and unit.endswith("s")
    other = units.get(unit[:-1] if is_plural else unit, ("", ""))
    for direction, new in zip(("down", "up"), other, strict=True):
        if new and direction in quantity.ways:
            yield quantity.written(quantity.numbers, f"{new}s" if is_plural else new)


def _times(value: Decimal, factor: Decimal, way: Direction, rounding: Rounding) -> Decimal:
    """The product or quotient, rounded to the decimals of `value`."""
    new = value * factor if way == "up" else value / factor
    if rounding == "exact":
        return new
    step = Decimal(1).scaleb(min(0, int(value.as_tuple().exponent)))
    return new.quantize(step, ROUND_UP if rounding == "ROUND_UP" else ROUND_DOWN)


def _is_other(quantity: _Quantity, values: Sequence[Decimal], rounding: Rounding) -> bool:
    """By the factor, or rounded to half or more and at most threefold; a share that can be, and
    apart from before."""
    old = [_value(n) for n in quantity.numbers]
    ratios = [new / value for new, value in zip(values, old, strict=True)]
    is_near = all(_THIRD <= r <= _HALF or 3 * _HALF <= r <= 3 for r in ratios)
    is_share = quantity.unit in ("%", "percent") and values[-1] > 100
    is_apart = values[-1] < old[0] or values[0] > old[-1]
    is_rising = list(values) == sorted(set(values))
    return (rounding == "exact" or is_near) and is_apart and is_rising and not is_share


_THIRD, _HALF = Decimal(1) / 3, Decimal("0.5")
_TIMES = {"second", "minute", "hour", "day", "week", "month", "year"}


def _can_agree(quantity: _Quantity, value: Decimal) -> bool:
    """Return whether the unit fits beside the number: of inches, only the plural is known."""
    unit = quantity.unit.lower()
    return value != 1 or unit.removesuffix("s") in _TIMES or not unit.endswith(("s", "feet"))


def _agreeing(quantity: _Quantity, value: Decimal) -> str:
    """The unit as one or many: `1 minute` but `3 minutes`, and always `3-minute`."""
    singular = quantity.unit.lower().removesuffix("s")
    if singular not in _TIMES or "-" in quantity.gap:
        return quantity.unit
    return quantity.unit.rstrip("sS") + ("" if value == 1 else "s")


# --- a sentence turned, or left out --------------------------------------------------------------

_NEVER = re.compile(r"(?!)")


class SentenceRules(RuleList):
    """What is found in a sentence, as a regular expression, and what stands in its place.

    A name of `parts` in braces stands for its pattern. A sentence is left alone where `unless`
    matches in it, or `unless_before` or `unless_after` in the text around it, or where a word of
    `counted` would be left. `missing` is the reason where nothing can be changed.
    """

    missing: str
    swaps: tuple[tuple[str, str], ...] = Field(min_length=1)
    parts: Mapping[str, str] = Field(default_factory=dict)
    counted: Pattern[str] = _NEVER
    unless: Pattern[str] = _NEVER
    unless_before: Pattern[str] = _NEVER
    unless_after: Pattern[str] = _NEVER

    @cached_property
    def patterns(self) -> list[tuple[Pattern[str], str]]:
        """The swaps, compiled."""
        return [(re.compile(p.format_map(self.parts), re.I), new) for p, new in self.swaps]

    def rewritten(self, sentence: str) -> str | None:
        """The sentence with its one match replaced; None where there is none, or more than one."""
        if self.unless.search(sentence):
            return None
        swaps = [(m, new) for pattern, new in self.patterns for m in pattern.finditer(sentence)]
        if len(swaps) != 1:
            return None
        match, new = swaps[0]
        n_left = len(self.counted.findall(sentence)) - len(self.counted.findall(match[0]))
        if n_left or negations(sentence) != negations(match[0]):
            return None
        instead = match.expand(new)
        first = len(match.groupdict().get("lead") or "")
        if match[0][first].isupper():
            instead = instead[:first] + instead[first : first + 1].upper() + instead[first + 1 :]
        return sentence[: match.start()] + instead + sentence[match.end() :]


def change_sentence(rules: SentenceRules) -> Edit:
    """The edit that rewrites one sentence, or leaves it out, drawn from those that may be.

    A rewritten sentence makes a claim false: it says so, and the text no longer says the old one.
    One that is left out has no fact, number or name, and the text keeps those of its own.
    """

    def edit(answer: Answer, rng: Random) -> Outcome:
        offers = list(_offers(answer.text, rules))
        return rng.choice(offers) if offers else Nothing(rules.missing)

    return edit


def _offers(text: str, rules: SentenceRules) -> Iterator[Edited]:
    links = marks(text, references(text))
    matches = [(s, new) for s in statements(text) if (new := rules.rewritten(s.text)) is not None]
    for sentence, new in matches[:MOST_TRIED]:
        before, after = text[: sentence.start], text[sentence.end :]
        is_kept = rules.unless_before.search(before[-NEAR:]) or rules.unless_after.match(after)
        if is_kept or (new and any(links[sentence.start : sentence.end])):
            continue
        if not new:
            shorter = _joined(before, after)
            is_empty = not facts(sentence.text, word_names())
            if shorter and is_empty and facts(shorter) == facts(text):
                yield Edited(shorter)
        elif text.count(sentence.text) == 1:
            changed = before + new + after
            if not asserts(changed, sentence.text, beyond=new):
                yield Edited(changed, new, sentence.text)


def _joined(before: str, after: str) -> str:
    """The texts around a sentence; of the gaps around it the one with more line ends stays."""
    head, tail = before.rstrip(), after.lstrip()
    gaps = before[len(head) :], after[: len(after) - len(tail)]
    gap = max(gaps, key=lambda gap: gap.count("\n")) if head and tail else ""
    return head + gap + tail


# --- a term swapped ------------------------------------------------------------------------------

_MIN_WORDS = 3  # content words of a sentence that makes a claim; fewer are a heading
_DENIED_BEFORE = re.compile(
    r"\b(?:not|no|never|neither|nor|none|without|unlike|cannot|\w+n['’]t|rather than|instead of"
    r"|other than)\W+(?:[\w'’-]{1,60}\s+){0,3}$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\s+(?:is|are|was|were|does|do|did|has|have|should|can|must|will|would)(?:\s+not|n['’]t"
    r"|\s+never)\s+(?:be\s+|been\s+)?(?:an?|the|given|used|taken|work|help|treat|cause|caused"
    r"|recommended|effective|needed|useful|indicated|advised|approved)\b|\s+cannot\b",
    re.IGNORECASE,
)


def swap(words: WordList, to: str = "") -> Edit:
    """An edit that puts a replacement of the kind `to` (of any, for '') for a term of `words`,
    wherever it stands in the answer.

    The facts whose subject the question names come first; otherwise one sentence of the answer
    must name both subject and term. Raises SetupError where the list has no such kind.
    """
    if to and to not in words.kinds:
        message = f"the word list {words.name} has no replacement of this kind"
        raise SetupError(Problem(message, field="to", found=to, allowed=", ".join(words.kinds)))

    def edit(answer: Answer, rng: Random) -> Outcome:
        of_kind = [fact for fact in words.facts if words.alternatives(fact, to)]
        asked = [fact for fact in of_kind if fact.about and _names(answer.question, fact)]
        tried = [_swapped(answer, fact, words, to) for fact in asked or of_kind]
        if offers := [swaps for swaps in tried if isinstance(swaps, list)]:
            return rng.choice(rng.choice(offers))
        reasons = dict.fromkeys(reason for reason in tried if isinstance(reason, str) and reason)
        return Nothing("; ".join(reasons) or f"no fact of the word list {words.name} stands in it")

    return edit


def _swapped(answer: Answer, fact: Fact, words: WordList, to: str) -> list[Edited] | str:
    """Every way to break the fact in the answer, or why there is none, '' for no ground at all."""
    says, text = words.forms_of(fact.says), answer.text
    asked = _names(answer.question, fact)
    places = _places(text, says) if asked or _names(text, fact) else []
    if not places:
        return ""
    claims = {s: inside for s in sentences(text) if (inside := _inside(s, places))}
    sound = [s for s in claims if _affirms(s.text) and _speaks(s.text, answer.question, words)]
    named = [s for s in sound if _names(s.text, fact)]
    if not (named or asked):
        return ""
    if why_not := _obstacle(text, claims, fact, says):
        return why_not
    if not sound:
        return f"no sentence affirms {says[0]}"
    offers = []
    for forms in words.alternatives(fact, to):
        if not any(mentions(text, form) for form in forms):
            pairs = {old.lower(): new for old, new in zip(says, forms, strict=True)}
            new = {(a, b): _in_case(text[a:b], pairs[text[a:b].lower()], says) for a, b in places}
            sentence = (named or sound)[0]
            shifted = [(a - sentence.start, b - sentence.start) for a, b in claims[sentence]]
            claim = put(sentence.text, shifted, [new[place] for place in claims[sentence]])
            offers.append(Edited(put(text, places, list(new.values())), claim, fact.fact))
    return offers or f"what could stand for {says[0]} stands in the text already"


def _obstacle(
    text: str, claims: Mapping[Sentence, Sequence[Place]], fact: Fact, says: Sequence[str]
) -> str:
    """The reason why the term may not be swapped in this text; '' where it may."""
    titles = marks(text, names(text))
    places = [(sentence, place) for sentence, inside in claims.items() for place in inside]
    for _, (start, end) in places:
        if text[start:end] not in says and any(titles[start:end]):
            return f"{text[start:end]} is part of a name"
    if any(_denied(text, sentence, place) for sentence, place in places):
        return f"a sentence denies {text[slice(*places[0][1])]}"
    if beside := [word for word in fact.unless if mentions(text, word)]:
        return f"{beside[0]} stands in the text, beside which the swap would contradict itself"
    return ""


def _affirms(sentence: str) -> bool:
    """Return whether it is a statement of some length that denies nothing."""
    enough = len(content_words(sentence)) >= _MIN_WORDS
    return enough and not negations(sentence) and not sentence.endswith("?")


def _speaks(sentence: str, question: str, words: WordList) -> bool:
    """Return whether the sentence, or the question, is about the subject of the list."""
    both = f"{sentence} {question}"
    return not words.speaks_of or any(mentions(both, word) for word in words.speaks_of)


def _names(text: str, fact: Fact) -> bool:
    return not fact.about or any(mentions(text, subject) for subject in fact.about)


def _places(text: str, forms: Sequence[str]) -> list[Place]:
    """The places of forms as whole words, the longest where two begin; not in links."""
    any_form = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    matches = re.finditer(rf"(?<![\w/-])(?:{any_form})(?![\w/])", text, re.IGNORECASE)
    places = [match.span() for match in matches]
    kept = marks(text, references(text) if places else ())
    return [place for place in places if not any(kept[slice(*place)])]


def _inside(sentence: Sentence, places: Sequence[Place]) -> Sequence[Place]:
    """Those of `places`, which are in order, that lie in the sentence."""
    first, last = (
        bisect_left(places, end, key=itemgetter(0)) for end in (sentence.start, sentence.end)
    )
    return [place for place in places[first:last] if place[1] <= sentence.end]


def _denied(text: str, sentence: Sentence, place: Place) -> bool:
    start, end = place
    before = text[max(sentence.start, start - NEAR) : start]
    after = text[end : min(sentence.end, end + NEAR)]
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after))


def _in_case(old: str, new: str, forms: Sequence[str]) -> str:
    """`new` written as `old` is: in capitals, or with a capital, where the list's form is not."""
    if old in forms:
        return new
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new
