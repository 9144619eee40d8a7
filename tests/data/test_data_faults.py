"""Each fault in a file is told with the file, the row and the column; all of them at once."""

import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebench.data.findings import ERRORS, WARNINGS
from judgebench.data.load import check_files, load_data
from judgebench.errors import Problem, SetupError
from judgebench.rubric import Rubric

Write = Callable[[str, str | bytes], Path]

ANSWERS = "item_id,text\na,one\nb,two\nc,three\n"


def problem(found: tuple[Problem, ...], kind: str) -> Problem:
    (one,) = [p for p in found if p.kind == kind]
    return one


def errors(rubric: Rubric, *paths: Path) -> tuple[Problem, ...]:
    report = check_files(paths, rubric)
    with pytest.raises(SetupError) as caught:
        load_data(paths, rubric)
    assert set(report.errors) <= set(caught.value.problems)
    return report.errors


# One fault, one error: content, kind, row, column, a part of the message.
ANSWER_FAULTS = {
    "empty text": ("item_id,text\na,one\nb, \n", "empty_text", 3, "text", "if_empty"),
    "zero-width text": ("item_id,text\na,\u200b\ufeff\n", "empty_text", 2, "text", ""),
    "two contents": ("item_id,text\na,one\na,two\n", "conflicting_item", 3, "item_id", "row 2"),
    "two groups": (
        "item_id,text,group\na,one,g\na,one,h\n",
        "conflicting_item",
        3,
        "item_id",
        "another group",
    ),
    "blank id": ("item_id,text\n,one\nb,two\n", "blank_id", 2, "", ""),
    "NUL": ("item_id,text\na,o\0ne\n", "control_character", 2, "text", "U+0000"),
    "escape": ("item_id,text\na,\x1b[31m\n", "control_character", 2, "text", "U+001B"),
    "short row": ("item_id,text\na\nb,two\n", "ragged_row", 2, "", "1 cells"),
    "long row": ("item_id,text\nb,two,\nc,x\n", "ragged_row", 2, "", "3 cells"),
    "two columns": ("item_id,text,text\na,one,1\n", "duplicate_column", 1, "", ""),
    "case": ("item_id,text,Text\na,one,1\n", "duplicate_column", 1, "Text", "case"),
    "open quote": ('item_id,text\na,one\nb,"two\nc,three\n', "malformed", 3, "text", "quotes"),
    "quote inside": ('item_id,text\na,"one" x\n', "malformed", 2, "text", "quotes"),
    "header alone": ("item_id,text\n", "no_rows", None, "", ""),
    "nothing": ("", "malformed", None, "", "empty"),
    "misspelt metric": (
        "item_id,text,tone of voices\na,one,Kind\n",
        "unknown_metric",
        1,
        "tone of voices",
        "did you mean 'Tone of voice'",
    ),
    "another name": (
        "id,text\na,b\n",
        "unknown_column",
        1,
        "id",
        "is not read; did you mean 'item_id'?",
    ),
    "another name of a text": (
        "item_id,Model output\na,b\n",
        "unknown_column",
        1,
        "Model output",
        "did you mean 'text'?",
    ),
    "another name of an annotator": (
        "item_id,rater_id,tone\na,x,Kind\n",
        "unknown_column",
        1,
        "rater_id",
        "did you mean 'annotator'?",
    ),
    "unknown columns": ("nick,remarks\na,b\n", "unrecognised_file", None, "", "data.yaml"),
}


@pytest.mark.parametrize("case", ANSWER_FAULTS)
def test_fault_in_answers(case: str, rubric: Rubric, write: Write) -> None:
    content, kind, row, column, message = ANSWER_FAULTS[case]
    path = write("answers.csv", content)
    (found,) = errors(rubric, path)
    assert (found.kind, found.file, found.line, found.field) == (kind, str(path), row, column)
    assert message in found.message


