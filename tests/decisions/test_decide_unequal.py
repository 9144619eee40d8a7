"""Decisions where annotators are unequal: the studies that once ended in a wrong REPLACE."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from crowd_case import crowd

import judgebench as jb
from judgebench.decisions.decision import Decision, Decisions, Outcome
from judgebench.decisions.rule import DecisionRule, HumansRule

RUBRIC = jb.Rubric.from_labels({"harm": ["none", "harm"]})
NAMES = ("dr-lee", "dr-roy", "kim", "ola", "pat")


def decided(
    ratings: np.ndarray, judged: np.ndarray, rule: DecisionRule | None = None,
    rubric: jb.Rubric = RUBRIC, extra: Mapping[str, list[str]] = {},
) -> Decisions:  # fmt: skip
    """The decision on one judge; labels are 0, 1, … and -1 where there is none."""
    texts, items = rubric.metrics[0].label_texts, [f"i{i}" for i in range(len(judged))]
    frames = []
    names = NAMES if ratings.shape[1] <= len(NAMES) else range(ratings.shape[1])
    for name, column in zip(names, ratings.T, strict=False):
        said = [texts[label] if label >= 0 else None for label in column]
        frames.append(pd.DataFrame({"item_id": items, "annotator": str(name), "harm": said}))
    labels = pd.concat(frames).dropna()
    verdicts = pd.DataFrame({"item_id": items, "judge": "m", "harm": [texts[j] for j in judged]})
    answers = pd.DataFrame({"item_id": items, **extra}) if extra else None
    truth = {"independent_items": True, "blind": "yes"}
    study = jb.study(labels, verdicts, answers, rubric=rubric, truth=truth)
    return jb.decide(study, rule=rule)


def only(found: Decisions) -> Decision:
    (one,) = found.decisions
    return one


def test_a_careless_annotator_does_not_lower_the_bar_and_is_named() -> None:
    ratings = crowd([0.15, 0.03, 0.03, 0.45])
    found = decided(ratings[:, 1:], ratings[:, 0])
    assert only(found).outcome is Outcome.DO_NOT_USE
    assert found.judges == {"m": "judge"}  # and none of the controls
    (bar,) = found.context.bars
    assert "; kim is left out of the bar (agrees 4" in bar
    assert found.shares("m", "harm").humans.method.startswith(
        "without kim, who is out of the bar; "
    )
    rows = found.results.select("bar", "gap")
    assert [(r["who"] or r.judge, r["in_bar"]) for r in rows] == [
        ("dr-lee", "yes"), ("dr-roy", "yes"), ("kim", "no"), ("m", ""),
    ]  # fmt: skip
    assert (rows[3].estimate.value or 0) < -0.05


@pytest.mark.parametrize("bar", ["typical", "average"])
def test_weights_of_annotators_are_listed_and_named_in_methods(bar: str) -> None:
    ratings = crowd([0.05, 0.01, 0.03, 0.06, 0.07], 800)
    rule = DecisionRule.model_validate({"replace": {"humans": {"bar": bar}}})
    decisions = decided(ratings[:, 1:], ratings[:, 0], rule=rule)
    rows = decisions.results.select("bar", "weight")
    weights = [row.estimate.value for row in rows if row["in_bar"] == "yes"]
    methods = {c.key: c.estimate.method for c in only(decisions).replace}
    is_pooled = len({*weights}) > 1
    assert is_pooled == (bar == "typical")
    for key in ("humans_accuracy", "humans_balanced_accuracy"):
        assert ("annotators weighted as the bar says" in methods[key]) == is_pooled


@pytest.mark.parametrize(
    ("errors", "items", "replaces"),  # of the judge, then of the annotators
    [([0.14, 0.03, 0.03, 0.03, 0.5], 400, False), ([0.0, 0.03, 0.03, 0.45], 800, True)],
)
def test_who_is_careless_neither_lowers_the_bar_nor_holds_an_expert_back(
    errors: list[float], items: int, replaces: bool
) -> None:
    ratings = crowd(errors, items)
    found = decided(ratings[:, 1:], ratings[:, 0])
    assert (only(found).outcome is Outcome.REPLACE) is replaces
    assert "is left out" in found.context.bars[0]


def test_half_of_a_sparse_crowd_does_not_lower_it() -> None:
    ratings = crowd([0.16] + [0.03] * 20 + [0.4] * 20)
    few = np.random.default_rng(1).random((400, 40)).argsort(axis=1) < 3
    found = decided(np.where(few, ratings[:, 1:], -1), ratings[:, 0])
    assert only(found).outcome is Outcome.CANT_TELL


def test_two_camps_are_told_apart_and_decided_against_each() -> None:
    rng = np.random.default_rng(0)
    true, both = rng.integers(0, 2, 600), rng.random(600) < 0.3
    views = [np.where(both, 1, true), np.where(both, 0, true)]
    noisy = [np.where(rng.random(600) < 0.03, 1 - views[c], views[c]) for c in (0, 1, 0, 1, 0)]
    found = only(decided(np.stack(noisy[:4], axis=1), noisy[4]))
    assert found.outcome is Outcome.CANT_TELL
    assert "Decided by dr-lee and kim alone, REPLACE; by dr-roy and ola" in found.reason
    assert [camp.outcome for camp in found.camps] == [Outcome.REPLACE, Outcome.DO_NOT_USE]
    frame = decided(np.stack(noisy[:4], axis=1), noisy[4]).to_frame()
    assert set(frame[frame.analysis == "camp"].who) == {"dr-lee, kim", "dr-roy, ola"}


def test_a_copy_of_an_annotator_is_flagged_until_it_is_declared() -> None:
    ratings = crowd([0.15] * 3)
    found = only(decided(ratings, ratings[:, 1]))
    assert found.outcome is Outcome.CANT_TELL
    assert found.reason.startswith("The judge gives the labels of dr-roy on almost all items")
    declared = only(decided(ratings, ratings[:, 1], DecisionRule(independent=("m",))))
    assert declared.outcome is not Outcome.CANT_TELL


def test_a_copy_of_the_consensus_and_half_a_copy_are_flagged() -> None:
    ratings = crowd([0.15] * 3)
    consensus = np.median(ratings, axis=1).astype(int)
    assert "consensus of the annotators on almost all" in only(decided(ratings, consensus)).reason
    poor = crowd([0.15, 0.15, 0.15, 0.3])
    half = np.random.default_rng(0).random(400) < 0.5
    found = only(decided(poor[:, :3], np.where(half, poor[:, 0], poor[:, 3])))
    assert "Where dr-lee deviates from the others, the judge does too" in found.reason


def test_an_annotator_who_copies_another_is_flagged() -> None:
    ratings = crowd([0.15, 0.15, 0.15, 0.05])
    copied = np.stack([ratings[:, 0], ratings[:, 0], ratings[:, 1]], axis=1)
    assert only(decided(copied, ratings[:, 3])).reason.startswith(
        "dr-lee and dr-roy gave the same labels on almost all items where another annotator differs"
    )
    rule = DecisionRule(independent=("dr-lee", "dr-roy"))
    assert "same labels" not in only(decided(copied, ratings[:, 3], rule)).reason


def test_a_declared_name_must_be_somebody_here() -> None:
    ratings = crowd([0.1] * 3, 40)
    rule = DecisionRule(independent=("gpt", "kim"))
    with pytest.raises(jb.SetupError) as caught:
        decided(ratings, ratings[:, 0], rule)
    (problem,) = caught.value.problems
    assert (problem.field, problem.found) == ("independent", "gpt")
    assert problem.allowed == "dr-lee, dr-roy, kim, m"


def test_answers_that_repeat_under_other_ids_are_one_question_each() -> None:
    forty = np.repeat(np.arange(40), 10)
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 40)[forty]
    noisy = [np.where(rng.random(400) < 0.07, 1 - true, true) for _ in range(3)]
    judged = np.where((rng.random(40) < 0.15)[forty], 1 - true, true)
    texts = {"question": [f"Q{q}" for q in forty], "text": [f"Answer {q}" for q in forty]}
    found = only(decided(np.stack(noisy, axis=1), judged, extra=texts))
    assert found.outcome is not Outcome.REPLACE
    assert found.numbers.endswith("400 answers to 40 questions, 3 annotators")


@pytest.mark.parametrize(("bar", "outcome"), [("typical", "DO NOT USE"), ("average", "REPLACE")])
def test_the_bar_is_chosen_by_the_rule(bar: str, outcome: str) -> None:
    ratings = crowd([0.15, 0.03, 0.03, 0.45])
    rule = DecisionRule.model_validate({"replace": {"humans": {"bar": bar}, "severe": None}})
    found = decided(ratings[:, 1:], ratings[:, 0], rule)
    assert only(found).outcome.value == outcome
    if bar == "average":
        assert found.context.bars == ("Bar: dr-lee, dr-roy and kim, who all count the same.",)


def test_the_bar_of_the_best_is_no_lower_than_the_typical_one() -> None:
    ratings = crowd([0.1, 0.02, 0.10, 0.10], 600)
    gaps = {}
    for bar in ("average", "typical", "best"):
        rule = DecisionRule.model_validate({"replace": {"humans": {"bar": bar}}})
        conditions = {c.key: c for c in only(decided(ratings[:, 1:], ratings[:, 0], rule)).replace}
        gaps[bar] = conditions["humans_accuracy"].estimate.value or 0.0
    assert gaps["best"] < gaps["average"]
    assert gaps["typical"] <= gaps["average"] + 1e-9
    assert HumansRule().bar == "typical"


def test_one_rare_label_does_not_veto_and_is_named() -> None:
    rubric = jb.Rubric.from_labels({"harm": ["a", "b", "n/a"]}, nominal=["harm"])
    ratings = np.vstack([crowd([0.08] * 3 + [0.02], 990), np.full((4, 4), 2)])
    found = decided(ratings[:, :3], ratings[:, 3], rubric=rubric)
    assert only(found).outcome is Outcome.REPLACE
    assert any('"n/a" is the reference label of 4 of 994 answers' in note for note in found.notes)
    # what a rule may say instead: every label counts, however rare
    kept = {c.key: c for c in only(decided(
        ratings[:, :3], ratings[:, 3], DecisionRule(rare=1), rubric
    )).replace}  # fmt: skip
    assert (kept["humans_balanced_accuracy"].estimate.low or 0) < -0.07


def test_a_rare_severe_label_stays_in_balanced_agreement() -> None:
    ratings = np.vstack([crowd([0.05] * 3, 300) * 0, np.ones((6, 3), dtype=int)])
    rubric = jb.Rubric.from_labels({"harm": ["none", "some", "harm"]})
    found = only(decided(ratings * 2, np.zeros(306, dtype=int), rubric=rubric))
    assert found.outcome is Outcome.DO_NOT_USE
    balanced = next(c for c in found.replace if c.key == "humans_balanced_accuracy")
    assert balanced.estimate.value == pytest.approx(-0.5)


def test_a_judge_that_misses_more_severe_answers_than_an_annotator_does_not_replace() -> None:
    rng = np.random.default_rng(0)
    ratings = crowd([0.03] * 4, 1500)
    judged = np.where((ratings[:, 3] == 1) & (rng.random(1500) < 0.12), 0, ratings[:, 3])
    rule = DecisionRule.model_validate({"replace": {"humans": {"measures": []}}})
    found = only(decided(ratings[:, :3], judged, rule))
    assert found.outcome is Outcome.DO_NOT_USE
    assert "misses severe answers 1" in found.reason
