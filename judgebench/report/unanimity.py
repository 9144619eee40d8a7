"""Tables of the judges on unanimous and on split items."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.align import PARTS, SOFT_AGREEMENT, STATISTICS, Alignment, ByUnanimity, Part
from judgebench.records import Estimate
from judgebench.report.lookup import controls, real_judges
from judgebench.results.tables import Cell, Table

_HEADINGS = {
    "accuracy": STATISTICS["accuracy"],
    "severe_recall": STATISTICS["severe_recall"],
    "soft_agreement": SOFT_AGREEMENT,
}
_COUNTED = "soft_agreement"  # n and n_missing of which are all items of a part


def unanimity_tables(alignment: Alignment) -> list[Table]:
    """A table for each statistic; none where no item has two labels, so that nothing is apart."""
    apart = any(_items(x) and x.part != "single" for x in alignment.by_unanimity)
    tables = [unanimity_table(alignment, statistic) for statistic in _HEADINGS if apart]
    return [table for table in tables if table.rows]


def unanimity_table(alignment: Alignment, statistic: str) -> Table:
    """One statistic: metrics and parts of their items down; judges, then controls, across."""
    found = {(x.metric, x.part, x.judge, x.statistic): x.estimate for x in alignment.by_unanimity}
    items = {(x.metric, x.part): _items(x) for x in alignment.by_unanimity if _items(x)}
    real = [judge.name for judge in real_judges(alignment)]
    others = [judge.name for judge in controls(alignment)]

    def cells(metric: str, part: Part) -> Iterator[Cell]:
        for name in (*real, *others):
            missing = Estimate(None, reason="not computed for this metric")
            yield Cell(estimate=found.get((metric, part, name, statistic), missing))

    rows = tuple(
        (
            Cell(metric.title),
            Cell(words),
            Cell(f"{items[metric.id, part]:,}"),
            *cells(metric.id, part),
        )
        for metric in alignment.rubric.metrics
        for part, words in PARTS.items()
        if (metric.id, part) in items
        and any((metric.id, part, name, statistic) in found for name in (*real, *others))
    )
    heading, meaning = _HEADINGS[statistic]
    return Table(
        f"unanimity-{statistic}",
        f"{heading} where annotators agree and where they differ, failures left out",
        ("Metric", "Items on which", "Items", *real, *(f"{name} (control)" for name in others)),
        rows,
        (
            f"{heading}: {meaning}.",
            "Items with a label of those who make the truth. Where they differ, one truth is a "
            "poor yardstick: soft agreement asks how many of them the judge agrees with.",
        ),
        stubs=2,
    )


def _items(x: ByUnanimity) -> int:
    """How many items its part has; 0 where another statistic counts them."""
    return x.estimate.n + x.estimate.n_missing if x.statistic == _COUNTED else 0
