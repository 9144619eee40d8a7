"""Any file and any DataFrame is the same table: header rows, encodings, names, numbers."""

import csv
import gzip
import io
import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.cell import WriteOnlyCell

import judgebench as jb
from judgebench.data import tables
from judgebench.data.findings import Findings
from judgebench.data.formats import Cell, Table
from judgebench.data.tables import frame_table, open_table, read_table
from judgebench.errors import Problem, SetupError
from judgebench.features import Feature
from judgebench.runs.features import FeatureParts
from tests.data.conftest import Write, columns, errors, read

Rows = list[dict[str, str]]

# --- every format --------------------------------------------------------------------------------


def delimited(rows: Rows, delimiter: str, encoding: str = "utf-8") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode(encoding)


def parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def workbook(rows: Rows) -> bytes:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    for row in [list(rows[0]), *(list(row.values()) for row in rows)]:
        cells = [WriteOnlyCell(sheet, value) for value in row]
        for cell in cells:
            cell.data_type = "s"  # a text, also one that begins with =
        sheet.append(cells)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "a.csv": lambda rows: delimited(rows, ","),
    "semicolon.csv": lambda rows: delimited(rows, ";"),
    "tabbed.csv": lambda rows: delimited(rows, "\t"),
    "bom.csv": lambda rows: delimited(rows, ",", "utf-8-sig"),
    "utf16.csv": lambda rows: delimited(rows, ",", "utf-16"),
    "a.tsv": lambda rows: delimited(rows, "\t"),
    "a.tab": lambda rows: delimited(rows, "\t"),
    "a.json": lambda rows: json.dumps(rows).encode(),
    "plain.json": lambda rows: json.dumps(rows, ensure_ascii=False, indent=1).encode(),
    "a.jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "a.ndjson": lambda rows: "\r\n".join(map(json.dumps, rows)).encode(),
    "a.parquet": parquet,
    "a.xlsx": workbook,
}
TEXTS = st.text(
    st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S", "Zs")), max_size=30
)
WORDS = st.sampled_from(
    ["NA", "None", "null", "nan", "", "1.0", "007", "TRUE", "=1+1", "two\nrows"]
)


@settings(max_examples=4, deadline=None)
@given(rows=st.lists(st.tuples(TEXTS, WORDS), min_size=2, max_size=5))
def test_a_table_is_the_same_in_every_format(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    table = [{"id": f"i{i}", "text": text, "word": word} for i, (text, word) in enumerate(rows)]

    for name, writer in WRITERS.items():
        for ending, pack in (("", bytes), (".gz", gzip.compress)):
            path = folder / f"same-{name}{ending}"
            path.write_bytes(pack(writer(table)))
            cells = columns(path, header=() if "json" in name or "parquet" in name else (1,))
            assert cells == {key: [row[key] for row in table] for key in table[0]}, path.name


def test_gzip_is_known_without_its_name(write: Write) -> None:
    assert columns(write("a.csv", gzip.compress(b"id,x\n1,2\n"))) == {"id": ["1"], "x": ["2"]}


def test_what_may_have_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")

    for name in ("pipe.csv", "zero.csv"):
        (problem,) = errors(tmp_path / name)
        assert problem.kind == "unreadable_file"
        assert "is no regular file" in problem.message


def test_a_few_packed_bytes_that_unpack_without_end(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    path = write("bomb.csv.gz", gzip.compress(b"id,text\na," + b"x" * 2**22))

    (problem,) = errors(path)

    assert problem.message.startswith("cannot be read: unpacks to more than 100 times its size")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.cvs", "no such file; did you mean 'labels.csv'?"),
        ("label.csv", "no such file; did you mean 'labels.csv'?"),
        ("folder", "is a folder: give a file, or a run folder alone"),
        ("folder.csv", "cannot be read: is a folder, not a file"),
        ("a.txt", "unknown file format: rename the file"),
        ("a.ods", "a spreadsheet of this kind is not read: export it as CSV"),
        ("b.csv", "holds no text: an image, a document or a workbook with another name?"),
    ],
)  # fmt: skip
def test_what_is_no_table_says_what_to_do(
    write: Write, tmp_path: Path, name: str, message: str
) -> None:
    write("labels.csv", "id\n1\n")
    write("a.txt", "id\n1\n")
    write("a.ods", "x")
    write("b.csv", "%PDF-1.7")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.csv").mkdir()

    (problem,) = errors(tmp_path / name)

    assert problem.message == message


