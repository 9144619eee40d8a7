"""People check open questions: a study of `annotate`, and how far they agree."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exam_case import exam, model
from scripted_judges import ScriptedBackend

import judgebench as jb
from judgebench.features import FEATURES
from judgebench.judges.config import Decoding
from judgebench.scorers.open_questions import (
    checked,
    open_questions,
    read_questions,
    write_questions,
)
from judgebench.writer import TextWriter, WritingTerms


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    backend, replies = ScriptedBackend(model), tmp_path / "replies.jsonl"
    writer = TextWriter(backend, Decoding(), replies, WritingTerms())
    write_questions(open_questions(read_questions(exam(tmp_path)), writer), writer)
    return tmp_path


def test_people_check_what_became_open_and_see_no_opinion(folder: Path) -> None:
    with (folder / "check.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["item_id"] for row in rows} == {"antidote", "case", "vague"}  # left out: `vague`
    assert {*rows[0]} == {"item_id", "group", "question", "text"}
    assert rows[0]["text"] == "Fomepizole"


@pytest.mark.skipif("annotate" not in FEATURES, reason="needs the feature `annotate`")
def test_the_study_of_the_folder_is_served_as_it_is(call: Any, folder: Path) -> None:
    arguments = ("annotate", "init", folder / "annotate.yaml", "--to", folder / "study")
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert "3 items" in out


def labels_of(votes: np.ndarray) -> pd.DataFrame:
    """`votes` (questions,) of three people call a question correct."""
    return pd.DataFrame([
        {"item_id": f"q{i}", "annotator": "abc"[k], "correct": "correct" if k < n else "wrong"}
        for i, n in enumerate(votes)
        for k in range(3)
    ])  # fmt: skip


# Arias-Duart et al. (2025), Table 2: shares called correct by at least 1, 2 and 3 of 3, and the
# share on which all agree, of translations and of two iterations of rewriting.
TABLE_2 = {
    "translation": (98.6, 96.7, 83.1, 84.4, 0.23),
    "iteration 1": (96.1, 85.8, 65.8, 69.7, 0.30),
    "iteration 2": (98.1, 92.8, 73.6, 75.5, 0.22),
}


@pytest.mark.parametrize("column", TABLE_2)
def test_table_2_inverts_to_votes_and_so_to_kappa(column: str, tmp_path: Path) -> None:
    """With 360 samples, as section 2.1 says, and not with the 260 of Appendix A.3, the shares are
    those of whole votes. Their interrater agreement hides that it is little beyond chance."""
    *shares, all_agree, kappa = TABLE_2[column]

    def at_least(n: int) -> list[int]:
        return [round(share * n / 100) for share in shares]

    assert [round(100 * k / 360, 1) for k in at_least(360)] == shares
    assert [round(100 * k / 260, 1) for k in at_least(260)] != shares
    one, two, three = at_least(360)
    votes = np.repeat([0, 1, 2, 3], [360 - one, one - two, two - three, three])
    found = {row.statistic: row.estimate.value for row in checked(labels_of(votes)).rows}
    for k, share in enumerate(shares, 1):
        assert found[f"correct {k}/3"] == pytest.approx(share / 100, abs=5e-4)
    # .7556 stands there as 75.5
    assert found["all agree"] == pytest.approx(all_agree / 100, abs=6e-4)
    path, rubric = tmp_path / "labels.csv", tmp_path / "rubric.yaml"
    labels_of(votes).to_csv(path, index=False)
    rubric.write_text("metrics:\n  - {id: correct, kind: nominal, labels: [correct, wrong]}\n")
    agreed = jb.align(jb.study(path, rubric=rubric)).results
    assert round(agreed.find("fleiss", "agreement", who="all").value, 2) == kappa
    same = agreed.find("all_agree", "agreement", who="all").value
    assert same == pytest.approx(found["all agree"])


def test_questions_that_not_all_checked_are_missing(call: Any, tmp_path: Path) -> None:
    labels = labels_of(np.array([3, 1])).drop(index=5)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    code, out, _ = call("score", "openqa", tmp_path / "labels.csv", "--checked", "--json")
    rows = {row["statistic"]: row for row in json.loads(out)["openqa"]}
    assert code == 0
    assert (rows["correct 3/3"]["n"], rows["correct 3/3"]["n_missing"]) == (1, 1)
    with pytest.raises(jb.SetupError, match="correct: is no label; found maybe; allowed: correct"):
        checked(labels.assign(correct="maybe"))
