"""A table in memory: the cells of each column, and the row in which each stands."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from judgebench.data.cells import Cell, Nested, clean, mark_forbidden
from judgebench.data.delimited import unquoted
from judgebench.data.vocabulary import columns_by_role
from judgebench.errors import Problem, raise_any
from judgebench.stats.arrays import FloatArray

_NO_SCORES = ("row", "repeat", "run", "seed")  # numbers that stand beside scores


@dataclass(frozen=True, eq=False)
class Table:
    """The table of a file, of a sheet or of a DataFrame.

    `file` is what messages call it: a path, or the name of a DataFrame. `columns` holds the cells
    (rows,) of each column by its name, and `lines` the row of each as a spreadsheet shows it: the
    header is row 1. In JSON it is the line, or the number of the object.
    """

    file: str
    columns: Mapping[str, Sequence[Cell]]
    lines: Sequence[int]
    sheet: str = ""  # of a workbook of several
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of ordered categories
    headers: Sequence[tuple[int, ...]] = ()  # rows that may be the header, where it is not clear

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def name(self) -> str:
        """The name in sentences."""
        name = mark_forbidden(Path(self.file).name)
        return f"{name}, sheet {self.sheet}" if self.sheet else name

    @property
    def stem(self) -> str:
        """The name that says what is in it, as an annotator's or a judge's file is called."""
        return self.sheet or Path(mark_forbidden(self.file).removesuffix(".gz")).stem

    def texts(self, column: str) -> list[str]:
        """The cells of a column (rows,) as texts without outer space and what is invisible; a list
        is JSON, and a nested value empty."""
        if column not in self._texts:
            self._texts[column] = [_text(cell) for cell in self.columns[column]]
        return self._texts[column]

    def rows(self, *columns: str) -> Iterator[tuple[str, ...]]:
        """The texts of these columns, row by row."""
        return zip(*map(self.texts, columns), strict=True) if columns else iter(())

    def contents(self, column: str) -> list[str]:
        """The cells of a column (rows,) as texts without outer space, in which nothing else is
        changed: a list is JSON, and what `quoted` keeps from running is as it was."""
        return [text.strip() for text in map(_content, self.columns[column])]

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """The row number and the contents by column of each row."""
        for line, *row in zip(self.lines, *map(self.contents, self.columns), strict=True):
            yield line, dict(zip(self.columns, row, strict=True))

    def numeric(self) -> list[str]:
        """The columns that hold numbers and blanks alone, one number at least."""
        contents = {column: self.contents(column) for column in self.columns}
        return [c for c, cells in contents.items() if any(cells) and all(map(_is_number, cells))]

    def scores(self, *excluded: str | None) -> list[str]:
        """The columns that may be scores: no ids, not `excluded`, and most of what they hold is
        numbers, so that a slip in a cell is reported and does not hide a column."""
        item = columns_by_role(self.columns, ["item"]).get("item")
        candidates = [c for c in self.columns if c not in (*_NO_SCORES, *excluded, item)]
        fits = {c: [*map(_is_number, filter(None, self.contents(c)))] for c in candidates}
        return [c for c in candidates if 2 * sum(fits[c]) > len(fits[c])]

    def filled(self, column: str) -> list[str]:
        """The contents (rows,) of a column. Raises SetupError with every cell that is blank."""
        contents = self.contents(column)
        blank = [line for line, cell in zip(self.lines, contents, strict=True) if not cell]
        raise_any([Problem("is blank", self.file, line, column) for line in blank])
        return contents

    def numbers(self, *columns: str) -> FloatArray:
        """(rows, columns), NaN where a cell is blank or `nan`. Raises SetupError with every cell
        that holds no finite number."""
        contents = {column: self.contents(column) for column in columns}
        raise_any([
            Problem("is no number", self.file, line, column, cell)
            for column, cells in contents.items()
            for line, cell in zip(self.lines, cells, strict=True)
            if not _is_number(cell)
        ])  # fmt: skip
        rows = [[float(cell or "nan") for cell in contents[column]] for column in columns]
        return np.array(rows, dtype=np.float64).reshape(len(columns), len(self)).T

    def at(self, places: Sequence[int]) -> Table:
        """The table of the rows at these places."""
        columns = {name: [cells[i] for i in places] for name, cells in self.columns.items()}
        return replace(self, columns=columns, lines=[self.lines[i] for i in places])

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {}


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return clean(cell)
    return _content(cell) if isinstance(cell, tuple) else ""


def _content(cell: Cell) -> str:
    if isinstance(cell, str):
        return unquoted(cell)
    value = cell.value if isinstance(cell, Nested) else cell
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_number(cell: str) -> bool:
    try:
        return not cell or not math.isinf(float(cell))
    except ValueError:
        return False
