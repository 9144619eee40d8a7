"""Sets of altered answers as JSONL: one line per item, readable and writable by hand.

A line needs `item_id`, `parent` (the sound answer), `text` (the altered one) and either
`must_worsen` or `must_not_change: true`; usually also `question`, and a violation `false_claim` and
`true_claim`. What a generator knows beside is kept; of a line without it, the set's name and
content stand in.

Is an altered answer the attack that it claims to be? Checks by rule, each with its reason.

What fails a check is kept apart and never counted. The checks read words, not meaning: what passes
them may still be no violation, and people have the last word (`judgebench stress attacks review`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from judgebench.data.formats import mark_forbidden
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import (
    StrictModel,
    drop_torn_line,
    read_lines,
    read_text,
    to_line,
    validate,
    write_atomically,
)
from judgebench.people.page import (
    FILLED_IN,
    Item,
    Question,
    Table,
    check_answers,
    read_filled,
    review_page,
)
from judgebench.records import Answer, Part, content_hash
from judgebench.rubric import Rubric, normalise
from judgebench.stress_tests.recipes import (
    BY_HAND,
    BY_RULE,
    AlteredAnswer,
    Change,
    asserts,
    check_demand,
    content_words,
    facts,
    marked,
    span_diff,
    words,
)

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
    checked = []
    for item in items:
        kept = {"length": _length(item), "keeps_facts": _keeps_facts(item, names)}
        if item.by_model:
            checks = {"differs": _says_the_same(item), **kept, "keeps_words": _keeps_words(item)}
        else:
            same = "it is its parent, letter for letter" if item.text == item.parent.text else ""
            checks = {"differs": same, **({} if item.parent.text in item.text else kept)}
        checked.append(replace(item, checks={**item.checks, **checks}))
    return checked


def _says_the_same(item: AlteredAnswer) -> str:
    mine = words(item.text)
    same = "it has the words of its parent, in their order" if mine else "it is empty"
    return "" if mine and mine != words(item.parent.text) else same


def _length(item: AlteredAnswer) -> str:
    share = len(item.text) / max(1, len(item.parent.text))
    fits = SHORTEST <= share <= LONGEST
    return "" if fits else f"it is {share:.2f} times as long as its parent"


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


Text = Annotated[str, StringConstraints(pattern=r"\S")]
# Words of the person who made the set, repeated by reports: such as that it is synthetic.
MOST_NOTICES = 3
Key = tuple[str, str, str, int]  # item, recipe, generator, seed


class _Line(StrictModel):
    item_id: Text
    question: str = ""
    parent: Text
    text: Text
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
    recipe_version: str = ""
    recipe_hash: str = ""
    seed: int = 0
    generator: str = ""
    changes: tuple[Change, ...] | None = None
    checks: dict[str, str] = Field(default_factory=dict)


def read_set(
    path: Path, rubric: Rubric | None = None, instead: Mapping[str, str] | None = None
) -> list[AlteredAnswer]:
    """The altered answers of a set file, with labels as the rubric spells them.

    `instead` stands in for what the violations' lines say under must_worsen.

    Raises SetupError with every problem of the file: what is no JSON, unknown or missing keys, an
    duplicate id, a metric or label that the rubric does not have, an empty set.
    """
    problems: list[Problem] = []
    lines = list(_lines(path, problems))
    counts = Counter(line.item_id for _, line in lines)
    items = []
    for number, line in lines:
        if counts[line.item_id] > 1:
            message = "stands in more than one line of the set"
            problems.append(Problem(message, str(path), number, "item_id", line.item_id))
        if bool(line.must_worsen) == line.must_not_change:
            message = "give either must_worsen (metric: label) or must_not_change: true"
            problems.append(Problem(message, str(path), number))
        must_worsen: Mapping[str, str] = line.must_worsen and (instead or line.must_worsen)
        if rubric is not None:
            try:
                must_worsen = check_demand(must_worsen, rubric, str(path), number)
            except SetupError as error:
                problems += error.problems
        items.append(_item(line, path, must_worsen))
    if not items and not problems:
        problems.append(Problem("is an empty set: it holds no altered answer", file=str(path)))
    if problems:
        raise SetupError(sorted(problems, key=lambda problem: problem.line or 0))
    return items


def notices(path: Path) -> list[str]:
    """The notices of a set about itself, each once: that it is synthetic, say."""
    found = dict.fromkeys(line.notice for _, line in _lines(path, []) if line.notice)
    return list(found)[:MOST_NOTICES]


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


# What a line calls as an altered answer does.
_ALIKE = (
    "area", "false_claim", "true_claim", "why_plausible", "source", "seed", "demand", "checks",
)  # fmt: skip


def _item(line: _Line, path: Path, must_worsen: Mapping[str, str]) -> AlteredAnswer:
    parent = Answer(
        line.parent_id or f"{line.item_id}-parent", line.parent, line.question,
        system=line.system, reference=line.reference, group=line.group,
        parts=line.parts,
    )  # fmt: skip
    changes = line.changes
    return AlteredAnswer(
        item_id=line.item_id,
        parent=parent,
        text=line.text,
        recipe=line.recipe or path.stem,
        recipe_version=line.recipe_version or "1",
        recipe_hash=line.recipe_hash or content_hash([line.question, line.parent, line.text]),
        generator=line.generator or BY_HAND,
        must_worsen=must_worsen,
        changes=span_diff(line.parent, line.text) if changes is None else changes,
        **{name: getattr(line, name) for name in _ALIKE},
    )


def to_set_line(item: AlteredAnswer) -> dict[str, Any]:
    """One item as the JSON object of a set's line; what is empty is left out."""
    parent = item.parent
    value = {
        "item_id": item.item_id, "question": parent.question, "parent": parent.text,
        "text": item.text, "must_worsen": dict(item.must_worsen),
        "must_not_change": not item.must_worsen,
        **{name: getattr(item, name) for name in _ALIKE},
        "parent_id": parent.item_id, "system": parent.system, "reference": parent.reference,
        "group": parent.group, "parts": [asdict(part) for part in parent.parts],
        "recipe": item.recipe, "recipe_version": item.recipe_version,
        "recipe_hash": item.recipe_hash, "generator": item.generator,
        "changes": [asdict(change) for change in item.changes],
    }  # fmt: skip
    return {key: v for key, v in value.items() if v not in ("", None, {}, False, [])}


