"""A full disk and a folder that cannot be written to: a clear error, and nothing lost."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed_run import ANSWERS, REPLY, bench_file, finished, start
from loopback import Loopback, said

SIZE = 256 << 10
ROOM = 52 << 10  # for the inputs and for some of the verdicts
LONG_REPLY = REPLY.replace("{", "{" + 1500 * " ")


def mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, f"size={SIZE}"):
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_fills_up_loses_nothing_and_the_run_goes_on(
    tmp_path: Path, small_disk: Path
) -> None:
    run = small_disk / "run"
    with Loopback(lambda body, count: said(LONG_REPLY, after=0.01)) as server:
        bench = bench_file(tmp_path, server.base_url)
        bench.write_text(bench.read_text() + "controls: false\n")  # their files would fill it too
        blocker = small_disk / "blocker"
        blocker.write_bytes(bytes(SIZE - ROOM))
        process = start(bench, run, report=True)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 1, output.decode()
        assert b"No space left on device" in output
        assert b"stays readable" in output
        assert b"Traceback" not in output
        kept = finished(run)
        assert 0 < len(kept) < ANSWERS
        assert json.loads((run / "run.json").read_text())["name"] == "killed"
        blocker.unlink()
        before = len(server.bodies)
        process = start(bench, run)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output.decode()
        assert len(server.bodies) - before == ANSWERS - len(kept)
    assert sorted(finished(run)) == sorted(f"i{i}" for i in range(ANSWERS))


def test_a_folder_that_cannot_be_written_to_is_told_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "ro,size=64k"):
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        with Loopback([said(REPLY)]) as server:
            process = start(bench_file(tmp_path, server.base_url), folder / "run", report=True)
            output, _ = process.communicate(timeout=60)
            assert server.bodies == []
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
    assert process.returncode == 1, output.decode()
    assert b"Read-only file system" in output
    assert b"Traceback" not in output
