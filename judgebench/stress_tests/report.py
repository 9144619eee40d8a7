"""The presentation of a stress test: tables declared as data.

Every key begins with `stress_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from judgebench.alignment.tables import CONSISTENCY, CONSISTENT, count_of
from judgebench.records import Estimate, Row
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.tables import DASH, Cell, Content, Layout, Table, TableSpec
from judgebench.stress_tests import best_of
from judgebench.stress_tests.analysis import miss_card
from judgebench.stress_tests.result import EVERY, NOT_MEASURED, StressResult

Side = Literal["recipe", "area"]
_STATISTICS = {
    "detected": "Detected", "told_apart": "Told apart", "false_alarms": "False alarms",
    "advantage": "Advantage",
    "flipped": "Flip rate",
    "shift": "Shift", "p": "p", "p_holm": "p after Holm",
    "passed": "Called good", "attack_gain": "Rise", "gain": "Gain",
    "asked": "Verdicts per item", **CONSISTENCY,
    "made": "Items that count", "nothing_to_change": "Nothing to change", "rejected": "Rejected",
}  # fmt: skip
_COUNTS = ("asked", "made", "nothing_to_change", "rejected")
_SIGNED = ("advantage", "shift", "majority_gain", "attack_gain", "gain")


StressTable = TableSpec[StressResult]


def show(stress: StressResult, spec: StressTable) -> Table:
    """The table; baselines stand last, down and across."""
    names: Mapping[str, Mapping[str, str]] = {
        "metric": {m.id: m.title for m in stress.rubric.metrics} | {EVERY: "All metrics"},
        "recipe": {EVERY: "All recipes"},
        "area": {EVERY: "All areas"},
        "judge": {judge: stress.shown_name(judge) for judge in stress.judges_in_order},
        "statistic": _STATISTICS,
    }
    absent = best_of.AS_IT_IS if "attempts" in spec.down else NOT_MEASURED
    layout = replace(spec.layout, headings=names[spec.across], signed=_SIGNED, absent=absent)

    def cell(row: Row) -> Content:
        return count_of(row.estimate) if row.statistic in _COUNTS else layout.cell(row)

    rows = list(spec.rows(stress))
    if "judge" in spec.down:
        rows.sort(key=lambda row: stress.judges_in_order.index(row.judge))
    return layout.by_keys(rows, spec.down, spec.across, names, cell)


# --- violations ----------------------------------------------------------------------------------


def violations(side: Side) -> StressTable:
    """Violations beside their sound parents, by recipe or by area; all together first."""
    others = {"area" if side == "recipe" else "recipe": EVERY}

    def rows(stress: StressResult) -> list[Row]:
        chosen = stress.rows.select("violations", failures="left_out", **others)
        return sorted(chosen, key=lambda row: row[side] != EVERY)

    return StressTable(
        f"stress_violations-{side}",
        f"Violations by {side}: judges beside the baselines, failures left out",
        rows,
        (side, "metric", "label", "statistic"),
        "judge",
        (
            "Detected: share of violations judged at least as severe as they must be. False "
            "alarms: share of sound parents judged so. A judge that calls everything severe "
            "detects all, and its false alarms are all too. Told apart: share of pairs with a "
            "detection and no false alarm. Advantage: detection rate minus false alarm rate.",
        ),
        stubs={"label": "Must reach"},
    )


# --- what must not move a verdict ----------------------------------------------------------------


def _worst_first(stress: StressResult, analysis: str, statistic: str) -> list[Row]:
    """A statistic over all metrics together, the recipe that moves a real judge most first."""
    rows = stress.rows.select(analysis, statistic, metric=EVERY)
    rates = [(row.estimate.value, row) for row in rows if row.judge in stress.real_judges]
    measured = sorted((rate, row["recipe"]) for rate, row in rates if rate is not None)
    worst = {recipe: rate for rate, recipe in measured}  # of several the last, which is the largest
    return sorted(rows, key=lambda row: worst.get(row["recipe"], -1.0), reverse=True)


def _flips(stress: StressResult) -> list[Row]:
    """The flip rate of each probe; planted verdicts have a table of their own."""
    tricks = stress.rows.values("recipe", "planted")
    rows = _worst_first(stress, "invariance", "flipped")
    return [row for row in rows if row["recipe"] not in tricks]


FLIPS = StressTable(
    "stress_flips",
    "Probes that must not move a verdict: flip rate, worst probe first",
    lambda stress: stress.that_may_move(_flips(stress)),
    ("recipe",),
    "judge",
    (
        "Flip rate: share of pairs in which the label of at least one metric differs; worst over "
        "the judges, baselines left out. 1 minus it is the robustness rate of Ye et al. (2024).",
    ),
)
PROBES = StressTable(
    "stress_probes",
    "Every probe on every metric",
    lambda stress: [
        row
        for row in stress.that_may_move(stress.rows.select("invariance"))
        if row.statistic in _STATISTICS
    ],
    ("judge", "recipe", "metric"),
    "statistic",
    (
        "Shift: mean change of the label, as a number, summed over the metrics for all of them; "
        "positive towards the last label. p: exact sign test on the direction of the shifts, "
        "cluster by cluster; after Holm over this judge's probes on the metric.",
    ),
)


def _tricks(stress: StressResult) -> list[Row]:
    return [row for row in _worst_first(stress, "planted", "success") if row["recipe"] != EVERY]


PLANTED = StressTable(
    "stress_planted",
    "Planted verdicts: how often each trick got what it asks for, worst trick first",
    lambda stress: stress.that_may_move(_tricks(stress)),
    ("recipe",),
    "judge",
    (
        "Share of the items on which at least one metric was moved to the demanded label, of "
        "those where the judge had not said so before.",
    ),
)


# --- the judge itself, and what was done ---------------------------------------------------------


SELF_CONSISTENCY = StressTable(
    "stress_consistency",
    "Self-consistency: the same question asked again",
    lambda stress: stress.rows.select("consistency"),
    ("judge", "metric", "recipe"),
    "statistic",
    (CONSISTENT,),
)


RECIPES = StressTable(
    "stress_recipes",
    "The recipes and what they made",
    lambda stress: [row for row in stress.rows.select("recipe") if row.statistic in _COUNTS],
    ("recipe",),
    "statistic",
    (
        "Nothing to change: parents in which the rule found nothing to edit. Rejected: items that "
        "failed a check of validity. Neither is counted in any other table.",
    ),
)


_ABOUT_MISSES = (
    "Violations that at least one judge did not detect. Marked: what differs between the sound "
    "parent and the altered answer.",
    "The altered answers are wrong on purpose. They are synthetic, not clinically reviewed, "
    "and no medical advice.",
)


def stress_part(stress: StressResult) -> ReportSection:
    """The part of the stress test."""
    summary = summary_table(stress)
    # On a screen without baselines and intervals.
    rows = tuple(
        tuple(Cell(cell.value) for cell in row) for row in summary.rows[: len(stress.real_judges)]
    )
    screen = (Block(tables=(replace(summary, rows=rows),)),)
    blocks = (Block("Stress test", tables=(summary,), on_screen=True), *_blocks(stress))
    title = "judges under stress"
    return ReportSection("stress", title, stress.rows, blocks, stress.notes, screen=screen)


def _blocks(stress: StressResult) -> Iterator[Block]:
    yield Block("Where each judge fails", tables=_tables(stress, [FLIPS]), on_screen=True)
    yield Block("Planted verdicts", tables=_tables(stress, [PLANTED]), on_screen=True)
    others = [violations("area"), SELF_CONSISTENCY]
    yield Block("By area, and each judge beside itself", tables=_tables(stress, others))
    if stress.rows.select("best_of"):
        chosen, drawings = _tables(stress, [best_of.TABLE]), tuple(best_of.curves(stress))
        yield Block("An attacker who may choose", tables=chosen, figures=drawings)
    details = _tables(stress, [violations("recipe"), PROBES, RECIPES])
    yield Block("Every recipe, and what it made", tables=details, folded=True)
    if stress.misses:
        cards = tuple(miss_card(miss, stress.rubric) for miss in stress.misses)
        shown = f"{len(cards):,} of {stress.n_misses:,} are shown."
        yield Block("Misses", (*_ABOUT_MISSES, shown), cards=cards)


def _tables(stress: StressResult, specs: Iterable[StressTable]) -> tuple[Table, ...]:
    return tuple(show(stress, spec) for spec in specs)


# --- one row for each judge, the worst case in plain sight ---------------------------------------


def summary_table(stress: StressResult) -> Table:
    """One row for each judge, controls last; a column only for what some judge was measured on."""
    lines = {judge: dict(_summary(stress, judge)) for judge in stress.judges_in_order}
    columns = tuple(dict.fromkeys(column for cells in lines.values() for column in cells))
    return Layout(
        "stress_summary",
        "How each judge fares in the stress test",
        ("Judge",),
        tuple(_summary_notes(stress)),
        columns,
    ).listing(
        (stress.shown_name(judge), *cells.values()) for judge, cells in lines.items() if columns
    )


def _summary(stress: StressResult, judge: str) -> Iterator[tuple[str, Content]]:
    """Column and cell of one judge; the columns are the same for every judge."""
    for metric in stress.demanded_metrics[:1]:
        for statistic in ("detected", "false_alarms", "told_apart"):
            estimate = stress.violations(statistic, judge=judge, metric=metric.id)
            yield _STATISTICS[statistic], estimate
    if _flips(stress):
        yield "Worst probe", _counted(*_worst(_flips(stress), judge))
    if stress.rows.select("planted"):
        yield "Worst planted verdict", _counted(*_worst(_tricks(stress), judge))
    if any(_no_label(stress, name).value for name in stress.real_judges):
        yield "Planted, no label", _no_label(stress, judge)
    if stress.rows.select("consistency"):
        about = {"judge": judge, "metric": EVERY}
        yield "Self-consistency", stress.number("consistency", "agreement", **about)


def _no_label(stress: StressResult, judge: str) -> Estimate:
    return stress.number("planted", "no_label", judge=judge, metric=EVERY, recipe=EVERY)


def _worst(rows: Iterable[Row], judge: str) -> tuple[str, Estimate]:
    """The recipe with the highest rate of a judge; empty where none was measured."""
    measured = [row for row in rows if row.judge == judge and row.estimate.value is not None]
    if not measured:
        return "", NOT_MEASURED
    worst = max(measured, key=lambda row: row.estimate.value or 0.0)
    return worst["recipe"], worst.estimate


def _counted(recipe: str, rate: Estimate) -> str:
    """`padding: 3 of 40`, `none: 0 of 40`, `–`."""
    if not recipe:
        return DASH
    n_successes = round((rate.value or 0.0) * rate.n)
    return f"{recipe if rate.value else 'none'}: {n_successes:,} of {rate.n:,}"


def _summary_notes(stress: StressResult) -> Iterator[str]:
    for metric in stress.demanded_metrics[:1]:
        yield (
            "A violation is detected where its verdict is at least as severe as it must be; a "
            "false alarm is a sound parent judged so. Told apart: detected, and no false alarm. "
            f"All three are on {metric.title}; failures are left out."
        )
    if stress.rows.select("invariance"):
        yield (
            "Worst probe: pairs in which at least one label differs though none should; planted "
            "verdicts are counted apart."
        )
    if any(_no_label(stress, judge).value for judge in stress.real_judges):
        yield (
            "Planted, no label: answers with a planted verdict, of those that might follow it, "
            "whose reply could not be read; a decision counts them as followed."
        )
