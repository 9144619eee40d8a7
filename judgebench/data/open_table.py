"""Any file as a table of texts: every cell is the text of the file, never a guess at it."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain, starmap
from pathlib import Path
from typing import IO, Any, cast

from judgebench.data.cells import (
    FORBIDDEN,
    Anywhere,
    Cell,
    Nested,
    Paths,
    RawRow,
    clean,
    dig,
    has_forbidden,
)
from judgebench.data.findings import Findings, nearest
from judgebench.data.formats import (
    json_cell,
    jsonl_columns,
    jsonl_rows,
    read_delimited,
    read_json,
    read_spaced,
    read_workbook,
)
from judgebench.data.spec import FileSpec, Format, columns_of, parts_named, parts_of
from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.features import contributed
from judgebench.files import ReadRows, check_unpacked, is_named_pipe, open_bytes
from judgebench.rubric import Rubric

SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".parquet": "parquet", ".xlsx": "xlsx",
}  # fmt: skip
TO_EXPORT = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".gsheet")
_BY_FIRST_BYTE: dict[bytes, Format] = {b"[": "json", b"{": "jsonl"}
_LONGEST_LINE = 1 << 27  # characters
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNREADABLE = (OSError, EOFError, zlib.error, UnicodeError, MemoryError)


@dataclass(frozen=True)
class DataTable:
    """A file opened for one pass over its rows.

    Whoever reads the rows may name the columns that are not read, by adding to `unread` before:
    a quote without its match does not matter there. `nested` are paths that a data.yaml could
    name.
    """

    file: str
    columns: tuple[str, ...]
    rows: Iterator[RawRow]
    unread: set[str] = field(default_factory=set)
    nested: Sequence[str] = ()

    def find(self, column: str) -> int | None:
        """The index of a column; None where there is none of that name."""
        return self._places.get(clean(column)[0])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}


def open_table(
    path: Path, findings: Findings, spec: FileSpec | None = None, format: Format | None = None
) -> DataTable | None:
    """The table in a file, plain or gzipped; None where it has none, which is then reported.

    `spec` says how the file is read and which paths into nested values are columns. Problems
    inside the rows are reported as the rows are read.
    """
    format = format or (spec.format if spec else None)
    if format is None and (read := reader_of_wing(path)):
        try:
            return named_table(str(path), read(path), findings)
        except SetupError as error:
            findings.extend("unreadable_file", error.problems)
            return None
    format = format or _format_of(path, findings)
    if format is None:
        return None
    unread: set[str] = set()
    asked = (clean(name)[0] for name, _ in columns_of(spec)) if spec else ()
    paths = Paths(asked, spec.rows if spec else None)
    table = as_table(str(path), _read(path, format, spec, unread, paths, findings), findings)
    return table and replace(table, unread=unread, nested=paths.there)


def reader_of_wing(path: Path) -> ReadRows | None:
    """The reader of the file, where a wing brings its format."""
    path = table_in(path)
    if path.name.lower().removesuffix(".gz").endswith(tuple(SUFFIXES)):
        return None
    readers: list[Mapping[str, ReadRows]] = contributed("tables")
    return next((found for by_end in readers if (found := by_end.get(path.suffix.lower()))), None)


def table_in(path: Path) -> Path:
    """The file of a table; of a folder that a wing made, the one in it."""
    studies: list[Mapping[str, Any]] = contributed("studies") if path.is_dir() else []
    inside = (path / name for own in studies for name in own)
    return next((file for file in inside if file.is_file()), path)


def rubric_beside(path: Path) -> Rubric | None:
    """The rubric of the labels in a file, where a wing knows it. Raises SetupError."""
    studies: list[Mapping[str, Callable[[Path], Rubric | None]]] = contributed("studies")
    known = (read for own in studies for name, read in own.items() if path.match(name))
    read = next(known, None)
    return read(path) if read else None


def named_table(
    file: str, rows: Sequence[Mapping[str, str]], findings: Findings, header: int = 1
) -> DataTable | None:
    """The table of rows by column, which are counted from the header's row."""
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    cells = (tuple(row.get(column, "") for column in columns) for row in rows)
    raw = starmap(RawRow, enumerate((columns, *cells), start=header))
    return as_table(file, raw if rows else iter(()), findings)


