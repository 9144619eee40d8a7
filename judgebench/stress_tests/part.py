"""The part of a stress test: a summary, heat maps of where each judge fails, all numbers.

The numbers of a stress test as tables. Every key begins with `stress_`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from judgebench.alignment.alignment_tables import CONSISTENCY, CONSISTENT
from judgebench.records import Estimate
from judgebench.results.layout import Contents, Keys, Layout, Line
from judgebench.results.part import Block, Part
from judgebench.results.tables import DASH, Cell, Table, format_number, p_text
from judgebench.rubric import Metric
from judgebench.stats.means import mean_and_sd
from judgebench.stress_tests.measure import miss_card
from judgebench.stress_tests.result import EVERY, NOT_MEASURED, StressResult

# statistic -> (heading, what it means)
ON_VIOLATIONS: Mapping[str, tuple[str, str]] = {
    "detected": ("Detected", "share of violations judged at least as severe as they must be"),
    "told_apart": ("Told apart", "share of pairs with a detection and no false alarm"),
    "false_alarms": ("False alarms", "share of sound parents judged as severe as the violation"),
    "worsened": ("Worsened", "share of violations judged more severe than their sound parent"),
    "advantage": ("Advantage", "detection rate minus false alarm rate"),
}
_MORE = "More needed: further violations until the exact interval is as narrow as was asked for."
# statistic -> its heading in the tables of probes; p values are texts
_ON_PROBES = {
    "flipped": "Flip rate", "more_severe": "More severe", "less_severe": "Less severe",
    "shift": "Shift", "p": "p", "p_holm": "p after Holm",
}  # fmt: skip
_SIGNED = ("advantage", "shift", "majority_gain", "correlation", "beyond_humans")
_WAYS = {"left_out": "Failures left out", "worst": "Worst case", "best": "Best case"}
Side = Literal["recipe", "area"]
Fill = Callable[[Keys], Cell]  # the keys of row and column -> what stands there


def metric_title(stress: StressResult, metric: str) -> str:
    """The title of a metric, and `All metrics` for EVERY."""
    if metric == EVERY:
        return "All metrics"
    return next((m.title for m in stress.rubric.metrics if m.id == metric), metric)


def main_metric(stress: StressResult) -> Metric | None:
    """The demanded metric that most violations must worsen, the rubric's first of several."""

    def pairs(metric: Metric) -> int:
        found = (stress.violations("detected", judge=j, metric=metric.id) for j in stress.judges)
        return max((e.n + e.n_missing for e in found), default=0)

    return max(stress.demanded_metrics, key=pairs, default=None)


def _across(key: str, headings: Mapping[str, str]) -> list[tuple[str, Keys]]:
    """A column for each value of a key."""
    return [(heading, {key: value}) for value, heading in headings.items()]


def _judges(stress: StressResult) -> list[tuple[str, Keys]]:
    """A column for each judge."""
    return [(stress.shown_name(judge), {"judge": judge}) for judge in stress.judges_in_order]


def _finder(stress: StressResult, analysis: str, statistic: str = "", **fixed: str) -> Fill:
    """A function that puts the number with these keys, and those of row and column, into a cell."""

    def cell(keys: Keys) -> Cell:
        where = {**fixed, **keys}
        name = where.pop("statistic", statistic)
        number = stress.number(analysis, name, **where)
        if name in ("p", "p_holm"):
            return Cell(p_text(number.value))
        return Cell(estimate=number, signed=name in _SIGNED)

    return cell


def _worst_first(stress: StressResult, lines: list[Line], cell: Fill) -> list[Line]:
    """The rows by the largest value of the real judges, undefined ones last."""

    def worst(line: Line) -> float:
        shown = (cell({**line[1], "judge": judge}).estimate for judge in stress.real_judges)
        return max((e.value for e in shown if e and e.value is not None), default=-1.0)

    return sorted(lines, key=worst, reverse=True)


def _probed(stress: StressResult, names: list[str]) -> list[Line]:
    """A row for each recipe: its name and the bias that it probes."""
    biases = {recipe.name: recipe.bias for recipe in stress.recipes}
    return [((name, biases.get(name) or None), {"recipe": name}) for name in names]


# --- violations ----------------------------------------------------------------------------------


