import os
from pathlib import Path

import pytest
from python_api import write_bench, write_tables

import judgebench as jb


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, a bench.yaml and its run folder runs/small."""
    folder = tmp_path_factory.mktemp("api")
    write_tables(folder)
    write_bench(folder)
    jb.run(folder / "bench.yaml", folder / "runs" / "small")
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    assert os.listdir(place)
    return place
