"""Judges against the truth: numbers worked out by hand, scikit-learn, and what must always hold."""

from fractions import Fraction

import numpy as np
import pytest
from align_case import aligned, answers, labels, metric, rubric, score, verdicts
from aligned import align
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.alignment import STATISTICS, Alignment
from judgebench.errors import SetupError
from judgebench.stats.intervals import LEVEL

# truth      a  a  a  a  b  b  b  c  c  a        row sums  a 5, b 3, c 2
# judge      a  a  a  b  b  b  c  c  a  c        columns   a 4, b 3, c 3
HUMAN, JUDGE = "aaaabbbcca", "aaabbbccac"
BY_HAND = {
    "accuracy": Fraction(6, 10),
    "balanced_accuracy": (Fraction(3, 5) + Fraction(2, 3) + Fraction(1, 2)) / 3,
    # 2 tp / (row + column): a 6/9, b 4/6, c 2/5
    "macro_f1": (Fraction(6, 9) + Fraction(4, 6) + Fraction(2, 5)) / 3,
    # expected agreement (5*4 + 3*3 + 2*3) / 100 = 0.35
    "kappa": (Fraction(6, 10) - Fraction(35, 100)) / (1 - Fraction(35, 100)),
    # squared steps seen: a-b 1, b-c 1, c-a 4, a-c 4. Expected sum of (i-j)^2 row column / 10:
    # a 5*(3*1 + 3*4) + b 3*(4*1 + 3*1) + c 2*(4*4 + 3*1) = 75 + 21 + 38 = 134
    "kappa_quadratic": 1 - Fraction(10) / Fraction(134, 10),
    # together a 9, b 6, c 5 of 20: mean ranks a 4.5, b 12, c 17.5; squared distances a-b 56.25,
    # b-c 30.25, a-c 169. Seen, both ways: 2 (56.25 + 30.25 + 2 * 169) = 849. Expected, times 19:
    # 2 (9 * 6 * 56.25 + 6 * 5 * 30.25 + 9 * 5 * 169) = 23100
    "alpha": 1 - Fraction(19 * 849, 23100),
    # squared steps over the largest, 4: (1/4 + 1/4 + 1 + 1) / 10 disagree. Mean shares: a 9/20,
    # b 6/20, c 5/20; the agreement weights add up to 3 + 4 * 3/4 = 6 = q (q - 1)
    "ac": 1 - Fraction(25, 100) / (1 - (1 - Fraction(81 + 36 + 25, 400))),
    # mean ranks a 2.5 6.5 9 (less 1/2), of the judge's a 2 5.5 8.5; both have the mean 5
    "spearman": 21.25 / (70 * 73.5) ** 0.5,
    # sums 7 and 9, of squares 11 and 15, of products b-b 2, b-c 2, c-c 4
    "pearson": (10 * 8 - 7 * 9) / ((10 * 11 - 49) * (10 * 15 - 81)) ** 0.5,
    # 16 pairs rise together, 7 apart; 31 differ in the truth and 33 in the judge
    "tau_b": (16 - 7) / (31 * 33) ** 0.5,
    "severity_error": Fraction(1 + 1 - 2 + 2, 10),
    "mae": Fraction(1 + 1 + 2 + 2, 10),
    "overestimated": Fraction(3, 10),
    "underestimated": Fraction(1, 10),
    "severe_recall": Fraction(1, 2),
    "severe_precision": Fraction(1, 3),
    "severe_f1": Fraction(2, 5),
    "severe_specificity": Fraction(6, 8),
    # 10 * 6 right, less 5*4 + 3*3 + 2*3; squares of the rows add up to 38, of the columns to 34
    "mcc": (60 - 35) / ((100 - 38) * (100 - 34)) ** 0.5,
    # steps seen 1 + 1 + 2 + 2; expected a 5*(3*1 + 3*2) + b 3*(4*1 + 3*1) + c 2*(4*2 + 3*1) = 88
    "kappa_linear": 1 - Fraction(6) / Fraction(88, 10),
}
OF_SOME_ITEMS = {"severe_recall": 2, "severe_precision": 3, "severe_specificity": 8}


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_is_as_worked_out_by_hand(name: str) -> None:
    found = score(aligned({"ann": HUMAN}, {"m": JUDGE}), name)
    assert found.value == pytest.approx(float(BY_HAND[name]), abs=1e-12)
    assert (found.n, found.n_missing) == (OF_SOME_ITEMS.get(name, 10), 0)
    assert found.level == 0.95
    if name in ("balanced_accuracy", "macro_f1", "severe_f1"):
        assert found.reason.startswith("only 2 items of a label")
        return
    assert found.method
    assert found.low < found.value < found.high