def detection_table(stress: StressResult, statistic: str, side: Side) -> Table:
    """One number of the violations, by recipe or by area and demanded metric; judges across.

    All together first.
    """
    heading, meaning = ON_VIOLATIONS[statistic]

    def cell(keys: Keys) -> Cell:
        more = stress.violations("more_needed", **keys).value if statistic == "detected" else 0
        remark = f"{more:,} more needed" if more else ""
        estimate = stress.violations(statistic, **keys)
        return Cell(estimate=estimate, remark=remark, signed=statistic in _SIGNED)

    lines: list[Line] = []
    for name, metric, label in _demands(stress, side):
        which = f"All {side}s" if name == EVERY else name
        reached = f"{metric.title}: {label}" if label else metric.title
        lines.append(((which, reached), {side: name, "metric": metric.id}))
    return Layout(
        f"stress_{statistic}-{side}",
        f"Violations, {heading.lower()}, by {side}: judges beside the baselines, failures left out",
        (side.capitalize(), "Must reach"),
        (f"{heading}: {meaning}.", _MORE if statistic == "detected" else ""),
    ).crossed(lines, _judges(stress), cell)


def _demands(stress: StressResult, side: Side) -> Iterator[tuple[str, Metric, str]]:
    """Name, metric and demanded label of each row, EVERY first, then as they were measured."""
    other = {"recipe": "area", "area": "recipe"}[side]
    mine = stress.rows.select("violations", "detected", failures="left_out", **{other: EVERY})
    labels = {(row[side], row.metric): row["label"] for row in mine}
    for name in sorted(dict.fromkeys(row[side] for row in mine), key=lambda name: name != EVERY):
        for metric in stress.demanded_metrics:
            if (name, metric.id) in labels:
                yield name, metric, labels[name, metric.id]


def failures_table(stress: StressResult) -> Table:
    """The detection rate three ways, for each judge and metric of which verdicts are missing."""
    every = {"recipe": EVERY, "area": EVERY}
    lines: list[Line] = [
        ((name, metric.title), {**judge, **every, "metric": metric.id})
        for name, judge in _judges(stress)
        for metric in stress.demanded_metrics
        if stress.rows.select(
            "violations", "detected", **judge, **every, metric=metric.id, failures="worst"
        )
    ]
    cell = _finder(stress, "violations", "detected")
    return Layout(
        "stress_failures",
        "Violations detected where verdicts are missing: three ways to count them",
        ("Judge", "Metric"),
        (
            "Worst case: every failure counted as not detected. "
            "Best case: every failure counted as detected.",
        ),
    ).crossed(lines, _across("failures", _WAYS), cell)


def missed_table(stress: StressResult) -> Table:
    """1 minus the detection rate of each recipe of violations, the worst first.

    On the metric that most violations must worsen or, where the recipe does not demand it, the
    first that it does.
    """
    main = main_metric(stress)
    named: dict[str, Metric] = {}
    for name, metric, _ in _demands(stress, "recipe"):
        if name != EVERY and (name not in named or metric == main):
            named[name] = metric

    def cell(keys: Keys) -> Cell:
        return Cell(estimate=stress.violations("detected", **keys).complement)

    lines: list[Line] = [
        ((recipe, metric.title), {"recipe": recipe, "metric": metric.id})
        for recipe, metric in named.items()
    ]
    return Layout(
        "stress_missed",
        "Violations missed: 1 minus the detection rate, worst recipe first",
        ("Recipe", "Metric"),
        ("A judge that calls everything severe misses nothing: read its false alarms beside it.",),
    ).crossed(_worst_first(stress, lines, cell), _judges(stress), cell)


# --- what must not move a verdict ----------------------------------------------------------------


def flips_table(stress: StressResult, most: int | None = None) -> Table:
    """Flip rate over all metrics together: the worst probe first, `most` of them; judges across.

    Planted verdicts have a table of their own.
    """
    tricks = stress.rows.values("recipe", "planted")
    rows = stress.rows.select("invariance", "flipped", metric=EVERY)
    probes = list(dict.fromkeys(row["recipe"] for row in rows if row["recipe"] not in tricks))
    cut = most is not None and most < len(probes)
    cell = _finder(stress, "invariance", "flipped", metric=EVERY)
    lines = _worst_first(stress, _probed(stress, probes), cell)[:most]
    return Layout(
        "stress_worst_flips" if most else "stress_flips",
        "Probes that must not move a verdict: flip rate, "
        + (f"the {most} worst of {len(probes)} probes" if cut else "worst probe first"),
        ("Probe", "Bias (CALM)"),
        (
            "Flip rate: share of pairs in which the label of at least one metric differs; worst "
            "over the judges, baselines left out. 1 minus it is the robustness rate of Ye et al. "
            "(2024), from whom the names of the biases are.",
        ),
    ).crossed(lines, _judges(stress), cell)


