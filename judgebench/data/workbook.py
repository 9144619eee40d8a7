"""Sheets of .xlsx workbooks as rows of texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, time
from io import BytesIO
from typing import IO, Any
from zipfile import ZipFile

from judgebench.data.cells import RawRow, scalar_text
from judgebench.data.findings import Findings
from judgebench.errors import MissingExtra
from judgebench.files import check_unpacked

Cells = tuple[Any, ...]
BETWEEN = " / "  # names of sheets, in which there is no slash
_MOST_ROWS = 1_048_576  # of a sheet, in any spreadsheet program


def read_workbook(
    data: IO[bytes], sheet: str | None, unread: Collection[str], file: str, findings: Findings
) -> Iterator[RawRow]:
    """The header and the rows of a sheet, by default the only one that holds anything.

    A formula is the value that was stored with it; without one it is an error, except in the
    columns `unread`, known once the header is. Raises MissingExtra without openpyxl.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtra("an .xlsx file", "xlsx", "openpyxl") from error
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
            shown, written = _cells(values[name]), _cells(formulas[name])
            yield from _rows(shown, written, unread, file, findings)
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
        message = "the workbook has no sheet of this name"
        findings.add("bad_spec", message, (file, None), "sheet", wanted, BETWEEN.join(names))
        return None
    filled = [name for name in names if any(map(any, _cells(workbook[name])))]
    if len(filled) > 1:
        message = "has several sheets: name one with `sheet: NAME` in a data.yaml"
        findings.add("bad_spec", message, (file, None), "sheet", allowed=BETWEEN.join(filled))
        return None
    return (filled or names)[0]


def _cells(sheet: Any) -> Iterator[Cells]:
    """The rows of a sheet as they are: what the file says of its own size may be wrong."""
    sheet.reset_dimensions()
    for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        if line > _MOST_ROWS:
            raise OSError(f"a sheet has more than {_MOST_ROWS:,} rows")
        yield cells


def _rows(
    values: Iterable[Cells], formulas: Iterable[Cells], unread: Collection[str], file: str,
    findings: Findings,
) -> Iterator[RawRow]:  # fmt: skip
    header: list[str] = []
    blank: list[RawRow] = []  # those at the end are formatting
    bare: dict[str, tuple[int, str, int]] = {}  # column: line, formula, how many
    for line, (cells, written) in enumerate(zip(values, formulas, strict=True), start=1):
        texts = ["" if cell is None else _text(cell) for cell in cells]
        while len(texts) > len(header) and not texts[-1]:
            texts.pop()
        header = header or texts
        sound = len(texts) <= len(header)
        if not sound:
            message = f"has {len(texts)} cells where the header has {len(header)}"
            findings.add("ragged_row", message, (file, line))
        for column, cell, formula in zip(header, cells, written, strict=False):
            if cell is None and formula is not None and column.strip() not in unread:
                first, shown, count = bare.get(column, (line, str(formula), 0))
                bare[column] = first, shown, count + 1
                sound = False
        row = RawRow(line, texts, sound)
        if line > 1 and sound and not any(texts):
            blank.append(row)
            continue
        yield from blank
        blank.clear()
        yield row
    for column, (line, formula, count) in bare.items():
        more = f" (so in {count:,} rows, of which this is the first)" if count > 1 else ""
        message = (
            f"a formula without a stored value{more}: open the file in a spreadsheet program and "
            "save it"
        )
        findings.add("malformed", message, (file, line), column, formula)


def _text(value: object) -> str:
    """A date without a time of day is written without one."""
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    with suppress(ValueError):
        return scalar_text(value)
    return str(value)
