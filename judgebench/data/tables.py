"""Any file or DataFrame as a table in memory: every cell is the text that the file holds."""

from __future__ import annotations

import codecs
import gzip
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from io import BufferedReader, StringIO, TextIOBase, TextIOWrapper
from itertools import compress, islice, zip_longest
from pathlib import Path
from typing import Any, Literal

from judgebench.data.findings import Findings
from judgebench.data.formats import (
    Cell,
    RawTable,
    Table,
    arrow_columns,
    cell_of,
    clean,
    flat_table,
    is_blank_cell,
    mark_cell,
    mark_forbidden,
    number_in,
    read_delimited,
    read_json,
    read_parquet,
    read_sheet,
    scalar_text,
    sheet_names,
    values_by_key,
)
from judgebench.errors import MissingExtra, Problem, SetupError, nearest, raise_any, shorten, some
from judgebench.features import FEATURES, Feature
from judgebench.files import ReadRows, check_unpacked, is_utf8, open_bytes
from judgebench.text import counted

SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".parquet": "parquet", ".xlsx": "xlsx",
}  # fmt: skip
TO_EXPORT = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".gsheet")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNREADABLE = (OSError, EOFError, zlib.error, UnicodeError, MemoryError)
_MAX_COLUMNS = 10_000
_PART = 1 << 20  # of a file that is read to the end, and not kept
_SAMPLE_ROWS = 100  # at the start, among which the header is

_REPLACED = "U+FFFD stands for a control character, or a byte that is no UTF-8"
Header = tuple[int, ...]  # its rows, counted from 1


def read_table(source: Any, needed: Iterable[str] = (), name: str = "the table") -> Table:
    """A file of any format, or a DataFrame, which messages call by `name`.

    Raises SetupError with every problem, and for columns of `needed` that there are not.
    """
    problems: list[Problem] = []
    table = collect_table(source, needed, problems, name)
    raise_any(problems)
    assert table is not None  # otherwise the problems say why
    return table


def collect_table(
    source: Any, needed: Iterable[str], problems: list[Problem], name: str = "the table"
) -> Table | None:
    """The sound rows of a file or a DataFrame; everything wrong with it goes to `problems`. None
    where it is no table or lacks a column that is `needed`."""
    findings = Findings()
    if isinstance(source, str | Path):
        table = open_table(Path(source), findings)
    else:
        table = frame_table(source, name, findings)
    missing = [] if table is None else missing_columns(table, needed)
    problems += [*findings.errors, *missing]
    return None if missing else table


def missing_columns(table: Table, needed: Iterable[str]) -> list[Problem]:
    """One problem for each column that the table lacks."""
    return [
        Problem(
            f"the column is missing{nearest(column, list(table.columns))}",
            table.file, 1, column, some(table.columns),
        )
        for column in dict.fromkeys(needed)
        if column not in table.columns
    ]  # fmt: skip


# Files ---------------------------------------------------------------------------------------


def open_table(
    path: Path, findings: Findings, *, sheet: str = "", header: Header = ()
) -> Table | None:
    """The table in a file, plain or gzipped; None where it has none, which is then reported.

    `sheet` names one of a workbook of several. `header` are the rows of the column names, by
    default the first after which the lengths of rows fit.
    """
    file = str(path)
    try:
        if read := reader_of_feature(path):
            rows = read(path)
            raw = RawTable([*values_by_key(rows, file).items()], range(2, len(rows) + 2))
            return _as_table(raw, file, findings)
        return _read_format(_format_of(path), path, findings, sheet, header)
    except MissingExtra:
        raise
    except SetupError as error:
        findings.extend("malformed", error.problems)
    except FileNotFoundError:
        there = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        message = f"no such file{nearest(path.name, there, cutoff=0.8)}"
        findings.add("unreadable_file", message, (file, None))
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or "it does not fit into memory"
        findings.add("unreadable_file", f"cannot be read: {reason}", (file, None))
    return None


