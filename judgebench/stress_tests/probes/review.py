"""People accept or reject altered answers: a table to fill in, and a page that fills it in.

A decision belongs to a text, not to an id: it counts only while the question, the sound answer and
the altered answer are those that were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgebench.data.cells import mark_forbidden
from judgebench.errors import Problem, raise_any, shorten
from judgebench.files import write_atomically
from judgebench.people.page import (
    FILLED_IN,
    Item,
    Question,
    Table,
    check_answers,
    read_filled,
    review_page,
)
from judgebench.records import content_hash
from judgebench.stress_tests.probes.altered import AlteredAnswer, marked
from judgebench.stress_tests.probes.sets import notices

COLUMNS = (
    "item_id", "decision", "reviewer", "remark", "recipe", "area", "question", "false_claim",
    "true_claim", "source", "parent", "text", "content_hash",
)  # fmt: skip
_ASKED = (
    Question("decision", "Is the altered answer what it claims to be?", ("accept", "reject")),
)
_FILLED = ("decision", *FILLED_IN)
_DECISIONS = {"": None, "accept": True, "reject": False}

Key = tuple[str, str]  # item_id and content_hash
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
    rows = [_row(item, old.pop(_key(item), {})) for item in items]
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


def read_decisions(path: Path) -> Mapping[Key, ReviewDecision]:
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
    items: Sequence[AlteredAnswer], decisions: Mapping[Key, ReviewDecision]
) -> list[AlteredAnswer]:
    """The items that people accepted as they stand now, in their order."""
    found = ((item, decisions.get(_key(item))) for item in items)
    return [item for item, decision in found if decision and decision.accepted]


# --- writing -------------------------------------------------------------------------------------


def _check_ids(items: Sequence[AlteredAnswer], to: Path) -> None:
    counts = Counter(_key(item)[0] for item in items)
    problems = [
        Problem("stands more than once", str(to), field="item_id", found=shorten(item_id))
        for item_id, count in counts.items()
        if count > 1
    ]
    if "" in counts:
        problems.append(Problem("is blank", str(to), field="item_id"))
    raise_any(problems)


def _key(item: AlteredAnswer) -> Key:
    return mark_forbidden(item.item_id), review_hash(item)


def _row_key(row: Mapping[str, str]) -> Key:
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
    first: dict[Key, int] = {}

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