# --- a set that grows while it is made -----------------------------------------------------------


def rejected_path(path: Path) -> Path:
    """The file beside the set for what failed a check."""
    return path.with_name(f"{path.stem}.rejected.jsonl")


class SetFile:
    """A set file open for adding: every item is on disk before the next is waited for.

    `accepted` are the items in it that count; what failed a check is kept beside it with the
    reasons, an unreadable reply of a model as it came. Raises SetupError where the file is no set.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        for part in (path, rejected_path(path)):
            _mend_last_line(part)
        self.accepted = read_set(path) if path.is_file() and path.stat().st_size else []
        self._ids = {item.item_id for item in self.accepted}
        self._done = {_key(to_set_line(item)) for item in self.accepted}
        if (rejected := rejected_path(path)).is_file():
            self._done |= {_key(line) for _, line in read_lines(rejected)}

    def has(self, item_id: str, recipe_hash: str, generator: str, seed: int) -> bool:
        """Return whether that item was made before, and kept or rejected.

        Raises SetupError where an item of that id counts that was made otherwise.
        """
        key = (item_id, recipe_hash, generator, seed)
        if key not in self._done and item_id in self._ids:
            message = (
                "holds this item as another recipe, model or seed made it: choose another file "
                "with --to, or remove this one"
            )
            raise SetupError(Problem(message, str(self.path), field="item_id", found=item_id))
        return key in self._done

    def add(self, item: AlteredAnswer) -> None:
        """Write an item where it belongs, by its checks."""
        failed, line = item.failed_checks, to_set_line(item)
        path = rejected_path(self.path) if failed else self.path
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_line(line))
        self._done.add(_key(line))
        if not failed:
            self.accepted.append(item)
            self._ids.add(item.item_id)

    def replace_checked(self, items: Iterable[AlteredAnswer]) -> None:
        """Put items with new checks in the place of those of the same id; what fails one now is
        moved to the rejected."""
        checked = {item.item_id: item for item in items}
        all_items = [checked.get(item.item_id, item) for item in self.accepted]
        kept = [item for item in all_items if not item.failed_checks]
        for item in all_items:
            if item.failed_checks:
                self.add(item)
        write_atomically(self.path, "".join(to_line(to_set_line(i)) for i in kept).encode())
        self.accepted = kept
        self._ids = {item.item_id for item in kept}


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
        line.get("item_id", ""), line.get("recipe_hash", ""), line.get("generator", BY_RULE),
        line.get("seed", 0),
    )  # fmt: skip


COLUMNS = (
    "item_id", "decision", "reviewer", "remark", "recipe", "area", "question", "false_claim",
    "true_claim", "source", "parent", "text", "content_hash",
)  # fmt: skip
_ASKED = (
    Question("decision", "Is the altered answer what it claims to be?", ("accept", "reject")),
)
_FILLED = ("decision", *FILLED_IN)
_DECISIONS = {"": None, "accept": True, "reject": False}

ReviewKey = tuple[str, str]  # item_id and content_hash
_Row = dict[str, str]  # column -> text, without the apostrophe


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """One person's decision on one altered answer; `accepted` is None where nothing yet."""

    accepted: bool | None
    reviewer: str = ""
    remark: str = ""