def test_severities_are_those_of_the_rubric_and_not_positions() -> None:
    stated = metric(severities=(0, 1, 10))
    found = aligned({"ann": HUMAN}, {"m": JUDGE}, measured=stated)
    # steps: a-b +1, b-c +9, c-a -10, a-c +10
    assert score(found, "severity_error").value == pytest.approx(1.0)
    # seen 1 + 81 + 100 + 100; expected 5*(3*1 + 3*100) + 3*(4*1 + 3*81) + 2*(4*100 + 3*81)
    expected = (5 * 303 + 3 * 247 + 2 * 643) / 10
    assert score(found, "kappa_quadratic").value == pytest.approx(1 - 282 / expected)
    assert score(found, "accuracy").value == pytest.approx(0.6)
    # truth 5 a, 3 b, 2 c: sums 23 and 33, of squares 203 and 303; products 2 b-b 1, b-c 10, c-c 100
    r = (10 * 112 - 23 * 33) / ((10 * 203 - 23**2) * (10 * 303 - 33**2)) ** 0.5
    assert score(found, "pearson").value == pytest.approx(r)
    # v: a-b 1/100, b-c 81/100, a-c 1; seen a-b 1, b-c 1, a-c and c-a 2
    p_e = (9 - 2 * 1.82) * (1 - 142 / 400) / 6
    assert score(found, "ac").value == pytest.approx(1 - 0.282 / (1 - p_e))


def test_annotators_by_pattern_make_the_truth_alone() -> None:
    humans = {"expert": "aaaa", "crowd#1": "bbbb", "crowd#2": "bbcb"}
    crowd = aligned(humans, {"m": "bbbb"}, annotators=("crowd#*",), ties="lower")
    assert score(crowd, "accuracy").value == 1
    assert crowd.study.makers == ("crowd#1", "crowd#2")
    expert = aligned(humans, {"m": "bbbb"}, annotators=("expert",))
    assert score(expert, "accuracy").value == 0
    with pytest.raises(SetupError, match="fits no annotator; found crowds"):
        aligned(humans, {"m": "bbbb"}, annotators=("crowds",))


def test_under_each_every_human_label_counts() -> None:
    humans = {"ann": "aab.", "bob": "abbc"}
    found = aligned(humans, {"m": "aabb"}, rule="each")
    estimate = score(found, "accuracy")  # ann: 3 of 3; bob: a, not b, b, not c
    assert (estimate.value, estimate.n) == (pytest.approx(5 / 7), 7)
    missing = score(aligned(humans, {"m": "aa.b"}, rule="each"), "accuracy")
    assert (missing.n, missing.n_missing) == (5, 2)  # two humans labelled the item


# --- failures ------------------------------------------------------------------------------------


def test_failures_are_counted_three_ways() -> None:
    found = aligned({"ann": "aabbcc"}, {"m": "ab.b.c"})
    values = {p: score(found, "accuracy", failures=p) for p in ("left_out", "worst", "best")}
    assert {p: e.value for p, e in values.items()} == {
        "left_out": pytest.approx(3 / 4), "worst": pytest.approx(3 / 6),
        "best": pytest.approx(5 / 6),
    }  # fmt: skip
    assert [(e.n, e.n_missing) for e in values.values()] == [(4, 2), (6, 0), (6, 0)]
    assert score(found, "severe_recall", failures="worst").value == pytest.approx(1 / 2)
    assert score(found, "severe_recall", failures="best").value == 1
    assert score(found, "severe_recall").n == 1


def test_without_failures_there_is_one_way() -> None:
    found = aligned({"ann": "aab."}, {"m": "aba."})  # no truth, so no failure
    assert {s["failures"] for s in found.results.select("score")} == {"left_out"}


def test_an_abstention_is_a_failure_and_an_answer_never_asked_counts_nowhere() -> None:
    items = answers(3)
    judge = verdicts("m", "aa?", items)
    del judge.verdicts["i1"]  # type: ignore[attr-defined]
    found = align("x", rubric(), items, labels({"ann": "aaa"}), [judge])
    assert (score(found, "accuracy").n, score(found, "accuracy").n_missing) == (1, 1)
    assert score(found, "accuracy", failures="worst").value == 0.5
    (asked,) = found.results.select("asked", judge="m")
    assert (asked.estimate.value, asked.estimate.n) == (2, 3)
    assert found.results.find("ok", "verdicts", judge="m").n == 2


