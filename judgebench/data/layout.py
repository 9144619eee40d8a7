"""What every column of every table is.

A layout is plain data: it is printed before any number, written and read as YAML, and everything
else in it can be said by flags or in Python. `infer` proposes one; `rows` reads tables by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from judgebench.data.exports import reshaped
from judgebench.data.findings import Findings
from judgebench.data.formats import Table
from judgebench.data.logs import LOG_SHEETS, log_tables, read_log
from judgebench.data.tables import frame_table, open_table, table_in
from judgebench.data.vocabulary import ROLES, SAID, Column
from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.files import StrictModel, load_model
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.text import counted

_MAX_CELLS, _LONGEST_CELL, _LONGEST_NAME, _MAX_UNREAD = 3, 16, 80, 20
_NAME_WIDTH = 30
NOT_CONFIRMED = "not confirmed"


@dataclass(frozen=True)
class Source:
    """Where a table lies, and which of its rows count. `who` labelled or judged, where neither a
    column nor a head says it."""

    path: Path
    frame: Any = field(default=None, compare=False, repr=False)
    sheet: str = ""
    header: tuple[int, ...] = ()
    skip: tuple[int, ...] = ()
    fill_down: tuple[str, ...] = ()
    export: str = ""  # the known format by which its rows are made
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # rows that count, by column
    who: str = ""

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.path.name}, sheet {self.sheet}" if self.sheet else self.path.name

    def read(self, findings: Findings) -> Table | None:
        """The rows that count; None where there is no table, which is reported."""
        if self.frame is not None:
            table = frame_table(self.frame, str(self.path), findings)
        elif self.sheet in LOG_SHEETS and (log := read_log(self.path)):
            table = next((t for t in log_tables(log) if t.sheet == self.sheet), None)
        else:
            path = table_in(self.path)
            table = open_table(path, findings, sheet=self.sheet, header=self.header)
        if table is None:
            return None
        table = without_rows(table, self.skip)
        for column in self.fill_down:
            table = filled_down(table, column)
        if self.export:
            table = reshaped(table, self.export)
        return self.narrowed(table)

    def narrowed(self, table: Table) -> Table:
        """The rows of a table that count."""
        for column, words in self.only.items():
            cells = table.texts(column)
            table = table.at([i for i, cell in enumerate(cells) if cell in words])
        return table


def without_rows(table: Table, skip: tuple[int, ...]) -> Table:
    """The table without rows of these numbers."""
    if not skip:
        return table
    return table.at([i for i, line in enumerate(table.lines) if line not in skip])


def filled_down(table: Table, column: str) -> Table:
    """The table with the cell above in every blank cell of a column, as merged cells mean it."""
    cells: Iterator[str] = accumulate(table.texts(column), lambda above, text: text or above)
    return replace(table, columns={**table.columns, column: [*cells]})


@dataclass(frozen=True)
class Sheet:
    """A table, and what its columns are: each has exactly one role."""

    source: Source
    columns: Mapping[str, Column]
    turns: Literal["last", "every", "whole"] = "last"  # of a conversation: what is judged
    table: Table | None = field(default=None, compare=False, repr=False)

    def of(self, *roles: str) -> list[str]:
        """The columns of these roles, in the order of the roles. A column of the item, or of its
        group, may say something else, too: `item system`, `group question`."""
        return [name for role in roles for name in self._by_role.get(role, ())]

    @cached_property
    def _by_role(self) -> Mapping[str, Sequence[str]]:
        by_role: dict[str, list[str]] = {}
        for name, column in self.columns.items():
            also = column.metric if column.role in ("item", "group") else ""
            for role in dict.fromkeys((column.role, also or column.role)):
                by_role.setdefault(role, []).append(name)
        return by_role

    def first(self, role: str) -> str:
        """The first column of a role; empty where there is none."""
        return next(iter(self.of(role)), "")

    @property
    def has_labels(self) -> bool:
        """True where people's labels stand in it."""
        return bool(self.of("label", "labels", "adjudicated"))

    @property
    def has_verdicts(self) -> bool:
        """True where judges' verdicts stand in it."""
        return bool(self.of("verdict", "reply"))


Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str | int | float) else v)
]
Spelling = Mapping[str, str | None]


@dataclass(frozen=True, repr=False)
class Layout:
    """The layout of all tables that belong together. `spellings` says, by the id of a metric, what
    texts mean that are no label's own spelling: a label, or None for no label at all."""

    sheets: tuple[Sheet, ...]
    rubric: Rubric
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()  # texts that mean that a judge failed; "*" any other
    repeats: Literal["", "first", "last"] = ""  # which of several labels of one person counts
    only_common: bool = False  # items that one table lacks are left out, and did not fail
    several: str = ""  # what stands between several labels in a cell
    ids: str = ""  # how ids of two tables are compared, if not exactly
    judges: tuple[str, ...] = ()  # that count; all without any
    truth: Mapping[str, Any] = field(default_factory=dict)  # what is declared of the labels
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(layout_lines(self))

    @property
    def name(self) -> str:
        """The first of its tables."""
        return self.sheets[0].source.name

    @property
    def unconfirmed_question(self) -> str:
        """The column of questions that nobody confirmed; empty where somebody did."""
        groups = [
            (c, sheet.columns[c])
            for sheet in self.sheets
            for c in sheet.of("group", "question")
            if sheet.of("item") != [c] and (sheet.table is None or any(sheet.table.texts(c)))
        ]
        said = any(column.why == SAID for _, column in groups if column.role != "question")
        return "" if said or not groups else groups[0][0]


