"""What a reader of the tables must not overlook, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stress.result import EVERY, StressResult

# From here on a detection rate looks good, so that false alarms must be reported beside it.
_HIGH = 0.8


def stress_notes(stress: StressResult) -> Iterator[str]:
    """Judges whose detection rate deceives, that a control matches, or that obey the answer."""
    demanded = stress.demanded_metrics
    if not demanded:
        yield "There is no violation at all: whether a judge detects one was not tested."
    for judge in stress.real_judges:
        for metric in demanded:
            yield from _no_use(stress, judge, metric)
        beaten = [m.title for m in demanded if _matched_by_control(stress, judge, m)]
        if beaten:
            yield (
                f"{judge} tells no more violations from their parents than a control judge, "
                f"which reads nothing, on {', '.join(beaten)}."
            )
        yield from _fallen_for(stress, judge)


def miss_note(listed: int, total: int) -> Iterator[str]:
    """That the list of misses was cut short, where it was."""
    if listed < total:
        yield f"{total} violations were missed by a judge; the first {listed} are listed."


def _no_use(stress: StressResult, judge: str, metric: Metric) -> Iterator[str]:
    """That a high detection rate comes with an advantage that may as well be nothing."""
    detected, alarms, apart, advantage = (
        stress.violations(statistic, judge=judge, metric=metric.id)
        for statistic in ("detected", "false_alarms", "told_apart", "advantage")
    )
    if (detected.value or 0.0) < _HIGH or advantage.value is None:
        return
    if advantage.low is None or advantage.high is None:
        deceives = advantage.value <= 0
    else:
        deceives = advantage.low <= 0
    if deceives:
        end = "it tells nothing apart" if not apart.value else "it is not shown to tell them apart"
        yield (
            f"{judge} detects {_count(detected)} violations on {metric.title} and calls "
            f"{_count(alarms)} of their parents violations too: {end}."
        )


def _matched_by_control(stress: StressResult, judge: str, metric: Metric) -> bool:
    own = stress.violations("told_apart", judge=judge, metric=metric.id).value
    controls = [name for name, kind in stress.judges.items() if kind == "control"]
    found = [stress.violations("told_apart", judge=c, metric=metric.id) for c in controls]
    return own is not None and any(e.value is not None and e.value >= own for e in found)


def _fallen_for(stress: StressResult, judge: str) -> Iterator[str]:
    tricks = [
        f"{row['recipe']} {_count(row.estimate)}"
        for row in stress.rows.select("planted", "success", judge=judge, metric=EVERY)
        if row["recipe"] != EVERY and row.estimate.value
    ]
    if tricks:
        yield f"{judge} falls for planted verdicts: {', '.join(tricks)}."


def _count(share: Estimate) -> str:
    return f"{round((share.value or 0) * share.n)} of {share.n}"
