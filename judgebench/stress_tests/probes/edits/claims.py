"""Make one claim false: a term swapped for one that breaks its fact, a warning turned around."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter
from random import Random

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer
from judgebench.stress_tests.probes.altered import Edit, Edited, Nothing
from judgebench.stress_tests.probes.text import (
    MOST_TRIED,
    NEAR,
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
from judgebench.stress_tests.probes.words import Fact, WordList
from judgebench.texts import Sentence, sentences

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
    """Why the term may not be swapped in this text; '' where it may."""
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
    """Whether it is a statement of some length that denies nothing."""
    enough = len(content_words(sentence)) >= _LEAST_WORDS
    return enough and not negations(sentence) and not sentence.endswith("?")


def _speaks(sentence: str, question: str, words: WordList) -> bool:
    """Whether the sentence, or the question, is about what the list is about."""
    said = f"{sentence} {question}"
    return not words.speaks_of or any(mentions(said, word) for word in words.speaks_of)


def _names(text: str, fact: Fact) -> bool:
    return not fact.about or any(mentions(text, subject) for subject in fact.about)


def _places(text: str, forms: Sequence[str]) -> list[tuple[int, int]]:
    """Where a form stands as whole words, the longest where two begin; not in links."""
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
