"""`import judgebench`: what is public, how fast it is there, and that packages never hide it."""

from __future__ import annotations

import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.features import WINGS

REPO = Path(__file__).resolve().parents[2]
SLOW = {"numpy", "pandas", "pydantic", "scipy", "yaml", "matplotlib", "typer"}


def run(script: str) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_takes_less_than_150_ms_and_nothing_slow() -> None:
    script = (
        "import sys, time; start = time.perf_counter(); import judgebench; "
        "print(time.perf_counter() - start, *sys.modules)"
    )
    results = [run(script).split() for _ in range(3)]
    assert min(float(seconds) for seconds, *_ in results) < 0.150
    assert not SLOW & set(results[0])


@pytest.mark.parametrize("name", jb.__all__)
def test_every_public_name_is_there_and_is_no_module(name: str) -> None:
    assert getattr(jb, name) is not None
    assert name in dir(jb)
    assert type(getattr(jb, name)).__name__ != "module"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        jb.nothing  # noqa: B018


def test_no_module_is_named_like_a_public_name() -> None:
    for module in pkgutil.iter_modules(jb.__path__):
        assert module.name not in jb.__all__


def test_without_a_wing_its_functions_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebench.features.WINGS", {})
    for function in (jb.decide, jb.stress, jb.rank, lambda study: jb.compare(study, study)):
        with pytest.raises(jb.SetupError, match="this installation of judgebench lacks"):
            function(object())  # type: ignore[arg-type]


def test_what_is_no_table_is_said_so() -> None:
    for function in (jb.align, jb.decide):
        with pytest.raises(SetupError, match="give a table: a DataFrame or the path of a file"):
            function(3)  # type: ignore[operator]


def test_a_run_folder_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such folder"):
        jb.open_run(tmp_path / "nosuch")
    with pytest.raises(SetupError, match=r"holds no run\.json"):
        jb.open_run(tmp_path)


@pytest.mark.skipif("compare" not in WINGS, reason="needs the wing `compare`")
def test_runs_of_one_name_are_told_apart_by_their_folders(here: Path, tmp_path: Path) -> None:
    again = shutil.copytree(here / "runs" / "small", tmp_path / "v2")
    first, second, *_ = jb.compare("runs/small", again).compared
    assert first.endswith("runs/small.")
    assert second.endswith("v2.")
