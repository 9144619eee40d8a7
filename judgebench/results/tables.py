"""Cells and tables, and what each number in them rests on.

A cell is a text or an Estimate. What an Estimate rests on (n, missing, interval, method, reason)
is stated once for most cells of a table and by a mark for each that differs, so that no number
stands without it in any format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from string import ascii_lowercase
from typing import Generic, Literal, TypeVar

from judgebench.records import Estimate, Row

DASH = "–"
NO_REASON = "no reason was given"

# How a cell is coloured where a format has colours; its text says the same in words.
CellTone = Literal["", "good", "fair", "bad", "unclear", "none"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. With an `estimate`, `text` is empty; `remark` is shown beside what it rests on;
    a `percent` is shown as one, and a `signed` one in points; `best` is shown in bold. On a page it
    leads to `link`, a place in it or a file beside it."""

    text: str = ""
    estimate: Estimate | None = None
    remark: str = ""
    signed: bool = False
    percent: bool = False
    best: bool = False
    look: CellTone = ""
    link: str = ""

    @property
    def value(self) -> str:
        """`0.812`, `–` where undefined, or the text."""
        if self.estimate is None:
            return self.text
        if self.percent and self.estimate.value is not None:
            return f"{self._shown(self.estimate.value)} {'points' if self.signed else '%'}"
        return format_number(self.estimate.value, self.signed)

    @property
    def interval(self) -> str:
        """`[0.774, 0.850]`, or empty."""
        e = self.estimate
        if e is None or e.value is None or e.low is None or e.high is None:
            return ""
        return f"[{self._shown(e.low)}, {self._shown(e.high)}]"

    def _shown(self, x: float) -> str:
        if self.percent:
            return f"{100 * x:+.1f}" if self.signed else _per_cent(x)
        return format_number(x, self.signed)

    @property
    def provenance(self) -> str:
        """All that the number rests on; empty for a text without a remark."""
        return _besides(self, usual=("", ""))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, of which the first `stubs` name the row, and rows as long as `columns`.

    `key` is stable and unique in a report. `notes` are sentences to stand under the table.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()
    stubs: int = 1


@dataclass(frozen=True, slots=True)
class Footnotes:
    """`usual` is what most estimates of a table rest on; `marks` gives every other text a mark."""

    usual: tuple[str, str]  # counts, and the interval's method
    marks: Mapping[str, str]

    def mark(self, cell: Cell) -> str:
        """The mark of a cell, or empty where the usual sentence says it all."""
        return self.marks.get(_besides(cell, self.usual), "")

    def sentences(self, table: Table) -> list[str]:
        """The sentences under the table, without the marked ones."""
        if not any(self.usual):
            return list(table.notes)
        unless = "Unless a mark says otherwise" if self.marks else "Everywhere"
        return [*table.notes, f"{unless}: {'; '.join(self.usual)}."]


def footnotes(table: Table) -> Footnotes:
    """The marks of the cells of a table that need one, in reading order."""
    cells = [cell for row in table.rows for cell in row]
    counted = Counter(_basis(c.estimate) for c in cells if c.estimate and c.interval)
    usual = counted.most_common(1)[0][0] if counted else ("", "")
    texts = dict.fromkeys(text for cell in cells if (text := _besides(cell, usual)))
    return Footnotes(usual, {text: _mark(i) for i, text in enumerate(texts)})


def _mark(i: int) -> str:
    """a, b, … z, a1, b1, …"""
    return f"{ascii_lowercase[i % 26]}{i // 26 or ''}"


def _besides(cell: Cell, usual: tuple[str, str]) -> str:
    """The text of a note on a cell beside the usual sentence of its table."""
    parts = [cell.remark]
    if cell.estimate:
        shown = [p for p, u in zip(_basis(cell.estimate), usual, strict=True) if p != u]
        parts += [*shown, cell.estimate.reason]
        if cell.estimate.value is None:
            parts = [cell.remark, f"undefined: {cell.estimate.reason or NO_REASON}", *shown]
    return "; ".join(part.rstrip(". ") for part in parts if part)


