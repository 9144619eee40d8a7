"""Verdicts that somebody has, as a judge of a benchmark: nothing is silently "not asked"."""

import csv
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb

TONES = ["Friendly", "Curt", "Rude"]
TONE = jb.Rubric.from_labels({"tone": TONES})
ITEMS = [f"i{n}" for n in range(6)]
RUBRIC = {
    "name": "tone", "version": "1", "instructions": "Judge the tone.",
    "metrics": [{
        "id": "tone", "title": "Tone", "question": "Which tone?", "kind": "ordinal",
        "labels": TONES,
    }],
}  # fmt: skip


def table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC))
    answers = [[i, f"Question {i}", f"Text {i}"] for i in ITEMS]
    table(tmp_path / "answers.csv", ["item_id", "question", "text"], answers)
    labels = [[i, a, TONES[n % 3]] for n, i in enumerate(ITEMS) for a in ("Ann", "Bob")]
    table(tmp_path / "labels.csv", ["item_id", "annotator", "tone"], labels)
    return tmp_path


def bench(folder: Path, *judges: Mapping[str, Any], **more: Any) -> Path:
    path = folder / "bench.yaml"
    value = {
        "name": "tone", "rubric": "rubric.yaml", "data": ["answers.csv", "labels.csv"],
        "judges": list(judges), **more,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(value))
    return path


def run(folder: Path, *judges: Mapping[str, Any], **more: Any) -> jb.Study:
    return jb.run(bench(folder, *judges, **more), folder / "run")


def statuses(study: jb.Study, name: str) -> dict[str, str]:
    (judge,) = (judge for judge in study.judges if judge.name == name)
    return {item: str(verdict.status) for item, verdict in judge.verdicts.items()}


def problems(folder: Path, *judges: Mapping[str, Any]) -> list[str]:
    with pytest.raises(jb.SetupError) as caught:
        jb.load_bench(bench(folder, *judges))
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_every_row_ends_in_its_own_way_and_without_one_the_judge_was_not_asked(
    folder: Path,
) -> None:
    rows = [["i0", "Friendly"], ["i1", "Curtish"], ["i2", "I'm sorry, but I can't."], ["i3", ""]]
    table(folder / "v.csv", ["item_id", "tone"], [*rows, ["i4", " rude "]])
    study = run(folder, {"name": "gpt-4", "verdicts": "v.csv"})
    assert statuses(study, "gpt-4") == {
        "i0": "ok", "i1": "unparsed", "i2": "refused", "i3": "failed", "i4": "ok",
    }  # fmt: skip
    (judge,) = (judge for judge in study.judges if judge.name == "gpt-4")
    assert judge.verdicts["i1"].raw == "Curtish"
    assert judge.verdicts["i4"].labels == {"tone": "Rude"}
    assert study.gaps == ("gpt-4: 5 of 6 asked; its numbers are of these.",)
    assert any(
        "is not a label of the metric 'Tone': counted as unparsed (2 times" in n
        for n in study.notes
    )


def test_a_judge_that_was_asked_in_part_owes_the_items_with_a_row(folder: Path) -> None:
    table(folder / "v.csv", ["item_id", "tone"], [["i0", "Friendly"], ["i1", ""]])
    study = run(folder, {"name": "gpt-4", "verdicts": "v.csv", "expected": "rows"})
    assert statuses(study, "gpt-4") == {"i0": "ok", "i1": "failed"}
    accuracy = jb.align(study).score("accuracy", "gpt-4", "tone")
    assert (accuracy.value, accuracy.n, accuracy.n_missing) == (1.0, 1, 1)
    assert study.gaps == ("gpt-4: 2 of 6 asked; its numbers are of these.",)


