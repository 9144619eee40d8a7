"""The skill for coding agents: each command in it runs."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from printed import blocks

REPO = Path(__file__).resolve().parents[1]
LOG = REPO / "tests" / "importers" / "files" / "lm-eval-choices.jsonl"
SKILL = (REPO / "judgebench" / "skill.md").read_text("utf-8")
COMMANDS = [
    line for block in blocks(SKILL) if block.info == "sh" for line in block.text.splitlines()
]

Call = Callable[..., tuple[int, str, str]]


def test_skill_is_printed_with_its_front_matter(call: Call) -> None:
    code, out, _ = call("skill")
    assert (code, out) == (0, SKILL)
    front = yaml.safe_load(out.split("---\n")[1])
    assert front.keys() == {"name", "description"}
    assert re.fullmatch("[a-z-]{1,64}", front["name"])
    assert len(front["description"]) <= 1024


def test_each_command_of_the_skill_runs(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in (REPO / "docs" / "tables").glob("*.csv"):
        shutil.copy(table, tmp_path)
    shutil.copy(LOG, tmp_path / "samples_library.jsonl")
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 12
    for line in COMMANDS:
        command, _, remark = line.partition(" # ")
        expected = int(remark.rpartition(" ")[2]) if remark else 0
        code, _, err = call(*shlex.split(command)[1:])
        assert code == expected, (command, err)


def test_tables_of_the_skill_are_read_as_they_stand(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labels, verdicts = (block.text for block in blocks(SKILL) if block.info == "csv")
    Path("labels.csv").write_text(labels)
    Path("judge.csv").write_text(verdicts)
    code, out, err = call("check", "labels.csv", "judge.csv")
    assert (code, err) == (0, "")
    assert "decision                      yes  judgebench decide labels.csv judge.csv" in out
