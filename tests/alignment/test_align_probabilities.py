from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from align_case import (
    LABELS,
    Row,
    answers,
    drawn_people,
    labels,
    metric,
    only,
    rubric,
    saying,
    verdicts,
)
from aligned import align
from sklearn.metrics import brier_score_loss, log_loss

from judgebench.alignment import Alignment
from judgebench.alignment.analysis import NO_OTHERS, TRUTH_STATISTICS
from judgebench.records import Estimate
from judgebench.studies.reference_labels import TruthConfig

ANALYSES = ("probability", "calibration")


def aligned(
    humans: Mapping[str, str], rows: Sequence[Row], groups: str = "", **truth: object
) -> Alignment:
    items = answers(len(rows), groups)
    judges = [saying(rows, items), verdicts("silent", "a" * len(rows), items)]
    return align("p", rubric(), items, labels(humans), judges, TruthConfig(**truth))


def score(found: Alignment, statistic: str, source: str = "probabilities") -> Estimate:
    about = {"judge": "m", "metric": "harm", "who": source}
    return only(found, "probability", statistic, **about)


def test_a_judge_without_probabilities_has_no_score_and_no_curve() -> None:
    found = aligned(*drawn_people(30))
    for analysis in ANALYSES:
        assert found.results.values("judge", analysis) == ["m"]
    measured = set(found.results.values("statistic", "probability"))
    assert measured == {*TRUTH_STATISTICS, "squared_distance"}
    silent = aligned({"ann": "ab"}, [None, None])
    assert not {row.analysis for row in silent.results} & set(ANALYSES)


def test_without_human_labels_there_is_nothing_to_score() -> None:
    found = aligned({"ann": ".."}, [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    assert found.results.select("probability") == []


def test_scores_against_the_truth_are_those_of_scikit_learn() -> None:
    humans, p = drawn_people()
    found = aligned({"ann": humans["ann"]}, p.tolist())
    truth = [LABELS.index(x) for x in humans["ann"]]
    brier = brier_score_loss(truth, p, labels=range(3), scale_by_half=False)
    assert score(found, "brier").value == pytest.approx(brier)
    assert score(found, "log_loss").value == pytest.approx(log_loss(truth, p))
    assert "count as that" in score(found, "log_loss").method
    wrong = np.mean(p.argmax(axis=1) != truth)
    assert score(found, "brier", "label").value == pytest.approx(2 * wrong)
    points = [row.estimate for row in found.results.select("calibration", "share_right")]
    right = sum(point.n * point.value for point in points) / 120
    assert right == pytest.approx(1 - wrong)


def test_a_judge_that_knows_the_distribution_is_nearer_to_it_than_a_colleague() -> None:
    humans, p = drawn_people(200)
    found = aligned(humans, p.tolist())
    name = "squared_distance"
    mine, colleague = score(found, name), score(found, name, "annotator")
    assert mine.value < score(found, name, "base_rates").value < colleague.value
    gain = score(found, name, "gain")
    assert gain.value == pytest.approx(colleague.value - mine.value)
    assert gain.low > 0
    assert gain.n == mine.n == 200


def test_a_colleague_is_one_annotator_against_the_others_worked_by_hand() -> None:
    """Item 1: a, a, b: a against {a, b} is 1/4 + 1/4 away, twice; b against {a, a} is 2: mean 1."""
    found = aligned({"x": "aa", "y": "aa", "z": "ba"}, [[1, 0, 0], [0, 0, 1]])
    name = "squared_distance"
    assert score(found, name, "annotator").value == pytest.approx((1 + 0) / 2)
    # The judge on item 1: 1/2 away from {a, b}, twice, and 0 from {a, a}; on item 2 all, 2.
    assert score(found, name).value == pytest.approx((1 / 3 + 2) / 2)
    assert score(found, name, "label").value == pytest.approx((1 / 3 + 2) / 2)
    # Base rates: 5/6 a and 1/6 b.
    expected = ((2 * 2 * (1 / 3) ** 2 + 2 * (1 / 6) ** 2) / 3 + 2 * (1 / 6) ** 2) / 2
    assert score(found, name, "base_rates").value == pytest.approx(expected)


def test_everybody_is_scored_on_the_items_with_probabilities() -> None:
    rows = [[0.6, 0.3, 0.1], None, [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]
    found = aligned({"x": "abca", "y": "abc.", "z": "...."}, rows)
    scores = found.results.select("probability")
    assert {s.statistic for s in scores} > {"squared_distance"}
    for s in scores:
        several = s.statistic == "squared_distance"
        assert (s.estimate.n, s.estimate.n_missing) == ((2, 2) if several else (3, 1)), s


def test_with_one_annotator_only_the_truth_can_be_held_against_the_judge() -> None:
    found = aligned({"x": "abca"}, [[0.6, 0.3, 0.1]] * 4)
    scores = {s.statistic: s.estimate for s in found.results.select("probability")}
    assert scores.pop("squared_distance").reason == NO_OTHERS
    assert all(estimate.value is not None for estimate in scores.values())


def test_under_the_rule_each_every_human_label_is_a_truth_of_its_own() -> None:
    found = aligned({"x": "aa", "y": "ab"}, [[1, 0, 0], [0.5, 0.5, 0]], rule="each")
    assert score(found, "brier").n == 4
    assert score(found, "brier").value == pytest.approx((0 + 0 + 0.5 + 0.5) / 4)


def test_an_abstention_is_missing_and_the_rest_are_shares_of_what_is_none() -> None:
    items = answers(2)
    hesitant = saying([[0.3, 0.1, 0], [0.6, 0.2, 0]], items, abstain=0.31)
    found = align("p", rubric(), items, labels({"x": "ab"}), [hesitant])
    brier = score(found, "brier")
    assert (brier.n, brier.n_missing) == (1, 1)
    assert brier.value == pytest.approx(0.75**2 + 0.75**2)


def test_a_metric_without_probabilities_is_left_out_beside_one_that_has_some() -> None:
    two = rubric(metric(), metric("nominal", "xyz", id="tone", title="Tone"))
    items = answers(2)
    human = labels({"x": "ab"}) + labels({"x": "xy"}, "tone")
    judge = saying([[0.6, 0.3, 0.1]] * 2, items)
    found = align("p", two, items, human, [judge])
    assert {s.metric for s in found.results.select("probability")} == {"harm"}
