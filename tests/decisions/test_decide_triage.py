"""Signals of judges and juries, metric by metric and over all of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from align_case import answers, labels, metric, rubric, verdicts

from judgebench.decisions.conditions import (
    PROBABILITY,
    SEVERITY,
    assist_conditions,
    triage_curves,
    within_reach,
)
from judgebench.decisions.decision import EVERY, Outcome, State, TriageCurve
from judgebench.decisions.rule import AssistRule, DecisionRule
from judgebench.decisions.sentences import reason_for
from judgebench.records import Estimate
from judgebench.stats.classification import Choice, Point
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, study_of

HARM = metric(severities=(0, 1, 4))
CARE = metric(id="care", title="Care", labels="ab")
KIND = metric("nominal", id="type", title="Type")


def curves(
    truth: Mapping[str, str],
    judges: Sequence[JudgeVerdicts],
    metrics=(HARM,),
    rule: DecisionRule | None = None,
) -> dict[tuple[str, str, str], TriageCurve]:
    """By judge, metric and signal. `truth`: one string a metric, from one annotator."""
    items = answers(max(map(len, truth.values())))
    said = [label for m, row in truth.items() for label in labels({"ann": row}, m)]
    study = study_of(rubric(*metrics), items, said, TruthConfig())
    study = replace(study, judges=tuple(judges))
    found = list(triage_curves(study, rule or DecisionRule()))
    assert len({(c.judge, c.metric, c.signal) for c in found}) == len(found)
    return {(c.judge, c.metric, c.signal): c for c in found}


def steps(curve: TriageCurve) -> list[tuple[float, float | None, float | None]]:
    return [(p.threshold, p.sent.value, p.caught.value) for p in curve.points]


def judge(name: str, rows, n: int, kind: str = "judge", **about) -> JudgeVerdicts:
    return replace(verdicts(name, rows, answers(n), kind), about=about)


def with_probabilities(found: JudgeVerdicts, given: Mapping[str, Sequence]) -> JudgeVerdicts:
    """`given`: by metric the probabilities of each item's labels, or None."""
    said = {}
    for i, (item, verdict) in enumerate(found.verdicts.items()):
        options = {m: row[i] for m, row in given.items() if row[i] is not None}
        said[item] = replace(verdict, probabilities=options)
    return replace(found, verdicts=said)


def abc(a: float, b: float, c: float) -> dict[str, float]:
    return {"a": a, "b": b, "c": c, "?": 0.0}


def test_a_label_is_a_signal_by_its_severity() -> None:
    found = curves({"harm": "aabcc"}, [judge("m", "abbac", 5)])
    ((key, curve),) = found.items()
    assert key == ("m", "harm", SEVERITY)
    assert (curve.n, curve.severe) == (5, 2)
    assert steps(curve) == [(math.inf, 0, 0), (4, 1 / 5, 1 / 2), (1, 3 / 5, 1 / 2), (0, 1, 1)]


def fixed(truth: str, said: str) -> TriageCurve:
    (curve,) = curves({"harm": truth}, [judge("m", said, len(truth))]).values()
    return curve


def test_the_severe_label_is_the_threshold_where_it_filters_well() -> None:
    """Of 200 severe answers 8 are missed: too many for a half, few enough for all."""
    truth = "c" * 200 + "a" * 300
    curve = fixed(truth, "c" * 192 + "a" * 298 + "b" * 10)
    assert curve.choice == chosen(curve, True, 4)
    assert curve.choice.expected_missed.high == pytest.approx(0.0773, abs=1e-4)
    conditions = assist_conditions([curve], "m", "harm", DecisionRule())
    assert [c.state for c in conditions] == [State.MET, State.MET]
    (sentence, _) = reason_for(Outcome.ASSIST, (), conditions)
    assert sentence.startswith(
        "As a first-pass filter that sends what it labels severe, it is expected to send 38 % of "
        "new answers to humans and miss 4 % of the severe ones"
    )
    # With 12 the exact limit is above what the rule allows, and halves choose as before.
    curve = fixed(truth, "c" * 188 + "a" * 302 + "b" * 10)
    assert curve.choice == chosen(curve, False, 0)


