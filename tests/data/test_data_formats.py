"""The same rows give the same data set in every format, and every cell stays what it was."""

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl.cell import WriteOnlyCell

from judgebench.data.load import load_data
from judgebench.records import Dataset, is_slot
from judgebench.rubric import Rubric

Rows = list[dict[str, str]]

# No control characters and no surrogates: those are errors (see test_data_faults).
TEXT = st.text(
    st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S", "Zs")), max_size=30
)
LINES = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)
LABEL = st.sampled_from(["Kind", "friendly", "NEUTRAL", "Rude - openly", "Cannot say", "", " "])
SOURCE = st.sampled_from(["No", "NA", "None", "null", ""])


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


WRITERS = {
    "a.csv": lambda rows: delimited(rows, ","),
    "semicolon.csv": lambda rows: delimited(rows, ";"),
    "tabbed.csv": lambda rows: delimited(rows, "\t"),
    "bom.csv": lambda rows: delimited(rows, ",", "utf-8-sig"),
    "utf16.csv": lambda rows: delimited(rows, ",", "utf-16"),
    "a.tsv": lambda rows: delimited(rows, "\t"),
    "a.json": lambda rows: json.dumps(rows).encode(),
    "plain.json": lambda rows: json.dumps(rows, ensure_ascii=False, indent=1).encode(),
    "a.jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "a.parquet": parquet,
    "a.xlsx": workbook,
}
WRITERS |= {f"{name}.gz": lambda rows, w=w: gzip.compress(w(rows)) for name, w in WRITERS.items()}


def read_all(rows: Rows, labels: Rows, rubric: Rubric) -> dict[str, Dataset]:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, writer in WRITERS.items():
            paths = [Path(folder, f"answers-{name}"), Path(folder, f"labels-{name}")]
            paths[0].write_bytes(writer(rows))
            paths[1].write_bytes(writer(labels))
            found[name] = load_data(paths, rubric)
    return found


