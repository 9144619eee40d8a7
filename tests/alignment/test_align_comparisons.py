"""Judges held against each other."""

from types import SimpleNamespace

import pytest
from align_case import aligned, only, score
from scipy.stats import binomtest

from judgebench.alignment import Alignment
from judgebench.stats.paired_tests import holm

HUMAN = {"ann": "aabbccaabbcc" * 3}
GOOD, FAIR, POOR = "aabbccaabbcc" * 3, "aabbccaabbca" * 3, "abcabcabcabc" * 3


STATISTICS = ("accuracy_difference", "permutation_p", "p_holm")


def compared(found: Alignment, first: str, second: str) -> SimpleNamespace:
    """What is said of one pair of judges."""
    pair = {key: only(found, "comparison", key, judge=first, who=second) for key in STATISTICS}
    p = {key: estimate.value for key, estimate in pair.items()}
    return SimpleNamespace(**p, difference=pair["accuracy_difference"])


def values(found: Alignment, statistic: str) -> list[float | None]:
    return [row.estimate.value for row in found.results.select("comparison", statistic)]


def test_the_difference_is_that_of_the_two_accuracies_and_p_is_mcnemars() -> None:
    found = aligned(HUMAN, {"good": GOOD, "poor": POOR})
    one = compared(found, "good", "poor")
    expected = score(found, "accuracy", "good").value - score(found, "accuracy", "poor").value
    assert one.difference.value == pytest.approx(expected)
    assert (one.difference.n, one.difference.n_missing) == (36, 0)
    assert one.difference.low < expected < one.difference.high
    apart = sum(x != y for x, y in zip(GOOD, POOR, strict=True))
    assert one.permutation_p == pytest.approx(binomtest(apart, apart).pvalue)


def test_real_judges_meet_each_other_and_every_control_and_controls_not_each_other() -> None:
    found = aligned(
        HUMAN, {"good": GOOD, "fair": FAIR}, controls={"fixed": "a" * 36, "random": POOR}
    )
    differences = found.results.select("comparison", "accuracy_difference")
    assert [(row.judge, row["who"]) for row in differences] == [
        ("good", "fair"), ("good", "fixed"), ("good", "random"), ("fair", "fixed"),
        ("fair", "random"),
    ]  # fmt: skip
    assert values(found, "p_holm") == holm(values(found, "permutation_p"))
    frame = found.to_frame().query("analysis == 'comparison'").groupby("statistic").method.first()
    assert frame["permutation_p"].startswith("two-sided permutation test: signs of whole clusters")
    assert frame["p_holm"].startswith("Holm's correction over 5 tests (metric harm); two-sided")


def test_whole_questions_are_flipped() -> None:
    groups = "".join(g * 6 for g in "uvwxyz")
    one = compared(aligned(HUMAN, {"good": GOOD, "poor": "b" * 36}, groups=groups), "good", "poor")
    # On each of six questions the good judge is ahead.
    assert one.permutation_p == pytest.approx(2 / 2**6)


def test_only_what_both_labelled_counts_and_the_rest_is_missing() -> None:
    human = {"ann": "aabbccaabb.."}
    found = aligned(human, {"m": ".abbccaabbaa", "n": "ab.bccaabbaa"})
    one = compared(found, "m", "n")
    assert (one.difference.n, one.difference.n_missing) == (8, 2)
    assert one.difference.value == pytest.approx(1 / 8)


def test_judges_that_are_never_told_apart_have_no_p() -> None:
    found = aligned(HUMAN, {"m": FAIR, "n": FAIR, "good": GOOD})
    one = compared(found, "m", "n")
    assert one.difference.value == 0
    assert one.difference.low < 0 < one.difference.high
    assert one.permutation_p is one.p_holm is None
    other = compared(found, "m", "good")
    assert other.p_holm == pytest.approx(2 * other.permutation_p)  # of two pairs that count


def test_under_the_rule_each_every_human_label_is_a_pair() -> None:
    found = aligned({"ann": "aabb", "bob": "ab.b"}, {"m": "aabb", "n": "abbb"}, rule="each")
    one = compared(found, "m", "n")
    assert one.difference.n == 7
    expected = score(found, "accuracy", "m").value - score(found, "accuracy", "n").value
    assert one.difference.value == pytest.approx(expected)


def test_a_frame_has_one_row_for_each_number_unless_all_failures_are_asked_for() -> None:
    found = aligned(HUMAN, {"good": GOOD, "fails": "." + FAIR[1:]})
    chosen = "statistic == 'accuracy' and analysis == 'score'"
    accuracy = found.to_frame().query(chosen).pivot(index="metric", columns="judge", values="value")
    assert accuracy.loc["harm", "fails"] == score(found, "accuracy", "fails").value
    every = found.to_frame(failures="all").query(f"{chosen} and judge == 'fails'")
    assert every.failures.to_list() == ["left_out", "worst", "best"]