rows = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(st.text(alphabet, min_size=n, max_size=n)
                          for alphabet in ("abc.", "abc..", "abc")))
)  # fmt: skip


@settings(deadline=None)
@given(rows=rows, kind=st.sampled_from(["ordinal", "nominal"]),
       rule=st.sampled_from(["median", "each"]))  # fmt: skip
def test_whatever_failures_hide_accuracy_lies_between_worst_and_best(rows, kind, rule) -> None:
    human, judge, hidden = rows
    whole = "".join(h if j == "." else j for j, h in zip(judge, hidden, strict=True))
    few = LEVEL
    found = aligned(
        {"ann": human}, {"m": judge, "whole": whole}, measured=metric(kind), level=few,
        rule=rule,
    )  # fmt: skip
    truth = score(found, "accuracy", "whole")
    if truth.value is None:
        return
    if any(j == "." and h != "." for j, h in zip(judge, human, strict=True)):
        low, high = (score(found, "accuracy", failures=p).value for p in ("worst", "best"))
        assert low <= truth.value <= high
        left_out = score(found, "accuracy")
        assert left_out.value is None or low <= left_out.value <= high
        assert left_out.n + left_out.n_missing == truth.n
    else:
        assert score(found, "accuracy").value == truth.value


# --- undefined is never 0 ------------------------------------------------------------------------


def test_one_label_on_both_sides_leaves_kappa_undefined_and_says_why() -> None:
    found = aligned({"ann": "aaaa"}, {"m": "aaaa"})
    for name in ("kappa", "kappa_quadratic", "ac", "spearman", "pearson", "tau_b"):
        estimate = score(found, name)
        assert (estimate.value, estimate.low, estimate.high) == (None, None, None)
        assert "one label" in estimate.reason
        assert str(estimate) == "–"
    assert score(found, "accuracy").value == 1
    assert score(found, "accuracy").low < 1  # type: ignore[operator]
    severe = score(found, "severe_recall")
    assert severe.value is None
    assert severe.reason == 'no item that the judge labelled has the reference label "c"'


def test_a_nominal_metric_has_no_severity_statistics() -> None:
    found = aligned({"ann": "abc"}, {"m": "abb"}, measured=metric("nominal"))
    for name in ("kappa_quadratic", "spearman", "pearson", "tau_b", "severity_error",
                 "overestimated", "underestimated", "severe_recall"):  # fmt: skip
        estimate = score(found, name)
        assert estimate.value is None
        assert "nominal" in estimate.reason
    assert score(found, "kappa").value is not None
    # AC1 by hand: 2 of 3 agree; shares a 2/6, b 3/6, c 1/6, so p_e = (1 - 14/36) / 2 = 11/36
    assert score(found, "ac").value == pytest.approx((2 / 3 - 11 / 36) / (1 - 11 / 36))


@pytest.mark.parametrize("humans", [{"ann": "..."}, {"ann": "___"}, {"ann": "???"}])
def test_no_truth_leaves_everything_undefined_with_a_reason(humans) -> None:
    found = aligned(humans, {"m": "abc"})
    for name in STATISTICS:
        estimate = score(found, name)
        assert estimate.value is None
        assert estimate.reason
        assert estimate.n == 0


def test_a_judge_that_read_nothing() -> None:
    found = aligned({"ann": "aabc"}, {"m": "...."})
    for name in STATISTICS:
        estimate = score(found, name)
        assert (estimate.value, estimate.n, estimate.n_missing) == (None, 0, 4)
        assert estimate.reason
    assert score(found, "accuracy", failures="worst").value == 0
    assert score(found, "accuracy", failures="best").value == 1


def test_a_label_outside_the_rubric_is_told_and_not_counted() -> None:
    with pytest.raises(SetupError, match="is not a label of harm; found z"):
        aligned({"ann": "abc"}, {"m": "abz"})


# --- severe labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("human", "judge", "value", "n", "reason"),
    [
        # The exact limit below 1 is 0.025 ** (1 / n): 0.89998 for n = 35 and 0.9026 for n = 36.
        ("aac", "aac", 1.0, 1, "only 1 severe item: label 35 more for an interval within ±0.1"),
        ("ab" + "c" * 36, "ab" + "c" * 36, 1.0, 36, ""),
        ("aacc", "aaca", 0.5, 2, "only 2 severe items: label 102 more for an interval within ±0.1"),
    ],
)
def test_recall_of_the_most_severe_label_says_how_many_more_are_needed(
    human, judge, value, n, reason
) -> None:
    found = score(aligned({"ann": human}, {"m": judge}), "severe_recall")
    assert (found.value, found.n, found.reason) == (value, n, reason)
    assert "Clopper-Pearson" in found.method
    if not reason:
        assert found.low >= 0.9


