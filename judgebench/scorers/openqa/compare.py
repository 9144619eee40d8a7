"""Open answers beside closed ones, question by question, for the same systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from judgebench.data.columns import read_columns
from judgebench.errors import Problem, SetupError
from judgebench.scorers.correlate import Correlations, Roles, correlate_table

CLOSED = "closed accuracy"
_SAYS = {"true": "1", "yes": "1", "correct": "1", "false": "0", "no": "0", "wrong": "0"}


def open_against_closed(
    opened: Any, closed: Any, where: Roles, correct: str = "correct", scores: Sequence[str] = ()
) -> Correlations:
    """How scores of open answers go with being right where options are given.

    Both tables, files or DataFrames, name question and system in the columns `group` and `system`
    of `where`. `closed` says in `correct` whether an answer was right (1 or 0, yes or no); of
    several answers the mean counts. `scores` are columns of `opened`, by default all numbers.
    Pearson's r over items is then the point-biserial correlation. Raises SetupError with every
    problem of the tables, and where no question and system is in both.
    """
    import pandas as pd

    keys = [where.group, where.system]
    answers = read_columns(opened, [*keys, *scores], "the open answers")
    chosen = read_columns(closed, [*keys, correct], "the closed answers")
    said = {correct: [_SAYS.get(cell.lower(), cell) for cell in chosen.cells[correct]]}
    right = pd.DataFrame({key: chosen.cells[key] for key in keys})
    right[CLOSED] = replace(chosen, cells=said).numbers(correct)[:, 0]
    names = scores or answers.scores(*keys)
    table = pd.DataFrame({key: answers.cells[key] for key in keys})
    table[list(names)] = answers.numbers(*names)
    joined = table.merge(right.groupby(keys, as_index=False).mean(), on=keys, how="left")
    if not joined[CLOSED].notna().any():
        message, found = "no question and system is in both tables", " and ".join(keys)
        raise SetupError(Problem(message, chosen.file, found=found))
    return correlate_table(joined, replace(where, against=(CLOSED,)), {})
