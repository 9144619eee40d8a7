"""What is shown of the decisions: rows, tables, figures, sentences."""

from __future__ import annotations

import io
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from decide_report_case import HOSTILE, JUDGES, NOTES, hostile_decisions, make_decisions
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from judgebench.decisions.part import NO_DECISIONS
from judgebench.decisions.result import (
    EVERY,
    Condition,
    Decision,
    Decisions,
    MoreData,
    Outcome,
    State,
    more_sentence,
)
from judgebench.decisions.words import bound_text, threshold_text
from judgebench.records import Estimate
from judgebench.results.part import Drawing, Intervals
from judgebench.results.rows import Results
from judgebench.results.tables import DASH, Table
from judgebench.results.terminal import print_parts
from judgebench.results.write import part_csv, write_report
from judgebench.stats.thresholds import SENDS_ALL, Choice

DECIDED = make_decisions()
NOTHING = replace(DECIDED, decisions=(), curves=(), beside=Results())


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
        "more_data": 7 * sum(d.more is not None for d in DECIDED.decisions),
        "triage": sum(6 if c.choice else 2 for c in DECIDED.curves),
        "triage_point": 2 * sum(len(c.points) for c in DECIDED.curves),
        "jury": 5 * 4,
        "error_correlation": 3 * 4,
        "alternative_test": 6 * 2 * 2 * len(JUDGES),
    }
    assert len(DECIDED.to_frame()) == len(found)


def test_there_are_as_many_decisions_as_are_gone_through() -> None:
    decisions = make_decisions()
    assert len(decisions) == len(list(decisions)) > 1


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
        assert d.numbers in sentence
    assert opening.lead
    assert why.lead


def test_a_judge_without_a_decision_on_a_metric_has_a_dash() -> None:
    table = tables(replace(DECIDED, decisions=DECIDED.decisions[1:]))["decide_decisions"]
    assert table.rows[0][table.columns.index(DECIDED.decisions[0].judge)].text == DASH


def test_every_condition_is_one_row_of_its_judge() -> None:
    found = tables(DECIDED)
    for number, judge in enumerate(JUDGES, start=1):
        table = found[f"decide_conditions-{number}"]
        assert table.title.endswith(judge)
        mine = [pair for d in DECIDED.decisions if d.judge == judge for pair in conditions(d)]
        for row, (outcome, c) in zip(table.rows, mine, strict=True):
            assert row[1].text == f"{outcome}: {c.title}"
            assert row[2].text == bound_text(c)
            assert (row[4].text, row[4].remark) == (c.state.value, c.missing)


def made(key: str, value: float | None, bound: float, *, at_least: bool = True) -> Condition:
    e = Estimate(value, reason="" if value is not None else "nobody knows")
    return Condition(key, "t", State.UNCLEAR, e, bound, at_least)


