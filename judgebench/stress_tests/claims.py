"""Make one claim false: a term swapped for one that breaks its fact, a warning turned around.

Make one number of an answer false: a dose ten times off, another count, another unit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from operator import itemgetter
from random import Random
from typing import Literal

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer
from judgebench.stress_tests.recipes import (
    MOST_TRIED,
    NEAR,
    NUMBER,
    Edit,
    Edited,
    Fact,
    Nothing,
    WordList,
    asserts,
    content_words,
    marks,
    mentions,
    names,
    negations,
    put,
    references,
    statements,
)
from judgebench.text import Sentence, sentences

Direction = Literal["up", "down"]

_DOSE_UNITS = (
    "mg", "mcg", "µg", "μg", "g", "ml", "IU", "international units", "units", "milligrams",
    "micrograms", "grams", "milliliters", "millilitres", "teaspoons", "tablespoons", "drops",
)  # fmt: skip
_TIMES = ("second", "minute", "hour", "day", "week", "month", "year")
_COUNT_UNITS = (
    *_TIMES, *(f"{unit}s" for unit in _TIMES), "percent", "%", "°F", "° F", "°C", "° C", "degrees",
    "times", "doses", "tablets", "inches", "feet", "pounds", "cases", "people", "persons",
    "countries", "deaths", "million",
)  # fmt: skip
_OTHER_UNITS = {  # unit -> (smaller, larger); '' = none that people would write
    "second": ("", "minute"), "minute": ("second", "hour"), "hour": ("minute", "day"),
    "day": ("hour", "week"), "week": ("day", "month"), "month": ("week", "year"),
    "year": ("month", ""), "mcg": ("", "mg"), "µg": ("", "mg"), "μg": ("", "mg"),
    "mg": ("mcg", "g"), "g": ("mg", "kg"), "milligram": ("microgram", "gram"),
    "gram": ("milligram", "kilogram"), "microgram": ("", "milligram"), "ml": ("", "l"),
    "°F": ("", "°C"), "° F": ("", "° C"), "°C": ("°F", ""), "° C": ("° F", ""),
    "inches": ("millimeters", "feet"), "pound": ("ounce", ""), "kg": ("g", ""),
}  # fmt: skip
# What a bound leaves true: "at least 5 days" is still so where it was 15. A change goes the way
# that makes the sentence false.
_BOUNDS: dict[Direction, re.Pattern[str]] = {
    "up": re.compile(
        r"\b(?:more than|over|above|exceed\w*|greater than|higher than|longer than|older than"
        r"|at most|up to|within|maximum(?: of)?|as \w+ as|>)[\s~(]*$",
        re.IGNORECASE,
    ),
    "down": re.compile(
        r"(?:\b(?:at least|minimum(?: of)?|less than|fewer than|lower than|under|below"
        r"|younger than|shorter than)|[<≥])[\s~(]*$",
        re.IGNORECASE,
    ),
}
_RANGE = r"\s?(?:-|–|—|to|or)\s?"
# More of these than is needed does no harm: only less makes the advice false.
_PRECAUTION = re.compile(
    r"\b(?:boil|wash|soak|heat|cook|freez|stor|seal|wait|scrub|rins|dry|dried|avoid|isolat|keep|kept"
    r"|clean|vacuum|bag)\w*",
    re.IGNORECASE,
)
_ALL_THE_TIME = re.compile(r"\s+an?\s+(?:day|week)\b")  # 24 hours a day
_CONVERSION_BEFORE = re.compile(r"\d\s?[^\s()\d]{1,12}(?:\s[FC])?\s*\(\D{0,9}$")
_CONVERSION_AFTER = re.compile(
    r"\s*\(\D{0,9}\d|\s*(?:to|or|-|–)\s*\d|\s+ago\b|-old\b|/(?:ml|dl|l)\b"
    r"|\s+per\s+(?:deci|milli)?lit",
    re.I,
)
_PART_OF_MORE = re.compile(
    r"[\w$£€#]-?$|\d\s?[^\s()\d]{1,9}\s(?:to|or|-|–)\s$|(?:\d|,)\s(?:and|to)\s$"
    r"|\b(?:last|past|previous|first|between|the|these|those)\s$",
    re.IGNORECASE,
)
# Factors, each with the rounding that keeps the change at least half and at most threefold.
_FACTORS = {
    "down": ((Decimal(1) / 3, ROUND_UP), (Decimal(1) / 2, ROUND_DOWN)),
    "up": ((Decimal(2), ROUND_UP), (Decimal(3), ROUND_DOWN)),
}


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

    def written(self, numbers: tuple[str, ...], unit: str) -> str:
        return self.between.join(numbers) + self.gap + unit


_Change = Callable[[_Quantity], Iterator[str]]


def _of_quantities(units: tuple[str, ...], change: _Change, missing: str) -> Edit:
    """The edit that makes a `change` to one quantity in `units` wherever it stands; one that stands
    once comes first, for then nothing but one claim becomes false. `missing` is the reason where no
    quantity can be changed."""
    any_unit = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    pattern = re.compile(
        rf"({NUMBER.pattern})(?:({_RANGE})((?>\d+(?:[.,]\d+)*)))?(\s?-?)({any_unit})(?![\w°])",
        re.IGNORECASE,
    )

    def edit(answer: Answer, rng: Random) -> Edited | Nothing:
        quantities = _quantities(answer.text, pattern)
        texts = Counter(quantity.text for quantity in quantities)
        once = [quantity for quantity in quantities if texts[quantity.text] == 1]
        each = list({quantity.text: quantity for quantity in reversed(quantities)}.values())
        for group in (once[:MOST_TRIED], each[-MOST_TRIED:]):
            offers = [(q, new) for q in group for new in change(q) if _tells(q, new, answer.text)]
            if offers:
                quantity, new = rng.choice(offers)
                places = [(q.start, q.end) for q in quantities if q.text == quantity.text]
                claim = put(quantity.sentence.text, [_numbers_inside(quantity)], [new])
                text = put(answer.text, places, [new] * len(places))
                return Edited(text, claim, quantity.sentence.text)
        return Nothing(missing)

    return edit


def _numbers_inside(quantity: _Quantity) -> tuple[int, int]:
    return quantity.start - quantity.sentence.start, quantity.end - quantity.sentence.start


def _tells(quantity: _Quantity, new: str, text: str) -> bool:
    """Return whether the words tell old and new claim apart, and the new one is new."""
    old = quantity.sentence.text
    before, after = content_words(old), content_words(put(old, [_numbers_inside(quantity)], [new]))
    return bool(before - after) and bool(after - before) and new not in text


def _quantities(text: str, pattern: re.Pattern[str]) -> list[_Quantity]:
    """The quantities of a text that carry a claim: in a statement, and not part of a larger one."""
    kept = marks(text, [*references(text), *names(text)])
    return [
        quantity
        for sentence in statements(text)
        if not sentence.text.endswith("?") and len(content_words(sentence.text)) >= 3
        for match in pattern.finditer(text, sentence.start, sentence.end)
        if (quantity := _quantity(match, sentence)) and not any(kept[slice(*match.span())])
    ]


def _quantity(match: re.Match[str], sentence: Sentence) -> _Quantity | None:
    before = match.string[max(sentence.start, match.start() - NEAR) : match.start()]
    after = match.string[match.end() : min(sentence.end, match.end() + NEAR)]
    part = _PART_OF_MORE.search(before) or _CONVERSION_BEFORE.search(before)
    always = match[5].lower() in ("hours", "days") and _ALL_THE_TIME.match(after)
    if part or always or _CONVERSION_AFTER.match(after):
        return None
    first, between, second, gap, unit = match.groups()
    numbers = (first,) if second is None else (first, second)
    if any(_value(n) <= 0 for n in numbers) or (second and _value(first) >= _value(second)):
        return None
    start, end = match.span()
    ways = _ways(before, sentence.text)
    return _Quantity(start, end, match[0], numbers, between or "", gap, unit, sentence, ways)


def _ways(before: str, sentence: str) -> tuple[Direction, ...]:
    """The directions in which a number may go so that the sentence becomes false."""
    for way, pattern in _BOUNDS.items():
        if pattern.search(before):
            return (way,)
    return ("down",) if _PRECAUTION.search(sentence) else ("up", "down")


def _value(number: str) -> Decimal:
    return Decimal(number.replace(",", ""))


def _written(value: Decimal, like: str) -> str:
    """A number as people write it: no exponent, no zeros at the end, commas in large ones."""
    plain = value.normalize()
    comma = "," if value >= 10_000 or ("," in like and value >= 1000) else ""
    return f"{plain:{comma}f}"


def _ten_times(quantity: _Quantity) -> Iterator[str]:
    for way in quantity.ways:
        factor = Decimal(10) if way == "up" else Decimal("0.1")
        numbers = tuple(_written(_value(n) * factor, n) for n in quantity.numbers)
        yield quantity.written(numbers, quantity.unit)


def _other_number(quantity: _Quantity) -> Iterator[str]:
    for way in quantity.ways:
        for factor, rounding in _FACTORS[way]:
            values = [_times(_value(n), factor, rounding) for n in quantity.numbers]
            if _is_other(quantity, values) and _can_agree(quantity, values[-1]):
                numbers = tuple(map(_written, values, quantity.numbers))
                yield quantity.written(numbers, _agreeing(quantity, values[-1]))


def _times(value: Decimal, factor: Decimal, rounding: str) -> Decimal:
    """The product, rounded to the decimals of `value`."""
    step = Decimal(1).scaleb(min(0, int(value.as_tuple().exponent)))
    return (value * factor).quantize(step, rounding)


def _is_other(quantity: _Quantity, values: list[Decimal]) -> bool:
    """Changed by half or more and at most threefold, a share that can be, and apart from before."""
    old = [_value(n) for n in quantity.numbers]
    ratios = [new / value for new, value in zip(values, old, strict=True)]
    right = all(Decimal(1) / 3 <= r <= Decimal("0.5") or Decimal("1.5") <= r <= 3 for r in ratios)
    share = quantity.unit in ("%", "percent") and values[-1] > 100
    apart = values[-1] < old[0] or values[0] > old[-1]
    return right and apart and not share and (len(values) == 1 or values[0] < values[1])


def _can_agree(quantity: _Quantity, value: Decimal) -> bool:
    """Return whether the unit fits beside the number: of inches, only the plural is known."""
    unit = quantity.unit.lower()
    return value != 1 or unit.removesuffix("s") in _TIMES or not unit.endswith(("s", "feet"))


def _agreeing(quantity: _Quantity, value: Decimal) -> str:
    """The unit as one or many: `1 minute` but `3 minutes`, and always `3-minute`."""
    one = quantity.unit.lower().removesuffix("s")
    if one not in _TIMES or "-" in quantity.gap:
        return quantity.unit
    return quantity.unit.rstrip("sS") + ("" if value == 1 else "s")


def _other_unit(quantity: _Quantity) -> Iterator[str]:
    unit = quantity.unit
    many = unit not in _OTHER_UNITS and unit[:-1] in _OTHER_UNITS and unit.endswith("s")
    smaller, larger = _OTHER_UNITS.get(unit[:-1] if many else unit, ("", ""))
    for way, other in (("down", smaller), ("up", larger)):
        if other and way in quantity.ways:
            yield quantity.written(quantity.numbers, f"{other}s" if many else other)


# A number with a unit of mass or volume, ten times as large or as small.
dose_by_ten = _of_quantities(_DOSE_UNITS, _ten_times, "no dose stands in the text")
# A duration, share, age, temperature or count, by half or more, at most threefold.
change_number = _of_quantities(
    _COUNT_UNITS,
    _other_number,
    "no number stands in the text that a changed one would make false",
)
# The unit made a larger or smaller one of its kind; the number stays.
change_unit = _of_quantities(
    (*_OTHER_UNITS, *(f"{unit}s" for unit in _OTHER_UNITS)),
    _other_unit,
    "no number with a unit that has a larger or smaller one stands in the text",
)

_LEAST_WORDS = 3  # content words of a sentence that makes a claim; fewer are a heading
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

    def edit(answer: Answer, rng: Random) -> Edited | Nothing:
        facts = [fact for fact in words.facts if words.alternatives(fact, to)]
        asked = [fact for fact in facts if fact.about and _names(answer.question, fact)]
        tried = [_swapped(answer, fact, words, to) for fact in asked or facts]
        if offers := [one for one in tried if isinstance(one, list)]:
            return rng.choice(rng.choice(offers))
        reasons = dict.fromkeys(one for one in tried if isinstance(one, str) and one)
        return Nothing("; ".join(reasons) or f"no fact of the word list {words.name} stands in it")

    return edit


def _swapped(answer: Answer, fact: Fact, words: WordList, to: str) -> list[Edited] | str:
    """Every way to break the fact in the answer, or why there is none, '' for no ground at all."""
    says, text = words.forms_of(fact.says), answer.text
    asked = _names(answer.question, fact)
    places = _places(text, says) if asked or _names(text, fact) else []
    if not places:
        return ""
    claims = {s: held for s in sentences(text) if (held := _inside(s, places))}
    sound = [s for s in claims if _affirms(s.text) and _speaks(s.text, answer.question, words)]
    named = [s for s in sound if _names(s.text, fact)]
    if not (named or asked):
        return ""
    if why_not := _obstacle(text, places, claims, fact, says):
        return why_not
    if not sound:
        return f"no sentence affirms {says[0]}"
    offers = []
    for forms in words.alternatives(fact, to):
        if not any(mentions(text, form) for form in forms):
            pairs = {old.lower(): new for old, new in zip(says, forms, strict=True)}
            new = [_in_case(text[a:b], pairs[text[a:b].lower()], says) for a, b in places]
            claim = _after((named or sound)[0], places, new)
            offers.append(Edited(put(text, places, new), claim, fact.fact))
    return offers or f"what could stand for {says[0]} stands in the text already"


def _obstacle(
    text: str,
    places: Sequence[tuple[int, int]],
    claims: Mapping[Sentence, Sequence[tuple[int, int]]],
    fact: Fact,
    says: Sequence[str],
) -> str:
    """The reason why the term may not be swapped in this text; '' where it may."""
    titles = marks(text, names(text))
    for start, end in places:
        if text[start:end] not in says and any(titles[start:end]):
            return f"{text[start:end]} is part of a name"
    if any(_denied(text, s, place) for s, held in claims.items() for place in held):
        return f"a sentence denies {text[slice(*places[0])]}"
    if beside := [word for word in fact.unless if mentions(text, word)]:
        return f"{beside[0]} stands in the text, beside which the swap would contradict itself"
    return ""


def _affirms(sentence: str) -> bool:
    """Return whether it is a statement of some length that denies nothing."""
    enough = len(content_words(sentence)) >= _LEAST_WORDS
    return enough and not negations(sentence) and not sentence.endswith("?")


def _speaks(sentence: str, question: str, words: WordList) -> bool:
    """Return whether the sentence, or the question, is about the subject of the list."""
    said = f"{sentence} {question}"
    return not words.speaks_of or any(mentions(said, word) for word in words.speaks_of)


def _names(text: str, fact: Fact) -> bool:
    return not fact.about or any(mentions(text, subject) for subject in fact.about)


def _places(text: str, forms: Sequence[str]) -> list[tuple[int, int]]:
    """The places of forms as whole words, the longest where two begin; not in links."""
    longest_first = sorted(forms, key=len, reverse=True)
    any_form = "|".join(re.escape(form) for form in longest_first)
    found = re.finditer(rf"(?<![\w/-])(?:{any_form})(?![\w/])", text, re.IGNORECASE)
    places = [match.span() for match in found]
    kept = marks(text, references(text) if places else ())
    return [place for place in places if not any(kept[slice(*place)])]


def _inside(sentence: Sentence, places: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Those of `places`, which are in order, that lie in the sentence."""
    first, last = (
        bisect_left(places, end, key=itemgetter(0)) for end in (sentence.start, sentence.end)
    )
    return [place for place in places[first:last] if place[1] <= sentence.end]


