import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from judgebench.errors import SetupError
from judgebench.records import HumanLabel
from judgebench.rubric import Metric, load_rubric
from judgebench.studies.reference_labels import TruthConfig, ratings_by_metric, settle, truth_model

TONE = load_rubric("support-tone")
SOLVES, POLITE, CHANNEL = TONE.metrics
ROW_OF = {"i0": 0, "i1": 1, "i2": 2, "i3": 3}


def row_of(item_id: str) -> int:
    return ROW_OF.get(item_id, -1)


def human(item: str, annotator: str, label: str | None, metric=SOLVES) -> HumanLabel:
    return HumanLabel(item, annotator, metric.id, label)


LABELS = [
    human("i1", "bob", "Partly"),
    human("i0", "bob", "Fully"),
    human("i0", "ann", "Not at all"),
    human("i1", "ann", None),
    human("i2", "ann", "Cannot tell"),
    human("i9", "ann", "Fully"),  # of no answer
    human("i0", "cy", "Shop", CHANNEL),
]


def settled(rows, metric=SOLVES, **config) -> list[int]:
    return settle(np.array(rows), metric, TruthConfig(**config)).tolist()


# --- ratings -------------------------------------------------------------------------------------


def test_ratings_are_a_matrix_of_rated_items_and_sorted_annotators() -> None:
    found = ratings_by_metric(TONE.metrics, row_of, LABELS)
    solves = found[SOLVES.id]
    assert solves.annotators == ("ann", "bob")
    assert solves.rows.tolist() == [0, 1, 2]
    assert solves.values.tolist() == [[2, 0], [-1, 1], [-1, -1]]
    assert solves.blank.tolist() == [[False, False], [True, False], [False, False]]
    assert solves.abstained == 1
    assert found[CHANNEL.id].annotators == ("cy",)
    assert found[CHANNEL.id].rows.tolist() == [0]
    assert found[CHANNEL.id].values.tolist() == [[3]]
    assert found[POLITE.id].values.shape == (0, 0)


def test_some_annotators_columns() -> None:
    solves = ratings_by_metric([SOLVES], row_of, LABELS)[SOLVES.id]
    assert solves.of(["bob"]).values.tolist() == [[0], [1], [-1]]
    assert solves.of(["bob", "ann"]).values.tolist() == [[0, 2], [1, -1], [-1, -1]]
    assert solves.of([]).values.shape == (3, 0)


def test_who_gave_one_item_which_label() -> None:
    found = ratings_by_metric(TONE.metrics, row_of, LABELS)
    assert [found[SOLVES.id].given(row) for row in ROW_OF.values()] == [
        [("ann", 2), ("bob", 0)], [("bob", 1)], [], [],
    ]  # fmt: skip
    assert found[POLITE.id].given(0) == []


def test_of_two_labels_in_one_cell_the_later_counts() -> None:
    twice = [human("i0", "ann", "Fully"), human("i0", "ann", "Partly")]
    for labels, index in ((twice, 1), (twice[::-1], 0)):
        found = ratings_by_metric([SOLVES], row_of, labels)[SOLVES.id]
        assert found.values.tolist() == [[index]]


def test_a_scale_of_many_labels_keeps_them_apart() -> None:
    texts = [f"level {i}" for i in range(200)]
    scale = Metric.model_validate(
        {"id": "scale", "title": "Scale", "question": "How much?", "kind": "ordinal",
         "labels": [{"text": text} for text in texts]}
    )  # fmt: skip
    rows = {f"i{i}": i for i in range(200)}
    labels = [HumanLabel(f"i{i}", "ann", "scale", text) for i, text in enumerate(texts)]
    assert ratings_by_metric([scale], rows.__getitem__, labels)["scale"].values[:, 0].tolist() == [
        *range(200)
    ]


def test_a_label_outside_the_rubric_is_named() -> None:
    with pytest.raises(SetupError, match="is not a label of solves_problem; found mostly"):
        ratings_by_metric([SOLVES], row_of, [human("i0", "ann", "mostly")])


# --- who makes the truth -------------------------------------------------------------------------