@pytest.mark.long
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_same_dataset_in_every_format(rubric: Rubric, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    rows = [
        {
            "item_id": f"item {i}",
            "text": "x" + data.draw(LINES),
            "question": data.draw(TEXT.filter(lambda t: t.strip())),
            "topic": data.draw(TEXT),
        }
        for i in range(n)
    ]
    labels = [
        {
            "item_id": f"item {i}",
            "annotator": who,
            "tone": data.draw(LABEL),
            "Source given": data.draw(SOURCE),
        }
        for i in range(n)
        for who in ("Ann", "Zoë")
    ]
    found = read_all(rows, labels, rubric)
    one = found["a.csv"]
    assert [a.text for a in one.answers] == [row["text"] for row in rows]
    assert [a.metadata["topic"] for a in one.answers] == [row["topic"] for row in rows]
    assert len(one.labels) == 4 * n
    for name, dataset in found.items():
        assert dataset.answers == one.answers, name
        assert dataset.labels == one.labels, name
        kinds = [w.kind for w in dataset.warnings if w.kind != "byte_order_mark"]
        assert kinds == [w.kind for w in one.warnings], name


def test_words_for_nothing_are_labels(rubric: Rubric) -> None:
    words = ["No", "NA", "None", "null"]
    rows = [{"item_id": w, "text": w} for w in words]
    labels = [{"item_id": w, "annotator": "a", "metric": "source", "label": w} for w in words]
    for name, dataset in read_all(rows, labels, rubric).items():
        assert [x.label for x in dataset.labels] == words, name
        assert [x.text for x in dataset.answers] == words, name


@pytest.mark.parametrize("name", ["lists.json", "lists.jsonl", "lists.parquet", "lists.csv"])
@pytest.mark.parametrize("style", ["json", "python", "bar"])
def test_list_cells(tmp_path: Path, rubric: Rubric, name: str, style: str) -> None:
    lists = [["Kind", "Neutral", "Kind"], [], ["Neutral"]]
    written = {"json": json.dumps, "python": repr, "bar": "|".join}[style]
    native = name != "lists.csv" and style == "json"
    rows = [
        {"ID": f"i{i}", "t": "text", "tones": entry if native else written(entry)}
        for i, entry in enumerate(lists)
    ]
    (tmp_path / name).write_bytes(WRITERS[name.replace("lists", "a")](rows))
    (tmp_path / "data.yaml").write_text(
        f"files:\n- path: {name}\n  items:\n    item_id: ID\n    text: t\n    labels:\n"
        "      annotator: {value: crowd}\n      metrics: {tone: tones}\n      list: true\n"
    )
    found = load_data(tmp_path / "data.yaml", rubric)
    said = [(x.item_id, x.annotator, x.label) for x in found.labels]
    assert said == [
        ("i0", "crowd#1", "Kind"),
        ("i0", "crowd#2", "Neutral"),
        ("i0", "crowd#3", "Kind"),
        ("i2", "crowd#1", "Neutral"),
    ]
    assert all(is_slot(x.annotator) for x in found.labels)


def test_numbers_keep_their_digits(tmp_path: Path, rubric: Rubric) -> None:
    content = '[{"item_id": 1, "text": 1.0, "year": 1e5, "on": true, "gone": null}]'
    (tmp_path / "a.json").write_text(content)
    (answer,) = load_data(tmp_path / "a.json", rubric).answers
    assert (answer.item_id, answer.text) == ("1", "1.0")
    assert answer.metadata == {"year": "1e5", "on": "true", "gone": ""}


def test_parquet_types(tmp_path: Path, rubric: Rubric) -> None:
    import datetime
    from decimal import Decimal

    row = {
        "item_id": 7,
        "text": b"caf\xc3\xa9",
        "day": datetime.date(2026, 3, 2),
        "price": Decimal("1.50"),
        "share": 2.0,
        "none": float("nan"),
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    (answer,) = load_data(tmp_path / "a.parquet", rubric).answers
    assert (answer.item_id, answer.text) == ("7", "café")
    assert answer.metadata == {"day": "2026-03-02", "price": "1.50", "share": "2.0", "none": ""}


def test_categories_and_a_gzip_without_its_name(tmp_path: Path, rubric: Rubric) -> None:
    text = pa.array(["t", "t"]).dictionary_encode()
    sink = io.BytesIO()
    pq.write_table(pa.table({"item_id": ["a", "b"], "text": text}), sink)
    (tmp_path / "a.parquet").write_bytes(gzip.compress(sink.getvalue()))
    assert [a.text for a in load_data(tmp_path / "a.parquet", rubric).answers] == ["t", "t"]


def test_absent_keys_are_blank(tmp_path: Path, rubric: Rubric) -> None:
    lines = ['{"item_id": "a", "text": "t"}', "", '{"text": "u", "item_id": "b", "topic": "z"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    found = load_data(tmp_path / "a.jsonl", rubric).answers
    assert [a.metadata for a in found] == [{"topic": ""}, {"topic": "z"}]


def test_a_long_text(tmp_path: Path, rubric: Rubric) -> None:
    (tmp_path / "a.csv").write_text("item_id,text\na," + "long " * 100_000)
    assert len(load_data(tmp_path / "a.csv", rubric).answers[0].text) == 500_000


def test_rows_above_the_header_of_a_sheet_are_left_out(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Pilot study, spring"], [], ["item_id", "text"], ["a", "one"], ["b", "two"]):
        book.active.append(row)
    book.save(tmp_path / "titled.xlsx")
    data = load_data([tmp_path / "titled.xlsx"], Rubric.from_labels({"Tone": ["Kind", "Rude"]}))
    assert [answer.text for answer in data.answers] == ["one", "two"]
    assert [(w.kind, w.line) for w in data.warnings] == [("row_above_header", 1)]