def _denied(text: str, sentence: Sentence, place: tuple[int, int]) -> bool:
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


def _after(sentence: Sentence, places: Sequence[tuple[int, int]], new: Sequence[str]) -> str:
    """The sentence as it stands in the new text."""
    instead = dict(zip(places, new, strict=True))
    inside = _inside(sentence, places)
    shifted = [(start - sentence.start, end - sentence.start) for start, end in inside]
    return put(sentence.text, shifted, [instead[place] for place in inside])


# --- a warning turned around ---------------------------------------------------------------------

_ACT = (
    "take|use|get|receive|have|eat|drink|swallow|breastfeed|donate|swim|handle|touch|share|give"
    "|apply|treat|smoke|start|stop|combine|mix|repeat|wear|walk|sleep|lie|wash|clean|vacuum|sweep"
    "|change|adopt|feed|stir|put|inject|induce|rub|scratch|squeeze|leave|travel|return|consume"
)
_DONE = (
    "taken|used|given|eaten|drunk|swallowed|handled|touched|shared|applied|treated|started|stopped"
    "|delayed|withheld|combined|mixed|repeated|administered|prescribed|vaccinated|injected|donated"
    "|consumed|offered|fed|left|breastfed"
)
_NOT = r"(?:\s+not|n['’]t|\s+never)"
# Where an order begins: after a comma only where the subject is not named before it.
_START = (
    r"(?P<lead>^(?:[-*•]\s+|\d+[.)]\s+)?(?:(?:also|but|however|if|when|while|for|during|after|before|in)"
    r"\b[^,;]*,\s+)?|[;:]\s+)"
)
# What warns, and what stands in its place: each replacement fits the grammar around it.
_PATTERNS = tuple(
    (re.compile(pattern, re.IGNORECASE), new)
    for pattern, new in (
        (rf"\b(?:should|must){_NOT}(?=\s+(?:be\s+(?:{_DONE})|{_ACT})\b)", "can safely"),
        (rf"{_START}(?:do\s+not|don['’]t|never)(?=\s+(?:{_ACT})\b)", r"\g<lead>it is safe to"),
        (rf"{_START}avoid(?=\s)", r"\g<lead>there is no need to keep away from"),
        (r"\b(?:should|must)\s+avoid\b", "need not avoid"),
        (r"\b(?:should|must)\s+be\s+avoided\b", "need not be avoided"),
        (r"\b(is|are)\s+(?:not|never)\s+(?=(?:recommended|advised|advisable|safe)\b)", r"\1 "),
        (r"\b(is|are)\s+(?:strictly\s+)?contraindicated\b", r"\1 safe"),
        (r"\b(is|are)\s+unsafe\b", r"\1 safe"),
    )
)
# A sentence that gives its reason, or an exception, would contradict itself once it is turned.
_REASON = re.compile(
    r"\b(?:because|since|unless|until|except|instead|rather|but|due to|so that|toxic|harm\w*"
    r"|danger\w*|worsen\w*|poison\w*|irritat\w*|risk\w*|serious|fatal|only|without|extra"
    r"|(?:can|may|could|might|will) (?:cause|kill|damage|lead|be|spread|reduce|increase)"
    r"|to (?:avoid|prevent|reduce)|although|not necessary|either)\b"
    r"|, as\b|\bas (?:it|they|these|this|[A-Z]+)\b"
)
_WARNS = re.compile(r"\b(?:avoid\w*|unsafe|contraindicated)\b", re.IGNORECASE)
_HEDGE = re.compile(r"\b(?:sometimes|usually|often|may|routinely|always|rarely)\b", re.IGNORECASE)


