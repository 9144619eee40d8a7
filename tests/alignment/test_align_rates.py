"""The true rates of the labels, through `align` itself."""

from __future__ import annotations

import pytest
from align_case import FEW, aligned, answers, labels, metric, only, rubric, verdicts
from aligned import align

from judgebench.alignment import Alignment
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.partly_labelled import ALL_LABELLED, NO_LABEL
from judgebench.stats.resample import Resampling

METHODS = ["human", "verdicts", "ppi", "rogan_gladen"]
# 12 answers with a human label, 24 without; the judge errs on one of each kind
HUMAN = "aaaaaabbbbcc" + "." * 24
JUDGE = "aaaaabbbbbca" + "aaaaaaaaaaaabbbbbbbbcccc"


def rates(found: Alignment, **keys: str) -> list[Row]:
    return [r for r in found.results.select("rate", **keys) if r.statistic in METHODS]


def rate(found: Alignment, method: str, label: str = "a", judge: str = "m") -> Estimate:
    return only(found, "rate", method, judge=judge, metric="harm", human_label=label)


def test_every_label_has_every_method_where_some_answers_have_no_human_label() -> None:
    found = aligned({"ann": HUMAN}, {"m": JUDGE})
    assert [(r["human_label"], r.statistic) for r in rates(found)] == [
        (x, m) for x in "abc" for m in METHODS
    ]
    assert rate(found, "human").value == 6 / 12
    assert rate(found, "verdicts").value == 18 / 36
    # lambda = cov / ((1 + n/N) var) with cov = 5/12 - 1/4 and var = 36/35 / 4
    tuning = (5 / 12 - 6 / 12 * 6 / 12) / (1.5 * 36 / 35 / 4)
    assert rate(found, "ppi").value == pytest.approx(0.5 + tuning * (12 / 24 - 6 / 12))
    assert rate(found, "ppi", "b").value != rate(found, "human", "b").value
    # Se = 5/6, Sp = 5/6
    assert rate(found, "rogan_gladen").value == pytest.approx((0.5 - 1 / 6) / (4 / 6))
    assert [r["human_label"] for r in found.results.select("rate", "labels_saved")] == [*"abc"]
    assert rate(found, "labels_saved").value > 0


def test_counts_tell_what_was_used_and_what_the_judge_left_out() -> None:
    found = aligned({"ann": HUMAN}, {"m": "." + JUDGE[1:-2] + ".."})
    used = {m: rate(found, m) for m in METHODS}
    assert {m: (e.n, e.n_missing) for m, e in used.items()} == {
        "human": (11, 1), "verdicts": (33, 3), "ppi": (33, 3), "rogan_gladen": (33, 3),
    }  # fmt: skip


def test_the_level_is_the_one_asked_for() -> None:
    found = aligned({"ann": HUMAN}, {"m": JUDGE}, resampling=Resampling(200, level=0.8))
    assert {r.estimate.level for r in rates(found)} == {0.8}


def test_answers_of_one_question_make_one_cluster() -> None:
    apart = rate(aligned({"ann": HUMAN}, {"m": JUDGE}), "ppi")
    groups = "".join(chr(ord("A") + i // 2) for i in range(36))
    pairs = rate(aligned({"ann": HUMAN}, {"m": JUDGE}, groups=groups), "ppi")
    assert "12 clusters" in apart.method
    assert "6 clusters" in pairs.method
    assert pairs.high - pairs.low > apart.high - apart.low


def test_where_every_judged_answer_has_a_human_label_only_theirs_is_given_and_why() -> None:
    found = aligned({"ann": HUMAN}, {"m": JUDGE[:12] + "." * 24, "k": JUDGE})
    mine = rates(found, judge="m")
    assert [(r["human_label"], r.statistic) for r in mine] == [(x, "human") for x in "abc"]
    assert all(r.estimate.low is not None and r.estimate.reason == ALL_LABELLED for r in mine)
    assert len(rates(found)) == 3 + 12


def test_a_judge_whose_answers_nobody_labelled_has_no_true_rate() -> None:
    found = aligned({"ann": HUMAN}, {"m": "." * 12 + JUDGE[12:]})
    for method in ("human", "ppi", "rogan_gladen"):
        estimate = rate(found, method)
        assert (estimate.value, estimate.reason) == (None, NO_LABEL)
    assert rate(found, "verdicts").value == 0.5
    silent = aligned({"ann": HUMAN}, {"m": "." * 36})
    assert [(r.statistic, r.estimate.reason) for r in rates(silent)] == [("human", NO_LABEL)] * 3


def test_controls_and_metrics_without_human_labels_have_no_rates() -> None:
    assert aligned({"ann": HUMAN}, controls={"random": JUDGE}).results.select("rate") == []
    assert aligned({"ann": "." * 36}, {"m": JUDGE}).results.select("rate") == []


def test_the_assumption_is_told_where_it_is_needed() -> None:
    notes = aligned({"ann": HUMAN}, {"m": JUDGE}).notes
    assert sum("random sample of those that the judge labelled" in note for note in notes) == 1
    plain = aligned({"ann": "abc"}, {"m": "abc"}).notes
    assert not any("random sample" in note for note in plain)


def test_where_every_annotator_counts_apart_the_median_is_the_truth_and_is_told() -> None:
    humans = {"ann": HUMAN, "bob": HUMAN, "eve": HUMAN.replace("a", "c")}
    each, median = (aligned(humans, {"m": JUDGE}, rule=rule) for rule in ("each", "median"))
    assert each.results.select("rate") == median.results.select("rate")
    told = "For these rates, the median (or majority) of the labels is the reference label."
    assert told in each.notes
    assert told not in median.notes


def test_nominal_metrics_and_several_judges_have_their_own_rates() -> None:
    items = answers(36)
    one, two = metric(), metric("nominal", "xy", id="kind", title="Kind", question="Which?")
    people = [*labels({"ann": HUMAN}), *labels({"ann": "xyxyxyxyxyxy"}, "kind")]
    judges = [
        verdicts(name, {"harm": JUDGE, "kind": "xy" * 18}, items, kind)
        for name, kind in (("m", "judge"), ("j", "jury"), ("c", "calibration"))
    ]
    found = align("case", rubric(one, two), items, people, judges, resampling=FEW)
    assert {(r.judge, r.metric) for r in rates(found)} == {
        (judge, metric) for judge in "mjc" for metric in ("harm", "kind")
    }
    assert len(rates(found)) == 3 * (3 + 2) * 4
