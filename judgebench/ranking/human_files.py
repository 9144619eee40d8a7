"""Where a run folder keeps the ranks of people.

human/given.csv     the ranks that bench.yaml names, as a plain table
human/sheets/       the sheets that `judgebench rank sheet` wrote, read where none were given
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from judgebench.errors import Problem, SetupError
from judgebench.files import write_atomically
from judgebench.proxy.task import GOLD
from judgebench.proxy_run.load import RankBench
from judgebench.ranking.human import HumanRanks, human_scores
from judgebench.ranking.rank_files import read_ranks
from judgebench.verdict_file import disk_errors

GIVEN, SHEETS = "human/given.csv", "human/sheets"
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
    path = run / GIVEN
    with disk_errors(path):
        if ranks is None:
            path.unlink(missing_ok=True)
            return
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(_COLUMNS)
        for r in ranks.ranks:
            item = ranks.asked[r.task, r.item_id]
            writer.writerow((r.task, r.item_id, r.expert, r.system, r.rank, item.label, item.group))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.getvalue().encode("utf-8"))


def ranks_of(run: Path) -> HumanRanks | None:
    """The ranks of a run's people; None where nobody has ranked. Raises SetupError with every
    problem of the sheets."""
    for path in (run / GIVEN, run / SHEETS):
        if path.is_file() or any(path.glob("*.csv")):
            found = read_ranks([path])
            return found if found.ranks else None
    return None
