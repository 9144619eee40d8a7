"""Sets of altered answers as JSONL: one line per item, readable and writable by hand.

A line needs `item_id`, `parent` (the sound answer), `text` (the altered one) and either
`must_worsen` or `must_not_change: true`; usually also `question`, and a violation `false_claim` and
`true_claim`. What a generator knows beside is kept; of a line without it, the set's name and
content stand in.

Is an altered answer the attack that it claims to be? Checks by rule, each with its reason. What
fails a check stays in the set with its reasons and never counts. The checks read words, not
meaning: what passes them may still be no violation, and people have the last word (`judgebench
stress attacks review`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import (
    StrictModel,
    drop_torn_line,
    read_lines,
    read_text,
    to_line,
    validate,
    write_atomically,
)
from judgebench.people.page import Item, Question, read_decisions, review_page
from judgebench.records import Answer, Part, content_hash
from judgebench.rubric import Rubric, normalise
from judgebench.stress_tests.recipes import (
    BY_HAND,
    AlteredAnswer,
    MetricLabels,
    asserts,
    check_demand,
    content_words,
    facts,
    marked,
    word_names,
    words,
)

SHORTEST, LONGEST = 0.5, 2.0  # lengths of an altered answer, as shares of its parent's
FEWEST_WORDS = 0.2  # share of its parent's content words that a rephrasing keeps
NEAR_DUPLICATE = 0.9  # share of content words that two violations have in common

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


def with_checks(
    items: Iterable[AlteredAnswer], earlier: Sequence[AlteredAnswer] = ()
) -> list[AlteredAnswer]:
    """The items with their checks recorded. A near-duplicate is held against the later violation;
    those of `earlier` came before all.

    Checks that stand recorded already, such as that of a model's reply, are kept.
    """
    violations, checked = list(earlier), []
    for item in items:
        rules = _of_violation(item, violations) if item.must_worsen else _of_same_meaning(item)
        checked.append(replace(item, checks={**item.checks, **rules}))
        if item.must_worsen and not checked[-1].failed_checks:
            violations.append(item)
    return checked


def _of_violation(item: AlteredAnswer, others: Sequence[AlteredAnswer]) -> dict[str, str]:
    return {
        "differs": _says_the_same(item),
        "length": _length(item),
        "false_claim": _false_claim(item),
        "true_claim": _true_claim(item),
        "unannounced": _unannounced(item),
        "no_duplicate": _duplicate(item, others),
    }


def _of_same_meaning(item: AlteredAnswer) -> dict[str, str]:
    """Where the parent stands in the text word for word, all of it is kept, whatever a rule or a
    person adds. A model that is to say the same in other words must use others, and add nothing."""
    kept = {"length": _length(item), "keeps_facts": _keeps_facts(item)}
    if item.by_model:
        return {"differs": _says_the_same(item), **kept, "keeps_words": _keeps_words(item)}
    same = "it is its parent, letter for letter" if item.text == item.parent.text else ""
    return {"differs": same, **({} if item.parent.text in item.text else kept)}


def _says_the_same(item: AlteredAnswer) -> str:
    if not (altered := words(item.text)):
        return "it is empty"
    same = altered == words(item.parent.text)
    return "it has the words of its parent, in their order" if same else ""


def _length(item: AlteredAnswer) -> str:
    share = len(item.text) / max(1, len(item.parent.text))
    fits = SHORTEST <= share <= LONGEST
    return "" if fits else f"it is {share:.2f} times as long as its parent"


def _false_claim(item: AlteredAnswer) -> str:
    if not item.false_claim.strip():
        return "no false claim is stated"
    if not asserts(item.text, item.false_claim, beyond=item.true_claim):
        return "no sentence of it says the false claim"
    is_in_parent = asserts(item.parent.text, item.false_claim, beyond=item.true_claim)
    return "its parent says the false claim too" if is_in_parent else ""


def _true_claim(item: AlteredAnswer) -> str:
    if not item.true_claim.strip():
        return "no true claim is stated"
    if normalise(item.true_claim) == normalise(item.false_claim):
        return "the true and the false claim are the same"
    is_in_text = asserts(item.text, item.true_claim, beyond=item.false_claim)
    return "a sentence of it still says the true claim" if is_in_text else ""


def _unannounced(item: AlteredAnswer) -> str:
    match = _ANNOUNCES.search(item.text)
    if match is None or match.group().lower() in item.parent.text.lower():
        return ""
    return f"it announces itself: {match.group()!r}"


def _duplicate(item: AlteredAnswer, others: Sequence[AlteredAnswer]) -> str:
    content = content_words(item.text)
    for other in others:
        if other.parent.item_id == item.parent.item_id and other.recipe != item.recipe:
            continue  # two edits of one parent share nearly all words, and are two attacks
        theirs = content_words(other.text)
        if len(content & theirs) >= NEAR_DUPLICATE * max(1, len(content | theirs)):
            return f"it is nearly {other.item_id}"
    return ""


def _keeps_words(item: AlteredAnswer) -> str:
    before = content_words(item.parent.text)
    share = len(before & content_words(item.text)) / max(1, len(before))
    return "" if share >= FEWEST_WORDS or not before else f"it keeps only {share:.0%} of its words"


def _keeps_facts(item: AlteredAnswer) -> str:
    before, after = (facts(text, word_names()) for text in (item.parent.text, item.text))
    changes = {"loses": before - after, "adds": after - before}
    reasons = [f"{verb} {', '.join(counts)}" for verb, counts in changes.items() if counts]
    return f"it {' and '.join(reasons)}" if reasons else ""


# --- a line and its item -------------------------------------------------------------------------

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Key = tuple[str, str, str, int]  # item, recipe, generator, seed


class _Line(StrictModel):
    item_id: Text
    question: str = ""
    parent: Text
    text: str
    must_worsen: dict[str, str] = Field(default_factory=dict)
    must_not_change: bool = False
    demand: dict[str, str] = Field(default_factory=dict)
    area: str = ""
    false_claim: str = ""
    true_claim: str = ""
    why_plausible: str = ""
    source: str = ""
    notice: str = ""
    parent_id: str = ""
    system: str = ""
    reference: str | None = None
    group: str = ""
    parts: tuple[Part, ...] = ()
    recipe: str = ""
    recipe_version: str = "1"
    recipe_hash: str = ""
    seed: int = 0
    generator: str = BY_HAND
    checks: dict[str, str] = Field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """True where no check failed."""
        return not any(self.checks.values())


# What a line calls as an altered answer, or as its parent, does.
_OF_PARENT = ("question", "system", "reference", "group")
_OF_ITEM = [f.name for f in fields(AlteredAnswer) if f.name != "parent"]


def read_set(
    path: Path, rubric: Rubric | None = None, instead: MetricLabels | None = None
) -> list[AlteredAnswer]:
    """The altered answers of a set file that count, with labels as the rubric spells them.

    `instead` stands in for what the violations' lines say under must_worsen. A line with a failed
    check is left out.

    Raises SetupError with every problem of the file: what is no JSON, unknown or missing keys, a
    duplicate id, a metric or label that the rubric does not have, a set in which nothing counts.
    """
    problems: list[Problem] = []
    every = list(_lines(path, problems))
    lines = [(number, line) for number, line in every if line.counts]
    counts = Counter(line.item_id for _, line in lines)
    items = []
    for number, line in lines:
        if counts[line.item_id] > 1:
            message = "stands in more than one line of the set"
            problems.append(Problem(message, str(path), number, "item_id", line.item_id))
        if bool(line.must_worsen) == line.must_not_change:
            message = "give either must_worsen (metric: label) or must_not_change: true"
            problems.append(Problem(message, str(path), number))
        must_worsen: MetricLabels = line.must_worsen and (instead or line.must_worsen)
        if rubric is not None:
            try:
                must_worsen = check_demand(must_worsen, rubric, str(path), number)
            except SetupError as error:
                problems += error.problems
        items.append(_item(line, path, must_worsen))
    if not items and not problems:
        message = "holds no altered answer that counts: " + (
            f"each of its {len(every)} failed a check, which stands in its line"
            if every
            else "it is empty"
        )
        problems.append(Problem(message, file=str(path)))
    raise_any(sorted(problems, key=lambda problem: problem.line or 0))
    return items


def _lines(path: Path, problems: list[Problem]) -> Iterator[tuple[int, _Line]]:
    for number, row in enumerate(read_text(path).split("\n"), 1):
        if not row.strip():
            continue
        try:
            yield number, validate(json.loads(row), _Line, str(path))
        except SetupError as error:
            problems += [replace(problem, line=number) for problem in error.problems]
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not JSON: {error}", str(path), number))


def _item(line: _Line, path: Path, must_worsen: MetricLabels) -> AlteredAnswer:
    values = {
        **{name: getattr(line, name) for name in _OF_ITEM},
        "must_worsen": must_worsen,
        "recipe": line.recipe or path.stem,
        "recipe_hash": line.recipe_hash or content_hash([line.question, line.parent, line.text]),
    }
    of_parent = {name: getattr(line, name) for name in _OF_PARENT}
    parent_id = line.parent_id or f"{line.item_id}-parent"
    parent = Answer(parent_id, line.parent, parts=line.parts, **of_parent)
    return AlteredAnswer(parent=parent, **values)


def to_set_line(item: AlteredAnswer) -> dict[str, Any]:
    """One item as the JSON object of a set's line; what is empty is left out."""
    parent = item.parent
    line = {
        **{name: getattr(item, name) for name in _OF_ITEM},
        **{name: getattr(parent, name) for name in _OF_PARENT},
        "parent": parent.text, "parent_id": parent.item_id,
        "parts": [asdict(part) for part in parent.parts],
        "must_worsen": dict(item.must_worsen), "must_not_change": not item.must_worsen,
    }  # fmt: skip
    required = ("item_id", "parent", "text")
    return {key: value for key, value in line.items() if key in required or value}


