"""Differences against what an alignment measures, against scipy, and against themselves swapped."""

from dataclasses import replace

import numpy as np
import pytest
from align_case import aligned, answers, labels, metric, rubric, score, verdicts
from compare_case import HUMANS, TRUE, compared, measured_rows, noisy, side
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import judgebench as jb
from judgebench.alignment.judge_scores import STATISTICS
from judgebench.alignment.raters import NEVER_APART, SAME_LABELS
from judgebench.comparison.result import Comparison, failures
from judgebench.records import Estimate, Row
from judgebench.stats.intervals import SMOOTHED_T, clopper_pearson
from judgebench.studies.study import study_of

A = "aabbbcabba" * 6
B = "aaabbcacca" * 6
rows_of_labels = st.text("abc.", min_size=12, max_size=12)


def p_value(found: Comparison, of: str = "accuracy") -> Estimate:
    (row,) = found.results.select("test", "permutation_p", of=of, failures="left_out")
    return row.estimate


@pytest.mark.parametrize("statistic", [*STATISTICS])
def test_a_difference_is_that_of_what_two_alignments_measure(statistic: str) -> None:
    apart = [score(aligned(HUMANS, {"m": row}), statistic).value for row in (A, B)]
    found = compared(A, B).difference(statistic, "j", "harm")
    assert None not in apart
    assert found.value == pytest.approx(apart[1] - apart[0], abs=1e-12)  # type: ignore[operator]
    assert found.low <= found.value <= found.high
    of = {
        "severe_recall": TRUE.count("c"),
        "severe_specificity": 60 - TRUE.count("c"),
        "severe_precision": A.count("c"),  # the items that the first judge labels so
    }
    assert (found.n, found.n_missing) == (of.get(statistic, 60), 0)


@pytest.mark.parametrize("failures", ["worst", "best"])
@pytest.mark.parametrize("statistic", ["accuracy", "kappa", "mae"])
def test_failures_counted_in_are_counted_as_in_an_alignment(statistic: str, failures: str) -> None:
    a, b = f"..{A[2:]}", f"{B[:50]}....{B[54:]}"
    apart = [score(aligned(HUMANS, {"m": row}), statistic, failures=failures) for row in (a, b)]
    found = compared(a, b).difference(statistic, "j", "harm", failures)
    assert found.value == pytest.approx(apart[1].value - apart[0].value, abs=1e-12)  # type: ignore[operator]
    assert (found.n, found.n_missing) == (60, 0)


def test_left_out_are_answers_that_either_gave_no_label_to() -> None:
    a, b = f"..{A[2:]}", f"{B[:50]}....{B[54:]}"
    found = compared(a, b).difference("accuracy", "j", "harm")
    kept = [i for i in range(60) if i > 1 and not 50 <= i < 54]
    right = [sum(row[i] == TRUE[i] for i in kept) / len(kept) for row in (a, b)]
    assert found.value == pytest.approx(right[1] - right[0])
    assert (found.n, found.n_missing) == (54, 6)


def test_the_test_of_single_answers_is_mcnemars_exact_one() -> None:
    right = [[x == t for x, t in zip(row, TRUE, strict=True)] for row in (A, B)]
    b = sum(x and not y for x, y in zip(*right, strict=True))
    c = sum(y and not x for x, y in zip(*right, strict=True))
    assert b != c
    expected = binomtest(b, b + c).pvalue
    assert p_value(compared(A, B)).value == pytest.approx(expected, abs=1e-12)


def test_the_test_of_severe_answers_looks_at_these_alone() -> None:
    severe = [i for i, label in enumerate(TRUE) if label == "c"]
    a, b = ("".join("a" if i in severe[:n] else x for i, x in enumerate(TRUE)) for n in (0, 5))
    found = compared(a, b)
    assert found.difference("severe_recall", "j", "harm").value == pytest.approx(-5 / len(severe))
    tested = p_value(found, "severe_recall")
    assert (tested.value, tested.n) == (pytest.approx(2 / 2**5), len(severe))


