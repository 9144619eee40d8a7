"""The same question asked again."""

import numpy as np
import pytest
from align_case import metric
from hypothesis import given
from hypothesis import strategies as st
from stress_case import grouped, stressed, variant

from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.repeated_measures import NO_REPEAT, NO_TRUTH
from judgebench.stress_tests.analysis import (
    HUMANS,
    NO_TRUTH_ON_ALL,
    ONE_PASS,
    PER_METRIC,
    TOO_FEW_METRICS,
    majority,
)
from judgebench.stress_tests.result import EVERY

TWO = (metric(), metric(id="tone", title="Tone"))


def consistency(found, metric_id: str = "harm", judge: str = "m"):
    (one,) = [c for c in grouped(found, "consistency") if (c.judge, c.metric) == (judge, metric_id)]
    return one


def repeats(*rows, judge: str = "m"):
    return [variant(judge, row, "repeat", i) for i, row in enumerate(rows, 1)]


def test_agreement_worked_by_hand() -> None:
    # first a b c, again a c c, again b c a: pairs that agree 1, 1, 1 of 3 each
    found = consistency(stressed({"m": "abc"}, variants=repeats("acc", "bca")))
    assert found.asked == 3
    assert found.agreement.value == pytest.approx(3 / 9)
    assert (found.agreement.n, found.agreement.n_missing) == (9, 0)


def test_the_majority_over_repeats_against_the_first_verdict() -> None:
    # truth     a a a a
    # first     a b b c      right 1 of 4
    # majority  a a b a      right 3 of 4: in i2 all three differ, so the first verdict stands
    case = stressed(
        {"m": "abbc"}, variants=repeats("baaa", "aaca"), humans={"harm": {"ann": "aaaa"}}
    )
    gain = consistency(case).majority_gain
    assert gain.value == pytest.approx(2 / 4)
    assert gain.n == 4
    assert "4 clusters only" in gain.reason


def test_without_a_truth_the_gain_is_undefined() -> None:
    gain = consistency(stressed({"m": "ab"}, variants=repeats("ab"))).majority_gain
    assert (gain.value, gain.n, gain.reason) == (None, 0, NO_TRUTH)
    some = stressed({"m": ".b"}, variants=repeats("ab"), humans={"harm": {"ann": "a."}})
    unread = consistency(some).majority_gain
    assert (unread.value, unread.n_missing) == (None, 1)
    assert unread.reason != NO_TRUTH


def test_missing_verdicts_leave_fewer_pairs() -> None:
    found = consistency(stressed({"m": "ab."}, variants=repeats("a.c", "a..")))
    assert (found.agreement.n, found.agreement.n_missing) == (3, 6)
    assert found.agreement.value == 1
    nothing = consistency(stressed({"m": "a"}, variants=repeats(".")))
    assert (nothing.agreement.value, nothing.agreement.reason) == (None, NO_REPEAT)


def test_answers_that_were_not_asked_again_are_not_missing() -> None:
    found = consistency(stressed({"m": "abcc"}, variants=repeats("ab  ")))
    assert (found.agreement.n, found.agreement.n_missing) == (2, 0)


def test_all_metrics_are_pooled() -> None:
    first = {"harm": "aa", "tone": "ab"}
    again = {"harm": "ab", "tone": "ab"}
    case = stressed(
        {"m": first}, variants=repeats(again), metrics=TWO,
        humans={"harm": {"ann": "aa"}, "tone": {"ann": "aa"}},
    )  # fmt: skip
    assert consistency(case).agreement.value == 1 / 2
    assert consistency(case, EVERY).agreement.value == 3 / 4
    assert consistency(case, EVERY).majority_gain.n == 4
    assert "2 clusters only" in consistency(case, EVERY).agreement.reason


def test_all_labels_of_an_answer_are_one_cluster() -> None:
    # Of one half of the answers all labels stay, and of the other all change.
    first, again = {"harm": "aa" * 5, "tone": "aa" * 5}, {"harm": "ab" * 5, "tone": "ab" * 5}
    found = consistency(stressed({"m": first}, variants=repeats(again), metrics=TWO), EVERY)
    assert (found.agreement.value, found.agreement.n) == (0.5, 20)
    assert "over 10 clusters" in found.agreement.method
    assert found.agreement.high > clopper_pearson(10, 20).high


def test_only_judges_that_were_asked_again_are_listed() -> None:
    case = stressed(
        {"m": "ab", "k": "ab"}, variants=[*repeats("ab"), variant("k", "ab", "per-metric")]
    )
    assert {c.judge for c in grouped(case, "consistency")} == {"m"}


ratings = st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=1, max_size=8)


