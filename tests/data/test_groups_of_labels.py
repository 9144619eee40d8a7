"""A column `group` or `question` of a table of labels says which items belong together."""

from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data

TONE = jb.Rubric.from_labels({"tone": ["Friendly", "Curt", "Rude"]})
SIX = [f"i{n}" for n in range(6)]
TEXTS = pd.DataFrame({"item_id": SIX, "text": [f"Reply number {n}." for n in range(6)]})
LABELS = pd.DataFrame({"item_id": SIX, "annotator": "Ann", "tone": ["Curt", "Rude"] * 3})
THREE = [f"g{n // 2}" for n in range(6)]
YAML = (
    "files:\n  - {path: answers.csv, items: {item_id: item_id, text: text}}\n"
    "  - path: labels.csv\n    labels: {item_id: item_id, annotator: annotator,"
    " metrics: {tone: tone}, KEYS}\n"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(answers: pd.DataFrame, labels: pd.DataFrame) -> list[str]:
    """The group of each answer of two plain files, as `data` of a bench.yaml names them."""
    answers.to_csv("answers.csv", index=False)
    labels.to_csv("labels.csv", index=False)
    found = load_data([Path("answers.csv"), Path("labels.csv")], TONE).answers
    assert [a.content_hash for a in found] == [
        a.content_hash for a in load_data(Path("answers.csv"), TONE).answers
    ]
    return [answer.group for answer in found]


@pytest.mark.parametrize("column", ["group", "question"])
def test_it_is_read_with_and_without_answers(column: str) -> None:
    labels = LABELS.assign(**{column: THREE})
    assert read(TEXTS, labels) == THREE
    for given in ({}, {"answers": TEXTS}, {"answers": "answers.csv"}):
        assert jb.study(labels, rubric=TONE, **given).clusters.n == 3
    alone = load_data(Path("labels.csv"), TONE).answers
    assert [answer.group for answer in alone] == THREE


def test_a_group_counts_more_than_a_question() -> None:
    six = TEXTS.assign(question=[f"Question {n}?" for n in range(6)])
    assert read(six, LABELS.assign(group=THREE)) == THREE
    assert read(six.assign(group=THREE), LABELS.assign(question=six.question)) == THREE
    assert read(six, LABELS.assign(question=six.question + " ")) == list(six.question)
    blank = LABELS.assign(group=[*THREE[:5], None])
    assert read(TEXTS, blank) == [*THREE[:5], "i5"]
    both = pd.concat([blank, LABELS.assign(annotator="Bob", group=THREE)])
    assert read(TEXTS, both) == THREE


@pytest.mark.parametrize("column", ["group", "question"])
def test_two_that_differ_are_one_error_with_both_rows(column: str) -> None:
    answers, labels = TEXTS.assign(**{column: THREE}), LABELS.assign(**{column: THREE})
    labels.loc[3, column] = "g9"
    with pytest.raises(jb.SetupError) as error:
        read(answers, labels)
    assert str(error.value) == (
        f"labels.csv:5: {column}: 'i3' has the {column} 'g1' in row 5 of answers.csv; found 'g9'"
    )
    twice = pd.concat([labels, labels[3:4].assign(annotator="Bob", **{column: "g1"})])
    with pytest.raises(jb.SetupError, match=f"labels.csv:8: {column}: 'i3' .*'g9' in row 5; found"):
        read(TEXTS, twice)


def test_a_data_yaml_names_the_columns() -> None:
    read(TEXTS, LABELS.assign(topic=THREE))
    Path("data.yaml").write_text(YAML.replace("KEYS", "group: topic"))
    assert [answer.group for answer in load_data(Path("data.yaml"), TONE).answers] == THREE
    Path("data.yaml").write_text(YAML.replace("KEYS", "group: topic, criterion: topic"))
    with pytest.raises(jb.SetupError, match="remove question and group"):
        load_data(Path("data.yaml"), TONE)


def test_a_large_set_is_regrouped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebench.data.gather.MOST_IN_MEMORY", 0)
    assert read(TEXTS, LABELS.assign(group=THREE)) == THREE
