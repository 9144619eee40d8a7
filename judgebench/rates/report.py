"""The presentation of rates: tables for each metric and judge, differences, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from judgebench.rates.analysis import ALL, COMBINED, Rates
from judgebench.records import Estimate
from judgebench.results.layout import Content, Contents, Layout
from judgebench.results.part import Block, Intervals, Lane, LaneKind, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, in_per_cent
from judgebench.words import counted, listed

_WAYS = {
    "human": "Human labels alone",
    "ppi": "With the verdicts (PPI++)",
    "rogan_gladen": "Rogan-Gladen",
    "verdicts": "Verdicts alone",
}
# The valid ways first, and last what a narrow screen may break off.
_SHORT_WAYS = {"human": "Human labels", "ppi": "PPI++", "needed": "More labels",
               "verdicts": "Verdicts*", "rogan_gladen": "Rogan-Gladen"}  # fmt: skip
_PAPER_WAYS = {way: name for way, name in _SHORT_WAYS.items() if way != "rogan_gladen"}
_LANES: dict[str, LaneKind] = {"human": "human", "ppi": "judge", "rogan_gladen": "judge",
                               "verdicts": "control"}  # fmt: skip
_OF_VERDICTS = (
    "Verdicts alone: the judge's own labels, with its errors, so that their interval does not "
    "hold the true rate."
)
_OF_PPI = (
    "Use PPI++ where it has an interval, else human labels alone; never verdicts alone. PPI++ and "
    "Rogan-Gladen remove the judge's errors as far as the answers with human labels show them.",
    "Labels saved: how many more human labels would reach the precision of PPI++ without the "
    "verdicts, and how many times as many that is; an estimate without an interval. Negative where "
    "the verdicts do harm.",
)
_OF_INTERVALS = (
    "The intervals are for answers such as these; for the rate among just these answers they are "
    "on the wide side."
)
_SHORT_NOTE = "* The judge's errors are in it: not a valid estimate by itself."
_OF_DIFFERENCES = (
    "Intervals hold for all pairs of one label together (Bonferroni), and each label is a test of "
    "its own; answers to the same questions are compared as such."
)
_MOST_PAIRS = 6


def rates_part(r: Rates) -> Part:
    """The part of the rates."""
    labels = [(metric, label) for metric, main in r.main.items() for label in main]
    first = [(metric, main[0]) for metric, main in r.main.items()]
    judges = ((metric, judge) for metric in r.titles for judge in _judges(r, metric) or [""])
    compared = (*r.compared, *_nothing_added(r))
    sentences = (*_saved_sentences(r), *_difference_sentences(r))
    if r.rows.select("rate", "verdicts"):
        sentences = (*sentences, _SHORT_NOTE)
    return Part(
        "rates", "how often each label occurs", r.rows,
        (
            Block(
                "Rates of the labels", compared,
                tuple(_rates_table(r, *of) for of in judges),
                tuple(_figure(r, *of) for of in labels), asks="what_if", on_screen=True,
            ),
            Block("Differences of rates", tables=tuple(_differences_table(r, m) for m in r.titles),
                  folded=True, asks="what_if", on_screen=True),
        ),
        r.notes,
        tuple(r.headline.split(" · ")[1:]) if r.requested else (),
        (
            Block(text=compared),
            Block(tables=tuple(_short_table(r, *of) for of in labels)),
            Block(text=sentences),
        ),
        tuple(_paper_table(r, *of) for of in first) if r.requested else (),
        r.urgent, own_file=True, headline=r.headline,
        answer=" ".join(_rate_sentence(r, *of) for of in first) if r.requested else "",
    )  # fmt: skip


def _judges(r: Rates, metric: str) -> list[str]:
    """The judges, and all together, that said something of a metric."""
    return list(dict.fromkeys(x.judge for x in r.rows.select("rate", metric=metric) if x.judge))


def _best(r: Rates, metric: str) -> str:
    """The judge whose verdicts save the most labels over all answers: of the labels on a screen."""

    def saved(judge: str) -> float:
        rows = r.rows.select("labels", "saved", judge=judge, metric=metric, group=ALL)
        return sum(row.estimate.value or 0.0 for row in rows if row["of"] in r.main[metric])

    return max(_judges(r, metric), key=saved, default="")


def _number(r: Rates, metric: str, judge: str) -> str:
    return f"{[*r.titles].index(metric) + 1}-{[*_judges(r, metric), ''].index(judge) + 1}"


# --- tables ---------------------------------------------------------------------------------------


def _rows(r: Rates, metric: str, labels: Sequence[str], ways: Iterable[str]) -> list[Row]:
    """The rates and numbers of labels of a metric, of all answers last."""
    rows = [
        row
        for row in r.rows.select(metric=metric)
        if row.analysis != "difference" and row.statistic in ways and row["of"] in labels
    ]
    return sorted(rows, key=lambda row: (labels.index(row["of"]), row["group"] == ALL))


def _table(
    layout: Layout, rows: Sequence[Row], headings: Mapping[str, str],
    line: Callable[[Row], Contents], cell: Callable[[Row], Content],
) -> Table:  # fmt: skip
    """A column for each way that was measured."""
    measured = {row.statistic for row in rows}
    across = [heading for way, heading in headings.items() if way in measured]
    return layout.of(rows, line, lambda row: headings[row.statistic], across, cell)


def _group_name(r: Rates, row: Row) -> str:
    """`gpt-4 (20)`: how many of its answers have human labels."""
    keys = {"metric": row.metric, "of": row["of"], "group": row["group"]}
    return f"{row['group']} ({r.rows.find('given', 'labels', **keys).value or 0:,.0f})"


def _rows_beside_best(r: Rates, metric: str, label: str, ways: Iterable[str]) -> list[Row]:
    """Those of one label, of humans alone and with the judge that helps most."""
    judges = ("", _best(r, metric))
    return [row for row in _rows(r, metric, [label], ways) if row.judge in judges]


def _rates_table(r: Rates, metric: str, judge: str) -> Table:
    """A line for each label and group, a column for each way."""
    labels = list(dict.fromkeys(row["of"] for row in r.rows.select("rate", metric=metric)))
    headings = {**_WAYS, "saved": "Labels saved"}
    if r.width is not None:
        headings["needed"] = f"More labels for a width of {r.width:g}"
    of = f", with the verdicts of {judge}" if judge else ""
    has_ppi = bool(r.rows.select("rate", "ppi", metric=metric, judge=judge))
    notes = (_OF_VERDICTS if judge else "", *(_OF_PPI if has_ppi else ()), _OF_INTERVALS)
    key, title = f"rates-{_number(r, metric, judge)}", f"{r.titles[metric]}: rates{of}"
    layout = Layout(key, title, ("Label", (r.by or "answers").capitalize()), notes, absent=None)

    def cell(row: Row) -> Cell:
        if row.analysis == "labels":
            return _labels_cell(row)
        return Cell(estimate=row.estimate, percent=_is_rate(row["of"]))

    def line(row: Row) -> Contents:
        return row["of"], _group_name(r, row)

    rows = [x for x in _rows(r, metric, labels, headings) if x.judge in ("", judge)]
    return _table(layout, rows, headings, line, cell)


def _short_table(
    r: Rates, metric: str, label: str, headings: Mapping[str, str] = _SHORT_WAYS, gap: str = "\n",
    notes: tuple[str, ...] = (),
) -> Table:  # fmt: skip
    """One label in per cent: groups down, the ways across, with the judge that helps most."""
    key = f"rate-{_number(r, metric, '')}-{r.main[metric].index(label) + 1}"
    stub = f"{(r.by or 'answers').capitalize()} (labelled)"
    layout = Layout(key, _heading(r, metric, label), (stub,), notes, absent=None)

    def cell(row: Row) -> Content:
        if row.analysis == "labels":
            return _labels_cell(row)
        if not _is_rate(label):
            return row.estimate
        e, is_bare = row.estimate, row.statistic == "verdicts"
        return Cell(in_per_cent(e, gap, bare=is_bare), remark=_why_undefined(e))

    rows = _rows_beside_best(r, metric, label, headings)
    return _table(layout, rows, headings, lambda row: (_group_name(r, row),), cell)


def _paper_table(r: Rates, metric: str, label: str) -> Table:
    """The same without Rogan-Gladen, to fit a column."""
    return _short_table(r, metric, label, _PAPER_WAYS, " ", (_SHORT_NOTE,))


def _labels_cell(row: Row) -> Cell:
    """`+57 (1.60 ×)` labels saved, or `120` more that are needed."""
    e = row.estimate
    if e.value is None:
        return Cell(DASH, remark=_why_undefined(e))
    if row.statistic == "needed":
        return Cell(f"{e.value:,.0f}")
    saved = "0" if abs(e.value) < 0.5 else f"{e.value:+,.0f}"
    return Cell(f"{saved} ({1 + e.value / e.n:.2f} ×)" if e.n else saved)


def _why_undefined(e: Estimate) -> str:
    return f"undefined: {e.reason or NO_REASON}" if e.value is None else ""


def _is_rate(label: str) -> bool:
    """False of a mean, which is no share."""
    return not label.startswith("mean ")


def _heading(r: Rates, metric: str, label: str) -> str:
    """`Harm: grave`, with the judge whose verdicts are shown where there are several."""
    judge, n = _best(r, metric), len([j for j in _judges(r, metric) if j != COMBINED])
    of = f", with the verdicts of {judge}" if n > 1 else ""
    return f"{r.titles[metric]}: {label}{of}"


def _differences_table(r: Rates, metric: str) -> Table:
    """Every two groups, by human labels alone and with each judge."""
    title = f"{r.titles[metric]}: differences between {r.by}s"
    key = f"rate_differences-{_number(r, metric, '')}"
    return Layout(key, title, ("Label", "Between"), (_OF_DIFFERENCES,)).of(
        r.rows.select("difference", metric=metric),
        lambda row: (row["of"], f"{row['group']} - {row['against']}"),
        lambda row: f"With {row.judge}" if row.judge else _WAYS["human"],
        cell=lambda row: Cell(estimate=row.estimate, signed=True, percent=_is_rate(row["of"])),
    )


def _figure(r: Rates, metric: str, label: str) -> Intervals:
    """Groups down, an interval for each way."""
    lines: dict[str, list[Lane]] = {}
    for row in _rows_beside_best(r, metric, label, _WAYS):
        lane = Lane(_WAYS[row.statistic], _LANES[row.statistic], row.estimate)
        lines.setdefault(_group_name(r, row), []).append(lane)
    return Intervals(
        f"rates_{metric}-{r.main[metric].index(label) + 1}", _heading(r, metric, label),
        tuple((name, tuple(lanes)) for name, lanes in lines.items()), "Rate with its interval",
        down=f"{(r.by or 'answers').capitalize()} (labelled)", counts=False,
        percent=_is_rate(label),
    )  # fmt: skip


# --- sentences ------------------------------------------------------------------------------------


def _nothing_added(r: Rates) -> Iterator[str]:
    """A sentence, where people labelled every answer on which there are verdicts."""
    for metric, title in r.titles.items():
        ways = {row.statistic for row in r.rows.select("rate", metric=metric)}
        if "verdicts" in ways and "ppi" not in ways:
            yield f"{title}: every answer has a human label, so verdicts add nothing."


def _difference_sentences(r: Rates) -> Iterator[str]:
    """The groups that differ for certain, label by label."""
    for metric, title in r.titles.items():
        for label in r.main[metric]:
            rows = r.rows.select("difference", metric=metric, judge=_best(r, metric), of=label)
            certain = [
                f"{row['group']} > {row['against']}" if e.low > 0 else
                f"{row['against']} > {row['group']}"
                for row in rows
                if (e := row.estimate).low is not None and not e.low <= 0 <= (e.high or 0)
            ]  # fmt: skip
            more = len(certain) - _MOST_PAIRS
            pairs = "; ".join(certain[:_MOST_PAIRS]) or f"no two {r.by}s are shown to differ"
            pairs += f" and {more} more" if more > 0 else ""
            if rows:
                yield f"{title}, {label}: {pairs} (corrected for {counted(len(rows), 'pair')})."


def _rate_sentence(r: Rates, metric: str, label: str) -> str:
    """`Harmful, yes: 5.5 % [3.5, 8.8]; from tuned 1 % to baseline 14 %.`"""
    rates = {row["group"]: row.estimate for row in r.rows.select("rate", "human", of=label,
                                                                 metric=metric)}  # fmt: skip
    ppi = r.rows.select("rate", "ppi", of=label, metric=metric, judge=_best(r, metric))
    rates |= {row["group"]: row.estimate for row in ppi}

    def text(e: Estimate, *, bare: bool = True) -> str:
        return in_per_cent(e, bare=bare) if _is_rate(label) else f"{e:.2f}"

    sentence = f"{r.titles[metric]}, {label}: {text(rates.pop(ALL), bare=False)}"
    by_value = sorted((e.value, group) for group, e in rates.items() if e.value is not None)
    if len(by_value) > 1:
        (_, low), (_, high) = by_value[0], by_value[-1]
        sentence += f"; from {low} {text(rates[low])} to {high} {text(rates[high])}"
    return f"{sentence}."


def _saved_sentences(r: Rates) -> Iterator[str]:
    """The worth of the verdicts in human labels, metric by metric."""
    for metric, title in r.titles.items():
        judge = _best(r, metric)
        rows = r.rows.select("labels", "saved", metric=metric, judge=judge, group=ALL)
        rows = [row for row in rows if row["of"] in r.main[metric]]
        if rows:
            n = rows[0].estimate.n
            worth = listed([
                f"the rate of {row['of']} as precisely as {n + (row.estimate.value or 0):,.0f}"
                for row in rows
            ])  # fmt: skip
            judges = judge if judge == COMBINED else f"of {judge}"
            yield (
                f"{title}: {n:,.0f} human labels and the verdicts {judges} estimate {worth} human "
                "labels alone."
            )
