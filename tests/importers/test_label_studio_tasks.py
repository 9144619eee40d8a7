"""Tasks of a Label Studio project that nobody has labelled yet are answers to label."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgebench as jb
from judgebench.data.logs import read_log

DATA = [
    {"question": "Is ibuprofen safe with warfarin?", "answer": "Rarely.", "model": "m", "ward": 3},
    {"question": "لماذا؟", "answer": "<b>=1+1</b>\nلأن", "model": "m", "ward": 4},
]


def bare(number: int, data: Any) -> dict[str, Any]:
    """What is imported into Label Studio: https://labelstud.io/guide/tasks."""
    return {"data": data}


def numbered(number: int, data: Any) -> dict[str, Any]:
    return {"id": 40 + number, "data": data}


def exported(number: int, data: Any) -> dict[str, Any]:
    """What is exported of a task without annotations: https://labelstud.io/guide/task_format."""
    return {
        "id": 40 + number, "annotations": [], "file_upload": "", "drafts": [], "predictions": [],
        "data": data, "meta": {}, "created_at": "2026-01-01T08:00:00Z", "inner_id": number,
        "total_annotations": 0, "cancelled_annotations": 0, "project": 1, "comment_count": 0,
    }  # fmt: skip


def skipped(number: int, data: Any) -> dict[str, Any]:
    """Somebody opened the task, and skipped it or said nothing."""
    nothing = {"completed_by": 1, "result": [], "was_cancelled": number % 2 == 0}
    return exported(number, data) | {"annotations": [nothing]}


@pytest.fixture(params=[bare, numbered, exported, skipped])
def tasks(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps([request.param(n, data) for n, data in enumerate(DATA, start=1)]))
    return path


def test_they_become_answers_to_label(tasks: Path, tmp_path: Path) -> None:
    report = jb.import_file(tasks, tmp_path / "to")
    assert [path.name for path in report.files] == ["answers.jsonl"]
    assert "2 answers" in report.found
    assert report.next_steps[0].startswith("judgebench init ")
    rows = [json.loads(line) for line in report.files[0].read_text().splitlines()]
    assert [(row["question"], row["text"], row["system"]) for row in rows] == [
        (data["question"], data["answer"], data["model"]) for data in DATA
    ]
    assert [row["item_id"] for row in rows] in (["1", "2"], ["41", "42"])


def test_the_only_column_of_ids_says_the_item(tmp_path: Path) -> None:
    """Verdicts name items as whoever made the project does, not by Label Studio's own number."""
    path = tmp_path / "tasks.json"
    data = [{**one, "conv_id": f"c{n}"} for n, one in enumerate(DATA)]
    path.write_text(json.dumps([numbered(n, one) for n, one in enumerate(data)]))
    (answers,) = jb.import_file(path, tmp_path / "to").files
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [row["item_id"] for row in rows] == ["c0", "c1"]


def test_a_table_with_a_column_of_that_name_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps([{"data": {"text": "a text"}, "id": 1, "annotator": "ann"}]))
    assert read_log(path) is None
