"""Labels say themselves whether they were made without sight of any model's label."""

from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.runs.load import load_bench

RUBRIC = jb.Rubric.from_labels({"tone": ["Friendly", "Rude"]})
ROWS = [("a", "ann"), ("a", "ben"), ("b", "ann"), ("b", "ben")]
VERDICTS = pd.DataFrame({"item_id": ["a", "b"], "judge": "j", "tone": ["Friendly", "Rude"]})


def labels(*blind: str) -> pd.DataFrame:
    frame = pd.DataFrame(ROWS, columns=["item_id", "annotator"]).assign(tone="Rude")
    return frame.assign(made_blind=blind) if blind else frame


@pytest.mark.parametrize(
    ("blind", "found"),
    [
        ((), "unknown"),
        (("yes", "yes", "yes", "yes"), "yes"),
        (("yes", "yes", " No", "yes"), "no"),
        (("yes", "", "yes", "yes"), "unknown"),
        (("double", "double", "double", "double"), "unknown"),
    ],
)
def test_a_column_says_whether_labels_are_blind(blind: tuple[str, ...], found: str) -> None:
    study = jb.study(labels(*blind), VERDICTS, rubric=RUBRIC)
    assert study.config.blind == found


def test_what_the_user_declares_counts() -> None:
    study = jb.study(labels(*["yes"] * 4), VERDICTS, rubric=RUBRIC, truth={"blind": "no"})
    assert study.config.blind == "no"


def test_a_run_keeps_what_its_labels_say(tmp_path: Path) -> None:
    pd.DataFrame({"item_id": ["a", "b"], "text": ["x", "y"]}).to_csv(tmp_path / "answers.csv")
    labels(*["yes"] * 4).to_csv(tmp_path / "labels.csv", index=False)
    rubric = (
        "name: r\nversion: '1'\ninstructions: i\nmetrics:\n- {id: tone, title: Tone, question: q, "
        "kind: ordinal, labels: [{text: Friendly, severity: 0}, {text: Rude, severity: 1}]}\n"
    )
    (tmp_path / "r.yaml").write_text(rubric)
    bench = "name: b\nrubric: r.yaml\ndata: [answers.csv, labels.csv]\n"
    (tmp_path / "bench.yaml").write_text(bench)
    assert load_bench(tmp_path / "bench.yaml").config.truth.blind == "yes"
    files = [tmp_path / "answers.csv", tmp_path / "labels.csv"]
    assert load_data(files, RUBRIC).blind == "yes"
    labels().to_csv(tmp_path / "labels.csv", index=False)
    assert load_data(files, RUBRIC).blind == "unknown"