def test_long_wide_status_raw_and_probabilities_are_read(folder: Path) -> None:
    long = ["item_id", "judge", "metric", "label", "status", "raw", "repeat"]
    long += [f"probability_{tone}" for tone in TONES]
    rows = [
        ["i0", "a", "tone", "Friendly", "ok", '"Friendly"', 1, 0.7, 0.2, 0.1],
        ["i0", "a", "Tone", "Friendly", "ok", "", 2, "", "", ""],
        ["i1", "a", "tone", "", "refused", "No thanks", 1, "", "", ""],
        ["i0", "b", "tone", "Rude", "", "", 1, "", "", ""],
    ]
    table(folder / "v.csv", long, rows)
    table(
        folder / "w.csv",
        ["item_id", "tone", "status", *(f"probability_tone_{tone}" for tone in TONES)],
        [["i0", "Friendly", "ok", 0.7, 0.2, 0.1], ["i1", "", "refused", "", "", ""]],
    )
    study = run(
        folder, {"name": "a", "verdicts": "v.csv", "expected": "rows"},
        {"name": "wide", "verdicts": "w.csv", "expected": "rows"},
        {"name": "calibrated", "calibrate": "a"},
    )  # fmt: skip
    assert statuses(study, "a") == statuses(study, "wide") == {"i0": "ok", "i1": "refused"}
    named = {judge.name: judge for judge in study.judges}
    for name in ("a", "wide"):
        p = study.probabilities(named[name], study.rubric.metrics[0])
        assert p is not None
        assert p[0] == pytest.approx([0.7, 0.2, 0.1])
        assert np.isnan(p[1]).all()
    assert named["a"].verdicts["i0"].labels == {"tone": "Friendly"}
    assert "calibrated" in named


def test_verdicts_beside_the_labels_stand_in_a_layout(folder: Path) -> None:
    columns = {
        "item_id": "item", "text": "text", "Ann": "label by Ann", "one": "verdict by one",
        "two": "verdict by two", "three": "verdict by three",
    }  # fmt: skip
    layout = {
        "tables": [{"file": "own.csv", "columns": columns}],
        "spell": {"tone": {"nice": "Friendly"}},
    }
    (folder / "own.yaml").write_text(yaml.safe_dump(layout))
    rows = [[i, "Text", "nice", "nice", "Rude", TONES[n % 3]] for n, i in enumerate(ITEMS)]
    table(folder / "own.csv", columns, rows)
    study = run(
        folder,
        *({"name": name, "verdicts": "own.yaml"} for name in ("one", "two", "three")),
        {"name": "jury", "jury": ["one", "two", "three"]},
        data="own.yaml",
    )
    verdicts = {j.name: [v.labels["tone"] for v in j.verdicts.values()] for j in study.judges}
    assert verdicts["one"] == ["Friendly"] * 6
    assert verdicts["two"] == ["Rude"] * 6
    assert verdicts["three"] == [*TONES, *TONES]
    assert verdicts["jury"] == ["Friendly", "Rude", "Rude"] * 2


def test_an_entry_without_a_name_is_of_every_judge_of_its_file(folder: Path) -> None:
    rows = [[i, judge, tone] for i in ITEMS for judge, tone in (("a", "Rude"), ("b.1", "Curt"))]
    table(folder / "v.csv", ["item_id", "judge", "tone"], rows)
    table(
        folder / "c.csv",
        ["item_id", "tone"],
        [[i, tone] for i, tone in zip(ITEMS, TONES * 2, strict=True)],
    )
    study = run(folder, {"verdicts": "v.csv"}, {"name": "c", "verdicts": "c.csv"})
    said = {j.name: {v.labels["tone"] for v in j.verdicts.values()} for j in study.judges}
    assert said["a"] == {"Rude"}
    assert said["b.1"] == {"Curt"}
    assert said["c"] == set(TONES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c", "judges: two judges have this name, or a baseline has it; found c"),
        ("longest-answer", "judges: two judges have this name, or a baseline has it"),
        ("a judge", "v.csv: judge: is no name of a judge; found a judge; allowed: letters"),
    ],
)
def test_a_judge_of_a_file_needs_a_name_of_its_own(folder: Path, name: str, message: str) -> None:
    rows = [[i, judge, "Rude"] for i in ITEMS for judge in ("a", name)]
    table(folder / "v.csv", ["item_id", "judge", "tone"], rows)
    table(folder / "c.csv", ["item_id", "tone"], [[i, "Rude"] for i in ITEMS])
    (told,) = problems(folder, {"verdicts": "v.csv"}, {"name": "c", "verdicts": "c.csv"})
    assert message in told


def test_a_file_that_names_no_judge_is_an_error(folder: Path) -> None:
    columns = {"item_id": "item", "question": "question", "text": "text"}
    layout = {"tables": [{"file": "answers.csv", "columns": columns}]}
    (folder / "own.yaml").write_text(yaml.safe_dump(layout))
    (told,) = problems(folder, {"verdicts": "own.yaml"})
    assert "own.yaml: judge: names no judge" in told


