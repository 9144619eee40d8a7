"""The part of a run folder that a ranking adds."""

import json
from pathlib import Path
from typing import Any

import pytest
from rank_folder_case import TEXTS, TRAINED, ranking, write_ranking

from judgebench.errors import DiskFailed, SetupError
from judgebench.ranking.rankers import (
    RANKING,
    KeptRanking,
    evaluator_folder,
    read_ranking,
    read_tasks,
    read_trained,
)
from judgebench.ranking.task import Argument, arguments_path, write_arguments


def kept(**changes: Any) -> KeptRanking:
    content = ranking(**changes)
    for task in content["tasks"]:
        task.pop("arguments")
    return KeptRanking.model_validate(content)


def arguments(system: str, **texts: str) -> list[Argument]:
    return [Argument("t", item, system, text) for item, text in texts.items()]


def test_a_ranking_comes_back_as_it_was_written(tmp_path: Path) -> None:
    content = kept(title="ferries ✓")
    write_ranking(tmp_path, kept(), [])
    write_ranking(tmp_path, content, arguments("gold", a="\n"))
    assert read_ranking(tmp_path).model_dump() == content.model_dump()
    names = sorted(p.name for p in (tmp_path / "proxy").iterdir())
    assert names == ["given.jsonl", "ranking.json"]


def test_texts_stand_in_the_files_of_those_who_wrote_them(tmp_path: Path) -> None:
    """Beside gold only what generators and control cases wrote on ranked instances."""
    write_ranking(tmp_path, kept(), arguments("gold", **TEXTS["gold"]))
    again = arguments("m1", **TEXTS["m1"]) + arguments("m1", train="Not ranked.", b="Anew.", c=" ")
    write_arguments(arguments_path(tmp_path, "m1"), again)
    write_arguments(arguments_path(tmp_path, "m2"), arguments("m2", a="Of another ranking."))
    write_arguments(arguments_path(tmp_path, "noise"), arguments("noise", **TEXTS["noise"]))
    (task,) = read_tasks(tmp_path)
    assert [system.name for system in task.systems] == ["gold", "m1", "noise"]
    assert {item: a.text for item, a in task.arguments["m1"].items()} == {
        "a": "Since a.", "b": "Anew.",
    }  # fmt: skip
    assert "Since a." not in (tmp_path / RANKING).read_text()


def test_a_folder_without_a_ranking_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no ranking run"):
        read_ranking(tmp_path)


def test_a_damaged_ranking_is_told(tmp_path: Path) -> None:
    write_ranking(tmp_path, kept(), [])
    for damaged in ('{"name": ', '{"name": "b"}'):
        (tmp_path / RANKING).write_text(damaged)
        with pytest.raises(SetupError, match=r"ranking\.json"):
            read_ranking(tmp_path)


def test_the_manifest_of_an_evaluator_is_read_or_told(tmp_path: Path) -> None:
    folder = evaluator_folder(tmp_path, "claims-baseline")
    assert read_trained(tmp_path, "claims-baseline") is None
    folder.mkdir(parents=True)
    about = TRAINED | {"evaluator": "claims-baseline", "kind": "baseline", "draw": 0}
    (folder / "manifest.json").write_text(json.dumps(about | {"signature": "s", "labels": []}))
    found = read_trained(tmp_path, "claims-baseline")
    assert found is not None
    assert (found.signature, found.train) == ("s", 8)
    for damaged in ("{", "{}"):
        (folder / "manifest.json").write_text(damaged)
        with pytest.raises(SetupError, match=r"manifest\.json"):
            read_trained(tmp_path, "claims-baseline")


def test_a_file_in_the_way_is_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("in the way")
    with pytest.raises(DiskFailed, match="cannot be written"):
        write_arguments(arguments_path(tmp_path, "m1"), [])