@pytest.mark.parametrize(
    ("condition", "bound", "value"),
    [
        (made("humans_accuracy", -0.01, -0.0001), "at least 0", "-0.010"),
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
    decision = replace(DECIDED.decisions[0], replace=(condition,), assist=())
    table = tables(replace(DECIDED, decisions=(decision,)))["decide_conditions-1"]
    ((_, _, asked, estimate, _),) = table.rows
    assert asked.text == bound
    assert estimate.value == value
    assert ("nobody knows" in estimate.provenance) == (value == DASH)


def test_more_data_is_told_for_unclear_decisions_only() -> None:
    table = tables(DECIDED)["decide_more_data"]
    unclear = [d for d in DECIDED.decisions if d.more is not None]
    assert len(table.rows) == len(unclear) > 0
    known = [row for row in table.rows if row[2].text != DASH]
    assert all(
        [cell.text for cell in row[2:]] == ["97 + 120", "61 + 75", "360", "14", "84 %", "REPLACE"]
        for row in known
    )
    unknown = [row for row in table.rows if row[2].text == DASH]
    assert len(unknown) == len(JUDGES)
    assert all(row[2].remark == "a second annotator is needed first" for row in unknown)


def test_more_data_reads_as_a_sentence() -> None:
    def told(more: MoreData | None, reason: str = "") -> str:
        return more_sentence(Decision("j", "m", Outcome.CANT_TELL, reason, more=more))

    assert told(MoreData(10, 30, 2, 0.8, Outcome.ASSIST)) == (
        "About 10 more answers, 2 of them severe, with 30 human labels would settle it; "
        "80 % of simulated studies of that size reach a decision, most of them with ASSIST."
    )
    alike = MoreData(10, 30, questions=10, answers_now=50, questions_now=50)
    assert told(alike) == "About 10 more answers with 30 human labels would settle it."
    nearly = MoreData(10, 30, questions=10, answers_now=861, questions_now=860)
    assert told(nearly) == told(alike)
    few = MoreData(176, 528, 40, 0.84, Outcome.REPLACE, "", 22, 399, 50)
    assert told(few) == (
        "399 answers, but only 50 questions: about 72 are needed. The new ones have about 180 "
        "answers, 40 of them severe, with 530 human labels; 84 % of simulated studies of that size "
        "reach a decision, most of them with REPLACE."
    )
    assert told(MoreData(2000)) == "About 2,000 more answers with human labels would settle it."
    assert told(MoreData(reason="it stays unclear.")) == "More data: it stays unclear."
    assert told(None) == ""
    again = MoreData(reason="Nothing to plan from: Too few questions")
    assert told(again, "Too few questions.") == ""


def test_every_curve_has_its_threshold_or_the_reason_why_it_has_none() -> None:
    table, curves = tables(DECIDED)["decide_triage"], DECIDED.ordered_curves
    assert sorted(map(id, curves)) == sorted(map(id, DECIDED.curves))
    for row, curve in zip(table.rows, curves, strict=True):
        assert row[0].text == curve.judge
        assert row[1].text == f"{DECIDED.titles[curve.metric]}, by {curve.signal}"
        if choice := curve.choice:
            assert row[2].text == "0.312"
            share = choice.sent.value
            assert row[3].text == f"{97 * share:.0f} of 97 ({100 * share:.0f} %)"
            assert row[4].text.startswith(f"{30 * choice.missed.value:.0f} of 30 (")
            expected = choice.expected_sent, choice.expected_missed
            assert (row[5].estimate, row[6].estimate) == expected
        else:
            assert row[2].remark == curve.reason
            assert [cell.text for cell in row[3:5]] == ["– of 97", "– of 30"]
            assert all(cell.provenance.startswith(f"undefined: {curve.reason}") for cell in row[5:])
    assert [curve.judge for curve in curves[::4]] == list(JUDGES)
    assert all(curve.metric == EVERY for curve in curves[::4])
    assert table.rows[0][1].text.startswith("Severe on any metric, by ")


def test_a_threshold_that_sends_everything_is_said_to_be_no_filter() -> None:
    """It sends 1.00 and misses nothing: no share of severe answers missed stands beside it."""
    nothing = Estimate(None, reason=SENDS_ALL, n=30)
    choice = Choice(
        0.1, Estimate(1.0, n=97), Estimate(0.0, n=30), Estimate(1.0, 0.96, 1.0), nothing
    )
    curve = replace(DECIDED.curves[0], choice=choice)
    (row,) = tables(replace(DECIDED, curves=(curve,)))["decide_triage"].rows
    assert [c.text for c in row[2:5]] == ["all are sent", "97 of 97 (100 %)", "0 of 30 (0 %)"]
    assert row[2].remark == "to be sure to miss few enough, all answers must go to humans"
    assert row[5].estimate == choice.expected_sent
    assert row[6].value == DASH
    assert "everything is sent, so nothing can be missed" in row[6].provenance


@pytest.mark.parametrize(
    ("threshold", "text"),
    [(0.3125, "0.312"), (2.0, "2"), (math.inf, "none is sent"), (-math.inf, "all are sent")],
)
def test_thresholds_are_short_and_infinite_ones_are_words(threshold: float, text: str) -> None:
    assert threshold_text(threshold) == text


def test_the_jury_stands_with_its_judges_and_each_pair() -> None:
    found, metric = tables(DECIDED), DECIDED.rubric.metrics[0].id
    rows = {row.statistic: row for row in DECIDED.beside.select("jury", metric=metric)}
    shown = found["decide_jury"].rows[0]
    names = [name for name, kind in JUDGES.items() if kind == "judge"]
    assert shown[2].remark == f"of 3: {', '.join(names)}"
    assert shown[3].text == rows["gain"]["who"] == ", ".join(names[:2])
    assert (shown[4].estimate, shown[5].estimate, shown[6].estimate) == tuple(
        rows[name].estimate for name in ("accuracy", "single", "gain")
    )
    pairs = found["decide_error_correlations"].rows
    assert len(pairs) == len(DECIDED.beside.select("error_correlation"))
    assert pairs[0][1].text == f"{names[0]} and {names[1]}"


def test_every_alternative_test_is_a_row_with_its_reason() -> None:
    table = tables(DECIDED)["alternative_test"]
    tests = DECIDED.beside.select("alternative_test", "passes")
    assert len(table.rows) == len(tests) > 0
    assert "0.1" in table.notes[0]
    for row, test in zip(table.rows, tests, strict=True):
        assert len(row) == len(table.columns)
        assert (row[0].text, row[2].text) == (test.judge, test["who"])
        passes = test.estimate.value
        assert row[6].text == (DASH if passes is None else "yes" if passes else "no")
        if passes is None:
            assert row[6].remark == f"undefined: {test.estimate.reason}"
            assert [row[4].text, row[7].text] == [DASH] * 2


@given(st.sets(st.sampled_from(["decisions", "curves", "beside"])))
def test_any_part_may_be_missing_and_every_row_is_as_long_as_its_columns(gone: set[str]) -> None:
    empty = {name: Results() if name == "beside" else () for name in gone}
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


def test_conditions_of_one_kind_share_a_figure_with_their_bound() -> None:
    figures = [f for block in DECIDED.part.blocks for f in block.figures]
    found = {f.key: f for f in figures if isinstance(f, Intervals)}
    assert {"condition_humans_accuracy", "condition_failures", "condition_missed"} <= set(found)
    assert "condition_severe_items" not in found  # a count has no interval
    humans = found["condition_humans_accuracy"]
    assert humans.bounds == {"required: at least −0.05": -0.05}
    lanes = {(line, lane.name): lane.estimate for line, lanes in humans.lines for lane in lanes}
    for d in DECIDED.decisions:
        for _, c in conditions(d):
            if c.key == "humans_accuracy":
                assert lanes[DECIDED.titles[d.metric], d.judge] == c.estimate


def test_the_figure_of_the_systems_says_that_it_is_judge_minus_annotator() -> None:
    lowest = Estimate(-0.2, -0.3, -0.1, "bootstrap", 40)
    of_one = Condition(
        "systems", "agreement with the others on answers of x, judge minus annotator",
        State.NOT_MET, lowest, -0.05, True, rival="x",
    )  # fmt: skip
    decision = replace(DECIDED.decisions[0], replace=(of_one,), assist=())
    part = replace(DECIDED, decisions=(decision,)).part
    (title,) = [f.title for b in part.blocks for f in b.figures if f.key == "condition_systems"]
    assert title == (
        "Agreement with the others on answers of the system on which it is lowest, judge minus "
        "annotator"
    )


def test_figures_have_plain_names_one_for_each_judge_and_signal() -> None:
    figures = [f for block in DECIDED.part.blocks for f in block.figures]
    triage = [f.key for f in figures if isinstance(f, Drawing) and f.key != "decisions"]
    assert len(set(triage)) == len({(c.judge, c.signal) for c in DECIDED.curves}) == 4
    assert not set("".join(triage)) & set("/\\<>|'\" $&=\n")


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [50, 120, 200])
def test_a_terminal_shows_every_decision_and_nothing_is_wider(width: int) -> None:
    out = io.StringIO()
    print_parts([DECIDED.part], Console(file=out, width=width, color_system=None))
    text = out.getvalue()
    assert max(map(len, text.split("\n"))) <= width
    joined = "".join(text.split())
    for d in DECIDED.decisions:
        assert "".join(d.reason.split()) in joined
    assert "".join(f"! {NOTES[0]}".split()) in joined
    assert "".join(DECIDED.rule.in_words()[0].split()) in joined


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