# --- a set that grows while it is made -----------------------------------------------------------


class SetFile:
    """A set file open for adding: every item is on disk before the next is waited for.

    `accepted` are the items in it that count; what failed a check stands in it too, with the
    reasons, an unreadable reply of a model as it came. Raises SetupError where the file is no set.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        _mend_last_line(path)
        lines = [line for _, line in read_lines(path)] if path.is_file() else []
        self._made = {_key(line) for line in lines}
        counts = any(not any(line.get("checks", {}).values()) for line in lines)
        self.accepted = read_set(path) if counts else []

    def has(self, item_id: str, recipe_hash: str, generator: str, seed: int) -> bool:
        """Return whether that item was made before, whether it counts or not.

        Raises SetupError where an item of that id counts that was made otherwise.
        """
        is_made = (item_id, recipe_hash, generator, seed) in self._made
        if not is_made and any(item.item_id == item_id for item in self.accepted):
            message = (
                "holds this item as another recipe, model or seed made it: choose another file "
                "with --to, or remove this one"
            )
            raise SetupError(Problem(message, str(self.path), field="item_id", found=item_id))
        return is_made

    def add(self, item: AlteredAnswer) -> None:
        """Write an item, with its checks."""
        line = to_set_line(item)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_line(line))
        self._made.add(_key(line))
        if not item.failed_checks:
            self.accepted.append(item)


_BEGIN = b'{"item_id":'


def _mend_last_line(path: Path) -> None:
    """Drop a line that a killed process left torn; end one that was written by hand."""
    tail = path.read_bytes().rpartition(b"\n")[2] if path.is_file() else b""
    if not tail:
        return
    try:
        json.loads(tail)
    except ValueError:
        # As this module begins a line, cut off anywhere; anything else is reported.
        if tail.startswith(_BEGIN) or _BEGIN.startswith(tail):
            drop_torn_line(path)
    else:
        with path.open("ab") as file:
            file.write(b"\n")


def _key(line: Mapping[str, Any]) -> Key:
    """The key of the item of a line, which leaves out what is empty."""
    return (
        line.get("item_id", ""), line.get("recipe_hash", ""), line.get("generator", BY_HAND),
        line.get("seed", 0),
    )  # fmt: skip


# --- people have the last word -------------------------------------------------------------------

_SAME = "Does the altered text still say the same?"  # asked of what is no violation
_ASKED = (
    Question(
        "decision",
        "Is the altered answer wrong as stated?",
        ("accept", "reject"),
    ),
)


def write_review(path: Path) -> Path:
    """Write the page on which a person accepts or rejects the items of a set file; its path.

    The page keeps decisions in the browser and saves them as NAME.decisions.csv.
    """
    page = path.with_suffix(".review.html")
    html = review_page(path.stem, list(map(_shown_item, read_set(path))), _ASKED)
    write_atomically(page, html.encode())
    return page


def decisions_path(path: Path) -> Path:
    """The table that the page of a set file saves, `x.decisions.csv` beside `x.jsonl`."""
    return path.with_suffix(".decisions.csv")


def accepted_ids(path: Path) -> set[str]:
    """The items of a set file that a person accepted, by the table of decisions beside it.

    Raises SetupError with every problem of that table, such as an item that has changed since.
    """
    items = list(map(_shown_item, read_set(path)))
    decisions = read_decisions(decisions_path(path), items, _ASKED)
    return {item_id for item_id, row in decisions.items() if row["decision"] == "accept"}


def _shown_item(item: AlteredAnswer) -> Item:
    verdict = "; ".join(f"{metric}: {label}" for metric, label in item.must_worsen.items())
    values = {
        **item.claims,
        "Verdict must be": verdict or "the same as of the sound answer",
        "The text asks for": ", ".join(item.demand.values()),
    }  # fmt: skip
    sound, altered = marked(item)
    sections = [
        ["Question", item.parent.question],
        ["", [["Sound answer", sound], ["Altered answer", altered]]],
        ["", {heading: value for heading, value in values.items() if value}],
    ]
    title = f"{item.area} · recipe {item.recipe} {item.recipe_version} · {item.made_by}"
    ask = {} if item.must_worsen else {"decision": _SAME}
    title = title.removeprefix(" · ")
    return {"id": item.item_id, "title": title, "sections": sections, "ask": ask}