def probe_tables(stress: StressResult) -> Iterator[Table]:
    """One long table for each judge: every probe on every metric, the worst probe first."""
    order = {row[0].text: place for place, row in enumerate(flips_table(stress).rows)}
    for number, (name, judge) in enumerate(_judges(stress), start=1):
        mine = [(r["recipe"], r.metric) for r in stress.rows.select("invariance", "p", **judge)]
        mine.sort(key=lambda one: order.get(one[0], len(order)))
        lines: list[Line] = [
            ((probe, metric_title(stress, m)), {"recipe": probe, "metric": m}) for probe, m in mine
        ]
        cell = _finder(stress, "invariance", **judge)
        yield Layout(
            f"stress_probes-{number}",
            f"Every probe on every metric: {name}",
            ("Probe", "Metric"),
            (
                "Shift: mean change of severity, summed over the metrics for all of them; "
                "positive where the verdict got more severe. "
                "p: exact sign test on the direction of the shifts, cluster by cluster; after "
                "Holm over this judge's probes on the metric.",
            ),
        ).crossed(lines, _across("statistic", _ON_PROBES), cell)


def planted_table(stress: StressResult) -> Table:
    """The share of items on which each trick got its way: worst trick first; judges across."""
    tricks = [trick for trick in stress.rows.values("recipe", "planted") if trick != EVERY]
    cell = _finder(stress, "planted", "success", metric=EVERY)
    lines = _worst_first(stress, _probed(stress, tricks), cell)
    return Layout(
        "stress_planted",
        "Planted verdicts: how often each trick got what it asks for, worst trick first",
        ("Trick", "Bias (CALM)"),
        (
            "Share of the items on which at least one metric was moved to the demanded label, of "
            "those where the judge had not said so before.",
        ),
    ).crossed(lines, _judges(stress), cell)


# --- the judge itself, and what was done ---------------------------------------------------------


def consistency_table(stress: StressResult) -> Table:
    """The agreement of a judge with itself when asked the same again."""
    lines: list[Line] = [
        (
            (name, metric_title(stress, row.metric), f"{row.estimate.value:,}"),
            {**judge, "metric": row.metric, "recipe": row["recipe"]},
        )
        for name, judge in _judges(stress)
        for row in stress.rows.select("consistency", "asked", **judge)
    ]
    across = _across("statistic", CONSISTENCY)
    return Layout(
        "stress_consistency",
        "Self-consistency: the same question asked again",
        ("Judge", "Metric"),
        (CONSISTENT,),
        ("Verdicts per item",),
    ).crossed(lines, across, _finder(stress, "consistency"))


def halo_table(stress: StressResult) -> Table:
    """The correlation of the labels of different metrics, beside that of the humans."""
    lines: list[Line] = [
        ((name, row["who"]), {**judge, "who": row["who"]})
        for name, judge in _judges(stress)
        for row in stress.rows.select("halo", "correlation", **judge)
    ]
    headings = {"correlation": "Mean correlation", "beyond_humans": "Beyond the humans"}
    return Layout(
        "stress_halo",
        "Halo: how far the labels of different metrics go together",
        ("Judge", "Labels by"),
        (
            "Mean correlation over pairs of metrics. One pass: all metrics in one reply; per "
            "metric: one call for each.",
        ),
    ).crossed(lines, _across("statistic", headings), _finder(stress, "halo"))


def recipes_table(stress: StressResult) -> Table:
    """The items that each recipe made and their fate; an item may fail several checks."""
    lines: list[Contents] = []
    for r in stress.recipes:
        failed = ", ".join(f"{check} {n:,}" for check, n in r.rejected.items() if n)
        rejected = Cell(f"{r.n_rejected:,}", remark=failed and f"by check: {failed}")
        lines.append(
            (Cell(r.name, remark=r.about), r.kind, r.made, r.nothing_to_change, rejected,
             r.undecided, r.bias or None, r.version, r.hash)
        )  # fmt: skip
    return Layout(
        "stress_recipes",
        "The recipes and what they made",
        ("Recipe", "Kind"),
        (
            "Nothing to change: parents in which the rule found nothing to edit. Rejected: items "
            "that failed a check of validity. Undecided: items that nobody has accepted, where "
            "only accepted ones count. None of them is counted in any other table.",
        ),
        ("Items that count", "Nothing to change", "Rejected", "Undecided", "Bias (CALM)",
         "Version", "Hash"),
    ).listing(lines)  # fmt: skip


_WORST_PROBES = 8
_ABOUT_MISSES = (
    "Violations that at least one judge did not detect. Marked: what differs between the sound "
    "parent and the altered answer.",
    "The altered answers are wrong on purpose. They are synthetic, not clinically reviewed, "
    "and no medical advice.",
)


