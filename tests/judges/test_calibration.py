import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.judges.config import CalibrationConfig
from judgebench.judges.recorded import calibrated_verdicts, calibration_about
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.rubric import load_rubric
from judgebench.studies.answers import indexed
from judgebench.studies.verdicts import CodedVerdicts

TONE = load_rubric("support-tone")
SOLVES = TONE.metrics[0]  # with abstain
ONE = TONE.only([SOLVES.id])
BATCH = CalibrationConfig(name="c", calibrate="m")


def answers(n: int) -> list[Answer]:
    return [Answer(f"i{number}", f"text {number}") for number in range(n)]


def given_by(weights: list[float] | None, answer: Answer, metric=SOLVES) -> Verdict:
    """A verdict whose options have probabilities in the proportion of `weights`."""
    probabilities = None
    if weights is not None:
        total = sum(weights)
        probabilities = {
            metric.id: {o: w / total for o, w in zip(metric.options, weights, strict=True)}
        }
    return Verdict(answer.item_id, answer.content_hash, "m", "s", Status.OK,
                   probabilities=probabilities)  # fmt: skip


def of_verdicts(items: list[Answer], verdicts: list[Verdict], rubric=ONE) -> list[Verdict]:
    rows = indexed(items)
    coded = CodedVerdicts(rows, rubric.metrics)
    for verdict in verdicts:
        coded.put(rows.row(verdict.item_id), verdict)
    given = {m.id: coded.option_probabilities(m, rows) for m in rubric.metrics}
    return list(calibrated_verdicts(BATCH, rubric, items, given, "sig"))


def calibrated(rows: list[list[float] | None], rubric=ONE) -> list[Verdict]:
    items = answers(len(rows))
    return of_verdicts(items, [*map(given_by, rows, items)], rubric)


FULLY, PARTLY, NOT, ABSTAIN = SOLVES.options


def test_what_a_judge_always_prefers_decides_no_longer() -> None:
    rows = [[8.0, 1, 1, 1], [8, 2, 1, 1], [8, 1, 2, 1], [8, 1, 1, 2]]
    found = calibrated(rows)
    assert [v.labels[SOLVES.id] for v in found] == [FULLY, PARTLY, NOT, ABSTAIN]
    assert {v.status for v in found} == {Status.OK}
    for verdict in found:
        assert verdict.probabilities is not None
        assert list(verdict.probabilities[SOLVES.id]) == list(SOLVES.options)
        assert sum(verdict.probabilities[SOLVES.id].values()) == pytest.approx(1)


@settings(deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=2, max_size=6),
    bias=st.lists(st.floats(0.01, 100), min_size=4, max_size=4),
)
def test_a_bias_that_is_the_same_for_every_answer_changes_no_probability(rows, bias) -> None:
    biased = [[w * b for w, b in zip(row, bias, strict=True)] for row in rows]
    for plain, other in zip(calibrated(rows), calibrated(biased), strict=True):
        assert plain.probabilities is not None
        assert other.probabilities is not None
        assert other.probabilities[SOLVES.id] == pytest.approx(plain.probabilities[SOLVES.id])


def test_a_verdict_without_probabilities_is_told_and_counts_for_no_prior() -> None:
    rows = [[8.0, 1, 1, 1], None, [8, 2, 1, 1]]
    found = calibrated(rows)
    assert found[1].status is Status.UNPARSED
    assert found[1].labels == {}
    assert found[1].probabilities is None
    assert found[1].reason == "solves_problem: m gave no probabilities"
    alone = calibrated([rows[0], rows[2]])
    assert [v.probabilities for v in (found[0], found[2])] == [v.probabilities for v in alone]


def test_an_option_without_a_probability_makes_its_metric_missing() -> None:
    items = answers(2)
    verdicts = [given_by([4.0, 1, 1, 1], items[0]), given_by([1.0, 4, 1, 1], items[1])]
    assert verdicts[1].probabilities is not None
    del verdicts[1].probabilities[SOLVES.id][ABSTAIN]
    found = of_verdicts(items, verdicts)
    assert found[1].reason == "solves_problem: m gave no probabilities"


def test_a_batch_of_one_answer_has_no_likeliest_label() -> None:
    (verdict,) = calibrated([[8.0, 1, 1, 1]])
    assert verdict.status is Status.UNPARSED
    assert verdict.reason == "solves_problem: labels are equally likely"


def test_the_last_verdict_on_an_answer_counts() -> None:
    items = answers(2)
    given = [([1.0, 1, 1, 8], 0), ([1.0, 1, 4, 1], 1), ([4.0, 1, 1, 1], 0)]
    found = of_verdicts(items, [given_by(weights, items[row]) for weights, row in given])
    assert [v.labels[SOLVES.id] for v in found] == [FULLY, NOT]


def test_metrics_without_probabilities_spoil_no_other() -> None:
    found = calibrated([[4.0, 1, 1, 1], [1.0, 4, 1, 1]], rubric=TONE)
    assert [v.labels for v in found] == [{SOLVES.id: FULLY}, {SOLVES.id: PARTLY}]
    assert {v.status for v in found} == {Status.UNPARSED}
    assert "politeness: m gave no probabilities" in found[0].reason


def test_one_verdict_an_answer_in_their_order_signed_and_free() -> None:
    found = calibrated([[4.0, 1, 1, 1], [1.0, 4, 1, 1], None])
    assert [v.item_id for v in found] == ["i0", "i1", "i2"]
    assert [v.content_hash for v in found] == [a.content_hash for a in answers(3)]
    assert {(v.judge, v.signature, v.usage.calls, v.cost) for v in found} == {("c", "sig", 0, None)}


def test_what_a_calibrated_judge_depends_on() -> None:
    plain = calibration_about(BATCH, TONE, "s1", answers(2))
    others = [
        calibration_about(BATCH, TONE, "s2", answers(2)),
        calibration_about(BATCH, ONE, "s1", answers(2)),
        calibration_about(BATCH, TONE, "s1", answers(3)),
    ]
    assert len({content_hash(about) for about in [plain, *others]}) == 4
    assert plain["prior_from"] == {"n": 2, "hash": others[0]["prior_from"]["hash"]}


def test_probabilities_that_underflowed_are_merely_very_unlikely() -> None:
    rows = [[1.0, 1e-320, 1, 1], [1, 1, 1.5, 1]]
    for verdict in calibrated(rows):
        assert verdict.probabilities is not None
        assert all(map(math.isfinite, verdict.probabilities[SOLVES.id].values()))
