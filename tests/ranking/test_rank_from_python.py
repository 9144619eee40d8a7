from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from rank_folder_case import make

import judgebench as jb


def test_the_example_of_rank_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    make(tmp_path / "runs" / "ranked")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder().find(jb.rank, "rank")
    assert doctest.DocTestRunner().run(test).failed == 0
