"""A task's instances from a table: one CSV or JSONL file, or one per split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import model_validator

from judgebench.data.cells import Cell, is_blank
from judgebench.data.findings import Findings, nearest
from judgebench.data.open_table import open_table
from judgebench.errors import Problem, SetupError, shorten, some
from judgebench.ranking.proxy.task import SPLITS, Split, SplitSizes, TaskInstance, seeded_split
from judgebench.records import content_hash
from judgebench.yaml_file import Strict

_HEADERLESS = (".json", ".jsonl", ".ndjson")  # of these the first row is row 1, of others row 2
_SPELLINGS: dict[str, Split] = {
    **{split: split for split in SPLITS},
    **dict.fromkeys(("dev", "valid", "validation"), SPLITS[1]),
}
_FEWEST_OPTIONS = 2


class Columns(Strict):
    """Which column holds what. `options` is one column that holds a list, or several columns."""

    text: str
    label: str
    argument: str
    item_id: str | None = None
    context: str | None = None
    group: str | None = None
    split: str | None = None
    options: str | tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _several_options(self) -> Columns:
        if isinstance(self.options, tuple) and len(self.options) < _FEWEST_OPTIONS:
            raise ValueError("options: name two columns or more, or one column that holds a list")
        return self

    @property
    def of_options(self) -> tuple[str, ...]:
        """The columns of the options; none where classes are given."""
        return (self.options,) if isinstance(self.options, str) else self.options or ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that must be there."""
        single = (getattr(self, key) for key in Columns.model_fields if key != "options")
        return (*(column for column in single if column is not None), *self.of_options)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a file. `row` counts from 0 without the header; `line` as a spreadsheet shows it."""

    file: str
    row: int
    line: int
    cells: Mapping[str, Cell]

    def text(self, column: str | None) -> str:
        """The stripped text of the column; '' where none is named."""
        cell = "" if column is None else self.cells[column]
        return cell.strip() if isinstance(cell, str) else ""

    def problem(self, message: str, column: str, found: str, allowed: str = "") -> Problem:
        """A problem with a cell of this row."""
        return Problem(message, self.file, self.line, column, found, allowed)


def read_source(path: Path, columns: Sequence[str], problems: list[Problem]) -> list[SourceRow]:
    """The sound rows of a file, plain or gzipped; everything wrong with it goes to `problems`."""
    findings = Findings()
    rows = list(source_rows(path, columns, findings))
    problems += findings.errors
    return rows


def source_rows(path: Path, columns: Sequence[str], findings: Findings) -> Iterator[SourceRow]:
    """The sound rows of a file that has all columns, one by one."""
    table = open_table(path, findings)
    if table is None:
        return
    first = 1 if path.name.lower().removesuffix(".gz").endswith(_HEADERLESS) else 2
    names = [name for name in table.columns if name]
    places = {column: table.find(column) for column in columns}
    known = {column: place for column, place in places.items() if place is not None}
    for column in (c for c in places if c not in known):
        message, allowed = f"has no such column{nearest(column, names)}", some(names)
        findings.add("missing_column", message, (str(path), 1), column, allowed=allowed)
    for line, cells, sound, _ in table.rows:
        if sound and len(known) == len(places):
            held = {column: cells[place] for column, place in known.items()}
            yield SourceRow(str(path), line - first, line, held)


def read_table_task(
    paths: Mapping[str, Path],
    columns: Columns,
    labels: Sequence[str],
    sizes: SplitSizes | None,
    seed: int,
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    """The instances of the file `data`, or of one file per split, and sentences for the report.

    Rows without an argument are left out and counted. Raises SetupError with every problem of every
    file: a missing column or cell, an unknown label or split, a duplicate item.
    """
    problems: list[Problem] = []
    found: dict[str, TaskInstance] = {}
    without = 0
    for key, path in paths.items():
        for row in read_source(path, columns.named, problems):
            if is_blank(row.text(columns.argument)):
                without += 1
                continue
            instance = _instance(row, columns, labels, "" if key == "data" else key, problems)
            if instance.item_id in found:
                column = columns.item_id or "item_id"
                problems.append(row.problem("duplicate id", column, shorten(instance.item_id)))
            found[instance.item_id] = instance
    if problems:
        raise SetupError(problems)
    notes = [f"{without} rows without an argument are left out."] if without else []
    instances = list(found.values())
    if sizes is not None:
        contents = [content_hash([i.text, i.options, i.context, i.argument]) for i in instances]
        instances = seeded_split(instances, contents, sizes, seed)
    return instances, tuple(notes)


def _instance(
    row: SourceRow, columns: Columns, labels: Sequence[str], split: str, problems: list[Problem]
) -> TaskInstance:
    """The instance of a row; its split is any where neither the row nor its file says it."""
    for column in (columns.text, columns.label, columns.item_id):
        if column is not None and is_blank(row.text(column)):
            problems.append(row.problem("is blank", column, ""))
    options = _options(row, columns, problems)
    places = tuple(str(i) for i in range(1, len(options) + 1))
    label = row.text(columns.label)
    allowed = places if columns.options else labels
    if label and label not in allowed:
        message = "is no place of an option" if columns.options else "is no label of the task"
        message += "" if columns.options else nearest(label, labels)
        problems.append(row.problem(message, columns.label, shorten(label), ", ".join(allowed)))
    if columns.split is not None:
        named = row.text(columns.split)
        split = _SPELLINGS.get(named.lower(), "")
        if not split:
            message = "is no split"
            problems.append(row.problem(message, columns.split, repr(named), ", ".join(SPLITS)))
    return TaskInstance(
        row.text(columns.item_id) or f"{split}-{row.row}".lstrip("-"), row.text(columns.text),
        label, row.text(columns.argument), _SPELLINGS.get(split, SPLITS[0]), options,
        row.text(columns.context), row.text(columns.group), row=row.row,
    )  # fmt: skip


def _options(row: SourceRow, columns: Columns, problems: list[Problem]) -> tuple[str, ...]:
    """The options of a row; blank ones at the end are none, so that rows may differ in number."""
    if columns.options is None:
        return ()
    if isinstance(columns.options, str):
        cell = row.cells[columns.options]
        if not isinstance(cell, tuple):
            message = "must hold a list; of a CSV name one column for each option"
            problems.append(row.problem(message, columns.options, shorten(str(cell))))
            return ()
        options = [option.strip() for option in cell]
    else:
        options = [row.text(column) for column in columns.options]
    while options and is_blank(options[-1]):
        options.pop()
    if len(options) < _FEWEST_OPTIONS or any(map(is_blank, options)):
        message = "two options or more are needed, none of them blank"
        problems.append(row.problem(message, ", ".join(columns.of_options), repr(options)))
    return tuple(options)