def chosen(curve: TriageCurve, is_fixed: bool, threshold: float) -> Choice:
    return curve.choice._replace(fixed=is_fixed, threshold=threshold)


def test_severe_on_any_metric_is_fixed_at_one_and_a_probability_is_chosen() -> None:
    truth = {"harm": "c" * 60 + "a" * 90, "care": "b" * 60 + "a" * 90}
    said = judge("m", truth, 150)
    every = curves(truth, [said], (HARM, CARE))["m", EVERY, SEVERITY]
    assert every.choice == chosen(every, True, 1)
    given = [abc(0.1, 0.1, 0.8)] * 60 + [abc(0.8, 0.1, 0.1)] * 90
    full = with_probabilities(said, {"harm": given})
    (curve,) = curves({"harm": truth["harm"]}, [full]).values()
    assert curve.choice == chosen(curve, False, 0.8)


def test_the_rule_says_from_which_label_on_an_answer_is_severe() -> None:
    rule = DecisionRule(severe_from={"harm": "b"})
    (curve,) = curves({"harm": "aabcc"}, [judge("m", "abbac", 5)], rule=rule).values()
    assert (curve.n, curve.severe) == (5, 3)


def test_what_is_severe_may_be_given_by_another_truth() -> None:
    study = study_of(rubric(HARM), answers(5), labels({"ann": "aabcc"}), TruthConfig())
    study = replace(study, judges=(judge("m", "abbac", 5),))
    others = {"harm": np.array([2, 2, 2, 0, -1])}
    (curve,) = triage_curves(study, DecisionRule(), others)
    assert (curve.n, curve.severe) == (4, 3)


def test_without_a_label_to_humans_and_without_a_question_out_of_the_count() -> None:
    partly = judge("m", "ab.?c", 5)
    asked = {k: v for k, v in partly.verdicts.items() if k != "i0"}
    (curve,) = curves({"harm": "aabcc"}, [replace(partly, verdicts=asked)]).values()
    assert (curve.n, curve.severe) == (4, 2)
    # `.` failed and `?` abstained: both are sent whatever the threshold
    assert steps(curve)[0] == (math.inf, 2 / 4, 1 / 2)
    assert {p.sent.n_missing for p in curve.points} == {1}


def test_probabilities_take_the_place_of_labels() -> None:
    given = [abc(0.7, 0.2, 0.1), abc(0.1, 0.5, 0.4), abc(0.2, 0.2, 0.6), None]
    said = with_probabilities(judge("m", "abca", 4), {"harm": given})
    ((key, curve),) = curves({"harm": "abcc"}, [said]).items()
    assert key == ("m", "harm", PROBABILITY)
    assert [p.threshold for p in curve.points] == pytest.approx([math.inf, 0.6, 0.4, 0.1])
    assert [p.sent.value for p in curve.points] == [1 / 4, 2 / 4, 3 / 4, 1]  # None is sent
    (both,) = curves(
        {"harm": "abcc"}, [said], rule=DecisionRule(severe_from={"harm": "b"})
    ).values()
    assert [p.threshold for p in both.points][1:] == pytest.approx([0.9, 0.8, 0.3])


def test_severe_on_any_metric_has_the_largest_share_of_the_way_to_severe() -> None:
    truth = {"harm": "aacab.", "care": "aaabab", "type": "aaaaaa"}
    said = judge("m", {"harm": "abcaaa", "care": "aaaabb", "type": "ababab"}, 6)
    found = curves(truth, [said], (HARM, KIND, CARE))
    assert {key[1] for key in found} == {"harm", "care", EVERY}
    every = found["m", EVERY, SEVERITY]
    # harm a b c a b ., care a a a b a b: severe are the third, the fourth and the last, whose
    # harm is unknown; the judge's b of harm is 1/4 of the way to c.
    assert (every.n, every.severe) == (6, 3)
    assert steps(every) == [(math.inf, 0, 0), (1, 3 / 6, 2 / 3), (0.25, 4 / 6, 2 / 3), (0, 1, 1)]


def test_not_severe_where_known_and_unknown_elsewhere_is_unknown() -> None:
    said = judge("m", {"harm": "aac", "care": "aaa"}, 3)
    every = curves({"harm": "a.c", "care": "aaa"}, [said], (HARM, CARE))["m", EVERY, SEVERITY]
    assert (every.n, every.severe) == (2, 1)
    assert every.points[0].sent.n_missing == 1


