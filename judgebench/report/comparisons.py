"""Tables of judges held against each other, and of the Alternative Annotator Test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judgebench.align import Alignment, Comparison
from judgebench.records import Estimate
from judgebench.report.lookup import controls
from judgebench.results.tables import DASH, NO_REASON, Cell, Table, format_number

ALL_TIE = "all judges tie on every metric"
_NEVER_APART = "the two are right equally often on every question"
_YES_OR_NO = {True: "yes", False: "no", None: DASH}


def comparison_table(alignment: Alignment) -> Table:
    """Each two real judges on each metric, and each real judge beside the control nearest to it."""
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    not_real = {judge.name for judge in controls(alignment)}
    rows = tuple(
        (
            Cell(titles.get(c.metric, c.metric)),
            Cell(f"{c.first} − {c.second}{' (control)' if c.second in not_real else ''}"),
            Cell(estimate=c.difference, signed=True),
            *(_p_cell(p, c.difference) for p in (c.mcnemar_p, c.permutation_p, c.p_holm)),
        )
        for c in _shown(alignment.comparisons, not_real)
    )
    return Table(
        "comparisons",
        "Judges against each other: accuracy on the same items",
        ("Metric", "Judges", "Difference", "McNemar mid-p", "Permutation p", "p after Holm"),
        rows,
        (
            "Difference: accuracy of the first minus that of the second, on items to which both "
            "gave a label. Of the controls, the one that comes nearest to the judge; all are in "
            "alignment.csv.",
            "McNemar's mid-p takes items as independent; the permutation test flips the sign of "
            "whole questions; Holm's correction is over all pairs of the metric.",
        ),
        stubs=2,
    )


def _shown(found: Iterable[Comparison], not_real: set[str]) -> Iterator[Comparison]:
    """Pairs of real judges, and of each judge and metric the control that it leads the least."""
    nearest: dict[tuple[str, str], Comparison] = {}
    for c in found:
        if c.second not in not_real:
            yield c
            continue
        place, best = (c.metric, c.first), nearest.get((c.metric, c.first))
        if best is None or _lead(c) < _lead(best):
            nearest[place] = c
    yield from nearest.values()


def _lead(c: Comparison) -> float:
    """By how much the first is ahead; infinite where that is undefined."""
    return float("inf") if c.difference.value is None else c.difference.value


def _p_cell(p: float | None, difference: Estimate) -> Cell:
    """A p value, or a dash that says why there is none."""
    if p is None:
        return Cell(DASH, remark=f"undefined: {why_no_p(difference)}")
    return Cell("< 0.001" if p < 0.001 else format_number(p))


def why_no_p(difference: Estimate) -> str:
    """The reason of a p value that two judges do not have."""
    if difference.value is None:
        return difference.reason or NO_REASON
    return _NEVER_APART


def ranking_table(alignment: Alignment) -> Table:
    """The judges by their average rank over the metrics; no row where there is no ranking."""
    names = {judge.name: f"{judge.name} (control)" for judge in controls(alignment)}
    found = [r for r in alignment.rankings if r.average_rank.value is not None]
    found.sort(key=lambda r: r.average_rank.value or 0)
    rows = tuple(
        (
            Cell(names.get(r.judge, r.judge)),
            Cell(f"{r.average_rank.value:.2f}"),
            Cell(r.group),
        )
        for r in found
    )
    notes = _ranking_notes(alignment) if found else ()
    title = "Judges ranked by accuracy over all metrics"
    return Table("ranking", title, ("Judge", "Average rank", "Group"), rows, notes)


def _ranking_notes(alignment: Alignment) -> tuple[str, ...]:
    first = alignment.rankings[0]
    n, missing = first.average_rank.n, first.average_rank.n_missing
    left_out = f", {missing} left out because a judge's accuracy is undefined" if missing else ""
    told = f"Friedman's test over {n} metrics{left_out}: "
    if first.friedman_p is None:
        told += f"{ALL_TIE}."
    else:
        p = "p < 0.001" if first.friedman_p < 0.001 else f"p = {first.friedman_p:.3f}"
        told += f"{p}; Nemenyi's critical difference {first.critical_difference:.2f}."
    return (
        told,
        "Judges that share a letter do not differ. Where Friedman's test finds nothing, all share "
        "one. Metrics of the same answers are not independent, so this is a reading aid: the "
        "judges are compared item by item elsewhere.",
    )
