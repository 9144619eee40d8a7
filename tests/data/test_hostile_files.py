"""Files that are built to be slow, endless or loud: each is read in time that grows with its size,
or refused at once, in few words."""

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import judgebench as jb
from judgebench.checks import check_all
from judgebench.data.importers.log import Given, Log, Sample, tables
from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, shorten
from judgebench.rubric import load_rubric

RUBRIC = "medical-safety"
# The allowed time is at most a fifth of what such a file took before.
ALLOWED_S = 3.0


def _checked(path: Path, content: str | bytes) -> str:
    """What `check` says of a file, in time and briefly."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    start = time.process_time()
    said = repr(check_all([path], RUBRIC))
    assert time.process_time() - start < ALLOWED_S
    assert len(said) < 20_000
    return said


def test_many_columns_are_read_in_time_that_grows_with_their_number(tmp_path: Path) -> None:
    names = [f"column {i}" for i in range(15_000)]
    row = ["x"] * len(names)
    table = f"item_id,text,{','.join(names)}\na,An answer.,{','.join(row)}\n"
    assert "1 answers" in _checked(tmp_path / "wide.csv", table)


def test_many_keys_and_a_duplicate_among_them(tmp_path: Path) -> None:
    keys = ",".join(f'"key {i}": "x"' for i in range(15_000))
    said = _checked(tmp_path / "keys.json", f'[{{{keys}, "key 14999": "y"}}]')
    assert "keys.json:1: key 14999: duplicate key in the object" in said


def test_objects_that_share_no_keys_are_no_table(tmp_path: Path) -> None:
    lines = "".join(f'{{"item_id": "{i}", "key {i}": "x"}}\n' for i in range(10_000))
    assert (
        "keys.jsonl: its 10,000 objects have 10,001 different keys, too many for a table: give "
        "every object the same few keys, such as annotator, metric and label"
    ) in _checked(tmp_path / "keys.jsonl", lines)


@pytest.mark.parametrize("end", ["", 'y"\n'], ids=["never closes", "closes in the last line"])
def test_quotes_that_open_in_every_line(tmp_path: Path, end: str) -> None:
    said = _checked(tmp_path / "inches.csv", "item_id,text\n" + '5","pipe\n' * 20_000 + end)
    assert "inches.csv:2: text: a quote opens in this cell" in said
    assert "so in 20,000 rows" in said


def test_a_header_that_does_not_end_is_named_and_not_shown(tmp_path: Path) -> None:
    rows = "a,An answer.\n" * 100_000
    said = _checked(tmp_path / "open.csv", f'item_id,"text\n{rows}')
    assert "open.csv:1: the quotes do not match up; nothing after this row was read" in said
    said = _checked(tmp_path / "long.csv", f"item_id,{'x' * 10**6}\na,b\n")
    assert f"unrecognised columns (item_id, {'x' * 80}…): describe the file in a data.yaml" in said


def test_names_of_columns_with_what_no_text_may_hold_say_so(tmp_path: Path) -> None:
    said = _checked(tmp_path / "f.csv", b"item_id,te\0xt,\xe4,item_id\na,b,c,d\n")
    assert "f.csv:1: a column's name: holds the character U+0000, which is not allowed" in said
    assert "f.csv:1: a column's name: the byte 0xE4 is not UTF-8: save the file as UTF-8" in said
    assert "f.csv:1: two columns have this name; found 'item_id'" in said
    said = _checked(tmp_path / "g.csv", "\ufeffitem_id, text,sys\u200btem\na,b,c\n")
    assert "g.csv:1: a byte order mark is left out" in said
    assert "g.csv:1: text: space around a column's name left out" in said
    assert "g.csv:1: system: invisible characters left out of a column's name" in said


def test_a_few_packed_bytes_that_unpack_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    bomb = gzip.compress(b"item_id,text\na," + b"x" * 2**21)
    said = _checked(tmp_path / "bomb.csv.gz", bomb)
    assert "cannot be read: unpacks to more than 100 times its size" in said


def test_only_regular_files_and_pipes_that_are_named_are_read(tmp_path: Path) -> None:
    """A pipe is read several times: its hash, its columns, its rows."""
    (tmp_path / "a.txt").write_text("item_id,text\na,An answer.\nb,Another.\n")
    (tmp_path / "b.txt").write_text('{"item_id": "c", "text": "A third."}\n')
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "bench.yaml")
    os.mkfifo(tmp_path / "set.jsonl")
    os.mkfifo(tmp_path / "own.jinja")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    check = f"{sys.executable} -m judgebench.cli.app check"
    files = "/dev/stdin <(gzip -c b.txt) *.csv *.yaml *.jsonl *.jinja < <(cat a.txt)"
    done = subprocess.run(
        ["bash", "-c", f"{check} {files}"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    said = done.stdout + done.stderr
    assert "3 answers" in said
    assert done.returncode == 2
    assert said.count("error: ") == 6
    for name in ("pipe.csv", "bench.yaml", "set.jsonl", "zero.csv"):
        assert f"{name}: cannot be read: is no regular file; a pipe is read as /dev/stdin" in said
    assert "folder.csv: cannot be read: is a folder, not a file" in said


def test_what_is_echoed_is_short() -> None:
    long = "x" * 10**7
    said = str(SetupError(Problem(long, "f.csv", 1, long, long, long)))
    assert len(said) < 9_000
    assert said.startswith("f.csv:1: xxx")
    assert "… (10,000,000 characters)" in said
    deep: object = long
    for _ in range(30):
        deep = [deep] * 30
    assert all(len(shorten(value)) <= 80 for value in (long, deep, {"a": deep}, "\0" * 100))


def test_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebench.data.open_table._LONGEST_LINE", 1000)
    path = tmp_path / "long.jsonl"
    path.write_text('{"item_id": "a", "text": "' + "x" * 2000 + '"}\n')
    with pytest.raises(SetupError, match="cannot be read: a line is longer than 1,000 characters"):
        jb.init(path)


def test_times_that_python_has_none_of_are_texts(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    far = pa.array([2**62, 0], pa.int64())
    table = pa.table(
        {
            "item_id": ["a", "b"],
            "text": ["An answer.", "Another."],
            "micro": far.cast(pa.timestamp("us")),
            "zone": far.cast(pa.timestamp("us", tz="Nowhere/Atall")),
            "day": pa.array([2**31 - 1, 0], pa.int32()).cast(pa.date32()),
        }
    )
    parquet.write_table(table, tmp_path / "far.parquet")
    first, second = load_data(tmp_path / "far.parquet", load_rubric(RUBRIC)).answers
    assert first.metadata["micro"] == "timestamp[us] 4611686018427387904"
    assert second.metadata["micro"] == "1970-01-01 00:00:00"
    assert first.metadata["day"] == "date32[day] 2147483647"


def test_parquet_that_repeats_a_long_text_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * 2000]))
    table = pa.table({"item_id": [str(i) for i in range(5000)], "text": texts})
    parquet.write_table(table, tmp_path / "bomb.parquet")
    said = _checked(tmp_path / "bomb.parquet", (tmp_path / "bomb.parquet").read_bytes())
    assert "cannot be read: unpacks to more than 100 times its size; if it holds so much" in said


def _workbook(path: Path, old: str, new: str) -> bytes:
    """A workbook of three answers, in the sheet of which a text is replaced."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["item_id", "text"], ["a", "One."], ["b", "Two."], ["c", "Three."]):
        book.active.append(row)
    book.save(path)
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert old.encode() in parts[sheet]
    parts[sheet] = parts[sheet].replace(old.encode(), new.encode())
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path.read_bytes()


