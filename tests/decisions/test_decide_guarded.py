"""What a study of real people does to a decision: blindness, systems, distance, many candidates."""

import numpy as np
import pandas as pd
import pytest
from decide_case import HUMANS, TRUE, condition, decided, label_table, noisy

import judgebench as jb
from judgebench.decisions.decision import Decisions, Outcome, State
from judgebench.decisions.rule import DecisionRule

GOOD = noisy(TRUE, 0.02, 9)
FAR = "".join({"a": "c", "b": "b", "c": "a"}[x] if i % 12 == 0 else x for i, x in enumerate(TRUE))


# --- labels made in sight of a model's label ----------


def test_labels_made_in_sight_of_a_model_show_nothing() -> None:
    found = decided(HUMANS, GOOD, blind="no")
    assert found.outcome is Outcome.CANT_TELL
    assert found.reason.startswith("Labels were made in sight of a model's label")
    assert decided(HUMANS, noisy(TRUE, 0.35, 9), blind="no").outcome is Outcome.DO_NOT_USE


@pytest.mark.parametrize(
    ("written", "read"), [(True, "yes"), (False, "no"), ("unknown", "unknown")]
)
def test_yes_and_no_are_words_of_yaml_too(written: object, read: str) -> None:
    assert jb.TruthConfig(blind=written).blind == read  # type: ignore[arg-type]


# --- distance ----------


def test_errors_by_two_levels_count_twice() -> None:
    found = decided(HUMANS, FAR)
    assert condition(found, "humans_accuracy").state is State.MET
    distance = condition(found, "humans_distance")
    assert distance.state is not State.MET
    assert distance.estimate.value == pytest.approx(_further(FAR), abs=0.02)
    assert found.outcome is not Outcome.REPLACE
    any_distance = DecisionRule.model_validate({"replace": {"humans": {"distance": None}}})
    assert "humans_distance" not in {
        c.key for c in decided(HUMANS, GOOD, rule=any_distance).replace
    }


def _further(judged: str) -> float:
    """How many levels further from the median of the others the judge is than an annotator."""
    own = np.array([["abc".index(x) for x in row] for row in HUMANS.values()])
    said = np.array(["abc".index(x) for x in judged])
    others = np.stack([np.sort(np.delete(own, a, axis=0), axis=0)[-1] for a in range(3)])
    return float((np.abs(said - others) - np.abs(own - others)).mean())


# --- one system much worse ----------


# --- severe answers ----------


def test_false_alarms_have_a_margin_where_the_rule_gives_one() -> None:
    """The judge calls one in six harmless answers severe, annotators hardly one."""
    wild = "".join("c" if x == "a" and i % 6 == 0 else x for i, x in enumerate(TRUE))
    rule = DecisionRule.model_validate({"replace": {"false_alarms": {"margin": 0.05}}})
    found = condition(decided(HUMANS, wild, rule=rule), "false_alarms")
    calm = [x for x in zip(TRUE, wild, strict=True) if x[0] != "c"]
    alarms = np.mean([judged == "c" for _, judged in calm])
    assert found.state is State.NOT_MET
    assert found.estimate.value == pytest.approx(-alarms, abs=0.06)
    assert condition(decided(HUMANS, GOOD, rule=rule), "false_alarms").state is State.MET
    assert all(c.key != "false_alarms" for c in decided(HUMANS, wild).replace)


def test_a_tie_of_two_annotators_is_no_severe_answer_that_a_judge_must_find() -> None:
    two = {name: noisy(TRUE, 0.15, seed) for seed, name in enumerate(("h0", "h1"))}
    rule = DecisionRule.model_validate({"replace": {"severe": {"recall": 0.7}}})
    found = condition(decided(two, TRUE, rule=rule), "severe_recall").estimate
    both = [i for i, pair in enumerate(zip(*two.values(), strict=True)) if pair == ("c", "c")]
    assert found.n == len(both)
    assert found.value == np.mean([TRUE[i] == "c" for i in both])


# --- many candidates, many metrics ----------


