"""Sheets on which experts rank arguments, and the key that tells who wrote which.

A sheet shows letters for systems, shuffled anew for every item and every expert, so that neither
a name nor a place says who wrote an argument. Only the key knows, and it is not handed out. Same
items, seed and expert give the same sheet; a sheet or key that is there is never written over.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from judgebench.data.findings import counted_once
from judgebench.data.formats import Table, mark_forbidden, quoted, to_csv
from judgebench.data.tables import collect_table, missing_columns
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import StrictModel, disk_errors, load_json, to_json, write_atomically
from judgebench.people.page import check_people, fill_in_page
from judgebench.ranking.rankers import RankerScores, read_tasks
from judgebench.records import content_hash
from judgebench.stats.arrays import Clusters, FloatArray, mean_of_defined

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


class KeyItem(StrictModel):
    """One item of a key. `hashes` maps each system to the hash of what it says."""

    task: str
    item_id: str
    group: str
    label: str
    hashes: dict[str, str]


class SheetKey(StrictModel):
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


GIVEN, LEFT_OUT, RANK_SHEETS = "human/given.csv", "human/given.txt", "human/sheets"
_SHEET = ("item", "letter", "rank", "expert", "text_hash")
_PLAIN = ("task", "item_id", "expert", "system", "rank")
_WHOLE = re.compile(r"([0-9]{1,6})(?:[.,]0+)?")  # a spreadsheet may make 3.0 of 3
_Row = Mapping[str, str]
_Asked = tuple[str, str, str]  # task, item_id, expert


# --- a run folder --------------------------------------------------------------------------------


def keep_ranks(run: Path, ranks: HumanRanks | None) -> None:
    """Write the given ranks into the run folder; without any, those of an earlier run go."""
    given, left_out = run / GIVEN, run / LEFT_OUT
    with disk_errors(given):
        if ranks is None:
            given.unlink(missing_ok=True)
            left_out.unlink(missing_ok=True)
            return
        given.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(left_out, "".join(f"{w}\n" for w in ranks.warnings).encode("utf-8"))
        rows = [
            [r.task, r.item_id, r.expert, r.system, str(r.rank), item.label, item.group]
            for r in ranks.ranks
            for item in [ranks.asked[r.task, r.item_id]]
        ]
        cells = [[quoted(text) for text in row] for row in rows]
        write_atomically(given, to_csv((*_PLAIN, "label", "group"), cells))


def ranks_of(run: Path) -> HumanRanks | None:
    """The ranks of a run's people; None where nobody has ranked. Raises SetupError with every
    problem of the sheets."""
    if (run / GIVEN).is_file():
        found = read_ranks([run / GIVEN])
        lines = (run / LEFT_OUT).read_text("utf-8") if (run / LEFT_OUT).is_file() else ""
        told = tuple(map(Problem, lines.splitlines()))
        found = replace(found, warnings=(*told, *found.warnings))
    elif any((run / RANK_SHEETS).glob("*.csv")):
        found = _of_these_texts(read_ranks([run / RANK_SHEETS]), run)
    else:
        return None
    return found if found.ranks or found.warnings else None


def _of_these_texts(ranks: HumanRanks, run: Path) -> HumanRanks:
    """Without the items whose arguments are others by now than those that stand on the sheets."""
    key = read_key((run / RANK_SHEETS).parent / KEY_FILE)
    now = {
        (item.task, item.item_id, system): text_hash(item, system)
        for item in items_of_run(run)
        for system in item.arguments
    }
    stale = {
        (item.task, item.item_id)
        for item in key.items
        if any(now.get((item.task, item.item_id, s)) != h for s, h in item.hashes.items())
    }
    if not stale:
        return ranks
    kept = tuple(rank for rank in ranks.ranks if (rank.task, rank.item_id) not in stale)
    message = f"{len(stale)} of {len(key.items)} items of the sheets have other arguments by now: "
    left = Problem(message + "their ranks are left out", field=RANK_SHEETS)
    return replace(ranks, ranks=kept, warnings=(*ranks.warnings, left))


# --- any files ------------------------------------------------------------------------------------


@dataclass
class _RanksRead:
    """The ranks that were read so far, over all files."""

    problems: list[Problem] = field(default_factory=list)
    ranks: dict[tuple[str, str, str, str], tuple[HumanRank, str]] = field(default_factory=dict)
    asked: dict[ItemKey, AskedItem] = field(default_factory=dict)
    systems: dict[ItemKey, set[str]] = field(default_factory=lambda: defaultdict(set))
    begun: dict[_Asked, None] = field(default_factory=dict)  # whose sheet holds the item

    def add(self, rank: HumanRank, file: str, line: int) -> None:
        """Keep a rank, or complain where the expert ranked this argument before."""
        at = (rank.task, rank.item_id, rank.expert, rank.system)
        if at in self.ranks:
            message = f"{rank.expert} ranked this argument before, in {self.ranks[at][1]}"
            self.problems.append(Problem(message, file, line, "rank", kind="ranked twice"))
        self.ranks.setdefault(at, (rank, f"{file}:{line}"))


def read_ranks(paths: Sequence[Path], key: Path | None = None) -> HumanRanks:
    """The ranks in all these files; a folder stands for the CSV files in it.

    `key` is the key of the sheets, by default `sheet-key.json` beside a sheet or one folder up.
    Raises SetupError with every problem: a rank that is none of 1 to 5, an unknown item, letter
    or expert, a text that is not the key's, an argument that an expert ranked twice. An item that
    an expert ranked in part is left out for that expert, with a warning.
    """
    reading = _RanksRead()
    for path in _files(paths):
        if table := collect_table(path, (), reading.problems):
            _read_table(table, path, key, reading)
    if reading.problems:
        raise SetupError(counted_once(reading.problems))
    return _whole_items(reading)


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not inside:
            raise SetupError(Problem("holds no CSV file", str(path)))
        found += inside
    if not found:
        raise SetupError("no file of ranks was named")
    return list(dict.fromkeys(found))


def _read_table(table: Table, path: Path, key: Path | None, reading: _RanksRead) -> None:
    needed = _SHEET if "letter" in table.columns else _PLAIN
    if missing := missing_columns(table, needed):
        reading.problems += missing
        return
    rows = list(table.records())
    if needed is _PLAIN:
        _read_plain(rows, table.file, reading)
    else:
        _read_sheet(rows, table.file, read_key(key or _key_of(path)), reading)


def _key_of(path: Path) -> Path:
    for folder in (path.parent, path.absolute().parent.parent):
        if (folder / KEY_FILE).is_file():
            return folder / KEY_FILE
    message = f"has no {KEY_FILE} beside it or one folder up"
    raise SetupError(Problem(message, str(path), allowed="name the key with --key"))


def _rank(row: _Row, file: str, line: int, reading: _RanksRead) -> int | None:
    """The rank, None where it is blank or no rank, which is then reported."""
    if not row["rank"]:
        return None
    match = _WHOLE.fullmatch(row["rank"])
    if match and int(match[1]) in RANKS:
        return int(match[1])
    allowed = "1 (best) to 5 (clearly wrong), or blank"
    problem = Problem("is no rank", file, line, "rank", shorten(row["rank"]), allowed, "no rank")
    reading.problems.append(problem)
    return None


# --- sheets --------------------------------------------------------------------------------------


def _read_sheet(
    rows: Sequence[tuple[int, _Row]], file: str, key: SheetKey, reading: _RanksRead
) -> None:
    for item in key.items:
        at = (item.task, item.item_id)
        reading.asked.setdefault(at, AskedItem(item.task, item.item_id, item.group, item.label))
        reading.systems[at] |= set(item.hashes)
    for expert in dict.fromkeys(row["expert"] for _, row in rows):
        reading.begun.update(dict.fromkeys((i.task, i.item_id, expert) for i in key.items))
    for line, row in rows:
        rank = _rank(row, file, line, reading)
        found = _locate(row, key)
        if isinstance(found, Problem):
            reading.problems.append(replace(found, file=file, line=line))
        elif rank is not None:
            item, system = found
            reading.add(HumanRank(item.task, item.item_id, row["expert"], system, rank), file, line)


def _locate(row: _Row, key: SheetKey) -> Problem | tuple[KeyItem, str]:
    """The item and the system of a row; a problem, without file and line, where it does not fit the
    key."""

    def problem(column: str, message: str, allowed: str) -> Problem:
        return Problem(message, "", None, column, shorten(row[column]), allowed, message)

    if row["expert"] not in key.letters:
        return problem("expert", "is no expert of the key", ", ".join(sorted(key.letters)))
    number = _WHOLE.fullmatch(row["item"])
    if not number or not 1 <= int(number[1]) <= len(key.items):
        return problem("item", "is no item of the key", f"1 to {len(key.items)}")
    place = int(number[1]) - 1
    item, systems = key.items[place], key.letters[row["expert"]][place]
    letters = SHEET_LETTERS[: len(systems)]
    letter = row["letter"].upper()
    if len(letter) != 1 or letter not in letters:
        return problem("letter", "is no letter of this item", f"{letters[0]} to {letters[-1]}")
    system = systems[letters.index(letter)]
    if row["text_hash"] != item.hashes[system]:
        message = "the text is not the key's: this is the sheet of other arguments"
        return problem("text_hash", message, item.hashes[system])
    return item, system


# --- plain tables --------------------------------------------------------------------------------


def _read_plain(rows: Sequence[tuple[int, _Row]], file: str, reading: _RanksRead) -> None:
    for line, row in rows:
        blank = [column for column in _PLAIN[:-1] if not row[column]]
        if blank:
            reading.problems += [Problem("is blank", file, line, c, kind="blank") for c in blank]
            continue
        task, item_id, expert, system = (row[column] for column in _PLAIN[:-1])
        label, group = row.get("label", ""), row.get("group", "") or item_id
        new = AskedItem(task, item_id, group, label)
        known = reading.asked.setdefault((task, item_id), new)
        if (known.label, known.group) != (label, group) and ("label" in row or "group" in row):
            message = "the item has another label or group in another row"
            found = shorten(f"{label} {group}".strip())
            reading.problems.append(Problem(message, file, line, "item_id", found, kind=message))
        reading.systems[task, item_id].add(system)
        reading.begun[task, item_id, expert] = None
        rank = _rank(row, file, line, reading)
        if rank is not None:
            reading.add(HumanRank(task, item_id, expert, system, rank), file, line)


# --- whole items ---------------------------------------------------------------------------------


def _whole_items(reading: _RanksRead) -> HumanRanks:
    """The ranks of items that an expert ranked whole; the others are reported."""
    by_item: dict[_Asked, list[HumanRank]] = defaultdict(list)
    for rank, _ in reading.ranks.values():
        by_item[rank.task, rank.item_id, rank.expert].append(rank)
    warnings, blank, kept = [], defaultdict[tuple[str, str], int](int), list[HumanRank]()
    for task, item_id, expert in reading.begun:
        ranks = by_item[task, item_id, expert]
        asked = len(reading.systems[task, item_id])
        if len(ranks) == asked:
            kept += ranks
        elif ranks:
            message = f"{expert} ranked {len(ranks)} of {asked} arguments of {shorten(item_id)}"
            message += ": the item is left out for this expert"
            warnings.append(Problem(message, field=task, kind="ranked in part"))
        else:
            blank[task, expert] += 1
    for (task, expert), n in blank.items():
        message = f"{expert} left {n} item{'s' * (n > 1)} without any rank"
        warnings.append(Problem(message, field=task, kind="not ranked"))
    return HumanRanks(tuple(kept), reading.asked, tuple(warnings))


RANKS = (1, 2, 3, 4, 5)
HUMANS = "humans"  # the ranker that all experts are together

ItemKey = tuple[str, str]  # task and item_id


@dataclass(frozen=True, slots=True)
class HumanRank:
    """The rank that one expert gave to one system's argument."""

    task: str
    item_id: str
    expert: str
    system: str
    rank: int


