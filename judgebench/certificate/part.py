"""The presentation of a watched certificate: how it stands, why, and the evidence over time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from judgebench.certificate.levels import REVOKED, WARNED
from judgebench.certificate.result import Checked, Watching
from judgebench.records import Estimate
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Drawing, Part
from judgebench.results.tables import DASH, Cell, Table, in_per_cent
from judgebench.words import counted, percent

_NOTES = (
    "Every alarm may be looked for whenever one likes: of a judge that stays as it was, with "
    "answers and annotators like those before, at most "
    f"{100 * REVOKED:g} % of certificates are ever revoked and {100 * WARNED:g} % ever warned, all "
    "metrics together.",
    "Evidence: what a bettor against the claim that nothing changed would have made of a stake of "
    "1. The way to an alarm is shown in per cent, on a logarithmic scale.",
    "Intervals are confidence sequences: they hold at every look together.",
)
_MOST_LINES, _TOP = 8, 150


def watch_part(w: Watching) -> Part:
    """The part of a watched certificate."""
    said = (_headline(w), *_reasons(w))
    tables = (judge_table(w), shares_table(w), population_table(w))
    title = "Evidence that something changed"
    drawing = Drawing("evidence", title, partial(_draw, w))
    blocks = (
        Block("Why", said[1:], lead=True, on_screen=True),
        Block("Next", tuple(plans(w)), lead=True),
        Block(title, figures=(drawing,) if len(w.seen.points) > 1 else (), lead=True),
        Block("Does the judge say the same of its anchors?", tables=(tables[0],)),
        Block("Does it still agree with people?", tables=(tables[1],)),
        Block("Are these the same kind of answers?", tables=(tables[2],)),
    )
    screen = (
        Block(text=said[1:]),
        Block(tables=tables[:2]),
        Block(text=tuple(plans(w))),
    )
    facts = (
        counted(w.seen.answers, "answer") + " judged since",
        counted(w.seen.anchors, "anchor") + " judged again",
        counted(sum(w.seen.labelled.values()), "answer") + " with new labels",
    )
    return Part(
        "watch", "does it still hold?", w.results, blocks, _NOTES, facts, screen, own_file=True,
        headline=_headline(w), answer=said[0],
    )  # fmt: skip


def _headline(w: Watching) -> str:
    """`VALID: gpt-4 may replace annotators on Safety, until 2027-05-25.`"""
    c = w.certificate
    may = "; ".join(f"{one.outcome} on {one.title}" for one in c.certified.values())
    until = f", until {c.valid.until:%Y-%m-%d}" if c.valid.until else ""
    return f"{w.state.upper()}: {c.judge.name}, certified for {may}{until}."


def _reasons(w: Watching) -> Iterator[str]:
    for reason in w.reasons:
        yield " ".join(filter(None, (reason.text, f"Next: {reason.next}" if reason.next else "")))


def plans(w: Watching) -> Iterator[str]:
    """What keeps the certificate: anchors, labels, and what was counted just now."""
    n, seen = w.counted, w.seen
    if n.anchors or n.answers or n.labels or n.before:
        again = f"; {counted(n.before, 'row')} had been counted before" if n.before else ""
        yield (
            f"Counted now: {counted(n.answers, 'answer')}, {counted(n.anchors, 'anchor')}, "
            f"{counted(n.labels, 'answer')} with labels{again}."
        )
    for metric in w.certificate.certified.values():
        if metric.noise and not metric.noise.pairs:
            yield (
                f"The judge's own noise on {metric.title} was not measured: up to "
                f"{percent(metric.noise.most)} is taken for granted, and smaller changes go "
                "unseen. Issue the certificate with verdicts on the same answers again."
            )
    if (anchors := w.anchors_needed) is None:
        yield "The judge is too noisy for a change of 10 % of its verdicts to be found by anchors."
    else:
        yield (
            f"A change of 10 % of the verdicts is found within about {anchors:,} anchors judged "
            f"again ({seen.anchors:,} so far)."
        )
    if (total := w.labels_needed) is not None:
        weekly = w.labels_a_week
        rate = f", about {weekly:,} a week," if weekly else ""
        yield (
            f"Fresh human labels on about {total:,} answers{rate} would show by themselves that it "
            f"still holds ({sum(seen.labelled.values()):,} so far)."
        )


def judge_table(w: Watching) -> Table:
    """The labels that the judge gives anchors now, beside those in the certificate."""
    lines = [
        (w.title(c.metric), _share(c), Cell(percent(c.bound)), *_evidence(c))
        for c in w.of("changed", found=False)
    ]
    heads = ("Metric", "Another label", "Own noise, at most", "Way to alarm")
    return Layout("watched-judge", "Anchors judged again", heads).listing(lines)


def shares_table(w: Watching) -> Table:
    """Every watched share with its bound."""
    lines = []
    for c in w.of("fallen", found=False):
        one = w.watched(c.metric, c.about)
        bound = f"{'at least' if one.at_least else 'at most'} {percent(one.bound)}"
        about = f"{w.title(c.metric)}: {one.title}"
        lines.append((about, _share(c), Cell(percent(one.value)), Cell(bound), *_evidence(c)))
    heads = ("Watched", "Since", "Decided on", "Required", "Way to alarm")
    return Layout("watched-agreement", "Beside the bounds of the decision", heads).listing(lines)


def population_table(w: Watching) -> Table:
    """Every category of the population."""
    lines = []
    for c in w.of("shifted", found=False):
        counts = w.certificate.population.shares[c.metric]
        share = counts[c.about] / sum(counts.values())
        feature = w.title_of(c.metric)
        lines.append((feature, c.about, _share(c), Cell(percent(share)), *_evidence(c)))
    heads = ("Feature", "Category", "Since", "In the certificate", "Way to alarm")
    return Layout("watched-answers", "Shares of the answers", heads).listing(lines)


def _share(c: Checked) -> Cell:
    """`96 % of 100`, and the interval below."""
    if c.sums.mean is None:
        return Cell(DASH)
    mean, interval = in_per_cent(Estimate(c.sums.mean, *c.sums.interval(0.05)), "\n").split("\n")
    return Cell(f"{mean} of {c.sums.n:,}\n{interval}")


def _evidence(c: Checked) -> tuple[Cell]:
    return (Cell("ALARM", look="bad") if c.found else Cell(f"{100 * c.way:.0f} %"),)


def _draw(w: Watching) -> Any:
    """The way to an alarm of what came nearest, over time."""
    from judgebench.results.figure import looks_of, new_figure
    from judgebench.results.part import Lane

    shown = sorted(w.checked, key=lambda c: -c.evidence.most)[:_MOST_LINES]
    names = {id(c): _name(w, c) for c in shown}
    looks = looks_of([Lane(names[id(c)], "judge", Estimate(None)) for c in shown])
    figure = new_figure(6.8, 3.2 + 0.12 * len(shown))
    axes = figure.subplots()
    times = [datetime.fromisoformat(time) for time, _ in w.seen.points]
    for c in shown:
        key = ":".join(part for part in (c.family, c.metric, c.about) if part)
        way = [100 * found.get(key, 0.0) / -math.log(c.alpha) for _, found in w.seen.points]
        way = [min(x, _TOP) for x in way]
        look = {**looks[names[id(c)]], "markersize": 3, "linestyle": "-", "linewidth": 1}
        axes.plot(times, way, **look)
    axes.axhline(100, color="#b3261e", linewidth=1)
    axes.text(1.0, 100, "alarm", color="#b3261e", va="bottom", ha="right",
              transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set(ylabel=f"Way to an alarm in per cent (up to {_TOP})", ylim=(-60, _TOP + 5))
    figure.autofmt_xdate()
    figure.legend(loc="outside lower left", ncols=2)
    return figure


def _name(w: Watching, c: Checked) -> str:
    if c.family == "changed":
        return f"another judge, {w.title(c.metric)}"
    if c.family == "shifted":
        return f"{w.title_of(c.metric)}: more {c.about}"
    side, bound = (
        "below" if c.below else "above",
        "its bound" if c.family == "fallen" else "warning",
    )
    return f"{w.watched(c.metric, c.about).title}: {side} {bound}"