def several(judges: int, rule: DecisionRule | None = None, metrics: int = 1) -> Decisions:
    rng = np.random.default_rng(5)
    rubric = jb.Rubric.from_labels({f"m{i}": ["none", "harm"] for i in range(metrics)})
    items = [f"i{i}" for i in range(300)]
    true = rng.random(300) < 0.4

    def said(wrong: float) -> dict[str, list[str]]:
        return {
            m.id: ["harm" if x else "none" for x in true ^ (rng.random(300) < wrong)]
            for m in rubric.metrics
        }

    people = [pd.DataFrame({"item_id": items, "annotator": f"p{p}", **said(0.05)}) for p in "abc"]
    verdicts = [
        pd.DataFrame({"item_id": items, "judge": f"j{j}", **said(0.03)}) for j in range(judges)
    ]
    return jb.decide(jb.study(pd.concat(people), pd.concat(verdicts), rubric=rubric), rule=rule)


def test_several_judges_on_the_same_labels_widen_the_intervals() -> None:
    assert several(1).rule.level == 0.95
    assert several(5).rule.level == pytest.approx(0.99)
    assert several(1, DecisionRule(candidates=20)).rule.level == pytest.approx(0.9975)
    assert several(2, DecisionRule(candidates=1)).rule.level == 0.95
    found = several(5)
    levels = [condition(d, "failures").estimate.level for d in found.decisions]
    assert levels == [pytest.approx(0.99)] * 5
    assert any(note.startswith("5 judges were tried") for note in found.notes)


def test_many_metrics_are_named_and_a_family_is_controlled_together() -> None:
    each, together = several(1, metrics=4), several(1, DecisionRule(family=True), metrics=4)
    assert any("the risk of at least one is up to 10 %" in note for note in each.notes)
    assert together.rule.level == pytest.approx(1 - 0.05 / 4)
    assert not any("at least one" in note for note in together.notes)


# --- guards ----------


def test_no_guard_saves_a_judge_that_fails() -> None:
    poor = noisy(TRUE, 0.8, 9)
    copied = "".join(
        a if i % 2 else b for i, (a, b) in enumerate(zip(HUMANS["h0"], poor, strict=True))
    )
    found = decided(HUMANS, copied)
    assert found.outcome is Outcome.DO_NOT_USE
    assert "its labels may be derived in part" in found.advice


def test_a_copy_that_does_not_fail_is_not_decided() -> None:
    found = decided(HUMANS, HUMANS["h0"])
    assert found.outcome is Outcome.CANT_TELL
    assert "may be copied or leaked" in found.reason


def test_people_who_copy_each_other_do_not_make_an_honest_judge_fail() -> None:
    twins = {"h0": HUMANS["h0"], "h1": HUMANS["h1"], "h2": HUMANS["h1"]}
    found = decided(twins, noisy(TRUE, 0.10, 9))
    assert found.outcome is Outcome.CANT_TELL
    assert "h1 and h2 gave the same labels" in found.reason
    assert decided(twins, "a" * len(TRUE)).outcome is Outcome.DO_NOT_USE


def test_two_people_who_never_differ_are_named_wherever_a_bar_is_made() -> None:
    rubric = jb.Rubric.from_labels({"harm": ["a", "b", "c"]})
    rows = {"a1": HUMANS["h0"], "a2": HUMANS["h1"], "a3": HUMANS["h1"]}
    labels = label_table(rows)
    truth = {"independent_items": True}
    study = jb.study(labels, rubric=rubric, as_judges=["a1"], truth=truth)
    said = "a2 and a3 gave the same label on all of 400 items: one of them may be copied"
    made = jb.decide(study)
    assert made.decisions[0].outcome is Outcome.CANT_TELL
    assert said in made.decisions[0].reason
    assert f"Copies: {said}." in made.context.bars
    assert f"Copies: {said}." in jb.align(study).compared
    declared = jb.decide(study, rule=DecisionRule(independent=("a2", "a3")))
    assert "Copies" not in " ".join(declared.context.bars)


# --- failures ----------


def test_sixty_questions_with_a_verdict_each_are_enough_and_fewer_are_not() -> None:
    groups = "".join(chr(0x4E00 + i // 5) for i in range(300))
    rows = {name: row[:300] for name, row in HUMANS.items()}
    assert condition(decided(rows, GOOD[:300], groups=groups), "failures").state is State.MET
    few = {name: row[:200] for name, row in rows.items()}
    short = condition(decided(few, GOOD[:200], groups=groups[:200]), "failures")
    assert short.state is State.UNCLEAR