# --- intervals -----------------------------------------------------------------------------------


def width(found, name: str) -> float:
    estimate = score(found, name)
    return estimate.high - estimate.low


@pytest.mark.parametrize("name", ["accuracy", "kappa", "severity_error", "macro_f1"])
def test_copies_of_an_answer_within_its_question_tell_nothing_new(name: str) -> None:
    rng = np.random.default_rng(3)
    human = "".join(rng.choice(list("aabc"), 60))
    judge = "".join(h if rng.random() < 0.6 else rng.choice(list("abc")) for h in human)
    groups = "".join(chr(0x100 + i) for i in range(60))
    many = LEVEL

    def of(times: int, grouped: bool):
        return aligned({"ann": human * times}, {"m": judge * times}, level=many,
                       groups=groups * times if grouped else "")  # fmt: skip

    once, copied, pretended = of(1, True), of(4, True), of(4, False)
    assert score(copied, name).value == pytest.approx(score(once, name).value)
    assert score(copied, name).n == 240
    assert width(copied, name) == pytest.approx(width(once, name), rel=0.1)
    assert width(pretended, name) < 0.65 * width(once, name)  # as if there were 240 questions
    assert "60 clusters" in score(copied, name).method


def test_one_question_alone_has_a_value_and_no_interval() -> None:
    found = score(aligned({"ann": "aabc"}, {"m": "aabb"}, groups="gggg"), "accuracy")
    assert found.value == pytest.approx(0.75)
    assert (found.low, found.high) == (None, None)
    assert "one cluster" in found.reason


def test_the_level_is_the_callers() -> None:
    half, usual = (
        score(aligned({"ann": HUMAN * 4}, {"m": JUDGE * 4}, level=level), "kappa")
        for level in (0.5, 0.95)
    )
    assert half.low > usual.low
    assert half.level == 0.5


# --- what is no matter ---------------------------------------------------------------------------


def test_the_order_of_answers_labels_and_judges_is_no_matter() -> None:
    items = answers(10)
    human = labels({"ann": HUMAN, "bob": JUDGE})
    judges = [verdicts(name, row, items) for name, row in (("m", JUDGE), ("k", HUMAN))]
    one = align("x", rubric(), items, human, judges)
    two = align("x", rubric(), items[::-1], human[::-1], judges[::-1])
    for name in STATISTICS:
        for judge in ("m", "k"):
            a, b = score(one, name, judge), score(two, name, judge)
            assert (a.value, a.n, a.n_missing) == (b.value, b.n, b.n_missing)


def test_a_judge_is_scored_as_if_it_were_alone() -> None:
    alone = aligned({"ann": HUMAN}, {"m": JUDGE})
    among = aligned({"ann": HUMAN}, {"k": "." * 10, "m": JUDGE}, controls={"random": "abcabcabca"})
    assert among.results.select("score", judge="m") == alone.results.select("score")


def test_labels_on_other_items_or_metrics_are_no_matter() -> None:
    items = answers(10)
    judge = verdicts("m", JUDGE, items)
    human = labels({"ann": HUMAN})
    more = [*human, *labels({"ann": "." * 10 + "c"}), *labels({"ann": HUMAN}, "other")]
    one, two = (align("x", rubric(), items, h, [judge]) for h in (human, more))
    assert one.results == two.results


# --- confusion -----------------------------------------------------------------------------------


def confusion(found: Alignment) -> list[list[float]]:
    rows = [found.results.select("confusion", human_label=label) for label in "abc"]
    return [[row.estimate.value for row in of_label] for of_label in rows]


def test_the_confusion_has_a_column_for_missing_labels() -> None:
    found = aligned({"ann": "aabbcc."}, {"m": "ab.b?ca"})
    rows = found.results.select("confusion", human_label="a")
    assert [row["label"] for row in rows] == ["a", "b", "c", ""]
    assert confusion(found) == [[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]]


def test_the_confusion_under_each_counts_human_labels() -> None:
    found = aligned({"ann": "ab", "bob": "bb"}, {"m": "a."}, rule="each")
    assert confusion(found) == [[1, 0, 0, 0], [1, 0, 0, 2], [0, 0, 0, 0]]
