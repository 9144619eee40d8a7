"""The figures of the decisions beside the plot of all outcomes: triage curves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from judgebench.decisions.result import NO_FILTER, Decisions, TriageCurve
from judgebench.decisions.rule import AssistRule
from judgebench.results.figure import SMALL, new_panels, whisker
from judgebench.results.part import Drawing
from judgebench.stats.thresholds import Choice
from judgebench.words import wrapped

_LINE, _TARGET, _CHOICE, _CHANCE = "#0072B2", "#009E73", "#D55E00", "#767676"
_ACROSS = 3  # panels side by side
_PANEL = 2.7  # inches


def triage_drawings(decisions: Decisions) -> Iterator[Drawing]:
    """One for each judge and signal."""
    numbers: dict[str, int] = {}
    groups = groupby(decisions.ordered_curves, key=lambda c: (c.judge, c.signal))
    for (judge, signal), curves in groups:
        number = numbers.setdefault(judge, len(numbers) + 1)
        words = (judge[:40], signal.split()[0])  # the first word of a signal identifies it
        slug = "_".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words)
        title, draw = f"{judge}: triage by {signal}", partial(draw_triage, decisions, list(curves))
        yield Drawing(f"triage_{number}_{slug}", title, draw)


def draw_triage(decisions: Decisions, curves: Sequence[TriageCurve]) -> Any:
    """One judge and signal, a panel for each curve: what humans would read against what they would
    catch."""
    across = min(_ACROSS, len(curves))
    size = max(_PANEL, 3.6 / across), _PANEL + 0.2  # so that the figure is at least 4.2 inches wide
    figure, panels = new_panels(len(curves), _ACROSS, size, (0.6, 1.6), sharex=True, sharey=True)
    for axes, curve in zip(panels, curves, strict=True):
        _draw_panel(axes, curve, decisions.titles[curve.metric], decisions.rule.assist)
    for place in range(0, len(curves), across):
        panels[place].set_ylabel("Share of severe answers caught")
    for place in range(max(0, len(curves) - across), len(curves)):
        panels[place].tick_params(labelbottom=True)
        panels[place].set_xlabel("Share of answers sent to humans")
    heading = f"{curves[0].judge}: triage by {curves[0].signal}"
    heading = wrapped(heading, int(12 * figure.get_figwidth()))
    figure.suptitle(heading, x=0.02, ha="left", fontsize=10)
    drawn: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            drawn.setdefault(name, handle)
    figure.legend(
        drawn.values(), drawn, loc="outside lower center", ncols=2 if across > 1 else 1,
        frameon=False,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Any, curve: TriageCurve, title: str, rule: AssistRule) -> None:
    from matplotlib.patches import Rectangle

    corner = Rectangle(  # what ASSIST requires: little sent, little missed
        (0, 1 - rule.missed), rule.sent, rule.missed, facecolor=_TARGET, alpha=0.28,
        edgecolor=_TARGET, hatch="////", linewidth=0,
        label=f"required: ≤ {100 * rule.sent:g} % sent, ≤ {100 * rule.missed:g} % missed",
    )  # fmt: skip
    axes.add_patch(corner)
    axes.plot([0, 1], [0, 1], color=_CHANCE, linewidth=0.9, linestyle=":", label="sent at random")
    _draw_steps(axes, curve)
    everything = curve.choice is not None and curve.choice.sends_all
    if curve.choice and not everything:
        _draw_choice(axes, curve.choice)
    if reason := NO_FILTER if everything else curve.reason:
        # Under the line of chance: no curve worth drawing goes there.
        where = {"ha": "right", "va": "bottom", "transform": axes.transAxes}
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(
            0.98, 0.03, wrapped(reason, 24), fontsize=SMALL, color="#444444", bbox=ground, **where
        )
    counts = f"n = {curve.n:,}, severe {curve.severe:,}"
    axes.set_title(f"{wrapped(title, 36)}\n{counts}", loc="left", fontsize=9)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])


def _draw_steps(axes: Any, curve: TriageCurve) -> None:
    """The curve rises only at a threshold; between two of them nothing is known."""
    points = [p for p in curve.points if p.sent.value is not None and p.caught.value is not None]
    axes.step(
        [p.sent.value for p in points], [p.caught.value for p in points], where="post",
        color=_LINE, linewidth=1.3, label="thresholds, with the interval of the share caught",
    )  # fmt: skip
    known = [p for p in points if p.caught.low is not None and p.caught.high is not None]
    axes.fill_between(
        [p.sent.value for p in known], [p.caught.low for p in known],
        [p.caught.high for p in known], step="post", color=_LINE, alpha=0.18, linewidth=0,
    )  # fmt: skip


def _draw_choice(axes: Any, choice: Choice) -> None:
    """The recommended threshold: on its curve what it does here, with intervals what is expected
    on new answers."""
    look = {"color": _CHOICE, "linestyle": "none"}
    here = {**look, "marker": "D", "markersize": 4.5, "zorder": 5}
    new = {**look, "marker": "o", "markersize": 5.5, "markerfacecolor": "white", "zorder": 4}
    found = choice.sent.value, choice.missed.complement.value
    axes.plot(*found, clip_on=False, label="recommended threshold, on these answers", **here)
    sent, caught = choice.expected_sent, choice.expected_missed.complement
    if sent.value is None or caught.value is None:
        return
    axes.errorbar(
        sent.value, caught.value, xerr=whisker(sent), yerr=whisker(caught), elinewidth=1.1,
        label="expected on new answers, with intervals", clip_on=False, **new,
    )  # fmt: skip
