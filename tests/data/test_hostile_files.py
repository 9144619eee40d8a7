"""Files that are built to be slow, endless or loud: each is read in time that grows with its size,
or refused at once, in few words."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import judgebench as jb
from judgebench.check import check_all
from judgebench.errors import Problem, SetupError, shorten

RUBRIC = "medical-safety"
# The allowed time is at most a tenth of what such a file took before.
ALLOWED_S = 1.5


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
    monkeypatch.setattr("judgebench.data.open_table._UNPACKED", (100, 2**20))
    bomb = gzip.compress(b"item_id,text\na," + b"x" * 2**21)
    said = _checked(tmp_path / "bomb.csv.gz", bomb)
    assert "cannot be read: unpacks to more than 100 times its size" in said


def test_only_regular_files_and_pipes_that_are_named_are_read(tmp_path: Path) -> None:
    """A pipe is read several times: its hash, its columns, its rows."""
    (tmp_path / "a.csv").write_text("item_id,text\na,An answer.\nb,Another.\n")
    (tmp_path / "b.jsonl").write_text('{"item_id": "c", "text": "A third."}\n')
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "bench.yaml")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    check = f"{sys.executable} -m judgebench.cli.app check"
    command = f"{check} /dev/stdin <(gzip -c b.jsonl) pipe.csv bench.yaml zero.csv folder.csv"
    done = subprocess.run(
        ["bash", "-c", f"{command} < <(cat a.csv)"], cwd=tmp_path, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "3 answers" in said
    assert done.returncode == 2
    assert said.count("error: ") == 4
    for name in ("pipe.csv", "bench.yaml", "zero.csv"):
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
