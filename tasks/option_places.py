"""Explanations of exam answers without the numbers of the options.

The options of a question stand in a new order in each of its versions, so that "the answer is 3" is
true in one of them alone, and would give the place away. As in the paper on proxy tasks (section
3.1.1 and its Table 6), sentences that say nothing but which option is right are left out, and every
other reference to a place is replaced by the text that stands there. Numbers of any other kind
(doses, ages, "type 2", "stage 5") stay: a number is taken for a place only where the words around
it say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from judgebench.text import sentences

_UNIT = (
    r"\s?(?:years?|months?|weeks?|days?|hours?|h|minutes?|min|seconds?|mc?g|g|kg|cm|mm|ml|mL|dl|L|"
    r"points?|times|doses?|out|of|or\s+more|Hz|consecutive|remaining|options|answers|nodal|boluses)"
)
_SEPARATOR = r"(?:\s*,\s*(?:and|or)\s+|\s*,\s*|\s+(?:and|or|to|nor|y)\s+(?:the\s+)?|\s*[/&]\s*)"
_NOUN = r"(?:answer|option|alternative|choice|response|proposal|statement|question|diagnos[ei])"
_NAMED = rf"(?:{_NOUN}s?|number|nº|no\.)(?:\s+(?:number|nº|no\.))?\s*[:,]?"
_VERB = (
    r"(?:answer(?:ed|ing)?|choos(?:e|ing)|chose|mark(?:ed)?|opt(?:ed)?\s+for|check|pick(?:ed)?|"
    r"select(?:ed)?|discard(?:s|ed|ing)?|rul(?:es?|ed|ing)\s+out|eliminat(?:es?|ed|ing)|remov(?:es?|"
    r"ed|ing)|exclud(?:es?|ed|ing)|(?:left|stay|stick|remain)(?:s|ed)?\s+with|towards?|prefer|"
    r"consider|except|elimination|options\s+left|be|is|was|than|not|nor|neither|in|do|correct|true|false|one|was\s+the)"
)
_JUDGED = r"(?P<is>correct|incorrect|in-correct|right|wrong|true|false|discarded|valid)"
# What may follow a place without a noun: no unit, no thing that is counted.
_AFTER = (
    r"(?=\s*(?:[.;:?)\]]|,(?!\d)|$|\(|-\s|\.\.\.)|\s+(?:is|are|was|were|would|could|should|can|cannot|"
    r"will|may|might|does|do|don't|doesn't|has|have|also|because|since|as|for|but|which|who|without|"
    r"although|though|due|seems?|refers?|speaks?|and|or|nor|if|when|correct|incorrect|false|true|"
    r"wrong|discarded|appears?|makes?|to\s+be|we|I|it|the|in)\b)"
)
_SUBJECT = (
    r"(?P<lead>^|[,;:(]\s+|\b(?:and|but|so|that|because|since|although|though|if|while|also|only|"
    r"then|therefore|thus|however|both|why|whereas|as|with|rule|statement\s+of)\s*,?\s+)(?P<the>the\s+)?"
)
_PREDICATE = (
    r"(?=\s*(?::|,?\s+(?:is|are|was|were|would|could|should|can|cannot|can't|will|won't|may|might|"
    r"do|does|doesn't|don't|isn't|usually|seems?|refers?|speaks?|makes?|has|have|also|correct|incorrect|"
    r"false|true|wrong|discarded|because|since|we)\b))"
)
_INTRO = (
    r"(?:(?:and|so|thus|hence|therefore|then|finally|clearly|(?:in\s+)?conclusion)\s*[,:]?\s*)*"
)
_OPINION = (
    r"(?:(?:I|we)\s+(?:\w+\s+){0,2}?(?:think|believe|consider|say|mark|choose|answer)\s+"
    r"(?:that\s+)?)?"
)
_RIGHT = (
    r"(?:most\s+)?(?:correct|right|true|valid|appropriate|logical|false|incorrect|wrong|closest)"
)
_IS = r"(?:is|was|are|would\s+be|must\s+be|should\s+be|seems\s+to\s+be|will\s+be)"

# After these a capital stays: what comes before them is mostly somebody's name.
_NAMED_AFTER = r"\w+(?:['’]s\b|-\w+|\s+(?:disease|syndrome|sign|test|fracture|tumou?r)\b)"
_A_PLACE_MAY_STAND = re.compile(r"[1-9]|\b(?:third|fourth|fifth)\b", re.IGNORECASE)
_Rule = tuple[re.Pattern[str], Callable[[re.Match[str], "_Texts"], str]]


class _Texts:
    """The options as parts of a sentence."""

    def __init__(self, options: Sequence[str], around: str) -> None:
        self.options = options
        self.around = around

    def at(self, places: str) -> str:
        """The texts at "1", "1, 2 and 5" or "3 to 5", listed."""
        numbers = [int(digit) for digit in re.findall(r"[1-9]", places)]
        if re.search(r"\d\s+to\s+(?:the\s+)?\d", places) and len(numbers) == 2:
            numbers = list(range(numbers[0], numbers[1] + 1))
        texts = [self._inside(self.options[n - 1]) for n in dict.fromkeys(numbers)]
        word = "or" if re.search(r"\b(?:or|nor)\b", places) else "and"
        return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"

    def _inside(self, option: str) -> str:
        """Without the full stop, and without the capital unless that seems to belong to a name."""
        text = option.strip().rstrip(".;: ")
        first = re.match(r"\w+", text)
        word = first.group() if first else ""
        is_name = (
            not (word[1:].islower() or word in ("A", "I"))
            or re.match(_NAMED_AFTER, text) is not None
            or re.search(rf"[a-z,] {word}\b", self.around) is not None
        )
        return text if is_name else text[:1].lower() + text[1:]

    def without_echo(self, sentence: str) -> str:
        """Say "hernia" for "hernia, hernia" and "hernia (hernia)": it stood beside the number."""
        for option in self.options:
            text = re.escape(option.strip().rstrip(".;: "))
            echo = re.compile(rf"({text})(?:,\s*{text}\b|\s*\({text}\.?\))", re.IGNORECASE)
            sentence = echo.sub(lambda m: m.group(1), sentence)
        return sentence


def neutralise(explanation: str, options: Sequence[str]) -> str:
    """`explanation` without statements of which option is right, and without places of options.

    Lines and sentences keep their order. The result may be empty: nothing but the place was said.
    """
    texts = _Texts(options, explanation)
    kept = []
    for line in explanation.splitlines():
        for sentence in sentences(line):
            text = sentence.text.strip()
            if text and not _announces(text, len(options)):
                kept.append(_rewritten(text, texts))
    return " ".join(text for text in kept if re.search(r"\w", text))


def names_a_place(text: str, n_options: int) -> bool:
    """Whether the text speaks of an option by its place, as far as the rules here can see."""
    rules = _rules(n_options)
    whole = [s.text.strip() for line in text.splitlines() for s in sentences(line)]
    return any(_announces(s, n_options) or any(p.search(s) for p, _ in rules) for s in whole)


def _announces(sentence: str, n_options: int) -> bool:
    """Whether the sentence says which option is right or wrong, and nothing else."""
    return (
        _A_PLACE_MAY_STAND.search(sentence) is not None
        and _announcement(n_options).fullmatch(sentence) is not None
    )


@lru_cache
def _announcement(n_options: int) -> re.Pattern[str]:
    places = _places(n_options).replace("?P<places>", "?:")  # it is used twice
    the = r"(?:(?:the|our|my)\s+)?"
    return re.compile(
        rf"{_INTRO}{_OPINION}(?:"
        rf"{the}(?:{_RIGHT}\s+)?(?:{_NOUN}s?|one)?(?:\s+to\s+(?:this|the)\s+question)?"
        rf"\s*(?:(?:{_IS})\s*[:,]?\s*(?:\w+ly\s+)?|[:,]\s*)?(?:the\s+)?(?:{_NAMED}\s*)?{places}"
        rf"|(?:{_NAMED}\s*)?{places}\s*[:,]?\s*(?:it\s+)?(?:{_IS}\s+)?(?:also\s+)?{the}{_RIGHT}"
        rf"(?:\s+(?:one|answer|option))?"
        rf")(?:,?\s*(?:without\s+a?\s*doubt|in\s+my\s+opinion))?\s*[.!:;]*",
        re.IGNORECASE,
    )


def _places(n_options: int) -> str:
    one = rf"[1-{n_options}](?![\w%°/]|\.\d|-\d|{_UNIT}\b)"
    return rf"(?P<places>{one}(?:{_SEPARATOR}{one})*)"


@lru_cache
def _rules(n_options: int) -> tuple[_Rule, ...]:
    """What is replaced, in this order: the surer signs first."""
    places = _places(n_options)

    def rule(pattern: str, replace: Callable[[re.Match[str], _Texts], str]) -> _Rule:
        return re.compile(pattern, re.IGNORECASE), replace

    return (
        rule(rf"\s*[(\[]\s*{places}\s*[)\]](?=\W|$)", lambda m, t: ""),
        rule(
            rf"\b(?:the\s+)?{_JUDGED}\s+(?:{_NOUN}s?)\s*(?:number\s*)?[:,]?\s*{places}",
            lambda m, t: _verdict(m, t),
        ),
        rule(
            rf"\b(?:the\s+)?{_NAMED}\s*{places}\s*,?\s+{_JUDGED}(?!\s+(?:if|one|answer|option))\b",
            lambda m, t: _verdict(m, t),
        ),
        rule(rf"(?<=\(){places}\s+{_JUDGED}(?=\s*\))", lambda m, t: _verdict(m, t)),
        rule(rf"\b(?:the\s+)?{_NAMED}\s*{places}", lambda m, t: t.at(m["places"])),
        rule(
            rf"(?P<lead>\b{_NOUN}s?\b[^.;()\d]{{0,60}}?\b{_IS}[:,]?\s+(?:[^.;()\d]{{0,25}},\s+)?)"
            rf"(?:the\s+)?{places}{_AFTER}",
            lambda m, t: m["lead"] + t.at(m["places"]),
        ),
        rule(
            rf"(?P<lead>(?:^|\b(?:doubts?|hesitate|choose|stay|are|is|be|so|and)\s+)between\s+)"
            rf"{places}(?=\s*[,.;]|\s+there\b|$)",
            lambda m, t: m["lead"] + t.at(m["places"]),
        ),
        rule(
            rf"(?P<lead>\b{_VERB}\s*[,:]?\s+)(?:the\s+)?{places}{_AFTER}",
            lambda m, t: m["lead"] + t.at(m["places"]),
        ),
        rule(
            rf"(?<!\d)(?<!\d ){_SUBJECT}{places}{_PREDICATE}",
            lambda m, t: m["lead"] + t.at(m["places"]),
        ),
        rule(
            r"\bthe\s+(?P<nth>third|fourth|fifth)(?:\s+(?:answer|option|alternative|one))?"
            r"(?=\s+(?:is|are|would|could|seems)\b)",
            lambda m, t: _nth(m, t),
        ),
    )


def _verdict(match: re.Match[str], texts: _Texts) -> str:
    """`(wrong answer 2)` as `(text is wrong)`."""
    places = match["places"]
    verb = "are" if len(re.findall(r"\d", places)) > 1 else "is"
    return f"{texts.at(places)} {verb} {match['is'].lower()}"


def _nth(match: re.Match[str], texts: _Texts) -> str:
    place = {"third": 3, "fourth": 4, "fifth": 5}[match["nth"].lower()]
    return texts.at(str(place)) if place <= len(texts.options) else match.group()


def _rewritten(sentence: str, texts: _Texts) -> str:
    before = sentence
    if _A_PLACE_MAY_STAND.search(sentence) is None:
        return sentence
    for pattern, replace in _rules(len(texts.options)):
        sentence = pattern.sub(partial(_replaced, replace, texts), sentence)
    if sentence == before:
        return sentence
    sentence = texts.without_echo(sentence)
    sentence = re.sub(r"\s+([.,;:)])", r"\1", re.sub(r"\s{2,}", " ", sentence)).strip(" ,")
    return sentence[:1].upper() + sentence[1:]


def _replaced(
    replace: Callable[[re.Match[str], _Texts], str], texts: _Texts, match: re.Match[str]
) -> str:
    return replace(match, texts)
