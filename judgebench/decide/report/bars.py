"""A condition as a small bar: its estimate and interval on an axis, the bound, the right side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judgebench.decide.report.words import bound_text, estimate_cell, is_count, is_difference
from judgebench.decide.result import Condition, Decisions
from judgebench.results.tables import Cell, format_number

Axis = tuple[float, float]
_TOPS = (0.1, 0.2, 0.5, 1.0)  # ends that an axis of shares or differences may have


@dataclass(frozen=True)
class Bar:
    """Positions in percent of the axis, None where there is none; what lies beyond is at the end.

    `beyond` is a value above the axis. The condition is met between `right` and `right + span`;
    `ends` are the ends of the axis.
    """

    at: float | None
    beyond: bool
    low: float | None
    high: float | None
    bound: float
    right: float
    span: float
    ends: tuple[str, str]
    demand: str
    cell: Cell


def axes_by_key(decisions: Decisions) -> Mapping[str, Axis]:
    """One axis for each key of a condition, so that judges can be compared by eye."""
    found: dict[str, list[Condition]] = {}
    for decision in decisions.decisions:
        for condition in (*decision.replace, *decision.assist):
            found.setdefault(condition.key, []).append(condition)
    return {key: _axis(conditions) for key, conditions in found.items()}


def _axis(conditions: list[Condition]) -> Axis:
    """Around 0 for differences; from 0 to twice the bound for counts; from 0 for shares."""
    first = conditions[0]
    if is_count(first):
        return 0.0, 2.0 * max(1.0, *(c.bound for c in conditions))
    top = _top(abs(number) for c in conditions for number in _numbers(c))
    return (-top if is_difference(first) else 0.0), top


def _numbers(condition: Condition) -> Iterable[float]:
    e = condition.estimate
    return (x for x in (condition.bound, e.value, e.low, e.high) if x is not None)


def _top(numbers: Iterable[float]) -> float:
    most = max(numbers)
    return next((top for top in _TOPS if top >= most), most)


def make_bar(condition: Condition, axis: Axis) -> Bar:
    """The bar of a condition on its axis."""

    def at(number: float | None) -> float | None:
        return None if number is None else _place(number, axis)

    bound, e = _place(condition.bound, axis), condition.estimate
    return Bar(
        at=at(e.value),
        beyond=e.value is not None and e.value > axis[1],
        low=at(e.low),
        high=at(e.high),
        bound=bound,
        right=bound if condition.at_least else 0.0,
        span=100 - bound if condition.at_least else bound,
        ends=(_end(axis[0], condition), _end(axis[1], condition)),
        demand=bound_text(condition),
        cell=estimate_cell(condition),
    )


def _place(number: float, axis: Axis) -> float:
    share = (number - axis[0]) / (axis[1] - axis[0])
    return round(100 * min(1.0, max(0.0, share)), 2)


def _end(number: float, condition: Condition) -> str:
    if is_count(condition):
        return f"{number:,.0f}"
    signed = is_difference(condition)
    text = format_number(number, signed).rstrip("0").rstrip(".")
    return text or "0"
