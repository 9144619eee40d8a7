"""A table whose columns are called by name: texts, and numbers with gaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.data.findings import Findings
from judgebench.data.guess import roles_by_name
from judgebench.data.open_table import frame_table, open_table
from judgebench.data.spreadsheet import filled_rows, missing_columns
from judgebench.errors import Problem, SetupError
from judgebench.stats.arrays import FloatArray

_NO_SCORES = ("row", "repeat", "run", "seed")  # numbers that stand beside scores


@dataclass(frozen=True)
class Columns:
    """Every column of a table as texts (rows,), "" where a cell is blank. `lines` count as a
    spreadsheet shows them."""

    file: str
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]

    def numeric(self) -> list[str]:
        """The columns that hold numbers and blanks alone, one number at least."""
        return [c for c, cells in self.cells.items() if any(cells) and all(map(_fits, cells))]

    def scores(self, *aside: str | None) -> list[str]:
        """The columns that may be scores: neither ids nor those named `aside`, and most of what
        they hold is numbers, so that a slip in a cell is reported and does not hide a column."""
        ids = [*_NO_SCORES, *aside, roles_by_name(self.cells).get("item_id")]
        held = {c: [*map(_fits, filter(None, cells))] for c, cells in self.cells.items()}
        return [c for c, fits in held.items() if 2 * sum(fits) > len(fits) and c not in ids]

    def filled(self, column: str) -> Sequence[str]:
        """The texts (rows,) of a column. Raises SetupError with every cell that is blank."""
        cells = list(zip(self.lines, self.cells[column], strict=True))
        if wrong := [Problem("is blank", self.file, n, column) for n, cell in cells if not cell]:
            raise SetupError(wrong)
        return self.cells[column]

    def numbers(self, *columns: str) -> FloatArray:
        """(rows, columns), NaN where a cell is blank or `nan`. Raises SetupError with every cell
        that holds no finite number."""
        wrong = [
            Problem("is no number", self.file, line, column, cell)
            for column in columns
            for line, cell in zip(self.lines, self.cells[column], strict=True)
            if not _fits(cell)
        ]
        if wrong:
            raise SetupError(wrong)
        rows = [[float(cell or "nan") for cell in self.cells[column]] for column in columns]
        return np.array(rows, dtype=np.float64).reshape(len(columns), len(self.lines)).T


def _fits(cell: str) -> bool:
    try:
        return not cell or not math.isinf(float(cell))
    except ValueError:
        return False


def read_columns(table: Any, needed: Iterable[str] = (), name: str = "the table") -> Columns:
    """A file of any format, or a DataFrame, which messages call by `name`.

    Raises SetupError with every problem, and for columns of `needed` that there are not.
    """
    findings = Findings()
    given = isinstance(table, str | Path)
    opened = open_table(Path(table), findings) if given else frame_table(table, name, findings)
    problems = missing_columns(opened, dict.fromkeys(needed)) if opened else []
    rows = list(filled_rows(opened)) if opened else []
    if findings.errors or problems:
        raise SetupError([*findings.errors, *problems])
    assert opened is not None  # otherwise the findings say why
    cells = {c: [row[c].strip() for _, row in rows] for c in opened.columns if c}
    return Columns(opened.file, [line for line, _ in rows], cells)