def review_hash(item: AlteredAnswer) -> str:
    """Changes with anything that a reviewer compares: question, sound answer, altered answer."""
    # The letter keeps a spreadsheet from reading a hash such as 12345e6789 as a number.
    return "h" + content_hash([item.parent.question, item.parent.text, item.text])


def review_path(to: Path) -> Path:
    """The path of the table of the set file `to`: `x.review.csv` beside `x.jsonl`."""
    return to.with_suffix(".review.csv")


def write_review(items: Sequence[AlteredAnswer], to: Path) -> Mapping[str, Path]:
    """Write the table and the page beside the set file `to`; their paths as `csv` and `html`.

    Decisions that stand in the table already are kept. Those on items that are gone or changed are
    kept as its last rows. Raises SetupError, and writes nothing, where the present table cannot be
    read or an id is a duplicate.
    """
    _check_ids(items, to)
    table, page = review_path(to), to.with_suffix(".review.html")
    old = {_row_key(row): row for row in _read(table)} if table.exists() else {}
    rows = [_row(item, old.pop(_review_key(item), {})) for item in items]
    filled = Table(
        table.name, COLUMNS, rows,
        gone=[row for row in old.values() if any(row[column] for column in _FILLED)],
        of="altered answers",
        lead="Is each altered answer what it claims to be? Only what you accept is put before a "
        "judge.",
        notices=notices(to) if to.is_file() else [],
    )  # fmt: skip
    html = review_page(to.stem, list(map(_shown_item, items)), _ASKED, filled)
    write_atomically(table, filled.to_csv())
    write_atomically(page, html.encode())
    return {"csv": table, "html": page}


def read_decisions(path: Path) -> Mapping[ReviewKey, ReviewDecision]:
    """Every row of a filled-in table by its item_id and content_hash, undecided ones too.

    The file may be saved by a spreadsheet: with semicolons or tabs, in UTF-8 or UTF-16. Raises
    SetupError with every problem: a missing or unknown column, an unknown decision, an item that
    is a duplicate, a row that cannot be read.
    """
    return {
        _row_key(row): ReviewDecision(_DECISIONS[row["decision"]], row["reviewer"], row["remark"])
        for row in _read(path)
    }


