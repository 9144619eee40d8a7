"""The rows of files of each kind: CSV and TSV, JSON and JSON lines, .xlsx workbooks.

A quote in CSV that was not meant as one may close in a later row, and several rows then read as
one. Such a quote is found, and every line stays a row of its own. Numbers in JSON stay texts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from functools import cache, partial
from io import BytesIO
from itertools import chain, islice
from json import JSONDecoder
from typing import IO, Any, Literal
from zipfile import ZipFile

from pydantic_core import from_json

from judgebench.data.cells import Cell, Nested, Paths, RawRow, Steps, dig, scalar_text
from judgebench.data.findings import Findings
from judgebench.files import check_unpacked

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
    first: list[str] = []
    for line_of_text in islice(text, _LOOKED_AT):
        first.append(line_of_text)
        if sum(map(len, first)) > _LOOKED_AT_CHARACTERS:
            break
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
    yield from _of_one_width(rows, file, findings)


def read_spaced(
    text: Iterable[str], columns: Sequence[str], file: str, findings: Findings
) -> Iterator[RawRow]:
    """The header, then the rows of lines whose cells are parted by spaces; without `columns` the
    first line is the header."""
    split: Iterable[_Row] = ((n, line.split(), True) for n, line in enumerate(text, start=1))
    named: list[_Row] = [(0, [*columns], True)] if columns else []
    yield from _of_one_width(chain(named, split), file, findings)


def _of_one_width(rows: Iterable[_Row], file: str, findings: Findings) -> Iterator[RawRow]:
    width = 0
    for line, cells, sound in rows:
        width = width or len(cells)
        if len(cells) != width and any(cells):
            findings.add(
                "ragged_row", f"has {len(cells)} cells where the header has {width}", (file, line)
            )
            sound = False
        yield RawRow(line, cells, sound)


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
    """Reads quoted cells. Where a quote has no match, its line is split as if quotes were text,
    and the lines after it are read again.

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
                findings.add(
                    "malformed",
                    f"the quotes do not match up; nothing after this row was read; {_FIX}",
                    (file, line),
                )
                break
            certain = fault == _OPEN or (self._usual and self._usual().known)
            wrong = [i for i in bad if header[i].strip() not in self._unread or not certain]
            for i in wrong:
                start, why, found, count = torn.get(header[i], (line, fault, cells[i], 0))
                torn[header[i]] = start, why, found, count + 1
            if not wrong:
                findings.add(
                    "stray_quote",
                    "a quote without its match, in a column that is not read: taken as text",
                    (file, line),
                    header[bad[0]],
                )
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
        """Describe the fault in the quotes of a row of several lines; empty where there is
        none."""
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
    """The look of the cells of each column at the start of a file, by which several lines are
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
        """True where cells that span lines are several rows: most lines fit the columns."""
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
    """The look of the cells of a column."""

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
        """True where the cell may be one of them. Where few are known, only a blank cell and a
        space at its start, as running text has after a comma, say that it may not."""
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


_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str, "parse_constant": str}
# A list is a list and an object the tuple of its pairs, so that a duplicate key is noticed.
_AS_PAIRS = JSONDecoder(object_pairs_hook=tuple, **_AS_TEXT)
_AS_DICTS = JSONDecoder(**_AS_TEXT)
_LINE_ENDS = ("\n", "\r\n", "")
_TEXTS = {str}
LIST_NAME = "list_name"  # the column of the name of a list, where a file holds several
_MOST_CELLS, _MOST_BLANK = 5_000_000, 20  # of a table; times those that hold something
_Pairs = tuple[tuple[str, Any], ...]
_Object = tuple[int, _Pairs]  # its line, and its keys and values


def jsonl_columns(
    text: Iterable[str], paths: Paths, file: str, findings: Findings
) -> tuple[str, ...]:
    """The keys of all lines, in the order in which they occur; faulty lines are reported.
    `paths` learns which of them lead anywhere."""
    return _union(_jsonl_objects(text, file, findings), paths, file, findings)


def jsonl_rows(text: Iterable[str], columns: Sequence[str], paths: Paths) -> Iterator[RawRow]:
    """The lines under `columns`, which are all their keys, and under `paths` into their values;
    faulty ones are skipped."""
    deep = (*paths.found(columns).values(),)
    for line, content in enumerate(text, start=1):
        if content.isspace():
            continue
        try:
            value = _read_dict(content)
        except ValueError:
            continue
        if isinstance(value, dict):
            for one in paths.each(value):
                cells, all_texts = _cells(one, columns, deep)
                yield RawRow(line, cells, True, all_texts and _is_plain(content))


def read_json(
    text: io.TextIOWrapper, paths: Paths, file: str, findings: Findings
) -> Iterator[RawRow]:
    """The columns and then the rows of a list of objects. All of it is held in memory."""
    objects = list(_json_objects(text, file, findings))
    if columns := _union(objects, paths, file, findings):
        deep = paths.found(columns)
        yield RawRow(0, (*columns, *deep))
        for number, pairs in objects:
            for one in paths.each(dict(pairs)):
                yield RawRow(number, _cells(one, columns, tuple(deep.values()))[0])


def json_cell(value: Any) -> Cell:
    """A value as a cell."""
    try:
        return tuple(map(scalar_text, value)) if isinstance(value, list) else scalar_text(value)
    except ValueError:
        return Nested(value)


def _cells(
    value: dict[str, Any], columns: Sequence[str], paths: Sequence[Steps]
) -> tuple[tuple[Cell, ...], bool]:
    """An object's values under `columns` and `paths`, and whether each was a text."""
    found = tuple([value.get(column, "") for column in columns])
    if paths:
        found += tuple([dig(value, steps) for steps in paths])
    if set(map(type, found)) == _TEXTS:
        return found, True
    return tuple(map(json_cell, found)), False


