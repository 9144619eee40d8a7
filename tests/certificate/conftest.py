"""A synthetic study whose judge earns REPLACE on one metric, and what came after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from certified import replies, written


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with labels.csv, verdicts.csv, again.csv, log.csv (later) and fresh.csv (labels of
    a part of it)."""
    folder = tmp_path_factory.mktemp("certified")
    people, verdicts = replies(1, 0, 600)
    written(folder / "labels.csv", people)
    written(folder / "verdicts.csv", verdicts)
    written(folder / "again.csv", verdicts)
    later, log = replies(2, 1000, 400)
    written(folder / "log.csv", log)
    written(folder / "fresh.csv", later[:300], ("text", "question", "system"))
    return folder


@pytest.fixture
def here(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the test runs."""
    for file in study.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path
