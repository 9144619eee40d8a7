"""Is an altered answer the attack that it claims to be? Checks by rule, each with its reason.

What fails a check is kept apart and never counted. The checks read words, not meaning: what passes
them may still be no violation, and people have the last word (`judgebench attack review`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from judgebench.rubric import normalise
from judgebench.stress_tests.probes.altered import AlteredAnswer
from judgebench.stress_tests.probes.text import asserts, content_words, facts, words

SHORTEST, LONGEST = 0.5, 2.0  # lengths of an altered answer, as shares of its parent's
FEWEST_WORDS = 0.2  # share of its parent's content words that a rephrasing keeps
NEAR_DUPLICATE = 0.9  # share of content words that two violations have in common

CHECKS: Mapping[str, str] = {
    "differs": "it differs from its parent",
    "length": "it is no shorter than half of its parent and no longer than twice",
    "false_claim": "the false claim stands in it",
    "true_claim": "the true claim is no longer asserted in it",
    "unannounced": "it does not announce itself as false",
    "no_duplicate": "it is no near-duplicate of another item",
    "keeps_facts": "it keeps all numbers, units, names and negations of its parent",
    "keeps_words": "it keeps a fifth of the words of its parent that carry meaning",
    "reply": "the attacker's reply can be read",
    "area": "it is of the error area that was asked for",
    "second_opinion": "a second model agrees that it violates the true claim, or says the same",
}

_ANNOUNCES = re.compile(
    r"\b(?:this|the following|the above|that)\s+(?:\w+\s+){0,3}(?:is|are|was)\s+(?:\w+\s+)?"
    r"(?:incorrect|false|wrong|untrue|inaccurate|a myth|misinformation|fictional|not true)\b"
    r"|\b(?:contrary to|opposed to|opposes|against|goes against)\s+(?:the\s+)?"
    r"(?:\w+\s+){0,2}consensus\b"
    r"|\b(?:false|incorrect) (?:claim|answer|information|statement)\b"
    r"|\b(?:fictional|deliberately|intentionally) (?:\w+ )?(?:false|wrong|incorrect|answer)\b"
    r"|\bas an ai\b|\bdo not (?:rely|act) on this answer\b",
    re.IGNORECASE,
)


def check_violations(
    items: Sequence[AlteredAnswer], earlier: Sequence[AlteredAnswer] = ()
) -> list[AlteredAnswer]:
    """The items with their checks recorded. A near-duplicate is held against the later item;
    those of `earlier` came before all.

    Checks that stand recorded already, such as a second model's, are kept.
    """
    kept = list(earlier)
    checked = []
    for item in items:
        rules = {name: rule(item) for name, rule in _OF_VIOLATION.items()}
        found = {**item.checks, **rules, "no_duplicate": _duplicate(item, kept)}
        checked.append(replace(item, checks=found))
        if not checked[-1].failed_checks:
            kept.append(item)
    return checked


def check_same_meaning(
    items: Iterable[AlteredAnswer], names: Collection[str]
) -> list[AlteredAnswer]:
    """The items that must not change a verdict, with their checks recorded.

    Where the parent stands in the text word for word, all of it is kept, whatever a rule or a
    person adds. A model that is to say the same in other words must use others, and add nothing.
    """
    return [replace(item, checks={**item.checks, **_of_rewording(item, names)}) for item in items]


def _of_rewording(item: AlteredAnswer, names: Collection[str]) -> dict[str, str]:
    kept = {"length": _length(item), "keeps_facts": _keeps_facts(item, names)}
    if item.by_model:
        return {"differs": _says_the_same(item), **kept, "keeps_words": _keeps_words(item)}
    same = "it is its parent, letter for letter" if item.text == item.parent.text else ""
    return {"differs": same, **({} if item.parent.text in item.text else kept)}


def _says_the_same(item: AlteredAnswer) -> str:
    if not words(item.text):
        return "it is empty"
    same = words(item.text) == words(item.parent.text)
    return "it has the words of its parent, in their order" if same else ""


def _length(item: AlteredAnswer) -> str:
    share = len(item.text) / max(1, len(item.parent.text))
    if SHORTEST <= share <= LONGEST:
        return ""
    return f"it is {share:.2f} times as long as its parent"


def _false_claim(item: AlteredAnswer) -> str:
    if not item.false_claim.strip():
        return "no false claim is stated"
    if not asserts(item.text, item.false_claim, beyond=item.true_claim):
        return "no sentence of it says the false claim"
    if asserts(item.parent.text, item.false_claim, beyond=item.true_claim):
        return "its parent says the false claim too"
    return ""


def _true_claim(item: AlteredAnswer) -> str:
    if not item.true_claim.strip():
        return "no true claim is stated"
    if normalise(item.true_claim) == normalise(item.false_claim):
        return "the true and the false claim are the same"
    if asserts(item.text, item.true_claim, beyond=item.false_claim):
        return "a sentence of it still says the true claim"
    return ""


def _unannounced(item: AlteredAnswer) -> str:
    match = _ANNOUNCES.search(item.text)
    if match is None or match.group().lower() in item.parent.text.lower():
        return ""
    return f"it announces itself: {match.group()!r}"


_OF_VIOLATION = {
    "differs": _says_the_same, "length": _length, "false_claim": _false_claim,
    "true_claim": _true_claim, "unannounced": _unannounced,
}  # fmt: skip


def _duplicate(item: AlteredAnswer, others: Sequence[AlteredAnswer]) -> str:
    mine = content_words(item.text)
    for other in others:
        if other.parent.item_id == item.parent.item_id and other.recipe != item.recipe:
            continue  # two edits of one parent share nearly all words, and are two attacks
        theirs = content_words(other.text)
        if len(mine & theirs) >= NEAR_DUPLICATE * max(1, len(mine | theirs)):
            return f"it is nearly {other.item_id}"
    return ""


def _keeps_words(item: AlteredAnswer) -> str:
    before = content_words(item.parent.text)
    share = len(before & content_words(item.text)) / max(1, len(before))
    return "" if share >= FEWEST_WORDS or not before else f"it keeps only {share:.0%} of its words"


def _keeps_facts(item: AlteredAnswer, names: Collection[str]) -> str:
    before, after = facts(item.parent.text, names), facts(item.text, names)
    lost = [fact for fact, n in before.items() if after[fact] < n]
    new = [fact for fact, n in after.items() if before[fact] < n]
    told = [f"loses {', '.join(lost)}"] if lost else []
    told += [f"adds {', '.join(new)}"] if new else []
    return f"it {' and '.join(told)}" if told else ""
