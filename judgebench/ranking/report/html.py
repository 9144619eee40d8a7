"""The rankings of the page: what they show in words, medal grids, tables."""

from __future__ import annotations

from typing import Any

from judgebench.ranking.report.basis import (
    agreement_tables,
    controls_below_table,
    length_table,
    self_preference_table,
    systems_table,
    tasks_table,
    trained_table,
)
from judgebench.ranking.report.looks import system_steps
from judgebench.ranking.report.lookup import metric_words
from judgebench.ranking.report.medals import MedalGrid, has_controls, medal_grid, ordinal
from judgebench.ranking.report.tables import (
    average_tables,
    rank_tables,
    score_table,
    with_rows,
)
from judgebench.ranking.report.words import HOW_SURE, NO_RANKINGS, summary
from judgebench.ranking.result import RankedTask, Rankings
from judgebench.report.words import counted


def ranking_section(rankings: Rankings) -> dict[str, Any]:
    """What the template of the rankings needs."""
    said = summary(rankings)
    tasks = [_task(rankings, task, number) for number, task in enumerate(rankings.tasks, start=1)]
    return {
        "notes": rankings.notes,
        "summary": said,
        "how_sure": HOW_SURE if said else NO_RANKINGS,
        "tasks": [task for task in tasks if task["scores"]],
        "looks": {
            name: f"{kind}-{number}" for name, (kind, number) in system_steps(rankings).items()
        },
        "groups": [
            (heading, tables)
            for heading, tables in (
                ("All tasks together", average_tables(rankings)),
                ("Do rankers agree?", agreement_tables(rankings)),
                ("Control cases", with_rows([controls_below_table(rankings)])),
                ("Biases", with_rows([length_table(rankings), self_preference_table(rankings)])),
                ("Training and arguments", _made(rankings)),
            )
            if tables
        ],
    }


def _made(rankings: Rankings) -> list[Any]:
    return with_rows([trained_table(rankings), systems_table(rankings), tasks_table(rankings)])


def _task(rankings: Rankings, task: RankedTask, number: int) -> dict[str, Any]:
    grids = [("Real arguments only", medal_grid(rankings, task, False))]
    if has_controls(rankings, task):
        grids.append(("With the control cases", medal_grid(rankings, task, True)))
    left_out = f"; not ranked: {', '.join(task.left_out)}" if task.left_out else ""
    return {
        "anchor": f"ranking-{number}",
        "title": task.title,
        "about": f"{counted(task.n, 'instance')}, scored by {metric_words(task)}{left_out}.",
        "grids": [(title, grid, _places(grid)) for title, grid in grids if grid.rows],
        "scores": with_rows([score_table(rankings, task, number)]),
        "ranks": rank_tables(rankings, task, number),
    }


def _places(grid: MedalGrid) -> list[tuple[str, str]]:
    """Each column's medal or number, and the place in words for who cannot see medals."""
    return [(column, ordinal(i)) for i, column in enumerate(grid.columns, start=1)]
