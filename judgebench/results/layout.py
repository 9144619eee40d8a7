"""Declared tables: one engine that turns rows of results into a table.

An analysis declares a `Layout` (key, title, headings, notes) and says in which line and column
each number stands; nothing else makes a pivot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.results.tables import DASH, Cell, Table, p_cell

T = TypeVar("T")  # the findings that a table is made of
Content = Cell | Estimate | str | int | None
Contents = Sequence[Content]
Keys = Mapping[str, str]
Line = tuple[Contents, Keys]  # what a line begins with, and the keys of its numbers
P_VALUES = ("p", "p_holm")


@dataclass(frozen=True, slots=True)
class Layout:
    """The declaration of a table.

    `stubs` are the headings of what names a line, `beside` of what else stands in it before the
    numbers. `headings` are those of columns by statistic, in their order. Numbers of the statistics
    in `signed` have a sign; `absent` is shown where a line has no number. Empty notes are left out.

    >>> from judgebench.records import Estimate
    >>> rows = [
    ...     Row("score", "accuracy", Estimate(0.9, n=10), "m", "tone"),
    ...     Row("score", "accuracy", Estimate(0.7, n=10), "n", "tone"),
    ... ]
    >>> declared = Layout("accuracy", "Accuracy", ("Metric",))
    >>> table = declared.of(rows, lambda row: (row.metric,), lambda row: row.judge)
    >>> table.columns, [cell.value for cell in table.rows[0]]
    (('Metric', 'm', 'n'), ['tone', '0.900', '0.700'])
    >>> [cell.value for cell in declared.listing([("tone",), (1000,)]).rows[1]]
    ['1,000']
    """

    key: str
    title: str
    stubs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    signed: Collection[str] = ()
    absent: Content = ""

    def of(
        self,
        rows: Iterable[Row],
        line: Callable[[Row], Contents],
        column: Callable[[Row], str] | None = None,
        across: Iterable[str] | None = None,
        cell: Callable[[Row], Content] | None = None,
    ) -> Table:
        """A line for all rows with the same beginning, in the order in which they come.

        A column is the heading of a row's statistic, unless `column` says another. The columns are
        those in `across`, else every one that occurs, in the order of `headings`.
        """
        lines: dict[tuple[Content, ...], dict[str, Content]] = {}
        heading = column or (lambda row: self.headings[row.statistic])
        content = cell or self.cell
        for row in rows:
            lines.setdefault(tuple(line(row)), {})[heading(row)] = content(row)
        if across is None:
            found = dict.fromkeys(heading for numbers in lines.values() for heading in numbers)
            across = [*(h for h in self.headings.values() if h in found), *found]
        columns = tuple(dict.fromkeys(across))
        return self._table(
            columns,
            ((*begin, *(n.get(h, self.absent) for h in columns)) for begin, n in lines.items()),
        )

    def by_keys(
        self,
        rows: Iterable[Row],
        down: Sequence[str],
        across: str = "statistic",
        names: Mapping[str, Mapping[str, str]] = {},
        cell: Callable[[Row], Content] | None = None,
    ) -> Table:
        """A line for all rows with the same values of the keys `down`, and a column for each value
        of the key `across`; `names` are shown in place of values of a key, `headings` if it is
        `across`."""
        shown = {across: self.headings, **names}

        def name(row: Row, key: str) -> str:
            return shown.get(key, {}).get(row[key], row[key])

        return self.of(
            rows,
            lambda row: [name(row, key) for key in down],
            lambda row: name(row, across),
            cell=cell,
        )

    def crossed(
        self,
        down: Iterable[Line],
        across: Sequence[tuple[str, Keys]],
        cell: Callable[[Keys], Content],
    ) -> Table:
        """A line for each of `down` and a column for each of `across`, which are headings with
        keys; `cell` finds the number that has the keys of both."""
        lines = ((*begin, *(cell({**keys, **more}) for _, more in across)) for begin, keys in down)
        return self._table(tuple(heading for heading, _ in across), lines)

    def listing(self, lines: Iterable[Contents]) -> Table:
        """The lines as they are, under the headings `stubs` and `beside`."""
        return self._table((), lines)

    def cell(self, row: Row) -> Cell:
        """The number of a row, with a sign where its statistic has one; of a p value no more than
        three digits."""
        if row.statistic in P_VALUES:
            return p_cell(row.estimate)
        return Cell(estimate=row.estimate, signed=row.statistic in self.signed)

    def _table(self, across: tuple[str, ...], lines: Iterable[Contents]) -> Table:
        rows = tuple(tuple(map(as_cell, line)) for line in lines)
        columns = (*self.stubs, *self.beside, *across)
        notes = tuple(filter(None, self.notes))
        return Table(self.key, self.title, columns, rows, notes, len(self.stubs))


@dataclass(frozen=True)
class TableSpec(Generic[T]):
    """The declaration of a table of one analysis: `rows` are those of the findings that it shows,
    of whose keys those in `down` name a line and `across` a column. `stubs` are the headings of
    keys whose heading is not their name, `headings` those of the columns, in their order.

    >>> from judgebench.records import Estimate
    >>> rows = [Row("gain", "p", Estimate(0.0004, n=10), "m", "tone")]
    >>> spec = TableSpec[list[Row]]("gains", "Gains", list, ("metric", "judge"))
    >>> table = spec.layout.by_keys(spec.rows(rows), spec.down, names={"metric": {"tone": "Tone"}})
    >>> table.columns, [cell.value for cell in table.rows[0]]
    (('Metric', 'Judge', 'p'), ['Tone', 'm', '< 0.001'])
    """

    key: str
    title: str
    rows: Callable[[T], Iterable[Row]]
    down: tuple[str, ...] = ("metric",)
    across: str = "statistic"
    notes: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    stubs: Mapping[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """The table without its rows; a dash where a line has no number."""
        stubs = tuple(self.stubs.get(key, key.capitalize()) for key in self.down)
        return Layout(self.key, self.title, stubs, self.notes, headings=self.headings, absent=None)


def as_cell(content: Content) -> Cell:
    """The cell with this content: a dash for None, a whole number with its thousands apart."""
    if isinstance(content, Cell):
        return content
    if isinstance(content, Estimate):
        return Cell(estimate=content)
    if content is None:
        return Cell(DASH)
    return Cell(f"{content:,}" if isinstance(content, int) else content)
