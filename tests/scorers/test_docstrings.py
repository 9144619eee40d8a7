"""The examples of the wing's public functions run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import judgebench as jb


@pytest.mark.parametrize("name", ["consistency", "correlate", "score"])
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answers.csv").write_text("item_id,question,text\na,Is it safe?,It is not.\n")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(jb, name), name)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
