"""The GitHub Action, its steps run as a script with a `gh` that keeps comments in a file."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

REPO = Path(__file__).resolve().parents[1]
FOLDER = REPO / ".github" / "actions" / "judgebench"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))

# It does what the action needs of gh: it lists, adds and changes comments, or fails for a token
# that may not write.
GH = """#!{python}
import json, os, sys
from pathlib import Path

words, store = sys.argv[1:], Path(os.environ["STORE"])
comments = json.loads(store.read_text()) if store.exists() else []
path = next(word for word in words if word.startswith("repos/"))
body = [Path(word.partition("@")[2]).read_text() for word in words if word.startswith("body=@")]
if body and os.environ["GH_TOKEN"] != "may-write":
    sys.exit("HTTP 403")
if "PATCH" in words:
    comments[int(path.rpartition("/")[2])] = body[0]
elif "POST" in words:
    comments.append(body[0])
else:
    assert path == "repos/me/mine/issues/7/comments", path
    for i, comment in enumerate(comments):
        print(i, comment.split("\\n")[0])
store.write_text(json.dumps(comments))
"""
NEAR = "--order 'Harmful: no < yes' --independent-items --blind yes"


@dataclass
class Job:
    """A job that uses the action: what it wrote and how it ended."""

    folder: Path

    def use(self, token: str = "may-write", **inputs: str) -> int:
        given = {name: value.get("default", "") for name, value in ACTION["inputs"].items()}
        given |= {"token": token, **inputs}
        (step,) = [s for s in ACTION["runs"]["steps"] if "run.sh" in s["run"]]
        assert step["shell"] == "bash"
        environment = {**os.environ, **filled(step["env"], given)}
        environment |= {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(FOLDER),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_REPOSITORY": "me/mine",
            "STORE": str(self.folder / "comments.json"),
        }
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=self.folder, env=environment, timeout=120,
            capture_output=True, text=True,
        )  # fmt: skip
        self.printed = done.stdout + done.stderr
        return done.returncode

    def stub(self, text: str) -> None:
        """Let a command print this at once, where the test is not about what it prints."""
        (self.folder / "bin" / "judgebench").write_text(f'#!/bin/sh\necho {text!r} "$@"\n')

    @property
    def comments(self) -> list[str]:
        store = self.folder / "comments.json"
        found: list[str] = json.loads(store.read_text()) if store.exists() else []
        return found

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text("utf-8")


def filled(env: Mapping[str, str], inputs: Mapping[str, str]) -> dict[str, str]:
    """The environment of a step, with the expressions that GitHub fills in."""
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    values["github.event.pull_request.number"] = "7"
    pattern = re.compile(r"\$\{\{ (\S+) \}\}")
    return {name: pattern.sub(lambda m: values[m[1]], text) for name, text in env.items()}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    for name in ("labels.csv", "my-judge.csv"):
        rows = (REPO / "docs" / "tables" / name).read_text().splitlines()
        n_rows = 181 if name == "labels.csv" else 61
        (tmp_path / name).write_text("\n".join(rows[:n_rows]) + "\n")
    programs = {
        "gh": GH.replace("{python}", sys.executable),
        "judgebench": f'#!/bin/sh\nexec "{sys.executable}" -m judgebench "$@"\n',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    return Job(tmp_path)


def test_a_demand_that_fails_ends_the_job_and_updates_one_comment(job: Job) -> None:
    asked = {"files": "labels.csv my-judge.csv", "arguments": NEAR}
    assert job.use(**asked) == 0, job.printed
    (before,) = job.comments
    assert job.use(**asked, require="REPLACE:Harmful\nDO NOT USE:Tone") == 3
    (after,) = job.comments
    assert "### judgebench decide: ✅ done" in before
    assert "❌ what was demanded does not hold" in after
    assert "not reached: REPLACE:Harmful: the outcome is" in after
    assert after in job.summary
    assert before in job.summary


def test_each_title_has_a_comment(job: Job) -> None:
    job.stub("decided")
    for title in ("nightly", "release"):
        assert job.use(files="labels.csv my-judge.csv", title=title) == 0
    assert [comment.split("\n")[0] for comment in job.comments] == [
        "<!-- nightly -->", "<!-- release -->",
    ]  # fmt: skip


def test_a_token_that_may_not_write_changes_no_exit_code(job: Job) -> None:
    job.stub("decided")
    assert job.use(token="read-only", files="labels.csv my-judge.csv") == 0
    assert "::warning::the comment could not be written" in job.printed
    assert "### judgebench decide" in job.summary
    assert not job.comments


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"command": "run", "files": "x"}, "command is decide, compare or watch; found run"),
        ({"command": "watch", "files": "x", "require": "REPLACE:a"}, "require is of decide"),
        ({"files": "labels.csv $(touch harm)"}, "touch"),
    ],
)
def test_bad_inputs_end_with_code_2(job: Job, inputs: dict[str, str], message: str) -> None:
    assert job.use(**inputs) == 2
    assert message in job.printed
    assert not (job.folder / "harm").exists()


def test_it_installs_the_project_that_it_is_part_of() -> None:
    install = ACTION["runs"]["steps"][0]["run"]
    path = re.search(r'"\$GITHUB_ACTION_PATH/([./]+)"', install)
    assert path is not None
    assert (FOLDER / path[1]).resolve() == REPO


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_the_script_is_clean() -> None:
    assert subprocess.run(["shellcheck", FOLDER / "run.sh"]).returncode == 0
