"""A page on which people answer questions about items, one after the other, and what they said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judgebench.data.cells import mark_forbidden
from judgebench.data.findings import Findings
from judgebench.data.open_table import open_table
from judgebench.data.spreadsheet import filled_rows, missing_columns, quoted
from judgebench.errors import Problem, SetupError, shorten
from judgebench.people.page import fill_in_page
from judgebench.records import content_hash

Item = Mapping[str, Any]
_BESIDE = ("reviewer", "remark", "edit")


@dataclass(frozen=True)
class Question:
    """What is asked of every item: `key` names its column, `answers` are the words to choose from,
    each of another first letter, which is its key on the keyboard."""

    key: str
    text: str
    answers: Sequence[str] = ("pass", "fail")


def review_page(name: str, items: Sequence[Item], questions: Sequence[Question]) -> str:
    """A self-contained page on which a person answers the `questions` on each item.

    An item is a dict: `id`; `title`, a line above all; `sections`, a list of [heading, text] or
    [heading, text, True], which is folded; and, where the person may write another text, `edit`,
    the text to begin with. What is said stays in the browser and is saved as NAME.decisions.csv
    (`read_decisions`).
    """
    table = f"{name}.decisions.csv"
    columns = ["item_id", "content_hash", *(q.key for q in questions), *_BESIDE]
    shown = [
        {
            "id": mark_forbidden(item["id"]), "hash": item_hash(item), "title": item["title"],
            "sections": item["sections"], "edit": item.get("edit"), "cell": quoted(item["id"]),
        }
        for item in items
    ]  # fmt: skip
    asked = [asdict(q) for q in questions]
    data = {"name": name, "table": table, "columns": columns, "items": shown, "questions": asked}
    return fill_in_page(Path(__file__).with_name("review_page"), data, name=name)


def item_hash(item: Item) -> str:
    """Changes with anything that the person reads; the letter keeps it from being a number."""
    return "h" + content_hash([item["title"], item["sections"], item.get("edit")])


def read_decisions(
    path: Path, items: Sequence[Item], questions: Sequence[Question]
) -> Mapping[str, Mapping[str, str]]:
    """What one person said of the items of a page, by id and column; a blank is no answer.

    Raises SetupError with every problem: a missing column, an unknown answer, an item that is not
    on the page, occurs again, or has changed since.
    """
    findings = Findings()
    table = open_table(path, findings, format="csv")
    problems, said = list(findings.errors), dict[str, Mapping[str, str]]()
    if table is not None:
        needed = ["item_id", "content_hash", *(q.key for q in questions)]
        problems += missing_columns(table, needed)
        known = {mark_forbidden(item["id"]): item for item in items}
        for line, row in filled_rows(table) if not problems else ():
            own, item = row["item_id"], known.get(row["item_id"])
            wrong = ""
            if item is None:
                wrong = "is not among the items"
            elif row["content_hash"] != item_hash(item):
                wrong = "has changed since it was reviewed"
            elif item["id"] in said:
                wrong = "occurs twice"
            else:
                said[item["id"]] = row
            if wrong:
                problems.append(Problem(wrong, str(path), line, "item_id", shorten(own)))
            for q in questions:
                row[q.key] = row[q.key].strip().casefold()
                if row[q.key] not in ("", *q.answers):
                    found, allowed = shorten(row[q.key]), ", ".join((*q.answers, "or blank"))
                    message = "is no answer"
                    problems.append(Problem(message, str(path), line, q.key, found, allowed))
        problems += [one for one in findings.errors if one not in problems]
    if problems:
        raise SetupError(problems)
    return said
