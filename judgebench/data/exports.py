"""Tables that other tools export, known by columns that every table of a tool has.

A record of exports.yaml says what the columns are, and how rows are made where a row holds several
labels. The names of columns that are made begin with `_`: `_item` has the role `item`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from judgebench.data.formats import Cell, Table, nested
from judgebench.data.vocabulary import ROLES, Column, plain_name, role_of, words
from judgebench.errors import Problem, SetupError

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_LABELS = 12  # of a metric; what has more is a score or a text
_MAX_KINDS = 40  # spellings of words such as human and LLM
_KINDS = ("annotator_kind", "source_type", "kind", "source")  # columns that may say who judged


@dataclass(frozen=True)
class Export:
    """The format of a tool; exports.yaml explains the fields."""

    tool: str
    source: str
    has: str
    columns: Mapping[str, str] = field(default_factory=dict)
    open: str = ""
    people: str = ""
    only: Mapping[str, list[str]] = field(default_factory=dict)
    melt: str = ""
    explode: str = ""
    join: str = ""
    spell: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """Rows that are read alike: those with these cells, and what every column is in them. `spell`
    says what texts mean: `first`, `second`, `tie` or `failed`."""

    only: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, Column]
    spell: Mapping[str, str] = field(default_factory=dict)


@cache
def exports() -> Mapping[str, Export]:
    """The known formats by the name of the tool."""
    text = Path(__file__).with_name("exports.yaml").read_text(encoding="utf-8")
    return {record["tool"]: Export(**record) for record in yaml.safe_load(text)}


def recognise(table: Table) -> Export | None:
    """The format of a table; None where no tool is known to write it."""
    names = table.columns
    fits = [e for e in exports().values() if all(_matching(names, p) for p in e.has.split())]
    return max(fits, key=lambda export: len(export.has.split()), default=None)


def _matching(names: Iterable[Any], pattern: str) -> list[str]:
    return [name for name in names if re.fullmatch(pattern, name)]


# Rows ------------------------------------------------------------------------------------------


def reshaped(table: Table, tool: str) -> Table:
    """The table with a row for each label of an item, made as the record of the tool says, always
    alike. Raises SetupError where the tool is not known, and where lists do not fit."""
    import pandas as pd

    if tool not in exports():
        allowed = ", ".join(exports())
        raise SetupError(Problem("is no known export", table.file, None, "export", tool, allowed))
    export = exports()[tool]
    frame = pd.DataFrame(dict(table.columns), list(table.lines), dtype=object)
    if export.explode:
        try:
            frame = _exploded(frame, export.explode)
        except ValueError as error:
            raise SetupError(Problem(f"holds no lists of responses: {error}", table.file)) from None
    for name in [name for name in frame if tuple in {*map(type, frame[name])}]:
        is_name = re.fullmatch(export.join, str(name)) is not None
        frame[name] = frame[name].map(lambda c, all_=is_name: _joined(c, all_))
    for pattern in [p for p in export.melt.split() if _matching(frame, p)][:1]:
        frame = _melted(frame, pattern)
    for role, patterns in export.columns.items():
        among = [name for pattern in patterns.split() for name in _matching(frame, pattern)[:1]]
        cells = frame[[name for name in among if any(frame[name])]]
        if len(cells.columns) > 1 and "" in set(cells.iloc[:, 0]):
            frame[f"_{role}"] = cells.where(cells != "").bfill(axis=1).iloc[:, 0].fillna("")
    columns = {str(name): frame[name].tolist() for name in frame}
    return replace(table, columns=columns, lines=frame.index.tolist())


def _joined(cell: Cell, is_name: bool) -> Cell:
    """The text of a list of one, and of any list in a name."""
    return " ".join(cell) if isinstance(cell, tuple) and (is_name or len(cell) == 1) else cell


def _exploded(frame: DataFrame, pattern: str) -> DataFrame:
    """A row for each submitted response and each suggestion to a question, where columns of this
    pattern list those of all people. Raises ValueError where the lists do not fit."""
    import pandas as pd

    names, frames = _matching(frame, pattern), []
    others, blank = frame.drop(columns=names), pd.Series("", frame.index)
    for name in _matching(names, r".+\.responses"):
        question = name.removesuffix(".responses")
        ends = {"_label": "", "_annotator": ".users", "_status": ".status"}
        lists = {c: frame[name + e].map(_entries) for c, e in ends.items() if name + e in frame}
        people = others.assign(_kind="human", _status="submitted").assign(**lists)
        people = people.explode([*lists])
        people = people[people.pop("_status") == "submitted"]
        label = frame.get(f"{question}.suggestion", blank)
        agent = frame.get(f"{question}.suggestion.agent", blank).replace("", "suggestion")
        agents = others.assign(_kind="model", _label=label, _annotator=agent)
        rows = pd.concat([people, agents[label != ""]]).dropna(subset="_label")
        if _are_labels(rows["_label"]):
            frames.append(rows.assign(_metric=question))
    return pd.concat(frames) if frames else others


def _entries(cell: Cell) -> list[Any]:
    entries = nested(cell) or []
    if not isinstance(entries, list | tuple):
        raise ValueError(f"{cell!r} is no list")
    return [tuple(entry) if isinstance(entry, list) else entry for entry in entries]


def _melted(frame: DataFrame, pattern: str) -> DataFrame:
    """A row for each cell in columns of this pattern, beside what the groups of their names say. A
    question with answers of its own is no item; a box, of which the name says the label, is true or
    false."""
    names = _matching(frame, pattern)
    texts = {name: {t for t in frame[name] if t and isinstance(t, str)} for name in names}
    counts = Counter(chain.from_iterable(texts.values()))
    if "<item>" in pattern:
        names = [name for name in names if any(counts[text] > 1 for text in texts[name])]
    if "<label>" in pattern:
        names = [name for name in names if {t.casefold() for t in texts[name]} <= {"true", "false"}]
    if not names:
        return frame
    others = [name for name in frame if name not in names]
    frame = frame.melt(others, names, "_column", "_label", ignore_index=False)
    is_ticked = frame["_label"].isin(["true", "TRUE", "True"])
    frame = frame[is_ticked if "<label>" in pattern else frame["_label"] != ""]
    keys = frame.pop("_column").str.extract(pattern).fillna("").add_prefix("_")
    frame[[*keys]] = keys
    return frame.assign(_row=[f"row {line}" for line in frame.index])


# Columns ---------------------------------------------------------------------------------------


def parts(table: Table, export: Export) -> list[Part]:
    """The rows of people and of models in a table that was `reshaped`, and its columns in each."""
    columns = _columns(table, export)
    only = {
        name: tuple(cell for cell in cells if cell in {*table.texts(name)})
        for pattern, cells in export.only.items()
        for name in _matching(table.columns, pattern)
    }
    part = Part(only, columns, export.spell)
    kinds = _of(columns, "kind", "annotator")
    return _split(table, kinds[0], export.people, part) if export.people and kinds else [part]


def _of(columns: Mapping[str, Column], *roles: str) -> list[str]:
    return [name for role in roles for name, column in columns.items() if column.role == role]


def _columns(table: Table, export: Export) -> dict[str, Column]:
    """What the record of a tool says of the columns; of `open` ones it says nothing."""
    columns: dict[str, Column] = {}
    for role in [*export.columns, *ROLES]:
        for pattern in (f"_{role}", *export.columns.get(role, "").split()):
            names = [n for n in _matching(table.columns, pattern) if any(table.columns[n])]
            for name in [n for n in names if n not in columns]:
                is_named = "<metric>" in pattern
                metric = re.sub(f"^{pattern}$", r"\g<metric>", name) if is_named else ""
                if not metric or _are_labels(table.columns[name]):
                    columns[name] = Column(role, metric, why=export.tool)
            if names:
                break
    rest = [n for n in table.columns if n not in columns and not re.fullmatch(export.open, n)]
    return columns | dict.fromkeys(rest, Column("ignored", why=export.tool))


def _are_labels(cells: Iterable[Cell]) -> bool:
    """True of few kinds of cells, one of which at least stands there twice."""
    texts = [str(cell) for cell in cells if cell]
    return len({*texts}) <= min(MAX_LABELS, len(texts) - 1)


def split_kinds(table: Table, columns: Mapping[str, Column]) -> list[Part] | None:
    """The rows of people and of models of any table with a column that says whose they are; None
    where it has none. `columns` are those that are known."""
    ends = {name: name.rpartition(".")[2] for name in table.columns}
    named = [name for name, end in ends.items() if role_of(end) == "annotator"]
    known = dict.fromkeys(named[:1], Column("annotator", why="its name")) | dict(columns)
    for name, end in ends.items():
        is_kind = columns[name].role == "kind" if name in columns else plain_name(end) in _KINDS
        # An object without labels in a list has a row, which has no cell here.
        cells = {cell for cell in table.texts(name) if cell or end == name} if is_kind else set()
        if len(cells) > _MAX_KINDS:
            continue
        people = {cell for cell in cells if plain_name(cell) in words("human")}
        models = {cell for cell in cells if plain_name(cell) in words("machine")}
        if people and models and people | models == cells:
            known[name] = Column("kind", why="its cells")
            return _split(table, name, "|".join(map(re.escape, people)), Part({}, known))
    return None


def split_names(table: Table, judges: Sequence[str]) -> list[Part]:
    """The rows of people, and of the annotators who are named as judges; all where none is."""
    column = next((name for name in table.columns if role_of(name) == "annotator"), "")
    names = dict.fromkeys(table.texts(column) if column else ())
    judged = tuple(name for name in names if name in judges)
    people = tuple(name for name in names if name not in judges)
    if not judged or not people:
        return [Part({}, {})]
    rows = ((people, "annotator"), (judged, "judge"))
    return [Part({column: cells}, {column: Column(role, why="its names")}) for cells, role in rows]


def _split(table: Table, kind: str, people: str, part: Part) -> list[Part]:
    """The rows of people, whose cells in one column are of this pattern, and those of each other
    cell. In rows of models, who labelled is the judge, and a label a verdict."""
    texts = table.texts(kind)
    humans = tuple(t for t in dict.fromkeys(texts) if t and re.fullmatch(people, t))
    models = [(text,) for text in dict.fromkeys(texts) if text and text not in humans]
    split = list[Part]()
    for cells in [humans, *models] if humans else models:
        rows = table.at([place for place, text in enumerate(texts) if text in cells])
        unnamed = {n for n in _of(part.columns, "annotator") if not any(rows.texts(n))}
        roles = {"annotator": "judge", "label": "verdict"} if cells != humans else {}
        who = cells[0] if unnamed and len(models) > 1 else ""
        columns = {}
        for name, column in part.columns.items():
            role = "ignored" if name in unnamed else roles.get(column.role, column.role)
            columns[name] = replace(column, role=role, who=who if role == "verdict" else "")
        only = {**part.only, kind: cells}
        split.append(replace(part, only=only, columns=columns))
    return split
