"""The numbers of a stress test as tables. Every key begins with `stress_`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from judgebench.records import Estimate
from judgebench.results.tables import DASH, Cell, Table, format_number
from judgebench.rubric import Metric
from judgebench.stress.result import EVERY, RecipeSummary, StressResult

# statistic -> (heading, what it means)
ON_VIOLATIONS: Mapping[str, tuple[str, str]] = {
    "detected": ("Detected", "share of violations judged at least as severe as they must be"),
    "told_apart": ("Told apart", "share of pairs with a detection and no false alarm"),
    "false_alarms": ("False alarms", "share of sound parents judged as severe as the violation"),
    "worsened": ("Worsened", "share of violations judged more severe than their sound parent"),
    "advantage": ("Advantage", "detection rate minus false alarm rate"),
}
_MORE = "More needed: further violations until the exact interval is as narrow as was asked for."
_WAYS = {"left_out": "Failures left out", "worst": "Worst case", "best": "Best case"}
Side = Literal["recipe", "area"]


def judges_in_order(stress: StressResult) -> list[str]:
    """The names of all judges, controls last."""
    return sorted(stress.judges, key=lambda name: stress.judges[name] == "control")


def shown_name(stress: StressResult, judge: str) -> str:
    """The name, with `(control)` after it where it is one."""
    return f"{judge} (control)" if stress.judges.get(judge) == "control" else judge or DASH


def metric_title(stress: StressResult, metric: str) -> str:
    """The title of a metric, and `All metrics` for EVERY."""
    if metric == EVERY:
        return "All metrics"
    return next((m.title for m in stress.rubric.metrics if m.id == metric), metric)


def main_metric(stress: StressResult) -> Metric | None:
    """The demanded metric that most violations must worsen, the rubric's first of several."""

    def pairs(metric: Metric) -> int:
        return max((_pairs(stress, judge, metric) for judge in stress.judges), default=0)

    return max(stress.demanded_metrics, key=pairs, default=None)


def _pairs(stress: StressResult, judge: str, metric: Metric) -> int:
    found = stress.violations("detected", judge, metric.id)
    return found.n + found.n_missing


def _by_judge(
    stress: StressResult, about: str, value: Callable[[str, str], Estimate], row: str
) -> tuple[Cell, ...]:
    """The name of a row, what it is about, and one estimate for each judge."""
    cells = (Cell(estimate=value(judge, row)) for judge in judges_in_order(stress))
    return (Cell(row), Cell(about), *cells)


def _columns(stress: StressResult, *stubs: str) -> tuple[str, ...]:
    return (*stubs, *(shown_name(stress, judge) for judge in judges_in_order(stress)))


def _worst_first(
    stress: StressResult, rows: Iterable[str], value: Callable[[str, str], Estimate]
) -> list[str]:
    """The rows by the largest value of the real judges, undefined ones last."""

    def worst(row: str) -> float:
        values = [value(judge, row).value for judge in stress.real_judges]
        return max((v for v in values if v is not None), default=-1.0)

    return sorted(rows, key=worst, reverse=True)


def _biases(stress: StressResult) -> Mapping[str, str]:
    return {recipe.name: recipe.bias or DASH for recipe in stress.recipes}


# --- violations ----------------------------------------------------------------------------------


def detection_table(stress: StressResult, statistic: str, side: Side) -> Table:
    """One number of the violations, by recipe or by area and demanded metric; judges across.

    All together first.
    """
    heading, meaning = ON_VIOLATIONS[statistic]
    together = f"All {side}s"
    rows = tuple(
        (
            Cell(together if name == EVERY else name),
            Cell(f"{metric.title}: {label}" if label else metric.title),
            *(
                _detection_cell(stress, statistic, judge, {side: name, "metric": metric.id})
                for judge in judges_in_order(stress)
            ),
        )
        for name, metric, label in _demands(stress, side)
    )
    return Table(
        f"stress_{statistic}-{side}",
        f"Violations, {heading.lower()}, by {side}: judges beside the control judges, "
        "failures left out",
        _columns(stress, side.capitalize(), "Must reach"),
        rows,
        (f"{heading}: {meaning}.", *([_MORE] if statistic == "detected" else [])),
        stubs=2,
    )


