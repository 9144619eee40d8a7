"""Find a number, the judges in their order, or the worst case in a StressResult."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from judgebench.align import FailurePolicy
from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stress.result import EVERY, Detection, Invariance, StressResult

NOT_MEASURED = Estimate(None, reason="not measured for this judge")
Row = TypeVar("Row")


def real_judges(stress: StressResult) -> list[str]:
    """The names of judges and juries, without the controls."""
    return [name for name, kind in stress.judges.items() if kind != "control"]


def judges_in_order(stress: StressResult) -> list[str]:
    """The names of all judges, controls last."""
    real = real_judges(stress)
    return [*real, *(name for name in stress.judges if name not in real)]


def shown_name(stress: StressResult, judge: str) -> str:
    """The name, with `(control)` after it where it is one."""
    return f"{judge} (control)" if stress.judges[judge] == "control" else judge


def column_names(stress: StressResult) -> list[str]:
    """The headings of the judges' columns, controls last."""
    return [shown_name(stress, judge) for judge in judges_in_order(stress)]


Detections = Mapping[tuple[str, str, str, str, FailurePolicy], Detection]


def detection_index(stress: StressResult) -> Detections:
    """The detections by judge, recipe, area, metric and the way of counting failures."""
    return {(d.judge, d.recipe, d.area, d.metric, d.failures): d for d in stress.detections}


def demanded_metrics(stress: StressResult) -> list[Metric]:
    """The metrics that some violation must worsen, in the rubric's order."""
    demanded = {d.metric for d in stress.detections}
    return [metric for metric in stress.rubric.metrics if metric.id in demanded]


def main_metric(stress: StressResult) -> Metric | None:
    """The demanded metric that most violations must worsen, the rubric's first of several."""
    pairs = {
        d.metric: d.detected.n + d.detected.n_missing
        for d in stress.detections
        if (d.recipe, d.area, d.failures) == (EVERY, EVERY, "left_out")
    }
    return max(demanded_metrics(stress), key=lambda m: pairs.get(m.id, 0), default=None)


def metric_title(stress: StressResult, metric: str) -> str:
    """The title of a metric, and `All metrics` for EVERY."""
    if metric == EVERY:
        return "All metrics"
    return next((m.title for m in stress.rubric.metrics if m.id == metric), metric)


def every_metric_flips(stress: StressResult) -> Mapping[tuple[str, str], Invariance]:
    """The probes over all metrics together, by judge and probe; planted verdicts have tables of
    their own."""
    tricks = {planted.trick for planted in stress.planted}
    return {
        (i.judge, i.probe): i
        for i in stress.invariances
        if i.metric == EVERY and i.probe not in tricks
    }


def worst_first(
    rows: Iterable[Row], judges: Sequence[str], value: Callable[[str, Row], Estimate]
) -> list[Row]:
    """The rows by the largest value of those judges, undefined ones last."""

    def worst(row: Row) -> float:
        values = [value(judge, row).value for judge in judges]
        return max((v for v in values if v is not None), default=-1.0)

    return sorted(rows, key=worst, reverse=True)
