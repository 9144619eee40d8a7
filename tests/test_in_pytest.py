"""The page "In pytest": its test file runs as printed, and the workflow names inputs that exist."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from printed import blocks, lines_of, same

REPO = Path(__file__).resolve().parents[1]
PAGE = blocks((REPO / "docs" / "in_pytest.md").read_text("utf-8"))


def test_the_printed_test_fails_with_reason_and_numbers(tmp_path: Path) -> None:
    for name in ("labels.csv", "my-judge.csv"):
        shutil.copy(REPO / "docs" / "tables" / name, tmp_path)
    (file,) = [block for block in PAGE if block.file.startswith("test_")]
    (tmp_path / file.file).write_text(file.text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.file]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    (shown,) = [block for block in PAGE if block.text.startswith("$ pytest")]
    assert same(shown.text.splitlines()[1:], lines_of(done.stdout)), done.stdout
    assert "1 failed, 2 passed" in done.stdout


def test_the_printed_workflow_gives_inputs_of_the_action() -> None:
    (file,) = [block for block in PAGE if block.file.endswith("judge.yml")]
    (step,) = [
        s for s in yaml.safe_load(file.text)["jobs"]["judge"]["steps"] if "command" in str(s)
    ]
    folder = re.sub("^OWNER/judgebench/|@.*", "", step["uses"])
    action = yaml.safe_load((REPO / folder / "action.yml").read_text("utf-8"))
    assert step["with"].keys() <= action["inputs"].keys()
    assert {name for name, of in action["inputs"].items() if of.get("required")} <= {*step["with"]}
