"""The tables and figures of a table's correlations."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.records import Estimate
from judgebench.report.words import counted
from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import Cell, Table
from judgebench.scorers.correlate import Correlations
from judgebench.scorers.part import TITLES
from judgebench.scorers.redundant import redundancy_block
from judgebench.stats.association import critical_r, shows_nothing

_LEVELS = {
    "pooled": "over all items", "within": "within groups, the mean of those that vary",
    "system": "over systems",
}  # fmt: skip


def correlations_part(found: Correlations) -> Part:
    """The part; its CSV file is correlations.csv."""
    against = found.rows.values("metric", "correlation")
    tables = [
        _table(found, one, level)
        for one in against
        for level in found.rows.values("level", "correlation")
    ]
    figures = tuple(_figure(found, one) for one in against)
    sentences = tuple(_sentences(found))
    title = f"Which of {counted(len(found.columns), 'column')} say the same"
    held = Block("How the columns go together", sentences, tuple(tables), figures, on_screen=True)
    same = redundancy_block(found.redundant, found.columns, "correlations", title)
    return Part(
        "correlations", "how scores go together", found.rows, (held, same), screen=(held, same)
    )


def _sentences(found: Correlations) -> Iterator[str]:
    """What so few systems can show, and how many columns show it."""
    systems = {
        row.estimate.n for row in found.rows.select("correlation", "pearson", level="system")
    }
    yield from map(shows_nothing, sorted(systems))
    for one in found.rows.values("metric", "test"):
        about = {"metric": one, "of": "pearson"}
        raw, holm = (
            [r.estimate.value for r in found.rows.select("test", key, **about)]
            for key in ("p", "p_holm")
        )
        tested = [p for p in raw if p is not None]
        passed, left = (sum(p is not None and p < 0.05 for p in ps) for ps in (raw, holm))
        yield (
            f"{one}: {passed} of {counted(len(tested), 'column')} with p < .05, where chance alone "
            f"gives {0.05 * len(tested):.1f}; after Holm's correction {left or 'none'}."
        )


def _table(found: Correlations, against: str, level: str) -> Table:
    about = {"metric": against, "level": level}
    rows = found.rows.select("correlation", **about)
    columns = list(dict.fromkeys(row.judge for row in rows))
    statistics = list(dict.fromkeys(row.statistic for row in rows))
    chance = bool(found.rows.select("chance", **about))
    tested = found.units == "systems"
    headings = [TITLES[s] for s in statistics] + ["By chance"] * chance + ["Holm p of r"] * tested
    lines = []
    for column in columns:
        cells = [found.rows.find(s, "correlation", judge=column, **about) for s in statistics]
        if chance:
            cells.append(found.rows.find("pairwise", "chance", judge=column, **about))
        if tested:
            keys = {"judge": column, "metric": against, "of": "pearson"}
            cells.append(found.rows.find("p_holm", "test", **keys))
        lines.append((Cell(column), *(Cell(estimate=cell) for cell in cells)))
    key, title = f"correlations_{level}_{against}", f"Columns beside {against}, {_LEVELS[level]}"
    return Table(key, title, ("Column", *headings), tuple(lines))


def _figure(found: Correlations, against: str) -> Intervals:
    """Pearson's r of every column, with what so many systems could show."""
    rows = found.rows.select("correlation", "pearson", metric=against)
    by_column: dict[str, list[Row]] = {}
    for row in rows:
        by_column.setdefault(row.judge, []).append(row)
    lines = tuple(
        (column, tuple(Lane(_LEVELS[row["level"]], "judge", row.estimate) for row in of))
        for column, of in by_column.items()
    )
    bounds = {"no correlation": 0.0}
    n = max((row.estimate.n for row in rows if row["level"] == "system"), default=0)
    if least := critical_r(n):
        bounds |= {f"needed with {n} systems": least, "the same, negative": -least}
    title = f"Pearson's r of every column with {against}"
    key = f"correlations_{against}"
    return Intervals(key, title, lines, "Pearson's r", bounds, (-1.02, 1.02), "Column")
