"""The figures of the decisions: one of all outcomes, each by colour and by word, and triage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from judgebench.decide.report.lookup import (
    decided_judges,
    decided_metrics,
    decision_index,
    metric_title,
)
from judgebench.decide.result import Decision, Decisions, Outcome
from judgebench.report.figure import draw_figures, grid_ticks, new_figure
from judgebench.report.triage_plot import triage_figures
from judgebench.report.words import wrapped
from judgebench.results.tables import DASH

# Ground and ink. Blue and orange are told apart with every common kind of colour blindness, and
# dark from pale without colours.
_LOOKS: Mapping[Outcome | None, tuple[str, str]] = {
    Outcome.REPLACE: ("#0b5cad", "white"),
    Outcome.ASSIST: ("#c3dcf3", "#0c2f50"),
    Outcome.DONT: ("#b03a14", "white"),
    Outcome.CANT_TELL: ("#eceef1", "#3f464e"),
    None: ("white", "#767676"),
}


def draw_decisions(decisions: Decisions) -> Iterator[tuple[str, bytes]]:
    """File name and content of every figure in every format; none where nothing was decided."""
    figures: dict[str, Callable[[], Any]] = {}
    if decisions.decisions:
        figures["decisions"] = partial(draw_matrix, decisions)
    yield from draw_figures({**figures, **triage_figures(decisions)})


def draw_matrix(decisions: Decisions) -> Any:
    """One chip for each judge and metric."""
    judges, metrics = decided_judges(decisions), decided_metrics(decisions)
    found = decision_index(decisions)
    figure = new_figure(2.6 + 1.25 * len(judges), 1.15 + 0.36 * len(metrics))
    axes = figure.subplots()
    for i, metric in enumerate(metrics):
        for j, judge in enumerate(judges):
            _chip(axes, i, j, found.get((judge, metric)))
    axes.set(xlim=(-0.5, len(judges) - 0.5), ylim=(len(metrics) - 0.5, -0.5))
    rows = [wrapped(metric_title(decisions, metric), 34) for metric in metrics]
    grid_ticks(axes, judges, rows)
    title = "May the judge stand in for the annotators?"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _chip(axes: Any, row: int, column: int, decision: Decision | None) -> None:
    from matplotlib.patches import FancyBboxPatch

    ground, ink = _LOOKS[decision.outcome if decision else None]
    box = FancyBboxPatch(
        (column - 0.44, row - 0.36), 0.88, 0.72, boxstyle="round,pad=0,rounding_size=0.1",
        facecolor=ground, edgecolor="none", mutation_aspect=3,
    )  # fmt: skip
    axes.add_patch(box)
    words = decision.outcome.value if decision else DASH
    axes.text(column, row, words, ha="center", va="center_baseline", color=ink, fontweight="bold")
