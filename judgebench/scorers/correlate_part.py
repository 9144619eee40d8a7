"""The tables and figures of a table's correlations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judgebench.results.part import Block, Intervals, Lane, Part
from judgebench.results.rows import Row
from judgebench.results.tables import Cell, Table, p_text
from judgebench.scorers.correlate import Correlations
from judgebench.scorers.redundant import redundancy_block
from judgebench.scorers.result import TITLES
from judgebench.stats.association import COEFFICIENTS
from judgebench.stats.few_systems import critical_r, shows_nothing
from judgebench.words import counted

_LEVELS = {
    "pooled": "over all items", "within": "within groups, the mean of those that vary",
    "system": "over systems",
}  # fmt: skip
_THESE = (
    "Intervals are about these systems. What would hold for systems like these depends on how many "
    "they are."
)
_MANY = 50  # systems show also what is weak
_STRONGEST = 12  # columns on a screen


def correlations_part(found: Correlations) -> Part:
    """The part; its CSV file is correlations.csv."""
    against = found.rows.values("metric", "correlation")
    levels = found.rows.values("scope", "correlation")
    tables = [_table(found, one, level) for one in against for level in levels]
    figures = tuple(_figure(found, one) for one in against)
    sentences = tuple(_sentences(found))
    held = Block("How the columns go together", sentences, tuple(tables), figures, on_screen=True)
    same = replace(redundancy_block(found.rows), on_screen=not against)
    brief = replace(held, tables=tuple(map(_brief, tables)), figures=())
    screen = (brief, replace(same, tables=(), figures=()))
    return Part("correlations", "how scores go together", found.rows, (held, same), screen=screen)


def _brief(table: Table) -> Table:
    """Its strongest columns."""
    left = len(table.rows) - _STRONGEST
    notes = (f"And {counted(left, 'weaker column')}, with -v.",) if left > 0 else ()
    return replace(table, rows=table.rows[:_STRONGEST], notes=(*table.notes, *notes))


def _sentences(found: Correlations) -> Iterator[str]:
    """What is no system, what so few can show, and how many columns show it."""
    yield from found.references
    systems = {
        row.estimate.n for row in found.rows.select("correlation", "pearson", scope="system")
    }
    yield from map(shows_nothing, sorted(n for n in systems if n < _MANY))
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
            f"gives {0.05 * len(tested):.2g}; after Holm's correction {left or 'none'}."
        )


def _table(found: Correlations, against: str, level: str) -> Table:
    """A row for each column, the strongest first."""
    about = {"metric": against, "scope": level}
    rows = sorted(found.rows.select("correlation", "pearson", **about), key=_strength)
    statistics = [c for c in COEFFICIENTS if found.rows.select("correlation", c, **about)]
    chance = bool(found.rows.select("chance", **about))
    tested = bool(found.rows.select("test", metric=against))
    headings = [TITLES[s] for s in statistics] + ["By chance"] * chance + ["Holm p of r"] * tested
    lines = []
    for row in rows:
        keys = {"judge": row.judge, "metric": against}
        cells = [
            Cell(estimate=found.rows.find(s, "correlation", judge=row.judge, **about))
            for s in statistics
        ]
        beside = [found.rows.find("pairwise", "chance", judge=row.judge, **about)] * chance
        beside += [found.rows.find("p_holm", "test", of="pearson", **keys)] * tested
        cells += [Cell(p_text(one.value)) for one in beside]
        lines.append((Cell(row.judge), *cells))
    key, title = f"correlations_{level}_{against}", f"Columns beside {against}, {_LEVELS[level]}"
    notes = (_THESE,) if level == "system" and not tested else ()
    return Table(key, title, ("Column", *headings), tuple(lines), notes)


def _strength(row: Row) -> float:
    return 1.0 if row.estimate.value is None else -abs(row.estimate.value)


def _figure(found: Correlations, against: str) -> Intervals:
    """Pearson's r of every column, with what so many systems could show."""
    rows = found.rows.select("correlation", "pearson", metric=against)
    by_column: dict[str, list[Row]] = {}
    for row in rows:
        by_column.setdefault(row.judge, []).append(row)
    lines = tuple(
        (column, tuple(Lane(_LEVELS[row["scope"]], "judge", row.estimate) for row in of))
        for column, of in by_column.items()
    )
    bounds = {"no correlation": 0.0}
    n = max((row.estimate.n for row in rows if row["scope"] == "system"), default=0)
    if least := critical_r(n):
        bounds |= {f"needed with {n} systems": least, "the same, negative": -least}
    title = f"Pearson's r of every column with {against}"
    key = f"correlations_{against}"
    return Intervals(key, title, lines, "Pearson's r", bounds, (-1.02, 1.02), "Column")
