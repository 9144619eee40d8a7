"""Planning: larger studies are drawn from the one there is."""

from dataclasses import replace

import numpy as np
import pytest
from decide_case import decided, noisy

from judgebench.decisions.conditions import findings
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.result import MoreData, Outcome, more_sentence
from judgebench.decisions.rule import DecisionRule, PlanRule
from judgebench.decisions.run import third_annotator
from judgebench.stats.arrays import Clusters
from judgebench.stats.copies import bar_of

TRUE = "aaaaaabbbc" * 8
HUMANS = {f"h{i}": noisy(TRUE, 0.06, i) for i in range(3)}


def test_a_good_judge_on_few_items_needs_more_and_then_replaces() -> None:
    found = decided(HUMANS, TRUE)
    assert found.outcome is Outcome.CANT_TELL
    more = found.more
    assert more.items
    assert more.towards is Outcome.REPLACE
    assert more.clear >= DecisionRule().plan.chance
    # as many further items as were planned make it clear, give or take the luck of one draw
    times = 1 + -(-2 * more.items // len(TRUE))
    true = TRUE * times
    humans = {f"h{i}": noisy(true, 0.06, i) for i in range(3)}
    assert decided(humans, true).outcome is Outcome.REPLACE


def test_annotators_who_agree_on_everything_are_not_to_agree_more() -> None:
    def reason(humans: dict[str, str]) -> str:
        rule = DecisionRule(plan=PlanRule(chance=0.999, most=2))
        more = decided(humans, noisy(TRUE, 0.06, 5), rule=rule).more
        return more.reason

    assert reason(dict.fromkeys(HUMANS, TRUE)).startswith("improve the judge: labels alone")
    assert "the agreement of the annotators" in reason(HUMANS)


def test_a_bad_judge_on_few_items_is_planned_towards_dont() -> None:
    true = ("aaaaaabbbc" * 3)[:24]
    humans = {f"h{i}": noisy(true, 0.05, i) for i in range(3)}
    found = decided(humans, noisy(true, 0.2, 3))
    assert found.outcome is Outcome.CANT_TELL
    assert found.more.towards is Outcome.DO_NOT_USE


def test_the_plan_is_the_same_each_time() -> None:
    assert decided(HUMANS, TRUE).more == decided(HUMANS, TRUE).more


def test_what_is_not_within_reach_is_said() -> None:
    rule = DecisionRule(plan=PlanRule(chance=0.99, most=2))
    more = decided(HUMANS, noisy(TRUE, 0.08, 5), rule=rule).more
    assert more.items is None
    assert "with 2 times as much data only" in more.reason


def test_where_answers_share_questions_questions_are_counted_too() -> None:
    groups = "".join(chr(ord("A") + i // 4) for i in range(len(TRUE)))
    found = decided(HUMANS, TRUE, groups=groups)
    more = found.more
    assert (more.answers_now, more.questions_now) == (80, 20)
    assert more.items == 4 * more.questions
    assert more_sentence(found).startswith("80 answers, but only 20 questions: about ")


def test_without_a_severe_answer_nothing_can_be_simulated() -> None:
    true = "aaaab" * 20
    humans = {f"h{i}": "".join(x for x in true) for i in range(2)}
    more = decided(humans, true).more
    assert more.items is None
    assert "severe" in more.reason


def study_by(a: int, n: int, severe: float, noise: float, rng: np.random.Generator) -> StudyCounts:
    true = (rng.random(n) < severe).astype(np.int64)
    *own, judged = (np.where(rng.random(n) < noise, 1 - true, true) for _ in range(a + 1))
    own, of = np.stack(own, axis=1), Clusters(np.arange(n), n)
    bar = bar_of(own, of, 2)
    others = np.stack([np.delete(own, i, axis=1).max(axis=1) for i in range(a)], axis=1)
    truth = (2 * own.sum(axis=1) >= a).astype(np.int64)
    side = HumanSide(truth, own, others, of, 2, 1, bar.weights, bar.spread)
    constants = {f"always {label}": np.full(n, label) for label in (0, 1)}
    return study_counts(side, judged, np.ones(n, dtype=bool), constants)


def replaced(a: int, n: int, severe: float, noise: float) -> float:
    """Of studies that are drawn one by one, from the true numbers."""
    rng, rule, found = np.random.default_rng(0), DecisionRule(), []
    for _ in range(60):
        counts = study_by(a, n, severe, noise, rng)
        conditions = findings(counts, rule, counts.how_many[None, :])
        found.append(all(f.met[0] for f in conditions))
    return float(np.mean(found))


@pytest.mark.parametrize(("severe", "noise"), [(0.2, 0.05), (0.5, 0.03)])
def test_two_and_three_annotators_are_compared_at_the_same_labels(severe, noise) -> None:
    pilot = study_by(2, 4000, severe, noise, np.random.default_rng(1))
    by = third_annotator(pilot, DecisionRule(), 1200, 0)
    real = tuple(replaced(a, 1200 // a, severe, noise) for a in (2, 3))
    assert (by[1] > by[0]) == (real[1] > real[0])
    assert by == pytest.approx(real, abs=0.15)
    three = study_by(3, 400, severe, noise, np.random.default_rng(1))
    assert third_annotator(three, DecisionRule(), 1200, 0) == (None, None)


def test_the_cheaper_of_two_ways_to_spend_labels_is_named() -> None:
    found = decided({name: HUMANS[name] for name in ("h0", "h1")}, TRUE)
    assert found.more.spent == found.more.labels + 2 * len(TRUE)
    assert found.more.by_two is not None

    def told(two: float, three: float) -> str:
        more = MoreData(10, 30, spent=1200, by_two=two, by_three=three)
        return more_sentence(replace(found, more=more, reason="")).split("settle it.")[1]

    assert "400 answers by three end in REPLACE in 58 % of" in told(0.49, 0.58)
    assert told(0.49, 0.58).startswith(" A third annotator is cheaper")
    assert told(0.80, 0.58).startswith(" More answers by two are cheaper")
    assert told(0.56, 0.58) == ""
