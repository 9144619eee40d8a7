"""What is shown of a stress test: a summary, heat maps of where each judge fails, all numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judgebench.records import Estimate
from judgebench.results.part import Block, HeatMap, Part
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.stats.means import mean_and_sd
from judgebench.stress_tests.misses import miss_card
from judgebench.stress_tests.result import EVERY, NOT_MEASURED, StressResult
from judgebench.stress_tests.stress_tables import (
    ON_VIOLATIONS,
    consistency_table,
    detection_table,
    failures_table,
    flips_table,
    halo_table,
    judges_in_order,
    main_metric,
    metric_title,
    missed_table,
    planted_table,
    probe_tables,
    recipes_table,
    shown_name,
)

_WORST_PROBES = 8
_ABOUT_MISSES = (
    "Violations that at least one judge did not detect. Marked: what differs between the sound "
    "parent and the altered answer.",
    "The altered answers are wrong on purpose. They are synthetic, not clinically reviewed, "
    "and no medical advice.",
)


def stress_part(stress: StressResult) -> Part:
    """The part of the stress test; its CSV file is stress.csv."""
    blocks = tuple(_blocks(stress))
    title = "judges under stress"
    return Part("stress", title, stress.rows, blocks, stress.notes, screen=(_screen(stress),))


def _screen(stress: StressResult) -> Block:
    """The summary without controls and intervals."""
    table = summary_table(stress)
    judges = sum(kind != "control" for kind in stress.judges.values())
    rows = tuple(tuple(Cell(cell.value) for cell in row) for row in table.rows[:judges])
    return Block(tables=(replace(table, rows=rows),))


def _blocks(stress: StressResult) -> Iterator[Block]:
    flips, missed, planted = flips_table(stress), missed_table(stress), planted_table(stress)
    yield Block("Stress test", tables=(summary_table(stress),), on_screen=True)
    yield Block(
        "Where each judge fails",
        tables=(flips_table(stress, most=_WORST_PROBES),),
        figures=tuple(_heat_map(stress, table) for table in (flips, missed, planted) if table.rows),
        on_screen=True,
    )
    first, *others = ON_VIOLATIONS
    yield Block(
        "Violations: what is detected",
        tables=(
            detection_table(stress, first, "recipe"),
            detection_table(stress, first, "area"),
            failures_table(stress),
        ),
    )
    more = (detection_table(stress, key, side) for key in others for side in ("recipe", "area"))
    yield Block("Violations: told apart, false alarms and more", tables=tuple(more), folded=True)
    if len(flips.rows) > _WORST_PROBES:
        yield Block("Probes that must not move a verdict", tables=(flips,))
    yield Block("Every probe on every metric", tables=tuple(probe_tables(stress)), folded=True)
    yield Block("Planted verdicts", tuple(planted_sentences(stress)), on_screen=True)
    yield Block("Every planted verdict", tables=(planted, missed), folded=True)
    yield Block("Each judge beside itself", tables=(consistency_table(stress), halo_table(stress)))
    yield Block("The recipes and what they made", tables=(recipes_table(stress),), folded=True)
    if stress.misses:
        cards = tuple(miss_card(miss, stress.rubric) for miss in stress.misses)
        yield Block("Misses", _ABOUT_MISSES, cards=cards)


def _heat_map(stress: StressResult, table: Table) -> HeatMap:
    """The table's numbers in colours, in which a high number is bad; controls last, in grey."""
    kinds = (
        "control" if stress.judges[j] == "control" else "judge" for j in judges_in_order(stress)
    )
    return HeatMap(f"{table.key}-heat", table.title, table, (*[""] * table.stubs, *kinds), "bad")


# --- one row for each judge, the worst case in plain sight ---------------------------------------


def summary_table(stress: StressResult) -> Table:
    """One row for each judge, controls last; a column only for what some judge was measured on."""
    rows = {judge: dict(_summary(stress, judge)) for judge in judges_in_order(stress)}
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    shown = ((Cell(shown_name(stress, judge)), *cells.values()) for judge, cells in rows.items())
    return Table(
        "stress_summary",
        "How each judge fares in the stress test",
        ("Judge", *columns),
        tuple(shown) if columns else (),
        tuple(_summary_notes(stress)),
    )