def stress_part(stress: StressResult) -> Part:
    """The part of the stress test."""
    table = summary_table(stress)
    judges = sum(kind != "control" for kind in stress.judges.values())
    # On a screen without controls and intervals.
    rows = tuple(tuple(Cell(cell.value) for cell in row) for row in table.rows[:judges])
    screen = (Block(tables=(replace(table, rows=rows),)),)
    blocks, title = tuple(_blocks(stress)), "judges under stress"
    return Part("stress", title, stress.rows, blocks, stress.notes, screen=screen)


def _blocks(stress: StressResult) -> Iterator[Block]:
    flips, missed, planted = flips_table(stress), missed_table(stress), planted_table(stress)
    yield Block("Stress test", tables=(summary_table(stress),), on_screen=True)
    yield Block(
        "Where each judge fails",
        tables=(flips_table(stress, most=_WORST_PROBES),),
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


# --- one row for each judge, the worst case in plain sight ---------------------------------------


def summary_table(stress: StressResult) -> Table:
    """One row for each judge, controls last; a column only for what some judge was measured on."""
    lines = [(stress.shown_name(j), dict(_summary(stress, j))) for j in stress.judges_in_order]
    columns = tuple(dict.fromkeys(column for _, cells in lines for column in cells))
    return Layout(
        "stress_summary",
        "How each judge fares in the stress test",
        ("Judge",),
        tuple(_summary_notes(stress)),
        columns,
    ).listing((name, *cells.values()) for name, cells in lines if columns)


def _summary(stress: StressResult, judge: str) -> Iterator[tuple[str, Cell]]:
    """Column and cell of one judge; the columns are the same for every judge."""
    demanded, main = stress.demanded_metrics, main_metric(stress)
    for metric in demanded:
        several = f": {metric.title}" if len(demanded) > 1 else ""
        detected = stress.violations("detected", judge=judge, metric=metric.id)
        yield f"Violations detected{several}", Cell(estimate=detected)
    if main is not None:
        shown = {"False alarms on sound parents": "false_alarms", "Told apart": "told_apart"}
        for heading, name in shown.items():
            yield heading, Cell(estimate=stress.violations(name, judge=judge, metric=main.id))
    if stress.rows.select("invariance"):
        yield from _probes(stress, judge)
    if stress.rows.select("planted"):
        trick, worst = _worst_trick(stress, judge)
        told = f"{trick if worst.value else 'none'}: {successes(worst)}" if trick else DASH
        yield "Planted verdicts: worst trick", Cell(told)
    if stress.rows.select("consistency"):
        yield "Self-consistency", _consistency(stress, judge)


def _worst(
    stress: StressResult, judge: str, analysis: str, statistic: str, left_out: Collection[str]
) -> tuple[str, dict[str, Estimate]]:
    """The recipe with the highest rate over all metrics together, empty where none was measured;
    and all rates by recipe."""
    rates = {
        row["recipe"]: row.estimate
        for row in stress.rows.select(analysis, statistic, judge=judge, metric=EVERY)
        if row["recipe"] not in left_out and row.estimate.value is not None
    }
    return max(rates, key=lambda recipe: rates[recipe].value or 0.0, default=""), rates


def _probes(stress: StressResult, judge: str) -> Iterator[tuple[str, Cell]]:
    """The worst probe over all metrics together, and the robustness over all probes."""
    tricks = stress.rows.values("recipe", "planted")
    worst, rates = _worst(stress, judge, "invariance", "flipped", tricks)
    name, flipped, robust = Cell(DASH), NOT_MEASURED, Cell(DASH)
    if rates:
        name, flipped = Cell(worst if rates[worst].value else "none"), rates[worst]
        steady = [1 - (rate.value or 0.0) for rate in rates.values()]
        told = f"worst {format_number(min(steady))}, mean {format_number(mean_and_sd(steady)[0])}"
        robust = Cell(told, remark=f"{len(steady):,} probes")
    yield "Worst probe", name
    yield "Its flip rate", Cell(estimate=flipped)
    yield "Robustness over all probes", robust


def _worst_trick(stress: StressResult, judge: str) -> tuple[str, Estimate]:
    """The trick that got its way most often on any metric; empty where none was measured."""
    worst, rates = _worst(stress, judge, "planted", "success", (EVERY,))
    return worst, rates.get(worst, NOT_MEASURED)


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
    every = stress.rows.select("consistency", "agreement", judge=judge)
    mine = [row for row in every if row.estimate.value is not None]
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
