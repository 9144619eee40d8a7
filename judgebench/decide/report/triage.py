"""Triage curves as the page draws them: shapes of a picture 100 wide and 100 high."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgebench.decide.report.lookup import curves_in_order, metric_title
from judgebench.decide.report.words import threshold_text
from judgebench.decide.result import Decisions, TriageChoice, TriageCurve, TriagePoint
from judgebench.records import Estimate
from judgebench.results.tables import NO_REASON

Place = tuple[float, float]


@dataclass(frozen=True)
class Cross:
    """The recommended threshold: a dot, and its two intervals as lines; both may be missing."""

    x: float
    y: float
    across: tuple[float, float] | None
    up: tuple[float, float] | None


@dataclass(frozen=True)
class Picture:
    """One curve. `band` is closed; `target` is the width and the height of the wanted corner."""

    title: str
    counts: str
    line: str
    band: str
    target: Place
    choice: Cross | None
    words: str


def triage_groups(decisions: Decisions) -> list[tuple[str, list[Picture]]]:
    """The curves of each judge and signal, under one heading, a picture a metric."""
    groups: dict[str, list[Picture]] = {}
    for curve in curves_in_order(decisions):
        heading = f"{curve.judge}: triage by {curve.signal}"
        groups.setdefault(heading, []).append(_picture(decisions, curve))
    return list(groups.items())


def _picture(decisions: Decisions, curve: TriageCurve) -> Picture:
    points = sorted(_defined(curve.points), key=lambda p: (p.sent.value or 0, p.caught.value or 0))
    assist = decisions.rule.assist
    return Picture(
        title=metric_title(decisions, curve.metric),
        counts=f"{curve.n:,} answers, {curve.severe:,} severe",
        line=_path(_steps([(_x(p.sent.value), _y(p.caught.value)) for p in points])),
        band=_band(points),
        target=(round(100 * assist.sent, 1), round(100 * assist.missed, 1)),
        choice=_cross(curve.choice) if curve.choice else None,
        words=_words(curve),
    )


def _defined(points: Sequence[TriagePoint]) -> list[TriagePoint]:
    return [p for p in points if p.sent.value is not None and p.caught.value is not None]


def _x(share: float | None) -> float:
    return round(100 * (share or 0.0), 1)


def _y(share: float | None) -> float:
    """Downwards, as pictures are measured."""
    return round(100 - 100 * (share or 0.0), 1)


def _steps(places: Sequence[Place]) -> Iterator[Place]:
    """A curve that rises only where a threshold is: between two nothing is known."""
    height = None
    for x, y in places:
        if height is not None:
            yield x, height
        yield x, y
        height = y


def _band(points: Sequence[TriagePoint]) -> str:
    """Upper limits from the left, lower limits back from the right; empty where there are none."""
    known = [p for p in points if p.caught.low is not None and p.caught.high is not None]
    upper = list(_steps([(_x(p.sent.value), _y(p.caught.high)) for p in known]))
    lower = list(_steps([(_x(p.sent.value), _y(p.caught.low)) for p in known]))
    return _path([*upper, *reversed(lower)])


def _path(places: Iterator[Place] | Sequence[Place]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _cross(choice: TriageChoice) -> Cross | None:
    sent, caught = choice.sent, choice.missed.complement
    if sent.value is None or caught.value is None:
        return None
    across, up = _limits(sent), _limits(caught)
    return Cross(
        _x(sent.value),
        _y(caught.value),
        (_x(across[0]), _x(across[1])) if across else None,
        (_y(up[0]), _y(up[1])) if up else None,
    )


def _limits(e: Estimate) -> tuple[float, float] | None:
    return None if e.low is None or e.high is None else (e.low, e.high)


def _words(curve: TriageCurve) -> str:
    """What is recommended, or why nothing is."""
    choice = curve.choice
    if choice is None:
        return f"No threshold is recommended: {(curve.reason or NO_REASON).rstrip('.')}."
    return (
        f"Threshold {threshold_text(choice.threshold)}: sends {choice.sent:.2f} to humans and "
        f"misses {choice.missed:.2f} of the severe answers, held out."
    )
