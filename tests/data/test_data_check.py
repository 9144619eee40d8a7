"""What `check_files` counts, and how plain files are recognised."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from judgebench.data.load import check_files, load_data
from judgebench.errors import SetupError
from judgebench.rubric import Rubric

Write = Callable[[str, str | bytes], Path]

ANSWERS = "item_id,text,question,topic\na,one,q1,t\nb,two,q1,t\nc,three,q2,t\n"
WIDE = (
    "item_id,Annotator,Tone of voice,source\n"
    "a,x,Kind,No\na,y,Neutral,\nb,x,Kind,NA\nb,y,Cannot say,None\nc,x,,\n"
)


def test_counts(rubric: Rubric, write: Write) -> None:
    paths = [write("answers.csv", ANSWERS), write("labels.csv", WIDE)]
    report = check_files(paths, rubric)
    assert report.ok
    assert (report.answers, report.labels, report.blank) == (3, 7, 3)
    assert report.annotators == {"x": 4, "y": 3}
    assert report.metrics == {
        "tone": {"Kind": 2, "Neutral": 1, "Rude – openly": 0, "Cannot say": 1},
        "source": {"No": 1, "NA": 1, "None": 1, "null": 0},
    }
    sums = [hashlib.sha256(text.encode()).hexdigest() for text in (ANSWERS, WIDE)]
    assert list(report.sources.values()) == sums


def test_the_order_of_files_does_not_matter(rubric: Rubric, write: Write) -> None:
    answers, labels = write("answers.csv", ANSWERS), write("labels.csv", WIDE)
    one, other = load_data([answers, labels], rubric), load_data([labels, answers], rubric)
    assert (one.answers, one.labels) == (other.answers, other.labels)


def test_a_file_without_annotators_is_one(rubric: Rubric, write: Write) -> None:
    paths = [write("answers.csv", ANSWERS), write("dr-a.csv.gz", "item_id,tone\na,Kind\n")]
    assert [x.annotator for x in load_data(paths, rubric).labels] == ["dr-a"]


def test_answers_and_labels_in_one_file(rubric: Rubric, write: Write) -> None:
    rows = "item_id,text,annotator,tone\na,one,x,Kind\na,one,y,Neutral\n"
    found = load_data(write("both.csv", rows), rubric)
    assert [a.item_id for a in found.answers] == ["a"]
    assert [(x.annotator, x.label) for x in found.labels] == [("x", "Kind"), ("y", "Neutral")]
    assert not found.warnings  # a row for each annotator is usual
    again = load_data(write("both.csv", rows + "a,one,y,Neutral\n"), rubric)
    assert [w.kind for w in again.warnings] == ["duplicate_label"]
    with pytest.raises(SetupError, match="occurs in row 2 with another text"):
        load_data(write("both.csv", rows + "a,other,z,Kind\n"), rubric)


def test_of_several_data_yaml_each_is_a_set_of_its_own(rubric: Rubric, write: Write) -> None:
    write("sheet.csv", "id,t,k,l\na,one,Kind,Neutral\n")
    entry = (
        "files: [{path: sheet.csv, items: {item_id: id, text: t, labels: {metrics: {tone: %s}}}}]"
    )
    paths = [write("k.yaml", entry % "k"), write("l.yaml", entry % "l")]
    report = check_files(paths, rubric)
    assert report.ok
    assert (report.answers, report.labels, report.annotators) == (2, 2, {"sheet": 2})


def test_one_data_yaml_and_plain_files_are_one_set(rubric: Rubric, write: Write) -> None:
    write("sheet.csv", "id,t\na,one\n")
    spec = write("d.yaml", "files: [{path: sheet.csv, items: {item_id: id, text: t}}]")
    report = check_files([write("l.csv", "item_id,tone\na,Kind\nz,Kind\n"), spec], rubric)
    assert [(p.kind, p.line) for p in report.errors] == [("unknown_item", 3)]


def test_slots_are_counted_under_one_name(rubric: Rubric, write: Write) -> None:
    write("sheet.csv", "id,t,k\na,one,Kind|Neutral\nb,two,Kind; Kind ;Neutral\n")
    entry = (
        "files: [{path: sheet.csv, items: {item_id: id, text: t, labels: "
        "{annotator: {value: crowd}, metrics: {tone: k}, list: true}}}]"
    )
    report = check_files([write("data.yaml", entry)], rubric)
    assert report.annotators == {"crowd": 5}
