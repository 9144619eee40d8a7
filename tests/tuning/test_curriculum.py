"""What machines labelled is learnt from in stages, and never of what is then judged."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from learning_case import write_bench

from judgebench.errors import SetupError
from judgebench.learning.learnt import Material, TrainingSet, material_of
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric, load_rubric
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.tuning.config import SHUFFLED
from judgebench.tuning.examples import (
    blocks_of,
    described,
    joined,
    read_silver,
    with_silver,
)


@pytest.fixture(scope="module")
def rubric(tmp_path_factory: pytest.TempPathFactory) -> Rubric:
    folder = tmp_path_factory.mktemp("rubric")
    write_bench(folder, "  - {name: a, learn: bag-of-words}")
    return load_rubric(str(folder / "tone.yaml"))


def answer(n: object, question: int, text: int, system: str = "") -> Answer:
    said = f"this is what answer number {text} says of the matter, {text} times over"
    return Answer(f"i{n}", said, question=f"what of {question}?", system=system)


def material_from(rubric: Rubric, answers: list[Answer], folds: int = 3) -> Material:
    labels = [HumanLabel(a.item_id, "Ann", "tone", "Curt") for a in answers]
    return material_of(rubric, indexed(answers), labels, TruthConfig(), folds)


def silver_of(rubric: Rubric, answers: list[Answer], label: int = 2) -> TrainingSet:
    rows = np.arange(len(answers))
    labels = {"tone": np.full(len(answers), label)}
    return TrainingSet(rubric, answers, labels, rows, rows, ["because"] * len(answers))


PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 30)), min_size=12, max_size=40)


@settings(max_examples=40, deadline=None)
@given(PAIRS, PAIRS, st.integers(0, 2))
def test_silver_of_a_fold_never_enters_its_training(rubric, people, machine, upper) -> None:
    answers = [answer(n, *pair) for n, pair in enumerate(people)]
    assume(len({question for question, _ in people}) > 8)
    try:
        plain = material_from(rubric, answers)
    except SetupError:  # too few components for folds
        assume(False)
    # A machine's texts differ in their case, and the ids are those of other answers.
    said = [answer(n, *pair) for n, pair in enumerate(machine)]
    said = [Answer(a.item_id, a.text.upper(), question=a.question) for a in said]
    material = with_silver(plain, {"silver.jsonl": silver_of(rubric, said)})
    assert material.folds.of.tolist() == plain.folds.of.tolist()
    for cell in material.cells:
        own = {p for row in cell.judged for p in (answers[row].question, answers[row].text)}
        own |= {part.upper() for part in own}
        found = material.training(cell.train, cell.judged)
        kept = found.beside["silver.jsonl"]
        assert all(a.question not in own and a.text not in own for a in kept.answers)
        due = [a for a in said if a.question not in own and a.text not in own]
        # Equal texts of two questions may tie more together, never less.
        assert {a.item_id for a in kept.answers} == {a.item_id for a in due}
        assert set(found.labels["tone"].tolist()) <= {1}  # the truth is what people said
        for train, judged in found.folds(2):
            nested = {p for a in judged.answers for p in (a.question, a.text, a.text.upper())}
            for one in train.beside["silver.jsonl"].answers:
                assert not {one.question, one.text} & nested


def test_a_system_that_is_held_out_is_held_out_of_the_silver(rubric: Rubric) -> None:
    answers = [answer(n, n, n, "x" if n % 2 else "y") for n in range(12)]
    said = [answer(n, n + 50, n + 50, "x" if n % 2 else "y") for n in range(6)]
    material = with_silver(material_from(rubric, answers), {"s": silver_of(rubric, said)})
    rows = np.arange(12)
    found = material.training(rows[rows % 2 == 0][:4], rows[rows % 2 == 1])
    assert {a.system for a in found.beside["s"].answers} == {"y"}
    assert {a.system for a in material.training(rows).beside["s"].answers} == {"x", "y"}


def sets(rubric: Rubric, human: int, silver: int) -> TrainingSet:
    answers = [answer(n, n, n) for n in range(human)]
    said = [answer(f"s{n}", n + 99, n + 99) for n in range(silver)]
    material = with_silver(material_from(rubric, answers), {"low.jsonl": silver_of(rubric, said)})
    return material.training(np.arange(human))


STAGES = ("low.jsonl", "mixed", "human")


def test_the_stages_are_those_of_the_paper(rubric: Rubric) -> None:
    blocks = blocks_of(sets(rubric, 30, 20), STAGES, seed=1)
    assert [(b.name, len(b.train)) for b in blocks] == [
        ("low.jsonl", 10), ("mixed", 25), ("human", 15),
    ]  # fmt: skip
    ids = [a.item_id for b in blocks for a in b.train.answers]
    assert len(ids) == len(set(ids)) == 50  # each is learnt from in one stage
    assert set(blocks[0].train.labels["tone"].tolist()) == {2}
    assert set(blocks[1].train.labels["tone"].tolist()) == {1, 2}
    assert set(blocks[2].train.labels["tone"].tolist()) == {1}
    # Reasons go with their answers, and people gave none.
    assert list(blocks[1].train.reasons) == ["because"] * 10 + [""] * 15
    assert described(blocks, 1) == {
        "stages": [{"data": b.name, "n": len(b.train)} for b in blocks], "stages_seed": 1,
    }  # fmt: skip
    again = blocks_of(sets(rubric, 30, 20), STAGES, seed=1)
    assert [b.train.hash for b in again] == [b.train.hash for b in blocks]
    other = blocks_of(sets(rubric, 30, 20), STAGES, seed=2)
    assert [b.train.hash for b in other] != [b.train.hash for b in blocks]


def test_without_a_mixed_stage_all_is_learnt_from(rubric: Rubric) -> None:
    train = sets(rubric, 30, 20)
    stages = ("low.jsonl", "human")
    assert [len(b.train) for b in blocks_of(train, stages, 0)] == [20, 30]
    assert [(b.name, len(b.train)) for b in blocks_of(train, (), 0)] == [("human", 30)]


def test_shuffled_are_the_same_answers_in_one_block(rubric: Rubric) -> None:
    train = sets(rubric, 30, 20)
    blocks = blocks_of(train, STAGES, 3)
    (one,) = blocks_of(train, (*STAGES, SHUFFLED), 3)
    in_order = joined([block.train for block in blocks])
    assert sorted(a.item_id for a in one.train.answers) == sorted(
        a.item_id for a in in_order.answers
    )
    assert [a.item_id for a in one.train.answers] != [a.item_id for a in in_order.answers]
    by_id = dict(zip([a.item_id for a in in_order.answers], in_order.labels["tone"], strict=True))
    assert [by_id[a.item_id] for a in one.train.answers] == one.train.labels["tone"].tolist()


def test_what_is_unsound_in_silver_is_said_together(tmp_path: Path, rubric: Rubric) -> None:
    path = tmp_path / "silver.jsonl"
    good = {"item_id": "a", "text": "t", "question": "q", "labels": {"tone": "Curt"}}
    lines = [
        good, {**good, "labels": {"tone": "Loud"}}, {**good, "labels": {"taste": "Curt"}},
        {"item_id": "b", "labels": {"tone": "Curt"}}, {**good, "teacher": "x", "item_id": "c"},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(SetupError) as caught:
        read_silver(path, rubric)
    said = str(caught.value).splitlines()
    assert said == [
        f"{path}:2: labels.tone: is not a label; found Loud; allowed: Friendly, Curt, Rude",
        f"{path}:3: labels: has a label of no metric of the rubric; found taste; allowed: tone",
        f"{path}:4: text: Field required",
    ]
    path.write_text("")
    with pytest.raises(SetupError, match="holds no line to learn from"):
        read_silver(path, rubric)
    path.write_text(json.dumps(good) + "\n" + json.dumps({**good, "rationale": "so"}) + "\n{")
    found = read_silver(path, rubric)
    assert found.labels["tone"].tolist() == [1, 1]
    assert list(found.reasons) == ["", "so"]