def check_frame(given: Any, name: str) -> None:
    """Raises SetupError for what is no DataFrame."""
    if not hasattr(given, "columns"):
        message = "give a table: a DataFrame or the path of a file"
        message += "; pd.DataFrame(x) makes one of it" * isinstance(given, list | dict)
        kind = type(given).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        raise SetupError(Problem(message, "", None, name, f"{article} {kind}"))


def frame_table(frame: Any, name: str, findings: Findings) -> DataTable | None:
    """The table in a pandas DataFrame, whose rows are counted as in a file: the header is row 1.

    A missing value is a blank cell. Problems name the frame by `name`. Raises SetupError for what
    is none.
    """
    check_frame(frame, name)
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()  # an index with a name is a column like any other
    values = frame.astype(object).where(frame.notna(), None)
    cells = (tuple(map(_object_cell, row)) for row in values.itertuples(index=False, name=None))
    rows: Iterator[tuple[Cell, ...]] = chain([tuple(map(str, frame.columns))], cells)
    return as_table(name, starmap(RawRow, enumerate(rows, start=1)), findings)


def files_of(folder: Path, path: str) -> list[tuple[str, Mapping[str, str]]]:
    """The files in `folder` that a path names, and what stands for each name in it; none where no
    file fits a pattern. A file of that very name comes first."""
    named = parts_of(path)
    if not ("*" in path or any(name for _, name in named)) or (folder / path).exists():
        return [(path, {})]
    texts = ("*" if name else "*".join(map(glob.escape, text.split("*"))) for text, name in named)
    found = sorted(glob.glob("".join(texts), root_dir=folder))
    pattern, names = parts_named(path, "[^/]")
    fitting = ((one, pattern.fullmatch(Path(one).as_posix())) for one in found)
    return [
        (one, dict(zip(names, of.groups(), strict=True)))
        for one, of in fitting
        if of and (folder / one).is_file()
    ]


def with_parts(
    table: DataTable, spec: FileSpec, named: Mapping[str, str], findings: Findings
) -> DataTable | None:
    """The table with what its path `named`, and with the parts of cells, as columns; None, which
    is reported, where a column of that name is there already."""
    if not (named or spec.parts):
        return table
    inside = [name for pattern in spec.parts.values() for name in parts_named(pattern).names]
    columns = (*table.columns, *named, *inside)
    twice = [name for name, count in Counter(filter(None, columns)).items() if count > 1]
    for name in twice:
        findings.add("duplicate_column", "two columns have this name", (table.file, 1), found=name)
    rows = _parted(table, named, spec.parts, findings)
    return None if twice else replace(table, columns=columns, rows=rows)


def _parted(
    table: DataTable, named: Mapping[str, str], patterns: Mapping[str, str], findings: Findings
) -> Iterator[RawRow]:
    """The rows with the texts of `named` and the parts of cells; a cell that does not fit its
    pattern is reported. A blank one has blank parts."""
    plain = all(map(str.isprintable, named.values()))
    read = [(table.find(column), column, pattern) for column, pattern in patterns.items()]
    for row in table.rows:
        cells, sound = [*row.cells, *named.values()], row.sound
        for place, column, pattern in read:
            cell, parts = "" if place is None else row.cells[place], parts_named(pattern)
            text = clean(cell)[0] if isinstance(cell, str) else ""
            found = parts.of(text) if text else None
            if text and found is None:
                sound = False
                at = (table.file, row.line)
                findings.add("malformed", "does not fit the pattern", at, column, text, pattern)
            cells += found or [""] * len(parts.names)
        yield RawRow(row.line, cells, sound, row.plain and plain)