def _basis(estimate: Estimate) -> tuple[str, str]:
    """`n = 97, 3 missing` and `95 % interval: method`; what there is none of is said or empty."""
    counts = f"n = {estimate.n:,}, {estimate.n_missing:,} missing"
    if estimate.value is None:
        return counts, ""
    if estimate.low is None or estimate.high is None:
        return counts, "no interval" * ("no interval" not in estimate.reason)
    return counts, f"{estimate.level * 100:g} % interval: {estimate.method or 'method not stated'}"


def format_number(value: float | None, signed: bool = False) -> str:
    """`0.812`, `+0.812` where signed, `–` where undefined; never a negative zero."""
    if value is None:
        return DASH
    text = format(value, "+.3f" if signed else ".3f")
    return text[1:] if text in ("-0.000", "+0.000") else text


def brief(cell: Cell) -> str:
    """`.79 [.77, .81]`: two digits, and no zero before the point of a share."""
    e = cell.estimate
    if e is None or e.value is None:
        return cell.value.replace("\n", " ")
    low, high = (_two(x or 0.0, cell.signed) for x in (e.low, e.high))
    return _two(e.value, cell.signed) + f" [{low}, {high}]" * bool(cell.interval)


def _two(number: float, signed: bool) -> str:
    shown = f"{number:{'+' if signed else ''}.2f}"
    shown = shown.lstrip("+-") if float(shown) == 0 else shown.replace("-", "−")
    return re.sub(r"^([+−]?)0\.", r"\1.", shown)


def rests_on(table: Table, more: str = "") -> Iterator[str]:
    """One sentence on what the estimates rest on, those of some columns on fewer data."""
    by_column = zip(*table.rows, strict=True)
    columns = [[cell.estimate for cell in column if cell.estimate] for column in by_column]
    headings_by_n: dict[str, list[str]] = {}
    for heading, column in zip(table.columns, columns, strict=True):
        if counts := [e.n for e in column if e.value is not None]:
            n = " to ".join(dict.fromkeys(f"{n:,}" for n in (min(counts), max(counts))))
            headings_by_n.setdefault(n, []).append(heading)
    estimates = [estimate for column in columns for estimate in column]
    if headings_by_n:
        n = ", ".join(f"{n} ({', '.join(names)})" for n, names in headings_by_n.items())
        n = n if len(headings_by_n) > 1 else next(iter(headings_by_n))
        levels = [e.level for e in estimates if e.low is not None]
        interval = f"; {100 * min(levels):g} % intervals" if levels else ""
        yield f"n = {n}{interval}{more}."
    if any(e.value is None for e in estimates):
        yield f"{DASH}: undefined."


def p_cell(p: Estimate) -> Cell:
    """`0.031` or `< 0.001`, or a dash that says why there is no p value."""
    if p.value is None:
        return Cell(DASH, remark=f"undefined: {p.reason or NO_REASON}")
    return Cell("< 0.001" if p.value < 0.001 else format_number(p.value))


def split_columns(table: Table, widths: Sequence[int], room: int) -> list[Table]:
    """The table as several: of its columns beside the stubs, which have these `widths`, as many
    together as fit the `room`."""
    edges, used = [table.stubs], 0
    for i, width in enumerate(widths, table.stubs):
        used += width
        if used > room and i > edges[-1]:
            edges.append(i)
            used = width

    blocks = []
    for start, end in pairwise((*edges, len(table.columns))):
        kept = [*range(table.stubs), *range(start, end)]
        rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
        columns = tuple(table.columns[i] for i in kept)
        blocks.append(replace(table, columns=columns, rows=rows))
    return blocks


def in_per_cent(e: Estimate, gap: str = " ", *, bare: bool = False) -> str:
    """`53 % [29, 76]`, with a decimal below 10 %; without its interval where `bare`.

    >>> in_per_cent(Estimate(0.034, 0.021, 0.12))
    '3.4 % [2.1, 12]'
    """
    if e.value is None:
        return DASH
    value, low, high = (_per_cent(x or 0.0) for x in (e.value, e.low, e.high))
    return f"{value} %" if bare or e.low is None else f"{value} %{gap}[{low}, {high}]"


def _per_cent(x: float) -> str:
    return f"{100 * x:.{1 if x < 0.0995 else 0}f}".removesuffix(".0")


T = TypeVar("T")  # the findings that a table is made of
Content = Cell | Estimate | str | int | None
Contents = Sequence[Content]
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
