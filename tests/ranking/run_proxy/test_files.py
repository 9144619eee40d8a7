"""The part of a run folder that a ranking adds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgebench.errors import DiskFailed, SetupError
from judgebench.ranking.run_proxy.files import (
    RANKING,
    evaluator_folder,
    holds_ranking,
    read_ranking,
    trained_manifest,
    write_ranking,
    write_split,
)


def test_a_ranking_comes_back_as_it_was_written(tmp_path: Path) -> None:
    assert not holds_ranking(tmp_path)
    content = {"name": "ferries ✓", "tasks": [{"arguments": {"gold": {"a": {"text": "\n"}}}}]}
    write_ranking(tmp_path, {"name": "old"})
    write_ranking(tmp_path, content)
    assert holds_ranking(tmp_path)
    assert read_ranking(tmp_path) == content
    assert sorted(p.name for p in (tmp_path / "proxy").iterdir()) == ["ranking.json"]


def test_a_split_holds_row_indices(tmp_path: Path) -> None:
    rows = {"train": [0, 2], "development": [1], "test": [3]}
    write_split(tmp_path, "claims", rows)
    assert json.loads((tmp_path / "proxy" / "split-claims.json").read_text()) == rows


def test_a_folder_without_a_ranking_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no ranking run"):
        read_ranking(tmp_path)


def test_a_damaged_ranking_is_told(tmp_path: Path) -> None:
    write_ranking(tmp_path, {"name": "b"})
    (tmp_path / RANKING).write_text('{"name": ')
    with pytest.raises(SetupError, match=r"ranking\.json"):
        read_ranking(tmp_path)


def test_the_manifest_of_an_evaluator_is_read_or_told(tmp_path: Path) -> None:
    folder = evaluator_folder(tmp_path, "claims-baseline")
    with pytest.raises(SetupError, match="cannot be read"):
        trained_manifest(folder)
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"signature": "s"}')
    assert trained_manifest(folder) == {"signature": "s"}
    (folder / "manifest.json").write_text("{")
    with pytest.raises(SetupError, match="cannot be read"):
        trained_manifest(folder)


def test_a_file_in_the_way_is_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("in the way")
    with pytest.raises(DiskFailed, match="cannot be written"):
        write_ranking(tmp_path, {})
