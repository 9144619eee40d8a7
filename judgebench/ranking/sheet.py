"""Sheets on which experts rank arguments, and the key that tells who wrote which.

A sheet shows letters for systems, shuffled anew for every item and every expert, so that neither
a name nor a place says who wrote an argument. Only the key knows, and it is not handed out. Same
items, seed and expert give the same sheet; a sheet or key that is there is never written over.
"""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from judgebench.data.cells import mark_forbidden
from judgebench.data.delimited import quoted, to_csv
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import to_json, write_atomically
from judgebench.people.page import check_people, fill_in_page
from judgebench.ranking.ranking_folder import read_tasks
from judgebench.records import content_hash
from judgebench.yaml_file import Strict, load_json

COLUMNS = (
    "item", "task", "question", "right_answer", "document", "letter", "rank", "text", "remark",
    "expert", "text_hash",
)  # fmt: skip
KEY_FILE = "sheet-key.json"
SHEETS = "sheets"  # the folder that is handed to the experts
SHEET_LETTERS = string.ascii_uppercase


@dataclass(frozen=True, slots=True)
class RankedItem:
    """One instance of a task with the real arguments on it (system to text).

    `label_text` is the right class or option, `context` the document that it is about; both may be
    empty.
    """

    task: str
    item_id: str
    group: str
    question: str
    label_text: str
    context: str
    arguments: Mapping[str, str]


class KeyItem(Strict):
    """One item of a key. `hashes` maps each system to the hash of what it says."""

    task: str
    item_id: str
    group: str
    label: str
    hashes: dict[str, str]


class SheetKey(Strict):
    """The authors of the arguments on the sheets of one folder.

    `letters` holds for each expert and item, in the order of `items`, the systems that stand
    behind A, B, C and so on.
    """

    kind: Literal["judgebench sheet key"] = "judgebench sheet key"
    seed: int
    items: tuple[KeyItem, ...]
    letters: dict[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True)
