"""The violations as tables: what each judge detects, misses and tells apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from judgebench.align import FailurePolicy
from judgebench.records import Estimate
from judgebench.report.tables import POLICIES, POLICY_HEADINGS
from judgebench.results.tables import Cell, Table
from judgebench.stress.report.lookup import (
    NOT_MEASURED,
    column_names,
    demanded_metrics,
    detection_index,
    judges_in_order,
    main_metric,
    metric_title,
    real_judges,
    shown_name,
    worst_first,
)
from judgebench.stress.result import EVERY, Detection, StressResult

# statistic -> (heading, what it means). Keys are the fields of Detection and stand in stress.csv.
DETECTION_STATISTICS: Mapping[str, tuple[str, str]] = {
    "detected": ("Detected", "share of violations judged at least as severe as they must be"),
    "told_apart": ("Told apart", "share of pairs with a detection and no false alarm"),
    "false_alarms": ("False alarms", "share of sound parents judged as severe as the violation"),
    "worsened": ("Worsened", "share of violations judged more severe than their sound parent"),
    "advantage": ("Advantage", "detection rate minus false alarm rate"),
}
Side = Literal["recipe", "area"]
_SIDES: Mapping[Side, tuple[str, str]] = {
    "recipe": ("Recipe", "All recipes"),
    "area": ("Area", "All areas"),
}
_MORE = "More needed: further violations until the exact interval is as narrow as was asked for."


def detection_table(stress: StressResult, statistic: str, side: Side) -> Table:
    """One number of the violations: recipes or areas down, a row a demanded metric; judges across.

    All together first.
    """
    heading, meaning = DETECTION_STATISTICS[statistic]
    column, together = _SIDES[side]
    index = detection_index(stress)
    rows = []
    for name, metric, label in _detection_rows(stress, side):
        recipe, area = (name, EVERY) if side == "recipe" else (EVERY, name)
        found = [
            index.get((judge, recipe, area, metric, "left_out"))
            for judge in judges_in_order(stress)
        ]
        title = metric_title(stress, metric)
        rows.append(
            (
                Cell(together if name == EVERY else name),
                Cell(f"{title}: {label}" if label else title),
                *(_detection_cell(x, statistic) for x in found),
            )
        )
    return Table(
        f"stress_{statistic}-{side}",
        f"Violations, {heading.lower()}, by {side}: judges beside the control judges, "
        f"{POLICIES['left_out']}",
        (column, "Must reach", *column_names(stress)),
        tuple(rows),
        (f"{heading}: {meaning}.", *([_MORE] if statistic == "detected" else [])),
        stubs=2,
    )


def _detection_rows(stress: StressResult, side: Side) -> Iterator[tuple[str, str, str]]:
    """Name, metric and demanded label of each row, EVERY first, then as they were measured."""
    mine = [
        (d.recipe if side == "recipe" else d.area, d.metric, d.label)
        for d in stress.detections
        if (d.area if side == "recipe" else d.recipe) == EVERY and d.failures == "left_out"
    ]
    labels = {(name, metric): label for name, metric, label in mine}
    for name in sorted(dict.fromkeys(x[0] for x in mine), key=lambda name: name != EVERY):
        for metric in demanded_metrics(stress):
            if (name, metric.id) in labels:
                yield name, metric.id, labels[name, metric.id]


def _detection_cell(detection: Detection | None, statistic: str) -> Cell:
    if detection is None:
        return Cell(estimate=NOT_MEASURED)
    estimate: Estimate = getattr(detection, statistic)
    more = detection.more_needed if statistic == "detected" else 0
    remark = f"{more:,} more needed" if more else ""
    return Cell(estimate=estimate, remark=remark, signed=statistic == "advantage")


def failures_table(stress: StressResult) -> Table:
    """The detection rate three ways, for each judge and metric of which verdicts are missing."""
    index = detection_index(stress)

    def way(judge: str, metric: str, failures: FailurePolicy) -> Estimate:
        found = index.get((judge, EVERY, EVERY, metric, failures))
        return found.detected if found else NOT_MEASURED

    rows = [
        (
            Cell(shown_name(stress, judge)),
            Cell(metric.title),
            *(Cell(estimate=way(judge, metric.id, p)) for p in POLICIES),
        )
        for judge in judges_in_order(stress)
        for metric in demanded_metrics(stress)
        if any((judge, EVERY, EVERY, metric.id, p) in index for p in ("worst", "best"))
    ]
    return Table(
        "stress_failures",
        "Violations detected where verdicts are missing: three ways to count them",
        ("Judge", "Metric", *POLICY_HEADINGS.values()),
        tuple(rows),
        (
            "Worst case: every failure counted as not detected. "
            "Best case: every failure counted as detected.",
        ),
        stubs=2,
    )


def missed_table(stress: StressResult) -> Table:
    """1 minus the detection rate: a row a recipe of violations, worst first.

    On the metric that most violations must worsen or, where the recipe does not demand it, the
    first that it does.
    """
    index = detection_index(stress)
    main = main_metric(stress)

    def missed(judge: str, row: tuple[str, str, str]) -> Estimate:
        found = index.get((judge, row[0], EVERY, row[1], "left_out"))
        return found.detected.complement if found else NOT_MEASURED

    named: dict[str, tuple[str, str, str]] = {}
    for row in _detection_rows(stress, "recipe"):
        if row[0] != EVERY and (row[0] not in named or (main and row[1] == main.id)):
            named[row[0]] = row
    rows = tuple(
        (
            Cell(row[0]),
            Cell(metric_title(stress, row[1])),
            *(Cell(estimate=missed(judge, row)) for judge in judges_in_order(stress)),
        )
        for row in worst_first(named.values(), real_judges(stress), missed)
    )
    return Table(
        "stress_missed",
        "Violations missed: 1 minus the detection rate, worst recipe first",
        ("Recipe", "Metric", *column_names(stress)),
        rows,
        ("A judge that calls everything severe misses nothing: read its false alarms beside it.",),
        stubs=2,
    )
