"""The figures of triage: what people would read against what they would catch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from judgebench.decisions.result import NO_FILTER, Decisions, TriageCurve
from judgebench.decisions.rule import AssistRule
from judgebench.results.figure import SMALL, new_panels, whisker
from judgebench.results.part import Drawing
from judgebench.words import wrapped

_LINE, _TARGET, _CHOICE = "#0072B2", "#009E73", "#D55E00"
_MAX_ACROSS = 3  # panels side by side
_PANEL = (3.4, 3.2)  # inches


def triage_drawings(decisions: Decisions) -> Iterator[Drawing]:
    """One for each judge and signal, with a panel for each metric."""
    groups: dict[tuple[str, str], list[TriageCurve]] = {}
    for curve in decisions.curves:
        groups.setdefault((curve.judge, curve.signal), []).append(curve)
    for number, ((judge, signal), curves) in enumerate(groups.items(), start=1):
        title = f"{judge}: triage by {signal}"
        yield Drawing(f"triage_{number}", title, partial(_draw, decisions, curves, title))


def _draw(decisions: Decisions, curves: Sequence[TriageCurve], title: str) -> Any:
    shape = len(curves), _MAX_ACROSS, _PANEL, (0.6, 1.6)
    figure, panels = new_panels(*shape, sharex=True, sharey=True)
    for axes, curve in zip(panels, curves, strict=True):
        _draw_panel(axes, curve, decisions.rule.assist)
        heading = wrapped(decisions.titles[curve.metric], 36)
        counts = f"n = {curve.n:,}, severe {curve.severe:,}"
        axes.set_title(f"{heading}\n{counts}", loc="left", fontsize=9)
    figure.supxlabel("Share of answers sent to humans", fontsize=9)
    figure.supylabel("Share of severe answers caught", fontsize=9)
    width = int(12 * figure.get_figwidth())
    figure.suptitle(wrapped(title, width), x=0.02, ha="left", fontsize=10)
    by_name = {
        name: handle
        for axes in panels
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(by_name.values(), by_name, loc="outside lower center", frameon=False)
    return figure


def _draw_panel(axes: Any, curve: TriageCurve, rule: AssistRule) -> None:
    """The curve rises only at a threshold; between two of them nothing is known. The corner is what
    ASSIST requires: little sent, little missed."""
    axes.fill_between(
        [0, rule.sent], 1 - rule.missed, 1, color=_TARGET, alpha=0.28, linewidth=0,
        label=f"required: ≤ {100 * rule.sent:g} % sent, ≤ {100 * rule.missed:g} % missed",
    )  # fmt: skip
    axes.axline((0, 0), slope=1, color="#767676", linestyle=":", label="sent at random")
    points = [p for p in curve.points if p.sent.value is not None and p.caught.low is not None]
    sent = [p.sent.value for p in points]
    axes.step(sent, [p.caught.value for p in points], where="post", color=_LINE, label="thresholds")
    axes.fill_between(
        sent, [p.caught.low for p in points], [p.caught.high for p in points],
        step="post", color=_LINE, alpha=0.18, linewidth=0, label="interval of the share caught",
    )  # fmt: skip
    reason = curve.reason
    if curve.choice is not None and curve.choice.sends_all:
        reason = NO_FILTER
    elif curve.choice is not None:
        sent_new, caught_new = curve.choice.expected_sent, curve.choice.expected_missed.complement
        axes.errorbar(
            sent_new.value, caught_new.value, xerr=whisker(sent_new), yerr=whisker(caught_new),
            fmt="o", color=_CHOICE, label="recommended threshold, expected on new answers",
        )  # fmt: skip
    if reason:  # under the line of chance: no curve worth drawing goes there
        axes.text(0.98, 0.03, wrapped(reason, 24), fontsize=SMALL, ha="right", va="bottom")
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