def _is_plain(line: str) -> bool:
    """True where no text in this line of JSON can hold what is invisible or forbidden.

    JSON has no bare control character but U+007F. Escapes may encode any.
    """
    return line.isascii() and "\\u" not in line and "\\b" not in line and "\x7f" not in line


def _union(
    objects: Iterable[_Object], paths: Paths, file: str, findings: Findings
) -> tuple[str, ...]:
    """The union of the keys; a duplicate key in an object is reported."""
    columns: dict[str, None] = {}
    usual: list[str] = []  # most objects have the keys of the one before
    rows = filled = 0
    for line, pairs in objects:
        paths.look(pairs)
        names = [name for name, _ in pairs]
        rows, filled = rows + 1, filled + len(names)
        if names == usual:
            continue
        columns.update(dict.fromkeys(names))
        if len(set(names)) == len(names):
            usual = names
            continue
        seen: set[str] = set()
        for name in names:
            if name in seen:
                findings.add("duplicate_key", "duplicate key in the object", (file, line), name)
            seen.add(name)
    if not paths.has_rows:
        findings.add("bad_spec", "leads to no list in any object", (file, None), "rows")
    if rows * len(columns) > max(_MOST_BLANK * filled, _MOST_CELLS):
        findings.add(
            "malformed",
            f"its {rows:,} objects have {len(columns):,} different keys, too many for a table: "
            "give every object the same few keys, such as annotator, metric and label",
            (file, None),
        )
        return ()
    return tuple(columns)


def _jsonl_objects(text: Iterable[str], file: str, findings: Findings) -> Iterator[_Object]:
    for line, content in enumerate(text, start=1):
        if content.isspace():
            continue
        try:
            value = _parse(content, _AS_PAIRS)
        except ValueError as error:
            findings.add("malformed", f"is not JSON: {_reason(error)}", (file, line))
            continue
        if _is_object(line, value, file, findings):
            yield line, value


def _json_objects(text: io.TextIOWrapper, file: str, findings: Findings) -> Iterator[_Object]:
    try:
        values = _parse(text.read(), _AS_PAIRS)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        findings.add("malformed", f"is not JSON: {_reason(error)}", (file, line))
        return
    if (
        isinstance(values, tuple)
        and values
        and all(
            isinstance(rows, list) and {tuple}.issuperset(map(type, rows))
            for rows in dict(values).values()
        )
    ):
        values = [(*one, (LIST_NAME, name)) for name, rows in values for one in rows]
    if _is_grid(values):
        values = list(_cells_of(values))
    if not isinstance(values, list):
        found = "an object" if isinstance(values, tuple) else type(values).__name__
        findings.add(
            "malformed",
            f"must hold a list of objects, holds {found}",
            (file, None),
            allowed=f"a list, several by name (then the column {LIST_NAME}), or {GRID}",
        )
        return
    for number, value in enumerate(values, start=1):
        if _is_object(number, value, file, findings):
            yield number, value


GRID = "labels by annotator and item: {annotator: {item: label}}"


def _is_grid(values: Any) -> bool:
    """True for objects by name that hold single values by key."""
    return isinstance(values, tuple) and all(
        isinstance(row, tuple) and row and not any(isinstance(v, tuple | list) for _, v in row)
        for _, row in values
    )


def _cells_of(grid: Sequence[tuple[str, _Pairs]]) -> Iterator[_Pairs]:
    """A row for each cell: the fewer names are the annotators, the others the items."""
    inner = {key for _, row in grid for key, _ in row}
    names = (LIST_NAME, "item_id") if len(grid) <= len(inner) else ("item_id", LIST_NAME)
    for name, row in grid:
        for key, value in row:
            yield (names[0], name), (names[1], key), ("label", value)


def _is_object(line: int, value: Any, file: str, findings: Findings) -> bool:
    if isinstance(value, tuple):
        return True
    findings.add("malformed", "must hold an object", (file, line), found=str(value))
    return False


def _parse(text: str, decoder: JSONDecoder) -> Any:
    """The value that `text` holds. Raises ValueError where it holds none."""
    try:
        if text and not text[0].isspace():  # then this is quicker than `decode`
            value, end = decoder.raw_decode(text)
            if text[end:] in _LINE_ENDS:
                return value
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _read_dict(text: str) -> Any:
    """Like `_parse`; three times as fast for an object of texts only."""
    with suppress(ValueError, TypeError):  # TypeError: a byte that is no UTF-8
        value = from_json(text, cache_strings="keys")
        if isinstance(value, dict) and set(map(type, value.values())) == _TEXTS:
            return value
    return _parse(text, _AS_DICTS)