@dataclass(frozen=True, slots=True)
class AskedItem:
    """An item that was put before experts; `label` is its right class, '' where not known."""

    task: str
    item_id: str
    group: str
    label: str = ""


@dataclass(frozen=True)
class HumanRanks:
    """Ranks of whole items: an expert ranked all arguments of an item, or none of it counts.

    `asked` are all items that were put before anybody, ranked or not. `warnings` say which ranks
    were left out. `left_out` are labels whose items were taken out on purpose.
    """

    ranks: tuple[HumanRank, ...]
    asked: Mapping[ItemKey, AskedItem]
    warnings: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order of the items."""
        return tuple(dict.fromkeys(task for task, _ in self.asked))

    def experts(self, task: str) -> tuple[str, ...]:
        """The experts who ranked at least one item of the task, sorted."""
        return tuple(sorted({rank.expert for rank in self.ranks if rank.task == task}))

    def systems(self, task: str) -> tuple[str, ...]:
        """Whose arguments were ranked on the task, sorted."""
        return tuple(sorted({rank.system for rank in self.ranks if rank.task == task}))

    def array(self, task: str, items: Sequence[str], systems: Sequence[str]) -> FloatArray:
        """(items, systems, experts of the task), NaN where somebody gave no rank."""
        experts = self.experts(task)
        at = {key: i for i, key in enumerate(product(items, systems, experts))}
        values = np.full(len(at), np.nan)
        for rank in self.ranks:
            place = at.get((rank.item_id, rank.system, rank.expert))
            if rank.task == task and place is not None:
                values[place] = rank.rank
        return values.reshape(len(items), len(systems), len(experts))

    def without(self, labels: Collection[str]) -> HumanRanks:
        """These ranks without the items of these labels. Raises SetupError for an unknown one."""
        known = {item.label for item in self.asked.values() if item.label}
        allowed = ", ".join(sorted(known)) or "none: no label of an item is known"
        unknown = (shorten(label) for label in labels if label not in known)
        raise_any([Problem("no item has this label", found=x, allowed=allowed) for x in unknown])
        asked = {key: item for key, item in self.asked.items() if item.label not in labels}
        ranks = tuple(rank for rank in self.ranks if (rank.task, rank.item_id) in asked)
        return replace(self, ranks=ranks, asked=asked, left_out=(*self.left_out, *labels))


def human_scores(
    ranks: HumanRanks, task: str, systems: Sequence[str], groups: Mapping[str, str]
) -> RankerScores:
    """Minus the mean rank over the experts, for the items that at least one of them ranked.

    `groups` maps every item that was to be ranked to what is taken whole. Raises SetupError
    for ranks of items or systems that are not among them.
    """
    chosen = [rank for rank in ranks.ranks if rank.task == task]
    _check_known(chosen, task, systems, groups)
    ranked = {rank.item_id for rank in chosen}
    items = tuple(item for item in groups if item in ranked)
    return RankerScores(
        task=task,
        ranker=HUMANS,
        kind="humans",
        systems=tuple(systems),
        items=items,
        clusters=Clusters.of(groups[i] for i in items).codes,
        values=-mean_of_defined(ranks.array(task, items, systems)),
        n_missing=len(groups) - len(items),
    )


def _check_known(
    ranks: Sequence[HumanRank], task: str, systems: Sequence[str], groups: Mapping[str, str]
) -> None:
    no_item = f"is no ranked item of {task}, and has human ranks"
    no_system = f"writes no arguments on {task}, and has human ranks"
    items = dict.fromkeys(r.item_id for r in ranks if r.item_id not in groups)
    others = dict.fromkeys(r.system for r in ranks if r.system not in systems)
    allowed = ", ".join(systems)
    problems = [Problem(no_item, "", None, "item_id", shorten(i)) for i in items]
    problems += [Problem(no_system, "", None, "system", shorten(s), allowed) for s in others]
    raise_any(problems)