def test_a_format_that_a_feature_brings_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": "a", "x": "1"}, {"id": "b", "y": "2"}]
    feature = Feature("fake", "fake", table="study.sqlite")
    parts = FeatureParts(rows=lambda path: rows if path.is_file() else broken())
    monkeypatch.setitem(feature.__dict__, "parts", parts)
    monkeypatch.setattr(tables, "FEATURES", {"fake": feature})
    (tmp_path / "s.sqlite").write_bytes(b"")

    def broken() -> Any:
        raise SetupError(Problem("no such study"))

    table, _ = read(tmp_path / "s.sqlite")
    (problem,) = errors(tmp_path / "none.sqlite")

    assert table.columns == {"id": ["a", "b"], "x": ["1", ""], "y": ["", "2"]}
    assert table.lines == range(2, 4)
    assert problem.message == "no such study"


def test_a_file_name_that_is_no_utf8_is_printed(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"ergebnis_\xe4.csv")
    path.write_text("id,x\n1\n2,3\n")
    findings = Findings()

    table = open_table(path, findings)

    assert table is not None
    assert (table.name, table.stem) == ("ergebnis_\ufffd.csv", "ergebnis_\ufffd")
    assert str(findings.errors[0]).encode().endswith(b".csv:2: has 1 cell where the header has 2")


# --- header rows ---------------------------------------------------------------------------------

BODY = [["1", "Y", "N", "Y"], ["2", "N", "N", "Y"], ["3", "Y", "Y", ""]]
NAMES = ["Case", "Ann", "Ben", "Cem"]
Sheet = list[list[str]]


@pytest.fixture(params=["csv", "xlsx"])
def grid(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Sheet], Path]:
    """Writes rows as CSV, padded as spreadsheets write it, or as a workbook."""

    def write_grid(rows: Sheet) -> Path:
        path = tmp_path / f"grid.{request.param}"
        width = max(map(len, rows))
        if request.param == "csv":
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([*row, *[""] * (width - len(row))] for row in rows)
        else:
            book = openpyxl.Workbook()
            for row in rows:
                book.worksheets[0].append([cell or None for cell in row])
            book.save(path)
        return path

    return write_grid


Grid = Callable[[Sheet], Path]


@pytest.mark.parametrize(
    ("titles", "n_titles"),
    [
        ([["Harm review, batch 7"]], 1),
        ([["Harm review"], [], ["By", "LabelWorks"]], 2),
        ([["Vendor: LabelWorks", "", "", "Delivered: May"], []], 1),
    ],
    ids=["one cell", "several rows", "as wide as the table"],
)
@pytest.mark.parametrize("names", [NAMES, ["Case", "1", "2", "3"]], ids=["names", "numbers"])
def test_title_rows_are_not_read(grid: Grid, titles: Sheet, n_titles: int, names: Any) -> None:
    table, findings = read(grid([*titles, names, *BODY]))

    assert list(table.columns) == names
    assert table.lines == [line + len(titles) for line in (2, 3, 4)]
    (warning,) = findings.warnings
    assert (warning.kind, warning.line) == ("row_above_header", 1)
    assert warning.found.startswith(f"'{titles[0][0]}'")
    assert f"({n_titles} time" in warning.message


@pytest.mark.parametrize(
    "rows",
    [
        [NAMES, *BODY],
        [NAMES, ["1", "Y"], ["2", "", "N"], ["3", "Y"]],
        [["", "Ann", "Ben", "Cem"], *BODY],
        [["Case", "", "Ben", "Cem"], *BODY],
        [["Case", "Ann", "", ""], *BODY],
        [NAMES, BODY[0]],
        [["Case", "Ann", "Ben", ""], BODY[0]],
    ],
    ids=["plain", "few labels", "unnamed first", "unnamed inside", "two unnamed last", "one row",
         "one row, unnamed last"],
)  # fmt: skip
def test_the_first_row_is_the_header_of_a_plain_table(write: Write, rows: Sheet) -> None:
    padded = [[*row, *[""] * (4 - len(row))] for row in rows]
    table, findings = read(write("a.csv", "".join(f"{','.join(row)}\n" for row in padded)))

    assert list(table.columns) == list(filter(None, rows[0]))
    assert (table.lines[0], len(table), table.headers) == (2, len(rows) - 1, ())
    assert {w.kind for w in findings.warnings} <= {"unnamed_column"}


