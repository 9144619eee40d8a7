"""The presentation of rates: a table for each metric and judge, differences, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judgebench.rates.population import COMBINED
from judgebench.rates.result import ALL, WAYS, Rates
from judgebench.records import Estimate
from judgebench.results.layout import Content, Keys, Layout
from judgebench.results.part import Block, Intervals, Lane, LaneKind, Part
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, in_per_cent
from judgebench.words import counted, listed

_SAVED = "Labels saved"
_NOT_NEEDED = "not needed: all of these answers have a human label"
_OF_VERDICTS = (
    "Verdicts alone: the judge's own labels, with its errors, so that their interval does not "
    "hold the true rate."
)
_OF_PPI = (
    "Use PPI++ where it has an interval, else human labels alone; never verdicts alone.",
    f"{_OF_VERDICTS} PPI++ and Rogan-Gladen remove these errors as far as the answers with human "
    "labels show them.",
    "Labels saved: how many more human labels would reach the precision of PPI++ without the "
    "verdicts, and how many times as many that is; an estimate without an interval. Negative where "
    "the verdicts do harm.",
)
_OF_INTERVALS = (
    "The intervals are for answers such as these; for the rate among just these answers they are "
    "on the wide side."
)
_SHORT = "* The judge's errors are in it: not a valid estimate by itself."
# The valid ways first, and last what a narrow screen may break off.
_HEADS = {"human": "Human labels", "ppi": "PPI++", "verdicts": "Verdicts*",
          "rogan_gladen": "Rogan-Gladen"}  # fmt: skip
_MOST_PAIRS = 6
_LANES: dict[str, LaneKind] = {"human": "human", "ppi": "judge", "rogan_gladen": "judge",
                               "verdicts": "control"}  # fmt: skip


def rates_part(r: Rates) -> Part:
    """The part of the rates."""
    whole = tuple(rates_table(r, m, judge) for m in r.titles for judge in _voices(r, m))
    short = tuple(short_table(r, m, label) for m in r.titles for label in r.main[m])
    paper = tuple(short_table(r, m, r.main[m][0], paper=True) for m in r.titles)
    figures = tuple(f for m in r.titles for f in _figures(r, m))
    apart = tuple(differences_tables(r))
    what_if: Mapping[str, Any] = {"asks": "what_if", "on_screen": True}
    blocks = (
        Block("Rates of the labels", tuple(r.compared), whole, figures, **what_if),
        Block("Differences of rates", tables=apart, folded=True, **what_if),
    )
    alone = (_SHORT,) if r.found.select("rate", "verdicts") else ()
    said = (*_in_words(r), *_differ(r), *alone)
    screen = (Block(text=tuple(r.compared)), Block(tables=short), Block(text=said))
    return Part(
        "rates", "how often each label occurs", r.found, blocks, r.notes,
        tuple(r.headline.removeprefix(f"{r.name} · ").split(" · ")) if r.asked else (), screen,
        paper if r.asked else (),
        r.urgent, own_file=True, headline=r.headline, answer=_answer(r) if r.asked else "",
    )  # fmt: skip


def short_table(r: Rates, metric: str, label: str, *, paper: bool = False) -> Table:
    """One label in per cent: groups down, the ways across, with the judge that helps most; on
    `paper` without Rogan-Gladen, to fit a column."""
    judge = _best(r, metric)
    ways = [way for way in WAYS if way == "human" or _measured(r, metric, judge, way)]
    left_out = ("rogan_gladen",) if paper else ()
    shown = [way for way in _HEADS if way in ways and way not in left_out]
    across = [(_HEADS[way], {"way": way}) for way in shown]
    if r.width is not None and "ppi" in ways:
        across.insert(3, ("More labels", {"way": "needed"}))

    def cell(keys: Keys) -> Content:
        way = keys["way"]
        if way == "needed":
            return _cell(r, judge, keys)
        about = {key: value for key, value in keys.items() if key != "way"}
        e = r.found.find(way, "rate", judge="" if way == "human" else judge, **about)
        if label.startswith("mean "):
            return Cell(estimate=e)
        text = in_per_cent(e, " " if paper else "\n", bare=way == "verdicts")
        return Cell(text, remark=f"undefined: {e.reason}" if e.value is None else "")

    lines = [
        ((_counted(r, metric, label, group),), {"metric": metric, "of": label, "group": group})
        for group in _groups(r, metric)
    ]
    number = list(r.titles).index(metric) + 1, r.main[metric].index(label) + 1
    head = f"{(r.by or 'answers').capitalize()} (labelled)"
    key, title = f"rate-{number[0]}-{number[1]}", _heading(r, metric, label)
    notes = (_SHORT,) if paper else ()
    return Layout(key, title, (head,), notes).crossed(lines, across, cell)


def _heading(r: Rates, metric: str, label: str) -> str:
    """`Harm: grave`, with the judge whose verdicts are shown where there are several."""
    shown, judges = _best(r, metric), [j for j in _voices(r, metric) if j != COMBINED]
    of = f", with the verdicts of {shown}" if judges[1:] else ""
    of += f" (of {len(judges)})" if judges[1:] and shown != COMBINED else ""
    return f"{r.titles[metric]}: {label}{of}"


def _differ(r: Rates) -> Iterator[str]:
    """The groups that differ for certain, label by label."""
    for metric, title in r.titles.items():
        for label in r.main[metric]:
            rows = r.found.select("difference", metric=metric, judge=_best(r, metric), of=label)
            certain = [_ordered(row) for row in rows if _certain(row.estimate)]
            more = len(certain) - _MOST_PAIRS
            if rows:
                said = "; ".join(certain[:_MOST_PAIRS]) or f"no two {r.by}s are shown to differ"
                said += f" and {more} more" if more > 0 else ""
                rates = {row["of"] for row in r.found.select("difference", metric=metric)}
                tests = len([of for of in rates if not of.startswith("mean ")])
                # Of two labels the rates are one, seen from both sides.
                within = f" within each of {tests} rates" if tests > 2 else ""
                pairs = f"{counted(len(rows), 'pair')}{within}"
                yield f"{title}, {label}: {said} (corrected for {pairs})."


def _ordered(row: Row) -> str:
    """`b > a`: the group with the higher rate first."""
    rises = (row.estimate.value or 0.0) > 0
    a, b = row["group"], row["against"]
    return f"{a} > {b}" if rises else f"{b} > {a}"


def _groups(r: Rates, metric: str) -> list[str]:
    """The groups, all answers last."""
    found = list(dict.fromkeys(row["group"] for row in r.found.select("rate", metric=metric)))
    return [*(group for group in found if group != ALL), ALL]


def _voices(r: Rates, metric: str) -> list[str]:
    """The judges, and all together, that said something of a metric; "" without any."""
    found = [j for j in r.found.values("judge", "rate") if j]
    there = [j for j in found if r.found.select("rate", judge=j, metric=metric)]
    return there or [""]


def _best(r: Rates, metric: str) -> str:
    """The judge whose verdicts save the most labels over all answers: of the labels on a screen."""

    def saved(judge: str) -> float:
        found = [
            r.found.find("saved", "labels", judge=judge, metric=metric, of=of, group=ALL).value
            for of in r.main[metric]
        ]
        return sum(x for x in found if x is not None)

    return max(_voices(r, metric), key=saved)


def rates_table(r: Rates, metric: str, judge: str) -> Table:
    """A line for each label and group, a column for each way."""
    labels = list(dict.fromkeys(row["of"] for row in r.found.select("rate", metric=metric)))
    lines = [
        ((label, *([_counted(r, metric, label, group)] if r.by else [])),
         {"metric": metric, "of": label, "group": group})
        for label in labels
        for group in _groups(r, metric)
    ]  # fmt: skip
    ways = [way for way in WAYS if way == "human" or _measured(r, metric, judge, way)]
    across = [(WAYS[way], {"way": way}) for way in ways]
    if "ppi" in ways:
        across.append((_SAVED, {"way": "saved"}))
    if r.width is not None and "ppi" in ways:
        across.append((f"More labels for a width of {r.width:g}", {"way": "needed"}))
    of = f", with the verdicts of {judge}" if judge else ""
    stubs = ("Label", r.by.capitalize()) if r.by else ("Label",)
    number = list(r.titles).index(metric) + 1, _voices(r, metric).index(judge) + 1
    key, title = f"rates-{number[0]}-{number[1]}", f"{r.titles[metric]}: rates{of}"
    of_ways = _OF_PPI if "ppi" in ways else (_OF_VERDICTS,) if "verdicts" in ways else ()
    return Layout(key, title, stubs, (*of_ways, _OF_INTERVALS)).crossed(
        lines, across, lambda k: _cell(r, judge, k)
    )


def _measured(r: Rates, metric: str, judge: str, way: str) -> bool:
    return bool(r.found.select("rate", way, metric=metric, judge=judge))


def _counted(r: Rates, metric: str, label: str, group: str) -> str:
    """`gpt-4 (20)`: how many of its answers have human labels."""
    given = r.found.find("given", "labels", metric=metric, of=label, group=group)
    return f"{group} ({given.value or 0:,.0f})"


def _cell(r: Rates, judge: str, keys: Keys) -> Content:
    about = {key: value for key, value in keys.items() if key != "way"}
    way = keys["way"]
    percent = not keys["of"].startswith("mean ")
    if way == "human":
        return Cell(estimate=r.found.find("human", "rate", **about), percent=percent)
    about["judge"] = judge
    if way in ("saved", "needed"):
        return _labels_cell(r, way, about)
    found = r.found.find(way, "rate", **about)
    if not r.found.select("rate", way, **about):
        return Cell(DASH, remark=_NOT_NEEDED)
    return Cell(estimate=found, percent=percent)


def _labels_cell(r: Rates, way: str, about: Keys) -> Cell:
    """`+57 (1.60 ×)` labels saved, or `120` more that are needed."""
    if not r.found.select("labels", way, **about):
        ppi = r.found.select("rate", "ppi", **about)
        reason = f"undefined: {ppi[0].estimate.reason or NO_REASON}" if ppi else _NOT_NEEDED
        return Cell(DASH, remark=reason)
    e = r.found.find(way, "labels", **about)
    if e.value is None:
        return Cell(DASH, remark=f"undefined: {e.reason}")
    if way == "needed":
        return Cell(f"{e.value:,.0f}")
    shown = "0" if abs(e.value) < 0.5 else f"{e.value:+,.0f}"
    return Cell(f"{shown} ({1 + e.value / e.n:.2f} ×)") if e.n else Cell(shown)


def differences_tables(r: Rates) -> Iterator[Table]:
    """A table for each metric: every two groups, by human labels alone and with each judge."""
    for number, (metric, title) in enumerate(r.titles.items(), start=1):
        note = (
            "Intervals hold for all pairs of one label together (Bonferroni), and each label is a "
            "test of its own; answers to the same questions are compared as such."
        )
        layout = Layout(
            f"rate_differences-{number}", f"{title}: differences between {r.by}s",
            ("Label", "Between"), (note,),
        )  # fmt: skip
        yield layout.of(
            r.found.select("difference", metric=metric),
            lambda row: (row["of"], f"{row['group']} - {row['against']}"),
            lambda row: f"With {row.judge}" if row.judge else WAYS["human"],
            cell=lambda row: Cell(
                estimate=row.estimate, signed=True, percent=not row["of"].startswith("mean ")
            ),
        )


def _certain(e: Estimate) -> bool:
    """True where the interval does not hold 0."""
    return e.low is not None and e.high is not None and not e.low <= 0 <= e.high


def _figures(r: Rates, metric: str) -> Iterator[Intervals]:
    """One for each label on the screen: groups down, an interval for each way."""
    judge = _best(r, metric)
    for number, label in enumerate(r.main[metric], start=1):
        lines = []
        rows = r.found.select("rate", metric=metric, of=label)
        for group in _groups(r, metric):
            lanes = [
                Lane(WAYS[row.statistic], _LANES[row.statistic], row.estimate)
                for way in WAYS
                for row in rows
                if row["group"] == group and row.statistic == way and row.judge in ("", judge)
            ]
            about = {"metric": metric, "of": label, "group": group}
            n = r.found.find("given", "labels", **about)
            lines.append((f"{group}: {n.value or 0:,.0f} of {n.n:,} labelled", tuple(lanes)))
        yield Intervals(
            f"rates_{metric}-{number}", _heading(r, metric, label), tuple(lines),
            "Rate with its interval", down=(r.by or "answers").capitalize(), counts=False,
            percent=not label.startswith("mean "),
        )  # fmt: skip


def _answer(r: Rates) -> str:
    """The rate of the first label of each metric, of all answers and of the extreme groups."""
    return " ".join(_rate_in_words(r, metric, labels[0]) for metric, labels in r.main.items())


def _rate_in_words(r: Rates, metric: str, label: str) -> str:
    """`Harmful, yes: 5.5 % [3.5, 8.8]; from tuned 1 % to baseline 14 %.`"""
    judge = _best(r, metric)

    def found(group: str) -> Estimate:
        about = {"metric": metric, "of": label, "group": group}
        ppi = r.found.select("rate", "ppi", judge=judge, **about)
        return ppi[0].estimate if ppi else r.found.find("human", "rate", **about)

    def shown(e: Estimate, *, bare: bool = False) -> str:
        return f"{e:.2f}" if label.startswith("mean ") else in_per_cent(e, bare=bare)

    groups = {group: found(group) for group in _groups(r, metric) if group != ALL}
    values = {group: e.value for group, e in groups.items() if e.value is not None}
    said = f"{r.titles[metric]}, {label}: {shown(found(ALL))}"
    if len(values) > 1:
        low, high = (f(values, key=values.__getitem__) for f in (min, max))
        said += f"; from {low} {shown(groups[low], bare=True)}"
        said += f" to {high} {shown(groups[high], bare=True)}"
    return f"{said}."


def _in_words(r: Rates) -> Iterator[str]:
    """The worth of the verdicts in human labels, metric by metric."""
    for metric, title in r.titles.items():
        judge = _best(r, metric)
        given = r.found.select("labels", "given", metric=metric, group=ALL)
        about = {"judge": judge, "metric": metric, "group": ALL}
        found = {of: r.found.find("saved", "labels", of=of, **about) for of in r.main[metric]}
        saved = [(of, e.value) for of, e in found.items() if e.value is not None]
        if not given or not saved:
            continue
        n = given[0].estimate.value or 0.0
        worth = listed([f"the rate of {of} as precisely as {n + x:,.0f}" for of, x in saved])
        who = "of all judges together" if judge == COMBINED else f"of {judge}"
        yield (
            f"{title}: {n:,.0f} human labels and the verdicts {who} estimate {worth} human labels "
            "alone."
        )