@pytest.mark.parametrize(("missing", "p"), [(3, 0.25), (4, 0.125), (7, 0.015625)])
def test_failures_are_worse_only_where_the_exact_test_says_so(missing: int, p: float) -> None:
    always_wrong = "".join("b" if label == "a" else "a" for label in TRUE)
    comparison = compared(always_wrong, "." * missing + always_wrong[missing:])
    screen = str(comparison)
    assert p_value(comparison, "no_label").value == pytest.approx(p)
    assert len([*failures(comparison, ["worse"])]) == (p <= 0.05)
    assert ("B is shown to be worse: the share without a label of" in screen) == (p <= 0.05)
    if p <= 0.05:
        e = comparison.difference("no_label", "j", "harm")
        assert f"{e.value:+.3f} [{e.low:+.3f}, {e.high:+.3f}] (n = 60)" in " ".join(screen.split())


def test_p_values_are_corrected_over_the_metrics() -> None:
    metrics = [metric(id=name, title=name.title()) for name in ("harm", "tone")]
    items = answers(60)
    human = [x for m in ("harm", "tone") for x in labels({"ann": TRUE}, m)]
    study = study_of(rubric(*metrics), items, human, jb.TruthConfig())
    judges = (verdicts("a", {"harm": A, "tone": B}, items),
              verdicts("b", {"harm": TRUE, "tone": A}, items))  # fmt: skip
    both = replace(study, judges=judges)
    found = jb.compare(both, both, judges=("a", "b")).results
    about = {"of": "accuracy", "judge": "b"}
    raw = {
        m: found.find("permutation_p", "test", metric=m, **about).value for m in ("harm", "tone")
    }
    holm = {m: found.find("p_holm", "test", metric=m, **about).value for m in ("harm", "tone")}
    assert raw["harm"] is not None
    assert raw["tone"] is not None
    assert raw["harm"] < raw["tone"]
    assert holm["harm"] == pytest.approx(2 * raw["harm"])
    assert holm["tone"] == pytest.approx(max(raw["tone"], 2 * raw["harm"]))


def test_the_same_verdicts_differ_by_exactly_0_and_nothing_flips() -> None:
    found = compared(A, A)
    differences = found.results.select("difference")
    assert len(differences) > 15
    for row in differences:
        assert row.estimate.value == 0, row
        assert row.estimate.low is None or row.estimate.low < 0
    assert found.difference("kappa", "j", "harm").reason == SAME_LABELS
    assert p_value(found).reason == NEVER_APART
    assert not found.flips.results.rows
    assert found.results.find("flipped", "change").value == 0


def test_labels_without_a_truth_are_no_difference_in_what_is_right() -> None:
    humans = {"ann": f"{TRUE[:50]}{'.' * 10}"}
    found = compared(A, f"{A[:50]}{B[50:]}", humans)
    assert found.difference("accuracy", "j", "harm").reason == SAME_LABELS
    assert {row["right"] for row in found.flips.results} == {"unknown"}


def test_labels_that_are_equally_wrong_have_an_interval_around_0() -> None:
    a, b = "c" * 60, "b" * 60
    found = compared(a, b, {"ann": "a" * 60}).difference("accuracy", "j", "harm")
    assert found.value == 0
    assert found.low is not None
    assert found.high == pytest.approx(-found.low)
    assert 0.02 < found.high < clopper_pearson(0, 60).high  # type: ignore[operator]
    assert found.method == f"{SMOOTHED_T}, over 60 clusters"


def mirrored(row: Row, found: Comparison) -> None:
    (other,) = found.results.select(
        row.analysis, row.statistic, metric=row.metric, failures=row["failures"]
    )
    here, there = row.estimate, other.estimate
    assert here.n_missing == there.n_missing
    if row.statistic != "severe_precision":  # its n counts those of the first judge, pinned above
        assert here.n == there.n
    for x, y in ((here.value, there.value), (here.low, there.high), (here.high, there.low)):
        assert (x is None) == (y is None)
        assert x is None or y is None or x == pytest.approx(-y, abs=1e-12)


