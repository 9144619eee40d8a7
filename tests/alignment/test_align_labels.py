"""What reviewers ask for beside agreement: each label against all others, ROC curves, limits of
agreement, correlation within systems, and annotators in pairs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from align_case import (
    LABELS,
    aligned,
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
from sklearn.metrics import (
    cohen_kappa_score,
    matthews_corrcoef,
    precision_recall_fscore_support,
    recall_score,
    roc_auc_score,
)

from judgebench.alignment import Alignment
from judgebench.records import Estimate
from judgebench.studies.reference_labels import TruthConfig

RNG = np.random.default_rng(5)
TRUTH = RNG.choice([*LABELS], 200, p=[0.6, 0.25, 0.15])
JUDGED = np.where(RNG.random(200) < 0.7, TRUTH, RNG.choice([*LABELS], 200))
HUMAN, JUDGE = "".join(TRUTH), "".join(JUDGED)
NUMBERS = metric(labels="12345")


def label_score(alignment: Alignment, statistic: str, label: str, judge: str = "m") -> Estimate:
    return only(alignment, "label", statistic, judge=judge, metric="harm", label=label)


def of_systems(human: str, judge: str, systems: str) -> Alignment:
    """One character an item; `.` is no system."""
    items = [
        replace(answer, system=name.strip("."))
        for answer, name in zip(answers(len(human)), systems, strict=True)
    ]
    people = labels({"ann": human})
    return align("s", rubric(), items, people, [verdicts("m", judge, items)], TruthConfig())


@pytest.mark.parametrize("place", range(3))
def test_each_label_has_the_scores_of_scikit_learn(place: int) -> None:
    alignment = aligned({"ann": HUMAN}, {"m": JUDGE})
    precision, recall, f1, _ = precision_recall_fscore_support(TRUTH, JUDGED, labels=[*LABELS])
    label = LABELS[place]
    expected = {
        "precision": (precision[place], (label == JUDGED).sum()),
        "recall": (recall[place], (label == TRUTH).sum()),
        "f1": (f1[place], 200),
        "specificity": (recall_score(label != TRUTH, label != JUDGED), (label != TRUTH).sum()),
    }
    for statistic, (value, n) in expected.items():
        estimate = label_score(alignment, statistic, label)
        assert estimate.value == pytest.approx(value, abs=1e-9)
        assert estimate.low < value < estimate.high
        assert (estimate.n, estimate.n_missing) == (n, 0)
        assert estimate.method


@pytest.mark.parametrize("statistic", ["precision", "f1", "specificity"])
def test_the_most_severe_label_stands_among_the_scores_too(statistic: str) -> None:
    alignment = aligned({"ann": HUMAN}, {"m": JUDGE})
    severe = only(alignment, "score", f"severe_{statistic}", judge="m")
    assert severe == label_score(alignment, statistic, "c")


def test_labels_that_nobody_gives_have_a_reason_and_no_score() -> None:
    alignment = aligned({"ann": "aabbaabb"}, {"m": "aaaaaaa."})
    assert label_score(alignment, "recall", "c").reason.startswith("no item has this label")
    assert (
        label_score(alignment, "precision", "b").reason == "the judge gives this label to no item"
    )
    assert label_score(alignment, "f1", "c").reason.startswith("neither reference nor judge")
    assert label_score(alignment, "recall", "b").n_missing == 1


def test_correlation_and_linear_kappa_are_those_of_scikit_learn() -> None:
    alignment = aligned({"ann": HUMAN}, {"m": JUDGE})
    expected = {
        "mcc": matthews_corrcoef(TRUTH, JUDGED),
        "kappa_linear": cohen_kappa_score(TRUTH, JUDGED, weights="linear"),
    }
    for statistic, value in expected.items():
        estimate = only(alignment, "score", statistic, judge="m")
        assert estimate.value == pytest.approx(value, abs=1e-9)
        assert estimate.low < value < estimate.high


def test_a_pair_of_annotators_has_the_kappas_of_scikit_learn() -> None:
    alignment = aligned({"ann": HUMAN, "bob": JUDGE, "cy": "." * 100 + JUDGE[100:]})
    kappas = {"kappa": None, "kappa_linear": "linear", "kappa_quadratic": "quadratic"}
    for statistic, weights in kappas.items():
        pair = only(alignment, "agreement", statistic, who="ann ~ cy")
        expected = cohen_kappa_score(TRUTH[100:], JUDGED[100:], weights=weights)
        assert pair.value == pytest.approx(expected, abs=1e-9)
        assert pair.low < expected < pair.high
        assert (pair.n, pair.n_missing) == (100, 100)
    everybody = {row.statistic for row in alignment.results.select("agreement", who="all")}
    assert not everybody & kappas.keys()


def test_nominal_labels_have_no_weighted_kappa_of_pairs() -> None:
    alignment = aligned({"ann": HUMAN, "bob": JUDGE}, measured=metric("nominal"))
    pairs = alignment.results.select("agreement", who="ann ~ bob")
    assert {row.statistic for row in pairs} == {"alpha", "kappa"}


def test_every_label_has_the_area_of_scikit_learn_where_there_are_probabilities() -> None:
    people, p = drawn_people(150)
    rows: list[Sequence[float] | None] = [*p.tolist()]
    rows[:10] = [None] * 10
    items = answers(150, "abcde" * 30)
    alignment = align(
        "p", rubric(), items, labels({"ann": people["ann"]}), [saying(rows, items)], TruthConfig()
    )
    truth = np.array([*people["ann"]])[10:]
    for place, label in enumerate(LABELS):
        area = label_score(alignment, "roc_auc", label)
        expected = roc_auc_score(truth == label, p[10:, place])
        assert area.value == pytest.approx(expected, abs=1e-9)
        assert area.low < expected < area.high
        assert (area.n, area.n_missing) == (140, 10)
        assert area.method == "jackknife-t over 5 clusters"


def test_a_judge_with_a_score_has_a_curve_of_the_most_severe_label() -> None:
    items = answers(200)
    scores = np.where(TRUTH == "c", 0.3, 0.0) + np.random.default_rng(0).random(200)
    judge = verdicts("m", JUDGE, items)
    scored = {
        item_id: replace(verdict, score=float(score))
        for (item_id, verdict), score in zip(judge.verdicts.items(), scores, strict=True)
    }
    people = labels({"ann": HUMAN})
    judges = [replace(judge, verdicts=scored), verdicts("plain", JUDGE, items)]
    alignment = align("s", rubric(), items, people, judges, TruthConfig())
    area = label_score(alignment, "roc_auc", "c")
    assert area.value == pytest.approx(roc_auc_score(TRUTH == "c", scores), abs=1e-9)
    rows = alignment.results.select("label", "roc_auc")
    assert [(row.judge, row["label"]) for row in rows] == [("m", "c")]


def test_limits_of_agreement_are_those_worked_out_by_hand() -> None:
    human, judge = "1233345512" * 6, "1223455414" * 6
    alignment = aligned({"ann": human}, {"m": judge}, measured=NUMBERS)
    difference = np.array([int(j) - int(h) for h, j in zip(human, judge, strict=True)])
    middle, spread = difference.mean(), 1.96 * difference.std(ddof=1)
    expected = {
        "mean_difference": middle, "lower_limit": middle - spread, "upper_limit": middle + spread,
    }  # fmt: skip
    for statistic, value in expected.items():
        estimate = only(alignment, "limits_of_agreement", statistic, judge="m")
        assert estimate.value == pytest.approx(value, abs=1e-9)
        assert estimate.low < value < estimate.high
        assert estimate.n == 60


@pytest.mark.parametrize(
    ("texts", "kind"), [("abc", "ordinal"), ("01", "ordinal"), ("123", "nominal")]
)
def test_labels_that_are_no_scale_of_numbers_have_no_limits(texts: str, kind: str) -> None:
    rated = metric(kind, labels=texts)
    alignment = aligned({"ann": texts * 5}, {"m": texts[::-1] * 5}, measured=rated)
    assert alignment.results.select("limits_of_agreement") == []


def test_differences_are_drawn_with_their_limits() -> None:
    judges = {"m": "12354" * 8, "failed": "." * 40}
    alignment = aligned({"ann": "12345" * 8}, judges, measured=NUMBERS)
    drawn = [figure for block in alignment.part.blocks for figure in block.figures]
    (drawing,) = [figure for figure in drawn if figure.key.startswith("differences")]
    figure = drawing.draw()
    (axes,) = [axes for axes in figure.axes if axes.collections]
    points = axes.collections[0].get_offsets()
    assert sorted(map(tuple, points[points[:, 1] != 0].tolist())) == [(4.5, -1.0), (4.5, 1.0)]
    assert [round(line.get_ydata()[0], 2) for line in axes.lines] == [0.0, -1.26, 1.26]


def test_correlation_given_the_system_is_that_of_the_residuals() -> None:
    systems = "".join(RNG.choice([*"uvw"], 200))
    alignment = of_systems(HUMAN, JUDGE, systems)
    design = np.array([[name == system for name in "uvw"] for system in systems], dtype=float)
    columns = [np.array([LABELS.index(x) for x in row], float) for row in (HUMAN, JUDGE)]
    left = [x - design @ np.linalg.lstsq(design, x)[0] for x in columns]
    estimate = only(alignment, "given_system", "partial_correlation", judge="m")
    assert estimate.value == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-9)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.n == 200


def test_a_judge_that_knows_systems_alone_has_no_correlation_given_them() -> None:
    estimate = only(
        of_systems("aabcbcbc", "aaaacccc", "uuuuvvvv"), "given_system", "partial_correlation"
    )
    assert estimate.value is None
    assert estimate.reason.endswith("do not vary within systems")


@pytest.mark.parametrize("systems", ["uuuu", "....", "uu.."])
def test_answers_of_one_system_have_no_correlation_given_it(systems: str) -> None:
    assert of_systems("aabc", "abbc", systems).results.select("given_system") == []
