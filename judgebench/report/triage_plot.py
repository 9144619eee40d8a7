"""The figures of triage: what humans would have to read against what they would then catch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from judgebench.decide.result import EVERY, Decisions, TriageChoice, TriageCurve
from judgebench.decide.rule import AssistRule
from judgebench.records import Estimate
from judgebench.report.figure import new_figure
from judgebench.report.words import wrapped

_LINE, _TARGET, _CHOICE, _CHANCE = "#0072B2", "#009E73", "#D55E00", "#767676"
_ACROSS = 3  # panels side by side
_PANEL = 2.5  # inches


def triage_figures(decisions: Decisions) -> Mapping[str, Callable[[], Any]]:
    """Each figure's name and how it is drawn: one a judge and signal, in it EVERY first."""
    groups: dict[tuple[str, str], list[TriageCurve]] = {}
    for curve in sorted(decisions.curves, key=lambda c: c.metric != EVERY):
        groups.setdefault((curve.judge, curve.signal), []).append(curve)
    numbers: dict[str, int] = {}
    figures: dict[str, Callable[[], Any]] = {}
    for (judge, signal), curves in groups.items():
        number = numbers.setdefault(judge, len(numbers) + 1)
        words = (judge[:40], signal.split()[0])  # the first word of a signal tells it apart
        slug = "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words)
        figures[f"triage_{number}_{slug}"] = partial(draw_triage, decisions, judge, signal, curves)
    return figures


def draw_triage(
    decisions: Decisions, judge: str, signal: str, curves: Sequence[TriageCurve]
) -> Any:
    """One judge and signal: a panel a curve."""
    titles = {metric.id: metric.title for metric in decisions.rubric.metrics}
    across = min(_ACROSS, len(curves))
    down = -(-len(curves) // across)
    figure = new_figure(max(4.2, 0.6 + _PANEL * across), 1.5 + (_PANEL + 0.2) * down)
    panels = list(figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).flat)
    for axes, curve in zip(panels, curves, strict=False):
        title = "Severe on any metric" if curve.metric == EVERY else titles[curve.metric]
        _draw_panel(axes, curve, title, decisions.rule.assist)
    for axes in panels[len(curves) :]:
        axes.set_visible(False)
    for place in range(0, len(curves), across):
        panels[place].set_ylabel("Share of severe answers caught")
    for place in range(max(0, len(curves) - across), len(curves)):
        panels[place].tick_params(labelbottom=True)
        panels[place].set_xlabel("Share of answers sent to humans")
    heading = wrapped(f"{judge}: triage by {signal}", int(12 * figure.get_figwidth()))
    figure.suptitle(heading, x=0.02, ha="left", fontsize=10)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=2 if across > 1 else 1,
        frameon=False, fontsize=7,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Any, curve: TriageCurve, title: str, asked: AssistRule) -> None:
    _draw_target(axes, asked)
    axes.plot([0, 1], [0, 1], color=_CHANCE, linewidth=0.9, linestyle=":", label="sent at random")
    _draw_steps(axes, curve)
    _draw_choice(axes, curve.choice)
    if reason := curve.reason:
        # Under the line of chance: no curve worth drawing goes there.
        where = {"ha": "right", "va": "bottom", "transform": axes.transAxes}
        axes.text(0.98, 0.03, wrapped(reason, 30), fontsize=6.5, color="#444444", **where)
    counts = f"n = {curve.n:,}, severe {curve.severe:,}"
    axes.set_title(f"{wrapped(title, 36)}\n{counts}", loc="left", fontsize=8)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_aspect("equal")


def _draw_target(axes: Any, asked: AssistRule) -> None:
    """The corner that ASSIST asks for: little sent, little missed."""
    from matplotlib.patches import Rectangle

    corner = Rectangle(
        (0, 1 - asked.missed), asked.sent, asked.missed, facecolor=_TARGET, alpha=0.28,
        edgecolor=_TARGET, hatch="////", linewidth=0,
        label=f"asked for: ≤ {asked.sent:.0%} sent, ≤ {asked.missed:.0%} missed",
    )  # fmt: skip
    axes.add_patch(corner)


def _draw_steps(axes: Any, curve: TriageCurve) -> None:
    """The curve rises only at a threshold; between two of them nothing is known."""
    points = [p for p in curve.points if p.sent.value is not None and p.caught.value is not None]
    sent = [p.sent.value for p in points]
    axes.step(
        sent, [p.caught.value for p in points], where="post", color=_LINE, linewidth=1.3,
        label="thresholds, with the interval of the share caught",
    )  # fmt: skip
    known = [p for p in points if p.caught.low is not None and p.caught.high is not None]
    axes.fill_between(
        [p.sent.value for p in known], [p.caught.low for p in known],
        [p.caught.high for p in known], step="post", color=_LINE, alpha=0.18, linewidth=0,
    )  # fmt: skip


def _draw_choice(axes: Any, choice: TriageChoice | None) -> None:
    """The recommended threshold with both intervals; it stands in the legend in any case."""
    look = {"color": _CHOICE, "marker": "D", "markersize": 4.5, "linestyle": "none", "zorder": 5}
    axes.plot([], [], label="recommended, checked on held-out halves", **look)
    if choice is None:
        return
    sent, caught = choice.sent, choice.missed.complement
    if sent.value is None or caught.value is None:
        return
    axes.errorbar(
        sent.value, caught.value, xerr=_error(sent), yerr=_error(caught), elinewidth=1.1,
        label="_nolegend_", clip_on=False, **look,
    )  # fmt: skip


def _error(e: Estimate) -> list[list[float]] | None:
    if e.value is None or e.low is None or e.high is None:
        return None
    return [[max(0.0, e.value - e.low)], [max(0.0, e.high - e.value)]]
