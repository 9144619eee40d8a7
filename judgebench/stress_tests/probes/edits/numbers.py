"""Make one number of an answer false: a dose ten times off, another count, another unit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from random import Random
from typing import Literal

from judgebench.records import Answer
from judgebench.stress_tests.probes.altered import Edited, Nothing
from judgebench.stress_tests.probes.text import (
    MOST_TRIED,
    NEAR,
    NUMBER,
    content_words,
    marks,
    names,
    put,
    references,
    statements,
)
from judgebench.texts import Sentence

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


def dose_by_ten(answer: Answer, rng: Random) -> Edited | Nothing:
    """One dose, a number with a unit of mass or volume, ten times as large or as small."""
    found = _quantities(answer.text, _DOSE_UNITS)
    return _edited(answer, found, _ten_times, rng) or Nothing("no dose stands in the text")


def change_number(answer: Answer, rng: Random) -> Edited | Nothing:
    """One duration, share, age, temperature or count by half or more, at most threefold."""
    found = _quantities(answer.text, _COUNT_UNITS)
    nothing = Nothing("no number stands in the text that a changed one would make false")
    return _edited(answer, found, _other_number, rng) or nothing


def change_unit(answer: Answer, rng: Random) -> Edited | Nothing:
    """The unit of one number made a larger or smaller one of its kind; the number stays."""
    units = (*_OTHER_UNITS, *(f"{unit}s" for unit in _OTHER_UNITS))
    found = _quantities(answer.text, units)
    nothing = Nothing("no number with a unit that has a larger or smaller one stands in the text")
    return _edited(answer, found, _other_unit, rng) or nothing


def _edited(answer: Answer, found: list[_Quantity], change: _Change, rng: Random) -> Edited | None:
    """One quantity changed wherever it stands; one that stands once comes first, for then nothing
    but one claim becomes false."""
    texts = Counter(quantity.text for quantity in found)
    once = [quantity for quantity in found if texts[quantity.text] == 1]
    each = list({quantity.text: quantity for quantity in reversed(found)}.values())
    for group in (once[:MOST_TRIED], each[-MOST_TRIED:]):
        offers = [(q, new) for q in group for new in change(q) if _tells(q, new, answer.text)]
        if offers:
            quantity, new = rng.choice(offers)
            places = [(q.start, q.end) for q in found if q.text == quantity.text]
            inside = _inside(quantity)
            claim = put(quantity.sentence.text, [inside], [new])
            text = put(answer.text, places, [new] * len(places))
            return Edited(text, claim, quantity.sentence.text)
    return None


def _inside(quantity: _Quantity) -> tuple[int, int]:
    return quantity.start - quantity.sentence.start, quantity.end - quantity.sentence.start


def _tells(quantity: _Quantity, new: str, text: str) -> bool:
    """Whether old and new claim can be told apart by their words, and the new one is new."""
    old = quantity.sentence.text
    before, after = content_words(old), content_words(put(old, [_inside(quantity)], [new]))
    return bool(before - after) and bool(after - before) and new not in text


def _quantities(text: str, units: tuple[str, ...]) -> list[_Quantity]:
    """The quantities of a text that carry a claim: in a statement, and not part of a larger one."""
    any_unit = "|".join(sorted(map(re.escape, units), key=len, reverse=True))
    pattern = re.compile(
        rf"({NUMBER.pattern})(?:({_RANGE})((?>\d+(?:[.,]\d+)*)))?(\s?-?)({any_unit})(?![\w°])",
        re.IGNORECASE,
    )
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
    """Where a number may go so that the sentence becomes false."""
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
    """Whether the unit can be written beside the number: of inches, only the plural is known."""
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
