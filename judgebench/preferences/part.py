"""The tables and figures of the preferences wing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from judgebench.preferences.figures import draw_win_rates
from judgebench.preferences.orders import FORMAT_CEILING, THREE_WAY, TIES
from judgebench.preferences.result import Preferences
from judgebench.records import Estimate
from judgebench.results.part import Block, Drawing, Figure, Intervals, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import Cell, Keys, Table, pivot
from judgebench.stats.systems import FEW_SYSTEMS

_SIZES = {"2": "pairs", "3": "triples"}
_WAYS = {"left_out": "", "worst": ", missing as wrong", "best": ", missing as right"}
_SIGNED = ("difference", "pearson", "spearman", "icc", "alpha", "icc_mean", "tau_b")
_SIDES = {"humans": "By humans", "judge": "By the judge", "difference": "Judge minus humans"}
Column = tuple[str, Keys]


def preferences_part(found: Preferences) -> Part:
    """The part; its CSV file is preferences.csv."""
    order = _order_table(found, THREE_WAY)
    real = [name for name, kind in found.judges.items() if kind != "control"]
    places = _by_key(found, "place", "place", "Mean severity by the place in a list", "Place ")
    favoured = (_declared(found, analysis) for analysis in ("longer", "own_system"))
    items = (_declared(found, "item_score", told, failures=way) for way, told in _WAYS.items())
    agreed = "Agreement with the humans on criteria, by "
    criteria = (_by_key(found, "criterion", key, agreed + key, "") for key in ("tag", "criterion"))
    blocks = (
        Block("Several responses", tables=(_summary(order, real),), on_screen=True),
        Block(
            "Responses in order",
            tables=(order, _vote_table(found)),
            figures=tuple(_order_figures(found, real)),
        ),
        Block(
            "Other rules for ties",
            tables=tuple(_order_table(found, ties) for ties in TIES if ties != THREE_WAY),
            folded=True,
        ),
        Block("Scores of single responses", tables=(_declared(found, "response"),)),
        Block("The place of a response", tables=(_declared(found, "position"), places)),
        Block(
            "Systems",
            tables=(_declared(found, "ranking"), *_system_tables(found, "strength")),
            figures=tuple(_system_figures(found, real)),
        ),
        Block("Win rates", tables=tuple(_system_tables(found, "win_rate")), folded=True),
        Block("Length and self-preference", tables=tuple(favoured)),
        Block("Criteria", tables=(*items, *criteria)),
    )
    return Part("preferences", "judges on several responses", found.rows, blocks, found.notes)


def _summary(order: Table, real: Sequence[str]) -> Table:
    """The first numbers of the real judges and the format ceiling, without intervals."""
    shown = [j for j, heading in enumerate(order.columns) if "missing" not in heading]
    rows = tuple(
        tuple(Cell(line[j].value) for j in shown)
        for line in order.rows
        if line[1].text in (*real, FORMAT_CEILING)
    )
    columns = tuple(order.columns[j] for j in shown)
    title = "Responses in the humans' order, ties included"
    return replace(order, key="preferences_summary", title=title, columns=columns, rows=rows)


def _table(
    found: Preferences, frame: Table, analysis: str, columns: Sequence[Column], **fixed: str
) -> Table:
    """A line for each metric and judge, controls and humans last; columns that nobody has a number
    for are left out."""
    rows = [r for r in found.rows.select(analysis) if all(r[k] == v for k, v in fixed.items())]

    def fits(row: Row, keys: Keys) -> bool:
        return all(row[key] == value for key, value in keys.items())

    def cell(keys: Keys) -> Cell:
        wanted = {**keys, **fixed}
        at = wanted.pop("judge"), wanted.pop("metric")
        mine = found.rows.select(analysis, judge=at[0], metric=at[1], **wanted)
        signed = keys.get("statistic") in _SIGNED
        return Cell(estimate=mine[0].estimate, signed=signed) if mine else Cell()

    named = dict.fromkeys((row.metric, row.judge, row["who"]) for row in rows)
    metrics = list(found.titles)
    lines = sorted(named, key=lambda x: (metrics.index(x[0]), x[2], found.is_control(x[1])))
    down = [
        (
            (Cell(found.titles[metric]), Cell(found.shown_name(judge) or who)),
            {"metric": metric, "judge": judge, "who": who},
        )
        for metric, judge, who in lines
    ]
    across = [column for column in columns if any(fits(row, column[1]) for row in rows)]
    frame = replace(frame, columns=("Metric", "Judge"), stubs=2)
    return pivot(frame, down, across, cell)


def _sizes(found: Preferences) -> dict[str, str]:
    sizes = sorted(found.rows.values("size", "order"), key=int)
    return {size: _SIZES.get(size, f"all {size} responses") for size in sizes}


def _order_table(found: Preferences, ties: str) -> Table:
    columns: list[Column] = []
    for size, words in _sizes(found).items():
        for failures, told in _WAYS.items():
            keys = {"statistic": "right", "size": size, "failures": failures}
            columns.append((f"{words.capitalize()} right{told}", keys))
        columns.append((f"{words.capitalize()} by chance", {"statistic": "chance", "size": size}))
        columns.append((f"No order of {words}", {"statistic": "intransitive", "size": size}))
    frame = Table(
        f"preferences_order-{ties}",
        f"Share of pairs and triples in the humans' order: {TIES[ties]}", (),
        notes=(
            "A tuple of responses to one question is right where judge and humans agree on every "
            "two of them. By chance: the same labels dealt out anew among the responses to each "
            "question; of preferences, as often each, whatever the pair. "
            f"{FORMAT_CEILING.capitalize()}: a judge that knows the mean of the humans and answers "
            "with the nearest label. No order: preferences that go round in a circle.",
        ),
    )  # fmt: skip
    return _table(found, frame, "order", columns, ties=ties)


def _order_figures(found: Preferences, real: Sequence[str]) -> Iterator[Figure]:
    """Pairs, triples, … on each metric: the judges, the best control and the format ceiling."""
    lines = []
    for metric in found.rows.values("metric", "order"):
        for size, words in _sizes(found).items():
            keys = {"metric": metric, "size": size, "ties": THREE_WAY, "failures": "left_out"}
            rows = found.rows.select("order", "right", **keys)
            lanes = [Lane(r.judge, "judge", r.estimate) for r in rows if r.judge in real]
            controls = [r.estimate for r in rows if found.is_control(r.judge)]
            if controls:
                best = max(controls, key=lambda e: e.value or 0.0)
                lanes.append(Lane("Best control", "control", best))
            lanes += [Lane(r["who"], "human", r.estimate) for r in rows if r["who"]]
            if rows:
                lines.append((f"{found.titles[metric]}: {words}", tuple(lanes)))
    if lines:
        title = "Share of pairs and triples in the humans' order, with interval"
        yield Intervals(
            "preferences_order", title, tuple(lines), "Share right", down="Metric: tuples"
        )


# analysis -> title, statistic -> heading, what the numbers mean
_DECLARED: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "response": (
        "Scores of single responses",
        {
            "pearson": "Pearson's r", "spearman": "Spearman's ρ", "icc": "ICC(2, 1)",
            "alpha": "Krippendorff's α", "icc_mean": "ICC(2, k)",
        },
        "Each judge's score of a response beside the mean of the humans'; humans: their scores "
        "beside each other. ICC(2, 1): absolute agreement of two raters; α: at level interval.",
    ),
    "position": (
        "Preference for a place",
        {"flipped": "Flipped", "first_place": "First place"},
        "Flipped: the judge prefers another response when the two change places. First place: "
        "share won by the response that was shown first, ties left out; 0.5 without a bias.",
    ),
    "ranking": (
        "Agreement of the judge's and the humans' ranking of systems",
        {"tau_b": "Kendall's τ-b", "spearman": "Spearman's ρ"},
        "Both rankings are by Bradley-Terry strength; n is the number of systems. With fewer than "
        f"{FEW_SYSTEMS} there are so few rankings that agreement says little.",
    ),
    "longer": (
        "Win rate of the longer response",
        _SIDES,
        "On the same pairs, ties half. A judge that favours length is above the humans.",
    ),
    "own_system": (
        "Win rate of the judge's own model",
        _SIDES,
        "The system that has the name of the judge's model. On the same pairs, ties half.",
    ),
    "item_score": (
        "Scores of items by their criteria",
        {**_SIDES, "pearson": "Pearson's r", "icc": "ICC(2, 1)"},
        "The points of the criteria that are met over the positive points, of items with a label "
        "on every criterion. Not cut off at 0, as HealthBench does with the mean of a system.",
    ),
}  # fmt: skip


def _declared(found: Preferences, analysis: str, told: str = "", **fixed: str) -> Table:
    title, headings, note = _DECLARED[analysis]
    key = "-".join(["preferences_" + analysis, *fixed.values()])
    columns = [(heading, {"statistic": key}) for key, heading in headings.items()]
    frame = Table(key, title + told, (), notes=(note,))
    return _table(found, frame, analysis, columns, **fixed)


def _vote_table(found: Preferences) -> Table:
    columns: list[Column] = []
    for ties, words in {"counted": "all votes", "left out": "without ties"}.items():
        for failures, told in _WAYS.items():
            keys = {"statistic": "agreement", "ties": ties, "failures": failures}
            columns.append((f"Agreement, {words}{told}", keys))
        columns.append((f"By chance, {words}", {"statistic": "chance", "ties": ties}))
    note = (
        "Each vote of an annotator counts. Without ties: votes and verdicts that are no tie; a "
        "pair judged differently in its two orders is a tie. Humans: two votes on one pair."
    )
    frame = Table("preferences_votes", "Agreement with each vote", (), notes=(note,))
    return _table(found, frame, "vote", columns)


def _by_key(found: Preferences, analysis: str, key: str, title: str, heading: str) -> Table:
    """A column for each value of a key."""
    values = filter(None, found.rows.values(key, analysis))
    columns = [(f"{heading}{value}", {key: value}) for value in values]
    return _table(found, Table(f"preferences_{key}", title, ()), analysis, columns)


# --- systems --------------------------------------------------------------------------------------


_TITLES = {
    "strength": "Bradley-Terry strength of systems (log, mean 0)",
    "win_rate": "Win rates of systems, ties half",
}


def _system_tables(found: Preferences, analysis: str) -> Iterator[Table]:
    """By metric: the humans beside every judge, and every judge minus the humans."""
    for metric in found.rows.values("metric", analysis):
        for side in ("judge", "difference"):
            rows = found.rows.select(analysis, metric=metric)
            judges = [j for j in found.in_order(analysis, metric) if j]
            across: list[Column] = [
                (found.shown_name(j), {"judge": j, "statistic": side}) for j in judges
            ]
            title = f"{_TITLES[analysis]}: {found.titles[metric]}"
            if side == "judge":
                across.insert(0, ("Humans", {"judge": "", "statistic": "humans"}))
            elif any(row.statistic == side for row in rows):
                title += ", judge minus humans on the same pairs"
            else:
                continue

            def cell(keys: Keys) -> Cell:
                one = found.rows.find(analysis=analysis, **keys)
                return Cell(estimate=one, signed=keys["statistic"] == "difference")

            named = dict.fromkeys((row["system"], row["against"]) for row in rows)
            several = analysis == "win_rate"
            down = [
                (
                    (Cell(system), *([Cell(against or "all others")] if several else [])),
                    {"metric": metric, "system": system, "against": against},
                )
                for system, against in sorted(named, key=lambda pair: pair[1] != "")
            ]
            stubs = ("System", "Against") if several else ("System",)
            frame = Table(f"preferences_{analysis}-{side}-{metric}", title, stubs, stubs=len(stubs))
            yield pivot(frame, down, across, cell)


def _system_figures(found: Preferences, real: Sequence[str]) -> Iterator[Figure]:
    measured = found.rows.values("metric", "strength")
    for metric in [m for m in measured if m in found.drawn] or measured[:1]:
        title = found.titles[metric]
        rows = [r for r in found.rows.select("strength", metric=metric) if r.judge in ("", *real)]
        mine = {
            (r.judge, r["system"]): r.estimate
            for r in rows
            if r.judge == "" or r.statistic == "judge"
        }
        systems = [r["system"] for r in rows if not r.judge]
        systems.sort(key=lambda s: -(mine["", s].value or 0.0))
        names = list(dict.fromkeys(judge for judge, _ in mine))
        lines = tuple(
            (
                system,
                tuple(
                    Lane(judge or "Humans", "judge" if judge else "human", mine[judge, system])
                    for judge in names
                ),
            )
            for system in systems
        )
        yield Intervals(
            f"preferences_strength-{metric}", f"Bradley-Terry strength of systems: {title}", lines,
            "Log strength with interval", limits=_around(mine.values()), down="System",
        )  # fmt: skip
        judges = [judge for judge in names if judge]
        yield Drawing(
            f"preferences_win_rates-{metric}", f"Win rates by humans and by each judge: {title}",
            partial(draw_win_rates, found.rows, metric, systems, judges),
        )  # fmt: skip


def _around(estimates: Iterable[Estimate]) -> tuple[float, float]:
    ends = [x for e in estimates for x in (e.value, e.low, e.high) if x is not None]
    return min(ends, default=-1.0) - 0.1, max(ends, default=1.0) + 0.1
