"""Where a run folder keeps the ranks of people.

human/given.csv     the ranks that bench.yaml names, as a plain table
human/given.txt     what of them was left out, one sentence per line
human/sheets/       the sheets that `judgebench rank sheet` wrote, read where none were given
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.data.spreadsheet import quoted, to_csv
from judgebench.errors import Problem, SetupError
from judgebench.files import write_atomically
from judgebench.ranking.human import AskedItem, HumanRank, HumanRanks, ItemKey, human_scores
from judgebench.ranking.proxy.task import GOLD
from judgebench.ranking.rank_files import read_ranks
from judgebench.ranking.sheet import KEY_FILE, items_of_run, read_key, text_hash
from judgebench.store.verdict_file import disk_errors

if TYPE_CHECKING:
    from judgebench.ranking.rank_bench import RankBench

GIVEN, LEFT_OUT, SHEETS = "human/given.csv", "human/given.txt", "human/sheets"
_COLUMNS = ("task", "item_id", "expert", "system", "rank", "label", "group")


def given_ranks(bench: RankBench) -> HumanRanks | None:
    """The ranks in the files that the bench.yaml names; None where it names none.

    Raises SetupError with every problem, an unknown item or system among them.
    """
    paths = [bench.file.parent / name for name in bench.proxy.human_ranks]
    if not paths:
        return None
    ranks = read_ranks(paths)
    for task in ranks.tasks:
        entry = next((e for e in bench.tasks if e.task.name == task), None)
        if entry is None:
            allowed = ", ".join(e.task.name for e in bench.tasks)
            problem = Problem("is no task of this benchmark", found=task, allowed=allowed)
            raise SetupError(replace(problem, file=str(paths[0]), field="task"))
        names = [g.name for g in entry.generators] + [a.system for a in entry.given]
        groups = {i.item_id: i.group for i in entry.task.ranked}
        human_scores(ranks, task, list(dict.fromkeys([GOLD, *names])), groups)
    return ranks


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
        write_atomically(given, to_csv(_COLUMNS, map(_row, ranks.ranks, repeat(ranks.asked))))


def _row(rank: HumanRank, asked: Mapping[ItemKey, AskedItem]) -> list[str]:
    item = asked[rank.task, rank.item_id]
    told = (rank.task, rank.item_id, rank.expert, rank.system, str(rank.rank))
    return [quoted(cell) for cell in (*told, item.label, item.group)]


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
