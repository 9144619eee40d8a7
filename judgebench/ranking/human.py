"""The ranks that people gave to arguments: tables that `judgebench annotate export` writes of a
study of the task `ranking`, or anybody's; and the studies that a ranking run prepares.

RUN/annotate/TASK/annotate.yaml, arguments.csv   blind: who wrote an argument is on no page
RUN/human/                                       tables of ranks, which every report reads
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from judgebench.data.findings import counted_once
from judgebench.data.formats import to_csv
from judgebench.data.tables import collect_table, missing_columns
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import disk_errors, write_atomically
from judgebench.ranking.rankers import KeptTask, RankerScores, argument_answer, read_tasks
from judgebench.ranking.task import write_text
from judgebench.stats.arrays import Clusters, FloatArray, mean_of_defined

RANKS = (1, 2, 3, 4, 5)
HUMANS = "humans"  # the ranker that all annotators are together
HUMAN_DIR, STUDIES_DIR = "human", "annotate"
N_CALIBRATION = 5  # items that everybody ranks first: as many as in section 3.3 of the paper
_ITEM_COLUMNS = ("item_id", "group", "question", "reference", "system", "text")
_RANK = re.compile(r"([1-5])(?:[.,]0+)?")  # a spreadsheet may make 3.0 of 3

ItemKey = tuple[str, str]  # task and item_id
ArgumentKey = tuple[str, str, str, str]  # task, item_id, annotator, system


@dataclass(frozen=True, slots=True)
class HumanRank:
    """The rank that one annotator gave to one system's argument."""

    task: str
    item_id: str
    annotator: str
    system: str
    rank: int


@dataclass(frozen=True, slots=True)
class AskedItem:
    """An item that was put before annotators; `label` is its right class, '' where not known."""

    task: str
    item_id: str
    group: str
    label: str = ""


