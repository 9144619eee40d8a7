import io

import pandas as pd
import pytest
from part_case import hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.results.blocks import ReportSection
from judgebench.results.documents import part_csv, safe


def read(part: ReportSection) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(part_csv(part)), keep_default_na=False, na_values=[""])


def test_the_file_is_the_data_frame_row_for_row(tiny: Alignment, realistic: Alignment) -> None:
    for found in (tiny, realistic):
        written, frame = read(found.part), found.to_frame("all")
        assert list(written.columns) == list(frame.columns)
        assert len(written) == len(frame) == len(found.results.rows)
        for column in ("value", "low", "high", "n", "n_missing"):
            wanted = frame[column].astype(float)
            assert written[column].astype(float).equals(wanted), column
        for column in ("analysis", "judge", "metric", "statistic", "failures", "who", "label"):
            assert (written[column].fillna("") == frame[column].fillna("")).all(), column


def test_undefined_is_empty_with_a_reason_never_nan(realistic: Alignment) -> None:
    text = part_csv(realistic.part)
    assert not any(cell in ("nan", "None", "inf") for cell in text.lower().split(","))
    table = read(realistic.part)
    undefined = table[table["value"].isna()]
    assert len(undefined) > 0
    assert undefined["reason"].notna().all()


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-x", "@x", "\tx", "\rx", "-1-1", "-inf-1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert safe(text) == f"'{text}"


@pytest.mark.parametrize("value", [-0.5, "a=b", "", None, 3, "-0.05", "-inf", "+1.5e-3"])
def test_other_values_stay(value: object) -> None:
    assert safe(value) == value


def test_hostile_names_are_text() -> None:
    table = read(hostile_part())
    assert "'=cmd|'/C calc'!A0" in set(table["judge"])
    texts = table.select_dtypes(exclude="number").stack()
    assert not texts.astype(str).str.match(r"^[=+@-]").any()


def test_keys_that_a_row_lacks_are_empty() -> None:
    table = read(make_part())
    assert table["human_label"].isna().tolist() == [True, True, False]
    assert table["value"].tolist()[2] == 7
