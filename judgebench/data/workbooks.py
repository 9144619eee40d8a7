"""Sheets of .xlsx workbooks as rows of texts, and Parquet as columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from judgebench.data.cells import scalar_text
from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import check_unpacked

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
