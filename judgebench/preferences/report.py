"""The presentation of preferences: tables declared as data, and win rates drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judgebench.preferences.analysis import FORMAT_CEILING, Preferences
from judgebench.records import Row, group_by_key
from judgebench.results.blocks import (
    Block,
    Intervals,
    LabelledInterval,
    ReportSection,
)
from judgebench.results.tables import Layout, Table
from judgebench.stats.ranks import FEW_SYSTEMS

_STUBS = {
    "metric": "Metric", "judge": "Judge", "size": "Order of", "ties": "Votes", "place": "Place",
    "tag": "Tag", "criterion": "Criterion", "system": "System", "against": "Against",
}  # fmt: skip
_WORDS = {
    "size": {"2": "pairs", "3": "triples"},
    "ties": {"counted": "all", "left out": "without ties"},
    "against": {"": "all others"},
}
_POLICIES = {"worst": ", missing as wrong", "best": ", missing as right"}
_HEADINGS = {
    "right": "Right", "chance": "By chance", "intransitive": "No order", "agreement": "Agreement",
    "humans": "By humans", "judge": "By the judge", "difference": "Judge minus humans",
    "pearson": "Pearson's r", "spearman": "Spearman's ρ", "icc": "ICC(2, 1)",
    "alpha": "Krippendorff's α", "tau_b": "Kendall's τ-b", "flipped": "Flipped",
    "changed": "Changed", "first_place": "First place", "severity": "Mean label",
}  # fmt: skip
_SIGNED = ("difference", "pearson", "spearman", "icc", "alpha", "tau_b")
_JUDGES = ("metric", "judge")


@dataclass(frozen=True)
class TableSpec:
    """The declaration of a table: of the rows of an analysis those with all keys in `down`, which
    name its lines; a column for each statistic or, where the judge is not among them, for humans
    and each judge."""

    analysis: str
    title: str
    down: tuple[str, ...] = _JUDGES
    notes: tuple[str, ...] = ()


_ORDER = TableSpec(
    "order",
    "Share of pairs and triples in the humans' order: a tie must be answered by a tie",
    (*_JUDGES, "size"),
    (
        "A tuple of responses to one question is right where judge and humans agree on every two "
        "of them. By chance: the same labels dealt out anew among the responses to each question; "
        f"of preferences, as often each, whatever the pair. {FORMAT_CEILING.capitalize()}: a judge "
        "that knows the mean of the humans and answers with the nearest label. No order: "
        "preferences that go round in a circle.",
    ),
)
_VOTES = TableSpec(
    "vote",
    "Agreement with each vote",
    (*_JUDGES, "ties"),
    (
        "Each vote of an annotator counts. Without ties: votes and verdicts that are no tie; a "
        "pair judged differently in its two orders is a tie. Humans: two votes on one pair.",
    ),
)
_RESPONSES = TableSpec(
    "response",
    "Scores of single responses",
    notes=(
        "Each judge's score of a response beside the mean of the humans'; humans: their scores "
        "beside each other. ICC(2, 1): absolute agreement of two raters; α: at level interval.",
    ),
)
_POSITIONS = TableSpec(
    "position",
    "Preference for a place",
    notes=(
        "Flipped: the judge prefers another response when the two change places; changed: it says "
        "anything else, a tie among them. First place: share won by the response that was shown "
        "first, ties left out; 0.5 without a bias.",
    ),
)
_RANKINGS = TableSpec(
    "ranking",
    "Agreement of the judge's and the humans' ranking of systems",
    notes=(
        "Both rankings are by Bradley-Terry strength; n is the number of systems. With fewer than "
        f"{FEW_SYSTEMS} there are so few rankings that agreement says little.",
    ),
)
_LONGER = TableSpec(
    "longer",
    "Win rate of the longer response",
    notes=("On the same pairs, ties half. A judge that favours length is above the humans.",),
)
_OWN_SYSTEM = TableSpec(
    "own_system",
    "Win rate of the judge's own model",
    notes=("The system that has the name of the judge's model. On the same pairs, ties half.",),
)
_ITEM_SCORES = TableSpec(
    "item_score",
    "Scores of items by their criteria",
    notes=(
        "The points of the criteria that are met over the positive points, of items with a label "
        "on every criterion. Not cut off at 0, as HealthBench does with the mean of a system.",
    ),
)
_SYSTEMS = ("metric", "system")
_ON_SAME_PAIRS = ("Judge minus humans: on the pairs to which the judge gave a label.",)
_BLOCKS: Mapping[str, Sequence[TableSpec]] = {
    "Responses in order": [_ORDER],
    "Agreement with votes": [_VOTES],
    "Scores of single responses": [_RESPONSES],
    "The place of a response": [
        _POSITIONS,
        TableSpec("place", "Mean label, as a number, by the place in a list", (*_JUDGES, "place")),
    ],
    "Systems": [
        _RANKINGS,
        TableSpec("strength", "Bradley-Terry strength of systems (log, mean 0)", _SYSTEMS),
    ],
    "Win rates": [
        TableSpec("win_rate", "Win rates of systems, ties half", (*_SYSTEMS, "against"),
                  _ON_SAME_PAIRS),
    ],
    "Length and self-preference": [_LONGER, _OWN_SYSTEM],
    "Criteria": [
        _ITEM_SCORES,
        TableSpec("criterion", "Agreement with the humans on criteria, by tag", (*_JUDGES, "tag")),
        TableSpec("criterion", "Agreement with the humans on criteria, by criterion",
                  (*_JUDGES, "criterion")),
    ],
}  # fmt: skip


def preferences_part(p: Preferences) -> ReportSection:
    """The part."""
    figures = {"Systems": tuple(_win_rates(p))}
    first = Block("Several responses", tables=(_brief(p),), on_screen=True)
    blocks = []
    for heading, specs in _BLOCKS.items():
        tables = tuple(_table(p, spec, p.rows.select(spec.analysis)) for spec in specs)
        blocks.append(Block(heading, tables=tables, figures=figures.get(heading, ())))
    return ReportSection(
        "preferences", "judges on several responses", p.rows, (first, *blocks), p.notes
    )


def _table(p: Preferences, spec: TableSpec, rows: Sequence[Row]) -> Table:
    """The table, by metric; baselines and humans come last."""
    by_judge = "judge" not in spec.down
    rows = [
        row for row in rows
        if {*spec.down} - {"judge", "against"} <= {"metric", *row.keys}
        and not (by_judge and row.judge and row.statistic == "humans")
    ]  # fmt: skip
    metrics = [*p.titles]
    rows.sort(key=lambda row: (metrics.index(row.metric), row["who"], p.is_control(row.judge)))

    def name(row: Row, key: str) -> str:
        if key == "metric":
            return p.titles[row.metric]
        if key == "judge":
            return p.shown_name(row.judge) or row["who"]
        return _WORDS.get(key, {}).get(row[key], row[key])

    def column(row: Row) -> str:
        if by_judge:
            beyond = " − humans" if row.statistic == "difference" else ""
            return f"{p.shown_name(row.judge) or 'Humans'}{beyond}"
        return _HEADINGS[row.statistic] + _POLICIES.get(row["failures"], "")

    key = f"preferences_{spec.analysis if spec.analysis != 'criterion' else spec.down[-1]}"
    stubs = tuple(_STUBS[key] for key in spec.down)
    return Layout(key, spec.title, stubs, spec.notes, signed=_SIGNED).of(
        rows, lambda row: [name(row, key) for key in spec.down], column
    )


def _brief(p: Preferences) -> Table:
    """The table of the order for a screen: pairs and triples beside chance, without baselines."""
    rows = [
        row
        for row in p.rows.select("order")
        if not p.is_control(row.judge)
        and row["size"] in _WORDS["size"]
        and row.statistic in ("right", "chance")
        and row["failures"] not in _POLICIES
    ]
    return replace(_table(p, _ORDER, rows), key="preferences_brief")


def _win_rates(p: Preferences) -> Iterator[Intervals]:
    """Each system against all others, by the humans and by each judge: of preferences and
    composites, or of the first metric alone."""
    measured = p.rows.values("metric", "win_rate")
    for metric in [m for m in measured if m in p.drawn] or measured[:1]:
        lines = group_by_key(
            (row["system"], _lane(row))
            for row in p.rows.select("win_rate", metric=metric, against="")
            if row.statistic == ("judge" if row.judge else "humans") and not p.is_control(row.judge)
        )
        yield Intervals(
            f"preferences_win_rates-{metric}",
            f"Win rates by humans and by each judge: {p.titles[metric]}",
            tuple((system, tuple(lanes)) for system, lanes in lines.items()),
            "Share won against all other systems, ties half",
            down="System",
        )


def _lane(row: Row) -> LabelledInterval:
    if row.judge:
        return LabelledInterval(row.judge, "judge", row.estimate)
    return LabelledInterval("Humans", "human", row.estimate)