@pytest.mark.parametrize(
    ("settings", "replies"),
    [
        ({"reply": "json"}, ['{"tone": "Curt"}', '```json\n{"tone": "curt"}\n```']),
        ({"reply": "brackets"}, ["Tone: [Curt]", "1. Tone: [curt]"]),
        (
            {"reply": "result", "thresholds": {"tone": {"Friendly": 1, "Curt": 3, "Rude": 5}}},
            ["It is curt. [RESULT] 3", "[RESULT] (4)"],
        ),
    ],
)
def test_raw_replies_are_read_as_the_prompts_replies_are(
    folder: Path, settings: dict[str, Any], replies: list[str]
) -> None:
    told = [*replies, "Perhaps curt.", "I cannot help with that.", ""]
    lines = [json.dumps({"item_id": i, "raw": r}) for i, r in zip(ITEMS, told, strict=False)]
    (folder / "r.jsonl").write_text("\n".join(lines))
    study = run(folder, {"name": "llm", "verdicts": "r.jsonl", **settings})
    assert list(statuses(study, "llm").values()) == [
        "ok", "ok", "unparsed", "refused", "failed",
    ]  # fmt: skip
    (judge,) = (judge for judge in study.judges if judge.name == "llm")
    assert [judge.verdicts[i].labels["tone"] for i in ("i0", "i1")] == ["Curt", "Curt"]
    assert judge.verdicts["i2"].raw == "Perhaps curt."


def test_a_changed_file_changes_the_verdicts_of_a_run_that_goes_on(folder: Path) -> None:
    table(folder / "v.csv", ["item_id", "tone"], [[i, "Curt"] for i in ITEMS])
    first = run(folder, {"name": "m", "verdicts": "v.csv", "about": {"model": "m-1"}})
    table(folder / "v.csv", ["item_id", "tone"], [[i, "Rude"] for i in ITEMS])
    second = run(folder, {"name": "m", "verdicts": "v.csv", "about": {"model": "m-1"}})
    before, after = (next(j for j in s.judges if j.name == "m") for s in (first, second))
    assert before.signature != after.signature
    assert {v.labels["tone"] for v in after.verdicts.values()} == {"Rude"}
    assert after.about is not None
    assert after.about["about"] == {"model": "m-1"}


def test_a_metric_that_a_judge_does_not_label_has_no_decision(folder: Path) -> None:
    rubric = jb.Rubric.from_labels({"tone": TONES, "topic": ["On", "Off"]})
    labels = pd.DataFrame(
        [(i, a, "Curt", "On") for i in ITEMS for a in ("Ann", "Bob")],
        columns=["item_id", "annotator", "tone", "topic"],
    )
    both = pd.DataFrame([(i, "Curt", "On") for i in ITEMS], columns=["item_id", "tone", "topic"])
    study = jb.study(labels, {"one": both[["item_id", "tone"]], "two": both}, rubric=rubric)
    frame = jb.decide(study).to_frame()
    decided = frame[(frame.analysis == "decision")]
    assert sorted(zip(decided.judge, decided.metric, strict=True)) == [
        ("one", "tone"), ("two", "tone"), ("two", "topic"),
    ]  # fmt: skip
    assert jb.align(study).score("accuracy", "one", "topic").n_missing == 0


def test_what_does_not_fit_is_reported_together(folder: Path) -> None:
    table(
        folder / "v.csv",
        ["item_id", "metric", "label", "status", "probability_Rude"],
        [
            ["i0", "tone", "Curt", "ok", 0.5],
            ["i0", "tone", "Rude", "ok", 0.5],
            ["i1", "tone", "Curt", "failed", ""],
            ["i2", "tone", "", "late", ""],
            ["i3", "tone", "Rude", "", 7],
            ["i4", "tone", "Rude", "", "0_1"],
        ],
    )
    assert problems(folder, {"name": "m", "verdicts": "v.csv"}) == [
        "v.csv:3: label: 'm' said 'Curt' of 'i0' on tone in row 2; found 'Rude'; allowed: one row, "
        "or a column `repeat`, `run`, `epoch` or `seed` that numbers a judge's draws (of another "
        "name: --column NAME=repeat)",
        "v.csv:4: has the status failed and a label; found 'Curt'; allowed: a label or a status",
        "v.csv:5: status: is no status of a verdict; found 'late'; "
        "allowed: ok, unparsed, refused, failed, skipped (or --column status=ignored)",
        *(
            f"v.csv:{row}: probability_Rude: is no probability; found {text!r}; "
            "allowed: a number from 0 to 1"
            for row, text in ((6, "7"), (7, "0_1"))
        ),
    ]