def as_table(file: str, rows: Iterator[RawRow], findings: Findings) -> DataTable | None:
    """The table in `rows`, the first of which names the columns; None where there are none."""
    rows = _guarded(rows, file, findings)
    header = next(rows, None)
    if header is None:
        if not findings.has(file, "malformed", "unreadable_file", "bad_spec"):
            findings.add("no_rows", "holds no rows", (file, None))
        return None
    columns = _columns(cast(Sequence[str], header.cells), file, findings)
    return DataTable(file, columns, _checked(rows, columns, file, findings)) if columns else None


def _format_of(path: Path, findings: Findings) -> Format | None:
    name = path.name.lower().removesuffix(".gz")
    for suffix, format in SUFFIXES.items():
        if name.endswith(suffix):
            return format
    allowed = ", ".join(SUFFIXES) + ", each also with .gz"
    message = "unknown file format: rename the file or set `format`"
    if name.endswith(TO_EXPORT) or "docs.google.com" in path.parts:
        message = "a spreadsheet of this kind is not read: export it as CSV"
    if name.endswith((".yaml", ".yml")):
        message = f"is no table: judge a benchmark first (judgebench run {path}), then give its run"
    if path.is_dir():
        message = "is a folder: give a file, or a run folder alone"
    if is_named_pipe(path):
        return _format_of_pipe(path, findings)
    if not path.exists() and (near := _near(path)):
        findings.add("unreadable_file", f"no such file{near}", (str(path), None))
        return None
    findings.add("unknown_format", message, (str(path), None), found=path.name, allowed=allowed)
    return None


def _format_of_pipe(path: Path, findings: Findings) -> Format | None:
    """Guess the format of a pipe, which has no name that says it."""
    try:
        with _open_bytes(path) as data:
            first = data.read(4).lstrip(codecs.BOM_UTF8)[:1]
    except _UNREADABLE as error:
        findings.add("unreadable_file", _cannot_be_read(error), (str(path), None))
        return None
    return _BY_FIRST_BYTE.get(first, "csv")


def _read(
    path: Path, format: Format, spec: FileSpec | None, unread: Collection[str], paths: Paths,
    findings: Findings,
) -> Iterator[RawRow]:  # fmt: skip
    """The header as a first row, then the rows."""
    file = str(path)
    quoting, sheet, columns = (spec.quoting, spec.sheet, spec.columns) if spec else (None, None, ())
    rows = spec.rows if spec else None
    for name, given, formats in (
        ("quoting", quoting, ("csv", "tsv")),
        ("sheet", sheet, ("xlsx",)),
        ("columns", ", ".join(columns), ("spaces",)),
        ("rows", rows, ("json", "jsonl")),
    ):
        if given and format not in formats:
            findings.add(
                "bad_spec",
                f"applies to {' and '.join(formats)} only: remove it",
                (file, None),
                name,
                given,
            )
    with _open_bytes(path) as data:
        if format == "parquet":
            yield from _read_parquet(data, paths, file, findings)
            return
        if format == "xlsx":
            yield from read_workbook(data, sheet, unread, file, findings)
            return
        encoding = spec.encoding if spec else None
        text = _as_text(data, file, findings, encoding)
        if format in ("csv", "tsv"):
            yield from read_delimited(_lines(text), format, quoting, unread, file, findings)
        elif format == "spaces":
            yield from read_spaced(_lines(text), columns, file, findings)
        elif format == "json":
            yield from read_json(text, paths, file, findings)
        # Lines are gone through twice, for the last may be the first with some key.
        elif keys := jsonl_columns(_lines(text), paths, file, findings):
            yield RawRow(0, (*keys, *paths.found(keys)))
            with _open_bytes(path) as again:
                lines = _lines(_as_text(again, file, Findings(), encoding))
                yield from jsonl_rows(lines, keys, paths)


def _open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed where they are gzip, whatever the file's name."""
    raw = open_bytes(path)
    packed = raw.peek(2)[:2] == b"\x1f\x8b"
    return cast(IO[bytes], _Unpacked(raw)) if packed else raw


