"""The stress part of the page: tables, the heat map, and the violations that judges missed."""

from __future__ import annotations

from typing import Any

from judgebench.results.tables import Cell, Table
from judgebench.stress.misses import MOST_MISSES
from judgebench.stress.report.lookup import judges_in_order
from judgebench.stress.report.misses import miss_view
from judgebench.stress.report.summary import summary_table
from judgebench.stress.report.tables import (
    consistency_table,
    flips_table,
    halo_table,
    heat_tables,
    planted_table,
    probe_tables,
    recipes_table,
)
from judgebench.stress.report.violations import (
    DETECTION_STATISTICS,
    detection_table,
    failures_table,
)
from judgebench.stress.result import StressResult
from judgebench.web.page import json_for_page

STATIC_MISSES = 20  # the page's script shows the others


def stress_section(stress: StressResult) -> dict[str, Any]:
    """What the template of the stress part needs."""
    views = [miss_view(miss, stress.rubric) for miss in stress.misses[:MOST_MISSES]]
    return {
        "notes": stress.notes,
        "summary": _with_rows([summary_table(stress)]),
        "heat": [_block(stress, table) for table in heat_tables(stress)],
        "violations": _with_rows(
            [
                detection_table(stress, "detected", "recipe"),
                detection_table(stress, "detected", "area"),
                failures_table(stress),
            ]
        ),
        "more_violations": _with_rows(
            [
                detection_table(stress, statistic, side)
                for statistic in DETECTION_STATISTICS
                if statistic != "detected"
                for side in ("recipe", "area")
            ]
        ),
        "probes": _with_rows([flips_table(stress), *probe_tables(stress)]),
        "tricks": _with_rows([planted_table(stress)]),
        "itself": _with_rows([consistency_table(stress), halo_table(stress)]),
        "recipes": _with_rows([recipes_table(stress)]),
        "misses": views[:STATIC_MISSES],
        "more_misses": json_for_page(views[STATIC_MISSES:]),
        "n_shown": len(views),
        "n_misses": stress.n_misses,
    }


def _with_rows(tables: list[Table]) -> list[Table]:
    return [table for table in tables if table.rows]


def _block(stress: StressResult, table: Table) -> dict[str, Any]:
    """One block of the heat map: its table, and the kind and the colour of each cell."""
    stubs = ["stub"] * table.stubs
    kinds = [
        *stubs,
        *("control" if stress.judges[j] == "control" else "judge" for j in judges_in_order(stress)),
    ]
    return {
        "table": table,
        "kinds": kinds,
        "heat": [
            [_heat(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in table.rows
        ],
    }


def _heat(cell: Cell, kind: str) -> str:
    """A step of the scale: b0 good … b9 bad, and the same in grey, g0 … g9, for a control."""
    if cell.estimate is None:
        return ""
    if cell.estimate.value is None:
        return "none"
    step = min(9, max(0, int(10 * cell.estimate.value)))
    return f"{'g' if kind == 'control' else 'b'}{step}"