@dataclass(frozen=True)
class HumanRanks:
    """Ranks of whole items: an annotator ranked all arguments of an item, or none of it counts.

    `asked` are all items of the tables, ranked or not. `warnings` say which ranks were left out.
    `left_out` are labels whose items were taken out on purpose.
    """

    ranks: tuple[HumanRank, ...]
    asked: Mapping[ItemKey, AskedItem]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order of the items."""
        return tuple(dict.fromkeys(task for task, _ in self.asked))

    def annotators(self, task: str) -> tuple[str, ...]:
        """The annotators who ranked at least one item of the task, sorted."""
        return tuple(sorted({rank.annotator for rank in self.ranks if rank.task == task}))

    def systems(self, task: str) -> tuple[str, ...]:
        """The systems whose arguments were ranked on the task, sorted."""
        return tuple(sorted({rank.system for rank in self.ranks if rank.task == task}))

    def array(self, task: str, items: Sequence[str], systems: Sequence[str]) -> FloatArray:
        """(items, systems, annotators of the task), NaN where somebody gave no rank."""
        annotators = self.annotators(task)
        cells = {key: i for i, key in enumerate(product(items, systems, annotators))}
        values = np.full(len(cells), np.nan)
        for rank in self.ranks:
            cell = cells.get((rank.item_id, rank.system, rank.annotator))
            if rank.task == task and cell is not None:
                values[cell] = rank.rank
        return values.reshape(len(items), len(systems), len(annotators))

    def without(self, labels: Collection[str]) -> HumanRanks:
        """These ranks without the items of these labels. Raises SetupError for an unknown one."""
        known = {item.label for item in self.asked.values() if item.label}
        allowed = ", ".join(sorted(known)) or "none: no label of an item is known"
        unknown = (shorten(label) for label in labels if label not in known)
        raise_any([Problem("no item has this label", found=x, allowed=allowed) for x in unknown])
        asked = {key: item for key, item in self.asked.items() if item.label not in labels}
        ranks = tuple(rank for rank in self.ranks if (rank.task, rank.item_id) in asked)
        return replace(self, ranks=ranks, asked=asked, left_out=(*self.left_out, *labels))


# --- tables ---------------------------------------------------------------------------------------


def read_ranks(paths: Sequence[Path]) -> HumanRanks:
    """The ranks in all these tables, with the columns task, item_id, annotator (or expert), system,
    rank, and where there are any label and group.

    Raises SetupError with every problem: a missing column, a blank cell, a rank that is none of 1
    to 5, an argument that an annotator ranked twice. A blank rank is none. An item that an
    annotator ranked in part is left out for this annotator, with a warning.
    """
    problems: list[Problem] = []
    ranks: dict[ArgumentKey, int | None] = {}
    asked: dict[ItemKey, AskedItem] = {}
    for path in paths:
        table = collect_table(path, (), problems)
        annotator = "expert" if table and "expert" in table.columns else "annotator"
        columns = ("task", "item_id", annotator, "system", "rank")
        missing = missing_columns(table, columns) if table else []
        problems += missing
        for line, row in table.records() if table and not missing else ():
            task, item_id, name, system, rank = (row[column] for column in columns)
            key = task, item_id, name, system
            problems += [
                replace(problem, file=str(path), line=line)
                for problem in _row_problems(row, columns, is_duplicate=key in ranks)
            ]
            match = _RANK.fullmatch(rank)
            ranks[key] = int(match[1]) if match else None
            group = row.get("group", "") or item_id
            asked[task, item_id] = AskedItem(task, item_id, group, row.get("label", ""))
    raise_any(counted_once(problems))
    return _whole_items(ranks, asked)


def _row_problems(
    row: Mapping[str, str], columns: Sequence[str], *, is_duplicate: bool
) -> Iterator[Problem]:
    """The problems of a row, without file and line."""
    blank = [column for column in columns[:-1] if not row[column]]
    yield from (Problem("is blank", field=column, kind="blank") for column in blank)
    if row["rank"] and not _RANK.fullmatch(row["rank"]):
        allowed = "1 (best) to 5 (clearly wrong), or blank"
        yield Problem("is no rank", "", None, "rank", shorten(row["rank"]), allowed, "no rank")
    if is_duplicate:
        yield Problem("the annotator ranked this argument before", field="rank", kind="twice")


def _whole_items(
    ranks: Mapping[ArgumentKey, int | None], asked: Mapping[ItemKey, AskedItem]
) -> HumanRanks:
    """The ranks of items that an annotator ranked whole, with a warning on the others."""
    systems = defaultdict[ItemKey, set[str]](set)
    by_annotator = defaultdict[tuple[str, str, str], list[HumanRank]](list)
    for (task, item_id, annotator, system), rank in ranks.items():
        systems[task, item_id].add(system)
        if rank is not None:
            ranked = HumanRank(task, item_id, annotator, system, rank)
            by_annotator[task, item_id, annotator].append(ranked)
    whole: list[HumanRank] = []
    warnings: list[str] = []
    for (task, item_id, annotator), item_ranks in by_annotator.items():
        n, n_systems = len(item_ranks), len(systems[task, item_id])
        if n == n_systems:
            whole += item_ranks
        else:
            note = f"{annotator} ranked {n} of {n_systems} arguments of {shorten(item_id)}"
            warnings.append(f"{task}: {note}: the item is left out for this annotator")
    return HumanRanks(tuple(whole), asked, tuple(warnings))


# --- a run folder ---------------------------------------------------------------------------------


def ranks_in(paths: Sequence[Path]) -> HumanRanks:
    """The ranks of a ranking run, or of tables. Raises SetupError where a run has none."""
    run = paths[0]
    if not run.is_dir():
        return read_ranks(paths)
    if ranks := ranks_of(run):
        return ranks
    raise SetupError(Problem("holds no table of human ranks", str(run / HUMAN_DIR)))


def ranks_of(run: Path) -> HumanRanks | None:
    """The ranks in the tables of a run's folder `human`, with the labels and groups of its tasks;
    None without a table. Raises SetupError with every problem, an unknown item or system too."""
    paths = sorted((run / HUMAN_DIR).glob("*.*"))
    if not paths:
        return None
    tasks = read_tasks(run)
    items = {(t.name, i.item_id): AskedItem(t.name, i.item_id, i.group, i.label_text)
             for t in tasks for i in t.instances}  # fmt: skip
    ranks = read_ranks(paths)
    check_known(ranks, {(*key, s) for t in tasks for key in items for s in t.shown.arguments})
    return replace(ranks, asked={key: items[key] for key in ranks.asked if key in items})


def check_known(ranks: HumanRanks, arguments: Collection[tuple[str, str, str]]) -> None:
    """Raise SetupError with every task, item and system of a rank that are not together among the
    `arguments`."""
    ranked = dict.fromkeys((r.task, r.item_id, r.system) for r in ranks.ranks)
    unknown = [" / ".join(key) for key in ranked if key not in arguments]
    message = "has human ranks, and is no argument that this run ranks (task / item / system)"
    problems = [Problem(message, field="human_ranks", found=x, kind=message) for x in unknown]
    raise_any(counted_once(problems))


def copy_ranks(run: Path, paths: Sequence[Path]) -> None:
    """Copy tables of ranks into the run folder, in place of those that an earlier run copied."""
    folder = run / HUMAN_DIR
    with disk_errors(folder):
        for earlier in folder.glob("given-*"):
            earlier.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        for n, path in enumerate(paths):
            write_atomically(folder / f"given-{n}{''.join(path.suffixes)}", path.read_bytes())


def write_studies(run: Path, seed: int) -> list[Path]:
    """Prepare a study for each task in which people rank its real arguments blind, and return its
    files annotate.yaml, for `judgebench annotate init`.

    Only instances on which every system has an argument are in it. A task with one system has no
    study. Raises DiskFailed.
    """
    with disk_errors(run):
        (run / HUMAN_DIR).mkdir(parents=True, exist_ok=True)
    return [
        _write_study(run / STUDIES_DIR / task.name, task, seed)
        for task in read_tasks(run)
        if len(task.shown.arguments) > 1
    ]


def _write_study(folder: Path, task: KeptTask, seed: int) -> Path:
    systems = task.shown.arguments
    rows = []
    for instance in task.instances:
        texts = {system: task.text(system, instance.item_id) for system in systems}
        for system, text in texts.items() if None not in texts.values() else ():
            answer = argument_answer(task.name, instance, system, text or "")
            rows.append([answer.item_id, instance.item_id, answer.question,
                         instance.label_text, system, answer.text])  # fmt: skip
    study = {
        "name": task.name,
        "task": "ranking",
        "items": "arguments.csv",
        "annotators": ["expert-1", "expert-2"],
        "per_item": 2,
        "calibration": min(N_CALIBRATION, len(rows) // len(systems)),
        "seed": seed,
    }
    head = "# People rank these arguments without knowing who wrote them: name them, then call\n"
    path = folder / "annotate.yaml"
    head += f"# judgebench annotate init {path} --to {folder / 'study'}. See docs/rank.md.\n"
    write_text(path, head + yaml.safe_dump(study, sort_keys=False))
    write_atomically(folder / "arguments.csv", to_csv(_ITEM_COLUMNS, rows))
    return path


def human_scores(
    ranks: HumanRanks, task: str, systems: Sequence[str], groups: Mapping[str, str]
) -> RankerScores:
    """Minus the mean rank over the annotators, for the items that at least one of them ranked.

    `groups` maps every item that was to be ranked to what is taken whole.
    """
    ranked = {rank.item_id for rank in ranks.ranks if rank.task == task}
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