_NO_TEXT = (b"\x89PNG", b"\xff\xd8\xff", b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def _read_format(
    format: str, path: Path, findings: Findings, sheet: str, header: Header
) -> Table | None:
    file = str(path)
    if format == "xlsx":
        rows = read_sheet(_content(path), sheet, file)
        return _grid_table(rows, file, findings, header, pad=True, sheet=sheet)
    if format == "parquet":
        columns, n_rows = read_parquet(_content(path), file)
        return _as_table(flat_table(columns, range(2, n_rows + 2), file), file, findings)
    is_json = format in ("json", "jsonl")
    with _unpacked(path) as content:
        text = _decoded(content, "\n" if is_json else "", file, findings)
        if is_json:
            raw = read_json(text, file, findings, is_lines=format == "jsonl")
        else:
            rows = read_delimited(text, "\t" if format == "tsv" else "", file)
    return _as_table(raw, file, findings) if is_json else _grid_table(rows, file, findings, header)


def sheets_of(path: Path) -> list[str]:
    """The sheets of a workbook that hold anything; none of any other file."""
    if SUFFIXES.get(_suffix(path)) != "xlsx":
        return []
    try:
        return sheet_names(_content(path))
    except _UNREADABLE:
        return []  # reported where the table is opened


def reader_of_feature(path: Path) -> ReadRows | None:
    """The reader of the file, where a feature brings its format."""
    path = table_in(path)
    if _suffix(path) in SUFFIXES:
        return None
    suffix = path.suffix.lower()
    return next((f.parts.rows for f in _with_tables() if Path(f.table).suffix == suffix), None)


def table_in(path: Path) -> Path:
    """The file of a table; of a folder that a feature made, the one in it."""
    inside = [path / feature.table for feature in _with_tables()] if path.is_dir() else []
    return next(filter(Path.is_file, inside), path)


def known_of(path: Path, part: Literal["rubric", "collected", "anchors", "answers"]) -> Any:
    """Return a part that the feature whose table a file is, or a folder holds, keeps beside its
    labels; empty for any other file. Raises SetupError.

    `rubric`: that of the labels. `collected`: sentences on how they were collected, which begin as
    `records.COLLECTED` does. `anchors`: rows of labels of answers whose right label is known.
    `answers`: by item id, the texts that were labelled by the names of the fields of `Answer`.
    """
    path = table_in(path)
    readers = (getattr(f.parts, part) for f in _with_tables() if path.match(f.table))
    read = next(readers, None)
    return read(path) if read else ()


def _with_tables() -> list[Feature]:
    return [feature for feature in FEATURES.values() if feature.table]


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _format_of(path: Path) -> str:
    """The format that the file's name says. Raises SetupError, FileNotFoundError."""
    suffix = _suffix(path)
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    allowed = ", ".join(SUFFIXES) + ", each also with .gz"
    message = "unknown file format: rename the file"
    if not path.exists():
        raise FileNotFoundError
    if suffix in TO_EXPORT:
        message = "a spreadsheet of this kind is not read: export it as CSV"
    elif suffix in (".yaml", ".yml"):
        message = f"is no table: judge a benchmark first (judgebench run {path}), then give its run"
    elif path.is_dir():
        message = "is a folder: give a file, or a run folder alone"
    raise SetupError(Problem(message, str(path), None, "", shorten(path.name), allowed))


def _content(path: Path) -> bytes:
    with _unpacked(path) as file:
        return file.read()


@contextmanager
def _unpacked(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """The file, decompressed where it is gzip, whatever its name. Raises OSError for a file that a
    few bytes could make endless."""
    with open_bytes(path) as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        n_packed = os.fstat(file.fileno()).st_size
        with gzip.GzipFile(fileobj=file) as unpacked:
            while unpacked.read(_PART):
                check_unpacked(unpacked.tell(), n_packed)
            unpacked.seek(0)
            yield unpacked


def _decoded(
    content: BufferedReader | gzip.GzipFile, newline: str, file: str, findings: Findings
) -> TextIOBase:
    """The text, to be read line by line: that of a million answers would fill memory twice. Raises
    SetupError where it is none."""
    if content.read(8).startswith(_NO_TEXT):
        message = "holds no text: an image, a document or a workbook with another name?"
        raise SetupError(Problem(message, file, None, "", "", ", ".join(SUFFIXES)))
    content.seek(0)
    text = TextIOWrapper(content, "utf-8-sig", newline=newline)
    try:
        while text.read(_PART):
            pass
    except UnicodeDecodeError:
        content.seek(0)
        return StringIO(_decode(content.read(), file, findings), newline)
    text.seek(0)
    return text


def _decode(content: bytes, file: str, findings: Findings) -> str:
    """The text of a file that is not all UTF-8: UTF-16 with a mark, else Windows-1252. A line of
    bytes that are no UTF-8 among lines that are comes out as surrogates. Raises SetupError for two
    encodings."""
    if content.startswith(_UTF16):
        return content.decode("utf-16")
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    bad = [number for number, line in enumerate(lines, start=1) if not is_utf8(line)]
    if all(line.isascii() or not is_utf8(line) for line in lines):
        message = "letters are not in UTF-8: read as Windows-1252; check them, or save it as UTF-8"
        for number in bad:
            findings.add("encoding", message, (file, number))
        return content.decode("cp1252", "replace")
    if len(bad) > 1:
        message = (
            f"is in two encodings: UTF-8, and from line {bad[0]} on perhaps Windows-1252; save each"
            " part of the file as UTF-8 before they are put together"
        )
        raise SetupError(Problem(message, file, bad[0]))
    return text


# DataFrames ----------------------------------------------------------------------------------


def check_frame(given: Any, name: str) -> None:
    """Raises SetupError for what is no DataFrame."""
    kinds = ("iloc", "column_names")  # of pandas, of Arrow
    if not hasattr(given, "columns") or not any(hasattr(given, kind) for kind in kinds):
        message = (
            "give a table: a DataFrame of pandas, a table of Arrow or the path of a file"
            "; pd.DataFrame(x) makes one of lists and dicts"
        )
        raise SetupError(Problem(message, "", None, name, f"the type {type(given).__name__}"))


def frame_table(frame: Any, name: str, findings: Findings) -> Table | None:
    """The table in a DataFrame of pandas or a table of Arrow, whose rows are counted as in a file:
    the header is row 1. Levels of the index that have names are columns.

    A missing value is a blank cell. Problems name the frame by `name`. Raises SetupError for what
    is none.
    """
    check_frame(frame, name)
    lines = [*range(2, len(frame) + 2)]
    if not hasattr(frame, "iloc"):  # of Arrow
        return _as_table(flat_table(arrow_columns(frame, name), lines, name), name, findings)
    levels = [i for i, of in enumerate(frame.index.names) if of is not None]
    frame = frame.set_axis([_column_name(key) for key in frame.columns], axis=1)
    frame = frame.reset_index(levels, allow_duplicates=True) if levels else frame
    columns = [(str(key), _values(frame.iloc[:, i])) for i, key in enumerate(frame.columns)]
    orders = {
        clean(str(key)): [scalar_text(category) for category in dtype.categories]
        for key, dtype in frame.dtypes.items()
        if getattr(dtype, "ordered", False)
    }
    return _as_table(flat_table(columns, lines, name), name, findings, orders=orders)


def _values(series: Any) -> list[Any]:
    """The values of a column, None where one is missing."""
    values: list[Any] = series.astype(object).where(series.notna(), None).tolist()
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


def _column_name(key: Any) -> str:
    """The name of a column, which may have several levels."""
    parts = key if isinstance(key, tuple) else (key,)
    return " - ".join(filter(None, map(str, parts)))


# Header rows ---------------------------------------------------------------------------------


def _grid_table(
    rows: list[list[str]], file: str, findings: Findings, header: Header, *, pad: bool = False,
    **details: Any,
) -> Table | None:  # fmt: skip
    """The table of rows of texts. Short rows are an error unless they are to `pad`."""
    while rows and not any(rows[-1]):
        rows.pop()  # formatting
    headers = [header] if header else header_choices(rows)
    if not headers or max(headers[-1]) > len(rows):
        message = f"has no row {max(header)}" if headers else "is empty"
        findings.add("malformed", message, (file, None))
        return None
    for line, row in enumerate(rows[: min(headers[0]) - 1], start=1):
        if any(row):
            message = "a row above the header is not read"
            findings.add("row_above_header", message, (file, line), found=next(filter(None, row)))
    width = max(len(rows[line - 1]) for choice in headers for line in choice)
    names = reduce(_joined_names, [rows[line - 1] for line in headers[0]])
    top = max(headers[0])
    body = _of_one_width(rows, top, width, pad, file, findings)
    columns = list(zip(*body.values(), strict=True)) or [()] * width
    raw = RawTable([*zip_longest(names, columns, fillvalue="")], list(body), top)
    choices = headers if len(headers) > 1 else ()
    return _as_table(raw, file, findings, headers=choices, **details)


def header_choices(rows: Sequence[Sequence[str]]) -> list[Header]:
    """The rows that may be the header; several where two rows of names look likely."""
    filled_lines = (line for line, row in enumerate(rows, 1) if any(map(str.strip, row)))
    lines = list(islice(filled_lines, _SAMPLE_ROWS))
    sample = [[cell.strip() for cell in rows[line - 1]] for line in lines]
    if not sample:
        return []
    filled = [{i for i, cell in enumerate(row, start=1) if cell} for row in sample]
    counts = Counter(map(max, filled))
    width = max(counts, key=lambda n_cells: (counts[n_cells], n_cells))
    usual = (i for i, places in enumerate(filled) if max(places) >= width)
    top = next(usual) if counts[width] > 1 else 0

    def is_upper(i: int) -> bool:
        gaps = set(range(min(filled[i]), max(filled[i]))) - filled[i]
        return bool(gaps) and gaps <= filled[i + 1] and not _is_data(sample[i + 1 :])

    if top and len(filled[top - 1]) > 1 and _is_data(sample[top:]):
        top -= 1  # the names of the last columns are blank
    for i in (top - 1, top):
        if 0 <= i < len(sample) - 1 and is_upper(i):
            upper, lower = lines[i], lines[i + 1]
            # A title row in several cells has a blank row below it.
            return [(upper,), (lower,), (upper, lower)] if lower == upper + 1 else [(lower,)]
    return [(lines[top],)]


def _is_data(sample: Sequence[Sequence[str]]) -> bool:
    """True where a cell of the first row is the same as one below it, or all are numbers."""
    columns = [list(filter(None, cells)) for cells in zip_longest(*sample) if cells[0]]
    return any(
        first in below or not any(map(math.isnan, map(number_in, (first, *below))))
        for first, *below in columns
    )


def _joined_names(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """`upper - lower`, where a name of the upper row goes on over the blank cells behind it."""
    names, group = [], ""
    for pair in zip_longest(upper, lower, fillvalue=""):
        above, below = map(str.strip, pair)
        if above:
            group = above if below else ""
        names.append(" - ".join(filter(None, (above or group, below))))
    return names


def _of_one_width(
    rows: Sequence[list[str]], top: int, width: int, pad: bool, file: str, findings: Findings
) -> dict[int, list[str]]:
    """The rows below `top` as wide as the header, by their numbers; others are reported and left
    out."""
    body = dict(enumerate(rows[top:], start=top + 1))
    for line in [line for line, row in body.items() if len(row) != width]:
        row = body[line]
        is_short = not pad and len(row) < width and any(row)
        if is_short or any(map(str.strip, row[width:])):
            message = f"has {counted(len(row), 'cell')} where the header has {width}"
            findings.add("ragged_row", message, (file, line))
            del body[line]
        else:
            body[line] = [*row, *[""] * width][:width]
    return body


# Columns and cells ---------------------------------------------------------------------------


def _as_table(raw: RawTable, file: str, findings: Findings, **details: Any) -> Table | None:
    """The table without blank rows and columns without a name; None where columns are at fault."""
    names = _clean_names(raw, file, findings)
    if raw.columns and not any(names):
        return None
    cells = [list(map(cell_of, values)) for _, values in raw.columns]
    columns = {name: column for name, column in zip(names, cells, strict=True) if name}
    table = Table(file, columns, raw.lines, **details)
    is_blank = [all(map(is_blank_cell, row)) for row in zip(*cells, strict=True)]
    if any(is_blank):
        for line in compress(raw.lines, is_blank):
            findings.add("blank_row", "blank row", (file, line))
        table = table.at([place for place, row in enumerate(is_blank) if not row])
    if not (columns and len(table)) and not findings.errors:  # which say why
        findings.add("no_rows", "holds no rows", (file, None))
    if not columns:
        return None
    marked = {name: _marked(name, table, findings) for name in table.columns}
    return replace(table, columns=marked)


def _clean_names(raw: RawTable, file: str, findings: Findings) -> list[str]:
    """The names of columns; none where the header cannot be used."""
    at, names = (file, raw.header), [clean(mark_forbidden(name)) for name, _ in raw.columns]
    if len(names) > _MAX_COLUMNS:
        message = f"has {len(names):,} columns, and at most {_MAX_COLUMNS:,} are read"
        findings.add("malformed", message, at)
        return []
    duplicates = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    for name in duplicates:
        allowed = "different names; --set header=1,2 where two rows hold them"
        findings.add("duplicate_column", "two columns have this name", at, "", name, allowed)
    if names and not any(names):
        findings.add("malformed", "the header names no column", at)
    elif not all(names):
        findings.add("unnamed_column", "a column without a name is not read", at)
    return [] if duplicates else names


def _marked(column: str, table: Table, findings: Findings) -> Sequence[Cell]:
    """The cells with U+FFFD for every character that no text may hold, which is reported."""
    cells = table.columns[column]
    marked = list(map(mark_cell, cells))
    for line, before, after in zip(table.lines, cells, marked, strict=True):
        if before != after:
            findings.add("replaced_character", _REPLACED, (table.file, line), column, str(before))
    return marked
