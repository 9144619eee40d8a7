import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from judgebench.errors import (
    MissingExtra,
    Problem,
    SetupError,
)


def test_a_problem_says_where_what_found_and_allowed() -> None:
    problem = Problem("is not known", "x.yaml", 3, "metrics.0.kind", "ordnal", "ordinal, nominal")
    assert str(problem) == (
        "x.yaml:3: metrics.0.kind: is not known; found ordnal; allowed: ordinal, nominal"
    )
    assert str(Problem("is empty")) == "is empty"


@pytest.mark.parametrize("one", ["is wrong", Problem("is wrong"), [Problem("is wrong")]])
def test_a_setup_error_holds_problems_however_it_was_made(one) -> None:
    error = SetupError(one)
    assert error.problems == (Problem("is wrong"),)
    assert str(error) == "is wrong"


def test_a_setup_error_tells_every_problem_on_a_line_of_its_own() -> None:
    assert str(SetupError([Problem("a"), Problem("b")])) == "a\nb"


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ("", "'judgebench-eval[embedded]'"),
        ("https://example.org/judgebench.git", "'judgebench-eval[embedded]'"),
        ("file:///nowhere/judgebench", "'judgebench-eval[embedded]'"),
        ("{here}", "'.[embedded]'"),
        ("{here}/my%20wheel.whl", "'{path}/my wheel.whl[embedded]'"),
    ],
)
def test_a_missing_extra_names_the_line_to_type(
    origin: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my wheel.whl").touch()
    monkeypatch.chdir(tmp_path)
    record = json.dumps({"url": origin.format(here=tmp_path.as_uri())}) if origin else None
    package = SimpleNamespace(read_text=lambda name: record)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: package)
    error = MissingExtra("the backend x:", "embedded", "xllamacpp")
    assert "xllamacpp" in str(error)
    assert str(error).endswith(f": pip install {line.format(path=tmp_path)}")


def test_only_the_packages_that_are_missing_are_named() -> None:
    error = MissingExtra("an encoder", "proxy", "numpy", "no_such_a", "json", "no_such_b")
    assert "needs the package no_such_a and no_such_b, which" in str(error)
    assert "needs the package numpy, which" in str(MissingExtra("it", "all", "numpy"))
