"""One line for each decision: outcome, the numbers beside it, one reason, one next step."""

import re
from dataclasses import replace
from typing import Any

import pytest
from decide_case import HUMANS, TRUE, label_table, noisy, verdict_table
from decide_report_case import JUDGES, make_decisions

import judgebench as jb
from judgebench.decisions.conditions import NO_SEVERE_PAIR, SEVERITY
from judgebench.decisions.decision import Condition, Decision, Decisions, MoreData, Outcome, State
from judgebench.decisions.sentences import answer
from judgebench.records import Estimate
from judgebench.results.blocks import DecisionSummary
from judgebench.text import listed

RUBRIC = jb.Rubric.from_labels({"harm": ["a", "b", "c"]})


def standing(judge: str, humans: dict[str, str] = HUMANS, **truth: object) -> DecisionSummary:
    (found,) = decisions_on(judge, humans, **truth).part.standings
    return found


def decisions_on(judge: str, humans: dict[str, str] = HUMANS, **truth: object) -> Decisions:
    """Of one judge, written as one character an item; a dot is a reply that cannot be read."""
    labels = label_table(humans)
    labels = labels.assign(group=labels.item_id)
    verdicts = verdict_table(judge)
    verdicts["harm"] = verdicts.harm.replace(".", "I would rather not say.")
    with pytest.warns() if "." in judge else pytest.MonkeyPatch.context():
        study = jb.study(labels, verdicts, rubric=RUBRIC, truth={"blind": "yes", **truth})
    return jb.decide(study)


def test_unreadable_replies_count_as_wrong_beside_an_outcome() -> None:
    silent = "".join("." if i % 10 < 7 else label for i, label in enumerate(TRUE))
    found = standing(silent)
    assert found.outcome == Outcome.DO_NOT_USE
    assert found.failures == "280 unparsed"
    assert any(line.endswith("280 unparsed") for line in str(decisions_on(silent)).splitlines())
    assert f"{found.accuracy:.2f}".startswith("0.30 ")
    assert found.next == "Make its replies readable first: 70 % of the answers have no label."


def of_a_part(rows: int, **settings: Any) -> DecisionSummary:
    """Of a judge that is right, with a row for the first items alone."""
    labels = label_table(HUMANS).assign(group=lambda table: table.item_id)
    verdicts = verdict_table(TRUE[:rows])
    with pytest.warns():
        study = jb.study(labels, verdicts, rubric=RUBRIC, **settings)
    (found,) = jb.decide(study).part.standings
    return found


def test_rows_that_are_not_there_are_no_failures_and_nothing_is_decided() -> None:
    found = of_a_part(120)
    assert (found.outcome, found.asked, found.failures) == ("CAN'T TELL", "120 of 400 asked", "")
    assert (found.accuracy.value, found.accuracy.n) == (0.975, 120)
    assert found.why == (
        "The judge was asked about 120 of 400 answers: one that leaves out the hard ones looks "
        "better than it is."
    )
    assert "`--expected rows`" in found.next


def test_labelled_answers_that_wait_for_the_judge_need_no_more_labels() -> None:
    found = of_a_part(60, expected="rows")
    assert found.outcome == Outcome.CANT_TELL
    assert found.next.startswith(
        "Have the judge label the 340 other answers that have human labels"
    )


def test_the_numbers_are_those_of_the_alignment() -> None:
    labels = label_table(HUMANS).assign(group=lambda table: table.item_id)
    verdicts = verdict_table(noisy(TRUE, 0.3, 9))
    study = jb.study(labels, verdicts, rubric=RUBRIC)
    (found,) = jb.decide(study).part.standings
    aligned = jb.align(study)
    assert found.accuracy == aligned.score("accuracy", "j", "harm")
    assert found.humans == aligned.ceiling("accuracy", "harm")
    assert found.annotators == {a: aligned.ceiling("accuracy", "harm", a) for a in HUMANS}
    assert (found.baseline_name, found.baseline) == aligned.best_control("accuracy", "harm")
    (d,) = jb.decide(study).decisions
    gap = next(c for c in d.replace if c.key == "humans_accuracy")
    assert found.margin == round(-gap.bound, 2) == 0.04  # what noise in the labels leaves of 0.05


