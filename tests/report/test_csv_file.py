from __future__ import annotations

import io

import pandas as pd
import pytest

from judgebench.align import Alignment
from judgebench.report.csv_file import COLUMNS, safe, to_csv


def read(alignment: Alignment) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(to_csv(alignment)), keep_default_na=False, na_values=[""])


def test_every_number_is_one_row_and_reads_back(alignment: Alignment) -> None:
    table = read(alignment)
    assert tuple(table.columns) == COLUMNS
    expected = {
        "score": len(alignment.scores),
        "agreement": len(alignment.agreement),
        "ceiling": len(alignment.ceiling),
        "rate": len(alignment.rates) + sum(r.saved is not None for r in alignment.rates),
        "distribution": len(alignment.distribution),
        "confusion": sum(c.counts.size for c in alignment.confusions),
        "verdicts": sum(len(j.statuses) for j in alignment.judges),
        "comparison": 4 * len(alignment.comparisons),
        "ranking": len(alignment.rankings) + 2,
        "unanimity": len(alignment.by_unanimity),
    }
    assert table["table"].value_counts().to_dict() == {k: n for k, n in expected.items() if n}


def test_scores_read_back_to_the_last_digit(realistic: Alignment) -> None:
    table = read(realistic).query("table == 'score'")
    for row, score in zip(table.itertuples(), realistic.scores, strict=True):
        e = score.estimate
        assert (row.judge, row.metric, row.statistic, row.failures) == (
            score.judge, score.metric, score.statistic, score.failures,
        )  # fmt: skip
        assert (row.n, row.n_missing, row.level) == (e.n, e.n_missing, e.level)
        for shown, value in ((row.value, e.value), (row.low, e.low), (row.high, e.high)):
            assert pd.isna(shown) if value is None else shown == value


def test_undefined_is_empty_with_a_reason_never_nan(realistic: Alignment) -> None:
    text = to_csv(realistic)
    assert not any(cell in ("nan", "None", "inf") for cell in text.lower().split(","))
    estimates = read(realistic).query("table in ('score', 'agreement', 'ceiling')")
    undefined = estimates[estimates["value"].isna()]
    assert len(undefined) > 0
    assert undefined["reason"].notna().all()


def test_confusion_counts_sum_to_their_n(realistic: Alignment) -> None:
    table = read(realistic).query("table == 'confusion'")
    sums = table.groupby(["judge", "metric"])["value"].sum()
    assert (sums == table.groupby(["judge", "metric"])["n"].first()).all()
    missing = table[table["label"].isna()].query("judge == 'smollm2-135m' and metric == 'bias'")
    assert missing["value"].sum() == 13


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize("value", [-0.5, "a=b", "", None, 3])
def test_other_values_stay(value: object) -> None:
    assert safe(value) == value


def test_hostile_names_are_text(hostile: Alignment) -> None:
    table = read(hostile)
    assert "'=cmd|'/C calc'!A0" in set(table["judge"])
    texts = table.select_dtypes(exclude="number").stack()
    assert not texts.astype(str).str.match(r"^[=+@-]").any()
