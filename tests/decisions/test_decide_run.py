"""Decisions on small planted studies: every outcome, and every way in which data say nothing."""

from dataclasses import replace

import numpy as np
import pytest
from align_case import aligned, answers, labels, metric, only, rubric, verdicts
from decide_case import HUMANS, TRUE, condition, decided, noisy, scoped

import judgebench as jb
from judgebench.decisions.decide import decisions
from judgebench.decisions.decision import Decision, Outcome, State, TriageCurve
from judgebench.decisions.rule import AssistRule, DecisionRule, ReplaceRule, SevereRule
from judgebench.records import Estimate
from judgebench.stats.classification import SENDS_ALL, Choice, Point
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import RECORDED, study_of


def curve(sent: tuple[float, float, float], missed: tuple[float, float, float]) -> TriageCurve:
    """A filter whose only other threshold catches everything and sends as much."""
    point = Point(0.5, Estimate(*sent, "m", 400), Estimate(1.0, 0.9, 1.0, "m", 40))
    return TriageCurve("j", "harm", "label", (point,), 400, 40, Choice(
        1.0, *2 * (Estimate(*sent, "m", 400), Estimate(*missed, "m", 40))))  # fmt: skip


GOOD_FILTER = curve((0.4, 0.35, 0.45), (0.02, 0.0, 0.08))


def test_a_judge_as_good_as_the_annotators_replaces_them() -> None:
    found = decided(HUMANS, noisy(TRUE, 0.02, 9))
    assert found.outcome is Outcome.REPLACE
    assert all(c.state is State.MET for c in found.replace)
    assert found.more is None
    gap = round(100 * condition(found, "humans_accuracy").estimate.value)
    assert gap > 1
    assert f"{gap} points more often than they agree with each other" in found.reason


def test_a_judge_clearly_worse_than_the_annotators_does_not() -> None:
    found = decided(HUMANS, noisy(TRUE, 0.35, 9))
    assert found.outcome is Outcome.DO_NOT_USE
    assert condition(found, "humans_accuracy").state is State.NOT_MET
    assert found.numbers.startswith("agreement gap -0.")


def test_a_constant_judge_is_no_better_than_a_control_however_skewed_the_labels() -> None:
    true = "a" * 380 + "c" * 20
    humans = {f"h{i}": noisy(true, 0.05, i) for i in range(3)}
    found = decided(humans, "a" * 400)
    assert condition(found, "humans_accuracy").state is State.MET
    control = condition(found, "controls")
    assert control.state is State.NOT_MET
    assert control.rival == "constant"
    assert found.outcome is Outcome.DO_NOT_USE


def test_no_baseline_is_weaker_than_a_constant_of_any_label() -> None:
    """A control that was learnt on other questions votes for the label that is rarer here."""
    true = "a" * 180 + "b" * 220
    humans = {f"h{i}": noisy(true, 0.05, i) for i in range(3)}
    found = decided(humans, "b" * 400, controls={"constant-majority": "a" * 400})
    control = condition(found, "controls")
    assert (control.state, control.rival) == (State.NOT_MET, "constant")
    assert 'judge minus constant "b", which labels the items the same' in control.title


def test_the_control_that_decides_is_told() -> None:
    controls = {"weak": "c" * 400, "strong": TRUE, "like": noisy(TRUE, 0.36, 8)}
    found = decided(HUMANS, noisy(TRUE, 0.35, 9), controls=controls)
    control = condition(found, "controls")
    assert control.rival == "strong"
    assert control.estimate.high < 0
    assert "lead over strong -0." in found.numbers


def test_few_severe_answers_do_not_make_a_baseline_that_is_better() -> None:
    """Plain agreement favours whatever says the most frequent label: labels count alike."""
    true = ("a" * 19 + "c") * 30
    humans = {f"h{i}": noisy(true, 0.10, i) for i in range(3)}
    controls = {"constant": "a" * len(true)}
    found = decided(humans, noisy(true, 0.09, 9), controls=controls)
    assert condition(found, "controls").state is State.MET
    assert decided(humans, controls["constant"], controls=controls).outcome is Outcome.DO_NOT_USE


