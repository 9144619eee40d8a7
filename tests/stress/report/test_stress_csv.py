from __future__ import annotations

import io
from dataclasses import replace

import pandas as pd
from stress_report_case import make_stress

from judgebench.records import Estimate
from judgebench.stress.report.csv import COLUMNS, to_stress_csv
from judgebench.stress.result import StressResult

STRESS = make_stress()


def read(stress: StressResult) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(to_stress_csv(stress)), keep_default_na=False, na_values=[""])


def test_every_number_is_one_row() -> None:
    table = read(STRESS)
    assert tuple(table.columns) == COLUMNS
    assert table["table"].value_counts().to_dict() == {
        "violations": 6 * len(STRESS.detections),
        "invariance": 7 * len(STRESS.invariances),
        "planted": len(STRESS.planted),
        "consistency": 3 * len(STRESS.consistency),
        "halo": 2 * len(STRESS.halo),
        "recipe": sum(4 + len(r.rejected) for r in STRESS.recipes),
        "misses": 1,
    }


def test_estimates_read_back_to_the_last_digit() -> None:
    table = read(STRESS)
    names = ("detected", "told_apart", "false_alarms", "worsened", "advantage")
    rows = table[table["statistic"].isin(names)].itertuples()
    expected = [(d, name, getattr(d, name)) for d in STRESS.detections for name in names]
    for row, (d, name, e) in zip(rows, expected, strict=True):
        assert (row.judge, row.recipe, row.area, row.metric, row.label, row.failures) == (
            d.judge, d.recipe, d.area, d.metric, d.label, d.failures,
        )  # fmt: skip
        assert (row.statistic, row.value, row.low, row.high) == (name, e.value, e.low, e.high)
        assert (row.n, row.n_missing, row.method) == (e.n, e.n_missing, e.method)


def test_p_values_and_shifts_read_back() -> None:
    table = read(STRESS).query("table == 'invariance'")
    for statistic in ("p", "p_holm"):
        values = table[table["statistic"] == statistic]["value"]
        for shown, i in zip(values, STRESS.invariances, strict=True):
            value = getattr(i, statistic)
            assert pd.isna(shown) if value is None else shown == value


def test_undefined_is_empty_with_a_reason() -> None:
    table = read(STRESS)
    undefined = table[table["value"].isna()]
    assert len(undefined) > 0
    assert undefined["reason"].notna().all()
    assert table[table["value"].notna() & (table["statistic"] == "detected")]["reason"].isna().all()


def test_names_that_a_spreadsheet_would_run_are_text() -> None:
    planted = (replace(STRESS.planted[0], judge="=1+1", trick="@x", success=Estimate(-0.5)),)
    row = read(replace(STRESS, planted=planted)).query("table == 'planted'").iloc[0]
    assert (row["judge"], row["recipe"], row["value"]) == ("'=1+1", "'@x", -0.5)
