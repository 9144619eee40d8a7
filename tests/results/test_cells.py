import math

from hypothesis import given
from hypothesis import strategies as st

from judgebench.records import Estimate
from judgebench.results.tables import Cell, Table, footnotes, split_columns

cells = st.builds(
    Cell,
    estimate=st.builds(
        Estimate,
        value=st.none() | st.floats(-1, 1),
        low=st.none() | st.floats(-1, 1),
        high=st.none() | st.floats(-1, 1),
        method=st.sampled_from(["", "bootstrap", "exact"]),
        n=st.integers(0, 3),
        n_missing=st.integers(0, 2),
        reason=st.sampled_from(["", "few", "none"]),
    ),
    remark=st.sampled_from(["", "constant"]),
)
tables = st.integers(1, 7).flatmap(
    lambda width: st.builds(
        lambda rows: Table("k", "t", ("s", *map(str, range(width))), tuple(rows)),
        st.lists(
            st.lists(cells, min_size=width, max_size=width).map(lambda r: (Cell("row"), *r)),
            max_size=5,
        ),
    )
)


@given(tables)
def test_equal_marks_mean_equal_provenance(table: Table) -> None:
    notes = footnotes(table)
    told = {}
    for cell in (cell for row in table.rows for cell in row[1:]):
        assert told.setdefault(notes.mark(cell), cell.provenance) == cell.provenance


@given(tables, st.integers(1, 8))
def test_splitting_keeps_every_column_once_and_in_order(table: Table, room: int) -> None:
    widths = [1 + i % 3 for i in range(len(table.columns) - 1)]
    parts = split_columns(table, widths, room)
    assert sum((part.columns[1:] for part in parts), ()) == table.columns[1:]
    width_of = dict(zip(table.columns[1:], widths, strict=True))
    for part in parts:
        fits = sum(width_of[column] for column in part.columns[1:]) <= room
        assert fits or len(part.columns) == 2
    for i, row in enumerate(table.rows):
        assert sum((part.rows[i][1:] for part in parts), ()) == row[1:]
        assert all(part.rows[i][0] == row[0] for part in parts)


def test_a_value_that_rounds_to_zero_has_no_sign() -> None:
    assert Cell(estimate=Estimate(-0.0001), signed=True).value == "0.000"
    assert Cell(estimate=Estimate(0.25), signed=True).value == "+0.250"
    assert math.isclose(float(Cell(estimate=Estimate(-0.25)).value), -0.25)


def test_a_reason_with_a_stop_and_a_space_has_one_stop_only() -> None:
    cell = Cell(estimate=Estimate(None, n=3, reason="No item has one. "))
    assert cell.provenance == "undefined: No item has one; n = 3, 0 missing"