class Sheets:
    """The files that were written, which sheets were there before and kept as they are, and how
    many items were passed over because a system says nothing on them."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    items: Mapping[str, int]  # task -> items of it on a sheet
    passed_over: int


def items_of_run(run: Path) -> list[RankedItem]:
    """Every ranked instance of a run with the real arguments on it."""
    items = []
    for task in read_tasks(run):
        for i in task.instances:
            said = {name: task.text(name, i.item_id) for name in task.shown.arguments}
            texts = {name: text for name, text in said.items() if text is not None}
            items.append(
                RankedItem(
                    task.name, i.item_id, i.group, i.question, i.label_text, i.context, texts
                )
            )
    return items


def draw(items: Sequence[RankedItem], n: int | None, seed: int) -> list[RankedItem]:
    """At most `n` items of every task, drawn by the seed from those on which every system of the
    task says something; in their order. A larger `n` keeps all items of a smaller one.

    Raises SetupError for a task without such an item, with one system, or with more than letters.
    """
    problems, chosen = [], []
    for task in dict.fromkeys(item.task for item in items):
        of_task = [item for item in items if item.task == task]
        systems = {system for item in of_task for system in item.arguments}
        complete = [item for item in of_task if item.arguments.keys() == systems]
        if not 2 <= len(systems) <= len(SHEET_LETTERS):
            message = "a sheet cannot hold so many systems"
            allowed = f"2 to {len(SHEET_LETTERS)}"
            problems.append(Problem(message, "", None, task, str(len(systems)), allowed))
        elif not complete:
            message = "has no item on which every system says something"
            problems.append(Problem(message, field=task, found=", ".join(sorted(systems))))
        by_seed = sorted(complete, key=lambda i: content_hash([seed, i.task, i.item_id]))
        drawn = {item.item_id for item in by_seed[:n]}
        chosen += [item for item in complete if item.item_id in drawn]
    if not items:
        problems.append(Problem("there is no item to rank"))
    raise_any(problems)
    return chosen


def text_hash(item: RankedItem, system: str) -> str:
    """Changes with the item, its question or what the system says. The letter keeps a spreadsheet
    from reading a hash such as 12345e6789 as a number."""
    return "h" + content_hash([item.task, item.item_id, item.question, item.arguments[system]])


def write_sheets(
    items: Sequence[RankedItem], experts: Sequence[str], to: Path, *, n: int | None, seed: int
) -> Sheets:
    """Write a table and a page for every expert into `to`/sheets, and the key into `to`.

    Raises SetupError where no item can be ranked, an expert's name can name no file or is
    named twice, or `to` holds the sheets of other items, whose key would be lost.
    """
    check_people(experts, "experts")
    drawn = draw(items, n, seed)
    key = _merged(to / KEY_FILE, _key(drawn, experts, seed))
    folder = to / SHEETS
    folder.mkdir(parents=True, exist_ok=True)
    # The key first: a sheet without one could never be read.
    write_atomically(to / KEY_FILE, (to_json(key.model_dump(), indent=1) + "\n").encode())
    written, kept = [to / KEY_FILE], []
    for expert in experts:
        table = folder / f"{expert}.csv"
        if table.exists():
            kept.append(table)
            continue
        asked = enumerate(zip(drawn, key.letters[expert], strict=True), 1)
        sheet = [_rows(number, item, systems, expert) for number, (item, systems) in asked]
        cells = [[quoted(row[c]) for c in COLUMNS] for rows in sheet for row in rows]
        page = sheet_page(expert, table.name, sheet)
        write_atomically(table, to_csv(COLUMNS, cells))
        write_atomically(table.with_suffix(".html"), page.encode())
        written += [table, table.with_suffix(".html")]
    complete = len(draw(items, None, seed))
    counts = Counter(item.task for item in drawn)
    return Sheets(tuple(written), tuple(kept), counts, len(items) - complete)


def read_key(path: Path) -> SheetKey:
    """The key of that path. Raises SetupError where it is none."""
    key = load_json(path, SheetKey, "the key of the sheets")
    systems = [sorted(item.hashes) for item in key.items]
    for expert, letters in key.letters.items():
        if list(map(sorted, letters)) != systems:
            message = "the letters do not fit the items: the key was changed"
            raise SetupError(Problem(message, str(path), field=f"letters.{expert}"))
    return key


def _key(items: Sequence[RankedItem], experts: Sequence[str], seed: int) -> SheetKey:
    kept = []
    for i in items:
        hashes = {system: text_hash(i, system) for system in i.arguments}
        about = {"task": i.task, "item_id": i.item_id, "group": i.group, "label": i.label_text}
        kept.append(KeyItem(**about, hashes=hashes))
    letters = {expert: tuple(_shuffled(i, expert, seed) for i in items) for expert in experts}
    return SheetKey(seed=seed, items=tuple(kept), letters=letters)


def _shuffled(item: RankedItem, expert: str, seed: int) -> tuple[str, ...]:
    """The systems in an order of this expert's own: another one each, so that a liking for what
    stands first does not add up."""
    systems = sorted(item.arguments)
    random.Random(content_hash([seed, expert, item.task, item.item_id])).shuffle(systems)
    return tuple(systems)


def _merged(path: Path, key: SheetKey) -> SheetKey:
    """The key with the experts of the one that is there."""
    if not path.exists():
        return key
    old = read_key(path)
    if (old.items, old.seed) != (key.items, key.seed):
        message = "belongs to sheets of other items, which could no longer be read without it"
        raise SetupError(Problem(message, str(path), allowed="another folder (--to)"))
    return key.model_copy(update={"letters": {**key.letters, **old.letters}})


def _rows(
    number: int, item: RankedItem, systems: Sequence[str], expert: str
) -> list[dict[str, str]]:
    """The rows of one item. What all share stands in the first alone, where it is read."""
    rows = []
    shared = [item.question, item.label_text, item.context]
    for letter, system in zip(SHEET_LETTERS, systems, strict=False):
        text, hashed = item.arguments[system], text_hash(item, system)
        cells = [str(number), item.task, *shared, letter, "", text, "", expert, hashed]
        rows.append(dict(zip(COLUMNS, map(mark_forbidden, cells), strict=True)))
        shared = [""] * len(shared)
    return rows


def sheet_page(expert: str, table: str, items: Sequence[Sequence[Mapping[str, str]]]) -> str:
    """The page on which an expert ranks arguments: `items` holds the rows of each item, as they
    stand in the table of that file name."""
    shown = [
        {
            "task": rows[0]["task"], "question": rows[0]["question"],
            "answer": rows[0]["right_answer"], "document": rows[0]["document"],
            "arguments": [
                {
                    "letter": row["letter"], "text": row["text"],
                    "cells": [quoted(row[column]) for column in COLUMNS],
                }
                for row in rows
            ],
        }
        for rows in items
    ]  # fmt: skip
    store = f"judgebench ranks of {expert} {content_hash(shown)}"
    data = {"store": store, "table": table, "columns": COLUMNS, "items": shown}
    return fill_in_page(Path(__file__).with_name("sheet_page"), data, expert=expert)