@given(ratings)
def test_the_majority_is_a_most_frequent_label_and_prefers_the_first(rows) -> None:
    for row, label in zip(rows, majority(np.array(rows), 4), strict=True):
        counts = {x: row.count(x) for x in row if x >= 0}
        tied = [x for x, n in counts.items() if n == max(counts.values())]
        expected = row[0] if row[0] in tied else min(tied, default=-1)
        assert label == expected


HARM, TONE = "aabbccab", "abbcacba"


def halo(found, who: str = ONE_PASS, judge: str = "m"):
    (one,) = [h for h in grouped(found, "halo") if (h.judge, h.who) == (judge, who)]
    return one


def by_numpy(one: str, other: str) -> float:
    return np.corrcoef(*([ord(x) for x in row] for row in (one, other)))[0, 1]


def humans(harm: str, tone: str):
    return {"harm": {"ann": harm}, "tone": {"ann": tone}}


def test_correlations_equal_numpy_and_the_difference_is_theirs() -> None:
    case = stressed(
        {"m": {"harm": HARM, "tone": HARM}}, metrics=TWO, humans=humans(HARM, TONE),
    )  # fmt: skip
    expected = by_numpy(HARM, TONE)
    assert halo(case).correlation.value == pytest.approx(1)
    assert halo(case, HUMANS).correlation.value == pytest.approx(expected)
    beyond = halo(case).beyond_humans
    assert beyond.value == pytest.approx(1 - expected)
    assert beyond.n == 8
    assert beyond.low is not None
    assert halo(case, HUMANS).beyond_humans.value is None
    assert halo(case, HUMANS).beyond_humans.reason


def test_severities_are_those_of_the_rubric() -> None:
    stated = (metric(severities=(0, 1, 10)), TWO[1])
    case = stressed({"m": {"harm": HARM, "tone": TONE}}, metrics=stated)
    far = [{"a": 0, "b": 1, "c": 10}[x] for x in HARM]
    expected = np.corrcoef(far, [ord(x) for x in TONE])[0, 1]
    assert halo(case).correlation.value == pytest.approx(expected)


def test_one_pass_and_metric_by_metric_are_compared_on_the_same_answers() -> None:
    apart = {"harm": HARM[:5] + ".  ", "tone": TONE[:5] + "a  "}
    case = stressed(
        {"m": {"harm": "." + HARM[1:], "tone": HARM}}, metrics=TWO,
        variants=[variant("m", apart, "per-metric")], humans=humans(HARM[:4] + "....", TONE),
    )  # fmt: skip
    # Six were asked; the first lacks a label in one pass and the last in the other.
    one, per = halo(case), halo(case, PER_METRIC)
    assert [(h.correlation.n, h.correlation.n_missing) for h in (one, per)] == [(4, 2), (4, 2)]
    assert one.correlation.value == pytest.approx(1)
    assert per.correlation.value == pytest.approx(by_numpy(HARM[1:5], TONE[1:5]))
    assert (per.beyond_humans.n, per.beyond_humans.n_missing) == (3, 3)
    assert per.beyond_humans.value == pytest.approx(0)
    assert halo(case, HUMANS).correlation.n == 4  # the first four have a truth and were asked


def test_without_metric_by_metric_there_is_one_pass_alone() -> None:
    case = stressed({"m": {"harm": HARM, "tone": TONE}}, metrics=TWO)
    assert {h.who for h in grouped(case, "halo")} == {ONE_PASS, HUMANS}
    assert halo(case).beyond_humans.reason == NO_TRUTH_ON_ALL
    assert halo(case, HUMANS).correlation.value is None
    assert halo(case, HUMANS).correlation.reason


def test_controls_have_no_halo() -> None:
    rows = {"harm": HARM, "tone": TONE}
    case = stressed({"m": rows, "random": rows}, metrics=TWO, controls=["random"])
    assert {h.judge for h in grouped(case, "halo")} == {"m"}


@pytest.mark.parametrize(
    "metrics", [(metric(),), (metric(), metric("nominal", id="tone", title="T"))]
)
def test_fewer_than_two_ordinal_metrics_are_undefined(metrics) -> None:
    rows = {m.id: HARM for m in metrics}
    case = stressed({"m": rows}, metrics=metrics, humans={i: {"ann": r} for i, r in rows.items()})
    for estimate in (halo(case).correlation, halo(case).beyond_humans):
        assert (estimate.value, estimate.reason) == (None, TOO_FEW_METRICS)


def test_a_judge_that_says_one_thing_has_no_correlation() -> None:
    case = stressed(
        {"m": {"harm": "aaaa", "tone": "abca"}}, metrics=TWO, humans=humans("abca", "abca")
    )
    for estimate in (halo(case).correlation, halo(case).beyond_humans):
        assert (estimate.value, estimate.n) == (None, 4)
        assert "more than one label" in estimate.reason
