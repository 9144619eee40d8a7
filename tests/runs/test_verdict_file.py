import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_texts import verdicts

from judgebench.errors import DiskFailed, SetupError
from judgebench.records import Status, Verdict
from judgebench.runs import verdict_log
from judgebench.runs.verdict_log import (
    MOST_AT_RISK,
    VerdictWriter,
    read_verdicts,
    set_damaged_aside,
    verdict_path,
)


def verdict(n: int, raw: str = "") -> Verdict:
    return Verdict(f"i{n}", "hash", "m", "sig", Status.OK, raw=raw)


def ids(path: Path) -> list[str]:
    return [v.item_id for v in read_verdicts(path)]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of the file at each fsync."""
    sizes: list[int] = []

    def fsync(file: int) -> None:
        sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr(verdict_log.os, "fsync", fsync)
    return sizes


def test_a_verdict_is_on_the_disk_after_so_many_more_at_most(
    tmp_path: Path, synced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_log, "LONGEST_AT_RISK_S", float("inf"))
    path = tmp_path / "verdicts-m.jsonl"
    with VerdictWriter(path) as writer:
        for n in range(2 * MOST_AT_RISK):
            writer.write(verdict(n))
        lengths = [len(line) for line in path.read_bytes().splitlines(keepends=True)]
        ends = [sum(lengths[: MOST_AT_RISK * k]) for k in (1, 2)]
        assert set(ends) <= set(synced)
    assert synced[-1] == path.stat().st_size


def test_a_verdict_after_a_pause_is_on_the_disk_at_once(tmp_path: Path, synced) -> None:
    with VerdictWriter(tmp_path / "verdicts-m.jsonl") as writer:
        writer.write(verdict(0))
        assert len(synced) == 1


def test_threads_may_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    with VerdictWriter(path) as writer:

        def write_a_hundred(first: int) -> None:
            for n in range(first, first + 100):
                writer.write(verdict(n))

        threads = [threading.Thread(target=write_a_hundred, args=(k * 100,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(ids(path)) == sorted(f"i{n}" for n in range(400))


def test_who_writes_after_the_end_is_told(tmp_path: Path) -> None:
    writer = VerdictWriter(tmp_path / "verdicts-m.jsonl")
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="is closed"):
        writer.write(verdict(0))


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """While it lasts no file may grow beyond `size` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("more", [0, 1, 40])
def test_a_full_disk_leaves_whole_lines_and_says_so(tmp_path: Path, more: int) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    with VerdictWriter(path) as writer:
        writer.write(verdict(0))
        writer.write(verdict(1))
        size = path.stat().st_size
        with room_for(size + more):
            with pytest.raises(DiskFailed, match=r"verdicts-m\.jsonl cannot be written.*readable"):
                writer.write(verdict(2, raw="x" * 100))
            assert path.stat().st_size == size
        writer.write(verdict(3))  # there is room again
    assert ids(path) == ["i0", "i1", "i3"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.lists(verdicts, max_size=5))
def test_verdicts_are_read_as_they_were_written(tmp_path: Path, found: list[Verdict]) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    path.unlink(missing_ok=True)
    with VerdictWriter(path) as writer:
        for one in found:
            writer.write(one)
    assert list(read_verdicts(path)) == found


def test_a_bad_byte_in_an_id_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    with VerdictWriter(path) as writer:
        writer.write(verdict(0))
    path.write_bytes(path.read_bytes().replace(b'"i0"', b'"i\xff"'))
    with pytest.raises(SetupError, match=r"verdicts-m\.jsonl:1: is not JSON: 'utf-8' codec"):
        list(read_verdicts(path))


def test_damaged_lines_are_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    with VerdictWriter(path) as writer:
        for n in range(3):
            writer.write(verdict(n))
    path.write_bytes(path.read_bytes().replace(b'"i1"', b'"i7"') + b"{}\n")
    assert set_damaged_aside(path).startswith("verdicts-m.jsonl: 2 damaged lines are now in ")
    assert ids(path) == ["i0", "i2"]
    assert len((tmp_path / "verdicts-m.jsonl.damaged").read_bytes().splitlines()) == 2
    assert set_damaged_aside(path) == ""


def _until_it_fails(writer: VerdictWriter) -> int:
    """Writes until the writer looks where its file is; how many verdicts were written."""
    for n in range(1, 1000):
        writer.write(verdict(n))
        time.sleep(0.01)
    return n


def test_a_folder_that_is_moved_ends_the_writing_and_loses_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    writer = VerdictWriter(verdict_path(run, "m"))
    writer.write(verdict(0))
    run.rename(tmp_path / "moved")
    with pytest.raises(DiskFailed, match="was moved, replaced or deleted during the run"):
        _until_it_fails(writer)
    moved = verdict_path(tmp_path / "moved", "m")
    written = ids(moved)
    assert written == [f"i{n}" for n in range(len(written))]
    assert len(written) < 100
    with pytest.raises(DiskFailed, match="was moved"):
        writer.close()
    assert len(ids(moved)) == len(written)


def test_a_file_that_is_gone_is_told_at_the_end_at_the_latest(tmp_path: Path) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    writer = VerdictWriter(path)
    writer.write(verdict(0))
    path.unlink()
    with pytest.raises(DiskFailed, match="was moved, replaced or deleted"):
        writer.close()