EVERYBODY = ["expert", "crowd#1", "crowd#10", "crowd#2", "Ann [nurse]", "crowd#1"]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ((), ("Ann [nurse]", "crowd#1", "crowd#10", "crowd#2", "expert")),
        (("crowd#*",), ("crowd#1", "crowd#10", "crowd#2")),
        (("crowd#1",), ("crowd#1",)),
        (("expert", "crowd#?"), ("crowd#1", "crowd#2", "expert")),
        (("Ann [nurse]",), ("Ann [nurse]",)),  # a name, though it looks like a pattern
        (("*",), ("Ann [nurse]", "crowd#1", "crowd#10", "crowd#2", "expert")),
    ],
)
def test_annotators_by_name_and_pattern(patterns, chosen) -> None:
    assert TruthConfig(annotators=patterns).choose(EVERYBODY) == chosen


def test_every_pattern_that_fits_nobody_is_told() -> None:
    with pytest.raises(SetupError) as caught:
        TruthConfig(annotators=("crowd*", "experts", "Expert")).choose(EVERYBODY)
    assert [(p.field, p.found) for p in caught.value.problems] == [
        ("truth.annotators", "experts"), ("truth.annotators", "Expert"),
    ]  # fmt: skip
    assert "crowd#1, crowd#10" in caught.value.problems[0].allowed


def test_nobody_at_all() -> None:
    assert TruthConfig().choose([]) == ()
    with pytest.raises(SetupError, match="fits no annotator"):
        TruthConfig(annotators=("ann",)).choose([])


# --- one label an item ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "lower", "upper", "none"),
    [
        ([0, 2, 2], 2, 2, 2),
        ([0, 1, 2], 1, 1, 1),
        ([0, 2, -1], 0, 2, -1),
        ([1, 1, -1], 1, 1, 1),
        ([-1, -1, -1], -1, -1, -1),
        ([0, 0, 2, 2], 0, 2, -1),  # never 1, which nobody said
    ],
)
def test_the_median(row, lower, upper, none) -> None:
    for ties, expected in (("lower", lower), ("upper", upper), ("none", none)):
        assert settled([row], ties=ties) == [expected]
        assert settled([row], ties=ties, rule="each") == [expected]


@pytest.mark.parametrize(
    ("row", "lower", "upper", "none"),
    [
        ([0, 2, 2], 2, 2, 2),
        ([0, 1, 2], 0, 2, -1),
        ([2, 2, 0, 0], 0, 2, -1),
        ([1, -1, -1], 1, 1, 1),
        ([-1, -1, -1], -1, -1, -1),
    ],
)
def test_the_majority(row, lower, upper, none) -> None:
    for ties, expected in (("lower", lower), ("upper", upper), ("none", none)):
        assert settled([row], rule="majority", ties=ties) == [expected]
        assert settled([row], CHANNEL, rule="median", ties=ties) == [expected]  # nominal


rows = st.lists(st.integers(-1, 2), min_size=1, max_size=8)


@settings(deadline=None)
@given(row=rows, ties=st.sampled_from(["lower", "upper", "none"]),
       rule=st.sampled_from(["median", "majority"]))  # fmt: skip
def test_the_truth_is_a_label_that_somebody_gave(row, ties, rule) -> None:
    (found,) = settled([row], ties=ties, rule=rule)
    said = [label for label in row if label >= 0]
    assert found in said or (found == -1 and (not said or ties == "none"))
    assert settled([row[::-1]], ties=ties, rule=rule) == [found]


@settings(deadline=None)
@given(rows)
def test_none_is_where_the_lower_and_the_upper_label_differ(row) -> None:
    for rule in ("median", "majority"):
        lower, upper, none = (
            settled([row], rule=rule, ties=t)[0] for t in ("lower", "upper", "none")
        )
        assert lower <= upper
        assert none == (lower if lower == upper else -1)


# --- a model of every annotator's errors ----------------------------------------------------------

# Ann is right; bob and cy are often wrong, and differently.
ANN = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
BOB = [0, 1, 2, 0, 1, 2, 1, 2, 0, 0, 1, 2, 0, 1, 2, 1, 1, 2]
CY = [0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 0, 0, 1, 2, 1, 1, 2]
DEE = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 0, 0, 1, 2]
FOUR = np.array([ANN, BOB, CY, DEE]).T


