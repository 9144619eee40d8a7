"""A table in memory: the cells of each column, and the row in which each stands."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import cached_property, lru_cache
from io import BytesIO, TextIOBase
from itertools import chain, islice
from json import JSONDecoder
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np

from judgebench.data.findings import Findings
from judgebench.data.vocabulary import columns_by_role, role_of
from judgebench.errors import MissingExtra, Problem, SetupError, raise_any
from judgebench.files import check_unpacked
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


@dataclass(frozen=True, slots=True)
class Nested:
    """A value with objects inside, which only conversations and criteria are read from."""

    value: Any


# The text as in the file, "" where blank; a list of such texts (from JSON or Parquet);
# or a nested value.
Cell = str | tuple[str, ...] | Nested


class Fault(NamedTuple):
    """A fault at a place inside a cell, such as `[3].role`."""

    message: str
    where: str = ""
    found: str | None = None
    allowed: str = ""


class RawTable(NamedTuple):
    """The columns of a table as a reader gives them: the values (rows,) beside each name, and the
    row in which each stands. `header` is the row of the names."""

    columns: Sequence[tuple[str, Sequence[Any]]]
    lines: Sequence[int]
    header: int = 1


# Zero-width characters, soft hyphen, direction marks and the C1 controls that a wrong decoding
# leaves behind: they are invisible, and two ids that differ in them look equal.
INVISIBLE = re.compile("[\u00ad\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

# What no text should hold: NUL and its kin, lone surrogates, bytes that were no UTF-8.
FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")

_ERROR_VALUE = re.compile(r"#(NAME\?|REF!|VALUE!|N/A|DIV/0!|NUM!|NULL!)")
_LONGEST_CELL = 32_767  # characters; a spreadsheet cuts off what is longer


@lru_cache(1 << 12)
def shared(text: str) -> str:
    """The same text as one object, where it stands in rows that are not far from each other."""
    return text


def clean(text: str) -> str:
    """`text` without invisible characters and outer space."""
    seen = text if text.isprintable() else INVISIBLE.sub("", text)  # the first test is quicker
    return seen.strip()


def is_blank(text: str) -> bool:
    """True where nothing is visible in it. `NA`, `None` and `null` are not blank."""
    return not text or (not text[0].isalnum() and not clean(text))


def is_blank_cell(cell: Cell) -> bool:
    """True of an empty list, and of a text of nothing but space."""
    return not cell or (isinstance(cell, str) and cell.isspace())


def has_invisible(text: str) -> bool:
    """True where it has invisible characters."""
    return not text.isprintable() and INVISIBLE.search(text) is not None


def has_forbidden(text: str) -> bool:
    """True where it has forbidden characters."""
    return not text.isprintable() and FORBIDDEN.search(text) is not None


def mark_forbidden(text: str) -> str:
    """`text` with U+FFFD for each forbidden character."""
    return FORBIDDEN.sub("\ufffd", text)


def mark_cell(cell: Cell) -> Cell:
    """The cell with U+FFFD for each forbidden character of its texts."""
    if isinstance(cell, tuple):
        return tuple(map(mark_forbidden, cell))
    return mark_forbidden(cell) if isinstance(cell, str) else cell


def spreadsheet_damage(text: str) -> str:
    """What a spreadsheet wrote in the place of a text; empty where it seems unchanged."""
    if len(text) == _LONGEST_CELL:
        return "is cut at 32,767 characters, the most that a spreadsheet's cell holds"
    return "is a spreadsheet's error value" if _ERROR_VALUE.fullmatch(text) else ""


def split_list(cell: str | tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a list cell: a JSON list, a Python list, or texts between `|` or `;`.

    Raises ValueError where it is none of these.
    """
    if isinstance(cell, tuple):
        return cell
    text = cell.strip()
    if not text:
        return ()
    if text[0] not in "[(":
        return tuple(text.split("|" if "|" in text else ";"))
    values = _literal(text)
    if not isinstance(values, list | tuple):
        raise ValueError("is not a list")
    return tuple(scalar_text(value) for value in values)


def nested(cell: Cell) -> Any:
    """The value in a cell, which may be JSON or a Python literal as text; numbers stay texts.

    Raises ValueError where it is neither.
    """
    if isinstance(cell, str):
        return _literal(cell) if cell.strip() else None
    return cell.value if isinstance(cell, Nested) else list(cell)


def _literal(text: str) -> object:
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)  # reads literals only: nothing is run
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("is neither a JSON list nor a Python list") from None


def number_in(text: str) -> float:
    """The number that a text says; NaN where it says none."""
    try:  # Python also reads 0_1, and digits of any script
        return float(text if text.isascii() and "_" not in text else "nan")
    except ValueError:
        return math.nan


