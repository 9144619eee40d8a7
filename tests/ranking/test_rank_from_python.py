from __future__ import annotations

import doctest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rank_bench_case import write
from rank_folder_case import make

import judgebench as jb


def test_the_example_of_rank_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    make(tmp_path / "runs" / "ranked")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder().find(jb.rank, "rank")
    assert doctest.DocTestRunner().run(test).failed == 0


def test_run_ranks_where_the_bench_is_one_of_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, asked = write(tmp_path), []

    def rank_all(bench: Any, folder: Any, progress: Any, budget: Any) -> None:
        asked.append((bench.config.name, budget))
        make(folder.path)

    loaded = SimpleNamespace(config=SimpleNamespace(name="b"))  # encoders are not opened
    monkeypatch.setattr("judgebench.ranking.rank_bench.load_rank_bench", lambda path: loaded)
    monkeypatch.setattr("judgebench.ranking.rank_bench.rank_all", rank_all)
    study = jb.run(bench, tmp_path / "run", budget=2.0)
    assert asked == [("b", 2.0)]
    assert jb.rank(study) is not None
    with pytest.raises(jb.SetupError, match="judges: can only be given where answers are judged"):
        jb.run(bench, tmp_path / "run", judges={"a": object()})  # type: ignore[dict-item]