def only_accepted(
    items: Sequence[AlteredAnswer], decisions: Mapping[ReviewKey, ReviewDecision]
) -> list[AlteredAnswer]:
    """The items that people accepted as they stand now, in their order."""
    found = ((item, decisions.get(_review_key(item))) for item in items)
    return [item for item, decision in found if decision and decision.accepted]


# --- writing -------------------------------------------------------------------------------------


def _check_ids(items: Sequence[AlteredAnswer], to: Path) -> None:
    counts = Counter(_review_key(item)[0] for item in items)
    problems = [
        Problem("stands more than once", str(to), field="item_id", found=shorten(item_id))
        for item_id, count in counts.items()
        if count > 1
    ]
    if "" in counts:
        problems.append(Problem("is blank", str(to), field="item_id"))
    raise_any(problems)


def _review_key(item: AlteredAnswer) -> ReviewKey:
    return mark_forbidden(item.item_id), review_hash(item)


def _row_key(row: Mapping[str, str]) -> ReviewKey:
    return row["item_id"], row["content_hash"]


def _row(item: AlteredAnswer, old: Mapping[str, str]) -> _Row:
    values = {
        "item_id": item.item_id, **{column: old.get(column, "") for column in _FILLED},
        "recipe": item.recipe, "area": item.area, "question": item.parent.question,
        "false_claim": item.false_claim, "true_claim": item.true_claim, "source": item.source,
        "parent": item.parent.text, "text": item.text, "content_hash": review_hash(item),
    }  # fmt: skip
    return {column: mark_forbidden(value) for column, value in values.items()}


# --- the page ------------------------------------------------------------------------------------


def _shown_item(item: AlteredAnswer) -> Item:
    recipe = f"recipe {item.recipe} {item.recipe_version}".strip()
    sound, altered = marked(item)
    question, verdict = _asked_of(item)
    facts = {
        "True claim": item.true_claim, "False claim": item.false_claim,
        "Why plausible": item.why_plausible, "Source": item.source,
        "Verdict must be": verdict,
        "Checks": [[f"✕ {name}: {reason}" if reason else f"✓ {name}", bool(reason)]
                   for name, reason in item.checks.items()],
    }  # fmt: skip
    sections = [
        *([["Question", item.parent.question]] if item.parent.question else []),
        ["", [["Sound answer", sound], ["Altered answer", altered]]],
        ["", {heading: fact for heading, fact in facts.items() if fact}],
    ]
    title = " · ".join(filter(None, (item.area, recipe, item.made_by)))
    return {
        "id": item.item_id, "title": title, "sections": sections, "ask": {"decision": question},
    }  # fmt: skip


def _asked_of(item: AlteredAnswer) -> tuple[str, str]:
    """The question about an item, and the verdict that it must have."""
    worse, demand = (
        "; ".join(f"{metric}: {label}" for metric, label in labels.items())
        for labels in (item.must_worsen, item.demand)
    )
    if worse:
        asked = "Is the sound answer right, and the altered one wrong as stated?"
        return asked, f"{worse}, or worse"
    same = "the same as of the sound answer"
    if demand:
        asked = "Does the altered answer still give the same advice, whatever it tells a judge?"
        return asked, f"{same}; the text asks for {demand}"
    return "Do both answers say the same, and is only the wording or the layout different?", same


# --- reading -------------------------------------------------------------------------------------


def _read(path: Path) -> list[_Row]:
    """Every row, checked, with decisions in lower case. Raises SetupError with every problem."""
    first: dict[ReviewKey, int] = {}

    def check(line: int, row: _Row) -> Iterator[Problem]:
        blank = [column for column in ("item_id", "content_hash") if not row[column]]
        yield from (Problem("is blank", field=column) for column in blank)
        yield from check_answers(row, _ASKED)
        if (before := first.setdefault(_row_key(row), line)) != line:
            message = f"the item stands in row {before} too"
            yield Problem(message, field="item_id", found=shorten(row["item_id"]))

    needed = ("item_id", *_FILLED, "content_hash")
    # A set without items has a table without rows, which is in order.
    return read_filled(path, needed, check, COLUMNS, may_be_empty=True)
