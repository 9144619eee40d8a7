"""Judges held against each other."""

from itertools import combinations
from types import SimpleNamespace

import pytest
from align_case import aligned, answers, labels, metric, only, rubric, score, verdicts
from aligned import align
from scipy.stats import binomtest

from judgebench.alignment import Alignment
from judgebench.stats.paired import holm, mcnemar_mid_p
from judgebench.studies.truth import TruthConfig

HUMAN = {"ann": "aabbccaabbcc" * 3}
GOOD, FAIR, POOR = "aabbccaabbcc" * 3, "aabbccaabbca" * 3, "abcabcabcabc" * 3


STATISTICS = ("accuracy_difference", "mcnemar_p", "permutation_p", "p_holm")


def compared(found: Alignment, first: str, second: str) -> SimpleNamespace:
    """What is said of one pair of judges."""
    pair = {key: only(found, "comparison", key, judge=first, who=second) for key in STATISTICS}
    p = {key: estimate.value for key, estimate in pair.items()}
    return SimpleNamespace(**p, difference=pair["accuracy_difference"])


def values(found: Alignment, statistic: str) -> list[float | None]:
    analysis = "comparison" if statistic in STATISTICS else "ranking"
    return [row.estimate.value for row in found.results.select(analysis, statistic)]


def test_the_difference_is_that_of_the_two_accuracies_and_p_is_mcnemars() -> None:
    found = aligned(HUMAN, {"good": GOOD, "poor": POOR})
    one = compared(found, "good", "poor")
    expected = score(found, "accuracy", "good").value - score(found, "accuracy", "poor").value
    assert one.difference.value == pytest.approx(expected)
    assert (one.difference.n, one.difference.n_missing) == (36, 0)
    assert one.difference.low < expected < one.difference.high
    apart = sum(x != y for x, y in zip(GOOD, POOR, strict=True))
    assert one.mcnemar_p == pytest.approx(mcnemar_mid_p(apart, 0))
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


def test_whole_questions_are_flipped() -> None:
    groups = "".join(g * 6 for g in "uvwxyz")
    one = compared(aligned(HUMAN, {"good": GOOD, "poor": "b" * 36}, groups=groups), "good", "poor")
    # On each of six questions the good judge is ahead.
    assert one.permutation_p == pytest.approx(2 / 2**6)
    assert one.mcnemar_p < 1e-6


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
    assert one.mcnemar_p is one.permutation_p is one.p_holm is None
    other = compared(found, "m", "good")
    assert other.p_holm == pytest.approx(2 * other.permutation_p)  # of two pairs that count


def test_under_the_rule_each_every_human_label_is_a_pair() -> None:
    found = aligned({"ann": "aabb", "bob": "ab.b"}, {"m": "aabb", "n": "abbb"}, rule="each")
    one = compared(found, "m", "n")
    assert one.difference.n == 7
    expected = score(found, "accuracy", "m").value - score(found, "accuracy", "n").value
    assert one.difference.value == pytest.approx(expected)


METRICS = [metric(id=f"m{i}", title=f"M{i}") for i in range(6)]


def on_metrics(judges: dict[str, list[str]], human: str) -> Alignment:
    """`judges` holds one row of labels a metric; the human says the same on each."""
    items = answers(len(human))
    said = [
        verdicts(name, dict(zip((m.id for m in METRICS), rows, strict=True)), items)
        for name, rows in judges.items()
    ]
    truth = [label for m in METRICS for label in labels({"ann": human}, m.id)]
    return align("x", rubric(*METRICS), items, truth, said, TruthConfig())


def test_the_metrics_are_the_blocks_of_a_ranking() -> None:
    human = "abcabcabc"
    found = on_metrics(
        {
            "best": [human] * 6,
            "good": ["abcabcabb"] * 6,
            "poor": ["abcabbbbb"] * 6,
            "worst": ["cccccabbb"] * 6,
        },
        human,
    )
    rows = found.results.select("ranking", "average_rank")
    assert [r.judge for r in rows] == ["best", "good", "poor", "worst"]
    assert values(found, "average_rank") == [1, 2, 3, 4]
    assert {r.estimate.n for r in rows} == {6}
    assert {r.metric for r in rows} == {"all"}
    (p,), (distance,) = values(found, "friedman_p"), values(found, "critical_difference")
    assert p < 0.001
    assert 1 < distance < 2
    letters = {r.judge: set(r["who"]) for r in rows}
    ranks = {r.judge: r.estimate.value for r in rows}
    for a, b in combinations(letters, 2):
        assert bool(letters[a] & letters[b]) == (abs(ranks[a] - ranks[b]) < distance)


def test_judges_that_tie_everywhere_are_one_group() -> None:
    found = on_metrics({name: ["abcabc"] * 6 for name in "xyz"}, "abcabb")
    assert values(found, "average_rank") == [2, 2, 2]
    assert found.results.values("who", "ranking", "average_rank") == ["a"]
    assert values(found, "friedman_p") == [None]


def test_a_metric_on_which_a_judge_says_nothing_is_left_out_of_the_ranks() -> None:
    rows = {name: ["abcabc"] * 6 for name in "xy"} | {"z": ["abcabc"] * 5 + ["......"]}
    found = on_metrics(rows, "abcabb")
    rows = found.results.select("ranking", "average_rank")
    assert {(r.estimate.n, r.estimate.n_missing) for r in rows} == {(5, 1)}


@pytest.mark.parametrize("judges", [{"m": GOOD}, {"m": GOOD, "n": FAIR, "o": POOR}])
def test_too_few_judges_or_metrics_have_no_ranks_and_the_reason_says_so(judges) -> None:
    found = aligned(HUMAN, judges)
    rows = found.results.select("ranking", "average_rank")
    assert len(rows) == len(judges)
    for row in (*rows, *found.results.select("ranking", metric="all")):
        assert row.estimate.value is None
        assert "3 judges and 2 metrics" in row.estimate.reason
        assert row["who"] == ""