@pytest.mark.parametrize("size", ["A1", "A1:XFD1048576", "A1:B2"])
def test_a_sheet_that_is_wrong_about_its_size(tmp_path: Path, size: str) -> None:
    """Rows beyond the size that the sheet states were left out without a word."""
    path = tmp_path / "size.xlsx"
    said = _checked(path, _workbook(path, '<dimension ref="A1:B4"', f'<dimension ref="{size}"'))
    assert said.startswith("3 answers")


def test_workbooks_that_unpack_or_run_on_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.files._FREE", 2**20)
    monkeypatch.setattr("judgebench.data.formats._MOST_ROWS", 2000)
    path = tmp_path / "bomb.xlsx"
    said = _checked(path, _workbook(path, "</sheetData>", "</sheetData>" + " " * 2**21))
    assert "bomb.xlsx: cannot be read: unpacks to more than 100 times its size" in said
    said = _checked(path, _workbook(path, '<row r="4"', '<row r="1000000000"'))
    assert "bomb.xlsx: cannot be read: a sheet has more than 2,000 rows" in said


def _started(path: Path, content: str, folder: Path) -> str:
    """What `init` says of a file, in time."""
    path.write_text(content)
    start = time.process_time()
    try:
        said = repr(jb.init(path, folder))
    except SetupError as error:
        said = str(error)
    assert time.process_time() - start < ALLOWED_S
    return said


