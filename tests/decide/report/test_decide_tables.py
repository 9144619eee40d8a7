from __future__ import annotations

import math
from dataclasses import replace

import pytest
from decide_report_case import IN_WORDS, JUDGES, make_decisions
from hypothesis import given
from hypothesis import strategies as st

from judgebench.decide.report.lookup import (
    curves_in_order,
    decided_judges,
    decided_metrics,
    metric_title,
)
from judgebench.decide.report.tables import (
    conditions_tables,
    correlations_table,
    decision_table,
    evidence_tables,
    jury_table,
    more_data_table,
    opening_tables,
    triage_table,
)
from judgebench.decide.report.words import (
    bound_text,
    estimate_cell,
    missing_data,
    more_sentence,
    rule_sentences,
    threshold_text,
)
from judgebench.decide.result import EVERY, Condition, Decisions, MoreData, Outcome, State
from judgebench.records import Estimate
from judgebench.results.tables import DASH, Table, footnotes

DECIDED = make_decisions()
NOTHING = replace(DECIDED, decisions=(), curves=(), juries=(), alternative_tests=())


def test_the_case_holds_every_outcome_and_every_state() -> None:
    states = {c.state for d in DECIDED.decisions for c in (*d.replace, *d.assist)}
    assert {d.outcome for d in DECIDED.decisions} == set(Outcome)
    assert states == set(State)


def test_every_decision_stands_in_its_cell_with_its_reason() -> None:
    table = decision_table(DECIDED)
    assert table.columns == ("Metric", *JUDGES)
    notes, found = footnotes(table), {(d.judge, d.metric): d for d in DECIDED.decisions}
    for metric, row in zip(DECIDED.rubric.metrics, table.rows, strict=True):
        assert row[0].text == metric.title
        for judge, cell in zip(JUDGES, row[1:], strict=True):
            decision = found[judge, metric.id]
            assert cell.value == decision.outcome.value
            assert notes.marks[decision.reason.rstrip(".")] == notes.mark(cell) != ""
    assert all(outcome.value in table.notes[0] for outcome in Outcome)


def test_the_rule_is_told_with_how_a_bound_is_met() -> None:
    *demands, states = rule_sentences(DECIDED)
    assert tuple(demands) == IN_WORDS
    assert all(state.value.capitalize() in states for state in State)


def test_judges_and_metrics_stand_in_the_order_of_the_run_and_of_the_rubric() -> None:
    shuffled = replace(DECIDED, decisions=DECIDED.decisions[::-1])
    assert decided_judges(shuffled) == list(JUDGES)
    assert decided_metrics(shuffled) == [m.id for m in DECIDED.rubric.metrics]
    assert decision_table(shuffled) == decision_table(DECIDED)


def test_judges_and_metrics_that_nobody_named_come_last() -> None:
    stranger = replace(DECIDED.decisions[0], judge="stranger", metric="unheard-of")
    found = replace(DECIDED, decisions=(stranger, *DECIDED.decisions))
    table = decision_table(found)
    assert table.columns[-1] == "stranger"
    assert table.rows[-1][0].text == "unheard-of"
    assert table.rows[-1][1].value == DASH
    assert "not decided" in table.rows[-1][1].remark


def test_a_judge_that_was_not_decided_on_has_no_column() -> None:
    found = replace(DECIDED, judges={"idle": "judge", **JUDGES})
    assert "idle" not in decision_table(found).columns


def test_every_condition_is_one_row_of_its_judge() -> None:
    tables = conditions_tables(DECIDED)
    assert len(tables) == len(JUDGES)
    for judge, table in zip(JUDGES, tables, strict=True):
        assert table.title.endswith(judge)
        mine = [d for d in DECIDED.decisions if d.judge == judge]
        conditions = [c for d in mine for c in (*d.replace, *d.assist)]
        for row, condition in zip(table.rows, conditions, strict=True):
            assert row[1].text.endswith(condition.title)
            assert row[2].text == bound_text(condition)
            assert row[3] == estimate_cell(condition)
            assert (row[4].text, row[4].remark) == (condition.state.value, condition.missing)


def test_conditions_of_both_outcomes_are_told_apart() -> None:
    rows = conditions_tables(DECIDED)[0].rows
    assert sum(row[1].text.startswith("REPLACE: ") for row in rows) == 6 * 7
    assert sum(row[1].text.startswith("ASSIST: ") for row in rows) == 2 * 7


def made(key: str, value: float | None, bound: float, *, at_least: bool = True) -> Condition:
    e = Estimate(value, reason="" if value is not None else "nobody knows")
    return Condition(key, "t", State.UNCLEAR, e, bound, at_least)


