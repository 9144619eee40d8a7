"""Declared tables: rows of results become lines and columns."""

import doctest

import pytest

from judgebench.records import Estimate, Row
from judgebench.results import tables as layout
from judgebench.results.tables import Cell, Layout, Table, as_cell

DECLARED = Layout(
    "key", "Title", ("Metric",), ("A note.", ""), ("Items",), {"kappa": "κ", "shift": "Shift"},
    signed=("shift",), absent=None,
)  # fmt: skip


def row(statistic: str, metric: str, value: float) -> Row:
    return Row("score", statistic, Estimate(value, n=4), "m", metric)


def texts(table: Table) -> list[list[str]]:
    return [[cell.value for cell in line] for line in table.rows]


def test_the_example_runs() -> None:
    assert doctest.testmod(layout).failed == 0


def test_rows_stand_in_lines_under_the_headings_of_their_statistics() -> None:
    rows = [row("shift", "b", 0.5), row("shift", "a", 0), row("kappa", "b", 1)]
    table = DECLARED.of(rows, lambda row: (row.metric, row.estimate.n))
    assert table.columns == ("Metric", "Items", "κ", "Shift")
    assert texts(table) == [["b", "4", "1.000", "+0.500"], ["a", "4", "–", "0.000"]]
    assert (table.stubs, table.notes) == (1, ("A note.",))


def test_columns_are_those_that_are_asked_for() -> None:
    rows = [row("kappa", "a", 1)]
    table = DECLARED.of(
        rows, lambda row: (row.metric, 1), lambda row: row.judge, ["n", "m"], lambda row: row.judge
    )
    assert table.columns[2:] == ("n", "m")
    assert texts(table) == [["a", "1", "–", "m"]]


def test_nothing_makes_a_table_without_lines() -> None:
    assert DECLARED.of([], lambda row: (row.metric,)).rows == ()
    assert DECLARED.listing([]).columns == ("Metric", "Items")


@pytest.mark.parametrize(
    ("content", "value"),
    [(None, "–"), (12345, "12,345"), ("text", "text"), (Estimate(0.5), "0.500"), (Cell("c"), "c")],
)
def test_the_content_of_a_cell(content, value: str) -> None:
    assert as_cell(content).value == value
