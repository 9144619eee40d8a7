"""Ranks that people gave: 1 for the best argument of an item, 5 for a clearly wrong one, ties free.

They come from filled sheets with their key, from plain tables made elsewhere, and from what a run
folder keeps of either. A plain table has the columns task, item_id, expert, system and rank, and
may have label and group.

human/given.csv     the ranks that bench.yaml names, as a plain table
human/given.txt     what of them was left out, one sentence per line
human/sheets/       the sheets that `judgebench rank sheet` wrote, read where none were given
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np

from judgebench.data.delimited import quoted, to_csv
from judgebench.data.findings import counted_once
from judgebench.data.table import Table
from judgebench.data.tables import collect_table, missing_columns
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import disk_errors, write_atomically
from judgebench.ranking.rankers import RankerScores
from judgebench.ranking.sheet import (
    KEY_FILE,
    SHEET_LETTERS,
    KeyItem,
    SheetKey,
    items_of_run,
    read_key,
    text_hash,
)
from judgebench.stats.arrays import Clusters, FloatArray, mean_of_defined

GIVEN, LEFT_OUT, SHEETS = "human/given.csv", "human/given.txt", "human/sheets"
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
    elif any((run / SHEETS).glob("*.csv")):
        found = _of_these_texts(read_ranks([run / SHEETS]), run)
    else:
        return None
    return found if found.ranks or found.warnings else None


def _of_these_texts(ranks: HumanRanks, run: Path) -> HumanRanks:
    """Without the items whose arguments are others by now than those that stand on the sheets."""
    key = read_key((run / SHEETS).parent / KEY_FILE)
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
    left = Problem(message + "their ranks are left out", field=SHEETS)
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
