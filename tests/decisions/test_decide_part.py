"""What is shown of the decisions: rows, tables, figures, sentences."""

import io
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from decide_report_case import HOSTILE, JUDGES, hostile_decisions, in_context, make_decisions
from hypothesis import given
from hypothesis import strategies as st

from judgebench.decisions.decision import Condition, Context, Decision, Decisions, Outcome, State
from judgebench.decisions.report import NO_DECISIONS
from judgebench.decisions.sentences import threshold_text
from judgebench.records import Estimate, Results
from judgebench.results.blocks import Drawing
from judgebench.results.documents import part_csv, write_report
from judgebench.results.tables import DASH, Table
from judgebench.stats.classification import SENDS_ALL

DECIDED = make_decisions()
NOTHING = in_context(replace(DECIDED, decisions=(), curves=()), rows=Results())


def frame(decisions: Decisions) -> pd.DataFrame:
    text = part_csv(decisions.part)
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def tables(decisions: Decisions) -> dict[str, Table]:
    found = [t for block in decisions.part.blocks for t in block.tables if t.rows]
    assert len({table.key for table in found}) == len(found)
    return {table.key: table for table in found}


def conditions(decision: Decision) -> list[tuple[str, Condition]]:
    return [
        *(("REPLACE", c) for c in decision.replace), *(("ASSIST", c) for c in decision.assist),
    ]  # fmt: skip


# --- rows ----------------------------------------------------------------------------------------


def test_every_decision_and_every_number_is_one_row() -> None:
    found = frame(DECIDED)
    assert found["analysis"].value_counts().to_dict() == {
        "decision": len(DECIDED.decisions),
        "condition": sum(len(conditions(d)) for d in DECIDED.decisions),
        "more_data": sum(6 + (d.more.severe is not None) for d in DECIDED.decisions if d.more),
        "triage": sum(6 if c.choice else 2 for c in DECIDED.curves),
        "triage_point": 2 * sum(len(c.points) for c in DECIDED.curves),
        "alternative_test": 6 * 2 * len(JUDGES),
    }
    assert len(DECIDED.to_frame()) == len(found)


def test_outcomes_and_reasons_read_back() -> None:
    rows = frame(DECIDED).query("analysis == 'decision'")
    found = list(zip(rows["judge"], rows["metric"], rows["outcome"], rows["reason"], strict=True))
    assert found == [
        (d.judge, d.metric, d.outcome.value, f"{d.reason} {d.numbers}".strip())
        for d in DECIDED.decisions
    ]


def test_conditions_read_back_to_the_last_digit() -> None:
    rows = frame(DECIDED).query("analysis == 'condition'").itertuples()
    expected = [(d, outcome, c) for d in DECIDED.decisions for outcome, c in conditions(d)]
    for row, (d, outcome, c) in zip(rows, expected, strict=True):
        assert (row.judge, row.metric, row.outcome) == (d.judge, d.metric, outcome)
        assert (row.statistic, row.title, row.state) == (c.key, c.title, c.state.value)
        assert (float(row.bound), bool(row.at_least)) == (c.bound, c.at_least)
        assert pd.isna(row.missing) if not c.missing else row.missing == c.missing
        for name in ("value", "low", "high"):
            shown, value = getattr(row, name), getattr(c.estimate, name)
            assert pd.isna(shown) if value is None else shown == value


def test_undefined_is_empty_with_a_reason() -> None:
    found = frame(DECIDED)
    measured = found["analysis"].isin(["condition", "triage_point", "alternative_test"])
    undefined = found[measured & found["value"].isna()]
    assert len(undefined) > 0
    assert undefined["reason"].notna().all()
    assert "nan" not in part_csv(DECIDED.part)


def test_thresholds_that_send_nobody_or_everybody_are_infinite() -> None:
    points = frame(DECIDED).query("analysis == 'triage_point'")
    thresholds = points["threshold"].astype(float)
    assert thresholds.iloc[0] == float("inf")
    assert thresholds.iloc[-1] == float("-inf")


# --- tables --------------------------------------------------------------------------------------


def test_the_case_holds_every_outcome_and_every_state() -> None:
    states = {c.state for d in DECIDED.decisions for _, c in conditions(d)}
    assert {d.outcome for d in DECIDED.decisions} == set(Outcome)
    assert states == set(State)


def test_every_decision_stands_in_its_cell_and_in_its_sentence() -> None:
    opening, why, *_ = DECIDED.part.blocks
    (table,) = opening.tables
    assert table.columns == ("Metric", *JUDGES)
    found = {(d.judge, d.metric): d for d in DECIDED.decisions}
    for metric, row in zip(DECIDED.rubric.metrics, table.rows, strict=True):
        assert row[0].text == metric.title
        for judge, cell in zip(JUDGES, row[1:], strict=True):
            assert cell.value == found[judge, metric.id].outcome.value
            assert cell.look
    assert all(outcome.value in table.notes[0] for outcome in Outcome)
    for d, sentence in zip(DECIDED.decisions, why.text, strict=True):
        title = DECIDED.titles[d.metric]
        assert sentence.startswith(f"{d.outcome.value} for {title} ({d.judge}). {d.reason}")
        assert ("Label about 75 more questions" in sentence) == bool(d.more and d.more.items)
        assert d.numbers in sentence
    assert opening.lead
    assert why.lead


def test_a_judge_without_a_decision_on_a_metric_has_a_dash() -> None:
    table = tables(replace(DECIDED, decisions=DECIDED.decisions[1:]))["decide_decisions"]
    assert table.rows[0][table.columns.index(DECIDED.decisions[0].judge)].text == DASH


