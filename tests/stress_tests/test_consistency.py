"""The same question asked again."""

import numpy as np
import pytest
from align_case import metric
from hypothesis import given
from hypothesis import strategies as st
from stress_case import grouped, stressed, variant

from judgebench.stats.intervals import clopper_pearson
from judgebench.stats.repeated_measures import NO_REPEAT, NO_TRUTH
from judgebench.stress_tests.analysis import majority
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
