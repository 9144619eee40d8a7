"""inspect_ai runs for real, and what it writes is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import judgebench as jb

HERE = Path(__file__).parent


@pytest.mark.long
def test_logs_that_inspect_ai_writes_now_are_imported_as_those_of_the_tests(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    # Where this variable is set, inspect_ai takes itself to be under test and stops at once.
    env = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, HERE / "write_inspect.py", tmp_path],
        env={**env, "PYTHONPATH": str(HERE.parent / "cases")},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("inspect.eval", "inspect.json"):
        old = jb.import_file(HERE / "files" / name, tmp_path / f"old-{name}")
        new = jb.import_file(tmp_path / name, tmp_path / f"new-{name}")
        assert new.found[1:] == old.found[1:]
        assert new.left_out == old.left_out
