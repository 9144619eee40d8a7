"""The figures of the decisions: all outcomes at a glance, and triage curves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from judgebench.decisions.result import NO_FILTER, Decisions, Outcome, TriageCurve
from judgebench.decisions.rule import AssistRule
from judgebench.results.figure import SMALL, grid_ticks, new_figure, new_panels, whisker
from judgebench.results.part import Drawing
from judgebench.results.tables import DASH
from judgebench.stats.thresholds import Choice
from judgebench.words import wrapped

# Ground and ink. Blue and orange can be distinguished with every common kind of colour blindness,
# and dark from pale without colours.
_LOOKS: Mapping[Outcome | None, tuple[str, str]] = {
    Outcome.REPLACE: ("#0b5cad", "white"),
    Outcome.ASSIST: ("#c3dcf3", "#0c2f50"),
    Outcome.DO_NOT_USE: ("#b03a14", "white"),
    Outcome.CANT_TELL: ("#eceef1", "#3f464e"),
    None: ("white", "#767676"),
}
_LINE, _TARGET, _CHOICE, _CHANCE = "#0072B2", "#009E73", "#D55E00", "#767676"
_ACROSS = 3  # panels side by side
_PANEL = 2.7  # inches


def draw_matrix(decisions: Decisions) -> Any:
    """One chip for each metric and judge: the outcome by colour and by word."""
    found = {(d.metric, d.judge): d.outcome for d in decisions.decisions}
    metrics, judges = (list(dict.fromkeys(pair[i] for pair in found)) for i in (0, 1))
    figure = new_figure(2.8 + 1.3 * len(judges), 1.35 + 0.36 * len(metrics))
    axes = figure.subplots()
    for i, metric in enumerate(metrics):
        for j, judge in enumerate(judges):
            _chip(axes, i, j, found.get((metric, judge)))
    axes.set(xlim=(-0.5, len(judges) - 0.5), ylim=(len(metrics) - 0.5, -0.5))
    titles = [wrapped(decisions.titles[metric], 34) for metric in metrics]
    grid_ticks(axes, judges, titles, ("Judge", "Metric"))
    title = "May the judge replace the annotators?"
    figure.suptitle(wrapped(title, int(11 * figure.get_figwidth())), x=0.02, ha="left", fontsize=11)
    return figure


def _chip(axes: Any, row: int, column: int, outcome: Outcome | None) -> None:
    from matplotlib.patches import FancyBboxPatch

    ground, ink = _LOOKS[outcome]
    box = FancyBboxPatch(
        (column - 0.44, row - 0.36), 0.88, 0.72, boxstyle="round,pad=0,rounding_size=0.1",
        facecolor=ground, edgecolor="none", mutation_aspect=3,
    )  # fmt: skip
    axes.add_patch(box)
    words = outcome.value if outcome else DASH
    axes.text(column, row, words, ha="center", va="center_baseline", color=ink, fontweight="bold")


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
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=2 if across > 1 else 1,
        frameon=False,
    )  # fmt: skip
    return figure


def _draw_panel(axes: Any, curve: TriageCurve, title: str, rule: AssistRule) -> None:
    from matplotlib.patches import Rectangle

    corner = Rectangle(  # what ASSIST requires: little sent, little missed
        (0, 1 - rule.missed), rule.sent, rule.missed, facecolor=_TARGET, alpha=0.28,
        edgecolor=_TARGET, hatch="////", linewidth=0,
        label=f"required: ≤ {rule.sent:.0%} sent, ≤ {rule.missed:.0%} missed",
    )  # fmt: skip
    axes.add_patch(corner)
    axes.plot([0, 1], [0, 1], color=_CHANCE, linewidth=0.9, linestyle=":", label="sent at random")
    _draw_steps(axes, curve)
    _draw_choice(axes, curve.choice)
    everything = curve.choice is not None and curve.choice.sends_all
    if reason := NO_FILTER if everything else curve.reason:
        # Under the line of chance: no curve worth drawing goes there.
        where = {"ha": "right", "va": "bottom", "transform": axes.transAxes}
        axes.text(0.98, 0.03, wrapped(reason, 30), fontsize=SMALL, color="#444444", **where)
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


def _draw_choice(axes: Any, choice: Choice | None) -> None:
    """The recommended threshold: on its curve what it does here, with intervals what is expected
    on new answers. Both stand in the legend in any case."""
    look = {"color": _CHOICE, "linestyle": "none"}
    here = {**look, "marker": "D", "markersize": 4.5, "zorder": 5}
    new = {**look, "marker": "o", "markersize": 5.5, "markerfacecolor": "white", "zorder": 4}
    axes.plot([], [], label="recommended threshold, on these answers", **here)
    axes.plot([], [], label="expected on new answers, with intervals", **new)
    if choice is None:
        return
    axes.plot(choice.sent.value, choice.missed.complement.value, clip_on=False, **here)
    sent, caught = choice.expected_sent, choice.expected_missed.complement
    if sent.value is None or caught.value is None:
        return
    axes.errorbar(
        sent.value, caught.value, xerr=whisker(sent), yerr=whisker(caught), elinewidth=1.1,
        label="_nolegend_", clip_on=False, **new,
    )  # fmt: skip
