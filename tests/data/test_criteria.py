"""Items that bring their own criteria."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data, read_given
from judgebench.data.spec import DataSpec
from judgebench.errors import SetupError
from judgebench.rubric import Rubric, load_rubric

Write = Callable[[str, str | bytes], Path]

ITEMS = [
    {
        "id": "x", "question": "What helps?", "answer": "Rest and water.",
        "rubrics": [
            {"criterion": "Names rest", "points": 5, "tags": ["axis:accuracy", "level:example"]},
            {"criterion": "Advises a drug", "points": -3, "tags": []},
        ],
    },
    {
        "id": "y", "question": "What helps?", "answer": "Nothing does.",
        "rubrics": [{"id": "kind", "text": "Is kind", "points": 1.5}],
    },
]  # fmt: skip
DATA = """
files:
  - path: items.jsonl
    items: {item_id: id, question: question, text: answer, criteria: rubrics}
  - path: labels.csv
    labels: {item_id: item, criterion: which, annotator: who, metrics: {met: said}}
"""
LABELS = "item,which,who,said\nx,1,Ann,true\nx,2,Ann,not met\nx,1,Bob,no\ny,kind,Ann,met\n"


@pytest.fixture(scope="module")
def criteria() -> Rubric:
    return load_rubric("criteria")


def problems(path: Path, rubric: Rubric) -> list[str]:
    with pytest.raises(SetupError) as caught:
        load_data(path, rubric)
    return [str(problem) for problem in caught.value.problems]


def test_every_criterion_is_an_item(write: Write, criteria: Rubric) -> None:
    write("items.jsonl", "".join(json.dumps(item) + "\n" for item in ITEMS))
    write("labels.csv", LABELS)
    found = load_data(write("data.yaml", DATA), criteria)
    assert [answer.item_id for answer in found.answers] == ["x#1", "x#2", "y#kind"]
    first, second, third = found.answers
    assert (first.text, first.question) == ("Rest and water.", "What helps?")
    assert first.criterion
    assert (first.criterion.text, first.criterion.name) == ("Names rest", "1")
    assert first.criterion.item_id == "x"
    assert dict(first.metadata) == {"points": "5", "tags": "axis:accuracy|level:example"}
    assert dict(second.metadata) == {"points": "-3", "tags": ""}
    assert third.metadata["points"] == "1.5"
    assert first.group == second.group
    assert {(x.item_id, x.annotator): x.label for x in found.labels} == {
        ("x#1", "Ann"): "met",
        ("x#2", "Ann"): "not met",
        ("x#1", "Bob"): "not met",
        ("y#kind", "Ann"): "met",
    }


def test_criteria_in_cells_of_any_table_are_the_same(
    write: Write, criteria: Rubric, tmp_path: Path
) -> None:
    write("items.jsonl", "".join(json.dumps(item) + "\n" for item in ITEMS))
    write("labels.csv", LABELS)
    whole = load_data(write("data.yaml", DATA), criteria)
    frame = pd.DataFrame(ITEMS)
    frame.assign(rubrics=frame.rubrics.map(json.dumps)).to_csv(tmp_path / "cells.csv")
    frame.to_parquet(tmp_path / "cells.parquet")
    frame.to_json(tmp_path / "cells.json", orient="records")
    for end in ("csv", "parquet", "json"):
        path = write("other.yaml", DATA.replace("items.jsonl", f"cells.{end}"))
        assert load_data(path, criteria).answers == whole.answers, end


def test_every_fault_of_a_criterion_is_reported(write: Write, criteria: Rubric) -> None:
    bad = [
        {"id": "a", "text": "Is kind"},
        {"id": "a", "text": "Is short"},
        {"id": "b"},
        {"id": "c", "text": "Is long", "points": "many"},
        {"id": "d", "text": "Is long", "points": 0},
        {"id": "e", "text": {"de": "Ist lang"}},
        True,
        {"id": "f", "text": "Is long", "tags": {"a": "b"}},
    ]
    lines = [{**ITEMS[0], "rubrics": bad}, {**ITEMS[1], "rubrics": {"id": "a"}}]
    path = write("items.jsonl", "".join(json.dumps(item) + "\n" for item in lines))
    write("labels.csv", LABELS)
    found = [text.removeprefix(f"{path}:") for text in problems(write("data.yaml", DATA), criteria)]
    points = "allowed: a number other than 0, below 0 for what should not be"
    assert found[:8] == [
        "1: rubrics[2].text: the criterion has no text",
        f"1: rubrics[3].points: is no number of points; found 'many'; {points}",
        f"1: rubrics[4].points: is no number of points; found '0'; {points}",
        "1: rubrics[5].text: holds a dict, where one value was expected",
        "1: rubrics[6]: is no criterion; found 'True'; allowed: {id, text, points, tags}",
        "1: rubrics[7].tags: is no list of tags; found \"{'a': 'b'}\"",
        "1: rubrics[1].id: two criteria of 'x' have this id; found 'a'",
        "2: rubrics: is no list of criteria; allowed: a list of {id, text, points, tags}",
    ]


def test_labels_of_unknown_criteria_and_too_many_criteria(write: Write, criteria: Rubric) -> None:
    many = [{"text": f"Names {n}"} for n in range(201)]
    path = write("items.jsonl", json.dumps({**ITEMS[0], "rubrics": many}))
    labels = write(
        "labels.csv", "item,which,who,said\nx,1,Ann,met\nx,9,Ann,met\nx,999,Ann,met\nx,2,Ann,half\n"
    )
    found = problems(write("data.yaml", DATA), criteria)
    assert found[0] == f"{path}:1: rubrics[200].id: 'x' has more than 200 criteria"
    assert found[1].startswith(f"{labels}:5: said: is not a label of met; found 'half'")
    assert found[2].startswith(f"{labels}:4: item_id: no answer has this criterion; ")
    assert found[2].endswith("found 'x#999'")
    assert len(found) == 3


def test_a_rubric_of_criteria_needs_some(write: Write, criteria: Rubric) -> None:
    path = write("answers.csv", "item_id,text\nx,Rest and water.\n")
    (problem,) = problems(path, criteria)
    assert (
        "the rubric has metrics of criteria, and the data hold none; allowed: `criteria`" in problem
    )


def test_frames_of_labels_and_verdicts_make_a_study(criteria: Rubric) -> None:
    labels = pd.DataFrame(
        [("x", "1", "Ann", "met"), ("x", "2", "Ann", "not met"), ("y", "1", "Ann", "met")],
        columns=["item_id", "criterion", "annotator", "met"],
    )
    study = jb.study(
        labels, labels.drop(columns="annotator").assign(judge="gpt-4"), rubric=criteria
    )
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    assert (study.judged(judge, study.rubric.metrics[0]) == study.humans["met"].truth).all()
    assert [answer.item_id for answer in study.answers] == ["x#1", "x#2", "y#1"]
    assert study.clusters.codes.tolist() == [0, 0, 1]
    wrong = labels.drop(columns="criterion").drop_duplicates("item_id")
    with pytest.raises(SetupError, match="the metric met is about criteria, and this is an answer"):
        read_given(wrong, [], None, criteria)


def test_a_spec_needs_one_kind() -> None:
    both = {"item_id": "q", "pair": ["a", "b"], "criterion": "c", "metrics": {"m": "w"}}
    with pytest.raises(ValueError, match="give either pair or criterion"):
        DataSpec.model_validate({"files": [{"path": "x.csv", "labels": both}]})
    replies = {"item_id": "q", "pair": ["a", "b"], "raw": "reply"}
    with pytest.raises(ValueError, match="the replies on a pair need its item id, and no pair"):
        DataSpec.model_validate({"files": [{"path": "x.csv", "verdicts": replies}]})