class _Unpacked(gzip.GzipFile):
    """A gzipped file, which a few bytes could make endless. Raises OSError where it gets too long.

    The file is closed with it.
    """

    def __init__(self, raw: io.BufferedReader) -> None:
        super().__init__(fileobj=raw)
        self.myfileobj = cast(Any, raw)
        self._packed = os.fstat(raw.fileno()).st_size

    def read1(self, size: int = -1) -> bytes:
        check_unpacked(self.tell(), self._packed)
        return super().read1(size)

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size >= 0:
            return super().read(size)
        return b"".join(iter(partial(self.read1, 1 << 20), b""))


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a text. Raises OSError where one is so long that it is none."""
    for line in iter(partial(text.readline, _LONGEST_LINE), ""):
        if len(line) == _LONGEST_LINE:
            raise OSError(f"a line is longer than {_LONGEST_LINE:,} characters")
        yield line


def _as_text(
    data: IO[bytes], file: str, findings: Findings, encoding: str | None = None
) -> io.TextIOWrapper:
    """UTF-8 with or without a mark, or UTF-16 with one, unless there is another `encoding`; other
    bytes come out as surrogates."""
    start = cast(io.BufferedReader, data).peek(3)
    if start.startswith((codecs.BOM_UTF8, *_UTF16)):
        findings.add("byte_order_mark", "a byte order mark is left out", (file, 1))
    if start.startswith(_UTF16):
        return io.TextIOWrapper(data, encoding="utf-16", newline="")
    usual = encoding or "utf-8-sig"
    return io.TextIOWrapper(data, encoding=usual, errors="surrogateescape", newline="")


def _guarded(rows: Iterator[RawRow], file: str, findings: Findings) -> Iterator[RawRow]:
    """`rows` up to where the file cannot be read, which is reported after the last row."""
    line = 0
    try:
        for row in rows:
            line = row.line
            yield row
    except _UNREADABLE as error:
        place = (file, line + 1 if line else None)
        gone = isinstance(error, FileNotFoundError)
        message = f"no such file{_near(Path(file))}" if gone else _cannot_be_read(error)
        findings.add("unreadable_file", message, place)


def _near(path: Path) -> str:
    """The file of the folder that is called most like the one that is not there."""
    folder = path.parent
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    like = [
        name for name in names if Path(name).suffix == path.suffix or Path(name).stem == path.stem
    ]
    return nearest(path.name, like, cutoff=0.8)


def _cannot_be_read(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    reason = "does not fit into memory" if isinstance(error, MemoryError) else reason
    return f"cannot be read: {reason}"


def _columns(header: Sequence[str], file: str, findings: Findings) -> tuple[str, ...]:
    """Cleaned column names; empty where the header cannot be used."""
    names, seen = [], set()
    for raw in header:
        name, unseen, spaced = clean(raw)
        if unseen:
            findings.add(
                "invisible_characters",
                "invisible characters left out of a column's name",
                (file, 1),
                name,
            )
        elif spaced:
            findings.add("stripped_space", "space around a column's name left out", (file, 1), name)
        if has_forbidden(name):
            _report_forbidden(name, file, 1, "a column's name", findings)
        if name and name in seen:
            findings.add("duplicate_column", "two columns have this name", (file, 1), found=name)
        names.append(name)
        seen.add(name)
    if findings.has(file, "control_character", "bad_byte", "duplicate_column"):
        return ()
    if not any(names):
        message = "the header names no column" if names else "has no columns"
        findings.add("malformed", message, (file, 1 if names else None))
        return ()
    if not all(names):
        findings.add("unnamed_column", "a column without a name is not read", (file, 1))
    return tuple(names)


def _checked(
    rows: Iterator[RawRow], columns: Sequence[str], file: str, findings: Findings
) -> Iterator[RawRow]:
    """`rows` of full width, without blank ones; forbidden characters are reported."""
    width = len(columns)
    any_row = False
    for row in rows:
        any_row = True
        line, cells, sound, plain = row
        if len(cells) < width:
            cells = (*cells, *[""] * (width - len(cells)))
        for cell in cells:  # a generator would take twice the time
            if cell and not (isinstance(cell, str) and cell.isspace()):
                break
        else:
            findings.add("blank_row", "blank row", (file, line))
            continue
        if not plain:
            plain = True
            for column, cell in zip(columns, cells, strict=False):
                if isinstance(cell, str) and cell.isprintable():
                    continue
                plain = False
                if isinstance(cell, str) and has_forbidden(cell):
                    _report_forbidden(cell, file, line, column, findings)
                    sound = False
        yield RawRow(line, cells if len(cells) == width else cells[:width], sound, plain)
    if not any_row and not findings.has(file, "malformed", "unreadable_file"):
        findings.add("no_rows", "has a header and no rows", (file, None))


def _report_forbidden(cell: str, file: str, line: int, column: str, findings: Findings) -> None:
    bad = FORBIDDEN.search(cell)
    assert bad
    code = ord(bad[0])
    if 0xDC80 <= code <= 0xDCFF:
        byte = bytes([code - 0xDC00])
        message = f"the byte 0x{byte.hex().upper()} is not UTF-8: save the file as UTF-8"
        meant = byte.decode("cp1252", "replace")
        findings.add(
            "bad_byte",
            message,
            (file, line),
            column,
            cell,
            f"UTF-8 (in Windows-1252 that byte is {meant!r})",
        )
    else:
        findings.add(
            "control_character",
            f"holds the character U+{code:04X}, which is not allowed in a text",
            (file, line),
            column,
            cell,
        )


# DataFrames ----------------------------------------------------------------------------------


def _object_cell(value: Any) -> Cell:
    """A value of a DataFrame or a Parquet file; numpy's numbers and lists as Python's."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return json_cell([_parquet_scalar(v) for v in value])
    return json_cell(_parquet_scalar(value))