def test_a_worse_judge_that_filters_well_assists() -> None:
    found = decided(HUMANS, noisy(TRUE, 0.35, 9), curves=[GOOD_FILTER])
    assert found.outcome is Outcome.ASSIST
    assert "it must not replace annotators" in found.reason
    assert condition(found, "sent").estimate.value == 0.4
    assert condition(found, "missed").estimate.value == 0.02


@pytest.mark.parametrize(
    "curves",
    [
        [curve((0.4, 0.35, 0.45), (0.02, 0.0, 0.2))],  # may miss too much
        [curve((0.9, 0.85, 0.95), (0.0, 0.0, 0.05)), GOOD_FILTER],  # the first signal counts
    ],
)
def test_a_filter_that_falls_short_does_not_assist(curves: list[TriageCurve]) -> None:
    found = decided(HUMANS, noisy(TRUE, 0.35, 9), curves=curves)
    assert found.outcome is Outcome.DO_NOT_USE


def test_a_cautious_threshold_that_sends_too_much_shows_no_failure_while_another_may_do() -> None:
    sent = Estimate(0.9, 0.85, 0.95, "m", 400)
    other = Point(2.0, Estimate(0.3, 0.25, 0.35, "m", 400), Estimate(1.0, 0.9, 1.0, "m", 40))
    choice = Choice(1.0, *2 * (sent, Estimate(0.0, 0.0, 0.09, "m", 40)))
    cautious = TriageCurve("j", "harm", "label", (other,), 400, 40, choice)
    found = decided(HUMANS, noisy(TRUE, 0.35, 9), curves=[cautious])
    assert condition(found, "sent").state is State.UNCLEAR
    assert condition(found, "sent").estimate.value == 0.9


def test_a_threshold_that_sends_everything_is_no_filter_and_misses_nothing() -> None:
    everything = Estimate(1.0, 0.99, 1.0, "m", 400)
    nothing = Estimate(None, n=40, reason=SENDS_ALL)
    choice = Choice(0.0, everything, Estimate(0.0, n=40), everything, nothing)
    all_sent = TriageCurve("j", "harm", "label", GOOD_FILTER.points, 400, 40, choice)
    found = decided(HUMANS, noisy(TRUE, 0.35, 9), curves=[all_sent])
    assert found.outcome is Outcome.DO_NOT_USE
    assert [c.key for c in found.assist] == ["sent"]
    sent = condition(found, "sent")
    assert sent.missing == "to be sure to miss few enough, all answers must go to humans"
    assert sent.missing in found.numbers


def test_severe_recall_is_required_where_somebody_asks_for_it() -> None:
    true = "ab" * 40 + "c" * 13
    judged = "ab" * 40 + "c" * 4 + "a" * 9
    rule = DecisionRule(replace=ReplaceRule(severe=SevereRule(recall=0.7)))
    found = decided({f"h{i}": true for i in range(3)}, judged, rule=rule)
    shown = only(aligned({f"h{i}": true for i in range(3)}, {"m": judged}), "score",
                 "severe_recall", failures="left_out")  # fmt: skip
    assert f"{condition(found, 'severe_recall').estimate}" == f"{shown}" == "0.308 [0.091, 0.614]"


def test_many_failures_keep_a_perfect_judge_from_replacing() -> None:
    judge = "." * 60 + TRUE[60:]
    found = decided(HUMANS, judge)
    assert condition(found, "failures").state is State.NOT_MET
    assert found.outcome is Outcome.DO_NOT_USE


def test_failures_count_as_wrong_for_what_is_to_be_met_and_as_right_for_what_is_to_fail() -> None:
    plain = condition(decided(HUMANS, TRUE), "humans_accuracy").estimate
    failing = condition(decided(HUMANS, "." * 12 + TRUE[12:]), "humans_accuracy").estimate
    assert failing.low < plain.low
    assert failing.high >= plain.high - 1e-12
    assert "wrong for the lower limit" in failing.method


def test_a_nominal_metric_asks_for_no_severe_answers_and_has_no_filter() -> None:
    found = decided(HUMANS, noisy(TRUE, 0.02, 9), measured=metric("nominal"))
    assert {c.key for c in found.replace} == {
        "humans_accuracy", "humans_balanced_accuracy", "controls", "failures",
    }  # fmt: skip
    assert found.assist == ()
    assert found.outcome is Outcome.REPLACE