def _demands(stress: StressResult, side: Side) -> Iterator[tuple[str, Metric, str]]:
    """Name, metric and demanded label of each row, EVERY first, then as they were measured."""
    other = {"recipe": "area", "area": "recipe"}[side]
    mine = stress.rows.select("violations", "detected", failures="left_out", **{other: EVERY})
    labels = {(row[side], row.metric): row["label"] for row in mine}
    for name in sorted(dict.fromkeys(row[side] for row in mine), key=lambda name: name != EVERY):
        for metric in stress.demanded_metrics:
            if (name, metric.id) in labels:
                yield name, metric, labels[name, metric.id]


def _detection_cell(
    stress: StressResult, statistic: str, judge: str, where: Mapping[str, str]
) -> Cell:
    more = stress.violations("more_needed", judge, **where).value if statistic == "detected" else 0
    remark = f"{more:,} more needed" if more else ""
    estimate = stress.violations(statistic, judge, **where)
    return Cell(estimate=estimate, remark=remark, signed=statistic == "advantage")


def failures_table(stress: StressResult) -> Table:
    """The detection rate three ways, for each judge and metric of which verdicts are missing."""
    rows = tuple(
        (
            Cell(shown_name(stress, judge)),
            Cell(metric.title),
            *(
                Cell(estimate=stress.violations("detected", judge, metric.id, failures=way))
                for way in _WAYS
            ),
        )
        for judge in judges_in_order(stress)
        for metric in stress.demanded_metrics
        if stress.rows.select(
            "violations", "detected", judge=judge, metric=metric.id,
            recipe=EVERY, area=EVERY, failures="worst",
        )
    )  # fmt: skip
    return Table(
        "stress_failures",
        "Violations detected where verdicts are missing: three ways to count them",
        ("Judge", "Metric", *_WAYS.values()),
        rows,
        (
            "Worst case: every failure counted as not detected. "
            "Best case: every failure counted as detected.",
        ),
        stubs=2,
    )


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

    def missed(judge: str, recipe: str) -> Estimate:
        return stress.violations("detected", judge, named[recipe].id, recipe=recipe).complement

    return Table(
        "stress_missed",
        "Violations missed: 1 minus the detection rate, worst recipe first",
        _columns(stress, "Recipe", "Metric"),
        tuple(
            _by_judge(stress, named[recipe].title, missed, recipe)
            for recipe in _worst_first(stress, named, missed)
        ),
        ("A judge that calls everything severe misses nothing: read its false alarms beside it.",),
        stubs=2,
    )


# --- what must not move a verdict ----------------------------------------------------------------


def flips_table(stress: StressResult, most: int | None = None) -> Table:
    """Flip rate over all metrics together: the worst probe first, `most` of them; judges across.

    Planted verdicts have a table of their own.
    """
    tricks = stress.rows.values("recipe", "planted")
    rows = stress.rows.select("invariance", "flipped", metric=EVERY)
    probes = dict.fromkeys(row["recipe"] for row in rows if row["recipe"] not in tricks)

    def flipped(judge: str, probe: str) -> Estimate:
        return stress.number("invariance", "flipped", judge, metric=EVERY, recipe=probe)

    cut = most is not None and most < len(probes)
    biases = _biases(stress)
    return Table(
        "stress_worst_flips" if most else "stress_flips",
        "Probes that must not move a verdict: flip rate, "
        + (f"the {most} worst of {len(probes)} probes" if cut else "worst probe first"),
        _columns(stress, "Probe", "Bias (CALM)"),
        tuple(
            _by_judge(stress, biases.get(probe, DASH), flipped, probe)
            for probe in _worst_first(stress, probes, flipped)[:most]
        ),
        (
            "Flip rate: share of pairs in which the label of at least one metric differs; worst "
            "over the judges, controls left out. 1 minus it is the robustness rate of Ye et al. "
            "(2024), from whom the names of the biases are.",
        ),
        stubs=2,
    )


