from __future__ import annotations

import io
from dataclasses import replace

import pandas as pd
from decide_report_case import make_decisions

from judgebench.decide.report.csv import COLUMNS, to_decisions_csv
from judgebench.decide.result import Decisions

DECIDED = make_decisions()


def read(decisions: Decisions) -> pd.DataFrame:
    text = to_decisions_csv(decisions)
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def test_every_decision_and_every_number_is_one_row() -> None:
    table = read(DECIDED)
    assert tuple(table.columns) == COLUMNS
    assert table["table"].value_counts().to_dict() == {
        "decision": len(DECIDED.decisions),
        "condition": sum(len(d.replace) + len(d.assist) for d in DECIDED.decisions),
        "more_data": 4 * sum(d.more is not None for d in DECIDED.decisions),
        "triage": sum(4 if c.choice else 2 for c in DECIDED.curves),
        "triage_point": 2 * sum(len(c.points) for c in DECIDED.curves),
        "jury": 5 * len(DECIDED.juries),
        "error_correlation": sum(len(j.correlations) for j in DECIDED.juries),
        "alternative_test": 6 * len(DECIDED.alternative_tests),
    }


def test_outcomes_and_reasons_read_back() -> None:
    rows = read(DECIDED).query("table == 'decision'")
    found = list(zip(rows["judge"], rows["metric"], rows["outcome"], rows["reason"], strict=True))
    assert found == [(d.judge, d.metric, d.outcome.value, d.reason) for d in DECIDED.decisions]


def test_conditions_read_back_to_the_last_digit() -> None:
    rows = read(DECIDED).query("table == 'condition'").itertuples()
    expected = [
        (d, outcome, c)
        for d in DECIDED.decisions
        for outcome, group in (("REPLACE", d.replace), ("ASSIST", d.assist))
        for c in group
    ]
    for row, (d, outcome, c) in zip(rows, expected, strict=True):
        assert (row.judge, row.metric, row.outcome) == (d.judge, d.metric, outcome)
        assert (row.statistic, row.title, row.state) == (c.key, c.title, c.state.value)
        assert (row.bound, row.at_least) == (c.bound, c.at_least)
        assert pd.isna(row.missing) if not c.missing else row.missing == c.missing
        for name in ("value", "low", "high"):
            shown, value = getattr(row, name), getattr(c.estimate, name)
            assert pd.isna(shown) if value is None else shown == value


def test_undefined_is_empty_with_a_reason() -> None:
    table = read(DECIDED)
    measured = table["table"].isin(["condition", "triage_point", "alternative_test"])
    undefined = table[measured & table["value"].isna()]
    assert len(undefined) > 0
    assert undefined["reason"].notna().all()
    assert "nan" not in to_decisions_csv(DECIDED)


def test_thresholds_that_send_nobody_or_everybody_are_infinite() -> None:
    points = read(DECIDED).query("table == 'triage_point'")
    thresholds = points["threshold"].astype(float)
    assert thresholds.iloc[0] == float("inf")
    assert thresholds.iloc[-1] == float("-inf")


def test_names_that_a_spreadsheet_would_run_are_text() -> None:
    decision = replace(DECIDED.decisions[0], judge="=1+1", reason="@x")
    row = read(replace(DECIDED, decisions=(decision,))).iloc[0]
    assert (row["judge"], row["reason"]) == ("'=1+1", "'@x")