def scalar_text(value: object) -> str:
    """A single value as text: null is blank, a float keeps its point, a date without a time of day
    is written without one. ValueError for a list or an object."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict | set):
        raise ValueError(f"holds a {type(value).__name__}, where one value was expected")
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, datetime) and value.timetz() == time():
        return str(value.date())
    return str(value)


def cell_of(value: Any) -> Cell:
    """A value of JSON, a workbook, Parquet or a DataFrame as a cell."""
    try:
        is_list = isinstance(value, list | tuple)
        return tuple(map(scalar_text, value)) if is_list else scalar_text(value)
    except ValueError:
        return Nested(value)


_LONGEST_FIELD = 2**31 - 1  # characters; the csv module stops at 131,072 unless set
_SAMPLE_SIZE = 2**18  # characters at the start, which show the delimiter
_SAMPLE_ROWS = 100


def read_delimited(text: TextIOBase, delimiter: str, file: str) -> list[list[str]]:
    """The rows of a text, in which newlines are as in the file. Without a `delimiter` it is a
    comma, a semicolon or a tab.

    Raises SetupError for a quote without its match.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    sample, rows = text.read(_SAMPLE_SIZE), list[list[str]]()
    text.seek(0)
    delimiter = delimiter or max(",;\t", key=lambda candidate: _fit(sample, candidate))
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            rows.append([*map(shared, row)])
    except csv.Error:
        message = "a quote opens in this row, and none closes it at the end of its cell"
        allowed = 'quotes around a whole cell; those inside of it twice: ""'
        raise SetupError(Problem(message, file, len(rows) + 1, allowed=allowed)) from None
    return rows


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """The share of the first rows that have the commonest number of cells, and this number."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    widths = Counter(len(row) for row in islice(reader, _SAMPLE_ROWS) if any(row))
    if not widths:
        return 0.0, 0
    width, n_rows = max(widths.items(), key=lambda item: (item[1], item[0]))
    return (n_rows / widths.total() if width > 1 else 0.0), width


# Space, breaks and invisible characters before the sign do not always keep it from being run, and
# some programs read signs of full width as the plain ones.
_FORMULA = re.compile(
    r"'*([\t\r\n]|[ \t\n\v\f\r\u00a0\u2000-\u200f\u2028\u2029\u3000\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf)", re.ASCII)


def quoted(text: str) -> str:
    """A text that no spreadsheet runs. `unquoted` gives the text back."""
    return f"'{text}" if _FORMULA.match(text) else text


def unquoted(cell: str) -> str:
    """The text of a cell that `quoted` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def is_run(text: str) -> bool:
    """True where a spreadsheet may run the text, which is no number."""
    return _FORMULA.match(text) is not None and not _NUMBER.fullmatch(text)


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """The table, marked as UTF-8. Every cell is quoted and lines end with a line feed: the
    scripts of the pages write the same."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue().encode("utf-8-sig")


_MAX_LEVELS = 8  # of objects in objects that become columns
_MAX_CELLS, _MAX_BLANKS = 5_000_000, 20  # of a table; times those that hold something
_ANNOTATION_ROLES = {"annotator", "judge", "kind", "value"}
_MESSAGES = ({"role", "content"}, {"from", "value"})  # keys of a turn in a conversation
_SHAPES = "a list of objects, an object with one such list, or objects by id"


def read_json(text: TextIOBase, file: str, findings: Findings, *, is_lines: bool) -> RawTable:
    """The columns of all objects; faulty ones are reported. Raises SetupError where the whole is no
    table."""
    lines, objects = array("q"), list[dict[str, Any]]()
    for line, value in (_read_lines if is_lines else _read_document)(text, file, findings):
        if isinstance(value, dict):
            lines.append(line)
            objects.append(value)
        else:
            findings.add("malformed", "must hold an object", (file, line), found=str(value))
    return flat_table(values_by_key(objects, file).items(), lines, file)


def _to_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    # The same few keys in every object, and often the text of a row above.
    value = {
        sys.intern(key): shared(cell) if isinstance(cell, str) else cell for key, cell in pairs
    }
    if len(value) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"duplicate key {key!r}")
    return value


# Control characters spoil a cell, not the file: `strict` would refuse them.
_DECODER = JSONDecoder(
    object_pairs_hook=_to_object,
    parse_int=str,
    parse_float=str,
    parse_constant=str,
    strict=False,
)
_FAULTS = (ValueError, RecursionError)


def _read_lines(text: TextIOBase, file: str, findings: Findings) -> Iterator[tuple[int, Any]]:
    for line, found in enumerate(text, start=1):
        if content := found.strip():
            try:
                value = _DECODER.decode(content)
            except _FAULTS as error:
                _report(error, (file, line), findings)
            else:
                yield line, value


def _read_document(text: TextIOBase, file: str, findings: Findings) -> Iterable[tuple[int, Any]]:
    try:
        return enumerate(_entries(_DECODER.decode(text.read() or "[]"), file), start=1)
    except _FAULTS as error:
        if getattr(error, "msg", "") == "Extra data":  # one object on each line
            text.seek(0)
            return _read_lines(text, file, findings)
        _report(error, (file, getattr(error, "lineno", None)), findings)
        return ()


def _report(error: Exception, at: tuple[str, int | None], findings: Findings) -> None:
    deep = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    findings.add("malformed", f"is not JSON: {getattr(error, 'msg', deep)}", at)


def _entries(value: Any, file: str) -> Sequence[Any]:
    """The entries of a document that are rows. Raises SetupError where it has none."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists: list[list[Any]] = list(filter(_is_list_of_objects, value.values()))
        if len(lists) == 1:
            return lists[0]
        if value and all(isinstance(entry, dict) for entry in value.values()):
            name = "key" if any("id" in entry for entry in value.values()) else "id"
            return [{name: key, **entry} for key, entry in value.items()]
    shape = "an object" if isinstance(value, dict) else type(value).__name__
    raise SetupError(Problem("holds no rows", file, None, "", shape, _SHAPES))