def probe_tables(stress: StressResult) -> Iterator[Table]:
    """One long table for each judge: every probe on every metric, the worst probe first."""
    order = {row[0].text: place for place, row in enumerate(flips_table(stress).rows)}
    for number, judge in enumerate(judges_in_order(stress), start=1):
        mine = [(r["recipe"], r.metric) for r in stress.rows.select("invariance", "p", judge=judge)]
        mine.sort(key=lambda one: order.get(one[0], len(order)))
        yield Table(
            f"stress_probes-{number}",
            f"Every probe on every metric: {shown_name(stress, judge)}",
            ("Probe", "Metric", "Flip rate", "More severe", "Less severe", "Shift", "p",
             "p after Holm"),
            tuple(_probe_row(stress, judge, probe, metric) for probe, metric in mine),
            (
                "Shift: mean change of severity, summed over the metrics for all of them; "
                "positive where the verdict got more severe. "
                "p: exact sign test on the direction of the shifts, cluster by cluster; after "
                "Holm over this judge's probes on the metric.",
            ),
            stubs=2,
        )  # fmt: skip


def _probe_row(stress: StressResult, judge: str, probe: str, metric: str) -> tuple[Cell, ...]:
    def number(statistic: str) -> Estimate:
        return stress.number("invariance", statistic, judge, metric=metric, recipe=probe)

    return (
        Cell(probe),
        Cell(metric_title(stress, metric)),
        *(Cell(estimate=number(s)) for s in ("flipped", "more_severe", "less_severe")),
        Cell(estimate=number("shift"), signed=True),
        *(Cell(_p(number(s).value)) for s in ("p", "p_holm")),
    )


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.001" if value < 0.001 else format_number(value)


def planted_table(stress: StressResult) -> Table:
    """How often each trick got what it asks for on any metric: worst trick first; judges across."""
    tricks = [t for t in stress.rows.values("recipe", "planted") if t != EVERY]

    def success(judge: str, trick: str) -> Estimate:
        return stress.number("planted", "success", judge, metric=EVERY, recipe=trick)

    biases = _biases(stress)
    return Table(
        "stress_planted",
        "Planted verdicts: how often each trick got what it asks for, worst trick first",
        _columns(stress, "Trick", "Bias (CALM)"),
        tuple(
            _by_judge(stress, biases.get(trick, DASH), success, trick)
            for trick in _worst_first(stress, tricks, success)
        ),
        (
            "Share of the items on which at least one metric was moved to the demanded label, of "
            "those where the judge had not said so before.",
        ),
        stubs=2,
    )


# --- the judge itself, and what was done ---------------------------------------------------------


def consistency_table(stress: StressResult) -> Table:
    """How often a judge says the same when asked the same again."""
    rows = []
    for judge in judges_in_order(stress):
        for asked in stress.rows.select("consistency", "asked", judge=judge):
            where = {"judge": judge, "metric": asked.metric, "recipe": asked["recipe"]}
            rows.append(
                (
                    Cell(shown_name(stress, judge)),
                    Cell(metric_title(stress, asked.metric)),
                    Cell(f"{asked.estimate.value:,}"),
                    Cell(estimate=stress.number("consistency", "agreement", **where)),
                    Cell(
                        estimate=stress.number("consistency", "majority_gain", **where),
                        signed=True,
                    ),
                )
            )
    return Table(
        "stress_consistency",
        "Self-consistency: the same question asked again",
        ("Judge", "Metric", "Verdicts per item", "Agreement", "Majority gain"),
        tuple(rows),
        (
            "Agreement: share of pairs of an item's verdicts that are equal. Majority gain: "
            "accuracy of the majority over the repeats minus that of the first verdict.",
        ),
        stubs=2,
    )


def halo_table(stress: StressResult) -> Table:
    """How far the labels of different metrics go together, beside the humans."""
    rows = [
        (
            Cell(shown_name(stress, row.judge)),
            Cell(row["who"]),
            Cell(estimate=row.estimate, signed=True),
            Cell(
                estimate=stress.number("halo", "beyond_humans", row.judge, who=row["who"]),
                signed=True,
            ),
        )
        for row in stress.rows.select("halo", "correlation")
    ]
    return Table(
        "stress_halo",
        "Halo: how far the labels of different metrics go together",
        ("Judge", "Labels by", "Mean correlation", "Beyond the humans"),
        tuple(rows),
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
                Cell(f"{r.n_rejected:,}", remark=_reasons(r)),
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


def _reasons(recipe: RecipeSummary) -> str:
    """`by check: similarity 3, length 1`; an item may fail several checks."""
    counts = ", ".join(f"{check} {n:,}" for check, n in recipe.rejected.items() if n)
    return f"by check: {counts}" if counts else ""
