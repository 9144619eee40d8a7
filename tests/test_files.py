"""Files are whole at any moment; a torn last line goes, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgebench.files import drop_torn_line, to_line, write_atomically

NASTY = [
    "line\nline\r\nline\rline",
    "\u2028\u2029\x85\x0b\x0c\x1c\x1e",
    "lone \ud800 surrogate",
    "\udfff",
    "nul \x00 bell \x07",
    "😀 ﷽ ñ",
    '"quoted" \\ {"status": "ok"}',
    "",
    " ",
    "\ufeff",
]


@pytest.mark.parametrize("text", NASTY)
def test_a_line_is_one_line_of_utf8(text: str) -> None:
    line = to_line({"text": text}).encode("utf-8")
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {"text": text}


def test_text_that_utf8_can_hold_stays_readable() -> None:
    assert to_line({"text": "naïve 😀"}) == '{"text":"naïve 😀"}\n'


@pytest.mark.parametrize("before", [0, 1, 65_535, 65_536, 65_537])
@pytest.mark.parametrize("torn", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_long_lines_are_dropped_whole(tmp_path: Path, before: int, torn: int) -> None:
    path = tmp_path / "v.jsonl"
    kept = b"x" * (before - 1) + b"\n" if before else b""
    path.write_bytes(kept + b"y" * torn)
    assert drop_torn_line(path) == torn
    assert path.read_bytes() == kept


def test_there_is_nothing_to_drop_where_there_is_no_file(tmp_path: Path) -> None:
    assert drop_torn_line(tmp_path / "none") == 0


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):  # a folder cannot be replaced by a file
        write_atomically(folder, b"new")
    assert {p.name for p in tmp_path.iterdir()} == {"run.json", "folder"}  # nothing is left over