def values_by_key(objects: Sequence[Mapping[str, Any]], file: str) -> dict[str, list[Any]]:
    """The values (rows,) of each key, None where an object lacks it.

    Raises SetupError where the objects share so few keys that a table of them is mostly blank.
    """
    keys = dict.fromkeys(chain.from_iterable(objects))
    n_cells, n_filled = len(objects) * len(keys), sum(map(len, objects))
    if n_cells > max(_MAX_CELLS, _MAX_BLANKS * n_filled):
        message = (
            f"its {len(objects):,} objects have {len(keys):,} different keys, too many for a table:"
            " give every object the same few keys, such as annotator, metric and label"
        )
        raise SetupError(Problem(message, file))
    return {key: [value.get(key) for value in objects] for key in keys}


def flat_table(
    columns: Iterable[tuple[str, Sequence[Any]]], lines: Sequence[int], file: str
) -> RawTable:
    """The table without objects where these can be columns or rows: a column `a.b` for the key b
    of the objects in a, a row for each annotation in a list. Other lists of objects stay."""

    def flatten(name: str, values: Sequence[Any], levels: int) -> Iterator[tuple[str, Any]]:
        types = set(map(type, values))
        if dict in types and levels:
            objects = [value if isinstance(value, dict) else {} for value in values]
            singles = [None if isinstance(value, dict) else value for value in values]
            parts = values_by_key(objects, file)
            if any(singles) or not parts:
                yield name, singles
            for key, inner in parts.items():
                yield from flatten(f"{name}.{key}", inner, levels - 1)
        elif list in types and levels and _has_single_objects(values):
            entries = [value[0] if value else None for value in values]
            yield from flatten(f"{name}[0]", entries, levels)
        else:
            yield name, values

    flat = [pair for name, values in columns for pair in flatten(name, values, _MAX_LEVELS)]
    name = _annotations_column(flat)
    if not name:
        return RawTable(flat, lines)
    lists = [entries or [None] for entries in dict(flat)[name]]  # a row without any stays a row
    rows = [row for row, entries in enumerate(lists) for _ in entries]
    long: list[tuple[str, Sequence[Any]]] = []
    for column, values in flat:
        if column == name:
            long += flatten(name, list(chain.from_iterable(lists)), _MAX_LEVELS)
        else:
            long.append((column, [values[row] for row in rows]))
    return RawTable(long, [lines[row] for row in rows])


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) for e in value)


