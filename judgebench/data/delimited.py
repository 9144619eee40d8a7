"""CSV and TSV as rows of texts, quoted as spreadsheets quote them or not at all.

A quote that was not meant as one may close in a later row, and several rows then read as one. Such
a quote is found, and every line stays a row of its own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from typing import Literal

from judgebench.data.cells import RawRow
from judgebench.data.findings import Findings

Quoting = Literal["standard", "none"]
_Row = tuple[int, list[str], bool]  # line, cells, sound

_LONGEST_FIELD = 2**27  # characters; the csv module stops at 131,072 unless set
_LOOKED_AT = 500  # lines at the start, which say the delimiter and what rows look like
_LOOKED_AT_CHARACTERS = 2**18
_ENOUGH = 20  # from which on it is known what the cells of a column look like
_LONG = 40  # characters, which a cell may have whatever the others have
_BREAK = re.compile("\r\n|\n|\r")
_QUOTED = re.compile('"(?:[^"]|"")*"')
_OPEN = "does not close at the end of the cell"
_FIX = "if quotes are part of the texts, write `quoting: none` for this file in a data.yaml"


def read_delimited(
    text: Iterator[str], format: str, quoting: Quoting | None, unread: Collection[str],
    file: str, findings: Findings,
) -> Iterator[RawRow]:  # fmt: skip
    """The header, then the rows of lines of text.

    `unread` are columns that nobody reads, known once the header is: there a quote without its
    match is counted, elsewhere it is an error. With `quoting` "none" quotes are text; with
    "standard" cells that span lines are never taken for several rows.
    """
    first = _start_of(text)
    if not first or not first[0].strip():
        findings.add("malformed", "has no header" if first else "is empty", (file, None))
        return
    csv.field_size_limit(_LONGEST_FIELD)
    delimiter = "\t" if format == "tsv" else _delimiter(first, quoting)
    lines = chain(iter(first), text)
    if quoting == "none":
        split = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        rows: Iterator[_Row] = ((line, cells, True) for line, cells in enumerate(split, start=1))
    else:
        usual = None if quoting else cache(partial(_Usual, first, delimiter))
        rows = _Quoted(delimiter, usual, unread).rows(lines, file, findings)
    width = 0
    for line, cells, sound in rows:
        width = width or len(cells)
        if len(cells) != width and any(cells):
            message = f"has {len(cells)} cells where the header has {width}"
            findings.add("ragged_row", message, (file, line))
            sound = False
        yield RawRow(line, cells, sound)


def _start_of(text: Iterator[str]) -> list[str]:
    first: list[str] = []
    room = _LOOKED_AT_CHARACTERS
    for line in islice(text, _LOOKED_AT):
        first.append(line)
        room -= len(line)
        if room < 0:
            break
    return first


def _delimiter(first: Sequence[str], quoting: Quoting | None) -> str:
    """Comma, semicolon or tab, whichever splits the header into most columns."""

    def columns(delimiter: str) -> int:
        if quoting == "none":
            return first[0].count(delimiter)
        return len(next(csv.reader(first, delimiter=delimiter)))

    return max(",;\t", key=columns)


class _AsBeforeError(Exception):
    """A row spans lines that were read before, for a row that spanned them as well."""


class _Quoted:
    """Reads quoted cells. Where a quote has no match, its line is split as if quotes were text, and
    the lines after it are read again.

    Of these, a row that spans lines would end where the first one did: it is not read to there, or
    reading would take the square of the lines.
    """

    def __init__(
        self, delimiter: str, usual: Callable[[], _Usual] | None, unread: Collection[str]
    ) -> None:
        self._delimiter, self._usual, self._unread = delimiter, usual, unread
        self._taken: list[str] = []  # the lines of the row that is read
        self._again: list[str] = []  # lines to be read again, the next one last
        self._why = ""  # what was wrong with the row that they were read for

    def rows(self, lines: Iterator[str], file: str, findings: Findings) -> Iterator[_Row]:
        """Line, cells and soundness of each row; faults are reported after the last one."""
        header: list[str] = []
        torn: dict[str, tuple[int, str, str, int]] = {}  # column: line, message, cell, how many
        line = 0
        while True:
            reader = csv.reader(self._feed(lines), delimiter=self._delimiter, strict=True)
            fault, known = "", False
            try:
                for cells in reader:
                    if len(self._taken) > 1 and (fault := self._fault(cells, header)):
                        break
                    line += 1
                    self._taken.clear()
                    header = header or cells
                    yield line, cells, True
            except csv.Error:
                fault = _OPEN
            except _AsBeforeError:
                fault, known = self._why, True
            if not fault:
                break
            line += 1
            cells, bad = self._split(header)
            self._again += self._taken[:0:-1]
            self._taken.clear()
            self._why = fault
            if known and not bad:
                yield line, cells, True
                continue
            if not bad:
                message = f"the quotes do not match up; nothing after this row was read; {_FIX}"
                findings.add("malformed", message, (file, line))
                break
            certain = fault == _OPEN or (self._usual and self._usual().known)
            wrong = [i for i in bad if header[i].strip() not in self._unread or not certain]
            for i in wrong:
                start, why, found, count = torn.get(header[i], (line, fault, cells[i], 0))
                torn[header[i]] = start, why, found, count + 1
            if not wrong:
                message = "a quote without its match, in a column that is not read: taken as text"
                findings.add("stray_quote", message, (file, line), header[bad[0]])
            yield line, cells, not wrong
        for column, (line, why, found, count) in torn.items():
            findings.add("malformed", _message(why, count), (file, line), column, found)

    def _feed(self, lines: Iterator[str]) -> Iterator[str]:
        while self._again:
            if self._taken:
                raise _AsBeforeError
            self._taken.append(self._again.pop())
            yield self._taken[-1]
        for line in lines:
            self._taken.append(line)
            yield line

    def _fault(self, cells: Sequence[str], header: Sequence[str]) -> str:
        """What is wrong with the quotes of a row of several lines; empty where nothing is."""
        if header and len(cells) != len(header):
            return _OPEN if self._split(header)[1] else ""
        merges = self._usual and self._usual().merges(cells)
        return f"closes {len(self._taken) - 1} rows further down" if merges else ""

    def _split(self, header: Sequence[str]) -> tuple[list[str], list[int]]:
        """The cells of the first line and the places of those in which a quote has no match, none
        where they do not fit the header."""
        cells = self._taken[0].rstrip("\r\n").split(self._delimiter)
        if len(cells) != len(header):
            return cells, []
        closed = [_QUOTED.fullmatch(cell) is not None for cell in cells]
        bad = [i for i, cell in enumerate(cells) if cell[:1] == '"' and not closed[i]]
        texts = zip(cells, closed, strict=True)
        return [c[1:-1].replace('""', '"') if whole else c for c, whole in texts], bad


def _message(why: str, count: int) -> str:
    more = f" (so in {count:,} rows, of which this is the first)" if count > 1 else ""
    spans = "" if why == _OPEN else "; if cells of it do span lines, `quoting: standard`"
    return f"a quote opens in this cell and {why}{more}: the quotes do not match up; {_FIX}{spans}"


class _Usual:
    """What the cells of each column look like at the start of a file, by which several lines are
    known as rows."""

    def __init__(self, first: Sequence[str], delimiter: str) -> None:
        self._delimiter = delimiter
        reader = csv.reader(first, delimiter=delimiter)
        header = next(reader)
        # Where every cell is quoted, no line inside of one can look like a row.
        self._all_quoted = first[0].rstrip("\r\n") == delimiter.join(f'"{n}"' for n in header)
        self._break = "\r\n" if first[0].endswith("\r\n") else ""
        self._columns = [_Column() for _ in header]
        rows = [row for row in reader if len(row) == len(header) and not self._lines(row)]
        for row in rows:
            for column, cell in zip(self._columns, row, strict=True):
                column.add(cell)
        self.known = len(rows) >= _ENOUGH

    def merges(self, cells: Sequence[str]) -> bool:
        """Whether cells that span lines are several rows: most lines fit the columns."""
        rows, columns = self._lines(cells), self._columns
        fitting = sum(all(c.fits(cell) for c, cell in zip(columns, r, strict=True)) for r in rows)
        return 2 * fitting > len(rows)

    def _lines(self, cells: Sequence[str]) -> list[list[str]]:
        """The lines of a row as rows; none unless each has as many delimiters as a row has."""
        inside = [_BREAK.search(cell) is not None for cell in cells]
        if self._all_quoted or len(cells) < 2 or not any(inside):
            return []
        flat = (
            cell if spans else cell.replace(self._delimiter, " ")
            for cell, spans in zip(cells, inside, strict=True)
        )
        whole = self._delimiter.join(flat)
        if self._break and self._break not in whole:
            return []  # rows end otherwise than the lines of a cell
        rows = [line.split(self._delimiter) for line in _BREAK.split(whole) if line.strip()]
        fit = len(rows) > 1 and all(len(row) == len(self._columns) for row in rows)
        return rows if fit else []


@dataclass(slots=True)
class _Column:
    """What the cells of a column look like."""

    any_blank: bool = False
    any_led: bool = False  # by a space
    any_spaced: bool = False
    filled: int = 0
    with_digits: int = 0
    with_letters: int = 0
    longest: int = 0

    def add(self, cell: str) -> None:
        if _BREAK.search(cell):
            return
        if not cell.strip():
            self.any_blank = True
            return
        self.filled += 1
        self.any_led |= cell[0].isspace()
        self.any_spaced |= " " in cell.strip()
        self.with_digits += any(map(str.isdigit, cell))
        self.with_letters += any(map(str.isalpha, cell))
        self.longest = max(self.longest, len(cell))

    def fits(self, cell: str) -> bool:
        """Whether the cell may be one of them. Where few are known, only a blank cell and a space
        at its start, as running text has after a comma, say that it may not."""
        if not cell.strip():
            return self.any_blank
        if cell[0].isspace() and not self.any_led:
            return False
        if self.filled < _ENOUGH:
            return True
        return (
            (self.any_spaced or " " not in cell.strip())
            and len(cell) <= max(_LONG, 2 * self.longest)
            and (self.with_digits < self.filled or any(map(str.isdigit, cell)))
            and (self.with_letters > 0 or not any(map(str.isalpha, cell)))
        )