LABEL_FAULTS = {
    "unknown label": ("a,x,tone,Kimd\n", "unknown_label", "label", "did you mean 'Kind'"),
    "unknown metric": ("a,x,tonne,Kind\n", "unknown_metric", "metric", "did you mean 'tone'"),
    "blank metric": ("a,x,,Kind\n", "blank_metric", "metric", ""),
    "blank annotator": ("a, ,tone,Kind\n", "blank_annotator", "", ""),
    "unknown item": ("d1,x,tone,Kind\n", "unknown_item", "item_id", ""),
    "date for a label": ("a,x,tone,2-Mar\n", "spreadsheet_label", "label", "a date"),
    "date in full": ("a,x,tone,2026-03-02 00:00:00\n", "spreadsheet_label", "label", "a date"),
    "date's number": ("a,x,tone,45353\n", "spreadsheet_label", "label", "bare number"),
    "date for an id": ("2-Mar,x,tone,Kind\n", "unknown_item", "item_id", "a date"),
    "error value": ("a,x,tone,#NAME?\n", "spreadsheet_label", "label", "error value"),
    "two labels": ("a,x,tone,Neutral\n", "conflicting_label", "label", "'Kind'"),
}


@pytest.mark.parametrize("case", LABEL_FAULTS)
def test_fault_in_labels(case: str, rubric: Rubric, write: Write) -> None:
    row, kind, column, message = LABEL_FAULTS[case]
    labels = write("labels.csv", "item_id,annotator,metric,label\na,x,tone,Kind\n" + row)
    (found,) = errors(rubric, write("answers.csv", ANSWERS), labels)
    assert (found.kind, found.file, found.line, found.field) == (kind, str(labels), 3, column)
    assert message in found.message


def test_unknown_label_names_the_allowed_ones(rubric: Rubric, write: Write) -> None:
    labels = write("l.csv", "item_id,annotator,tone\na,x,1\n")
    (found,) = errors(rubric, write("answers.csv", ANSWERS), labels)
    assert found.allowed == "Kind, Neutral, Rude – openly, Cannot say"
    assert found.found == "'1'"


