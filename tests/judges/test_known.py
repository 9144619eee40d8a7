"""Baselines that know a column of an answer, and never the answer."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.judges.control import ControlJudge, Fit, control_judges, known_columns, name_of
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Rubric

RUBRIC = Rubric.from_labels({"safe": ["Safe", "Unsure", "Unsafe"]})
TEXTS = RUBRIC.metrics[0].label_texts


def answers(n: int = 60, per_question: int = 3) -> list[Answer]:
    """Of three systems; each is asked every question."""
    return [
        Answer(
            f"i{i}", f"text {i}", question=f"q{i // per_question}", system=f"s{i % 3}",
            metadata={"kind": f"k{i // per_question % 4}", "weight": f"{i % 2}"},
        )
        for i in range(n)
    ]  # fmt: skip


def labels_of(items: list[Answer], codes: list[int]) -> list[HumanLabel]:
    return [
        HumanLabel(a.item_id, "ann", "safe", TEXTS[code])
        for a, code in zip(items, codes, strict=True)
    ]


def said(by, items, human, seed: int = 0) -> dict[str, str]:
    fit = Fit(RUBRIC, items, human, seed, [by])
    judge = ControlJudge(by, fit)
    return {v.item_id: str(v.labels.get("safe")) for v in judge.verdicts()}


CODES = st.lists(st.integers(0, 2), min_size=60, max_size=60)


@settings(max_examples=40, deadline=None)
@given(CODES, CODES, st.integers(0, 5), st.sampled_from([("system",), ("kind", "system")]))
def test_a_rule_never_sees_labels_of_the_half_that_it_judges(one, other, seed, by) -> None:
    items = answers()
    half = Fit(RUBRIC, items, [], seed).half
    for side in (0, 1):
        mixed = np.where(half == side, other, one).tolist()
        before, after = (said(by, items, labels_of(items, c), seed) for c in (one, mixed))
        own = [a.item_id for a, h in zip(items, half.tolist(), strict=True) if h == side]
        assert [before[i] for i in own] == [after[i] for i in own]


@settings(max_examples=40, deadline=None)
@given(CODES, st.integers(0, 59), st.integers(0, 2), st.integers(0, 5))
def test_whoever_knows_the_question_never_sees_the_answers_own_label(codes, i, new, seed) -> None:
    items = answers(per_question=20)
    changed = [*codes[:i], new, *codes[i + 1 :]]
    one, two = (said(("question",), items, labels_of(items, c), seed) for c in (codes, changed))
    assert one[f"i{i}"] == two[f"i{i}"]


def test_the_label_is_the_commonest_of_the_other_half_with_few_drawn_to_all() -> None:
    """By pandas, in another way."""
    rng = np.random.default_rng(3)
    items = answers(240)
    table = pd.DataFrame({"system": [a.system for a in items], "half": Fit(RUBRIC, items, []).half})
    table["code"] = np.where(
        table.system == "s1",
        rng.choice(3, 240, p=[0.2, 0.2, 0.6]),
        rng.choice(3, 240, p=[0.5, 0.4, 0.1]),
    )
    found = said(("system",), items, labels_of(items, table.code.tolist()))
    for row in table.itertuples():
        other = table[table.half != row.half]
        counts = other[other.system == row.system].code.value_counts()
        shares = other.code.value_counts(normalize=True)
        best = (counts.reindex(range(3), fill_value=0) + 5 * shares.reindex(range(3))).idxmax()
        assert found[f"i{row.Index}"] == TEXTS[best]
    assert len(set(found.values())) > 1


def test_a_value_with_two_labels_is_no_rule_yet() -> None:
    """Two labels of a rare system do not outweigh what is usual; twenty do."""
    for n, expected in ((2, "Safe"), (20, "Unsafe")):
        items = [Answer(f"i{i}", "x", question=f"q{i}", system="many") for i in range(100)]
        items += [Answer(f"r{i}", "x", question=f"r{i}", system="rare") for i in range(2 * n)]
        codes = [0] * 90 + [2] * 10 + [2] * (2 * n)
        assert said(("system",), items, labels_of(items, codes))["r0"] == expected


def test_usual_columns_have_two_to_root_n_values_and_repeat_no_other() -> None:
    items = [
        Answer(
            a.item_id, a.text, question=a.question, system=a.system,
            metadata={**a.metadata, "model": f"m{a.system}", "one": "same", "id": a.item_id},
        )
        for a in answers()
    ]  # fmt: skip
    human = labels_of(items, [0] * 60)
    assert list(Fit(RUBRIC, items, human, 0, None).known) == [("system",), ("kind",)]
    assert not Fit(RUBRIC, items, human[:3], 0, None).known  # of three labels nothing is learnt
    few = [Answer(f"i{i}", "x", question=f"q{i % 5}") for i in range(60)]
    assert list(Fit(RUBRIC, few, labels_of(few, [0] * 60), 0, None).known) == [("question",)]


def test_columns_together_have_a_value_for_each_combination() -> None:
    items = answers(24)
    together = known_columns(items, [("system", "kind")], 0)["system", "kind"]
    pairs = [(a.system, a.metadata["kind"]) for a in items]
    assert (
        len(set(together.tolist()))
        == len(set(pairs))
        == len(set(zip(together, pairs, strict=True)))
    )


def test_what_the_columns_hold_changes_the_signature() -> None:
    items, other = answers(), answers()
    other[0] = Answer("i0", "text 0", question="q0", system="s2", metadata=other[0].metadata)
    human = labels_of(items, [0, 1, 2] * 20)
    one, two, turned = (
        control_judges([], RUBRIC, a, human, 0, [("system",)])[0]
        for a in (items, other, items[::-1])
    )
    assert one.signature == turned.signature != two.signature
    assert one.name == "by-system"


def test_names_are_names_of_judges() -> None:
    assert name_of(("system", "prompt type")) == "by-system-and-prompt_type"
    assert name_of(("種類",)) != name_of(("質問",))
    assert len(name_of(("x" * 99,))) == 64


def tables(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Whether an answer is unsafe depends on its system alone; the judge knows no more."""
    n = 600
    system = np.arange(n) % 3
    truth = np.where(rng.random(n) < 0.85, system, rng.integers(0, 3, n))
    labels = pd.DataFrame(
        {"item_id": [f"i{i}" for i in range(n)], "system": [f"s{s}" for s in system]}
    )
    for who in ("Ann", "Bob", "Cid"):
        labels[who] = [
            TEXTS[c] for c in np.where(rng.random(n) < 0.9, truth, rng.integers(0, 3, n))
        ]
    verdicts = pd.DataFrame(
        {"item_id": labels.item_id, "judge": "namesake", "label": [TEXTS[s] for s in system]}
    )
    return labels, verdicts