def test_columns_are_looked_at_together_for_an_id(tmp_path: Path) -> None:
    names = ",".join(f"k{i}" for i in range(1500))
    rows = [[f"v{(i + row) // 2}" for i in range(1500)] for row in range(6)]
    texts = ["One answer or another long enough for one."] * 6
    table = "".join(f"{','.join(row)},{text}\n" for row, text in zip(rows, texts, strict=True))
    said = _started(tmp_path / "ids.csv", f"{names},text\n{table}", tmp_path / "ids")
    assert "ids.csv: holds more columns or names of metrics than a rubric has" in said
    assert "and 1,4" in said
    assert "allowed: at most 200 metrics; the labels of one, by many people, are in columns" in said
    assert not (tmp_path / "ids").exists()


def test_columns_that_are_not_read_are_counted(tmp_path: Path) -> None:
    names = ",".join(f"remark {i}" for i in range(2000))
    row = ",".join("x" for _ in range(2000))
    said = _started(tmp_path / "f.csv", f"item_id,text,{names}\na,One.,{row}\n", tmp_path / "f")
    assert "not read: column 'remark 0': it has one value only" in said
    assert "not read: column … and 1,950 more" in said


def test_an_import_of_many_answers_under_one_id(tmp_path: Path) -> None:
    """Answers under one id and judges of one name took the square of their number, or its cube."""
    start = time.process_time()
    samples = [Sample("1", f"answer {i}") for i in range(10_000)]
    samples[0].verdicts += [Given("j" + "!" * i, "m", "yes", "ok") for i in range(1500)]
    found = tables(Log("a tool", samples))
    assert time.process_time() - start < ALLOWED_S
    assert [row["item_id"] for row in found.answers][::5000] == ["1", "1#5001"]
    assert [row["judge"] for row in found.verdicts][::1499] == ["j", "j-1500"]


def test_bad_lines_of_an_import_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text('{"doc_id": 1}\n' + "{bad\n" * 5000)
    with pytest.raises(SetupError) as caught:
        jb.import_file(path, tmp_path / "other")
    assert len(caught.value.problems) == 101
    assert "samples.jsonl:2: is not JSON; found '{bad'" in str(caught.value)
    assert "and 4,900 more such errors, 5,000 in all, the last in row 5001" in str(caught.value)


def test_a_column_of_other_ids_is_not_taken_for_annotators(tmp_path: Path) -> None:
    """A table of what everybody said of every item would take gigabytes."""
    metric = load_rubric(RUBRIC).metrics[0]
    rows = (f"i{n},p{n},{metric.id},{metric.labels[0].text}\n" for n in range(10_500))
    said = _checked(tmp_path / "f.csv", "item_id,annotator,metric,label\n" + "".join(rows))
    assert "10,500 annotators of 10,500 items cannot be compared: does this column name who" in said
    assert "… and 10,450 more annotators" in said
