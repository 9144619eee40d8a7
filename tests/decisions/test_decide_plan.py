"""Planning: larger studies are drawn from the one there is."""

from decide_case import decided, noisy

from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule, PlanRule

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
    assert more.reason.startswith("improve the judge: ")
    assert "with 2 times as much data only" in more.reason
    two = {name: HUMANS[name] for name in ("h0", "h1")}
    more = decided(two, noisy(TRUE, 0.08, 5), rule=rule).more
    assert "have a third annotator label each answer, or improve the judge: " in more.reason


def test_where_answers_share_questions_questions_are_counted_too() -> None:
    groups = "".join(chr(ord("A") + i // 4) for i in range(len(TRUE)))
    found = decided(HUMANS, TRUE, groups=groups)
    more = found.more
    assert (more.answers_now, more.questions_now) == (80, 20)
    assert more.items == 4 * more.questions
    assert more.clear >= DecisionRule().plan.chance


def test_from_few_questions_no_chance_is_said() -> None:
    groups = "".join(chr(ord("A") + i // 5) for i in range(len(TRUE)))
    more = decided(HUMANS, TRUE, groups=groups).more
    assert (more.questions_now, more.clear) == (16, None)
    assert more.items
    assert more.reason.startswith("whether that is enough, nobody can say from fewer than 20")


def test_without_a_severe_answer_nothing_can_be_simulated() -> None:
    true = "aaaab" * 20
    humans = {f"h{i}": "".join(x for x in true) for i in range(2)}
    more = decided(humans, true).more
    assert more.items is None
    assert "severe" in more.reason