def test_every_number_stands_in_a_table() -> None:
    shown = [c.estimate for t in tables(DECIDED).values() for row in t.rows for c in row]
    choices = [curve.choice for curve in DECIDED.curves if curve.choice]
    expected = [
        *(c.estimate for d in DECIDED.decisions for _, c in conditions(d)),
        *(e for choice in choices for e in (choice.expected_sent, choice.expected_missed)),
    ]
    assert not [estimate for estimate in expected if estimate not in shown]
    passes = DECIDED.context.rows.select("alternative_test", "passes")
    for row, test in zip(tables(DECIDED)["alternative_test"].rows, passes, strict=True):
        assert row[0].text == test.judge
        assert row[5].value == {None: DASH, 1: "yes", 0: "no"}[test.estimate.value]


def test_a_threshold_that_sends_everything_is_shown_as_no_filter() -> None:
    first = DECIDED.curves[0]
    nothing = Estimate(None, reason=SENDS_ALL, n=30)
    choice = first.choice._replace(sent=Estimate(1.0, n=97), expected_missed=nothing)
    part = replace(DECIDED, curves=(replace(first, choice=choice),))
    (row,) = tables(part)["decide_triage"].rows
    assert (row[2].text, row[6].value) == ("all are sent", DASH)


def made(key: str, value: float | None, bound: float, *, at_least: bool = True) -> Condition:
    e = Estimate(value, reason="" if value is not None else "nobody knows")
    return Condition(key, "t", State.UNCLEAR, e, bound, at_least)


@pytest.mark.parametrize(
    ("condition", "bound", "value"),
    [
        (made("humans_accuracy", -0.01, -0.0001), "≥ -0.000", "-0.010"),
        (made("humans_accuracy", -0.01, -0.05), "≥ -0.050", "-0.010"),
        (made("controls", 0.2, 0.0), "> 0", "+0.200"),
        (made("severe_recall", 0.75, 0.7), "≥ 0.700", "0.750"),
        (made("failures", 0.0, 0.05, at_least=False), "≤ 0.050", "0.000"),
    ],
)
def test_bounds_and_estimates_read_as_what_they_are(
    condition: Condition, bound: str, value: str
) -> None:
    decision = replace(DECIDED.decisions[0], replace=(condition,), assist=())
    table = tables(replace(DECIDED, decisions=(decision,)))["decide_conditions-1"]
    ((_, _, asked, estimate, _),) = table.rows
    assert asked.text == bound
    assert estimate.value == value
    assert ("nobody knows" in estimate.provenance) == (value == DASH)


def test_every_curve_has_its_threshold_or_the_reason_why_it_has_none() -> None:
    table, curves = tables(DECIDED)["decide_triage"], DECIDED.curves
    for row, curve in zip(table.rows, curves, strict=True):
        assert row[0].text == curve.judge
        if choice := curve.choice:
            assert row[3].estimate == choice.sent
        else:
            assert row[2].remark == curve.reason
            assert all(cell.provenance.startswith(f"undefined: {curve.reason}") for cell in row[5:])
    (last,) = {row[1].text.partition(",")[0] for row in table.rows[3::4]}
    assert last == "Severe on any metric"


@pytest.mark.parametrize(
    ("threshold", "text"),
    [(0.3125, "0.312"), (2.0, "2"), (math.inf, "none is sent"), (-math.inf, "all are sent")],
)
def test_thresholds_are_short_and_infinite_ones_are_words(threshold: float, text: str) -> None:
    assert threshold_text(threshold) == text


@given(st.sets(st.sampled_from(["decisions", "curves", "describe"])))
def test_any_part_may_be_missing_and_every_row_is_as_long_as_its_columns(gone: set[str]) -> None:
    empty = {name: Context if name == "describe" else () for name in gone}
    for table in tables(replace(DECIDED, **empty)).values():
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_where_nothing_was_decided_one_sentence_says_so() -> None:
    assert tables(NOTHING) == {}
    assert NOTHING.part.blocks[0].text == (NO_DECISIONS,)
    assert not [figure for block in NOTHING.part.blocks for figure in block.figures]


# --- figures -------------------------------------------------------------------------------------


def test_the_plot_of_all_outcomes_shows_what_its_legend_names() -> None:
    (block,) = (b for b in DECIDED.part.blocks if b.heading == "Decisions")
    (drawing,) = (f for f in block.figures if isinstance(f, Drawing))
    figure = drawing.draw()
    (axes,) = figure.axes
    said = [text.get_text() for text in axes.texts]
    assert [words.rpartition("  ")[2] for words in said] == [
        one.outcome for one in DECIDED.part.standings
    ]
    drawn = {kind.get_label(): kind for kind in axes.containers if hasattr(kind, "has_xerr")}
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    with_a_share = [one for one in DECIDED.part.standings if one.accuracy.value is not None]
    assert set(drawn) == {f"judge: {one.outcome}" for one in with_a_share}
    assert set(drawn) <= legend
    faces = {label: kind[0].get_markerfacecolor() for label, kind in drawn.items()}
    assert len(set(faces.values())) == len(faces)


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.long
def test_every_file_of_a_report_holds_hostile_decisions_as_text(tmp_path: Path) -> None:
    hostile = hostile_decisions()
    few = replace(hostile, curves=hostile.curves[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="constrained_layout")  # very long names
        written = write_report([few.part], tmp_path, name="alone", figures=True)
    assert {"decisions.csv", "markdown", "html", "plots/decisions.png"} <= set(written)
    page = written["html"].read_text()
    assert "replace the annotators of “alone”?</title>" in page
    scripts = re.findall(r"<script[^>]*>", page)
    assert len(scripts) == 1
    assert "document.title='pwned'" not in re.sub(r"<[^>]*>", "", page).replace("&#39;", "’")
    assert page.count("pwned") > 5
    assert "$x_1$" in HOSTILE
