"""The presentation of rates: tables for each metric and judge, differences, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from judgebench.rates.analysis import ALL, NOBODY_SAID, Rates
from judgebench.records import Estimate, Row, group_by_key
from judgebench.results.blocks import (
    Block,
    IntervalKind,
    Intervals,
    LabelledInterval,
    ReportSection,
)
from judgebench.results.tables import Cell, Layout, Table, in_per_cent
from judgebench.text import counted, listed

# The valid ways first, and last what a narrow screen may break off.
_WAYS = {"human": "Human labels", "ppi": "PPI++", "verdicts": "Verdicts*",
         "rogan_gladen": "Rogan-Gladen"}  # fmt: skip
_LABELS = {"saved": "Labels saved", "needed": "More labels"}
_LANES: dict[str, IntervalKind] = {"human": "human", "ppi": "judge", "rogan_gladen": "judge",
                               "verdicts": "control"}  # fmt: skip
_OF_VERDICTS = "* The judge's errors are in it: not a valid estimate by itself."
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
_OF_DIFFERENCES = (
    "Intervals hold for all pairs of one label together (Bonferroni), and each label is a test of "
    "its own; answers to the same questions are compared as such."
)
_MOST_PAIRS = 6


def rates_part(r: Rates) -> ReportSection:
    """The part of the rates."""
    whole = [(m, judge, r.labels(m)) for m in r.titles for judge in _judges(r, m) or [""]]
    short = [(metric, _best(r, metric), labels) for metric, labels in r.main.items()]
    compared = (*r.compared, *_nothing_added(r))
    sentences = (*_saved_sentences(r), *_difference_sentences(r))
    paper = {way: heading for way, heading in _WAYS.items() if way != "rogan_gladen"}
    return ReportSection(
        "rates", "how often each label occurs", r.rows,
        (
            Block("Rates of the labels", compared,
                  tuple(_table(r, *of, {**_WAYS, **_LABELS}) for of in whole),
                  tuple(_figure(r, *of) for of in short), asks="what_if", on_screen=True),
            Block("Differences of rates", tables=tuple(_differences_table(r, m) for m in r.titles),
                  folded=True, asks="what_if", on_screen=True),
        ),
        r.notes,
        tuple(r.headline.split(" · ")[1:]) if r.requested else (),
        (
            Block(text=compared),
            Block(tables=tuple(_short_table(r, *of, {**_WAYS, "needed": "More labels"})
                               for of in short)),
            Block(text=sentences),
        ),
        tuple(_short_table(r, *of, paper) for of in short) if r.requested else (),
        r.urgent or tuple(note for note in r.notes if note == NOBODY_SAID and r.requested),
        own_file=True, headline=r.headline,
        answer=" ".join(_rate_sentence(r, m, labels[0]) for m, labels in r.main.items())
        if r.requested else "",
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


# --- tables ---------------------------------------------------------------------------------------


def _rows(
    r: Rates, metric: str, judge: str, labels: Sequence[str], ways: Iterable[str]
) -> list[Row]:
    """The rates and numbers of labels by humans alone and with a judge, of all answers last."""
    rows = [
        row
        for row in r.rows.select(metric=metric)
        if row.analysis != "difference" and row.statistic in ways
        if row["of"] in labels and row.judge in ("", judge)
    ]
    return sorted(rows, key=lambda row: (labels.index(row["of"]), row["group"] == ALL))


def _table(
    r: Rates, metric: str, judge: str, labels: Sequence[str], headings: Mapping[str, str],
    cell: Callable[[Row], Cell] | None = None,
) -> Table:  # fmt: skip
    """A line for each label and group, a column for each way that was measured."""
    rows = _rows(r, metric, judge, labels, headings)
    measured = {row.statistic for row in rows}
    number = [*r.titles].index(metric) + 1, [*_judges(r, metric), ""].index(judge) + 1
    of = f", with the verdicts of {judge}" if judge else ""
    notes = (
        *(_OF_PPI if "ppi" in measured else ()),
        _OF_VERDICTS if "verdicts" in measured else "",
        r.ties.get(metric, ""),
        _OF_INTERVALS,
    )
    key, title = f"rates-{number[0]}-{number[1]}", f"{r.titles[metric]}{of}"
    return Layout(key, title, (_stub(r),), notes, absent=None).of(
        rows,
        lambda row: (_line(r, row),),
        lambda row: headings[row.statistic],
        (heading for way, heading in headings.items() if way in measured),
        cell or _cell,
    )  # fmt: skip


def _short_table(
    r: Rates, metric: str, judge: str, labels: Sequence[str], headings: Mapping[str, str]
) -> Table:
    """The same in per cent, without what the numbers rest on."""
    table = _table(r, metric, judge, labels, headings, _short_cell)
    notes = tuple(note for note in table.notes if note in (_OF_VERDICTS, r.ties.get(metric)))
    return replace(table, key=f"rate-{metric}", notes=notes)


def _stub(r: Rates) -> str:
    return f"Label, {r.by or 'answers'} (labelled)"


def _line(r: Rates, row: Row) -> str:
    """`yes, gpt-4 (20)`: how many of its answers have human labels."""
    keys = {"metric": row.metric, "of": row["of"], "group": row["group"]}
    n = r.rows.find("given", "labels", **keys).value or 0
    return f"{row['of']}, {row['group']} ({n:,.0f})"


def _short_cell(row: Row) -> Cell:
    e = row.estimate
    if row.analysis == "labels" or e.value is None or not _is_rate(row["of"]):
        return _cell(row)
    return Cell(in_per_cent(e, "\n", bare=row.statistic == "verdicts"))


def _cell(row: Row) -> Cell:
    """A rate, `+57 (1.60 ×)` labels saved, or `120` more that are needed."""
    e = row.estimate
    if row.analysis == "rate" or e.value is None:
        return Cell(estimate=e, percent=_is_rate(row["of"]))
    if row.statistic == "needed":
        return Cell(f"{e.value:,.0f}")
    return Cell(f"{e.value:+,.0f} ({1 + e.value / max(1, e.n):.2f} ×)")


def _is_rate(label: str) -> bool:
    """False of a mean, which is no share."""
    return not label.startswith("mean ")


def _differences_table(r: Rates, metric: str) -> Table:
    """Every two groups, by human labels alone and with each judge."""
    title = f"{r.titles[metric]}: differences between {r.by}s"
    key = f"rate_differences-{metric}"
    return Layout(key, title, ("Label", "Between"), (_OF_DIFFERENCES,)).of(
        r.rows.select("difference", metric=metric),
        lambda row: (row["of"], f"{row['group']} - {row['against']}"),
        lambda row: f"With {row.judge}" if row.judge else _WAYS["human"],
        cell=lambda row: Cell(estimate=row.estimate, signed=True, percent=_is_rate(row["of"])),
    )


def _figure(r: Rates, metric: str, judge: str, labels: Sequence[str]) -> Intervals:
    """Labels and groups down, an interval for each way."""
    lines = group_by_key(
        (
            _line(r, row),
            LabelledInterval(_WAYS[row.statistic], _LANES[row.statistic], row.estimate),
        )
        for row in _rows(r, metric, judge, labels, _WAYS)
    )
    return Intervals(
        f"rates_{metric}", r.titles[metric],
        tuple((name, tuple(lanes)) for name, lanes in lines.items()), "Rate with its interval",
        down=_stub(r), counts=False, percent=_is_rate(labels[0]),
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
            both = f"{n:,.0f} human labels and the verdicts of {judge}"
            yield f"{title}: {both} estimate {worth} human labels alone."
