"""Tables of a decision, its certificate, and tables of later."""

import shutil
from pathlib import Path

import pytest
from certified import certify, replies


@pytest.fixture(scope="session")
def certified_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certified")
    for prefix, tables in (("", replies(1, 0, 600)), ("new-", replies(2, 1000, 200))):
        for name, table in zip(("labels", "verdicts"), tables, strict=True):
            table.to_csv(folder / f"{prefix}{name}.csv", index=False)
    certify(folder / "labels.csv", folder / "verdicts.csv").write(folder / "judge.json")
    return folder


@pytest.fixture
def here(certified_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the test runs."""
    shutil.copytree(certified_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
