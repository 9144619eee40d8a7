"""What tables say of the same items and people fits together, or is an error with both rows."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.records import Answer

TONE = jb.Rubric.from_labels({"tone": ["Friendly", "Curt", "Rude"]})
ITEMS = pd.DataFrame({
    "item_id": [f"i{n}" for n in range(12)],
    "question": [f"Why is number {n // 2} so?" for n in range(12)],
    "system": ["alpha", "beta"] * 6,
    "type": ["short", "long", "odd"] * 4,
})  # fmt: skip
VERDICTS = ITEMS.assign(judge="gpt-judge", tone=["Friendly", "Curt", "Rude"] * 4)
LABELS = ITEMS.assign(annotator="Ann", tone=["Friendly", "Curt", "Rude"] * 4).head(6)
TEXTS = ITEMS[["item_id"]].assign(text=[f"This is reply number {n} of all." for n in range(12)])
THREE = [f"g{n // 2}" for n in range(6)]


def items(labels: Any, verdicts: Any = None, answers: Any = None) -> list[Answer]:
    """The answers of a study that keeps `type`, by id."""
    answers = jb.study(labels, verdicts, answers, columns={"type": "kept"}).answers
    return sorted(answers, key=lambda answer: int(answer.item_id[1:]))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(answers: pd.DataFrame, labels: pd.DataFrame) -> list[Answer]:
    """The answers of two plain files, as `data` of a bench.yaml names them."""
    answers.to_csv("answers.csv", index=False)
    labels.to_csv("labels.csv", index=False)
    both = load_data([Path("answers.csv"), Path("labels.csv")], TONE).answers
    alone = load_data(Path("answers.csv"), TONE).answers
    assert [a.content_hash for a in both] == [a.content_hash for a in alone]
    return list(both)


# Items -------------------------------------------------------------------------------------------


def test_items_that_only_judges_have_are_what_these_say() -> None:
    rows = ITEMS.to_dict("records")
    assert [(a.item_id, a.question, a.system, a.metadata) for a in items(LABELS, VERDICTS)] == [
        (r["item_id"], r["question"], r["system"], {"type": r["type"]}) for r in rows
    ]
    assert jb.study(LABELS, VERDICTS).clusters.n == 6


def test_answers_decide_and_lack_only_what_is_filled_in() -> None:
    answers = TEXTS.assign(question=ITEMS.question, type=[*[None] * 11, "mine"])
    rows = items(LABELS, VERDICTS, answers)
    assert [a.metadata["type"] for a in rows] == [*ITEMS.type[:11], "mine"]
    assert [a.system for a in rows] == [*ITEMS.system]
    assert [a.content_hash for a in rows] == [
        a.content_hash for a in items(LABELS, VERDICTS.drop(columns="system"), answers)
    ]


def test_judges_override_nothing_that_labels_say() -> None:
    other = VERDICTS.assign(type="another", system=["beta", "alpha"] * 6)
    rows = items(LABELS, other)
    assert [a.metadata["type"] for a in rows] == [*LABELS.type, *["another"] * 6]
    assert [a.system for a in rows[:6]] == [*LABELS.system]
    blank = LABELS.assign(type=None, system=[None, *LABELS.system[1:]])
    rows = items(blank, VERDICTS)
    assert [a.metadata for a in rows] == [{"type": text} for text in ITEMS.type]
    assert [a.system for a in rows] == [*ITEMS.system]
    both = pd.concat([VERDICTS, other.assign(judge="llama-judge")])  # the first judge counts
    assert [a.metadata["type"] for a in items(LABELS, both)] == [*ITEMS.type]


def test_two_label_rows_that_differ_are_one_error() -> None:
    both = pd.concat([LABELS, LABELS.assign(annotator="Bob")], ignore_index=True)
    both.loc[7, "type"] = "round"
    with pytest.raises(SetupError) as error:
        items(both, VERDICTS)
    (problem,) = error.value.problems
    assert (problem.kind, problem.field, problem.found) == ("conflicting_item", "type", "'round'")
    assert "'i1' has the type 'long' in row 3" in problem.message
    blank = both.assign(type=["short", *[None] * 6, *both.type[7:]])
    assert items(blank, VERDICTS)[1].metadata == {"type": "round"}


@pytest.mark.parametrize("name", ["weight", "Sampling Weight", "inclusionProbability"])
def test_weights_are_always_kept(name: str) -> None:
    labels = LABELS.drop(columns="type").assign(**{name: ["1", "2"] * 3})
    study = jb.study(labels, VERDICTS)
    assert [metric.title for metric in study.rubric.metrics] == ["tone"]
    weights = [answer.metadata.get(name) for answer in study.answers]
    assert weights == ["1", "2"] * 3 + [None] * 6


def test_a_kept_column_is_no_label_no_person_and_no_judge() -> None:
    labels = LABELS.assign(reviewer=LABELS.tone, grade=["1", "2"] * 3, annotator2="Curt")
    verdicts = VERDICTS.assign(grader=["a", "b"] * 6)
    keep = dict.fromkeys(["type", "reviewer", "grade", "grader", "annotator2"], "kept")
    study = jb.study(labels, verdicts, columns=keep)
    assert [metric.title for metric in study.rubric.metrics] == ["tone"]
    assert [j.name for j in study.judges if j.kind == "judge"] == ["gpt-judge"]
    assert study.answers[0].metadata["grade"] == "1"


# Questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["group", "question"])
def test_labels_say_which_items_belong_together(column: str) -> None:
    texts, labels = TEXTS.head(6), LABELS[["item_id", "annotator", "tone"]]
    labels = labels.assign(**{column: THREE})
    assert [answer.group for answer in load(texts, labels)] == THREE
    for more in ({}, {"answers": texts}, {"answers": "answers.csv"}):
        assert jb.study(labels, rubric=TONE, **more).clusters.n == 3
    alone = load_data(Path("labels.csv"), TONE).answers
    assert [answer.group for answer in alone] == THREE


def test_a_group_counts_more_than_a_question() -> None:
    texts, labels = TEXTS.head(6), LABELS[["item_id", "annotator", "tone"]]
    asked = texts.assign(question=[f"Question {n}?" for n in range(6)])

    def groups(answers: pd.DataFrame, labels: pd.DataFrame) -> list[str]:
        return [answer.group for answer in load(answers, labels)]

    assert groups(asked, labels.assign(group=THREE)) == THREE
    assert groups(asked.assign(group=THREE), labels.assign(question=asked.question)) == THREE
    assert groups(asked, labels.assign(question=asked.question + " ")) == [*asked.question]
    blank = labels.assign(group=[*THREE[:5], None])
    assert groups(texts, blank) == [*THREE[:5], "i5"]
    both = pd.concat([blank, labels.assign(annotator="Bob", group=THREE)])
    assert groups(texts, both) == THREE


@pytest.mark.parametrize("column", ["group", "question"])
def test_two_questions_of_an_item_are_an_error(column: str) -> None:
    texts = TEXTS.head(6).assign(**{column: THREE})
    labels = LABELS[["item_id", "annotator", "tone"]].assign(**{column: THREE})
    labels.loc[3, column] = "g9"
    with pytest.raises(SetupError) as error:
        load(texts, labels)
    assert str(error.value) == (
        f"labels.csv:5: {column}: 'i3' has the {column} 'g1' in row 5 of answers.csv; found 'g9'"
    )
    twice = pd.concat([labels, labels[3:4].assign(annotator="Bob", **{column: "g1"})])
    with pytest.raises(SetupError, match=f"labels.csv:8: {column}: 'i3' .*'g9' in row 5; found"):
        load(TEXTS.head(6), twice)


# People and ids ----------------------------------------------------------------------------------


def test_names_in_several_spellings_are_one_person() -> None:
    labels = LABELS[["item_id", "tone"]].assign(annotator=["Zoë", "zoë", "Zoe\u0308 "] * 2)
    with pytest.warns(UserWarning, match="Zoë, zoë and .* are one person"):
        study = jb.study(labels, VERDICTS, rubric=TONE)
    assert study.humans["tone"].ratings.annotators == ("Zoë",)


def test_items_without_an_answer_are_errors_or_left_out() -> None:
    labels = pd.concat([LABELS, LABELS.head(2).assign(item_id="zz", tone=["Curt", "Rude"])])
    labels[["item_id", "annotator", "tone"]].to_csv("labels.csv", index=False)
    TEXTS.to_csv("answers.csv", index=False)
    layout = """tables:
- {file: answers.csv, columns: {item_id: item, text: text}}
- {file: labels.csv, columns: {item_id: item, annotator: annotator, tone: label tone}}
"""
    Path("layout.yaml").write_text(layout)
    with pytest.raises(SetupError) as error:
        load_data(Path("layout.yaml"), TONE)
    kinds = {(p.kind, p.line) for p in error.value.problems}
    assert kinds == {("unknown_item", 8), ("conflicting_label", 9)}
    Path("layout.yaml").write_text(layout + "only_common: true\nrepeats: first\n")
    data = load_data(Path("layout.yaml"), TONE)
    assert {label.item_id for label in data.labels} == {*LABELS.item_id}
    assert [(w.kind, w.line) for w in data.warnings if w.kind == "ignored_label"] == [
        ("ignored_label", 8)
    ]  # fmt: skip
