"""Tasks of a Label Studio project that nobody has labelled yet are answers to label."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.rubric import load_rubric

FILES = Path(__file__).parent / "files"
DATA = [
    {"question": "Is ibuprofen safe with warfarin?", "answer": "Rarely.", "model": "m", "ward": 3},
    {"question": "لماذا؟", "answer": "<b>=1+1</b>\nلأن", "model": "m", "ward": 4},
]
RUBRIC = load_rubric("support-tone")


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


def test_they_become_answers_and_no_rubric(tasks: Path, tmp_path: Path) -> None:
    report = jb.import_file(tasks, tmp_path / "to")
    assert [path.name for path in report.files] == ["answers.csv"]
    assert "2 answers of m to 2 questions" in report.found
    assert report.next_steps[0].startswith("Write a rubric.yaml")


def test_they_are_read_as_they_are(tasks: Path, tmp_path: Path) -> None:
    jb.import_file(tasks, tmp_path / "to")
    found, same = load_data(tasks, RUBRIC), load_data(tmp_path / "to" / "answers.csv", RUBRIC)
    assert found.answers == same.answers
    assert found.labels == found.warnings == ()
    assert [(a.question, a.text, a.system) for a in found.answers] == [
        (data["question"], data["answer"], data["model"]) for data in DATA
    ]
    ids = [answer.item_id for answer in found.answers]
    assert ids in (["1", "2"], ["41", "42"])
    assert found.answers[0].metadata["ward"] == "3"


def test_a_problem_names_the_task(tasks: Path) -> None:
    values = json.loads(tasks.read_text())
    values[1]["data"]["answer"] = " "
    tasks.write_text(json.dumps(values))
    with pytest.raises(jb.SetupError) as caught:
        load_data(tasks, RUBRIC)
    assert [(p.line, p.kind) for p in caught.value.problems] == [(2, "empty_text")]


@pytest.mark.parametrize("name", ["label-studio.json", "label-studio-snapshot.json"])
def test_labelled_tasks_are_imported_first(name: str) -> None:
    with pytest.raises(jb.SetupError, match="`judgebench import` makes data files of it"):
        load_data(FILES / name, RUBRIC)


def test_a_table_with_a_column_of_that_name_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps([{"data": "a text", "number": 1}]))
    with pytest.raises(jb.SetupError, match=r"unrecognised columns \(data, number\)"):
        load_data(path, RUBRIC)