def layout_lines(layout: Layout) -> Iterator[str]:
    """Every table with its columns, what each is and why; then the metrics and what was noticed."""
    for sheet in layout.sheets:
        n_rows = "" if sheet.table is None else f"  {counted(len(sheet.table), 'row')}"
        yield f"{sheet.source.name}{_settings(sheet)}{n_rows}"
        unread = [name for name, column in sheet.columns.items() if column.role == "ignored"]
        rows = [
            (n, str(c), _cells(sheet, n), c.why)
            for n, c in sheet.columns.items()
            if n not in unread[_MAX_UNREAD:]
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(3)] if rows else [0] * 3
        for name, role, cells, why in rows:
            if name == layout.unconfirmed_question and name in sheet.of("group", "question"):
                why = f"{why}; {NOT_CONFIRMED}: --question {name!r}"
            width = min(widths[0], _NAME_WIDTH)
            start = f"  {name[:_LONGEST_NAME]:{width}}  {role:{widths[1]}}"
            yield f"{start}  {cells:{widths[2]}}  {why}"
        if len(unread) > _MAX_UNREAD:
            yield f"  and {counted(len(unread) - _MAX_UNREAD, 'more column')} ignored"
    yield from _after_tables(layout)


def layout_notes(layout: Layout) -> Iterator[str]:
    """The same for under a result, without cells of the tables."""
    for sheet in layout.sheets:
        unread = [name for name, column in sheet.columns.items() if column.role == "ignored"]
        words = [f"{n} = {column}" for n, column in sheet.columns.items() if n not in unread]
        words += [f"not read: {some(unread, _MAX_UNREAD)}"] if unread else []
        yield f"{sheet.source.name}{_settings(sheet)}: {', '.join(words)}"
    yield from _after_tables(layout)


def _after_tables(layout: Layout) -> Iterator[str]:
    """The metrics, and what was noticed."""
    for metric in layout.rubric.metrics:
        yield f"metric {metric.title}: {labels_in_words(metric)}"
    yield from (
        f"no judge labelled {title}: nothing is decided there" for title in _unjudged(layout)
    )
    yield from layout.notes


def _unjudged(layout: Layout) -> Iterator[str]:
    """The metrics without a column of verdicts, where every such column is of a metric."""
    columns = [sheet.columns[c] for sheet in layout.sheets for c in sheet.of("verdict", "reply")]
    judged = {column.metric for column in columns}
    if judged and "" not in judged:
        yield from (m.title for m in layout.rubric.metrics if m.id not in judged)


def _settings(sheet: Sheet) -> str:
    source = sheet.source
    words = [f"export of {source.export}"] if source.export else []
    words += [f"{column} is {', '.join(cells)}" for column, cells in source.only.items()]
    for start, rows in (("header in row", source.header), ("without rows", source.skip)):
        words += [f"{start} {', '.join(map(str, rows))}"] if rows else []
    return f" ({'; '.join(words)})" if words else ""


def _cells(sheet: Sheet, column: str) -> str:
    """The first different cells of a column."""
    texts = sheet.table.texts(column) if sheet.table else []
    first = list(dict.fromkeys(text for text in texts[:200] if text))[:_MAX_CELLS]
    return ", ".join(t if len(t) <= _LONGEST_CELL else f"{t[:_LONGEST_CELL]}…" for t in first)


def labels_in_words(metric: Metric) -> str:
    """The labels, from the least severe where an order is said."""
    if metric.kind == "ordinal":
        return " < ".join(metric.label_texts)
    unknown = " (no order said)" if metric.order == "unknown" else ""
    return ", ".join(metric.label_texts) + unknown


def _checked_role(text: str) -> str:
    """The text, if it is a role. Raises ValueError."""
    Column.parse(text)
    return text


_SAME_KEYS = ("repeats", "only_common", "several", "ids", "truth")  # of a layout and of its YAML
SOURCE_KEYS = ("sheet", "header", "skip", "fill_down", "export", "only", "who")


class SheetModel(StrictModel):
    """A table in a layout.yaml; paths are relative to its own folder."""

    file: Annotated[str, Field(min_length=1, pattern=r"^[^\x00]+$")]
    sheet: str = ""
    header: Annotated[
        tuple[int, ...], BeforeValidator(lambda v: (v,) if isinstance(v, int) else v)
    ] = ()
    skip: tuple[int, ...] = ()
    fill_down: Texts = ()
    export: str = ""
    only: dict[str, Texts] = Field(default_factory=dict)
    who: str = ""
    turns: Literal["last", "every", "whole"] = "last"
    columns: dict[str, Annotated[str, AfterValidator(_checked_role)]]


