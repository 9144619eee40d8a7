"""What makes a comparison fail a check, such as that of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from judgebench.alignment.differences import SAME_LABELS, TESTED
from judgebench.comparison.result import Comparison
from judgebench.errors import Problem, SetupError
from judgebench.records import Estimate
from judgebench.results.tables import Cell

Demand = Literal["worse", "decision"]
DEMANDS: tuple[Demand, ...] = get_args(Demand)
COUNTED = "worst"  # a missing label is no right one, of A as of B


@dataclass(frozen=True)
class Margin:
    """B may be at most `margin` less accurate than A, on one metric or, where it is empty, on
    each."""

    margin: float
    metric: str = ""


def margins(texts: Sequence[str], comparison: Comparison) -> list[Margin]:
    """Read `0.05` and `0.05:tone`. Raises SetupError with every problem."""
    found, problems = [], []
    known = [metric.id for metric in comparison.rubric.metrics]
    for text in texts:
        number, _, metric = text.partition(":")
        try:
            margin = float(number)
        except ValueError:
            margin = -1.0
        if not 0 <= margin <= 1:
            allowed = "a share from 0 to 1, then a metric if it is for one: 0.05 or 0.05:METRIC"
            problems.append(
                Problem("is no margin", field="--no-worse", found=text, allowed=allowed)
            )
        elif metric and metric not in known:
            problems.append(
                Problem(
                    "is no metric that is compared",
                    "",
                    None,
                    "--no-worse",
                    metric,
                    ", ".join(known),
                )
            )
        found.append(Margin(margin, metric))
    if problems:
        raise SetupError(problems)
    return found


def check_demands(demands: Sequence[str]) -> None:
    """Raises SetupError for what is none of DEMANDS."""
    allowed = ", ".join(DEMANDS)
    problems = [
        Problem("cannot be checked", field="--fail-on", found=demand, allowed=allowed)
        for demand in demands
        if demand not in DEMANDS
    ]
    if problems:
        raise SetupError(problems)


def failures(
    comparison: Comparison, demands: Sequence[str] = (), allowed: Sequence[Margin] = ()
) -> Iterator[str]:
    """A sentence for everything that is not as demanded.

    `worse`: B is shown to be less accurate than A, or to find fewer severe answers, on some metric
    (permutation test with Holm's correction over the metrics). `decision`: a decision fell. Of a
    margin: B is not shown to be at most so much less accurate, as the interval of the difference
    reaches below it. A missing label counts as wrong.
    """
    if "worse" in demands:
        yield from _worse(comparison)
    if "decision" in demands:
        for one in comparison.decisions:
            if one.fell:
                a, b = one.outcomes
                where = _about(comparison, one.judge, one.metric)
                yield f"{where}: the decision fell from {a} to {b}"
    for margin in allowed:
        yield from _beyond(comparison, margin)


def _worse(c: Comparison) -> Iterator[str]:
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            for statistic in TESTED:
                about = (pair.b, metric.id)
                difference = c.difference(statistic, *about, COUNTED)
                p = c.p_holm(*about, statistic, COUNTED).value
                if c.is_shown(statistic, *about, COUNTED) and (difference.value or 0) < 0:
                    yield (
                        f"{_about(c, *about)}: {c.shown_as(statistic)[0].lower()} is worse by "
                        f"{_number(difference)}, p after Holm {p:.3g}"
                    )


def _beyond(c: Comparison, margin: Margin) -> Iterator[str]:
    for pair in c.pairs:
        for metric in c.rubric.metrics:
            if margin.metric in ("", metric.id):
                found = c.difference("accuracy", pair.b, metric.id, COUNTED)
                if not within(found, margin.margin):
                    yield (
                        f"{_about(c, pair.b, metric.id)}: accuracy is not shown to be at most "
                        f"{margin.margin:g} worse: {_number(found)}"
                    )


def within(difference: Estimate, margin: float) -> bool:
    """Whether the whole interval lies above -`margin`; also where both gave the same labels."""
    if difference.reason == SAME_LABELS:
        return True
    return difference.low is not None and difference.low >= -margin


def _about(c: Comparison, judge: str, metric: str) -> str:
    return f"{c.title(metric)} ({judge})"


def _number(e: Estimate) -> str:
    cell = Cell(estimate=e, signed=True)
    if e.value is None:
        return f"undefined, {e.reason}"
    return f"{cell.value} {cell.interval}".strip() + (f" ({e.reason})" if not cell.interval else "")
