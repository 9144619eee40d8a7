"""Tables as people leave them: stray quotes, nested values, workbooks, texts in several columns."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgebench.data.cells import Paths, dig, steps_of
from judgebench.data.load import check_files, load_data
from judgebench.errors import Problem, SetupError
from judgebench.records import Dataset
from judgebench.rubric import Rubric

Write = Callable[[str, str | bytes], Path]

HEADER = "item_id\ttext\ttone\tnote\n"
SPEC = """files:
  - path: a.tsv
    {}
    items: {{item_id: item_id, text: text, labels: {{metrics: {{tone: tone}}}}}}
"""


def texts(found: Dataset) -> dict[str, str]:
    return {answer.item_id: answer.text for answer in found.answers}


def errors(rubric: Rubric, *paths: Path) -> tuple[Problem, ...]:
    with pytest.raises(SetupError) as caught:
        load_data(paths, rubric)
    return tuple(caught.value.problems)


# --- quotes --------------------------------------------------------------------------------------


def test_a_quote_that_swallows_rows_is_an_error(rubric: Rubric, write: Write) -> None:
    rows = 'i1\t"Hello\tKind\t\ni2\tfoo\tKind\t\ni3\tbar"\tKind\t\ni4\tbaz\tKind\t\n'
    (found,) = errors(rubric, write("a.tsv", HEADER + rows))
    assert (found.kind, found.line, found.field, found.found) == (
        "malformed", 2, "text", repr('"Hello')
    )  # fmt: skip
    assert found.message == (
        "a quote opens in this cell and closes 2 rows further down: the quotes do not match up; if "
        "quotes are part of the texts, write `quoting: none` for this file in a data.yaml; if "
        "cells of it do span lines, `quoting: standard`"
    )


def test_quotes_as_text(rubric: Rubric, write: Write) -> None:
    rows = 'i1\t"Hello\tKind\t\ni2\t"foo" he said\tKind\t"\ni3\tbar"\tKind\t\n'
    write("a.tsv", HEADER + rows)
    assert len(errors(rubric, write("plain.yaml", SPEC.format("")))) == 1  # one cause, one message
    found = load_data(write("data.yaml", SPEC.format("quoting: none")), rubric)
    assert texts(found) == {"i1": '"Hello', "i2": '"foo" he said', "i3": 'bar"'}


def test_rows_with_stray_quotes_are_counted_once(rubric: Rubric, write: Write) -> None:
    rows = "".join(f'i{n}\t"No" is {n}\tKind\t\n' for n in range(30))
    (found,) = errors(rubric, write("a.tsv", HEADER + rows))
    assert found.line == 2
    assert "does not close at the end of the cell (so in 30 rows" in found.message


@pytest.mark.parametrize(
    "notes",
    [['"Yes" he said', "", ""], ["", '"open', ""], ['"from', "", 'to"'], ["", "", '"']],
    ids=["text after it", "never closed", "closed in a later row", "at the end"],
)
def test_quotes_where_nobody_reads_do_not_matter(
    rubric: Rubric, write: Write, notes: list[str]
) -> None:
    more = [f"i{n}\ttext {n}\tNeutral\t\n" for n in range(4, 40)]
    rows = [f"i{n}\tanswer {n}\tKind\t{note}\n" for n, note in enumerate(notes)] + more
    write("a.tsv", HEADER + "".join(rows))
    found = load_data(write("data.yaml", SPEC.format("")), rubric)
    assert len(found.answers) == len(found.labels) == 39
    (said,) = [w for w in found.warnings if w.kind == "stray_quote"]
    assert said.field == "note"
    assert "a quote without its match, in a column that is not read: taken as text" in said.message


def test_a_quote_that_closes_in_another_column(rubric: Rubric, write: Write) -> None:
    rows = 'i1\tone\tKind\t"see\ni2\ttwo"\tKind\t\ni3\tthree\tKind\t\n'
    write("a.tsv", HEADER + rows)
    found = load_data(write("data.yaml", SPEC.format("")), rubric)
    assert texts(found) == {"i1": "one", "i2": 'two"', "i3": "three"}
    (wrong,) = errors(rubric, write("b.tsv", HEADER.replace("note", "group") + rows))
    assert (wrong.kind, wrong.line, wrong.field) == ("malformed", 2, "group")


def test_cells_that_span_lines_and_look_like_rows(rubric: Rubric, write: Write) -> None:
    write("a.csv", 'item_id,text\ni1,"Doses\n1,5"\ni2,None\n')
    (found,) = errors(rubric, write("plain.yaml", CSV.format("")))
    assert "`quoting: standard`" in found.message
    found_data = load_data(write("data.yaml", CSV.format("quoting: standard")), rubric)
    assert texts(found_data)["i1"] == "Doses\n1,5"


CSV = "files:\n  - path: a.csv\n    {}\n    items: {{item_id: item_id, text: text}}\n"


def test_quoting_of_other_formats(rubric: Rubric, write: Write) -> None:
    write("a.jsonl", '{"item_id": "a", "text": "b"}')
    spec = write("data.yaml", CSV.format("quoting: none").replace("a.csv", "a.jsonl"))
    (found,) = errors(rubric, spec)
    assert (found.field, found.message) == ("quoting", "applies to csv and tsv only: remove it")


WORDS = st.sampled_from(["the", "dose", "is", "5", "mg,", "rest;", "please", "no", "(see below)"])
SENTENCE = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
QUOTED = st.tuples(st.sampled_from(["", '"', '""']), SENTENCE, st.sampled_from(["", '"', '""']))
LABEL = st.sampled_from(["Kind", "Neutral"])


@given(rows=st.lists(st.tuples(QUOTED.map("".join), LABEL, QUOTED.map("".join)), min_size=1))
@example(rows=[('"a', "Kind", "x"), ('b"', "Kind", "x")])
def test_rows_never_merge(rubric: Rubric, rows: Sequence[tuple[str, str, str]], room: Path) -> None:
    """A file written without quoting gives every row, or an error."""
    lines = [f"q-{n}\t{text}\t{label}\t{note}\n" for n, (text, label, note) in enumerate(rows)]
    (room / "a.tsv").write_text(HEADER + "".join(lines))
    (room / "data.yaml").write_text(SPEC.format(""))
    report = check_files([room / "data.yaml"], rubric)
    assert not report.ok or report.answers == report.labels == len(rows)
    (room / "data.yaml").write_text(SPEC.format("quoting: none"))
    found = load_data(room / "data.yaml", rubric)
    assert texts(found) == {f"q-{n}": text for n, (text, _, _) in enumerate(rows)}


LINES = st.lists(SENTENCE, min_size=1, max_size=4).map("\n".join)


@given(
    rows=st.lists(st.tuples(LINES, LABEL, LINES), min_size=1),
    style=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_well_quoted_texts_are_read(
    rubric: Rubric, rows: Sequence[tuple[str, str, str]], style: int, end: str, room: Path
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=style, lineterminator=end)
    writer.writerow(["item_id", "text", "tone", "note"])
    writer.writerows([f"q-{n}", *row] for n, row in enumerate(rows))
    (room / "a.csv").write_bytes(out.getvalue().encode())
    found = load_data(room / "a.csv", rubric)
    assert texts(found) == {f"q-{n}": text for n, (text, _, _) in enumerate(rows)}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("room")


# --- texts of several columns, nested values -----------------------------------------------------

BUILT = """files:
  - path: {}
    items:
      item_id: "{{doc}}-{{turn}}"
      question: "{{instruction}}\\n\\n{{input}}"
      text: output
      group: doc
