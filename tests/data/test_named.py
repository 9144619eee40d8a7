"""Plain tables beside a rubric: columns are known by their names, and each fault is named with the
file, the row and the column; all of them at once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError
from judgebench.rubric import Rubric, load_rubric
from tests.data.conftest import Write

ANSWERS = "item_id,text\na,one\nb,two\nc,three\n"
LONG = "item_id,annotator,metric,label\n"
WIDE = (
    "item_id,Annotator,Tone of voice,source\n"
    "a,x,Kind,No\na,y,Neutral,\nb,x,Kind,NA\nb,y,Cannot say,None\nc,x,,\n"
)


def errors(rubric: Rubric, *paths: Path) -> Sequence[Problem]:
    with pytest.raises(SetupError) as error:
        load_data(paths, rubric)
    return error.value.problems


def test_answers_keep_what_else_is_known_of_them(rubric: Rubric, write: Write) -> None:
    rows = "Item ID,answer,question,model,doc_id,reference,topic,weight\na,one,Why?,m,d,r,t,2\n"
    (answer,) = load_data(write("answers.csv", rows), rubric).answers
    assert (answer.item_id, answer.text, answer.question) == ("a", "one", "Why?")
    assert (answer.system, answer.group, answer.reference) == ("m", "d", "r")
    assert answer.metadata == {"topic": "t", "weight": "2"}


def test_labels_stand_in_long_and_in_wide_tables(rubric: Rubric, write: Write) -> None:
    long = write("long.csv", LONG + "a,x,Tone of voice,friendly\nb,y,source,null\n")
    wide = write("dr-a.csv.gz", "item_id,tone\na,Neutral\n")  # a file without annotators is one
    data = load_data([long, write("answers.csv", ANSWERS), wide], rubric)
    assert [answer.item_id for answer in data.answers] == ["a", "b", "c"]
    assert [(x.item_id, x.annotator, x.metric, x.label) for x in data.labels] == [
        ("a", "x", "tone", "Kind"), ("b", "y", "source", "null"), ("a", "dr-a", "tone", "Neutral")
    ]  # fmt: skip
    only = load_data([long, write("answers.csv", ANSWERS)], rubric, metrics=["tone"])
    assert [x.label for x in only.labels] == ["Kind"]


def test_answers_and_labels_may_share_a_table(rubric: Rubric, write: Write) -> None:
    rows = "item_id,text,annotator,tone\na,one,x,Kind\na,one,y,Neutral\n"
    data = load_data(write("both.csv", rows), rubric)
    assert [a.item_id for a in data.answers] == ["a"]
    assert [(x.annotator, x.label) for x in data.labels] == [("x", "Kind"), ("y", "Neutral")]
    assert not data.warnings  # a row for each annotator is usual
    (error,) = errors(rubric, write("both.csv", rows + "a,other,z,Kind\n"))
    assert (error.kind, error.line) == ("conflicting_item", 4)


def test_labels_alone_are_of_answers_without_texts(rubric: Rubric, write: Write) -> None:
    labels = write("labels.csv", LONG + "a,x,tone,Kind\n")
    data = load_data(labels, rubric)
    assert [(a.item_id, a.text) for a in data.answers] == [("a", "")]
    assert data.textless == (str(labels),)
    assert not data.warnings


def test_labels_of_wide_tables_are_told_from_blanks(rubric: Rubric, write: Write) -> None:
    data = load_data([write("labels.csv", WIDE), write("answers.csv", ANSWERS)], rubric)
    labels = Counter((x.metric, x.label) for x in data.labels)
    assert labels == {
        ("tone", "Kind"): 2, ("tone", "Neutral"): 1, ("tone", "Cannot say"): 1, ("tone", None): 1,
        ("source", "No"): 1, ("source", "NA"): 1, ("source", "None"): 1, ("source", None): 2,
    }  # fmt: skip
    assert data.n_labels == 7


@pytest.mark.parametrize(
    ("rows", "kind", "line", "column", "message"),
    [
        ("item_id,text\na,one\na,two\n", "conflicting_item", 3, "item_id", "row 2 with another te"),
        ("item_id,text,group\na,x,g\na,x,h\n", "conflicting_item", 3, "item_id", "another group"),
        ("item_id,text\n,one\nb,two\n", "blank_id", 2, "", "names no item"),
        ("nick,remarks\na,b\n", "unrecognised_file", None, "", "(nick, remarks): say what they"),
        ("text,label\na,b\n", "unrecognised_file", None, "", "in a layout.yaml, as `judgebench i"),
        ("item_id,silver\na,x\n", "silver_label", None, "silver", "labels of a machine"),
        ("item_id,text\ncafé,x\ncafe\u0301,y\n", "id_collision", 3, "item_id", "accents"),
        ("item_id,text\na\n", "ragged_row", 2, "", "has 1 cell where the header has 2"),
    ],
)  # fmt: skip
def test_a_fault_in_answers_is_named(
    rows: str, kind: str, line: int | None, column: str, message: str, rubric: Rubric, write: Write
) -> None:
    path = write("answers.csv", rows)
    (error,) = errors(rubric, path)
    assert (error.kind, error.file, error.line, error.field) == (kind, str(path), line, column)
    assert message in error.message


@pytest.mark.parametrize(
    ("row", "kind", "column", "message"),
    [
        ("a,x,tone,Kimd", "unknown_label", "label", "did you mean 'Kind'"),
        ("a,x,tonne,Kind", "unknown_metric", "metric", "did you mean 'tone'"),
        ("a,x,,Kind", "blank_metric", "metric", ""),
        ("a, ,tone,Kind", "blank_annotator", "", ""),
        (",x,tone,Kind", "blank_id", "", ""),
        ("d1,x,tone,Kind", "unknown_item", "item_id", "no answer has this id"),
        ("bb,x,tone,Kind", "unknown_item", "item_id", "did you mean 'b'"),
        ("a,x,tone,Neutral", "conflicting_label", "label", "'x' said 'Kind' of 'a' on tone in row"),
    ],
)
def test_a_fault_in_labels_is_named(
    row: str, kind: str, column: str, message: str, rubric: Rubric, write: Write
) -> None:
    labels = write("labels.csv", f"{LONG}a,x,tone,Kind\n{row}\n")
    (error,) = errors(rubric, write("answers.csv", ANSWERS), labels)
    assert (error.kind, error.file, error.line, error.field) == (kind, str(labels), 3, column)
    assert message in error.message


def test_an_unknown_label_names_those_that_are_allowed(rubric: Rubric, write: Write) -> None:
    labels = write("l.csv", "item_id,annotator,tone\na,x,1\n")
    (error,) = errors(rubric, write("answers.csv", ANSWERS), labels)
    assert error.found == "'1'"
    assert error.allowed.startswith("Kind, Neutral, Rude – openly, Cannot say; `spell` or `blank`")


@pytest.mark.parametrize(
    ("answers", "labels", "kind", "line", "column", "times"),
    [
        (ANSWERS, LONG + "a,x,tone,\nb,x,tone,\u200b \n", "blank_label", 2, "label", 2),
        (ANSWERS, LONG + "a,x,tone,Kind\na,x,Tone of voice,kind\n", "duplicate_label", 3, "label",
         1),
        (ANSWERS, "item_id,annotator,tone,when\na,x,Kind,May\n", "unused_column", 1, "when", 1),
        (ANSWERS, LONG + "a,x#1,tone,Kind\n", "slot_name", 2, "label", 1),
        ("item_id,text,tones of voice\na,x,y\n", "", "unused_column", 1, "tones of voice", 1),
        ("item_id,text\na,o\u200bne\n", "", "invisible_characters", 2, "", 1),
        ("item_id,text\na,one\nb, \nc,\u200b\n", "", "empty_answer", 3, "", 2),
        (ANSWERS + "a,one\n", "", "duplicate_item", 5, "", 1),
        ("item_id,text\na,#NAME?\n", "", "spreadsheet_text", 2, "", 1),
        ("item_id,text\na," + "x" * 32_767, "", "spreadsheet_text", 2, "", 1),
        ("item_id,text\na,o\0ne\n", "", "replaced_character", 2, "text", 1),
    ],
)  # fmt: skip
def test_an_oddity_is_counted_and_hinders_nothing(
    answers: str, labels: str, kind: str, line: int, column: str, times: int, rubric: Rubric,
    write: Write,
) -> None:  # fmt: skip
    paths = [write("answers.csv", answers), *([write("labels.csv", labels)] if labels else [])]
    (warning,) = load_data(paths, rubric).warnings
    assert (warning.kind, warning.file) == (kind, str(paths[-1]))
    assert (warning.line, warning.field) == (line, column)
    assert f"({times} time" in warning.message


def test_cells_are_read_without_space_and_invisible_signs(rubric: Rubric, write: Write) -> None:
    labels = LONG + " a\u200b,x ,tone,Ki\u00adnd\na,x,tone,\nb,x,tone,\nb,x,tone,Neutral\n"
    answers = write("answers.csv", "item_id,text\na, o\u200bne\nb,Mar-02\n")
    data = load_data([answers, write("labels.csv", labels)], rubric)
    assert [x.text for x in data.answers] == [" o\u200bne", "Mar-02"]  # texts are kept
    labels = [(x.item_id, x.annotator, x.label) for x in data.labels]
    assert labels == [("a", "x", "Kind"), ("b", "x", "Neutral")]  # blank contradicts no label


def test_all_faults_of_all_files_are_named_at_once(rubric: Rubric, write: Write) -> None:
    answers = write("answers.csv", "item_id,text\na,one\n,x\na,two\n")
    labels = write("labels.csv", LONG + "a,x,tone,Kimd\nz,x,tone,Kind\n")
    assert {(p.kind, Path(p.file).name, p.line) for p in errors(rubric, answers, labels)} == {
        ("blank_id", "answers.csv", 3), ("conflicting_item", "answers.csv", 4),
        ("unknown_label", "labels.csv", 2), ("unknown_item", "labels.csv", 3),
    }  # fmt: skip
    broken = write("more.csv", "what,is,this\n1,2,3\n")  # whose rows may be the unknown item
    kinds = {p.kind for p in errors(rubric, answers, labels, broken)}
    assert kinds == {"blank_id", "conflicting_item", "unknown_label", "unrecognised_file"}


def test_many_faults_of_a_kind_are_counted(rubric: Rubric, write: Write) -> None:
    rows = "".join(f"a,x{i},tone,bad{i}\n" for i in range(250))
    problems = errors(rubric, write("answers.csv", ANSWERS), write("labels.csv", LONG + rows))
    assert len(problems) == 101
    assert problems[-1].message == "and 150 more such errors, 250 in all, the last in row 251"


def test_ids_that_look_alike_are_told_apart_by_an_error(rubric: Rubric, write: Write) -> None:
    answers = write("answers.csv", "item_id,text\ncafé,one\n")
    labels = write("labels.csv", LONG + "cafe\u0301,x,tone,Kind\n")
    (error,) = errors(rubric, answers, labels)
    assert (error.kind, Path(error.file).name, error.line) == ("id_collision", "labels.csv", 2)


def test_a_table_of_a_preference_may_call_it_winner(write: Write) -> None:
    rows = "item_id,model_a,model_b,annotator,winner\nq,x,y,ann,model_a\n"
    data = load_data(write("votes.csv", rows), load_rubric("preference"))
    assert [(a.kind, x.annotator) for a, x in zip(data.answers, data.labels, strict=True)] == [
        ("pair", "ann")
    ]
