"""What a reader of the tables must not overlook, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judgebench.records import Estimate
from judgebench.rubric import Rubric
from judgebench.stress.result import EVERY, Detection, PlantedVerdict
from judgebench.study.study import JudgeKind

# From here on a detection rate looks good, so that false alarms must be told in the same breath.
_HIGH = 0.8


def stress_notes(
    rubric: Rubric,
    judges: Mapping[str, JudgeKind],
    detections: Sequence[Detection],
    planted: Sequence[PlantedVerdict],
) -> Iterator[str]:
    """Judges whose detection rate deceives, that a control matches, or that obey the answer."""
    if not detections:
        yield "There is no violation at all: whether a judge detects one was not tested."
    whole = [d for d in detections if (d.recipe, d.area, d.failures) == (EVERY, EVERY, "left_out")]
    title = {m.id: m.title for m in rubric.metrics}
    for judge in (name for name, kind in judges.items() if kind != "control"):
        own = [d for d in whole if d.judge == judge]
        yield from (_no_use(d, title[d.metric]) for d in own if _deceives(d))
        beaten = [title[d.metric] for d in own if _matched_by_control(d, whole, judges)]
        if beaten:
            yield (
                f"{judge} tells no more violations from their parents than a control judge, "
                f"which reads nothing, on {', '.join(beaten)}."
            )
        yield from _fallen_for(judge, planted)


def miss_note(listed: int, total: int) -> Iterator[str]:
    """That the list of misses was cut short, where it was."""
    if listed < total:
        yield f"{total} violations were missed by a judge; the first {listed} are listed."


def _deceives(d: Detection) -> bool:
    """A high detection rate with an advantage that may as well be nothing."""
    if d.detected.value is None or d.detected.value < _HIGH or d.advantage.value is None:
        return False
    if d.advantage.low is None or d.advantage.high is None:
        return d.advantage.value <= 0
    return d.advantage.low <= 0 <= d.advantage.high or d.advantage.high < 0


def _no_use(d: Detection, title: str) -> str:
    end = (
        "it tells nothing apart" if not d.told_apart.value else "it is not shown to tell them apart"
    )
    return (
        f"{d.judge} detects {_count(d.detected)} violations on {title} and calls "
        f"{_count(d.false_alarms)} of their parents violations too: {end}."
    )


def _matched_by_control(
    d: Detection, whole: Sequence[Detection], judges: Mapping[str, JudgeKind]
) -> bool:
    own = d.told_apart.value
    return own is not None and any(
        c.told_apart.value is not None and c.told_apart.value >= own
        for c in whole
        if judges[c.judge] == "control" and c.metric == d.metric
    )


def _fallen_for(judge: str, planted: Sequence[PlantedVerdict]) -> Iterator[str]:
    tricks = [
        f"{p.trick} {_count(p.success)}"
        for p in planted
        if p.judge == judge and p.metric == EVERY and p.trick != EVERY and p.success.value
    ]
    if tricks:
        yield f"{judge} falls for planted verdicts: {', '.join(tricks)}."


def _count(share: Estimate) -> str:
    return f"{round((share.value or 0) * share.n)} of {share.n}"