@pytest.mark.parametrize(
    ("condition", "bound", "value"),
    [
        (made("humans_accuracy", -0.01, -0.05), "at least -0.05", "-0.010"),
        (made("controls_accuracy", 0.2, 0.0), "above 0", "+0.200"),
        (made("severe_items", 1234.0, 20.0), "at least 20", "1,234"),
        (made("severe_recall", 0.75, 0.7), "at least 0.7", "0.750"),
        (made("failures", 0.0, 0.05, at_least=False), "at most 0.05", "0.000"),
        (made("severe_items", None, 20.0), "at least 20", DASH),
    ],
)
def test_bounds_and_estimates_read_as_what_they_are(
    condition: Condition, bound: str, value: str
) -> None:
    assert bound_text(condition) == bound
    assert estimate_cell(condition).value == value
    assert ("nobody knows" in estimate_cell(condition).provenance) == (value == DASH)


def test_more_data_is_told_for_unclear_decisions_only() -> None:
    table = more_data_table(DECIDED)
    unclear = [d for d in DECIDED.decisions if d.more is not None]
    assert len(table.rows) == len(unclear) > 0
    known = [row for row in table.rows if row[2].text != DASH]
    assert all(
        [cell.text for cell in row[2:]] == ["120", "360", "14", "84 %", "REPLACE"] for row in known
    )
    unknown = [row for row in table.rows if row[2].text == DASH]
    assert len(unknown) == len(JUDGES)
    assert all(row[2].remark == "a second annotator is needed first" for row in unknown)


def test_more_data_reads_as_a_sentence() -> None:
    known = MoreData(1, 3, 0, 0.8, Outcome.ASSIST)
    assert more_sentence(known) == (
        "To make it clear: about 1 more answer with human labels (3 labels, 0 severe answers among "
        "them); 80 % of simulated studies of that size end clear, most of them with ASSIST."
    )
    assert more_sentence(MoreData(2000, None, None, None, None)) == (
        "To make it clear: about 2,000 more answers with human labels."
    )
    unknown = MoreData(None, None, None, None, None, "it stays unclear.")
    assert more_sentence(unknown) == "More data: it stays unclear."


def test_what_is_missing_is_not_told_where_the_reason_says_it_already() -> None:
    decision = DECIDED.decisions[5]
    assert decision.more is not None
    assert missing_data(decision) == more_sentence(decision.more)
    again = replace(decision.more, reason=f"Nothing to plan from: {decision.reason}")
    assert missing_data(replace(decision, more=again)) == ""
    assert missing_data(replace(decision, more=None)) == ""


def test_every_curve_has_its_threshold_or_the_reason_why_it_has_none() -> None:
    table = triage_table(DECIDED)
    curves = curves_in_order(DECIDED)
    assert sorted(map(id, curves)) == sorted(map(id, DECIDED.curves))
    for row, curve in zip(table.rows, curves, strict=True):
        assert row[0].text == curve.judge
        assert row[1].text == f"{metric_title(DECIDED, curve.metric)}, by {curve.signal}"
        if curve.choice:
            assert row[4].text == "0.312"
            assert (row[5].estimate, row[6].estimate) == (curve.choice.sent, curve.choice.missed)
        else:
            assert row[4].remark == curve.reason
            assert all(cell.provenance.startswith(f"undefined: {curve.reason}") for cell in row[5:])
    assert [curve.judge for curve in curves[::4]] == list(JUDGES)
    assert all(curve.metric == EVERY for curve in curves[::4])
    assert table.rows[0][1].text.startswith("Severe on any metric, by ")


@pytest.mark.parametrize(
    ("threshold", "text"),
    [(0.3125, "0.312"), (2.0, "2"), (math.inf, "none is sent"), (-math.inf, "all are sent")],
)
def test_thresholds_are_short_and_infinite_ones_are_words(threshold: float, text: str) -> None:
    assert threshold_text(threshold) == text


def test_the_jury_stands_with_its_judges_and_each_pair() -> None:
    table, jury = jury_table(DECIDED), DECIDED.juries[0]
    row = table.rows[0]
    assert len(table.rows) == len(DECIDED.juries)
    assert row[3].text == ", ".join(jury.best)
    assert all(name in row[2].remark for name in jury.judges)
    assert (row[4].estimate, row[5].estimate) == (jury.accuracy, jury.single)
    assert row[6].estimate == jury.gain
    pairs = correlations_table(DECIDED).rows
    assert len(pairs) == sum(len(j.correlations) for j in DECIDED.juries)
    assert pairs[0][1].text == f"{jury.correlations[0].first} and {jury.correlations[0].second}"


def test_where_nothing_was_decided_there_is_no_table() -> None:
    assert opening_tables(None) == opening_tables(NOTHING) == []
    assert evidence_tables(NOTHING) == []


@given(st.sets(st.sampled_from(["decisions", "curves", "juries", "alternative_tests"])))
def test_any_part_may_be_missing_and_every_row_is_as_long_as_its_columns(gone: set[str]) -> None:
    found = replace(DECIDED, **dict.fromkeys(gone, ()))
    for table in all_of(found):
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert table.rows


def test_keys_of_tables_are_unique() -> None:
    keys = [table.key for table in all_of(DECIDED)]
    assert len(keys) == len(set(keys)) > 8


def all_of(decisions: Decisions) -> list[Table]:
    return [*opening_tables(decisions), *evidence_tables(decisions)]
