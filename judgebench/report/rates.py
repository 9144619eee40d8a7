"""The true rates of the labels: how often each is true of all answers that a judge labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgebench.align import Alignment, LabelRate, RateMethod
from judgebench.records import Estimate
from judgebench.report.figure import new_figure
from judgebench.report.lookup import real_judges
from judgebench.report.words import wrapped
from judgebench.results.tables import DASH, Cell, Table

HEADINGS: Mapping[RateMethod, str] = {
    "human": "Human labels alone",
    "ppi": "With the verdicts (PPI++)",
    "rogan_gladen": "Rogan-Gladen",
    "verdicts": "Verdicts alone",
}
SAVED = "Human labels saved"
_NOTES = (
    "Verdicts alone: the judge's own labels, with its errors. PPI++ and Rogan-Gladen take these "
    "errors out as far as the answers with human labels show them.",
    "Human labels saved: how many more human labels alone would be needed for as narrow an "
    "interval as PPI++ has, and how many times as many that would be; a plain estimate. Negative "
    "where the verdicts do harm.",
    "The intervals are for answers such as these; for the rate among just these answers they are "
    "on the wide side.",
)
_ALL_LABELLED = "not needed: every answer that the judge labelled has a human label"
# Human labels and PPI++ are told apart by shape and place, too; the verdicts have no interval.
_LOOKS: Mapping[RateMethod, Mapping[str, Any]] = {
    "human": {"color": "black", "marker": "s", "markersize": 3.5},
    "ppi": {"color": "#0072B2", "marker": "o", "markersize": 4},
    "verdicts": {"color": "#767676", "marker": "x", "markersize": 4},
}

Rates = Mapping[tuple[str, str, RateMethod], LabelRate]  # by metric, label and method


def rate_tables(alignment: Alignment) -> list[Table]:
    """A table for each judge of which some answers have no human truth."""
    return [
        _rate_table(alignment, number, name)
        for number, name in enumerate(_judges(alignment), start=1)
    ]


def _judges(alignment: Alignment) -> list[str]:
    """The judges whose verdicts tell more than the human labels."""
    powered = {rate.judge for rate in alignment.rates if rate.method == "ppi"}
    return [judge.name for judge in real_judges(alignment) if judge.name in powered]


def _rates_of(alignment: Alignment, judge: str) -> Rates:
    return {(r.metric, r.label, r.method): r for r in alignment.rates if r.judge == judge}


def _rate_table(alignment: Alignment, number: int, judge: str) -> Table:
    rates = _rates_of(alignment, judge)
    rows = [
        (
            Cell(metric.title),
            Cell(label),
            *(_rate_cell(rates.get((metric.id, label, method))) for method in HEADINGS),
            _saved_cell(rates, metric.id, label),
        )
        for metric in alignment.rubric.metrics
        for label in metric.label_texts
        if (metric.id, label, "human") in rates
    ]
    return Table(
        f"rates-{number}",
        f"True rates of the labels, with the verdicts of {judge}",
        ("Metric", "Label", *HEADINGS.values(), SAVED),
        tuple(rows),
        _NOTES,
        stubs=2,
    )


def _rate_cell(rate: LabelRate | None) -> Cell:
    if rate is None:
        return Cell(DASH, remark=_ALL_LABELLED)
    return Cell(estimate=rate.estimate)


def _saved_cell(rates: Rates, metric: str, label: str) -> Cell:
    """`+57 (1.6 times as many)`."""
    rate, human = rates.get((metric, label, "ppi")), rates[metric, label, "human"].estimate
    if rate is None:
        return Cell(DASH, remark=_ALL_LABELLED)
    if rate.saved is None or not human.n:
        return Cell(DASH, remark=f"undefined: {rate.estimate.reason}")
    shown = "0" if abs(rate.saved) < 0.5 else f"{rate.saved:+,.0f}"
    return Cell(f"{shown} ({1 + rate.saved / human.n:.2f} ×)")


def rate_figures(alignment: Alignment) -> dict[str, str]:
    """The name of each figure of `draw_rates`, and the judge that it shows."""
    judges = enumerate(_judges(alignment), start=1)
    return {f"label_rates_{number}": judge for number, judge in judges}


def draw_rates(alignment: Alignment, judge: str) -> Any:
    """One judge: a band a metric, a line a label, with the human interval and that of PPI++."""
    rates = _rates_of(alignment, judge)
    lines = [
        (metric, label)
        for metric in alignment.rubric.metrics
        for label in metric.label_texts
        if (metric.id, label, "ppi") in rates
    ]
    figure = new_figure(7.2, 1.3 + 0.34 * len(lines))
    axes = figure.subplots()
    for y, (metric, label) in enumerate(lines):
        found = {m: rates[metric.id, label, m].estimate for m in _LOOKS}
        _draw_line(axes, y, found)
        if y and metric.id != lines[y - 1][0].id:
            axes.axhline(y - 0.5, color="#aaaaaa", linewidth=0.8)
    for method, look in _LOOKS.items():
        axes.plot([], [], linestyle="none", label=HEADINGS[method], **look)
    axes.set_yticks(range(len(lines)), _line_names(lines), fontsize=6.5)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(-0.01, 1.01)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"Rate among the answers that the judge labelled; {DASH} means undefined")
    axes.set_title(wrapped(f"True rates of the labels: {judge}", 80), loc="left", fontsize=9)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return figure


def _line_names(lines: Sequence[tuple[Any, str]]) -> list[str]:
    """Each label, under its metric's title where it is the metric's first."""
    names = []
    for y, (metric, label) in enumerate(lines):
        first = y == 0 or lines[y - 1][0].id != metric.id
        title = f"{wrapped(metric.title, 44)}:\n" if first else ""
        names.append(title + wrapped(label, 44))
    return names


def _draw_line(axes: Any, y: int, found: Mapping[RateMethod, Estimate]) -> None:
    for method, e in found.items():
        look = _LOOKS[method]
        place = y + {"human": -0.17, "ppi": 0.17}.get(method, 0.0)
        if e.value is None:
            axes.text(0.0, place, DASH, va="center", fontsize=6, color=look["color"])
            continue
        error = None
        if method != "verdicts" and e.low is not None and e.high is not None:
            error = [[max(0.0, e.value - e.low)], [max(0.0, e.high - e.value)]]
        axes.errorbar(e.value, place, xerr=error, linestyle="none", elinewidth=1.2, **look)