def test_a_source_that_cannot_be_meant_is_refused(folder: Path) -> None:
    table(
        folder / "v.csv", ["item_id", "judge", "tone"], [["i0", "a", "Curt"], ["i0", "b", "Curt"]]
    )
    table(folder / "x.csv", ["item_id", "tone"], [["z9", "Curt"]])
    told = problems(
        folder, {"name": "c", "verdicts": "v.csv"}, {"name": "x", "verdicts": "x.csv"},
        {"name": "gone", "verdicts": "gone.csv"},
    )  # fmt: skip
    text = "\n".join(told)
    assert "v.csv: judge: no verdict of this judge; found c; allowed: a, b" in text
    assert "x.csv: item_id: no verdict of x is about an item of the data; found z9" in text
    assert "gone.csv: no such file" in text


@given(
    st.lists(
        st.tuples(st.sampled_from(ITEMS), st.sampled_from([*TONES, "", "Curtish"])),
        min_size=1, unique_by=lambda row: row[0],
    )
)  # fmt: skip
def test_every_row_has_an_ending_and_only_labels_count(
    rows: list[tuple[str, str]],
) -> None:
    labels = pd.DataFrame(
        [(i, "Ann", TONES[n % 3]) for n, i in enumerate(ITEMS)],
        columns=["item_id", "annotator", "tone"],
    )
    answers = pd.DataFrame({"item_id": ITEMS, "text": ITEMS})
    verdicts = pd.DataFrame(rows, columns=["item_id", "tone"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if {*verdicts.tone} - {""} == {"Curtish"}:
            with pytest.raises(jb.SetupError, match="verdicts of m is a label; found 'Curtish'"):
                jb.study(labels, {"m": verdicts}, answers, rubric=TONE)
            return
        study = jb.study(labels, {"m": verdicts}, answers, rubric=TONE)
    counts = Counter(statuses(study, "m").values())
    said = dict(rows)
    assert sum(counts.values()) == len(said)
    assert counts["ok"] == sum(label in TONES for label in said.values())
    assert counts["unparsed"] == sum(label == "Curtish" for label in said.values())
    assert counts["failed"] == len(said) - counts["ok"] - counts["unparsed"]


def test_a_report_shows_a_judge_on_its_own_metrics_alone(tmp_path: Path) -> None:
    rubric = jb.Rubric.from_labels({"tone": TONES, "topic": ["On", "Off"]}, nominal=["topic"])
    labels = pd.DataFrame(
        [(i, a, TONES[n % 3], "On") for n, i in enumerate(ITEMS) for a in ("Ann", "Bob")],
        columns=["item_id", "annotator", "tone", "topic"],
    )
    verdicts = labels[labels.annotator == "Ann"][["item_id", "topic"]]
    study = jb.study(labels, {"one": verdicts}, rubric=rubric)
    jb.report(study, tmp_path / "report")
    rows = pd.read_csv(tmp_path / "report" / "results.csv")
    confusion = rows[(rows.analysis == "confusion") & (rows.judge == "one")]
    assert set(confusion.metric) == {"topic"}
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Accuracy with interval" in page


def test_a_metric_that_nobody_labelled_leaves_nobody_out_of_the_bar() -> None:
    rubric = jb.Rubric.from_labels({"tone": TONES, "topic": ["On", "Off"]})
    labels = pd.DataFrame(
        [(i, a, TONES[n % 3], None) for n, i in enumerate(ITEMS) for a in ("Ann", "Bob", "Cem")],
        columns=["item_id", "annotator", "tone", "topic"],
    )
    said = pd.DataFrame([(i, "Curt", "On") for i in ITEMS], columns=["item_id", "tone", "topic"])
    decisions = jb.decide(jb.study(labels, {"m": said}, rubric=rubric))
    assert "nan" not in str(decisions)
    assert "left out of the bar" not in str(decisions)
    assert any("Ann, Bob and Cem" in said for said in decisions.context.bars)