def _summary(stress: StressResult, judge: str) -> Iterator[tuple[str, Cell]]:
    """Column and cell of one judge; the columns are the same for every judge."""
    demanded, main = stress.demanded_metrics, main_metric(stress)
    for metric in demanded:
        several = f": {metric.title}" if len(demanded) > 1 else ""
        detected = stress.violations("detected", judge=judge, metric=metric.id)
        yield f"Violations detected{several}", Cell(estimate=detected)
    if main is not None:
        alarms = stress.violations("false_alarms", judge=judge, metric=main.id)
        yield "False alarms on sound parents", Cell(estimate=alarms)
        apart = stress.violations("told_apart", judge=judge, metric=main.id)
        yield "Told apart", Cell(estimate=apart)
    if stress.rows.select("invariance"):
        yield from _probes(stress, judge)
    if stress.rows.select("planted"):
        name, worst = _worst_trick(stress, judge)
        told = f"{name if worst.value else 'none'}: {successes(worst)}" if name else DASH
        yield "Planted verdicts: worst trick", Cell(told)
    if stress.rows.select("consistency"):
        yield "Self-consistency", _consistency(stress, judge)


def _probes(stress: StressResult, judge: str) -> Iterator[tuple[str, Cell]]:
    """The worst probe over all metrics together, and the robustness over all probes."""
    tricks = stress.rows.values("recipe", "planted")
    rates = {
        row["recipe"]: row.estimate
        for row in stress.rows.select("invariance", "flipped", judge=judge, metric=EVERY)
        if row["recipe"] not in tricks and row.estimate.value is not None
    }
    name, flipped, robust = Cell(DASH), NOT_MEASURED, Cell(DASH)
    if rates:
        worst = max(rates, key=lambda probe: rates[probe].value or 0.0)
        name, flipped = Cell(worst if rates[worst].value else "none"), rates[worst]
        steady = [1 - (rate.value or 0.0) for rate in rates.values()]
        told = f"worst {format_number(min(steady))}, mean {format_number(mean_and_sd(steady)[0])}"
        robust = Cell(told, remark=f"{len(steady):,} probes")
    yield "Worst probe", name
    yield "Its flip rate", Cell(estimate=flipped)
    yield "Robustness over all probes", robust


def _worst_trick(stress: StressResult, judge: str) -> tuple[str, Estimate]:
    """The trick that got its way most often on any metric; empty where none was measured."""
    mine = {
        row["recipe"]: row.estimate
        for row in stress.rows.select("planted", "success", judge=judge, metric=EVERY)
        if row["recipe"] != EVERY and row.estimate.value is not None
    }
    worst = max(mine, key=lambda trick: mine[trick].value or 0.0, default="")
    return worst, mine.get(worst, NOT_MEASURED)


def successes(estimate: Estimate) -> str:
    """`3 of 40`, of a share of n items; `–` where it is undefined."""
    if estimate.value is None:
        return DASH
    return f"{round(estimate.value * estimate.n):,} of {estimate.n:,}"


def planted_sentences(stress: StressResult) -> Iterator[str]:
    """For each real judge its worst trick, counted."""
    for judge in stress.real_judges:
        trick, worst = _worst_trick(stress, judge)
        if trick and worst.value:
            yield f"{judge}: worst trick {trick}, which got its way in {successes(worst)}."
        elif trick:
            yield f"{judge}: no trick got its way ({successes(worst)})."


def _consistency(stress: StressResult, judge: str) -> Cell:
    """Agreement over all metrics, or on the metric on which the judge agrees least."""
    mine = [
        row
        for row in stress.rows.select("consistency", "agreement", judge=judge)
        if row.estimate.value is not None
    ]
    if not mine:
        return Cell(estimate=NOT_MEASURED)
    together = [row for row in mine if row.metric == EVERY]
    least = min(together or mine, key=lambda row: row.estimate.value or 0.0)
    remark = "" if together else f"least consistent metric: {metric_title(stress, least.metric)}"
    return Cell(estimate=least.estimate, remark=remark)


def _summary_notes(stress: StressResult) -> Iterator[str]:
    main = main_metric(stress)
    if main is not None:
        yield (
            "A violation is detected where its verdict is at least as severe as it must be; a "
            "false alarm is a sound parent judged so. Told apart: detected, and no false alarm. "
            f"False alarms and told apart are on {main.title}; failures are left out."
        )
    if stress.rows.select("invariance"):
        yield (
            "Flip rate: share of pairs in which at least one label differs though none should. "
            "Robustness is 1 minus it; the mean is over the probes and has no interval."
        )
