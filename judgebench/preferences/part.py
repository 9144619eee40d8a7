"""The tables and figures of the preferences wing.

Win-rate matrices side by side: by the humans and by each judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from judgebench.preferences.measure import Preferences
from judgebench.preferences.orders import FORMAT_CEILING
from judgebench.results.figure import SMALL, ink_on, new_figure
from judgebench.results.layout import Layout
from judgebench.results.part import Block, Drawing, Part
from judgebench.results.rows import Results, Row
from judgebench.results.tables import DASH, Table
from judgebench.stats.arrays import FloatArray
from judgebench.stats.ranks import FEW_SYSTEMS
from judgebench.words import wrapped

_WIDTH = 9.0  # inches, what a page shows without scrolling


def draw_win_rates(
    rows: Results, metric: str, systems: Sequence[str], judges: Sequence[str]
) -> Any:
    """A panel for the humans and one for each judge; in a cell how often the system of the line
    wins against that of the column, ties half."""
    panels = ["", *judges]
    size, longest = 0.37 * max(4, len(systems)), 0.075 * max(map(len, systems))
    across = min(len(panels), max(2, int((_WIDTH - longest) / (size + 0.3))))
    down = -(-len(panels) // across)
    figure = new_figure(across * (size + 0.3) + longest, down * (size + longest + 0.5) + 0.5)
    grid = figure.subplots(down, across, squeeze=False)
    for number, (axes, judge) in enumerate(zip(grid.flat, panels, strict=False)):
        values = _matrix(rows, metric, systems, judge)
        image = axes.imshow(values, cmap="PuOr", vmin=0, vmax=1, aspect="auto")
        axes.set_facecolor("#eeeeee")
        for i, j in zip(*np.nonzero(~np.eye(len(systems), dtype=bool)), strict=True):
            value = values[i, j]
            text = DASH if np.isnan(value) else f"{value:.2f}"
            ink = "black" if np.isnan(value) else ink_on(image.to_rgba(value)[:3])
            axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=ink)
        axes.set_title(wrapped(judge or "Humans", 24), fontsize=10)
        axes.set_xticks(range(len(systems)), systems, rotation=90)
        axes.set_yticks(range(len(systems)), systems if number % across == 0 else [])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    told = f"Share won by the line against the column, ties half; {DASH}: not compared"
    figure.supxlabel(wrapped(told, int(13 * figure.get_figwidth())), fontsize=9)
    return figure


def _matrix(rows: Results, metric: str, systems: Sequence[str], judge: str) -> FloatArray:
    place = {system: i for i, system in enumerate(systems)}
    values = np.full((len(systems), len(systems)), np.nan)
    side = "judge" if judge else "humans"
    for row in rows.select("win_rate", side, judge=judge, metric=metric):
        if row["against"] and row.estimate.value is not None:
            i, j = place[row["system"]], place[row["against"]]
            values[i, j], values[j, i] = row.estimate.value, 1 - row.estimate.value
    return values


_SIZES = {"2": "pairs", "3": "triples"}
_WAYS = {"": "", "left_out": "", "worst": ", missing as wrong", "best": ", missing as right"}
_TIES = {"counted": "all votes", "left out": "without ties"}
_SIGNED = ("difference", "pearson", "spearman", "icc", "alpha", "tau_b")
_HEADINGS = {
    "humans": "By humans{failures}", "judge": "By the judge{failures}",
    "difference": "Judge minus humans{failures}",
    "pearson": "Pearson's r{failures}", "spearman": "Spearman's ρ", "icc": "ICC(2, 1){failures}",
    "alpha": "Krippendorff's α", "tau_b": "Kendall's τ-b",
}  # fmt: skip
_JUDGES = ("Metric", "Judge")
_DECLARED: Mapping[str, Layout] = {
    "order": Layout(
        "preferences_order",
        "Share of pairs and triples in the humans' order: a tie must be answered by a tie",
        _JUDGES,
        (
            "A tuple of responses to one question is right where judge and humans agree on every "
            "two of them. By chance: the same labels dealt out anew among the responses to each "
            "question; of preferences, as often each, whatever the pair. "
            f"{FORMAT_CEILING.capitalize()}: a judge that knows the mean of the humans and answers "
            "with the nearest label. No order: preferences that go round in a circle.",
        ),
        headings={
            "right": "{size} right{failures}",
            "chance": "{size} by chance",
            "intransitive": "No order of {size}",
        },
    ),
    "vote": Layout(
        "preferences_vote",
        "Agreement with each vote",
        _JUDGES,
        (
            "Each vote of an annotator counts. Without ties: votes and verdicts that are no tie; "
            "a pair judged differently in its two orders is a tie. Humans: two votes on one pair.",
        ),
        headings={"agreement": "Agreement, {ties}{failures}", "chance": "By chance, {ties}"},
    ),
    "response": Layout(
        "preferences_response",
        "Scores of single responses",
        _JUDGES,
        (
            "Each judge's score of a response beside the mean of the humans'; humans: their "
            "scores beside each other. ICC(2, 1): absolute agreement of two raters; α: at level "
            "interval.",
        ),
        headings=_HEADINGS,
    ),
    "position": Layout(
        "preferences_position",
        "Preference for a place",
        _JUDGES,
        (
            "Flipped: the judge prefers another response when the two change places; changed: it "
            "says anything else, a tie among them. First place: share won by the response that "
            "was shown first, ties left out; 0.5 without a bias.",
        ),
        headings={"flipped": "Flipped", "changed": "Changed", "first_place": "First place"},
    ),
    "place": Layout(
        "preferences_place", "Mean label, as a number, by the place in a list", _JUDGES,
        headings={"severity": "Place {place}"},
    ),
    "ranking": Layout(
        "preferences_ranking",
        "Agreement of the judge's and the humans' ranking of systems",
        _JUDGES,
        (
            "Both rankings are by Bradley-Terry strength; n is the number of systems. With fewer "
            f"than {FEW_SYSTEMS} there are so few rankings that agreement says little.",
        ),
        headings=_HEADINGS,
    ),
    "longer": Layout(
        "preferences_longer",
        "Win rate of the longer response",
        _JUDGES,
        ("On the same pairs, ties half. A judge that favours length is above the humans.",),
        headings=_HEADINGS,
    ),
    "own_system": Layout(
        "preferences_own_system",
        "Win rate of the judge's own model",
        _JUDGES,
        ("The system that has the name of the judge's model. On the same pairs, ties half.",),
        headings=_HEADINGS,
    ),
    "item_score": Layout(
        "preferences_item_score",
        "Scores of items by their criteria",
        _JUDGES,
        (
            "The points of the criteria that are met over the positive points, of items with a "
            "label on every criterion. Not cut off at 0, as HealthBench does with the mean of a "
            "system.",
        ),
        headings=_HEADINGS,
    ),
    "criterion": Layout(
        "preferences_{by}", "Agreement with the humans on criteria, by {by}", _JUDGES,
        headings={"agreement": "{tag}{criterion}"},
    ),
    "strength": Layout(
        "preferences_strength", "Bradley-Terry strength of systems (log, mean 0)", ("System",)
    ),
    "win_rate": Layout(
        "preferences_win_rate", "Win rates of systems, ties half", ("System", "Against")
    ),
}  # fmt: skip


def preferences_part(found: Preferences) -> Part:
    """The part."""
    criteria = (_table(found, "criterion", tag=""), _table(found, "criterion", criterion=""))
    blocks = (
        Block("Several responses", tables=(_brief(found),), on_screen=True),
        Block("Responses in order", tables=(_table(found, "order"),)),
        Block("Agreement with votes", tables=(_table(found, "vote"),)),
        Block("Scores of single responses", tables=(_table(found, "response"),)),
        Block(
            "The place of a response",
            tables=(_table(found, "position"), _table(found, "place")),
        ),
        Block(
            "Systems",
            tables=(_table(found, "ranking"), *_system_tables(found, "strength")),
            figures=tuple(_win_rates(found)),
        ),
        Block("Win rates", tables=tuple(_system_tables(found, "win_rate")), folded=True),
        Block(
            "Length and self-preference",
            tables=(_table(found, "longer"), _table(found, "own_system")),
        ),
        Block("Criteria", tables=(_table(found, "item_score"), *criteria)),
    )
    return Part("preferences", "judges on several responses", found.rows, blocks, found.notes)


def _table(found: Preferences, analysis: str, **fixed: str) -> Table:
    """The rows with these keys: a line for each metric and judge, controls and humans last, and a
    column for each other key."""
    declared, metrics, ways = _DECLARED[analysis], list(found.titles), list(_WAYS)

    def column(row: Row) -> str:
        size = _SIZES.get(row["size"], f"all {row['size']} responses")
        words = {
            "size": size, "failures": _WAYS[row["failures"]], "ties": _TIES.get(row["ties"], ""),
            **{key: row[key] for key in ("place", "tag", "criterion")},
        }  # fmt: skip
        heading = declared.headings[row.statistic].format(**words)
        return heading[:1].upper() + heading[1:] if row["size"] else heading

    rows = found.rows.select(analysis, **fixed)
    rows.sort(
        key=lambda row: (
            int(row["size"] or row["place"] or 0), row["ties"],
            list(declared.headings).index(row.statistic), ways.index(row["failures"]),
        )
    )  # fmt: skip
    in_lines = sorted(
        rows, key=lambda row: (metrics.index(row.metric), row["who"], found.is_control(row.judge))
    )
    by = "tag" if "criterion" in fixed else "criterion"
    key, title = declared.key.format(by=by), declared.title.format(by=by)
    return replace(declared, key=key, title=title, signed=_SIGNED).of(
        in_lines,
        lambda row: (found.titles[row.metric], found.shown_name(row.judge) or row["who"]),
        column,
        map(column, rows),
    )


def _brief(found: Preferences) -> Table:
    """The table of the order for a screen: pairs and triples beside chance, without controls."""
    kept = [
        row
        for row in found.rows.select("order")
        if not found.is_control(row.judge)
        and row["size"] in _SIZES
        and row.statistic in ("right", "chance")
        and row["failures"] in ("", "left_out")
    ]
    table = _table(replace(found, rows=Results(tuple(kept))), "order")
    return replace(table, key="preferences_brief")


def _system_tables(found: Preferences, analysis: str) -> Iterator[Table]:
    """By metric: the humans beside every judge, and every judge minus the humans."""
    declared = _DECLARED[analysis]

    def line(row: Row) -> tuple[str, ...]:
        return (row["system"], row["against"] or "all others")[: len(declared.stubs)]

    for metric in found.rows.values("metric", analysis):
        every = found.rows.select(analysis, metric=metric)
        every.sort(key=lambda row: (row["against"] != "", found.is_control(row.judge)))
        title = f"{declared.title}: {found.titles[metric]}"
        beyond = ", judge minus humans on the same pairs"
        for side, more in {"judge": "", "difference": beyond}.items():
            rows = [r for r in every if r.statistic == side or (not r.judge and side == "judge")]
            yield replace(
                declared, key=f"{declared.key}-{side}-{metric}", title=title + more, signed=_SIGNED
            ).of(rows, line, lambda row: found.shown_name(row.judge) or "Humans")


def _win_rates(found: Preferences) -> Iterator[Drawing]:
    """Of preferences and composites, or of the first metric alone."""
    measured = found.rows.values("metric", "strength")
    for metric in [m for m in measured if m in found.drawn] or measured[:1]:
        strengths = found.rows.select("strength", "humans", judge="", metric=metric)
        strengths.sort(key=lambda row: -(row.estimate.value or 0.0))
        judged = found.rows.select("win_rate", "judge", metric=metric)
        judges = dict.fromkeys(row.judge for row in judged)
        real = [judge for judge in judges if not found.is_control(judge)]
        yield Drawing(
            f"preferences_win_rates-{metric}",
            f"Win rates by humans and by each judge: {found.titles[metric]}",
            partial(draw_win_rates, found.rows, metric, [r["system"] for r in strengths], real),
        )
