"""What the stress part of a report shows, as plain tables. Every key begins with `stress_`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from judgebench.records import Estimate
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.stress.report.lookup import (
    NOT_MEASURED,
    column_names,
    every_metric_flips,
    judges_in_order,
    metric_title,
    real_judges,
    shown_name,
    worst_first,
)
from judgebench.stress.report.summary import successes, summary_table
from judgebench.stress.report.violations import (
    DETECTION_STATISTICS,
    detection_table,
    failures_table,
    missed_table,
)
from judgebench.stress.result import EVERY, StressResult


def all_stress_tables(stress: StressResult) -> list[Table]:
    """Every stress table of the Markdown and LaTeX reports, in order; empty ones are left out."""
    tables = [
        summary_table(stress),
        flips_table(stress),
        detection_table(stress, "detected", "recipe"),
        detection_table(stress, "detected", "area"),
        *(detection_table(stress, s, "recipe") for s in DETECTION_STATISTICS if s != "detected"),
        failures_table(stress),
        planted_table(stress),
        consistency_table(stress),
        halo_table(stress),
        recipes_table(stress),
    ]
    return [table for table in tables if table.rows]


# --- probes that must not move a verdict ---------------------------------------------------------


def flips_table(stress: StressResult, most: int | None = None) -> Table:
    """Flip rate over all metrics together: the worst probe first, `most` of them; judges across."""
    found = every_metric_flips(stress)

    def flipped(judge: str, probe: str) -> Estimate:
        return found[judge, probe].flipped if (judge, probe) in found else NOT_MEASURED

    probes = dict.fromkeys(probe for _, probe in found)
    order = worst_first(probes, real_judges(stress), flipped)[:most]
    return Table(
        "stress_flips",
        "Probes that must not move a verdict: flip rate, worst probe first",
        ("Probe", "Bias (CALM)", *column_names(stress)),
        _rows_by_judge(stress, order, flipped),
        (
            "Flip rate: share of pairs in which the label of at least one metric differs; worst "
            "over the judges, controls left out. 1 minus it is the robustness rate of Ye et al. "
            "(2024), from whom the names of the biases are.",
        ),
        stubs=2,
    )


def _rows_by_judge(
    stress: StressResult, names: Sequence[str], value: Callable[[str, str], Estimate]
) -> tuple[tuple[Cell, ...], ...]:
    """A row a recipe: its name, the bias it probes, and one estimate a judge."""
    biases = {recipe.name: recipe.bias for recipe in stress.recipes}
    return tuple(
        (
            Cell(name),
            Cell(biases.get(name) or DASH),
            *(Cell(estimate=value(judge, name)) for judge in judges_in_order(stress)),
        )
        for name in names
    )


def probe_tables(stress: StressResult) -> list[Table]:
    """One long table a judge: every probe on every metric, the worst probe first."""
    order = [row[0].text for row in flips_table(stress).rows]
    tables = []
    for number, judge in enumerate(judges_in_order(stress), start=1):
        mine = [x for x in stress.invariances if x.judge == judge]
        mine.sort(key=lambda x: order.index(x.probe) if x.probe in order else len(order))
        rows = tuple(
            (
                Cell(x.probe),
                Cell(metric_title(stress, x.metric)),
                Cell(estimate=x.flipped),
                Cell(estimate=x.more_severe),
                Cell(estimate=x.less_severe),
                Cell(estimate=x.shift, signed=True),
                Cell(_p(x.p)),
                Cell(_p(x.p_holm)),
            )
            for x in mine
        )
        tables.append(
            Table(
                f"stress_probes-{number}",
                f"Every probe on every metric: {shown_name(stress, judge)}",
                ("Probe", "Metric", "Flip rate", "More severe", "Less severe", "Shift", "p",
                 "p after Holm"),
                rows,
                (
                    "Shift: mean change of severity, summed over the metrics for all of them; "
                    "positive where the verdict got more severe. "
                    "p: exact sign test on the direction of the shifts, cluster by cluster; after "
                    "Holm over this judge's probes on the metric.",
                ),
                stubs=2,
            )
        )  # fmt: skip
    return [table for table in tables if table.rows]


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else format_number(value)


def planted_table(stress: StressResult) -> Table:
    """How often each trick got what it asks for on any metric: worst trick first; judges across."""
    found = {
        (p.judge, p.trick): p.success
        for p in stress.planted
        if p.metric == EVERY and p.trick != EVERY
    }

    def success(judge: str, trick: str) -> Estimate:
        return found.get((judge, trick), NOT_MEASURED)

    tricks = dict.fromkeys(trick for _, trick in found)
    return Table(
        "stress_planted",
        "Planted verdicts: how often each trick got what it asks for, worst trick first",
        ("Trick", "Bias (CALM)", *column_names(stress)),
        _rows_by_judge(stress, worst_first(tricks, real_judges(stress), success), success),
        (
            "Share of the items on which at least one metric was moved to the demanded label, of "
            "those where the judge had not said so before.",
        ),
        stubs=2,
    )


def planted_sentences(stress: StressResult) -> list[str]:
    """For each real judge its worst trick, counted."""
    table = planted_table(stress)
    sentences = []
    for column, judge in enumerate(real_judges(stress), start=table.stubs):
        cells = [(row[0].text, row[column].estimate) for row in table.rows]
        defined = [(name, e) for name, e in cells if e and e.value is not None]
        if defined:
            trick, worst = max(defined, key=lambda pair: pair[1].value or 0.0)
            count = successes(worst)
            which = f"worst trick {trick}, which got its way in {count}"
            told = which if worst.value else f"no trick got its way ({count})"
            sentences.append(f"{judge}: {told}.")
    return sentences


# --- the heat map --------------------------------------------------------------------------------


def heat_tables(stress: StressResult) -> list[Table]:
    """The blocks of the heat map, in which a high number is bad: flips, misses, planted verdicts.

    The columns are the same in all: two stubs, the judges, and the controls last.
    """
    tables = [flips_table(stress), missed_table(stress), planted_table(stress)]
    return [table for table in tables if table.rows]


# --- the judge itself, and what was done ---------------------------------------------------------


def consistency_table(stress: StressResult) -> Table:
    """How often a judge says the same when asked the same again."""
    return Table(
        "stress_consistency",
        "Self-consistency: the same question asked again",
        ("Judge", "Metric", "Verdicts an item", "Agreement", "Majority gain"),
        tuple(
            (
                Cell(shown_name(stress, c.judge)),
                Cell(metric_title(stress, c.metric)),
                Cell(f"{c.asked:,}"),
                Cell(estimate=c.agreement),
                Cell(estimate=c.majority_gain, signed=True),
            )
            for judge in judges_in_order(stress)
            for c in stress.consistency
            if c.judge == judge
        ),
        (
            "Agreement: share of pairs of an item's verdicts that are equal. Majority gain: "
            "accuracy of the majority over the repeats minus that of the first verdict.",
        ),
        stubs=2,
    )


def halo_table(stress: StressResult) -> Table:
    """How far the labels of different metrics go together, beside the humans."""
    return Table(
        "stress_halo",
        "Halo: how far the labels of different metrics go together",
        ("Judge", "Labels by", "Mean correlation", "Beyond the humans"),
        tuple(
            (
                Cell(shown_name(stress, h.judge) if h.judge in stress.judges else h.judge or DASH),
                Cell(h.who),
                Cell(estimate=h.correlation, signed=True),
                Cell(estimate=h.beyond_humans, signed=True),
            )
            for h in stress.halo
        ),
        (
            "Mean correlation over pairs of metrics. One pass: all metrics in one reply; per "
            "metric: one call for each.",
        ),
        stubs=2,
    )


def recipes_table(stress: StressResult) -> Table:
    """What each recipe made, and what became of it."""
    return Table(
        "stress_recipes",
        "The recipes and what they made",
        ("Recipe", "Kind", "Items that count", "Nothing to change", "Rejected", "Undecided",
         "Bias (CALM)", "Version", "Hash"),
        tuple(
            (
                Cell(r.name, remark=r.about),
                Cell(r.kind),
                Cell(f"{r.made:,}"),
                Cell(f"{r.nothing_to_change:,}"),
                Cell(f"{r.n_rejected:,}", remark=_reasons(r.rejected)),
                Cell(f"{r.undecided:,}"),
                Cell(r.bias or DASH),
                Cell(r.version),
                Cell(r.hash),
            )
            for r in stress.recipes
        ),
        (
            "Nothing to change: parents in which the rule found nothing to edit. Rejected: items "
            "that failed a check of validity. Undecided: items that nobody has accepted, where "
            "only accepted ones count. None of them is counted in any other table.",
        ),
        stubs=2,
    )  # fmt: skip


def _reasons(rejected: Mapping[str, int]) -> str:
    """`by check: similarity 3, length 1`; an item may fail several checks."""
    counts = ", ".join(f"{check} {n:,}" for check, n in rejected.items() if n)
    return f"by check: {counts}" if counts else ""
