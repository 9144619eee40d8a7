"""The tables of an alignment that a paper prints: annotators, judges by chosen statistics, groups
of answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from judgebench.alignment.alignment import Alignment
from judgebench.alignment.alignment_tables import (
    AMONG,
    NAMES,
    TableSpec,
    among_all,
    meaning,
    naming,
    shown_cell,
    table_of,
)
from judgebench.alignment.annotators import AGREEMENT_STATISTICS
from judgebench.alignment.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.results.layout import Content, as_cell
from judgebench.results.paper_table import PaperTable
from judgebench.results.rows import Results, Row
from judgebench.results.tables import Cell, Table
from judgebench.words import counted, listed

USUAL = ("accuracy", "kappa", "alpha", "severe_recall")
_OF_GROUPS = {
    "accuracy": "Accuracy", "annotator_gap": "Gap", "permutation_p": "p", "p_holm": "p (Holm)",
}  # fmt: skip
_SHARES = ("accuracy", "severe_recall")  # with intervals in the usual table: more are too wide
_HEADINGS = {**NAMES["statistic"], "kappa": "κ", "mae": "MAE", **AMONG}


def paper_tables(a: Alignment) -> Iterator[Table]:
    """The tables of main.tex."""
    if a.study.n_labels:
        yield table_of(a, _among(a))
        if a.real_judges:
            yield table_of(a, _judges(a))
        for column in a.results.values("by", "subgroup"):
            yield table_of(a, groups(a, column))


def chosen_table(a: Alignment, intervals: bool) -> PaperTable:
    """Judges by statistics; without a judge the agreement of the annotators."""
    return _on_its_own(a, _judges(a, intervals) if a.real_judges else _among(a, intervals))


def subgroup_table(a: Alignment, column: str) -> PaperTable:
    """Judges in the groups of answers by a column."""
    return _on_its_own(a, groups(a, column))


def _on_its_own(a: Alignment, spec: TableSpec) -> PaperTable:
    assert spec.cell
    table, rows, name = table_of(a, spec), [*spec.rows(a)], naming(a, spec)
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        names = tuple(name(row, key) for key in spec.down)
        line = lines.setdefault(names, dict(zip(spec.down, names, strict=True)))
        cell = as_cell(spec.cell(row))
        estimate = cell.estimate or row.estimate
        line[row.statistic] = cell.text if row.analysis == "outcome" else estimate.value
        if estimate.low is not None:
            line[f"{row.statistic}_low"] = estimate.low
            line[f"{row.statistic}_high"] = estimate.high
    return PaperTable(table, [*lines.values()], spec.down, Results(tuple(rows)))


def _judges(a: Alignment, intervals: bool = True) -> TableSpec:
    """Of each metric one annotator, the judges and the best baseline, and the outcomes."""
    columns = a.columns or USUAL
    rows = [row for key in columns for row in a.standings(key, "worst")]
    defined = {row.statistic for row in rows if row.estimate.value is not None}
    outcomes = [
        Row("outcome", "outcome", Estimate(None), judge, metric.id)
        for metric in a.rubric.metrics
        for judge, title in a.outcomes
        if title == metric.title
    ]
    with_interval = (a.columns or _SHARES) if intervals else ()
    return TableSpec(
        "main",
        "Judges and annotators against the reference labels",
        lambda a: [*(r for r in rows if a.columns or r.statistic in defined), *outcomes],
        ("metric", "judge"),
        notes=(
            *a.compared[:1],
            "One annotator: each label against the label of the others, ties left out; n counts "
            "labels, all others items. Best baseline: of each statistic the best value of a "
            "baseline that reads no answer.",
            _failures_in(a),
            *(meaning(STATISTICS[key]) for key in columns if key not in _SHARES),
        ),
        names={"statistic": {**_HEADINGS, "outcome": "Outcome"}},
        cell=partial(_cell, a, with_interval),
    )


def _cell(a: Alignment, with_interval: tuple[str, ...], row: Row) -> Content:
    if row.analysis == "outcome":
        return a.outcomes[row.judge, a.title(row.metric)].lower()
    cell = shown_cell(row)
    if row.statistic in with_interval or not isinstance(cell, Cell) or cell.estimate is None:
        return cell
    return replace(cell, estimate=replace(cell.estimate, low=None, high=None))


def _failures_in(a: Alignment) -> str:
    """Say that failures count as wrong, and how many there are by judge; empty without."""
    failed = []
    for judge in a.real_judges:
        rows = a.results.select("score", "accuracy", judge=judge.name, failures="left_out")
        if missing := sum(row.estimate.n_missing for row in rows):
            n = missing + sum(row.estimate.n for row in rows)
            failed.append(f"{judge.name} {missing:,} of {n:,}")
    return f"Failures count as wrong: {listed(failed)} labels." if failed else ""


def _among(a: Alignment, intervals: bool = True) -> TableSpec:
    """Of each metric the agreement of the annotators with each other; of one alone nothing."""
    n = len(a.study.makers)
    columns = (() if a.real_judges else a.columns) or tuple(AMONG)
    return TableSpec(
        "main-agreement",
        "Agreement among the annotators",
        lambda a: [
            row for key in columns for row in among_all(a) if row.statistic == key and n > 1
        ],
        notes=(
            f"By {counted(n, 'annotator')}, on items with two labels or more. Same "
            "label: share of pairs of labels of an item that are equal; its n counts pairs.",
            *(meaning(AGREEMENT_STATISTICS[key]) for key in columns if key != "observed"),
        ),
        names={"statistic": _HEADINGS},
        cell=partial(_cell, a, columns if intervals else ()),
    )


def groups(a: Alignment, column: str) -> TableSpec:
    """Of each metric, judge and group of answers: accuracy, and the gap to annotators."""

    def rows(a: Alignment) -> Iterator[Row]:
        for row in a.results.select("subgroup", by=column):
            if row.statistic == "accuracy":
                n = row.estimate.n
                yield replace(row, statistic="n", estimate=Estimate(n, n=n))
            yield row

    return TableSpec(
        f"subgroups-{column}",
        f"By {column}: the judges in each group of answers",
        rows,
        ("metric", "judge", "group"),
        notes=(
            "Accuracy: against the reference labels, failures counted as wrong. Gap: "
            "how much more often the judge gives the label of the other annotators than an "
            "annotator of the bar does, on the same answers; ties left out.",
            "p: two-sided permutation test that the two differ, signs of whole questions flipped; "
            "Holm's correction is over the groups of a judge on a metric.",
        ),
        names={"statistic": _OF_GROUPS},
        cell=_group_cell,
    )


def _group_cell(row: Row) -> Content:
    """A p value keeps its three digits where a share has two."""
    cell = as_cell(shown_cell(row))
    return cell if cell.estimate else replace(cell, text=cell.text.replace("0.", "."))