def test_on_few_items_a_label_that_all_annotators_give_stays() -> None:
    rng = np.random.default_rng(0)
    for items in (4, 6, 10, 20) * 10:
        truth = rng.integers(0, 3, items)
        wrong = (truth[:, None] + rng.integers(1, 3, (items, 3))) % 3
        values = np.where(rng.random((items, 3)) < 0.8, truth[:, None], wrong)
        alike = (values == values[:, :1]).all(axis=1)
        found = settle(values, SOLVES, TruthConfig(rule="dawid_skene"))
        assert found[alike].tolist() == values[alike, 0].tolist()


@pytest.mark.parametrize("metric", [SOLVES, CHANNEL], ids=["ordinal", "nominal"])
@pytest.mark.parametrize("ties", ["lower", "upper", "none"])
def test_the_truth_is_the_argmax_of_the_model(metric, ties) -> None:
    values = np.vstack([FOUR, [[-1, -1, -1, -1]]])
    found = settle(values, metric, TruthConfig(rule="dawid_skene", ties=ties))
    posterior = truth_model(values, len(metric.labels)).posterior
    assert found[:-1].tolist() == posterior[:-1].argmax(axis=1).tolist()
    assert found[-1] == -1


def test_equally_probable_labels_are_settled_by_ties() -> None:
    # Each of the two is as often right as the other, and so are the third and the fourth.
    values = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
    for ties, expected in (("lower", [0, 0, 0, 1]), ("upper", [1, 1, 0, 1]),
                           ("none", [-1, -1, 0, 1])):  # fmt: skip
        found = settle(values, SOLVES, TruthConfig(rule="dawid_skene", ties=ties))
        assert found.tolist() == expected


def test_a_model_needs_people_and_no_places_in_a_list() -> None:
    with pytest.raises(SetupError) as caught:
        TruthConfig(rule="dawid_skene").choose(EVERYBODY)
    (problem,) = caught.value.problems
    assert (problem.field, problem.found) == ("truth.rule", "dawid_skene")
    assert "crowd#1 is a place in a list, not a person" in problem.message
    assert problem.allowed == "median, majority or each; annotators: Ann [nurse], expert"
    people = TruthConfig(rule="dawid_skene", annotators=("expert", "Ann*"))
    assert people.choose(EVERYBODY) == ("Ann [nurse]", "expert")
    assert "crowd#1" in TruthConfig(rule="majority").choose(EVERYBODY)


@pytest.mark.parametrize("rule", ["median", "majority"])
def test_a_tie_of_nominal_labels_is_left_undecided_unless_ties_are_stated(rule: str) -> None:
    tied, clear = [0, 3, -1], [0, 3, 3]
    assert settled([tied, clear], CHANNEL, rule=rule) == [-1, 3]
    assert settled([tied, clear], CHANNEL, rule=rule, ties="upper") == [3, 3]
    assert settled([tied, clear], CHANNEL, rule=rule, ties="lower") == [0, 3]
    assert settled([[0, 2, -1]], SOLVES, rule=rule) == [2]  # the more severe, as ever


# --- in words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "metric", "words"),
    [
        ({}, SOLVES, "the median; ties go to the more severe label"),
        ({"ties": "lower"}, SOLVES, "the median; ties go to the less severe label"),
        ({}, CHANNEL, "the majority; ties leave an item without a reference label"),
        ({"ties": "upper"}, CHANNEL, "the majority; ties go to the last listed label"),
        (
            {"rule": "dawid_skene"},
            SOLVES,
            "the most probable label (Dawid-Skene); ties go to the more severe label",
        ),
        ({"rule": "each"}, CHANNEL, "every label, one by one"),
    ],
)
def test_the_rule_in_words(config, metric, words) -> None:
    assert TruthConfig(**config).in_words(metric) == words


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(ValidationError):
        TruthConfig.model_validate({"rule": "mean"})
    with pytest.raises(ValidationError):
        TruthConfig.model_validate({"tie": "upper"})