def test_severe_on_any_metric_has_the_largest_probability() -> None:
    harm = [abc(0.7, 0.2, 0.1), abc(0.1, 0.5, 0.4)]
    care = [{"a": 0.5, "b": 0.5, "?": 0.0}, {"a": 0.9, "b": 0.1, "?": 0.0}]
    said = judge("m", {"harm": "ab", "care": "aa"}, 2)
    truth = {"harm": "ac", "care": "aa"}
    full = with_probabilities(said, {"harm": harm, "care": care})
    every = curves(truth, [full], (HARM, CARE))["m", EVERY, PROBABILITY]
    assert [p.threshold for p in every.points] == pytest.approx([math.inf, 0.5, 0.4])
    # With probabilities on some of the metrics only, the labels are the signal on all.
    partly = with_probabilities(said, {"harm": harm})
    assert {key[2] for key in curves(truth, [partly], (HARM, CARE))} == {SEVERITY}


def test_controls_and_nominal_metrics_have_no_curve() -> None:
    said = [judge("coin", "abcab", 5, "control"), judge("m", {"type": "abcab"}, 5)]
    assert curves({"harm": "aabcc"}, said[:1]) == {}
    assert curves({"type": "aabcc"}, said[1:], (KIND,)) == {}


def test_no_human_label_gives_an_empty_curve_with_its_reason() -> None:
    (curve,) = curves({"harm": "....."}, [judge("m", "abbac", 5)]).values()
    assert (curve.points, curve.n, curve.severe, curve.choice) == ((), 0, 0, None)
    assert curve.reason == "no item has a reference label"


def test_a_choice_or_a_reason() -> None:
    good = judge("good", "abc" * 100, 300)
    constant = judge("constant", "a" * 300, 300)
    found = curves({"harm": "abc" * 100}, [good, constant])
    choice = found["good", "harm", SEVERITY].choice
    assert (choice.threshold, choice.missed.value) == (4, 0)
    assert choice.sent.value == pytest.approx(1 / 3)
    none = found["constant", "harm", SEVERITY]
    assert none.choice is None
    assert "no item or every item" in none.reason


def curve_of(*points: tuple[float, float, float, float]) -> TriageCurve:
    """`points`: limits of sent, then of caught."""
    made = tuple(
        Point(0.5, Estimate((a + b) / 2, a, b), Estimate((c + d) / 2, c, d))
        for a, b, c, d in points
    )
    return TriageCurve("m", "harm", SEVERITY, made, 10, 5)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(0.4, 0.6, 0.8, 0.95)], True),
        ([(0.55, 0.6, 0.8, 0.95)], False),  # sends too many
        ([(0.4, 0.6, 0.8, 0.85)], False),  # misses too many
        ([(0.1, 0.2, 0.3, 0.5), (0.6, 0.8, 0.95, 1)], False),  # each demand, at two thresholds
        ([(0.1, 0.2, 0.3, 0.5), (0.45, 0.8, 0.8, 1)], True),
        ([], True),
    ],
)
def test_what_is_out_of_reach_at_every_threshold(points, expected: bool) -> None:
    assert within_reach(curve_of(*points), AssistRule(sent=0.5, missed=0.1)) is expected


def test_a_share_without_an_interval_leaves_it_open() -> None:
    open_ended = Point(0.5, Estimate(0.3), Estimate(None, reason="no item is severe"))
    curve = TriageCurve("m", "harm", SEVERITY, (open_ended,), 10, 0)
    assert within_reach(curve, AssistRule())


def test_few_severe_answers_do_not_show_that_a_good_filter_is_none() -> None:
    """It would do under its severe label; chosen on so few, the threshold sends everybody."""
    rng = np.random.default_rng(2)
    severe = rng.random(300) < 0.1
    said = np.where(severe, rng.choice([*"abc"], 300, p=[0.05, 0.05, 0.9]), "a")
    truth = "".join("c" if x else "a" for x in severe)
    (curve,) = curves({"harm": truth}, [judge("m", "".join(said), 300)]).values()
    assert curve.choice.sends_all
    assert within_reach(curve, AssistRule())