def _object_lists(values: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The lists of objects in a column; none where it holds anything else but blanks, or the turns
    of conversations."""
    lists = [value for value in values if value]
    if not all(map(_is_list_of_objects, lists)):
        return []
    is_chat = any(turn <= entries[0].keys() for entries in lists for turn in _MESSAGES)
    return [] if is_chat else lists


def _has_single_objects(values: Sequence[Any]) -> bool:
    lists = _object_lists(values)
    return bool(lists) and max(map(len, lists)) == 1


def _annotations_column(columns: Iterable[tuple[str, Sequence[Any]]]) -> str:
    """The column whose lists hold annotations; of several the first that names annotators. Empty
    where there is none."""
    roles_by_column = {name: _roles_inside(values) for name, values in columns}
    likely = [name for name, roles in roles_by_column.items() if roles & _ANNOTATION_ROLES]
    if len(likely) > 1:
        likely = [name for name in likely if "annotator" in roles_by_column[name]]
    return likely[0] if likely else ""


def _roles_inside(values: Sequence[Any]) -> set[str]:
    """The roles that the keys of objects in lists say."""
    entries = chain.from_iterable(_object_lists(values))
    keys = {key for entry in entries for key in _keys(entry, _MAX_LEVELS)}
    return {role_of(key.rpartition(".")[2]) for key in keys}


def _keys(value: dict[str, Any], levels: int) -> Iterator[str]:
    for key, inner in value.items():
        yield str(key)
        if isinstance(inner, dict) and levels:
            yield from _keys(inner, levels - 1)


_BETWEEN = " / "  # names of sheets, in which there is no slash
_MAX_ROWS = 1_048_576  # of a sheet, in any spreadsheet program


def sheet_names(content: bytes) -> list[str]:
    """The sheets of a workbook that hold anything. Raises OSError for a damaged workbook."""
    with _damage_reported():
        return [sheet.title for sheet in _sheets(content) if any(map(any, _texts(sheet)))]


def read_sheet(content: bytes, sheet: str, file: str) -> list[list[str]]:
    """The rows of a sheet, by default the only one that holds anything, each up to its last filled
    cell. A formula is the value that was stored with it, blank where there is none.

    Raises OSError for a damaged workbook, SetupError where there is no such sheet.
    """
    with _damage_reported():
        sheets = _sheets(content)
        chosen = {one.title: list(_texts(one)) for one in sheets if sheet in ("", one.title)}
    filled = {name: rows for name, rows in chosen.items() if any(map(any, rows))}
    if len(filled) > 1 or not chosen:
        message = "has several sheets" if filled else "has no such sheet"
        names = _BETWEEN.join(filled or [one.title for one in sheets])
        raise SetupError(
            Problem(f"{message}: name the one to read", file, None, "sheet", sheet, names)
        )
    return next(iter(filled.values()), [])


@contextmanager
def _damage_reported() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # a damaged file fails in whatever part of openpyxl reads it
        raise OSError(f"is no .xlsx workbook: {str(error) or type(error).__name__}") from None


def _sheets(content: bytes) -> list[Any]:
    import openpyxl

    with ZipFile(BytesIO(content)) as archive:
        check_unpacked(sum(part.file_size for part in archive.infolist()), len(content))
    workbook = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True)
    return list(workbook.worksheets)


def _texts(sheet: Any) -> Iterator[list[str]]:
    """The rows of a sheet as they are: what the file says of its own size may be wrong."""
    sheet.reset_dimensions()
    for line, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        if line > _MAX_ROWS:
            raise OSError(f"a sheet has more than {_MAX_ROWS:,} rows")
        texts = [scalar_text(value) for value in values]
        while texts and not texts[-1].strip():
            texts.pop()
        yield texts


def read_parquet(content: bytes, file: str) -> tuple[list[tuple[str, list[Any]]], int]:
    """The columns of a Parquet file, and the number of its rows.

    Raises MissingExtra without pyarrow, OSError for a damaged file and one that is much larger than
    it looks.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("a Parquet file", "parquet", "pyarrow") from None
    try:
        schema = pq.read_schema(pa.BufferReader(content))
        texts = [x.name for x in schema if pa.types.is_string(x.type) or pa.types.is_binary(x.type)]
        parquet = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
        meta = parquet.metadata
        n_bytes = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        check_unpacked(max(n_bytes, meta.num_rows * meta.num_columns), len(content))
        table = parquet.read()  # with a text of many rows once
        check_unpacked(sum(map(_n_text_bytes, table.columns)), len(content))
        return arrow_columns(table, file), meta.num_rows
    except pa.ArrowException as error:
        raise OSError(f"is not Parquet: {error}") from None


def _n_text_bytes(column: Any) -> int:
    """The size of a column of texts where every text is written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = column.chunks if pa.types.is_dictionary(column.type) else []
    lengths = (pc.take(pc.binary_length(c.dictionary), c.indices) for c in chunks)
    return sum(pc.sum(of_chunk).as_py() or 0 for of_chunk in lengths)


def arrow_columns(table: Any, name: str) -> list[tuple[str, list[Any]]]:
    """The columns of a table of Arrow by name. Raises SetupError for values that Python has none
    of, as the year 12000."""
    try:
        return [(column, table[i].to_pylist()) for i, column in enumerate(table.column_names)]
    except (ValueError, OverflowError, LookupError) as error:
        raise SetupError(Problem(f"holds a value that is not read: {error}", name)) from None
