"""The first table of the stress part: one row a judge, the worst case in plain sight."""

from __future__ import annotations

from judgebench.records import Estimate
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.rubric import Metric
from judgebench.stats.means import mean_and_sd
from judgebench.stress.report.lookup import (
    NOT_MEASURED,
    demanded_metrics,
    detection_index,
    every_metric_flips,
    judges_in_order,
    main_metric,
    metric_title,
    shown_name,
)
from judgebench.stress.result import EVERY, StressResult

Columns = dict[str, Cell]


def summary_table(stress: StressResult) -> Table:
    """One row a judge, controls last; a column only for what some judge was measured on."""
    rows = {judge: _cells(stress, judge) for judge in judges_in_order(stress)}
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    return Table(
        "stress_summary",
        "How each judge stands the stress test",
        ("Judge", *columns),
        tuple((Cell(shown_name(stress, judge)), *cells.values()) for judge, cells in rows.items())
        if columns
        else (),
        _notes(stress),
    )


def _cells(stress: StressResult, judge: str) -> Columns:
    """The cells of one judge by their column; the columns are the same for every judge."""
    return {
        **(_violations(stress, judge) if stress.detections else {}),
        **(_probes(stress, judge) if stress.invariances else {}),
        **({"Planted verdicts: worst trick": _planted(stress, judge)} if stress.planted else {}),
        **({"Self-consistency": _consistency(stress, judge)} if stress.consistency else {}),
    }


def _violations(stress: StressResult, judge: str) -> Columns:
    """Detection on every demanded metric; false alarms and pairs told apart on the main one."""
    index = detection_index(stress)
    demanded, main = demanded_metrics(stress), main_metric(stress)

    def cell(metric: Metric, number: str) -> Cell:
        found = index.get((judge, EVERY, EVERY, metric.id, "left_out"))
        return Cell(estimate=getattr(found, number) if found else NOT_MEASURED)

    several = len(demanded) > 1
    cells = {
        f"Violations detected: {m.title}" if several else "Violations detected": cell(m, "detected")
        for m in demanded
    }
    if main is None:
        return cells
    return {
        **cells,
        "False alarms on sound parents": cell(main, "false_alarms"),
        "Told apart": cell(main, "told_apart"),
    }


def _probes(stress: StressResult, judge: str) -> Columns:
    """The worst probe over all metrics together, and the robustness over all probes."""
    mine = [x for (name, _), x in every_metric_flips(stress).items() if name == judge]
    defined = [x for x in mine if x.flipped.value is not None]
    worst = max(defined, key=lambda x: x.flipped.value or 0.0, default=None)
    rates = [x.robustness.value for x in mine if x.robustness.value is not None]
    mean, _ = mean_and_sd(rates)
    text = f"worst {format_number(min(rates))}, mean {format_number(mean)}" if rates else DASH
    moved = worst is not None and bool(worst.flipped.value)
    return {
        "Worst probe": Cell(worst.probe if worst and moved else "none" if worst else DASH),
        "Its flip rate": Cell(estimate=worst.flipped if worst else NOT_MEASURED),
        "Robustness over all probes": Cell(text, remark=f"{len(rates):,} probes" if rates else ""),
    }


def _planted(stress: StressResult, judge: str) -> Cell:
    """The trick that got its way most often, counted."""
    mine = [
        p
        for p in stress.planted
        if (p.judge, p.metric) == (judge, EVERY)
        and p.trick != EVERY
        and p.success.value is not None
    ]
    worst = max(mine, key=lambda p: p.success.value or 0.0, default=None)
    if worst is None:
        return Cell(DASH)
    if not worst.success.value:
        return Cell(f"none: {successes(worst.success)}")
    return Cell(f"{worst.trick}: {successes(worst.success)}")


def successes(estimate: Estimate) -> str:
    """`3 of 40`, of a share of n items; `–` where it is undefined."""
    if estimate.value is None:
        return DASH
    return f"{round(estimate.value * estimate.n):,} of {estimate.n:,}"


def _consistency(stress: StressResult, judge: str) -> Cell:
    """Agreement over all metrics, or on the metric on which the judge agrees least."""
    mine = [c for c in stress.consistency if c.judge == judge and c.agreement.value is not None]
    if not mine:
        return Cell(estimate=NOT_MEASURED)
    together = [c for c in mine if c.metric == EVERY]
    least = min(together or mine, key=lambda c: c.agreement.value or 0.0)
    remark = "" if together else f"least consistent metric: {metric_title(stress, least.metric)}"
    return Cell(estimate=least.agreement, remark=remark)


def _notes(stress: StressResult) -> tuple[str, ...]:
    notes = []
    main = main_metric(stress)
    if main is not None:
        notes.append(
            "A violation is detected where its verdict is at least as severe as it must be; a "
            "false alarm is a sound parent judged so. Told apart: detected, and no false alarm. "
            f"False alarms and told apart are on {main.title}; failures are left out."
        )
    if stress.invariances:
        notes.append(
            "Flip rate: share of pairs in which at least one label differs though none should. "
            "Robustness is 1 minus it; the mean is over the probes and has no interval."
        )
    return tuple(notes)