class LayoutModel(StrictModel):
    """A layout.yaml: what every column of some tables is, and what texts mean that are no label."""

    rubric: str = ""
    tables: tuple[SheetModel, ...] = Field(min_length=1)
    spell: dict[str, dict[str, str | None]] = Field(default_factory=dict)
    failed: Texts = ()
    repeats: Literal["", "first", "last"] = ""
    only_common: bool = False
    several: str = ""
    ids: str = ""
    truth: dict[str, Any] = Field(default_factory=dict)


def is_layout(path: Path) -> bool:
    """True of a file that is YAML by its name."""
    return path.suffix.lower() in (".yaml", ".yml")


def load_layout(path: Path, rubric: Rubric | None = None, folder: Path | None = None) -> Layout:
    """The layout of a file, whose tables are looked for in `folder`, its own by default; by a
    `rubric` in the place of the file's. Raises SetupError with every problem."""
    model = load_model(path, LayoutModel)
    if rubric is None:
        if not model.rubric:
            message = "names no rubric, which says what the labels are: `rubric: rubric.yaml`"
            raise SetupError(Problem(message, str(path), None, "rubric"))
        rubric = load_rubric(model.rubric, relative_to=path.parent)
    spellings, problems = _by_metric(model.spell, rubric, str(path))
    raise_any(problems)
    sheets = tuple(_sheet(table, folder or path.parent) for table in model.tables)
    return Layout(
        sheets, rubric, spellings, frozenset(model.failed),
        **{key: getattr(model, key) for key in _SAME_KEYS},
    )  # fmt: skip


def _sheet(one: SheetModel, folder: Path) -> Sheet:
    source = Source(folder / one.file, **{key: getattr(one, key) for key in SOURCE_KEYS})
    columns = {name: Column.parse(text) for name, text in one.columns.items()}
    return Sheet(source, columns, one.turns)


def _by_metric(
    spell: Mapping[str, Spelling], rubric: Rubric, file: str
) -> tuple[Mapping[str, Spelling], list[Problem]]:
    """The spellings by the ids of metrics, in exact labels."""
    spellings, problems = dict[str, dict[str, str | None]](), list[Problem]()
    for name, pairs in spell.items():
        metric = rubric.find(name)
        if metric is None:
            allowed = ", ".join(m.id for m in rubric.metrics)
            problems.append(Problem("is no metric", file, None, "spell", name, allowed))
            continue
        spellings[metric.id] = {
            text: label and metric.parse(label) for text, label in pairs.items()
        }
        problems += [
            Problem(f"is no label of {metric.id}", file, None, f"spell.{name}", label,
                    ", ".join(metric.options))
            for label in pairs.values() if label and not metric.parse(label)
        ]  # fmt: skip
    return spellings, problems


def read_sheet(sheet: Sheet, findings: Findings) -> Sheet | None:
    """The sheet with its table; None where it has none, or has not these columns alone, which is
    reported."""
    if sheet.table is not None:
        return sheet
    table = sheet.source.read(findings)
    if table is None:
        return None
    problems = list(_unlike(sheet, table))
    findings.extend("missing_column", problems)
    return None if problems else replace(sheet, table=table)


def _unlike(sheet: Sheet, table: Table) -> Iterator[Problem]:
    """The columns that a layout names and the table lacks, and those that it does not name."""
    for name in sheet.columns:
        if name not in table.columns:
            yield Problem("has no such column", table.file, 1, name, "", ", ".join(table.columns))
    for name in table.columns:
        if name not in sheet.columns:
            message = f"the layout says nothing of this column: add `{name}: ROLE` to its columns"
            yield Problem(message, table.file, 1, name, "", f"ignored, {', '.join(ROLES)}")


def as_yaml(layout: Layout, folder: Path, rubric: str = "") -> str:
    """The layout as a layout.yaml in that folder. Raises SetupError for a DataFrame, which has no
    file."""
    model = LayoutModel(
        rubric=rubric,
        tables=tuple(_sheet_model(sheet, folder) for sheet in layout.sheets),
        spell={metric: dict(pairs) for metric, pairs in layout.spellings.items()},
        failed=tuple(sorted(layout.failed)),
        **{key: getattr(layout, key) for key in _SAME_KEYS},
    )
    dumped = yaml.safe_dump(
        model.model_dump(mode="json", exclude_defaults=True),
        sort_keys=False, allow_unicode=True, width=100, default_flow_style=False,
    )  # fmt: skip
    return f"# What every column is; docs/data_reference.md explains the roles.\n{dumped}"


def _sheet_model(sheet: Sheet, folder: Path) -> SheetModel:
    source = sheet.source
    if source.frame is not None:
        message = "is a DataFrame, which a layout.yaml cannot name: write it to a file"
        raise SetupError(Problem(message, source.name))
    return SheetModel(
        file=path_from(folder, source.path),
        turns=sheet.turns,
        columns={name: str(column) for name, column in sheet.columns.items()},
        **{key: getattr(source, key) for key in SOURCE_KEYS},
    )


def path_from(folder: Path, path: Path) -> str:
    """The path as a file in the folder writes it."""
    inside = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    return path.absolute().as_posix() if inside.startswith("../..") else inside