def _reason(error: ValueError) -> str:
    return str(getattr(error, "msg", error))


Cells = tuple[Any, ...]
BETWEEN = " / "  # names of sheets, in which there is no slash
_MOST_ROWS = 1_048_576  # of a sheet, in any spreadsheet program


def read_workbook(
    data: IO[bytes], sheet: str | None, unread: Collection[str], file: str, findings: Findings
) -> Iterator[RawRow]:
    """The header and the rows of a sheet, by default the only one that holds anything.

    A formula is the value that was stored with it; without one it is an error, except in the
    columns `unread`, known once the header is.
    """
    import openpyxl

    try:
        # Values and formulas are two views of a file: a value that was never stored shows as none.
        content = BytesIO(data.read())
        with ZipFile(content) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
        check_unpacked(unpacked, len(content.getbuffer()))
        values = openpyxl.load_workbook(content, read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(content, read_only=True)
        name = _sheet(values, sheet, file, findings)
        if name is not None:
            shown, written = _sheet_cells(values[name]), _sheet_cells(formulas[name])
            yield from _sheet_rows(shown, written, unread, file, findings)
    except OSError as error:
        findings.add("unreadable_file", f"cannot be read: {error}", (file, None))
    except Exception as error:  # a damaged file fails in whatever part of openpyxl reads it
        reason = str(error) or type(error).__name__
        findings.add("unreadable_file", f"is no .xlsx workbook: {reason}", (file, None))


def _sheet(workbook: Any, wanted: str | None, file: str, findings: Findings) -> str | None:
    """The sheet to read; None, which is reported, where it is unclear."""
    names: list[str] = [sheet.title for sheet in workbook.worksheets]
    if wanted is not None:
        if wanted in names:
            return wanted
        findings.add(
            "bad_spec",
            "the workbook has no sheet of this name",
            (file, None),
            "sheet",
            wanted,
            BETWEEN.join(names),
        )
        return None
    filled = [name for name in names if any(map(any, _sheet_cells(workbook[name])))]
    if len(filled) > 1:
        findings.add(
            "bad_spec",
            "has several sheets: name one with `sheet: NAME` in a data.yaml",
            (file, None),
            "sheet",
            allowed=BETWEEN.join(filled),
        )
        return None
    return (filled or names)[0]


def _sheet_cells(sheet: Any) -> Iterator[Cells]:
    """The rows of a sheet as they are: what the file says of its own size may be wrong."""
    sheet.reset_dimensions()
    for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if line > _MOST_ROWS:
            raise OSError(f"a sheet has more than {_MOST_ROWS:,} rows")
        yield cells


def _sheet_rows(
    values: Iterable[Cells], formulas: Iterable[Cells], unread: Collection[str], file: str,
    findings: Findings,
) -> Iterator[RawRow]:  # fmt: skip
    header: list[str] = []
    blank: list[RawRow] = []  # those at the end are formatting
    bare: dict[str, tuple[int, str, int]] = {}  # column: line, formula, how many
    both = zip(values, formulas, strict=True)
    begun = [*islice(both, _LOOKED_AT)]
    above = next((i for i, (cells, _) in enumerate(begun) if _filled(cells) > 1), 0)
    for line in range(1, above + 1):
        findings.add("row_above_header", "a row above the header is not read", (file, line))
    rows = enumerate(chain(begun[above:], both), start=above + 1)
    for line, (cells, written) in rows:
        texts = ["" if cell is None else _sheet_text(cell) for cell in cells]
        while len(texts) > len(header) and not texts[-1]:
            texts.pop()
        header = header or texts
        sound = len(texts) <= len(header)
        if not sound:
            findings.add(
                "ragged_row",
                f"has {len(texts)} cells where the header has {len(header)}",
                (file, line),
            )
        for column, cell, formula in zip(header, cells, written, strict=False):
            if cell is None and formula is not None and column.strip() not in unread:
                first, shown, count = bare.get(column, (line, str(formula), 0))
                bare[column] = first, shown, count + 1
                sound = False
        row = RawRow(line, texts, sound)
        if line > above + 1 and sound and not any(texts):
            blank.append(row)
            continue
        yield from blank
        blank.clear()
        yield row
    for column, (line, formula, count) in bare.items():
        more = f" (so in {count:,} rows, of which this is the first)" if count > 1 else ""
        findings.add(
            "malformed",
            f"a formula without a stored value{more}: open the file in a spreadsheet program and "
            "save it",
            (file, line),
            column,
            formula,
        )


def _filled(cells: Cells) -> int:
    return sum(cell is not None and str(cell).strip() != "" for cell in cells)


def _sheet_text(value: object) -> str:
    """A date without a time of day is written without one."""
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    with suppress(ValueError):
        return scalar_text(value)
    return str(value)