def test_nothing_is_shaded_where_another_requirement_decided() -> None:
    def margin(agreement: State, recall: State) -> float:
        gap = Condition("humans_accuracy", "", agreement, Estimate(0.0), -0.04, True)
        severe = Condition("severe_recall", "", recall, Estimate(0.5, n=40), 0.7, True)
        d = Decision("j", "bias", Outcome.DO_NOT_USE, "Why.", replace=(gap, severe))
        (found,) = replace(make_decisions(), decisions=(d,)).part.standings
        return found.margin

    assert margin(State.MET, State.NOT_MET) == 0
    assert margin(State.NOT_MET, State.NOT_MET) == 0.04
    assert margin(State.MET, State.UNCLEAR) == 0.04
    assert margin(State.MET, State.MET) == 0.04


def test_the_headline_of_several_metrics_says_on_which_and_what_holds_on_all() -> None:
    def said(*outcomes: Outcome, reasons: tuple[str, str] = ("Few.", "Few.")) -> str:
        more = MoreData(reason="none")
        made = tuple(
            Decision("j", metric, outcome, reason, plan=lambda: more)
            for metric, outcome, reason in zip(("bias", "empathy"), outcomes, reasons, strict=True)
        )
        return answer(
            replace(
                make_decisions(),
                decisions=made,
            )
        )

    assert said(Outcome.REPLACE, Outcome.DO_NOT_USE) == (
        "Yes: Possibility of Bias (j). No: Empathy (j)."
    )
    unclear = (Outcome.CANT_TELL, Outcome.CANT_TELL)
    assert said(*unclear) == "Not known yet: Possibility of Bias and Empathy (j). Few."
    assert "Few" not in said(*unclear, reasons=("Few.", "Fewer."))


def test_a_judge_that_a_baseline_matches_is_told_so() -> None:
    found = standing(TRUE.replace("c", "a").replace("b", "a"))
    assert found.baseline_name in ("constant-fixed", "constant-majority")  # give the same label
    assert f"; the baseline {found.baseline_name} is right on 58 %" in found.next


def test_each_reason_is_of_one_judge_and_one_metric_and_has_a_next_step() -> None:
    made = make_decisions()
    found = made.part.standings
    assert len(found) == len(made.decisions)
    for one, d in zip(found, made.decisions, strict=True):
        assert (one.judge, one.metric) == (d.judge, made.titles[d.metric])
        assert one.next.endswith(".")
        assert not re.search(r"\d to \d", one.why)
        assert JUDGES.keys() & set(one.why.split()) == set()


def test_the_next_step_of_an_unclear_decision_is_how_much_to_label() -> None:
    def next_of(more: MoreData) -> str:
        d = Decision("smollm2-135m", "empathy", Outcome.CANT_TELL, "Too few.", plan=lambda: more)
        (one,) = replace(make_decisions(), decisions=(d,)).part.standings
        return one.next

    few = MoreData(items=120, severe=14, questions=60, questions_now=30, answers_now=60)
    assert next_of(few) == ("Label about 60 more questions (120 answers, expect 14 severe).")
    assert "120 pairs" in next_of(replace(few, of="pair"))
    assert next_of(MoreData(items=1, of="pair")) == "Label about 1 more pair."
    assert next_of(MoreData(reason="even so nothing ends clear")) == "Even so nothing ends clear."
    no_severe = next_of(MoreData(reason=f"nothing to plan from: {NO_SEVERE_PAIR}"))
    assert no_severe.startswith("Have severe answers labelled")


def test_a_filter_by_label_names_the_labels() -> None:
    """A severity says nothing to who reads labels: `5 < 4 < 3` has the severity 2 at 3."""
    made = make_decisions()
    curve = next(c for c in made.curves if c.choice)
    metric = next(m for m in made.rubric.metrics if m.id == curve.metric)
    choice = curve.choice._replace(threshold=metric.severities[-1])
    sort = Condition("sent", "", State.MET, Estimate(0.2, n=9), 0.5, False)
    d = Decision(curve.judge, curve.metric, Outcome.ASSIST, "Fine.", assist=(sort,))
    by_label = replace(
        made, decisions=(d,), curves=(replace(curve, signal=SEVERITY, choice=choice),)
    )
    (one,) = by_label.part.standings
    assert f"people read the answers that it labels {metric.label_texts[-1]!r}, about" in one.next


def test_one_judge_on_every_metric_is_named_once() -> None:
    shown = make_decisions()
    metrics = [*shown.titles][:3]
    made = [Decision("a", m, Outcome.REPLACE, f"Fine on {m}.") for m in metrics]
    other = [Decision("b", m, Outcome.DO_NOT_USE, f"Bad on {m}.") for m in metrics]
    said = answer(replace(shown, decisions=(*made, *other)))
    titles = listed([shown.titles[metric] for metric in metrics])
    assert said == f"Yes: {titles} (a). No: {titles} (b)."
