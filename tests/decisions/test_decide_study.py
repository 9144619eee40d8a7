"""A study's counts: worked out by hand, and the same whatever the order of the items."""

import numpy as np
import pandas as pd
import pytest
from cluster_case import apart
from hypothesis import given, settings
from hypothesis import strategies as st

import judgebench as jb
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.decision import Outcome
from judgebench.stats.arrays import Clusters

# items        0        1        2         3
OWN = np.array([[0, 0], [1, 1], [1, 0], [1, -1]])
OTHERS = np.array([[0, 0], [1, 1], [0, 1], [-1, 1]])  # of two annotators: the other one's label
TRUTH = np.array([0, 1, 1, 1])


def _side(clusters: list[int]) -> HumanSide:
    apart = Clusters(np.array(clusters), max(clusters) + 1)
    return HumanSide(TRUTH, OWN, OTHERS, apart, 2, 1, np.ones((1, 2)))


def _study(judged: list[int], asked: list[int] = [1, 1, 1, 1], clusters: list[int] | None = None):  # noqa: B006
    return study_counts(
        _side(clusters or [0, 1, 2, 3]), np.array(judged), np.array(asked, dtype=bool),
        {"constant": np.zeros(4, dtype=np.int64)},
    )  # fmt: skip


def _sum(study: StudyCounts, name: str) -> list[float]:
    return np.tensordot(study.how_many, getattr(study, name), axes=1).tolist()


def test_pairs_are_counted_by_the_truth_of_the_others() -> None:
    study = _study([0, 0, 1, 1])
    # item 3 has one annotator, so nobody can say what he should have said
    assert _sum(study, "pairs") == [[3, 3]]
    assert _sum(study, "judge_pairs") == [[2, 1]]
    assert _sum(study, "annotator_pairs") == [[2, 2]]


def test_items_are_counted_by_the_truth_of_all_and_beside_every_control() -> None:
    study = _study([0, 0, 1, 1])
    assert _sum(study, "items") == [1, 3]
    assert _sum(study, "judge_items") == [1, 2]
    assert _sum(study, "control_items") == [[1, 0]]


def test_severe_items_are_counted_with_what_judge_and_annotators_find() -> None:
    study = _study([0, 0, 1, -1])
    # severe items, found, without a label
    assert _sum(study, "severe") == [3, 1, 1]
    # pairs severe to most of the others; found by the judge, without a label, by the annotator
    assert _sum(study, "severe_pairs") == [[3, 1, 0, 2]]


def test_a_missing_label_is_counted_where_it_matters() -> None:
    study = _study([0, -1, 1, 1])
    assert _sum(study, "asked") == [4, 1]
    assert _sum(study, "failed_pairs") == [[0, 2]]
    assert _sum(study, "failed_items") == [0, 1]


def test_what_the_judge_was_not_asked_is_left_out_of_everything() -> None:
    study = _study([0, -1, 1, 1], asked=[1, 0, 1, 1])
    assert _sum(study, "asked") == [3, 0]
    assert _sum(study, "items") == [1, 2]
    assert study.n_not_asked == 1
    assert study.total_asked == 3


def test_human_labels_are_counted() -> None:
    assert float(_study([0, 0, 0, 0]).how_many @ _study([0, 0, 0, 0]).labels) == 7


def test_items_of_one_question_are_one_cluster() -> None:
    study = _study([0, 0, 1, 1], clusters=[0, 0, 1, 1])
    assert study.how_many.sum() == 2
    assert _sum(study, "items") == [1, 3]


def test_without_controls_there_is_an_empty_block() -> None:
    asked = np.ones(4, dtype=bool)
    study = study_counts(_side([0, 1, 2, 3]), TRUTH, asked, {})
    assert study.control_items.shape[1:] == (0, 2)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 1), min_size=4, max_size=4), st.permutations(range(4)))
def test_the_order_of_items_does_not_matter(judged: list[int], order: list[int]) -> None:
    one = _study(judged)
    side = HumanSide(TRUTH[order], OWN[order], OTHERS[order], apart(4), 2, 1, np.ones((1, 2)))
    other = study_counts(
        side, np.array(judged)[order], np.ones(4, dtype=bool),
        {"constant": np.zeros(4, dtype=np.int64)},
    )  # fmt: skip
    for name in ("pairs", "judge_pairs", "annotator_pairs", "items", "judge_items", "severe"):
        np.testing.assert_allclose(_sum(one, name), _sum(other, name))


@pytest.mark.filterwarnings("ignore:m was asked about 1 of 2 items")
def test_a_judge_that_was_asked_only_where_annotators_disagree_is_not_decided() -> None:
    labels = pd.DataFrame(
        {"item_id": ["a", "a", "b", "b"], "annotator": ["Ann", "Bob"] * 2,
         "tone": ["Kind", "Rude", "Rude", "Rude"]}
    )  # fmt: skip
    rows = pd.DataFrame({"item_id": ["a"], "judge": "m", "tone": ["Kind"]})
    rubric = jb.Rubric.from_labels({"tone": ["Kind", "Rude"]})
    study = jb.study(labels, rows, rubric=rubric, truth={"ties": "none"}, expected="rows")
    (found,) = jb.decide(study).decisions
    assert found.outcome is Outcome.CANT_TELL
    assert found.reason.startswith("No item that the judge was asked about has a")