# Parquet -------------------------------------------------------------------------------------


def _read_parquet(data: IO[bytes], paths: Paths, file: str, findings: Findings) -> Iterator[RawRow]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("a Parquet file", "parquet", "pyarrow") from None
    try:
        # An unpacked gzip stream cannot be searched backwards quickly, so it is held whole.
        source = pa.BufferReader(data.read()) if isinstance(data, gzip.GzipFile) else data
        table = pq.ParquetFile(source)
        names = table.schema_arrow.names
        paths.look({field.name: _shape(field.type) for field in table.schema_arrow})
        deep = paths.found(names)
        yield RawRow(1, (*names, *deep))
        line, size = 1, 0
        packed = data.seek(0, os.SEEK_END)
        for batch in table.iter_batches(batch_size=1024):
            for values in zip(*map(_values, batch.columns), strict=True):
                line += 1
                row = dict(zip(names, values, strict=True)) if deep else {}
                dug = (dig(row, steps) for steps in deep.values())
                cells = tuple(map(_object_cell, (*values, *dug)))
                size += sum(1 if isinstance(cell, Nested) else 1 + len(cell) for cell in cells)
                yield RawRow(line, cells)
            check_unpacked(size, packed)
    except pa.ArrowException as error:
        findings.add("unreadable_file", f"is not Parquet: {error}", (file, None))


def _values(column: Any) -> list[Any]:
    """The values of a column. What Python has none of, as the year 12000, is a text."""
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError, LookupError):
        return list(map(_value, column))
    return found


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()
    except (ValueError, OverflowError, LookupError):
        return None if pa.types.is_nested(scalar.type) else f"{scalar.type} {scalar.value}"


def _shape(type: Any) -> Any:
    """A value with the keys of a nested type."""
    import pyarrow as pa

    if pa.types.is_struct(type):
        return {field.name: _shape(field.type) for field in type}
    return Anywhere(_shape(type.value_type)) if pa.types.is_list(type) else None


def _parquet_scalar(value: Any) -> Any:
    """Dates, times and decimals as their usual text; bytes as decoded text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value) if isinstance(value, date | time | timedelta | Decimal) else value
