from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from python_api import METRICS, write_bench, write_tables

import judgebench as jb


def test_a_stress_test_runs_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(tmp_path)
    write_bench(tmp_path, "stress: {sample: 2}\n")
    bench = jb.load_bench(tmp_path / "bench.yaml", limit=6, stress=True)
    study = jb.run(bench, tmp_path / "runs" / "stressed")
    assert jb.stress(study) is not None
    assert "stress" in jb.analyse(study)
    assert [m.id for m in study.rubric.metrics] == list(METRICS)
    assert len(study.answers) <= 46  # six, and those that shipped sets bring
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder().find(jb.stress, "stress")
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_run_without_a_stress_test_says_so(tmp_path: Path) -> None:
    write_tables(tmp_path)
    write_bench(tmp_path)
    study = jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    with pytest.raises(jb.SetupError, match="small holds no stress test"):
        jb.stress(study)