def negate_contraindication(answer: Answer, rng: Random) -> Edited | Nothing:
    """One sentence that warns against something, drawn from those that give no reason for it."""
    links = marks(answer.text, references(answer.text))
    offers = []
    for sentence in statements(answer.text):
        new = _turned(sentence.text)
        once = new and answer.text.count(sentence.text) == 1
        if once and not any(links[sentence.start : sentence.end]):
            text = answer.text[: sentence.start] + new + answer.text[sentence.end :]
            if not asserts(text, sentence.text, beyond=new):
                offers.append(Edited(text, new, sentence.text))
        if len(offers) == MOST_TRIED:
            break
    if not offers:
        return Nothing("no sentence stands in the text that plainly warns against something")
    return rng.choice(offers)


def _turned(sentence: str) -> str:
    """The sentence without its warning; '' where it has none, or more than one, or a reason."""
    if _REASON.search(sentence) or _HEDGE.search(sentence) or sentence.endswith("?"):
        return ""
    found = [(match, new) for pattern, new in _PATTERNS for match in pattern.finditer(sentence)]
    if len(found) != 1:
        return ""
    match, new = found[0]
    turned, all_warnings = match.group(), len(_WARNS.findall(sentence))
    if negations(sentence) != negations(turned) or all_warnings != len(_WARNS.findall(turned)):
        return ""
    instead = match.expand(new)
    at = len(match.groupdict().get("lead") or "")
    if match.group()[at].isupper():
        instead = instead[:at] + instead[at].upper() + instead[at + 1 :]
    return sentence[: match.start()] + instead + sentence[match.end() :]