UPPER = ["", "Ann", "", "Ben"]
LOWER = ["Case", "Harm", "Tone", "Harm", "Tone"]
LONG_BODY = [["1", "Y", "kind", "N", "kind"], ["2", "Y", "rude", "N", "kind"]]


def test_two_header_rows_are_a_choice(grid: Grid) -> None:
    path = grid([["Review of May"], UPPER, LOWER, *LONG_BODY])

    table, _ = read(path)
    joined, _ = read(path, header=(2, 3))

    assert table.headers == [(2,), (3,), (2, 3)]
    assert list(table.columns) == ["Ann", "Ben"]
    assert list(joined.columns) == [
        "Case", "Ann - Harm", "Ann - Tone", "Ben - Harm", "Ben - Tone"
    ]  # fmt: skip
    assert (joined.lines, joined.headers) == ([4, 5], ())


def test_a_name_over_both_header_rows_goes_no_further(grid: Grid) -> None:
    path = grid([["Case", "", "Ann", ""], ["", "Note", "Harm", "Tone"], ["1", "x", "Y", "kind"]])

    assert list(columns(path, header=(1, 2))) == ["Case", "Note", "Ann - Harm", "Ann - Tone"]


def test_a_header_row_that_was_said_is_taken(grid: Grid) -> None:
    path = grid([["a", "b"], ["Case", "Ann"], ["1", "Y"]])

    assert columns(path, header=(2,)) == {"Case": ["1"], "Ann": ["Y"]}
    assert errors(path, header=(4,))[0].message == "has no row 4"


# --- names and cells -----------------------------------------------------------------------------


def test_names_are_read_without_what_is_invisible(write: Write) -> None:
    table, findings = read(write("a.csv", "id, text,sys\u200btem,te\0xt,\na,b,c,d,e\n"))

    assert list(table.columns) == ["id", "text", "system", "te\ufffdxt"]
    assert [w.kind for w in findings.warnings] == ["unnamed_column"]


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("id,x,id ", "duplicate_column"),
        (" ,\u200b,", "malformed"),
    ],
    ids=["a duplicate", "no name"],
)
def test_headers_that_cannot_be_used(write: Write, header: str, kind: str) -> None:
    path, start = write("a.csv", f"{header}\n{header}\n"), time.process_time()

    (problem,) = errors(path, header=(1,))

    assert (problem.kind, problem.line) == (kind, 1)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("content", ["", "\n\n", "id,x\n", "id,x\n,\n"])
def test_a_table_without_rows_is_an_error(write: Write, content: str) -> None:
    (problem,) = errors(write("a.csv", content))

    assert problem.message in ("is empty", "holds no rows")


# --- encodings -----------------------------------------------------------------------------------

GERMAN = "id,Ton\n1,groß\n2,klein\n3,schön\n"


@pytest.mark.parametrize(
    ("encoding", "kinds"),
    [
        ("utf-8", []),
        ("utf-8-sig", []),
        ("utf-16", []),
        ("cp1252", ["encoding"]),
    ],
)
def test_texts_are_the_same_in_every_encoding(write: Write, encoding: str, kinds: object) -> None:
    table, findings = read(write("a.csv", GERMAN.encode(encoding)))

    assert table.texts("Ton") == ["groß", "klein", "schön"]
    assert [w.kind for w in findings.warnings] == kinds


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("a.csv", b"4,\xffoh\n"),
        ("a.csv", b"4,\x07oh\n"),
        ("a.jsonl", b'{"id": 4, "Ton": "\\ud800oh"}\n'),
        ("a.jsonl", b'{"id": 4, "Ton": "\x07oh"}\n'),
        ("a.jsonl", b'{"id": 4, "Ton": ["\\u0000oh"]}\n'),
    ],
)
def test_one_bad_character_spoils_its_cell_alone(write: Write, name: str, row: bytes) -> None:
    lines = GERMAN if name == "a.csv" else '{"id": 1, "Ton": "groß"}\n' * 4
    table, findings = read(write(name, lines.encode() + row))

    assert table.columns["Ton"][-1] in ("\ufffdoh", ("\ufffdoh",))
    assert [(w.kind, w.line, w.field) for w in findings.warnings] == [
        ("replaced_character", 5, "Ton")
    ]