# One oddity, one counted warning: answers, labels, kind, first row, column.
LONG = "item_id,annotator,metric,label\n"
ODDITIES = {
    "blank label": (ANSWERS, LONG + "a,x,tone,\nb,x,tone,\u200b \n", "blank_label", 2, "label", 2),
    "same label": (ANSWERS, LONG + "a,x,tone,Kind\na,x,Tone of voice,kind\n", "duplicate_label", 3,
                   "label", 1),
    "space": (ANSWERS, LONG + " a,x,tone,Kind\n", "stripped_space", 2, "item_id", 1),
    "zero-width id": (ANSWERS, LONG + "a\u200b,x,tone,Kind\n", "invisible_characters", 2,
                      "item_id", 1),
    "zero-width label": (ANSWERS, LONG + "a,x,tone,Ki\u00adnd\n", "invisible_characters", 2,
                         "label", 1),
    "mark": ("\ufeff" + ANSWERS, None, "byte_order_mark", 1, "", 1),
    "zero-width text": ("item_id,text\na,o\u200bne\n", None, "invisible_characters", 2, "text", 1),
    "same item": (ANSWERS + "a,one\n", None, "duplicate_item", 5, "", 1),
    "date for text": ("item_id,text\na,Mar-02\nb,2-Mar\n", None, "spreadsheet_text", 2, "text", 2),
    "date's number": ("item_id,text\na,45353\n", None, "spreadsheet_text", 2, "text", 1),
    "cut text": ("item_id,text\na," + "x" * 32_767, None, "spreadsheet_text", 2, "text", 1),
    "blank row": ("item_id,text\n,\na,one\n\n", None, "blank_row", 2, "", 2),
    "nameless column": ("item_id,text,\na,one,0\n", None, "unnamed_column", 1, "", 1),
    "unused column": (ANSWERS, "item_id,annotator,tone,when\na,x,Kind,May\n", "unused_column", 1,
                      "when", 1),
    "blank question": ("item_id,text,question\na,one, \n", None, "blank_question", 2, "", 1),
    "slot": (ANSWERS, LONG + "a,x#1,tone,Kind\n", "slot_name", 2, "annotator", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", ODDITIES)
def test_oddity_is_counted(case: str, rubric: Rubric, write: Write) -> None:
    answers, labels, kind, row, column, times = ODDITIES[case]
    paths = [write("answers.csv", answers)] + ([write("labels.csv", labels)] if labels else [])
    found = problem(tuple(load_data(paths, rubric).warnings), kind)
    assert (found.file, found.line, found.field) == (str(paths[-1]), row, column)
    assert f"({times} time" in found.message
    report = check_files(paths, rubric)
    assert report.ok
    assert found in report.warnings


def test_what_becomes_of_oddities(rubric: Rubric, write: Write) -> None:
    labels = LONG + " a\u200b,x ,tone,Ki\u00adnd\na,x,tone,\nb,x,tone,\nb,x,tone,Neutral\n"
    answers = write("answers.csv", "item_id,text\na,o\u200bne\nb,Mar-02\n")
    found = load_data([answers, write("labels.csv", labels)], rubric)
    assert [x.text for x in found.answers] == ["o\u200bne", "Mar-02"]
    said = [(x.item_id, x.annotator, x.label) for x in found.labels]
    assert said == [("a", "x", "Kind"), ("b", "x", "Neutral")]  # a blank says nothing against one


def test_all_at_once(rubric: Rubric, write: Write) -> None:
    answers = write("answers.csv", "item_id,text\na,one\nb,\na,two\n")
    labels = write("labels.csv", LONG + "a,x,tone,Kimd\nz,x,tone,Kind\nb,x,tone,Kind\n")
    broken = write("more.csv", "what,is,this\n1,2,3\n")
    found = {(p.kind, Path(p.file).name, p.line) for p in errors(rubric, answers, labels)}
    assert found == {
        ("empty_text", "answers.csv", 3),
        ("conflicting_item", "answers.csv", 4),
        ("unknown_label", "labels.csv", 2),
        ("unknown_item", "labels.csv", 3),  # and not b, whose row was told already
    }
    with_broken = {p.kind for p in errors(rubric, answers, labels, broken)}
    assert with_broken == {"empty_text", "conflicting_item", "unknown_label", "unrecognised_file"}


def test_many_alike_are_counted(rubric: Rubric, write: Write) -> None:
    rows = "".join(f"a,x{i},tone,bad{i}\n" for i in range(250))
    found = errors(rubric, write("answers.csv", ANSWERS), write("labels.csv", LONG + rows))
    assert len(found) == 101
    assert found[-1].message == "and 150 more such errors, 250 in all, the last in row 251"


def test_rows_count_as_a_spreadsheet_shows_them(rubric: Rubric, write: Write) -> None:
    path = write("answers.csv", 'item_id,text\na,"one\r\nstill\n\none"\nb,\n')
    (found,) = errors(rubric, path)
    assert found.line == 3


def test_a_header_may_span_lines(rubric: Rubric, write: Write) -> None:
    path = write("a.csv", 'item_id,text,"what\nelse"\na,one,x\nb,,y\n')
    (found,) = errors(rubric, path)
    assert (found.kind, found.line) == ("empty_text", 3)
    assert (
        "old" in load_data(write("mac.csv", "item_id,text\ra,old\rb,two"), rubric).answers[0].text
    )


def test_jsonl_counts_lines(rubric: Rubric, write: Write) -> None:
    path = write("a.jsonl", '{"item_id":"a","text":"x"}\n\n{"item_id":"b","text":""}\n{"item_id"')
    found = errors(rubric, path)
    assert {(p.kind, p.line) for p in found} == {("empty_text", 3), ("malformed", 4)}
    (found,) = errors(
        rubric, write("b.jsonl", b'\x80{"item_id":"a"}\n{"item_id":"b","text":"x"}\n')
    )
    assert (found.kind, found.line) == ("malformed", 1)


JSON_FAULTS = {
    "not a list": ('{"a": [1]}', "malformed", None, ""),
    "not json": ('[{"item_id": "a",\n"text": }]', "malformed", 2, ""),
    "not objects": ('[1, {"item_id": "a", "text": "x"}]', "malformed", 1, ""),
    "key twice": ('[{"item_id": "a", "text": "x", "text": "y"}]', "duplicate_key", 1, "text"),
    "nested": ('[{"item_id": "a", "text": {"x": 1}}]', "nested_value", 1, "text"),
    "list": ('[{"item_id": "a", "text": ["x"]}]', "nested_value", 1, "text"),
    "surrogate": ('[{"item_id": "a", "text": "\\ud800"}]', "control_character", 1, "text"),
    "deep": ("[" * 100_000, "malformed", None, ""),
    "no rows": ("[]", "no_rows", None, ""),
}


@pytest.mark.parametrize("case", JSON_FAULTS)
def test_fault_in_json(case: str, rubric: Rubric, write: Write) -> None:
    content, kind, row, column = JSON_FAULTS[case]
    (found,) = errors(rubric, write("a.json", content))
    assert (found.kind, found.line, found.field) == (kind, row, column)


def test_nested_parquet(rubric: Rubric, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([{"item_id": "a", "text": {"x": 1}}]), path)
    (found,) = errors(rubric, path)
    assert (found.kind, found.line, found.field) == ("nested_value", 2, "text")


def test_wrong_encoding_names_each_row(rubric: Rubric, write: Write) -> None:
    path = write("answers.csv", "item_id,text\na,one\nb,naïve\nc,it’s\n".encode("cp1252"))
    found = errors(rubric, path)
    assert [(p.kind, p.line, p.field) for p in found] == [
        ("bad_byte", 3, "text"),
        ("bad_byte", 4, "text"),
    ]
    assert "0x92" in found[1].message
    assert "’" in found[1].allowed


def test_utf16_without_its_mark(rubric: Rubric, write: Write) -> None:
    found = errors(rubric, write("answers.csv", ANSWERS.encode("utf-16-le")))
    assert {p.kind for p in found} == {"control_character"}


def test_cut_utf16(rubric: Rubric, write: Write) -> None:
    (found,) = errors(rubric, write("answers.csv", ANSWERS.encode("utf-16")[:-1]))
    assert found.kind == "unreadable_file"


def gzipped_and_cut() -> bytes:
    return gzip.compress((ANSWERS * 500).encode())[:-20]


def parquet_and_cut() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"item_id": ["a"], "text": ["b"]}), sink)
    return sink.getvalue()[:-12]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("answers.csv.gz", gzipped_and_cut()),
        ("answers.csv.gz", b"\x1f\x8b\x08nonsense"),
        ("answers.parquet", parquet_and_cut()),
        ("answers.parquet", b""),
        ("answers.parquet", b"item_id,text\na,b\n"),
    ],
    ids=["cut gzip", "no gzip", "cut parquet", "empty parquet", "no parquet"],
)
def test_damaged_files(name: str, content: bytes, rubric: Rubric, write: Write) -> None:
    assert "unreadable_file" in {p.kind for p in errors(rubric, write(name, content))}


