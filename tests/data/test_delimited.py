"""Rows of CSV and TSV: delimiters, quotes, lengths of rows, and cells that no spreadsheet runs."""

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgebench.data.findings import Findings
from judgebench.data.formats import quoted, to_csv, unquoted
from judgebench.data.tables import open_table
from judgebench.results.documents import safe
from tests.data.conftest import Write, columns, errors, read


@pytest.mark.parametrize(
    "text",
    [
        "id,text\n1,a; b\n2,c\n",
        "id;text\n1;a; b\n2;c, d, e\n".replace("a; b", '"a; b"'),
        "id\ttext\n1\ta; b\n2\tc\n",
        "Review, batch 7\nid;text\n1;x\n2;y\n",
        "id;x;y\n1;0,5;0,7\n2;0,1;1,0\n",
        "id\n1\n2\n",
    ],
    ids=["comma", "semicolon", "tab", "comma in the title", "decimal commas", "one column"],
)
def test_the_delimiter_is_what_most_rows_share(write: Write, text: str) -> None:
    table, _ = read(write("a.csv", text))

    assert table.texts("id") == ["1", "2"]


def test_tsv_is_split_at_tabs_alone(write: Write) -> None:
    assert columns(write("a.tsv", "a, b, c\td\n1\t2\n")) == {"a, b, c": ["1"], "d": ["2"]}


def test_cells_that_span_lines_are_rows_of_a_spreadsheet(write: Write) -> None:
    table, _ = read(write("a.csv", 'id,text\r\n1,"two\r\nlines, ""so"""\r\n2,x\r\n'))

    assert [*table.columns["text"]] == ['two\r\nlines, "so"', "x"]
    assert table.lines == [2, 3]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('1,"never closed\n2,b\n3,c\n', 2),
        ('1,a\n2,"Hello" he said\n', 3),
        ('1,a\n2,"opens\n3,"b",\n', 3),
    ],
    ids=["never closed", "text after it", "opens again"],
)
def test_an_unmatched_quote_names_its_row(write: Write, rows: str, line: int) -> None:
    (problem,) = errors(write("a.csv", f"id,text\n{rows}"))

    assert (problem.kind, problem.line) == ("malformed", line)
    assert problem.message == (
        "a quote opens in this row, and none closes it at the end of its cell"
    )


def test_rows_of_another_length_are_errors(write: Write) -> None:
    path = write("a.csv", "id,text,label\n1,a\n2,b,yes,\n3,b,yes,x\n4,c,no\n")
    findings = Findings()

    table = open_table(path, findings)

    assert [(e.kind, e.line, e.message) for e in findings.errors] == [
        ("ragged_row", 2, "has 2 cells where the header has 3"),
        ("ragged_row", 4, "has 4 cells where the header has 3"),
    ]
    assert table is not None
    assert table.lines == [3, 5]


def test_blank_rows_are_counted_but_those_at_the_end(write: Write) -> None:
    table, findings = read(write("a.csv", "id,text\n1,a\n\n ,\n2,b\n\n,\n"))

    assert table.lines == [2, 5]
    (warning,) = findings.warnings
    assert (warning.kind, warning.message) == ("blank_row", "blank row (2 times, rows 3-4)")


def test_a_long_text_is_one_cell(write: Write) -> None:
    (text,) = columns(write("a.csv", "id,text\na," + "long " * 100_000))["text"]

    assert isinstance(text, str)
    assert len(text) == 500_000


SENTENCES = st.lists(st.text("ab,;\t\"'\n 5", max_size=8), min_size=2, max_size=2)


@given(
    rows=st.lists(SENTENCES, min_size=1, max_size=5),
    style=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@example(rows=[["a;b", "c"], ["a;b", "c"]], style=csv.QUOTE_MINIMAL, end="\n")
def test_what_a_csv_writer_wrote_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: Sequence[Sequence[str]], style: int, end: str
) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=style, lineterminator=end)  # type: ignore[arg-type]
    writer.writerows([["id", "first", "second"], *([f"q{i}", *row] for i, row in enumerate(rows))])
    path = tmp_path_factory.getbasetemp() / "written.csv"
    path.write_bytes(out.getvalue().encode())

    table = open_table(path, Findings(), header=(1,))

    assert table is not None
    assert list(zip(table.columns["first"], table.columns["second"], strict=True)) == [
        (first, second) for first, second in rows
    ]


@given(st.text(alphabet="'=+-@\t\r\na b\u3000\uff1d\ufeff\u200b"))
def test_an_apostrophe_comes_off_as_it_went_on(text: str) -> None:
    cell = quoted(text)

    assert unquoted(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r\n\uff1d"))
    assert not cell.strip(" \n\u3000\ufeff\u200b").startswith(tuple("=+-@\uff1d"))


@pytest.mark.parametrize(
    "text",
    ["\n=1+1", "\r\n=1+1", " =1+1", "\ufeff=1+1", "\uff1d1+1", "\uff0b1", "\u3000@SUM(1)", "'\n=1"],
)
def test_what_stands_before_a_formula_does_not_hide_it(text: str) -> None:
    assert quoted(text) == safe(text) == f"'{text}"


def test_every_cell_of_a_table_stands_in_quotes() -> None:
    table = to_csv(["a", "b"], [["1,2", 'say "x"\nthen y']])

    assert table.decode("utf-8-sig") == '"a","b"\n"1,2","say ""x""\nthen y"\n'