@settings(max_examples=6)  # each measures two studies whole
@given(rows_of_labels, rows_of_labels, st.sampled_from(["ordinal", "nominal"]))
def test_swapped_sides_change_the_signs_and_nothing_else(a: str, b: str, kind: str) -> None:
    humans, groups = {"ann": "aaabbbccabca", "bob": "aabbbbcca.ca"}, "000011112345"
    about = {"measured": metric(kind), "groups": groups}
    there, back = (compared(*pair, humans, **about) for pair in ((a, b), (b, a)))
    for row in there.results.select("difference"):
        mirrored(row, back)
    assert p_value(there).value == p_value(back).value
    swapped = {"A": "B", "B": "A"}
    flips = {(r["item_id"], r["label_b"], r["label_a"], swapped.get(r["right"], r["right"]))
             for r in back.flips.results}  # fmt: skip
    assert flips == {
        (r["item_id"], r["label_a"], r["label_b"], r["right"]) for r in there.flips.results
    }


@settings(max_examples=6)
@given(rows_of_labels)
def test_a_judge_compared_with_itself_never_differs(row: str) -> None:
    humans = {"ann": "aaabbbccabca", "bob": "aabbbbcca.ca"}
    found = compared(row, row, humans)
    assert not found.flips.results.rows
    assert {r.estimate.value for r in found.results.select("difference")} <= {0.0, None}


def test_probabilities_are_compared_on_the_same_answers() -> None:
    rng = np.random.default_rng(3)
    study = side({"a": A, "b": B})
    judges = []
    for judge in study.judges:
        said = {}
        for item_id, verdict in judge.verdicts.items():
            p = dict(zip("abc?", [*rng.dirichlet((1, 1, 1)), 0.0], strict=True))
            said[item_id] = replace(verdict, probabilities={"harm": p})
        judges.append(replace(judge, verdicts=said))
    both = replace(study, judges=tuple(judges))
    found = jb.compare(both, both, judges=("a", "b"))
    measured = jb.align(both).results
    keys = {"who": "probabilities"}
    for statistic in ("brier", "log_loss"):
        a, b = (measured.find(statistic, "probability", judge=x, **keys).value for x in "ab")
        difference = found.difference(statistic, "b", "harm")
        assert difference.value == pytest.approx(b - a, abs=1e-9), statistic  # type: ignore[operator]
        assert difference.low <= difference.value <= difference.high
    alone = replace(both, judges=(both.judges[0], study.judges[1]))
    lacking = jb.compare(alone, alone, judges=("a", "b")).difference("brier", "b", "harm")
    assert (lacking.value, lacking.reason) == (None, "B gave no label probabilities")


def test_status_cost_and_time_are_compared_verdict_by_verdict() -> None:
    study = side({"a": A, "b": f"{B[:-3]}..."})
    judges = []
    for judge, cost, seconds in zip(study.judges, (0.01, 0.03), (2.0, 1.0), strict=True):
        said = {i: replace(v, cost=cost, latency=seconds) for i, v in judge.verdicts.items()}
        judges.append(replace(judge, verdicts=said))
    both = replace(study, judges=tuple(judges))
    found = jb.compare(both, both, judges=("a", "b"))
    assert found.difference("cost", "b", "").value == pytest.approx(0.02)
    assert found.difference("latency", "b", "").value == pytest.approx(-1.0)
    assert found.difference("unparsed", "b", "").value == pytest.approx(3 / 60)
    assert not found.results.select("difference", "refused")
    free = replace(both, judges=(both.judges[0], study.judges[1]))
    unknown = jb.compare(free, free, judges=("a", "b")).difference("cost", "b", "")
    assert unknown.value is None
    assert unknown.reason == "unknown for B: no model was called, or it does not report it"


def test_one_noisier_judge_is_rarely_called_different_from_its_like() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(20):
        rows = [noisy(TRUE, 0.3, rng) for _ in range(2)]
        found = measured_rows(side({"a": rows[0], "b": rows[1]}))
        p = found.find("permutation_p", "test", of="accuracy").value
        alarms += p is not None and p <= 0.05
    assert alarms <= 3
