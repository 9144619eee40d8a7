"""Sheets of workbooks and Parquet: cells as texts, several sheets, files that are built to hurt."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl.styles import Font

from judgebench.data.tables import sheets_of
from tests.data.conftest import Write, columns, errors, read


def workbook(path: Path, **rows_by_sheet: Any) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in rows_by_sheet.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_cells_of_a_sheet_are_texts(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["id", "text", "n", "day", "time", "yes", None])
    day, noon = datetime.date(2026, 3, 2), datetime.datetime(2026, 3, 2, 12, 30)
    sheet.append([7, "one", 2.5, day, noon, True])
    sheet.append([])
    sheet.append(["b", "=two", None, None, None, None])
    sheet["B4"].data_type = "s"  # a text that begins with =
    sheet["A9"].font = Font(bold=True)  # formatted rows at the end are none
    book.save(tmp_path / "a.xlsx")

    table, findings = read(tmp_path / "a.xlsx")

    assert columns(tmp_path / "a.xlsx") == {
        "id": ["7", "b"], "text": ["one", "=two"], "n": ["2.5", ""], "day": ["2026-03-02", ""],
        "time": ["2026-03-02 12:30:00", ""], "yes": ["true", ""],
    }  # fmt: skip
    assert table.lines == [2, 4]
    assert [(w.kind, w.line) for w in findings.warnings] == [("blank_row", 3)]


def test_merged_cells_and_formulas_without_a_value_are_blank(tmp_path: Path) -> None:
    rows = [["id", "n"], ["a", "=1+1"], [None, 2], [None, 3]]
    path = workbook(tmp_path / "a.xlsx", labels=rows)
    book = openpyxl.load_workbook(path)
    book["labels"].merge_cells("A2:A4")
    book.save(path)

    assert columns(path) == {"id": ["a", "", ""], "n": ["", "2", "3"]}


def test_a_sheet_of_several_is_named(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx", Notes=[], Kim=[["id", "x"], ["a", 1]], Jo=[["id", "x"], ["a", 2]]
    )

    table, _ = read(path, sheet="Jo")
    (several,), (unknown,) = errors(path), errors(path, sheet="kim")

    assert sheets_of(path) == ["Kim", "Jo"]
    assert (table.texts("x"), table.sheet, table.stem) == (["2"], "Jo", "Jo")
    assert table.name == "a.xlsx, sheet Jo"
    assert (several.field, several.allowed) == ("sheet", "Kim / Jo")
    assert (unknown.found, unknown.allowed) == ("kim", "Notes / Kim / Jo")


def test_only_workbooks_have_sheets(tmp_path: Path, write: Write) -> None:
    one = workbook(tmp_path / "a.xlsx", Notes=[], Kim=[["id", "x"], ["a", 1]])

    assert columns(one) == {"id": ["a"], "x": ["1"]}
    assert sheets_of(one) == ["Kim"]
    assert sheets_of(write("a.csv", "id\n1\n")) == []
    assert sheets_of(write("b.xlsx", b"no workbook")) == []


def test_a_row_longer_than_the_header_is_an_error(tmp_path: Path) -> None:
    rows = [["id", "x"], ["a", 1], ["b", 1, "more"], ["c"], ["d", 2]]
    (problem,) = errors(workbook(tmp_path / "a.xlsx", labels=rows))

    assert (problem.kind, problem.line) == ("ragged_row", 3)
    assert problem.message == "has 3 cells where the header has 2"


def test_damaged_workbooks_are_refused(write: Write) -> None:
    (problem,) = errors(write("a.xlsx", b"PK\x03\x04 no workbook"))

    assert problem.kind == "unreadable_file"
    assert problem.message.startswith("cannot be read: is no .xlsx workbook: F")


def changed(path: Path, old: str, new: str) -> Path:
    """A workbook of three answers, in the sheet of which a text is replaced."""
    workbook(path, s=[["id", "text"], ["a", "One."], ["b", "Two."], ["c", "Three."]])
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert old.encode() in parts[sheet]
    parts[sheet] = parts[sheet].replace(old.encode(), new.encode())
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path


@pytest.mark.parametrize("size", ["A1", "A1:XFD1048576", "A1:B2"])
def test_a_sheet_that_is_wrong_about_its_size(tmp_path: Path, size: str) -> None:
    path = changed(tmp_path / "a.xlsx", '<dimension ref="A1:B4"', f'<dimension ref="{size}"')

    assert columns(path)["id"] == ["a", "b", "c"]


def test_a_workbook_that_unpacks_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    bomb = changed(tmp_path / "bomb.xlsx", "</sheetData>", "</sheetData>" + " " * 2**21)

    (unpacked,) = errors(bomb)

    assert unpacked.message.startswith("cannot be read: unpacks to more than 100 times its size")


def test_types_of_parquet_are_texts(tmp_path: Path) -> None:
    row = {
        "id": 7, "text": b"caf\xc3\xa9", "day": datetime.date(2026, 3, 2), "n": float("nan"),
        "price": Decimal("1.50"), "share": 2.0, "no": None, "list": ["a", "b"],
        "time": datetime.datetime(2026, 3, 2, 10, 30),
    }  # fmt: skip
    kind = pa.array(["t"]).dictionary_encode()
    table = pa.Table.from_pylist([row]).append_column("kind", kind)
    pq.write_table(table, tmp_path / "a.parquet")

    assert columns(tmp_path / "a.parquet") == {
        "id": ["7"], "text": ["café"], "day": ["2026-03-02"], "n": [""], "price": ["1.50"],
        "share": ["2.0"], "no": [""], "list": [("a", "b")], "time": ["2026-03-02 10:30:00"],
        "kind": ["t"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "column",
    [pa.array([2**62]).cast(pa.timestamp("us")),
     pa.array([b"caf\xe9"]).cast(pa.string(), safe=False)],
    ids=["a year without a name", "no UTF-8"],
)  # fmt: skip
def test_values_that_python_has_none_of_are_refused(tmp_path: Path, column: Any) -> None:
    pq.write_table(pa.table({"far": column}), tmp_path / "far.parquet")

    (problem,) = errors(tmp_path / "far.parquet")

    assert problem.message.startswith("holds a value that is not read: ")


def test_parquet_is_refused_by_the_size_that_it_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    monkeypatch.setattr(pq.ParquetFile, "read", None)  # nothing is read
    pq.write_table(pa.table({"n": [1] * 2_000_000}), tmp_path / "rows.parquet")

    (problem,) = errors(tmp_path / "rows.parquet")

    assert problem.message.startswith("cannot be read: unpacks to more than 100 times its size")


def test_damaged_parquet_is_refused(write: Write) -> None:
    (problem,) = errors(write("a.parquet", b"PAR1 no table PAR1"))

    assert problem.message.startswith("cannot be read: is not Parquet: ")


def test_parquet_that_repeats_a_long_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    texts = pa.array(["x" * 2000] * 5000)
    pq.write_table(pa.table({"id": range(5000), "text": texts}), tmp_path / "bomb.parquet")
    (problem,) = errors(tmp_path / "bomb.parquet")
    assert "unpacks to more than" in problem.message


def test_too_many_columns_are_refused_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(map(str, range(10_001))) + "\n")
    (problem,) = errors(path)
    assert problem.message == "has 10,001 columns, and at most 10,000 are read"