def test_a_judge_that_only_knows_the_system_does_not_replace_anybody() -> None:
    labels, verdicts = tables(np.random.default_rng(1))
    order = {"order": "Safe < Unsure < Unsafe"}
    study = jb.study(labels, verdicts, columns=order)
    (decision,) = jb.decide(study).decisions
    assert str(decision.outcome) == "DO NOT USE"
    assert any(c.rival == "by-system" for c in decision.replace)
    accuracy = jb.align(study).to_frame().query("statistic == 'accuracy' and analysis == 'score'")
    by = accuracy.set_index("judge").value
    assert by["by-system"] == pytest.approx(by["namesake"]) != by["constant-majority"]


def test_a_benchmark_names_columns_and_is_told_of_one_that_is_not_there(tmp_path: Path) -> None:
    labels, _ = tables(np.random.default_rng(2))
    long = labels.melt(["item_id", "system"], var_name="annotator", value_name="safe")
    long.to_csv(tmp_path / "labels.csv", index=False)
    (tmp_path / "rubric.yaml").write_text(
        "name: r\nversion: '1'\ninstructions: Say.\nmetrics:\n"
        "- id: safe\n  title: Safe\n  question: Safe?\n  kind: ordinal\n"
        "  labels: [Safe, Unsure, Unsafe]\n"
    )
    bench = "name: b\nrubric: rubric.yaml\ndata: labels.csv\nby: [%s]\n"
    file = tmp_path / "bench.yaml"
    file.write_text(bench % "system, [system, question]")
    controls = [c.name for c in jb.load_bench(file).controls]
    assert controls[-2:] == ["by-system", "by-system-and-question"]
    file.write_text(bench % "sistem, [system, kind]")
    with pytest.raises(SetupError) as error:
        jb.load_bench(file)
    assert "did you mean 'system'" in str(error.value)
    assert "bench.yaml" in str(error.value)
    assert "kind" in str(error.value)
    file.write_text((bench % "") + "controls: false\n")
    assert not jb.load_bench(file).controls


def test_what_tells_the_items_of_one_text_apart_may_be_known() -> None:
    """Four questions to each text, in two tables: nobody has to say which column to keep."""
    rng = np.random.default_rng(5)
    items = [(f"text {t}", q) for t in range(80) for q in ("greets", "thanks", "shouts", "scolds")]
    table = pd.DataFrame(items, columns=["text_id", "asked"])
    usual = table.asked.isin(["shouts", "scolds"]).to_numpy()
    truth = usual ^ (rng.random(len(table)) < 0.15)
    labels = table.assign(
        **{who: np.where(truth ^ (rng.random(len(table)) < 0.05), "yes", "no") for who in "AB"}
    )
    verdicts = table.assign(judge="m", label=np.where(usual, "yes", "no"))
    study = jb.study(labels, verdicts, columns={"item": ["text_id", "asked"]})
    accuracy = jb.align(study).to_frame().query("statistic == 'accuracy' and analysis == 'score'")
    by = accuracy.set_index("judge").value
    assert by["by-asked"] == pytest.approx(by["m"], abs=0.01)
    assert by["by-asked"] > by["constant-majority"] + 0.2
