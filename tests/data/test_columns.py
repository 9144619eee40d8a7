import numpy as np
import pandas as pd
import pytest

from judgebench.data.columns import read_columns
from judgebench.errors import SetupError


def test_numbers_of_a_file_and_of_a_frame_are_the_same(tmp_path) -> None:
    frame = pd.DataFrame({"system": ["a", "b", None], "x": [1.5, np.nan, 3.0], "y": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for found in (read_columns(tmp_path / "t.csv", ["system"]), read_columns(frame)):
        assert found.numeric() == ["x", "y"]
        assert list(found.cells["system"]) == ["a", "b", ""]
        np.testing.assert_array_equal(found.numbers("y", "x"), [[1, 1.5], [2, np.nan], [3, 3]])


def test_every_cell_that_is_no_number_is_named(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("system,x,y,z\na,1,inf,nan\nb,?,2,1\n")
    found = read_columns(path)
    assert found.numeric() == ["z"]
    with pytest.raises(SetupError) as error:
        found.numbers("x", "y")
    told = sorted(map(str, error.value.problems))
    assert [one.replace(str(path), "t.csv") for one in told] == [
        "t.csv:2: y: is no number; found inf", "t.csv:3: x: is no number; found ?",
    ]  # fmt: skip


def test_columns_that_are_missing_and_files_that_are(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("system,x\na,1\n")
    with pytest.raises(SetupError, match="question: the column is missing"):
        read_columns(path, ["system", "question"])
    with pytest.raises(SetupError, match="no such file"):
        read_columns(tmp_path / "none.csv")


def test_ids_and_what_counts_runs_are_no_scores() -> None:
    frame = pd.DataFrame({"row": [2, 3], "item_id": [1, 2], "seed": [0, 1], "x": [0.5, 1], "y": 1})
    assert read_columns(frame).scores("y") == ["x"]


def test_a_slip_in_a_cell_is_reported_and_hides_no_column() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "x": ["1", "2", "2,5"], "y": [1, 2, 3]})
    found = read_columns(frame)
    assert found.scores() == ["x", "y"]
    with pytest.raises(SetupError, match="x: is no number; found 2,5"):
        found.numbers(*found.scores())