"""


def test_texts_of_several_columns(rubric: Rubric, write: Write) -> None:
    write("a.csv", "doc,turn,instruction,input,output\nd,1,Add {x},1 and 2,3\nd,2,Sing, ,La\n")
    found = load_data(write("data.yaml", BUILT.format("a.csv")), rubric).answers
    assert [(a.item_id, a.question, a.text) for a in found] == [
        ("d-1", "Add {x}\n\n1 and 2", "3"),
        ("d-2", "Sing", "La"),
    ]


def test_ids_need_all_their_parts(rubric: Rubric, write: Write) -> None:
    write("a.csv", "doc,turn,instruction,input,output\nd,,Add,1 and 2,3\n")
    (found,) = errors(rubric, write("data.yaml", BUILT.format("a.csv")))
    assert (found.kind, found.line) == ("blank_id", 2)


def test_templates_name_missing_columns_and_need_quotes(rubric: Rubric, write: Write) -> None:
    write("a.csv", "doc,turn,instructions,input,output\nd,1,Add,1,3\n")
    (found,) = errors(rubric, write("data.yaml", BUILT.format("a.csv")))
    assert (found.kind, found.field) == ("missing_column", "instruction")
    assert "did you mean 'instructions'?" in found.message
    spec = "files:\n  - {path: a.csv, items: {item_id: doc, text: {output}}}\n"
    (found,) = errors(rubric, write("data.yaml", spec))
    assert 'YAML reads {output} as a mapping: put it in quotes, "{output}"' in found.message


def test_braces_as_text(rubric: Rubric, write: Write) -> None:
    write("a.csv", "id,code,{x}\n1,f(),y\n")
    spec = """files:
  - path: a.csv
    items:
      - {item_id: id, text: "{{{code}}}"}
      - {item_id: {column: id, prefix: b}, text: {column: "{x}"}}