def test_no_such_file(rubric: Rubric, tmp_path: Path) -> None:
    (found,) = errors(rubric, tmp_path / "nothing.csv")
    assert (found.kind, found.file) == ("unreadable_file", str(tmp_path / "nothing.csv"))
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in errors(rubric, tmp_path / "folder.csv")[0].message
    (unknown,) = errors(rubric, tmp_path / "book.docx")
    assert unknown.kind == "unknown_format"
    assert ".csv" in unknown.allowed


def test_ids_that_look_alike(rubric: Rubric, write: Write) -> None:
    answers = write("answers.csv", "item_id,text\ncafé,one\ncafe\u0301,two\n")
    (found,) = errors(rubric, answers)
    assert (found.kind, found.line) == ("id_collision", 3)
    good = write("good.csv", "item_id,text\ncafé,one\n")
    labels = write("labels.csv", LONG + "cafe\u0301,x,tone,Kind\n")
    (found,) = errors(rubric, good, labels)
    assert (found.kind, Path(found.file).name, found.line) == ("id_collision", "labels.csv", 2)


def test_no_answers(rubric: Rubric, write: Write) -> None:
    labels = write("labels.csv", LONG + "a,x,tone,Kind\n")
    found = load_data(labels, rubric)  # every id that has a label is an item
    assert [(a.item_id, a.text) for a in found.answers] == [("a", "")]
    assert found.textless == (str(labels),)
    write("empty.csv", "id,text\na, \n")
    item = "{item_id: id, text: text, if_empty: skip}"
    skipped = write("data.yaml", f"files: [{{path: empty.csv, items: {item}}}]")
    with pytest.raises(SetupError, match="no answers"):
        load_data([skipped, labels], rubric)
    report = check_files([labels], rubric)
    assert report.ok
    assert problem(report.warnings, "unchecked_items")


def test_every_kind_is_documented() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "data_reference.md").read_text(encoding="utf-8")
    before, after = docs.split("| warning | what is done |")
    table = before.split("| error | what it means |")[1]
    first = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)
    told = {
        name: set(re.findall(r"`(\w+)`", " ".join(first.findall(part))))
        for name, part in {"errors": table, "warnings": after}.items()
    }
    assert told == {"errors": set(ERRORS), "warnings": set(WARNINGS)}
