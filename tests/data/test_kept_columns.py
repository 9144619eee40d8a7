"""Columns that are neither ids nor labels stay with each item, also of those nobody labelled."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.guess import Hints
from judgebench.data.load import load_data
from judgebench.data.spec import DataSpec
from judgebench.data.understand import Understood, understand_given
from judgebench.records import Answer
from judgebench.starter import save

TONE = jb.Rubric.from_labels({"tone": ["Friendly", "Curt", "Rude"]})
IDS = [f"i{n}" for n in range(12)]
ITEMS = pd.DataFrame({
    "item_id": IDS,
    "question": [f"Why is number {n // 2} so?" for n in range(12)],
    "system": ["alpha", "beta"] * 6,
    "type": ["short", "long", "odd"] * 4,
})  # fmt: skip
VERDICTS = ITEMS.assign(judge="gpt-judge", tone=["Friendly", "Curt", "Rude"] * 4)
LABELS = ITEMS.assign(annotator="Ann", tone=["Friendly", "Curt", "Rude"] * 4).head(6)
TEXTS = ITEMS[["item_id"]].assign(text=[f"This is reply number {n} of all." for n in range(12)])
KEEP: dict[str, Any] = {"keep": ["type"]}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def known(labels: Any, verdicts: Any = None, answers: Any = None, **given: Any) -> list[Answer]:
    """The answers of a study, by id."""
    found = jb.study(labels, verdicts, answers, **given).answers
    return sorted(found, key=lambda answer: int(answer.item_id[1:]))


def understood(*tables: Any, keep: str = "type") -> Understood:
    return understand_given(*tables, hints=Hints(keep=(keep,)))


def read(spec: str, **tables: pd.DataFrame) -> list[Answer]:
    """The answers of a data.yaml, as a benchmark reads them."""
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    Path("data.yaml").write_text(spec)
    return list(load_data(Path("data.yaml"), TONE).answers)


def test_items_that_only_verdicts_name_have_what_the_verdicts_say_of_them() -> None:
    found = known(LABELS, VERDICTS, columns=KEEP)
    rows = ITEMS.to_dict("records")
    assert [(a.item_id, a.question, a.group, a.system, a.metadata) for a in found] == [
        (r["item_id"], r["question"], r["question"], r["system"], {"type": r["type"]}) for r in rows
    ]
    assert jb.study(LABELS, VERDICTS).clusters.n == 6


def test_only_columns_that_labels_have_in_the_same_role_are_read() -> None:
    found = known(LABELS.drop(columns=["system", "type"]), VERDICTS)
    assert [(a.system, a.metadata) for a in found] == [("", {})] * 12
    judged_by = VERDICTS.drop(columns="judge").assign(system="gpt-judge")
    assert known(LABELS, judged_by)[-1].system == ""


def test_answers_decide_and_only_what_they_lack_is_filled_in() -> None:
    answers = TEXTS.assign(question=ITEMS.question)
    answers["type"] = [*[None] * 11, "mine"]
    found = known(LABELS, VERDICTS, answers, columns=KEEP)
    assert [a.metadata["type"] for a in found] == [*ITEMS.type[:11], "mine"]
    assert [a.content_hash for a in found] == [
        a.content_hash for a in known(LABELS.drop(columns="type"), VERDICTS, answers)
    ]
    assert [a.system for a in found[:6]] == [*ITEMS.system[:6]]


def test_verdicts_never_override_and_never_contradict() -> None:
    other = VERDICTS.assign(type="another", system=["beta", "alpha"] * 6)
    found = known(LABELS, other, columns=KEEP)
    assert [a.metadata["type"] for a in found] == [*LABELS.type, *["another"] * 6]
    assert [a.system for a in found[:6]] == [*LABELS.system]
    twice = pd.concat([VERDICTS, other.assign(judge="llama-judge")])
    assert [a.metadata["type"] for a in known(LABELS, twice, columns=KEEP)] == [*ITEMS.type]


def test_blank_cells_fill_nothing() -> None:
    labels = LABELS.assign(type=None, system=[None, *LABELS.system[1:]])
    found = known(labels, VERDICTS, columns=KEEP)
    assert [a.metadata for a in found] == [{"type": text} for text in ITEMS.type]
    assert [a.system for a in found] == [*ITEMS.system]
    blank = VERDICTS.assign(type=" ")
    assert known(LABELS, blank, columns=KEEP)[-1].metadata == {}


def test_two_label_rows_that_differ_are_one_error_with_both_values() -> None:
    both = pd.concat([LABELS, LABELS.assign(annotator="Bob")], ignore_index=True)
    both.loc[7, "type"] = "round"
    with pytest.raises(jb.SetupError) as error:
        jb.study(both, VERDICTS, columns=KEEP)
    (problem,) = error.value.problems
    assert problem.kind == "conflicting_item"
    assert problem.field == "type"
    assert "'i1' has the type 'long' in row 3" in problem.message
    assert problem.found == "'round'"
    blank = both.assign(type=["short", *[None] * 6, *both.type[7:]])
    assert known(blank, VERDICTS, columns=KEEP)[1].metadata == {"type": "round"}


def test_a_kept_column_is_no_label_no_annotator_and_no_judge() -> None:
    marked = LABELS.assign(reviewer=LABELS.tone, grade=["1", "2"] * 3)
    judged = VERDICTS.assign(grader=["a", "b"] * 6)
    given = {"keep": ["type", "reviewer", "grade", "grader", "tone_of_day", "annotator2"]}
    study = jb.study(marked.assign(tone_of_day="Curt", annotator2="Curt"), judged, columns=given)
    assert [metric.title for metric in study.rubric.metrics] == ["tone"]
    assert any("1 annotator in column annotator" in note for note in study.notes)
    assert [j.name for j in study.judges if j.kind == "judge"] == ["gpt-judge"]
    assert study.answers[0].metadata["grade"] == "1"


@pytest.mark.parametrize(
    "name", ["weight", "Sampling Weight", "probability", "inclusionProbability"]
)
def test_weights_of_labels_are_always_kept(name: str) -> None:
    labels = LABELS.drop(columns="type")
    weighted = labels.assign(**{name: ["1", "2"] * 3})
    study = jb.study(weighted, VERDICTS)
    assert [metric.title for metric in study.rubric.metrics] == ["tone"]
    assert [a.metadata[name] for a in known(weighted, VERDICTS)[:6]] == ["1", "2"] * 3
    assert any(f"kept with each item: {name}" in note for note in study.notes)
    with_texts = TEXTS.assign(**{name: ["1", "2"] * 6})
    assert known(labels, VERDICTS, with_texts)[7].metadata == {name: "2"}
    assert known(labels, VERDICTS.assign(**{name: "0.5"}))[-1].metadata == {}


def test_an_unknown_column_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(jb.SetupError, match=r"keep: is not a column.*did you mean 'type'") as error:
        jb.study(LABELS, VERDICTS, columns={"keep": ["tpye"]})
    assert len(error.value.problems) == 1
    only_there = TEXTS.assign(source=["a", "b"] * 6)
    assert known(LABELS, VERDICTS, only_there, columns={"keep": ["source"]})[1].metadata == {
        "source": "b"
    }


def test_a_column_may_be_kept_and_be_the_question_or_the_system() -> None:
    found = known(LABELS, VERDICTS, columns={"keep": ["system", "type"], "question": "type"})
    assert [(a.system, a.group) for a in found] == [
        (row.system, row.type) for row in ITEMS.itertuples()
    ]
    assert found[-1].metadata == {"system": "beta", "type": "odd"}


def test_of_two_responses_nothing_is_kept() -> None:
    pairs = pd.DataFrame({
        "question_id": [f"q{n}" for n in range(6)], "model_a": "a", "model_b": "b",
        "annotator": "Ann", "winner": ["model_a", "model_b"] * 3, "weight": "1", "type": "x",
    })  # fmt: skip
    assert understand_given(pairs).as_spec()["files"][0]["labels"][0].get("metadata") is None
    with pytest.raises(jb.SetupError, match="keep: columns are kept with items"):
        jb.study(pairs, columns=KEEP)
    about = {"item_id": "q", "pair": ["a", "b"], "metrics": {"tone": "winner"}, "metadata": ["x"]}
    with pytest.raises(ValueError, match="metadata is kept of items"):
        DataSpec.model_validate({"files": [{"path": "x.csv", "labels": [about]}]})


def test_what_is_understood_is_written_and_reads_the_same(tmp_path: Path) -> None:
    for name, table in {"labels": LABELS, "gpt-judge": VERDICTS}.items():
        table.to_csv(f"{name}.csv", index=False)
    found = understood("labels.csv", "gpt-judge.csv")
    labels, verdicts = found.as_spec()["files"]
    roles = {"question": "question", "system": "system", "metadata": ["type"]}
    for (entry,) in (labels["labels"], verdicts["verdicts"]):
        assert entry.items() >= roles.items()
    save(found, tmp_path / "bench")
    kept = load_data(tmp_path / "bench" / "data.yaml", found.rubric).answers
    again = {a.item_id: a for a in known("labels.csv", "gpt-judge.csv", columns=KEEP)}
    assert len(kept) == 6
    assert all(answer == again[answer.item_id] for answer in kept)


def test_a_benchmark_fills_in_what_its_answers_lack() -> None:
    spec = """files:
  - {path: answers.csv, items: {item_id: item_id, text: text, metadata: [type]}}
  - path: verdicts.csv
    verdicts: {item_id: item_id, judge: judge, metrics: {tone: tone}, group: question,
      system: system, metadata: [type]}
"""
    answers = TEXTS.assign(type=["mine", *[None] * 11])
    found = read(spec, answers=answers, verdicts=VERDICTS)
    assert [a.metadata["type"] for a in found] == ["mine", *ITEMS.type[1:]]
    assert [(a.group, a.system, a.question) for a in found] == [
        (row.question, row.system, "") for row in ITEMS.itertuples()
    ]
    plain = spec.partition("  - path: verdicts")[0]
    assert [a.content_hash for a in found] == [a.content_hash for a in read(plain)]