"""
    assert texts(load_data(write("data.yaml", spec), rubric)) == {"1": "{f()}", "b1": "y"}


NESTED = [
    {"doc": {"id": "a", "question": "Why?"}, "messages": [{"content": "x"}, {"content": "So."}],
     "ratings": {"tone": ["Kind", "Neutral"]}},
    {"doc": {"id": "b"}, "messages": [{"content": "Well."}], "ratings": {"tone": []}},
]  # fmt: skip
PATHS = """files:
  - path: {}
    items:
      item_id: doc.id
      question: doc.question
      text: messages[-1].content
      labels: {{list: true, metrics: {{tone: ratings.tone}}}}
"""


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
def test_paths_into_nested_values(rubric: Rubric, tmp_path: Path, name: str) -> None:
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(NESTED), tmp_path / name)
    else:
        lines = "\n".join(map(json.dumps, NESTED))
        (tmp_path / name).write_text(lines if name == "a.jsonl" else json.dumps(NESTED))
    (tmp_path / "data.yaml").write_text(PATHS.format(name))
    found = load_data(tmp_path / "data.yaml", rubric)
    assert [(a.item_id, a.question, a.text) for a in found.answers] == [
        ("a", "Why?", "So."),
        ("b", "", "Well."),
    ]
    assert [label.label for label in found.labels] == ["Kind", "Neutral"]
    (tmp_path / "data.yaml").write_text(PATHS.format(name).replace("doc.question", "doc.qestion"))
    (wrong,) = errors(rubric, tmp_path / "data.yaml")
    assert (wrong.kind, wrong.field) == ("missing_column", "doc.qestion")
    assert "did you mean 'doc.question'?" in wrong.message
    assert "messages[0].content" in wrong.allowed


def test_a_column_named_like_a_path(rubric: Rubric, write: Write) -> None:
    write("a.jsonl", '{"item_id": "a", "a.b": "whole", "a": {"b": "part"}}')
    spec = "files:\n  - {path: a.jsonl, items: {item_id: item_id, text: a.b}}\n"
    assert texts(load_data(write("data.yaml", spec), rubric)) == {"a": "whole"}


# --- workbooks -----------------------------------------------------------------------------------


def test_workbook_cells(rubric: Rubric, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_sheet("empty")
    sheet = book.worksheets[0]
    sheet.append(["item_id", "text", "n", "day", "time", "yes", None])
    sheet.append([7, "one", 2.5, date(2026, 3, 2), datetime(2026, 3, 2, 10, 30), True])
    sheet.append([])
    sheet.append(["b", "=two", None, None, None, None])
    sheet["B4"].data_type = "s"
    sheet["A9"].font = openpyxl.styles.Font(bold=True)  # formatted rows at the end are none
    book.save(tmp_path / "a.xlsx")
    found = load_data(tmp_path / "a.xlsx", rubric)
    assert texts(found) == {"7": "one", "b": "=two"}
    assert dict(found.answers[0].metadata) == {
        "n": "2.5", "day": "2026-03-02", "time": "2026-03-02 10:30:00", "yes": "true"
    }  # fmt: skip
    assert [(w.kind, w.line) for w in found.warnings] == [("blank_row", 3)]


def test_sheets_and_formulas(rubric: Rubric, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first, second = book.worksheets[0], book.create_sheet("labels")
    first.append(["item_id", "text"])
    first.append(["a", "=UPPER(A1)"])
    first.append(["b", "=UPPER(A2)"])
    second.append(["item_id", "text"])
    second.append(["b", "two", "more"])
    book.save(tmp_path / "a.xlsx")
    (found,) = errors(rubric, tmp_path / "a.xlsx")
    assert found.message == "has several sheets: name one with `sheet: NAME` in a data.yaml"
    assert found.allowed == "Sheet / labels"
    spec = "files:\n  - {{path: a.xlsx, sheet: {}, items: {{item_id: item_id, text: text}}}}\n"
    told = {}
    for name in ("Sheet", "labels", "Labels"):
        (tmp_path / "data.yaml").write_text(spec.format(name))
        told[name] = errors(rubric, tmp_path / "data.yaml")[0]
    assert (told["Sheet"].line, told["Sheet"].field) == (2, "text")
    assert told["Sheet"].message == (
        "a formula without a stored value (so in 2 rows, of which this is the first): open the "
        "file in a spreadsheet program and save it"
    )
    assert told["labels"].message == "has 3 cells where the header has 2"
    assert told["Labels"].message == "the workbook has no sheet of this name"


def test_formulas_that_nobody_reads(rubric: Rubric, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["item_id", "text", "n"], ["a", "one", "=1+1"]):
        book.worksheets[0].append(row)
    book.save(tmp_path / "a.xlsx")
    spec = "files:\n  - {path: a.xlsx, items: {item_id: item_id, text: text}}\n"
    (tmp_path / "data.yaml").write_text(spec)
    assert texts(load_data(tmp_path / "data.yaml", rubric)) == {"a": "one"}


def test_damaged_workbooks_and_other_spreadsheets(rubric: Rubric, write: Write) -> None:
    (found,) = errors(rubric, write("a.xlsx", b"PK\x03\x04 no workbook"))
    assert (found.kind, found.message[:24]) == ("unreadable_file", "is no .xlsx workbook: Fi")
    for name in ("a.xls", "a.ods", "a.numbers", "a.gsheet"):
        (found,) = errors(rubric, write(name, "x"))
        assert found.message == "a spreadsheet of this kind is not read: export it as CSV"
    (found,) = errors(rubric, Path("https://docs.google.com/spreadsheets/d/1/edit"))
    assert found.message == "a spreadsheet of this kind is not read: export it as CSV"


KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.text(max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


@given(value=st.dictionaries(KEYS, VALUES, max_size=3))
def test_every_path_that_is_named_leads_somewhere(value: dict[str, Any]) -> None:
    paths = Paths(["x.y"])
    paths.look(value)
    for name in paths.there:
        steps = steps_of(name) or (name,)
        found = dig(value, steps, paths)
        assert found is not paths
        assert dig(value, (*steps, "no such key"), paths) is paths
