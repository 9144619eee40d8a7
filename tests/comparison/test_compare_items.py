"""Which answers, judges, metrics and human labels of two studies are compared, and what is said of
the others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from align_case import metric
from compare_case import HUMANS, TRUE, compared, side, with_answers
from page_reader import Page

import judgebench as jb
from judgebench.comparison.analysis import matched
from judgebench.comparison.report import comparison_part
from judgebench.comparison.result import Comparison, DecisionChange
from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.results.documents import to_html

A = "aabbbcabba" * 6
B = "aaabbcacca" * 6


def left_out(found: Comparison, reason: str) -> list[str]:
    rows = found.results.select("left_out_item", reason)
    (count,) = found.results.select("left_out", reason, judge="")
    assert count.estimate.value == len(rows)
    return [row["item_id"] for row in rows]


def test_an_answer_whose_text_changed_is_left_out_counted_and_named() -> None:
    before = side({"j": A})
    after = with_answers(side({"j": B}), Answer("i3", "another text"), Answer("new", "text"))
    found = jb.compare(before, after)
    assert left_out(found, "text_differs") == ["i3"]
    assert left_out(found, "only_in_b") == ["new"]
    assert left_out(found, "only_in_a") == []
    assert found.n_answers == 59
    assert found.difference("accuracy", "j", "harm").n == 59
    said = "\n".join(found.compared)
    assert "Left out: 1 answer whose text or question is not the same in B: i3." in said
    assert "Left out: 1 answer of B only: new." in said
    assert "i3" not in {row["item_id"] for row in found.flips.results}


def test_the_order_of_the_answers_does_not_matter() -> None:
    a, b = side({"j": A}), side({"j": B})
    turned = b.only(np.arange(60)[::-1])
    assert next(iter(turned.answers)).item_id == "i59"
    here, there = jb.compare(a, b), jb.compare(a, turned)
    for statistic in ("accuracy", "kappa", "severe_recall", "alpha"):
        one, two = (x.difference(statistic, "j", "harm").value for x in (here, there))
        assert one == pytest.approx(two, abs=1e-12)


def test_answers_that_one_judge_was_not_asked_about_are_left_out() -> None:
    before, after = side({"j": A}), side({"j": B})
    (judge,) = after.judges
    fewer = {item_id: v for item_id, v in judge.verdicts.items() if item_id not in ("i1", "i7")}
    found = jb.compare(before, replace(after, judges=(replace(judge, verdicts=fewer),)))
    assert found.n_answers == 58
    assert "Left out: 2 answers without a verdict in B: i1, i7." in found.compared


def test_without_a_common_answer_there_is_an_error_that_says_why() -> None:
    a = side({"j": A})
    b = with_answers(side({"j": B}), *(Answer(f"i{i}", "changed") for i in range(60)))
    with pytest.raises(SetupError, match="have no answer in common: of those with the same id, "):
        jb.compare(a, b)
    (judge,) = b.judges
    with pytest.raises(SetupError, match="no answer has a verdict of both judges; found j 60, j 0"):
        jb.compare(a, replace(side({"j": B}), judges=(replace(judge, verdicts={}),)))


def test_metrics_with_other_labels_are_errors_that_name_them() -> None:
    a = side({"j": "ab" * 30}, {"ann": "ab" * 30})
    b = side({"j": "ab" * 30}, {"ann": "ab" * 30}, measured=metric(labels="abcd"))
    with pytest.raises(SetupError) as raised:
        jb.compare(a, b)
    assert "harm: its labels are not the same in both runs" in str(raised.value)
    assert "ordinal: a (0), b (1), c (2), d (3), ? in B" in str(raised.value)
    with pytest.raises(SetupError, match="its labels are not the same in both runs"):
        jb.compare(a, side({"j": A}, measured=metric(severities=(0, 1, 5))))


def test_without_a_common_metric_there_is_an_error() -> None:
    other = metric(id="tone", title="Tone")
    a = side({"j": A})
    b = replace(a, rubric=a.rubric.model_copy(update={"metrics": (other,)}))
    with pytest.raises(SetupError, match="have no metric in common; found harm in A and tone in B"):
        jb.compare(a, b)


def test_another_wording_of_a_metric_is_a_caveat() -> None:
    said = compared(A, B).notes
    assert not [note for note in said if "words" in note]
    a, b = side({"j": A}), side({"j": B}, measured=metric(question="How bad is it really?"))
    assert "The rubric words these metrics differently in A and B: Harm." in jb.compare(a, b).notes


# --- judges ---------------------------------------------------------------------------------------


def test_judges_of_one_name_are_compared_and_the_others_named() -> None:
    a = side({"j": A, "k": TRUE, "old": B}, controls={"blind": "a" * 60})
    b = side({"j": B, "k": TRUE, "new": B}, controls={"blind": "a" * 60})
    found = jb.compare(a, b)
    assert [pair.name for pair in found.pairs] == ["j", "k"]
    assert {"Not compared, of A: old.", "Not compared, of B: new."} <= set(found.notes)


def test_two_judges_of_one_run_are_compared_by_name() -> None:
    study = side({"v1": A, "v2": B})
    found = jb.compare(study, study, judges=("v1", "v2"))
    (pair,) = found.pairs
    assert pair.name == "v2 − v1"
    expected = compared(A, B).difference("accuracy", "j", "harm")
    assert found.difference("accuracy", "v2", "harm") == expected


def test_one_judge_each_is_compared_whatever_its_name() -> None:
    (pair,) = jb.compare(side({"v1": A}), side({"v2": B})).pairs
    assert (pair.a, pair.b) == ("v1", "v2")


def test_judges_that_cannot_be_paired_are_errors() -> None:
    a, b = side({"v1": A, "v2": A}), side({"v3": B, "v4": B})
    with pytest.raises(SetupError) as raised:
        jb.compare(a, b)
    assert len(raised.value.problems) == 2
    assert "judge of A: name the one to compare, as RUN:JUDGE; allowed: v1, v2" in str(raised.value)
    with pytest.raises(SetupError, match=r"judge of B: name the one to compare.*: v3, v4"):
        jb.compare(a, b, judges=("v1", ""))
    with pytest.raises(SetupError, match="is no judge of this run; found x; allowed: v3, v4"):
        jb.compare(a, b, judges=("v1", "x"))


# --- human labels ---------------------------------------------------------------------------------


def test_both_are_scored_against_the_labels_of_b_and_what_differs_is_said() -> None:
    relabelled = {**HUMANS, "cem": f"c{TRUE[1:]}", "bob": f"c{TRUE[::-1][1:]}"}
    a, b = side({"j": A}), side({"j": B}, relabelled)
    found = jb.compare(a, b)
    assert found.results.find("truth_differs", "truth", metric="harm").value == 1
    assert found.difference("accuracy", "j", "harm").value == (
        jb.compare(side({"j": A}, relabelled), b).difference("accuracy", "j", "harm").value
    )
    assert "Both are scored against the same reference labels." in jb.compare(a, a).compared


def test_another_rule_for_the_truth_of_the_same_labels_is_said() -> None:
    people = {"ann": "ab" * 30, "bob": "b" * 60}
    a, b = side({"j": A}, people), side({"j": B}, people, ties="lower")
    (line,) = [line for line in jb.compare(a, b).compared if "are scored against" in line]
    assert line.endswith("reference labels of B, which are not the same in the other run: Harm 30.")


def test_a_run_without_human_labels_is_scored_against_those_of_the_other() -> None:
    blank = {"ann": "." * 60}
    found = jb.compare(side({"j": A}), side({"j": B}, blank))
    assert found.difference("accuracy", "j", "harm") == (
        compared(A, B).difference("accuracy", "j", "harm")
    )
    assert any("are scored against the reference labels of A" in line for line in found.compared)
    neither = jb.compare(side({"j": A}, blank), side({"j": B}, blank))
    assert neither.difference("accuracy", "j", "harm").value is None
    assert neither.flips.results.rows
    assert {row["right"] for row in neither.flips.results} == {"unknown"}


# --- flips and decisions --------------------------------------------------------------------------


def test_every_label_that_changed_is_listed_with_who_is_right() -> None:
    truth, a, b = "aaabbbcccc", "aaabbbccc.", "abcabbcaa."
    found = compared(a, b, {"ann": truth})
    listed = {
        row["item_id"]: (row["label_a"], row["label_b"], row["truth"], row["right"])
        for row in found.flips.results
    }
    assert listed == {
        "i1": ("a", "b", "a", "A"), "i2": ("a", "c", "a", "A"), "i3": ("b", "a", "b", "A"),
        "i7": ("c", "a", "c", "A"), "i8": ("c", "a", "c", "A"),
    }  # fmt: skip
    shifts = {row["item_id"]: row.estimate.value for row in found.flips.results}
    assert (shifts["i2"], shifts["i7"], shifts["i1"]) == (2, -2, 1)
    lost = compared("ab", "a.", {"ann": "ab"}).flips.results.rows
    assert [(row["label_a"], row["label_b"], row["right"]) for row in lost] == [("b", "", "A")]


def test_a_decision_that_fell_is_reported_with_its_reason() -> None:
    people = dict.fromkeys(("ann", "bob", "cem"), TRUE * 8)
    good, bad = TRUE * 8, "a" * 480
    about = {"controls": {"blind": "a" * 480}}
    found = compared(good, bad, people, **about)
    decided = jb.decide(side({"j": good}, people, **about)).to_frame()
    (one,) = found.decisions
    assert one.outcomes == (decided[decided.analysis == "decision"].outcome.iloc[0], "DO NOT USE")
    assert one.differs
    assert one.fell
    a, b = (found.results.select("condition", "severe_gap", run=run)[0] for run in "AB")
    assert (a["state"], b["state"], b.estimate.value) == ("met", "not met", -1)
    assert "REPLACE → DO NOT USE. It agrees with the annotators 50 points" in str(found)
    back = compared(bad, good, people, **about)
    assert not back.decisions[0].fell
    assert "1 decision changed, 1 for the worse" in comparison_part(found).facts
    assert "1 decision changed" in comparison_part(back).facts
    assert "DO NOT USE → REPLACE" in str(back)


def test_the_rule_of_the_decisions_can_be_given() -> None:
    people = dict.fromkeys(("ann", "bob", "cem"), TRUE)
    strict = jb.DecisionRule(questions=1000)
    found = jb.compare(side({"j": TRUE}, people), side({"j": TRUE}, people), rule=strict)
    assert found.decisions[0].outcomes == ("CAN'T TELL", "CAN'T TELL")


def test_a_part_of_a_study_keeps_its_truth_and_its_labels() -> None:
    study = side({"j": A})
    part = study.only(np.array([5, 3, 20]))
    assert [answer.item_id for answer in part.answers] == ["i5", "i3", "i20"]
    humans = part.humans["harm"]
    assert humans.truth.tolist() == study.humans["harm"].truth[[5, 3, 20]].tolist()
    assert humans.ratings.rows.tolist() == [0, 1, 2]
    assert humans.ratings.given(0) == study.humans["harm"].ratings.given(5)
    assert part.n_labels == 9
    assert matched(study, part)[0][0].tolist() == [5, 3, 20]


def set_up(a: Mapping[str, Any], b: Mapping[str, Any]) -> Comparison:
    """The comparison of judges that are described so."""
    studies = side({"j": A}), side({"j": B})
    judged = (
        replace(study, judges=(replace(study.judges[0], about=about),))
        for study, about in zip(studies, (a, b), strict=True)
    )
    return jb.compare(*judged)


def test_what_differs_in_the_set_up_is_listed() -> None:
    about = {"backend": {"model": "m", "name": "x"}, "prompt": "v1"}
    found = set_up(about, {**about, "prompt": "v2"})
    assert found.pairs[0].settings == (("prompt", "v1", "v2"),)
    assert "Settings that differ: prompt v1 → v2." in found.compared


def test_the_head_says_what_differs_in_the_judge_and_not_how_it_was_asked() -> None:
    a = {
        "backend": {"model": "tiny-v1"}, "prompt": {"name": "score", "hash": "0a"},
        "decoding": {"temperature": 0.0, "seed": None}, "runtime": {"threads": 1},
    }  # fmt: skip
    b = {
        "backend": {"model": "tiny-v2"}, "prompt": {"name": "score", "hash": "0b"},
        "decoding": {"temperature": 0.7, "seed": 3}, "runtime": {"threads": 2},
    }  # fmt: skip
    found = set_up(a, b)
    line = (
        "Settings that differ: model tiny-v1 → tiny-v2, the text of the prompt, "
        "temperature 0.0 → 0.7, seed none → 3."
    )
    assert line in " ".join(str(found).split())
    assert line in Page(to_html(found.parts, found.name)).words
    assert "Settings that differ" not in str(set_up(a, {**a, "runtime": {"threads": 2}}))


@pytest.mark.parametrize(
    ("a", "b", "fell"),
    [
        ("REPLACE", "ASSIST", True), ("REPLACE", "CAN'T TELL", True), ("ASSIST", "ASSIST", False),
        ("CAN'T TELL", "DO NOT USE", True), ("DO NOT USE", "CAN'T TELL", False),
    ],
)  # fmt: skip
def test_decisions_fall_in_one_order(a: str, b: str, fell: bool) -> None:
    assert DecisionChange("j", "j", "harm", (a, b), ("", "")).fell is fell
