import numpy as np
import pytest
from cluster_case import together
from hypothesis import given
from hypothesis import strategies as st

from judgebench.stats.confusion import ACCURACY, confusion_by_cluster, fill_failures

K = 3
cells = st.lists(
    st.tuples(st.integers(-1, K - 1), st.integers(-1, K - 1)), min_size=1, max_size=30
).map(lambda pairs: tuple(np.array(pairs).T))


def accuracy(truth, judged) -> float:
    counts = confusion_by_cluster(truth, judged, together(len(truth)), K)[0]
    return float(ACCURACY.formula(counts))


@given(cells, st.booleans())
def test_only_failures_with_a_truth_change_and_accuracy_is_bracketed(pair, ordinal) -> None:
    truth, judged = pair
    before = judged.copy()
    failed = (judged < 0) & (truth >= 0)
    filled = {p: fill_failures(truth, judged, p, K, ordinal) for p in ("left_out", "worst", "best")}
    assert np.array_equal(judged, before)
    assert np.array_equal(filled["left_out"], judged)
    for labels in filled.values():
        assert np.array_equal(labels[~failed], judged[~failed])
    assert np.array_equal(filled["best"][failed], truth[failed])
    assert (filled["worst"][failed] >= 0).all()
    assert (filled["worst"][failed] != truth[failed]).all()
    if (truth >= 0).any() and ((truth >= 0) & (judged >= 0)).any():
        worst, left_out, best = (accuracy(truth, filled[p]) for p in ("worst", "left_out", "best"))
        assert worst <= left_out + 1e-12
        assert left_out <= best + 1e-12


def test_worst_ordinal_is_the_farther_end_and_the_lower_of_two() -> None:
    truth, failed = np.arange(5), np.full(5, -1)
    assert fill_failures(truth, failed, "worst", 5, ordinal=True).tolist() == [4, 4, 0, 0, 0]
    assert fill_failures(truth[:4], failed[:4], "worst", 4, ordinal=True).tolist() == [3, 3, 0, 0]


@given(st.lists(st.integers(0, K - 1), min_size=1, max_size=20).map(np.array))
def test_no_filling_is_farther_than_worst(truth) -> None:
    def error(judged) -> float:
        C = confusion_by_cluster(truth, judged, together(len(truth)), K)[0]
        distance = np.abs(np.subtract.outer(range(K), range(K)))
        return float((C * distance).sum())

    worst = error(fill_failures(truth, np.full(len(truth), -1), "worst", K, ordinal=True))
    assert all(error(np.full(len(truth), label)) <= worst for label in range(K))


def test_worst_nominal_is_the_most_frequent_other_truth() -> None:
    truth = np.array([2, 2, 2, 0, 0, 1, -1])
    filled = fill_failures(truth, np.full(7, -1), "worst", 3, ordinal=False)
    assert filled.tolist() == [0, 0, 0, 2, 2, 2, -1]


def test_worst_nominal_of_a_tie_is_the_lower_label() -> None:
    truth = np.array([1, 2, 0, 0, 0])
    filled = fill_failures(truth, np.full(5, -1), "worst", 3, ordinal=False)
    assert filled.tolist() == [0, 0, 1, 1, 1]


def test_one_label_cannot_be_wrong() -> None:
    with pytest.raises(ValueError, match="two labels or more"):
        fill_failures(np.array([0]), np.array([-1]), "worst", 1, ordinal=True)
