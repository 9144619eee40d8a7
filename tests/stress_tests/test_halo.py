"""Labels of different metrics that go together, and whether they should."""

from __future__ import annotations

import numpy as np
import pytest
from align_case import metric
from stress_case import grouped, stressed, variant

from judgebench.stress_tests.steadiness import (
    HUMANS,
    NO_TRUTH_ON_ALL,
    ONE_PASS,
    PER_METRIC,
    TOO_FEW_METRICS,
)

TWO = (metric(), metric(id="tone", title="Tone"))
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


def test_a_judge_that_answers_as_humans_do_has_nothing_beyond() -> None:
    case = stressed({"m": {"harm": HARM, "tone": TONE}}, metrics=TWO, humans=humans(HARM, TONE))
    assert halo(case).beyond_humans.value == pytest.approx(0)


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