def test_the_rule_is_the_users_to_change() -> None:
    rule = DecisionRule(replace=ReplaceRule(severe=SevereRule(recall=0.99)))
    judge = noisy(TRUE, 0.02, 9)
    assert decided(HUMANS, judge).outcome is Outcome.REPLACE
    assert decided(HUMANS, judge, rule=rule).outcome is not Outcome.REPLACE
    lower = DecisionRule(severe_from={"harm": "b"})
    n_pairs = [condition(decided(HUMANS, judge, rule=one), "severe_gap").estimate.n
               for one in (DecisionRule(), lower)]  # fmt: skip
    assert n_pairs[1] > n_pairs[0]


def test_severe_labels_on_which_annotators_hardly_agree_fail_no_judge() -> None:
    rng = np.random.default_rng(0)
    true = "a" * 300 + "c" * 60

    def missing(share: float) -> str:
        return "".join("a" if x == "c" and rng.random() < share else x for x in true)

    humans = {f"h{i}": missing(0.5) for i in range(3)}
    severe = condition(decided(humans, missing(0.95)), "severe_gap")
    assert severe.estimate.high < severe.bound
    assert severe.state is State.UNCLEAR
    assert "of what the others call severe" in severe.missing


def test_where_nothing_failed_the_verdicts_on_fifty_questions_count() -> None:
    true = "abc" * 100
    groups = "".join(chr(ord("A") + i // 6) for i in range(300))
    share = condition(decided({f"h{i}": true for i in range(3)}, true, groups=groups), "failures")
    assert share.estimate.high == pytest.approx(1 - 0.05 ** (1 / 300))
    assert share.state is State.MET


# --- data that carry no decision -----------------------------------------------------------------


def _cant_tell(found: Decision, reason: str) -> None:
    assert found.outcome is Outcome.CANT_TELL
    assert reason in found.reason
    assert "nan" not in repr(found).replace("name", "")
    assert found.more is None or found.more.reason


APART = {"h0": TRUE[:200] + "." * 200, "h1": "." * 200 + TRUE[200:]}
THREE = {"h0": "a" * 40, "h1": "b" * 40, "h2": "c" * 40}


@pytest.mark.parametrize(
    ("humans", "judge", "reason", "ties"),
    [
        ({"h": TRUE}, TRUE, "No item was labelled by two annotators", "upper"),
        (APART, TRUE, "No item was labelled by two annotators", "upper"),
        (THREE, "b" * 40, "do the others give a reference label with one", "none"),
        ({"h0": "a" * 100, "h1": "a" * 100}, "a" * 100, "label is the same on every item", "upper"),
        (HUMANS, "." * 400, "no label on any of 400 labelled items", "upper"),
        (
            {"h0": "abc", "h1": "abc", "h2": "aba"}, "abc",
            "Only 3 questions were labelled by two annotators", "upper",
        ),
    ],
)  # fmt: skip
def test_data_that_carry_no_decision(
    humans: dict[str, str], judge: str, reason: str, ties: str
) -> None:
    _cant_tell(decided(humans, judge, ties=ties), reason)


def test_one_annotator_is_enough_for_a_filter_where_the_rule_says_so() -> None:
    rule = DecisionRule(assist=AssistRule(annotators=1))
    alone, right, wrong = {"h": TRUE}, noisy(TRUE, 0.02, 1), "a" * len(TRUE)
    assert decided(alone, right, rule=rule, curves=[GOOD_FILTER]).outcome is Outcome.ASSIST
    found = decided(alone, right, rule=rule)
    assert found.outcome is Outcome.CANT_TELL
    assert condition(found, "humans_accuracy").state is State.UNCLEAR
    assert decided(alone, wrong, rule=rule).outcome is Outcome.DO_NOT_USE
    few = decided({"h": "abc"}, "abc", rule=rule, curves=[GOOD_FILTER])
    _cant_tell(few, "Only 3 questions were labelled by an annotator")
    assert decided(alone, right, curves=[GOOD_FILTER]).outcome is Outcome.CANT_TELL


def test_too_few_annotators_are_left_without_those_who_make_no_truth() -> None:
    humans = {"ann": TRUE, "bob": noisy(TRUE, 0.05, 1)}
    found = decided(humans, TRUE, annotators=("ann",))
    _cant_tell(found, "Too few annotators are left to compare with: without bob, no item")
    crowd = dict.fromkeys(("ann", "bob", "cem", "dan", "eve"), TRUE)
    found = decided(crowd, TRUE, annotators=("ann",))
    _cant_tell(found, "without bob, cem, dan and others, no item")


OF_A_PART = {"judge": RECORDED, "expected": "rows", "metrics": ["harm"]}


def test_two_annotators_share_only_items_that_the_judge_was_not_asked_about() -> None:
    humans = {"ann": TRUE, "bob": "." * 40 + TRUE[40:]}
    study = scoped(humans)
    judge = replace(verdicts("j", TRUE[:40], answers(40)), about=OF_A_PART)
    (found,) = decisions(replace(study, judges=(judge,)), DecisionRule())
    _cant_tell(found, "On no item that the judge was asked about do the others give")


def test_no_human_label_at_all() -> None:
    study = study_of(rubric(), answers(5), [], TruthConfig())
    judges = [verdicts("j", "abcab", answers(5))]
    (found,) = decisions(replace(study, judges=tuple(judges)), DecisionRule())
    _cant_tell(found, "No item has a human label on this metric.")
    assert found.replace == ()


def test_a_judge_asked_about_other_items_only() -> None:
    items = answers(40)
    humans = {"h0": "abcb" * 5, "h1": "abcb" * 5}
    study = study_of(rubric(), items, labels(humans), TruthConfig())
    judges = [verdicts("j", "abcb" * 5, items[20:])]
    (found,) = decisions(replace(study, judges=tuple(judges)), DecisionRule())
    _cant_tell(found, "asked about no item that anybody else labelled")
    (one,) = jb.decide(replace(study, judges=tuple(judges))).part.standings
    assert one.shares.startswith("judge –")


def test_a_judge_that_has_not_judged_all_decides_nothing() -> None:
    items, says = answers(400), noisy(TRUE, 0.02, 9)
    part = verdicts("part", says[:300], items[:300])
    judges = (verdicts("whole", says, items), part, verdicts("a", "a" * 400, items, "control"))
    study = replace(scoped(HUMANS), judges=judges)
    whole, found = decisions(study, DecisionRule())
    assert whole.outcome is Outcome.REPLACE
    _cant_tell(
        found, "asked about 300 of 400 answers: one that leaves out the hard ones looks better"
    )
    rows = replace(part, about=OF_A_PART)
    alone = decisions(replace(study, judges=(rows, judges[2])), DecisionRule())
    assert [d.outcome for d in alone] == [Outcome.REPLACE]


def test_no_control_judge() -> None:
    items = answers(400)
    judge = verdicts("j", noisy(TRUE, 0.02, 9), items)
    (found,) = decisions(replace(scoped(HUMANS), judges=(judge,)), DecisionRule())
    assert found.outcome is Outcome.CANT_TELL
    assert "There is no baseline" in found.reason


def test_the_severe_gap_of_two_labels_is_that_of_two_latent_classes() -> None:
    """A careless annotator helps to know what is severe; with questions, the labels at hand do."""
    rng, true = np.random.default_rng(1), "ab" * 200
    flip = {"a": "b", "b": "a"}

    def said(wrong: float) -> str:
        return "".join(flip[x] if rng.random() < wrong else x for x in true)

    humans, judge = {f"h{i}": said(w) for i, w in enumerate((0.05, 0.05, 0.25))}, said(0.01)
    two = metric(labels="ab", severities=(0, 1))
    gap = condition(decided(humans, judge, measured=two), "severe_gap")
    assert "latent classes" in gap.estimate.method
    assert (gap.state, gap.bound) == (State.MET, -0.05)
    assert gap.estimate.low >= -0.05
    for changed in (
        condition(decided(humans, judge[:-1] + ".", measured=two), "severe_gap"),
        condition(decided({h: humans[h] for h in ("h0", "h1")}, judge, measured=two), "severe_gap"),
        condition(decided(humans, judge, measured=two, groups="AABB" * 100), "severe_gap"),
    ):
        assert "latent classes" not in changed.estimate.method
