"""`verdicts.csv` of a report: what every judge said of every answer."""

import csv
import json
import re
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.runs.folder import RunFolder
from judgebench.studies.item_table import verdict_rows

RUBRIC = (
    "name: tone\nversion: '1'\ninstructions: Judge.\nmetrics:\n"
    "  - {id: tone, title: Tone, question: What tone, kind: ordinal, labels: [Kind, Curt, Rude]}\n"
    "  - {id: help, title: Help, question: Of help, kind: nominal, labels: ['Yes', 'No']}\n"
)
SCRIPT = [
    {"pattern": "number 2", "text": "I cannot help with that."},
    {"pattern": "number 3", "text": '{"tone": "Rude"}'},
    {"pattern": "number 4", "text": '{"tone": "Rude", "help": "No"}'},
    {"text": '{"tone": "Kind", "help": "Yes"}'},
]
SAID = {"i2": ["", "", "refused"], "i3": ["Rude", "", "unparsed"], "i4": ["Rude", "No", "ok"]}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rubric.yaml").write_text(RUBRIC)
    Path("script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in SCRIPT))
    items = ["=1+1", *(f"i{n}" for n in range(1, 9))]
    texts = [f"Reply number {n}." for n in range(9)]
    answers = {"item_id": items, "text": texts, "question": "Why?", "system": "s"}
    pd.DataFrame(answers).to_csv("answers.csv", index=False)
    labels = pd.DataFrame({"item_id": items, "annotator": "Ann", "tone": "Kind", "help": "Yes"})
    labels.to_csv("labels.csv", index=False)
    for name, data in (("plain", "answers.csv"), ("labelled", "answers.csv, labels.csv")):
        Path(f"{name}.yaml").write_text(
            f"name: {name}\nrubric: rubric.yaml\ndata: [{data}]\njudges:\n"
            "  - {name: m, backend: 'scripted:script.jsonl'}\n"
            "  - {name: n, backend: 'scripted:script.jsonl'}\n"
            ""
        )


def test_a_run_without_labels_ends_with_the_verdicts(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("run", "plain.yaml", "--run", "run")
    assert code == 0
    assert "Verdicts: run/report/verdicts.csv" in out
    assert "no human labels" not in out
    lines = [re.split(r" {2,}", line.strip()) for line in out.splitlines()]
    assert ["Tone", "Kind", "6 of 9 (67 %)", "6 of 9 (67 %)"] in lines
    assert ["Help", "No label", "2 of 9 (22 %)", "2 of 9 (22 %)"] in lines
    with Path("run/report/verdicts.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    about = ["item_id", "question", "system", "group", "judge"]
    assert header == [*about, "tone", "help", "status", "reason"]
    assert [row[:5] for row in rows[:3]] == [
        ["'=1+1", "Why?", "s", "Why?", "m"],
        ["'=1+1", "Why?", "s", "Why?", "n"],
        ["i1", "Why?", "s", "Why?", "m"],
    ]
    assert len(rows) == 18
    for row in rows:
        assert row[5:8] == SAID.get(row[0], ["Kind", "Yes", "ok"])
        assert bool(row[8]) is (row[7] != "ok")


def test_it_is_the_same_after_a_resume_and_with_labels(call) -> None:  # type: ignore[no-untyped-def]
    assert call("run", "plain.yaml", "--run", "whole")[0] == 0
    assert call("run", "plain.yaml", "--run", "parts", "--limit", "3")[0] == 0
    assert len(Path("parts/report/verdicts.csv").read_text().splitlines()) == 7
    assert call("run", "plain.yaml", "--run", "parts")[0] == 0
    whole = Path("whole/report/verdicts.csv").read_bytes()
    assert whole == Path("parts/report/verdicts.csv").read_bytes()
    study = jb.open_run("parts")  # no file of the run was changed by it
    assert jb.report(study, "paper")["verdicts.csv"].read_bytes() == whole
    labelled = jb.run("labelled.yaml", "labelled")
    of_labelled = [row[:9] for row in verdict_rows(labelled)]
    assert of_labelled == [tuple(row) for row in verdict_rows(study)]
    assert jb.align(labelled).part.files.keys() == {"verdicts.csv"}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_can_be_read_as_verdicts() -> None:
    written = jb.report(jb.run("labelled.yaml", "run"), "paper")
    with written["verdicts.csv"].open(encoding="utf-8-sig", newline="") as file:
        row = next(csv.DictReader(file))
    assert row["human: reference tone"] == row["human: annotator Ann tone"] == "Kind"
    study = jb.study("labels.csv", written["verdicts.csv"], rubric="rubric.yaml")
    judges = {judge.name: judge for judge in study.judges}
    assert judges["m"].verdicts["i4"].labels == {"tone": "Rude", "help": "No"}
    assert judges["n"].verdicts["i2"].status is jb.Status.REFUSED


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_verdict_that_failed_in_part_can_be_read_again() -> None:
    labels = pd.DataFrame(
        {"item_id": ["a", "b"], "annotator": "Ann", "tone": "Kind", "help": "Yes"}
    )
    verdicts = pd.DataFrame({"item_id": ["a", "b"], "tone": ["Kind", "Rude"], "help": ["", "No"]})
    study = jb.study(labels, {"m": verdicts}, rubric="rubric.yaml")
    header, *rows = verdict_rows(study)
    written = pd.DataFrame(rows, columns=header)
    again = jb.study(labels, written, rubric="rubric.yaml")
    judges = (next(j for j in s.judges if j.name == "m") for s in (study, again))
    first, second = ([judge.verdicts[i].labels for i in "ab"] for judge in judges)
    assert first == second == [{"tone": "Kind"}, {"tone": "Rude", "help": "No"}]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_run_lacks_stands_in_every_row() -> None:
    jb.run("plain.yaml", "run")
    path = Path("run/verdicts-m.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    folder = RunFolder(Path("run"))
    folder.write_manifest(folder.manifest(), "running")
    header, *rows = verdict_rows(jb.open_run("run"))
    assert header[-1] == "incomplete"
    said = {row[4]: row[-1] for row in rows}
    assert said.keys() == {"m", "n"}
    assert said["n"] == said["m"]
    assert "This run is unfinished: " in said["n"]


def test_without_a_judge_there_is_none(call) -> None:  # type: ignore[no-untyped-def]
    text = Path("plain.yaml").read_text()
    Path("bare.yaml").write_text(text.split("judges:")[0])
    assert "verdicts.csv" not in call("run", "bare.yaml", "--run", "run")[1]
    assert not Path("run/report/verdicts.csv").exists()
