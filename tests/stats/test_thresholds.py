"""A judge as a first-pass filter: what each threshold sends, catches and misses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_curve

from judgebench.stats.classification import (
    MOST_THRESHOLDS,
    NO_SEVERE,
    NOTHING,
    cautious_choice,
    choose_threshold,
    fixed_choice,
    triage_points,
    why_no_choice,
)

NAN = math.nan
item = st.tuples(
    st.sampled_from([NAN, 0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(-1, 1), st.integers(0, 9)
)


def arrays(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    signal, severe, clusters = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(signal, float), np.array(severe, int), np.array(clusters, int)


def drawn(n: int, share: float, d: float, seed: int, per: int = 1):
    """Normal signals, d higher for severe items; `per` items a cluster."""
    rng = np.random.default_rng(seed)
    severe = (rng.random(n) < share).astype(int)
    return rng.normal(size=n) + d * severe, severe, np.arange(n) // per


def test_points_worked_by_hand() -> None:
    signal = np.array([0.9, 0.5, 0.5, 0.1, NAN])
    severe = np.array([1, 1, 0, 0, 0])
    points = triage_points(signal, severe, np.arange(5))
    assert [(p.threshold, p.sent.value, p.caught.value) for p in points] == [
        (NOTHING, 1 / 5, 0), (0.9, 2 / 5, 1 / 2), (0.5, 4 / 5, 1), (0.1, 1, 1),
    ]  # fmt: skip
    assert {(p.sent.n, p.caught.n, p.sent.n_missing) for p in points} == {(5, 2, 0)}


def test_points_lie_on_the_roc_curve_of_scikit_learn() -> None:
    signal, severe, clusters = drawn(60, 0.3, 1.0, seed=3)
    signal = np.round(signal, 1)
    fpr, tpr, thresholds = roc_curve(severe, signal, drop_intermediate=False)
    positives = severe.mean()
    found = triage_points(signal, severe, clusters)
    np.testing.assert_allclose([p.threshold for p in found], thresholds)
    np.testing.assert_allclose([p.caught.value for p in found], tpr)
    sent = tpr * positives + fpr * (1 - positives)
    np.testing.assert_allclose([p.sent.value for p in found], sent, atol=1e-12)


def test_intervals_of_items_alone_in_their_clusters_are_those_of_scipy() -> None:
    signal, severe, clusters = drawn(20, 0.3, 1.0, seed=5)
    for point in triage_points(signal, severe, clusters, level=0.9):
        for share in (point.sent, point.caught):
            test = binomtest(round(share.value * share.n), share.n)
            expected = test.proportion_ci(0.9, method="exact")
            assert (share.low, share.high) == pytest.approx((expected.low, expected.high))
            assert share.level == 0.9


@settings(max_examples=50, deadline=None)
@given(st.lists(item, max_size=40))
def test_more_is_sent_and_more_is_caught_as_the_threshold_falls(rows) -> None:
    signal, severe, clusters = arrays(rows)
    points = triage_points(signal, severe, clusters)
    known = severe >= 0
    assert bool(points) == known.any()
    for before, after in pairwise(points):
        assert before.threshold > after.threshold
        assert before.sent.value < after.sent.value
        assert before.caught.value is None or before.caught.value <= after.caught.value
    for point in points:
        for share, n in ((point.sent, known.sum()), (point.caught, (severe == 1).sum())):
            assert (share.n, share.n_missing) == (n, (~known).sum())
            if share.low is not None:
                assert 0 <= share.low <= share.value <= share.high <= 1
            else:
                assert share.reason
    if points:
        assert points[0].sent.value == pytest.approx(np.isnan(signal[known]).mean())
        assert points[-1].sent.value == 1


def test_a_long_curve_is_thinned_and_keeps_its_ends_and_its_steps() -> None:
    signal, severe, clusters = drawn(5000, 0.01, 2.0, seed=1)
    points = triage_points(signal, severe, clusters)
    assert MOST_THRESHOLDS / 2 < len(points) <= MOST_THRESHOLDS + 1
    assert (points[0].sent.value, points[-1].sent.value) == (0, 1)
    assert points[-1].threshold == signal.min()
    assert {point.threshold for point in points[1:]} <= set(signal.tolist())
    caught = [p.caught.value for p in points]
    assert max(np.diff(caught)) <= 0.05  # 50 of the thresholds are severe items' signals


def test_items_that_share_clusters_have_a_wider_interval() -> None:
    signal, severe = np.repeat([1.0, 0.0, 0.0], 20), np.ones(60, dtype=int)
    alone = triage_points(signal, severe, np.arange(60))[1].sent
    together = triage_points(signal, severe, np.arange(60) // 5)[1].sent
    assert together.value == alone.value
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
    assert "effective number" in together.method


def test_one_stray_miss_makes_nothing_surer_than_no_miss() -> None:
    """20 clusters of 8 items: what goes together in a cluster is not seen in one miss."""
    clusters, severe = np.repeat(np.arange(20), 8), np.ones(160, dtype=int)
    highs = []
    for misses in (0, 1, 2):
        signal = np.ones(160)
        signal[: 8 * misses : 8] = 0.0
        signal[-1] = 2.0  # so that there are two thresholds
        highs.append(1 - triage_points(signal, severe, clusters)[2].caught.low)
    assert highs[0] == pytest.approx(binomtest(0, 20).proportion_ci(method="exact").high)
    assert highs == sorted(highs)


def test_one_cluster_has_no_interval() -> None:
    points = triage_points(np.array([1.0, 0.0]), np.array([1, 0]), np.zeros(2, dtype=int))
    assert [(p.sent.value, p.sent.low) for p in points] == [(0, None), (0.5, None), (1, None)]
    assert "one cluster" in points[1].sent.reason


def test_what_is_caught_of_nothing_is_undefined() -> None:
    (_, everybody) = triage_points(np.zeros(3), np.zeros(3, dtype=int), np.arange(3))
    assert (everybody.caught.value, everybody.caught.reason) == (None, NO_SEVERE)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=120),
    st.floats(0.01, 0.999) | st.just(1.0),  # a share just below 1 is no other than 1 here
    st.sampled_from([0.8, 0.95]),
)
def test_the_chosen_threshold_is_the_highest_that_is_allowed(signals, most, level) -> None:
    signal, n = np.array(signals, dtype=float), len(signals)

    def allowed(threshold: float) -> bool:
        missed = int((signal < threshold).sum())
        high = binomtest(missed, n).proportion_ci(level, method="exact").high
        return missed == 0 or high <= most + 1e-12

    candidates = [t for t in [*np.unique(signal), math.inf] if allowed(t)]
    assert choose_threshold(signal, np.ones(n, dtype=int), most, level) == max(candidates)


def test_other_items_and_missing_verdicts_have_no_say_in_the_threshold() -> None:
    signal, severe = np.array([0.4, 0.1, NAN, 0.0]), np.array([1, 0, 1, -1])
    assert choose_threshold(signal, severe, 0.1) == 0.4
    assert choose_threshold(signal[2:], severe[2:], 0.1) == NOTHING


@pytest.mark.parametrize(
    ("signal", "severe", "clusters", "told"),
    [
        ([0, 1], [-1, -1], [0, 1], "no item has a reference label"),
        ([0, 1], [0, 0], [0, 1], "no item is severe"),
        ([0, 1], [1, 1], [0, 1], "every item is severe"),
        ([NAN, NAN], [0, 1], [0, 1], "no verdict"),
        ([1, 1, NAN], [0, 1, 0], [0, 1, 2], "no item or every item"),
        ([0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 1, 2, 3, 3], "only 3 clusters hold a severe"),
        ([0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 1, 1, 1, 1], "only 1 cluster holds a severe"),
    ],
)
def test_why_nothing_can_be_recommended(signal, severe, clusters, told: str) -> None:
    seen = np.array(signal, float), np.array(severe), np.array(clusters)
    assert told in why_no_choice(*seen)


def test_halves_worked_by_hand() -> None:
    """Each half misses none of its own two; the more cautious of both has the least of all."""
    signal = np.array([1, 2, 3, 4, *[0.5] * 8, *[3.5] * 4, NAN], dtype=float)
    severe = np.array([1, 1, 1, 1, *[0] * 13])
    found = [cautious_choice(signal, severe, np.arange(17), 0.1, seed=s) for s in range(30)]
    assert {choice.threshold for choice in found} == {1}
    assert {(c.sent.value, c.expected_sent.value) for c in found} == {(9 / 17, 9 / 17)}
    assert {(c.missed.value, c.expected_missed.value) for c in found} == {(0, 1 / 5)}
    assert {(choice.sent.n, choice.missed.n) for choice in found} == {(17, 4)}
    first = found[0]
    assert (first.sent.low, first.missed.high) == (None, None)
    expected = binomtest(0, 4).proportion_ci(method="exact")
    assert first.expected_missed.high == pytest.approx(expected.high)


def test_a_threshold_that_was_fixed_beforehand_has_the_exact_limits_of_its_shares() -> None:
    signal = np.array([*[1.0] * 52, *[0.0] * 8, *[1.0] * 10, *[0.0] * 79, NAN, 1.0])
    severe = np.array([*[1] * 60, *[0] * 90, -1])
    found = fixed_choice(signal, severe, np.arange(151), 1.0, level=0.9)
    for share, x, n in ((found.expected_sent, 63, 150), (found.expected_missed, 8, 60)):
        exact = binomtest(x, n).proportion_ci(0.9, method="exact")
        assert (share.value, share.n, share.n_missing) == (x / n, n, share.n_missing)
        assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    assert (found.missed.value, found.missed.high, found.fixed) == (8 / 60, None, True)


def test_a_threshold_that_sends_everything_misses_nothing_and_nothing_is_expected_of_it() -> None:
    """Whatever the halves are: one of the severe items has the lowest signal of all."""
    signal = np.array([0.0, *[3.0] * 11, *[1.0] * 30])
    severe = np.array([*[1] * 12, *[0] * 30])
    for seed in range(20):
        choice = cautious_choice(signal, severe, np.arange(42), 0.1, seed=seed)
        assert choice.sends_all
        assert (choice.sent.value, choice.missed.value) == (1, 0)
        assert (choice.expected_sent.value, choice.expected_sent.high) == (1, 1)
        assert choice.expected_missed.value is None
        assert choice.expected_missed.reason == "everything is sent, so nothing can be missed"


@settings(max_examples=50, deadline=None)
@given(st.lists(item, min_size=20, max_size=60), st.integers(0, 5))
def test_what_is_said_of_a_choice_is_true_of_its_threshold(rows, seed) -> None:
    signal, severe, clusters = arrays(rows)
    if why_no_choice(signal, severe, clusters):
        return
    choice = cautious_choice(signal, severe, clusters, 0.1, seed=seed)
    sent, is_severe = ~(signal < choice.threshold)[severe >= 0], (severe == 1)[severe >= 0]
    assert choice.sent.value == pytest.approx(sent.mean())
    assert choice.missed.value == pytest.approx((~sent)[is_severe].mean())
    assert choice.sends_all == sent.all()
    if choice.sends_all:
        assert choice.missed.value == 0
