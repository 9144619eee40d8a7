"""The heat map of a stress test: probes down, judges across, dark is bad."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from judgebench.records import Estimate
from judgebench.report.figure import (
    DARK,
    counts_line,
    draw_figures,
    grid_ticks,
    new_figure,
    number_in_cell,
)
from judgebench.report.words import wrapped
from judgebench.results.tables import DASH, Table
from judgebench.stress.report.lookup import real_judges
from judgebench.stress.report.tables import heat_tables
from judgebench.stress.result import StressResult

# Both grow evenly darker, so that steps are told apart without colours too. The controls stay
# pale: they are there to compare with.
_JUDGES, _CONTROLS = ("OrRd", 0.0, 1.0), ("Greys", -0.15, 2.4)
_NEVER = 2.0  # no share is above it


def draw_stress(stress: StressResult) -> Iterator[tuple[str, bytes]]:
    """File name and content of the heat map in every format; nothing where nothing was asked."""
    if heat_tables(stress):
        yield from draw_figures({"stress_heat_map": partial(draw_heat_map, stress)})


def draw_heat_map(stress: StressResult) -> Any:
    """A block for flips, one for misses and one for planted verdicts; worst row first in each."""
    tables = heat_tables(stress)
    heights = [len(table.rows) for table in tables]
    columns = list(tables[0].columns[tables[0].stubs :])
    figure = new_figure(2.8 + 0.92 * len(columns), 1.6 + 0.4 * len(tables) + 0.46 * sum(heights))
    panels = figure.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
    for number, (axes, table) in enumerate(zip(panels, tables, strict=True)):
        _draw_block(axes, table, len(real_judges(stress)), columns if number == 0 else [])
    title = "Where each judge fails: dark is bad, control judges in grey"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _draw_block(axes: Any, table: Table, judges: int, columns: list[str]) -> None:
    """One table as coloured cells: judges in colour, controls at the right in grey."""
    grid = [[cell.estimate or Estimate(None) for cell in row[table.stubs :]] for row in table.rows]
    values = np.array([[np.nan if e.value is None else e.value for e in row] for row in grid])
    is_control = np.broadcast_to(np.arange(values.shape[1]) >= judges, values.shape)
    for (colours, least, most), left_out in ((_JUDGES, is_control), (_CONTROLS, ~is_control)):
        shown = np.ma.masked_where(left_out | np.isnan(values), values)
        axes.imshow(shown, cmap=colours, vmin=least, vmax=most, aspect="auto")
    axes.set_facecolor("#eeeeee")
    for i, row in enumerate(grid):
        axes.axhline(i - 0.5, color="white", linewidth=1.5)
        for j, estimate in enumerate(row):
            number_in_cell(axes, i, j, estimate, DARK if j < judges else _NEVER)
    for edge in range(1, values.shape[1]):
        axes.axvline(edge - 0.5, color="white", linewidth=6 if edge == judges else 1.5)
    grid_ticks(axes, columns, [_row_name(*pair) for pair in zip(table.rows, grid, strict=True)])
    width = max(30, 13 * values.shape[1])
    axes.set_title(wrapped(table.title, width), loc="left", fontsize=9, fontweight="bold")


def _row_name(row: Any, estimates: list[Estimate]) -> str:
    """The probe, recipe or trick; what it is about; and how many items."""
    about = "" if row[1].text == DASH else f"{wrapped(row[1].text, 30)}, "
    measured = [e for e in estimates if e.value is not None]
    return f"{wrapped(row[0].text, 30)}\n{about}{counts_line(measured or estimates)}"
