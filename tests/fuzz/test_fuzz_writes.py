"""Whenever writing fails, every file is the old one or the new one, and nothing is left over."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from align_case import aligned
from fuzz_budget import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import JudgebenchError
from judgebench.files import write_atomically
from judgebench.records import Results
from judgebench.results.blocks import ReportSection
from judgebench.results.documents import write_report

OLD, NEW = b"old\n", b"new and longer\n"


@contextmanager
def failing(after: int, half: bool) -> Iterator[None]:
    """The disk takes that many more writes and renames, then it is full: the next write stops
    half-way or before it began."""
    left = after
    write, rename = Path.write_bytes, os.replace

    def spend() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def written(path: Path, content: bytes) -> int:
        if spend():
            if half:
                write(path, content[: len(content) // 2])
            raise OSError(28, "No space left on device")
        return write(path, content)

    def renamed(old: Any, new: Any) -> None:
        if spend():
            raise OSError(5, "Input/output error")
        rename(old, new)

    with patch.object(Path, "write_bytes", written), patch("os.replace", renamed):
        yield


@given(st.integers(0, 3), st.booleans())
@fuzzed(0.1)
def test_a_file_is_old_or_new(tmp_path: Path, after: int, half: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)
    failed = True
    with failing(after, half), suppress(OSError, JudgebenchError):
        write_atomically(path, NEW)
        failed = False
    assert path.read_bytes() == (OLD if failed else NEW)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert failed == (after < 2)


@cache
def small(name: str) -> ReportSection:
    part = aligned({"ann": "abca"}, {"m": "abcb"}).part
    return replace(part, title=name, results=Results(part.results.rows[:1]))


@given(st.integers(0, 14), st.booleans())
@fuzzed(0.04)
def test_a_report_into_a_folder_that_has_one(tmp_path: Path, after: int, half: bool) -> None:
    folder = tmp_path / "report"
    # Drawing takes seconds and writes nothing itself.
    with patch("judgebench.results.documents.drawn", lambda *_: {"a": {"png": b"x", "svg": b"y"}}):
        old = {p: p.read_bytes() for p in write_report([small("old")], folder).values()}
        with failing(after, half), suppress(OSError, JudgebenchError):
            write_report([small("new")], folder)
        other = write_report([small("new")], tmp_path / "other").values()
    new = {path: path.read_bytes() for path in other}
    for path, content in old.items():
        twin = tmp_path / "other" / path.relative_to(folder)
        assert path.read_bytes() in (content, new[twin])
    assert {p for p in folder.rglob("*") if p.is_file()} == set(old)
