"""Empty answers are answers, and where no model is asked items need no texts at all."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.records import Status
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import run

DATA = """files:
  - path: a.csv
    items:
      item_id: item_id
      question: question
      {text}
      labels:
        - {{annotator: {{value: ann}}, metrics: {{politeness: ann}}}}
        - {{annotator: {{value: bob}}, metrics: {{politeness: bob}}}}
"""
BENCH = """name: b
rubric: support-tone
data: {data}
metrics: [politeness]
judges: [{judges}]
report: {{resamples: 100}}
"""
SCRIPTED = '{name: m, backend: "scripted:replies.jsonl", prompt: structured}'
RECORDED = "{name: m, verdicts: verdicts.csv}"
ACCURACY = "judge == 'm' and statistic == 'accuracy' and analysis == 'score'"
LABELS = ("Polite", "Impolite")


def write_rows(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """24 answers, every sixth empty, labelled by two; a reply and verdicts of a judge."""
    said = [LABELS[i % 3 == 0] for i in range(24)]
    texts = ["" if i % 6 == 0 else f"Reply number {i}, in some words." for i in range(24)]
    rows = [[str(i), f"How {i}?", texts[i], said[i], said[(i + 1) % 24]] for i in range(24)]
    write_rows(tmp_path / "a.csv", [["item_id", "question", "text", "ann", "bob"], *rows])
    labels = [[str(i), who, said[i]] for i in range(24) for who in ("ann", "bob")]
    write_rows(tmp_path / "labels.csv", [["item_id", "annotator", "politeness"], *labels])
    verdicts = [[str(i), said[i]] for i in range(24)]
    write_rows(tmp_path / "verdicts.csv", [["item_id", "politeness"], *verdicts])
    reply = {"text": json.dumps({"politeness": "Polite"})}
    (tmp_path / "replies.jsonl").write_text(json.dumps(reply) + "\n")
    return tmp_path


def bench(room: Path, text: str, judges: str, data: str = "data.yaml") -> Path:
    (room / "data.yaml").write_text(DATA.format(text=text))
    judges = judges.replace("replies.jsonl", str(room / "replies.jsonl"))
    (room / "bench.yaml").write_text(BENCH.format(data=data, judges=judges))
    return room / "bench.yaml"


def test_empty_answers_are_judged_labelled_and_counted(room: Path) -> None:
    loaded = jb.load_bench(bench(room, "text: text\n      if_empty: keep", SCRIPTED))
    told = [w.message for w in loaded.dataset.warnings if w.kind == "empty_answer"]
    assert told == ["empty text: kept as an empty answer (4 times, rows 2, 8, 14, 20)"]
    folder = RunFolder(room / "run")
    run(loaded, folder)
    for judge in ("m", "longest-answer"):
        said = {v.item_id: v for v in folder.verdicts(judge)}
        assert len(said) == 24
        assert said["0"].status is Status.OK
    study = jb.open_run(room / "run")
    agreement = jb.align(study).to_frame().query(ACCURACY)
    assert agreement["n"].tolist() == [24]
    written = jb.report(study, room / "report")
    assert "(no text)" in (room / "report" / "report.html").read_text(encoding="utf-8")
    assert written


@pytest.mark.parametrize("data", ["data.yaml", "labels.csv"])
def test_labels_without_texts_where_no_model_is_asked(room: Path, data: str) -> None:
    loaded = jb.load_bench(bench(room, "group: question", RECORDED, data))
    assert {judge.name for judge in loaded.controls} == {
        "constant-majority", "constant-fixed", "random", "prior"
    }  # fmt: skip  # without texts none is the longest
    run(loaded, RunFolder(room / "run"))
    study = jb.open_run(room / "run")
    found = jb.align(study).to_frame().query(ACCURACY)
    assert found["n"].tolist() == [24]
    assert "m" in set(jb.decide(study).to_frame()["judge"])
    jb.report(study, room / "report")


@pytest.mark.parametrize(("data", "file"), [("data.yaml", "a.csv"), ("labels.csv", "labels.csv")])
def test_a_model_needs_texts(room: Path, data: str, file: str) -> None:
    path = bench(room, "group: question", SCRIPTED + ", {name: n, verdicts: verdicts.csv}", data)
    with pytest.raises(SetupError) as caught:
        jb.load_bench(path)
    (found,) = caught.value.problems
    assert (found.field, Path(found.found).name) == ("judges.m", file)
    assert found.message == (
        "the model reads answers, whose texts are not given: name their column, `text`, or a "
        "file of them"
    )


def test_an_annotator_as_judge_needs_no_texts(room: Path) -> None:
    run(jb.load_bench(bench(room, "group: question", "")), RunFolder(room / "run"))
    study = jb.open_run(room / "run", as_judges=["ann"])
    assert "ann" in {judge.name for judge in study.judges}


def test_a_large_set_without_texts_is_kept_as_it_was(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.data.gather.MOST_IN_MEMORY", 0)
    path, rubric = bench(room, "group: question", RECORDED), load_rubric("support-tone")
    run(jb.load_bench(path), RunFolder(room / "run"))
    kept = load_data([room / "data.yaml"], rubric, metrics=["politeness"], kept_in=room / "run")
    assert kept.textless == (str(room / "a.csv"),)
    assert len(kept.answers) == 24


def test_a_study_keeps_empty_answers(room: Path) -> None:
    written = ["", None, *[f"Some words, {i}." for i in range(22)]]
    answers = pd.DataFrame({"item_id": [str(i) for i in range(24)], "text": written})
    with pytest.warns(UserWarning, match="kept as an empty answer"):
        study = jb.study(room / "labels.csv", None, answers, rubric="support-tone")
    assert [answer.text for answer in study.answers][:3] == ["", "", "Some words, 0."]