def test_the_rows_of_letters_that_are_not_utf_8_are_named(write: Write) -> None:
    _, findings = read(write("a.csv", GERMAN.encode("cp1252")))

    (warning,) = findings.warnings

    assert warning.message.endswith("(2 times, rows 2, 4)")


def test_two_encodings_in_one_file_are_refused(write: Write) -> None:
    path = write("a.csv", GERMAN.encode() + GERMAN.encode("cp1252"))

    (problem,) = errors(path)

    assert problem.line == 6
    assert "UTF-8, and from line 6 on perhaps Windows-1252" in problem.message


# --- DataFrames ----------------------------------------------------------------------------------


def framed(frame: Any) -> Table:
    findings = Findings()
    table = frame_table(frame, "labels", findings)
    assert not findings.errors
    assert table is not None
    return table


def cells_of(frame: Any) -> dict[str, list[Cell]]:
    return {name: list(cells) for name, cells in framed(frame).columns.items()}


def test_values_of_a_frame_are_texts() -> None:
    name = uuid.UUID(int=7)
    frame = pd.DataFrame({
        "id": [name, uuid.UUID(int=8)], "x": [1.5, np.nan], "n": [1, 2], "on": [True, None],
        "day": [pd.Timestamp("2026-03-02"), pd.NaT], "list": [np.array(["a", "b"]), None],
        "tuple": [(np.float64(0.5), np.int64(2)), None],
        "arrow": pd.array([3, None], dtype="int64[pyarrow]"), "sex": pd.Categorical(["f", None]),
    })  # fmt: skip

    table = framed(frame)

    assert cells_of(frame) == {
        "id": [str(name), str(uuid.UUID(int=8))], "x": ["1.5", ""], "n": ["1", "2"],
        "on": ["true", ""], "day": ["2026-03-02", ""], "list": [("a", "b"), ""],
        "tuple": [("0.5", "2"), ""],
        "arrow": ["3", ""], "sex": ["f", ""],
    }  # fmt: skip
    assert (table.file, list(table.lines), table.orders) == ("labels", [2, 3], {})


def test_levels_of_an_index_are_columns_where_they_have_names() -> None:
    frame = pd.DataFrame({"x": [1, 2]})

    assert list(cells_of(frame)) == ["x"]
    assert cells_of(frame.set_axis(pd.Index(["a", "b"], name="id"))) == {
        "id": ["a", "b"], "x": ["1", "2"],
    }  # fmt: skip
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["id", None])
    assert list(cells_of(frame.set_axis(index))) == ["id", "x"]


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_pivoted_frame_is_read_as_two_header_rows(is_reset: bool) -> None:
    long = pd.DataFrame({
        "id": [*"aabbccdd"], "annotator": ["ann", "ben"] * 4,
        "safety": ["no", "no", "yes", "yes"] * 2, "tone": ["kind", "kind", "rude", "rude"] * 2,
    })  # fmt: skip
    wide = long.pivot(index="id", columns="annotator", values=["safety", "tone"])

    frame = wide.reset_index() if is_reset else wide
    with pytest.raises(jb.Unsettled, match="which part of these names is a person") as unsettled:
        jb.layout(frame)
    readings = unsettled.value.questions[0].readings
    columns = next(r.columns for r in readings if r.means == "ann, ben are people")
    (sheet,) = jb.layout(frame, columns=columns).sheets

    assert {name: str(column) for name, column in sheet.columns.items()} == {
        "id": "item",
        "safety - ann": "label safety by ann", "safety - ben": "label safety by ben",
        "tone - ann": "label tone by ann", "tone - ben": "label tone by ben",
    }  # fmt: skip


