"""What a study finds of its scorers beside the humans."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_case import write_notes

import judgebench as jb

CONTROLS = {"length", "question-overlap", "random-number"}


def scorers_of(study: jb.Study) -> dict[str, bool]:
    """Name -> whether it is a control."""
    return {run.name: run.is_control for run in study.beside["scorers"] or ()}


def test_scorers_without_meaning_stand_beside(tmp_path: Path) -> None:
    bench, columns = write_notes(tmp_path)
    found = scorers_of(jb.run(bench, tmp_path / "run"))
    assert {name for name, control in found.items() if control} == CONTROLS
    assert {name for name, control in found.items() if not control} == set(columns) - {
        "omission", "hallucination"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "left"), [("controls: false", set()), ("controls: [prior]", set()), ("", CONTROLS)]
)
def test_controls_of_scorers_go_with_the_other_controls(
    tmp_path: Path, more: str, left: set[str]
) -> None:
    bench, _ = write_notes(tmp_path, "scorers: [length]", questions=4, more=more)
    assert set(scorers_of(jb.run(bench, tmp_path / "run"))) == {"length", *left}


def test_no_scorer_no_control(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, "", questions=4)
    assert scorers_of(jb.run(bench, tmp_path / "run")) == {}


def test_why_there_is_no_score_is_counted(tmp_path: Path) -> None:
    bench, _ = write_notes(tmp_path, questions=5)
    study = jb.run(bench, tmp_path / "run")
    told = {run.name: run.remarks for run in study.beside["scorers"]}
    assert told["gappy"] == {("the column gappy is blank", False): 4}
    assert told["good"] == {}