def test_levels_of_columns_are_joined() -> None:
    keys = pd.MultiIndex.from_tuples([("id", ""), ("ann", "harm"), ("ben", "harm")])

    assert list(cells_of(pd.DataFrame([["a", 1, 2]], columns=keys))) == [
        "id", "ann - harm", "ben - harm"
    ]  # fmt: skip


def test_ordered_categories_keep_their_order() -> None:
    size = pd.Categorical(["s", "l"], ["s", "m", "l"], ordered=True)

    assert framed(pd.DataFrame({" size": size})).orders == {"size": ["s", "m", "l"]}


def test_tables_of_arrow_are_read_and_other_values_are_not() -> None:
    table = framed(pa.table({"id": ["a", None], "n": [1, None]}))

    assert table.columns == {"id": ["a"], "n": ["1"]}
    with pytest.raises(
        SetupError, match=r"pd.DataFrame\(x\) makes one of lists and dicts; found the type list"
    ):
        frame_table([1], "labels", Findings())


def test_a_frame_with_an_index_named_like_a_column() -> None:
    findings = Findings()
    frame = pd.DataFrame({"id": [1, 2]}, index=pd.Index(["a", "b"], name="id"))

    assert frame_table(frame, "labels", findings) is None
    assert [e.kind for e in findings.errors] == ["duplicate_column"]


# --- what others read of a table -----------------------------------------------------------------


def test_numbers_of_a_file_and_of_a_frame_are_the_same(tmp_path: Path) -> None:
    frame = pd.DataFrame({"system": ["a", "b", None], "x": [1.5, np.nan, 3.0], "y": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)

    for table in (read_table(tmp_path / "t.csv", ["system"]), read_table(frame)):
        assert table.numeric() == ["x", "y"]
        assert table.contents("system") == ["a", "b", ""]
        np.testing.assert_array_equal(table.numbers("y", "x"), [[1, 1.5], [2, np.nan], [3, 3]])


def test_every_cell_that_is_no_number_or_blank_is_named(write: Write) -> None:
    table = read_table(write("t.csv", "system,x,y,z\na,1,inf,nan\n,?,2,1\n"))

    assert table.numeric() == ["z"]
    with pytest.raises(SetupError) as error:
        table.numbers("x", "y")
    assert [(p.line, p.field, p.found) for p in error.value.problems] == [
        (3, "x", "?"), (2, "y", "inf")
    ]  # fmt: skip
    with pytest.raises(SetupError, match=r"t.csv:3: system: is blank"):
        table.filled("system")


def test_missing_columns_are_named_with_the_nearest(write: Write, tmp_path: Path) -> None:
    path = write("t.csv", "system,x\na,1\n")

    with pytest.raises(SetupError, match="sistem: the column is missing; did you mean 'system'"):
        read_table(path, ["sistem", "x"])
    with pytest.raises(SetupError, match="no such file"):
        read_table(tmp_path / "none.csv")


def test_ids_and_what_counts_runs_are_no_scores() -> None:
    frame = pd.DataFrame({"row": [2, 3], "item_id": [1, 2], "seed": [0, 1], "x": [0.5, 1], "y": 1})

    assert read_table(frame).scores("y") == ["x"]


def test_a_slip_in_a_cell_hides_no_column() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "x": ["1", "2", "2,5"], "y": [1, 2, 3]})
    table = read_table(frame)

    assert table.scores() == ["x", "y"]
    with pytest.raises(SetupError, match="x: is no number; found 2,5"):
        table.numbers("x", "y")


def test_contents_are_texts_as_they_were_written(write: Write) -> None:
    path = write("t.jsonl", '{"a": "\'=1+1\\u200d ", "b": ["x", "y"], "c": [{"k": 1}, {}]}')

    table = read_table(path)

    assert list(table.records()) == [
        (1, {"a": "=1+1\u200d", "b": '["x", "y"]', "c": '[{"k": "1"}, {}]'})
    ]
