"""`data.yaml`: how columns and spellings of files map to items, labels and the rubric.

The models of the file, its names in the rubric's own words (`resolve`), and the texts of cells as
labels (`read_label`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from judgebench.data.cells import Nested, clean, number_in, spreadsheet_damage, with_point
from judgebench.data.findings import Findings, nearest
from judgebench.rubric import BETWEEN, Metric, Rubric, listed_in
from judgebench.yaml_file import Strict

Format = Literal["csv", "tsv", "json", "jsonl", "parquet", "xlsx", "spaces"]

Holds = tuple[type, ...]  # of the cells of a column
_TEXT: Holds = (str,)
_LIST: Holds = (str, tuple)
_OBJECTS: Holds = (str, tuple, Nested)

_PART = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")


def parts_of(template: str) -> list[tuple[str, str]]:
    """The texts and columns of a template in their order: ("Q: ", ""), ("", "question"), …

    >>> parts_of("Q: {question}")
    [('Q: ', ''), ('', 'question')]
    """
    parts, end = [], 0
    for found in _PART.finditer(template):
        parts.append((template[end : found.start()], ""))
        parts.append(("", found[1]) if found[1] else (found[0][0], ""))
        end = found.end()
    return [part for part in (*parts, (template[end:], "")) if any(part)]


class Parts(NamedTuple):
    """What a text has to look like, and the names of its parts."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]

    def of(self, text: str) -> tuple[str, ...] | None:
        """The parts, each as short as it can be; None where the text does not look like it."""
        found = self.pattern.fullmatch(text)
        return found and found.groups()


@lru_cache
def parts_named(pattern: str, character: str = ".") -> Parts:
    """The parts that a pattern names: `{name}` is one, `{name:4}` one of four characters, and `*`
    is any text. Raises ValueError where a name or a number of characters is wrong.

    >>> parts_named("{document}__*__{asked:2}").of("d__7__M11__Q1")
    ('d', 'Q1')
    """
    names, pieces = list[str](), [""]  # each begins with a text of any length
    for text, part in parts_of(pattern):
        name, sized, width = part.partition(":")
        if sized and not re.fullmatch("[1-9][0-9]{0,3}", width):
            raise ValueError(f"{width!r} is no number of characters, as in {{{name}:4}}")
        if part and (not name.strip() or name in names):
            raise ValueError(f"every part needs a name of its own, not {name!r}")
        names += [name] if part else []
        if part and not sized:
            pieces.append(f"({character}+?)")
            continue
        first, *others = text.split("*")
        pieces[-1] += f"({character}{{{width}}})" if part else re.escape(first)
        pieces += [f"{character}*?{re.escape(other)}" for other in others]
    # A piece that was found stays: going back would take the square of a long text's length.
    regex = "".join(f"(?>{piece})" for piece in pieces[:-1]) + pieces[-1]
    return Parts(re.compile(regex, re.DOTALL), tuple(names))


def _is_pattern(value: str) -> str:
    if not parts_named(value).names:
        raise ValueError('names no part, as in "{document}__{question}"')
    return value


def _column(value: Any) -> Any:
    """A bare name in YAML is a column; a text with {columns} in it is built of these."""
    if isinstance(value, dict) and len(value) == 1 and None in value.values():
        (name,) = value
        raise ValueError(f'YAML reads {{{name}}} as a mapping: put it in quotes, "{{{name}}}"')
    if isinstance(value, str) and any(column for _, column in parts_of(value)):
        return {"template": value}
    return value if value is None or isinstance(value, dict | BaseModel) else {"column": value}


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Text = Annotated[str, Field(min_length=1)]
Spellings = dict[str, str | None]


Only = dict[Text, Annotated[tuple[Text, ...], BeforeValidator(_as_list)]]


class _Columns(Strict):
    """A column, or a `template` of several."""

    column: Text | None = None
    template: Text | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        if self.column is not None:
            return (self.column,)
        return tuple(name for _, name in parts_of(self.template or "") if name)


class Source(_Columns):
    """The source of a value: a column, a `template` of several columns, or the same `value` in
    every row."""

    value: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Source:
        if sum(x is not None for x in (self.column, self.template, self.value)) != 1:
            raise ValueError("give either a column or a value")
        return self


class IdSource(_Columns):
    """The source of an item's id: a column, a `template` of several, a hash of columns' texts,
    or the row's number."""

    hash_of: tuple[Text, ...] = ()
    row: bool = False
    prefix: str = ""

    @model_validator(mode="after")
    def _one(self) -> IdSource:
        named = (self.column is not None) + (self.template is not None)
        if named + bool(self.hash_of) + self.row != 1:
            raise ValueError("give exactly one of column, hash_of and row: true")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.hash_of or super().columns


# A list of one entry needs no dash.
Where = Annotated[Source, BeforeValidator(_column)]
WhereId = Annotated[IdSource, BeforeValidator(_column)]


class LabelSpec(Strict):
    """Human labels of a row: long (`metric` and `label` name columns) or wide (`metrics`).

    `metrics` maps a metric's id or title to the column that holds its labels. With `list: true`
    a cell holds the labels of several annotators: those that the cell of `annotator` lists as well,
    else `NAME#1`, `NAME#2`, … Without `annotator` the file's name is the annotator. `blank` is the
    label that a blank cell stands for, for all metrics of the entry or by metric. With `only` just
    the rows are read that hold these values in these columns.
    """

    annotator: Where | None = None
    metric: Text | None = None
    label: Text | None = None
    metrics: dict[Text, Text] = Field(default_factory=dict)
    list: bool = False
    spellings: dict[str, Spellings] = Field(default_factory=dict)
    blank: Text | dict[Text, Text] | None = None
    only: Only = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_shape(self) -> LabelSpec:
        if (self.metric is None) != (self.label is None):
            raise ValueError("metric and label name the two columns of a long table: give both")
        if (self.metric is None) == (not self.metrics) and not self._only_replies:
            raise ValueError("give either metric and label (long) or metrics (wide)")
        return self

    @property
    def _only_replies(self) -> bool:
        return False


class About(Strict):
    """The subject of labels beside the answers: an item, two responses to a question, or a
    criterion of an item.

    `question` and `group` say which items belong together, where the answers do not say it;
    `system` and the columns of `metadata` are kept with the item in the same way. `pair` are the
    two columns, or texts with columns in braces, that name the responses, by their systems or item
    ids; `item_id` is then the question, as the `group` of its answers. `criterion` is the column of
    its id.
    """

    item_id: WhereId
    pair: tuple[Where, Where] | None = None
    criterion: Text | None = None
    question: Where | None = None
    group: Where | None = None
    system: Where | None = None
    metadata: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _one_kind(self) -> About:
        if self.pair and self.criterion:
            raise ValueError("give either pair or criterion")
        if (self.pair or self.criterion) and (self.question or self.group):
            raise ValueError("pair and criterion say the group already: remove question and group")
        if (self.pair or self.criterion) and self.metadata:
            raise ValueError("metadata is kept of items, not of pair or criterion: remove it")
        if self.pair and getattr(self, "_only_replies", False):
            raise ValueError("the replies on a pair need its item id, and no pair")
        return self


class FileLabelSpec(LabelSpec, About):
    """Labels in a file without answers, or beside them."""


class VerdictSpec(LabelSpec):
    """Verdicts of judges, in the shapes of labels; `annotator`, in files `judge`, says whose.

    `status` and `raw` are columns. Where whole replies are parsed, `raw` alone is enough.
    `probabilities` maps a column to its label of a long table, or to [metric, label] of a wide one.
    `repeat` is the column that counts the passes of a judge that was asked several times,
    `rationale` that of its reasons.
    """

    annotator: Where | None = Field(default=None, alias="judge")
    status: Text | None = None
    raw: Text | None = None
    repeat: Text | None = None
    shown_first: Text | None = None
    rationale: Text | None = None
    probabilities: dict[Text, Text | tuple[Text, Text]] = Field(default_factory=dict)

    @property
    def _only_replies(self) -> bool:
        return self.raw is not None and self.metric is None and not self.metrics


class FileVerdictSpec(VerdictSpec, About):
    """Verdicts in a file without answers, or beside them."""


class ItemSpec(Strict):
    """One answer per row. Several of these take several answers from the same row.

    `text` is needed only where a model is to read the answers. `messages` is a column of
    conversations, of which `judge` says what is judged; a `text` beside it is the last turn.
    `criteria` is a column of what each item is to be checked by.
    """

    item_id: WhereId
    text: Where | None = None
    messages: Text | None = None
    judge: Literal["last", "every", "whole"] | None = None
    criteria: Text | None = None
    only: Only = Field(default_factory=dict)
    question: Where | None = None
    system: Where | None = None
    reference: Where | None = None
    group: Where | None = None
    metadata: tuple[Text, ...] = ()
    if_empty: Literal["error", "skip", "keep"] = "error"
    labels: Annotated[tuple[LabelSpec, ...], BeforeValidator(_as_list)] = ()
    verdicts: Annotated[tuple[VerdictSpec, ...], BeforeValidator(_as_list)] = ()

    @model_validator(mode="after")
    def _conversation(self) -> ItemSpec:
        if self.judge and not self.messages:
            raise ValueError(
                "judge says what is judged of a conversation: name its column, messages"
            )
        if self.messages and self.question and self.judge != "whole":
            raise ValueError(
                "the question is the conversation: remove question, or judge the whole"
            )
        if self.judge == "every" and (self.labels or self.verdicts or self.criteria):
            raise ValueError(
                "with `judge: every` a row gives several items, ID@2, ID@4 and so on, and labels "
                "and criteria must name these: put them into an entry of their own"
            )
        return self


class FileSpec(Strict):
    """A file and its contents. `format` is needed only where the name does not say it, `sheet` in
    a workbook of several.

    A `path` with `{names}` or `*` is of every file that fits it, and what stands for a name is a
    column of that name. `parts` makes columns of the parts of cells: `{id: "{document}__{asked}"}`.
    `columns` are those of a file of the format `spaces`, where its first line does not name them.
    `rows` is the path of a list in each object of JSON or JSONL, such as `annotations`: each of its
    entries makes a row, whose values are the columns `annotations.worker` and so on.
    `encoding: cp1252` is that of Windows, where a text is not UTF-8.
    `quoting: none` reads quotes in CSV and TSV as text; `standard` says that cells which look
    like several rows do span lines.
    """

    path: Annotated[Text, Field(pattern=r"^[^\x00]+$")]
    format: Format | None = None
    quoting: Literal["standard", "none"] | None = None
    encoding: Literal["cp1252"] | None = None
    sheet: Text | None = None
    columns: tuple[Text, ...] = ()
    rows: Text | None = None
    parts: dict[Text, Annotated[str, AfterValidator(_is_pattern)]] = Field(default_factory=dict)
    items: Annotated[tuple[ItemSpec, ...], BeforeValidator(_as_list)] = ()
    labels: Annotated[tuple[FileLabelSpec, ...], BeforeValidator(_as_list)] = ()
    verdicts: Annotated[tuple[FileVerdictSpec, ...], BeforeValidator(_as_list)] = ()

    @model_validator(mode="after")
    def _not_idle(self) -> FileSpec:
        if not (self.items or self.labels or self.verdicts):
            raise ValueError("give items, labels or verdicts: otherwise nothing is read")
        if any(column for _, column in parts_of(self.path)):
            parts_named(self.path)
        return self


class DataSpec(Strict):
    """A data.yaml. Paths are relative to its own folder.

    `spellings` maps, metric by metric, spellings in the files to a label of the rubric; null
    means blank. `labels_for_unknown_items: ignore` counts labels without an item instead of
    refusing them.
    """

    files: tuple[FileSpec, ...] = Field(min_length=1)
    spellings: dict[str, Spellings] = Field(default_factory=dict)
    labels_for_unknown_items: Literal["error", "ignore"] = "error"


@dataclass(frozen=True)
class Described:
    """Files, or a DataFrame in place of the one file, and what they hold."""

    spec: DataSpec
    frame: Any = None


def columns_of(file: FileSpec, several: bool = False) -> Iterator[tuple[str, Holds]]:
    """Every column that is read, and what its cells may hold: those of labels a list where a metric
    takes `several`."""
    yield from _each(_TEXT, *file.parts)
    entries: list[ItemSpec | FileLabelSpec | FileVerdictSpec] = [
        *file.items, *file.labels, *file.verdicts,
    ]  # fmt: skip
    for entry in entries:
        labels: Sequence[LabelSpec]
        beside: Sequence[_Columns | str | None]
        if isinstance(entry, ItemSpec):
            labels, beside = entry.labels, entry.metadata
            a_list = entry.reference and entry.reference.column
            yield from _each(_LIST if a_list else _TEXT, entry.reference)
            yield from _each(_OBJECTS, entry.messages, entry.criteria)
        else:
            labels = (entry,)
            beside = *(entry.pair or ()), entry.criterion, *entry.metadata
        sources = (getattr(entry, name, None) for name in ("text", "question", "system", "group"))
        yield from _each(_TEXT, entry.item_id, *entry.only, *sources, *beside)
        for spec in labels:
            cells = _LIST if spec.list else _TEXT
            yield from _each(cells, spec.annotator)
            yield from _each(_TEXT, spec.metric, *spec.only)
            yield from _each(_LIST if several else cells, spec.label, *spec.metrics.values())
            if isinstance(spec, VerdictSpec):
                beside = spec.status, spec.raw, spec.repeat, spec.shown_first, spec.rationale
                yield from _each(_TEXT, *beside, *spec.probabilities)


def _each(holds: Holds, *read: _Columns | str | None) -> Iterator[tuple[str, Holds]]:
    """The columns of sources and names, any of which may be lacking, with what they hold."""
    for one in read:
        names = one.columns if isinstance(one, _Columns) else (one,)
        yield from ((name, holds) for name in names if name)


_WHOLE_FLOAT = re.compile(r"\A(-?\d+)\.0+\Z")


class CellLabel(NamedTuple):
    """A cell's label, None where it is blank or wrong, and the problem met, if any."""

    label: str | None
    kind: str = ""
    message: str = ""
    allowed: str = ""


def read_label(metric: Metric, raw: str, spelt: Mapping[str, str | None]) -> CellLabel:
    """The label that a cell holds: by the data's own spellings first, then by the rubric's."""
    text, unseen, _ = clean(raw)
    if text == "" and (label := spelt.get("")):
        return CellLabel(label, "mapped_blank", f"blank cell, counted as {label!r}")
    if metric.several and text not in spelt:
        text = BETWEEN.join(spelt.get(one) or one for one in listed_in(text))
    # `2` for `2.0`, which is how many tables write the code 2 once a cell is blank, or for `2,0`
    number = number_in(with_point(text))
    same = (label for label in metric.options if number_in(with_point(label)) == number)
    for candidate in (text, _WHOLE_FLOAT.sub(r"\1", text), *same):
        label = spelt[candidate] if candidate in spelt else metric.parse(candidate)
        if candidate == "" or (candidate in spelt and label is None):
            return CellLabel(None, "blank_label", "blank cell, counted as no label")
        if label is not None:
            break
    else:
        return _unknown(metric, text, spelt)
    if candidate != text:
        return CellLabel(
            label, "float_label", "a number written otherwise, such as 2.0 or 2,0 for 2"
        )
    if unseen:
        return CellLabel(label, "invisible_characters", "invisible characters left out of a label")
    return CellLabel(label)


def _unknown(metric: Metric, text: str, spelt: Mapping[str, str | None]) -> CellLabel:
    spellings = [spelling for spelling in spelt if spelling]
    allowed = ", ".join((*metric.options, *spellings))
    if damage := spreadsheet_damage(text):
        return CellLabel(None, "spreadsheet_label", damage, allowed)
    aliases = [alias for label in metric.labels for alias in label.aliases]
    near = nearest(text, [*metric.options, *aliases, *spellings])
    return CellLabel(None, "unknown_label", f"is not a label of {metric.id}{near}", allowed)


def find_metric(name: str, rubric: Rubric) -> Metric | str:
    """The metric of that id or title, else what is wrong with the name."""
    metric = rubric.find(name)
    if metric is not None:
        return metric
    names = [name for m in rubric.metrics for name in (m.id, m.title)]
    return f"is not a metric of the rubric{nearest(name, names)}"


SpellingsOf = Mapping[str, Mapping[str, str | None]]


def resolve(spec: DataSpec, rubric: Rubric, findings: Findings, file: str) -> DataSpec:
    """`spec` whose `metrics` and `spellings` are keyed by metric id and end in exact labels.

    Every label entry carries all spellings that hold for it; that of "" is what a blank cell stands
    for. Wrong names and spellings that can never apply are reported.
    """
    names = _Names(rubric, findings, file)
    common = names.spellings(spec.spellings, "spellings")
    files = []
    for i, one in enumerate(spec.files):
        items = [
            item.model_copy(
                update={
                    "labels": names.all(item.labels, common, f"files.{i}.items.{k}.labels"),
                    "verdicts": names.all(item.verdicts, common, f"files.{i}.items.{k}.verdicts"),
                }
            )
            for k, item in enumerate(one.items)
        ]
        labels = names.all(one.labels, common, f"files.{i}.labels")
        verdicts = names.all(one.verdicts, common, f"files.{i}.verdicts")
        own = {"items": tuple(items), "labels": labels, "verdicts": verdicts}
        files.append(one.model_copy(update=own))
    names.check_used(common, "spellings", names.read)
    return spec.model_copy(update={"files": tuple(files), "spellings": common})


class _Names:
    """Looks names up in a rubric and reports those that are not there."""

    def __init__(self, rubric: Rubric, findings: Findings, file: str) -> None:
        self.rubric, self.findings, self.file = rubric, findings, file
        self.read: set[str] = set()  # metrics of which some entry may have labels

    def all(
        self, specs: Sequence[LabelSpec], common: SpellingsOf, where: str
    ) -> tuple[LabelSpec, ...]:
        return tuple(self.labels(s, common, f"{where}.{k}") for k, s in enumerate(specs))

    def labels(self, spec: LabelSpec, common: SpellingsOf, where: str) -> LabelSpec:
        own = self.spellings(spec.spellings, f"{where}.spellings")
        merged = {m: {**common.get(m, {}), **own.get(m, {})} for m in {**common, **own}}
        metrics: dict[str, str] = {}
        for name, column in spec.metrics.items():
            metric = self.metric(name, f"{where}.metrics")
            if metric and metrics.setdefault(metric.id, column) != column:
                self.findings.add(
                    "bad_spec",
                    f"duplicate metric {metric.id}, by its id and by its title",
                    (self.file, None),
                    f"{where}.metrics",
                    name,
                )
        read = set(metrics) or {metric.id for metric in self.rubric.metrics}
        self.check_used(own, f"{where}.spellings", read)
        self.read |= read
        for name, label in self.blanks(spec, read, f"{where}.blank"):
            merged[name] = {**merged.get(name, {}), "": label}
        return spec.model_copy(update={"metrics": metrics, "spellings": merged})

    def blanks(self, spec: LabelSpec, read: set[str], where: str) -> Iterator[tuple[str, str]]:
        """The label that a blank cell stands for, by metric."""
        given = spec.blank
        if isinstance(given, str):
            given = {m.id: given for m in self.rubric.metrics if m.id in read}
        for name, target in (given or {}).items():
            if metric := self.metric(name, where):
                self.check_used({metric.id: {}}, where, read)
                if label := self.label(metric, target, where):
                    yield metric.id, label

    def check_used(self, spellings: SpellingsOf, where: str, read: set[str]) -> None:
        """Report spellings of metrics of which nothing is read."""
        for name in spellings.keys() - read if read else ():
            self.findings.add(
                "bad_spec",
                f"can never apply: no column of labels is read for {name}",
                (self.file, None),
                where,
                name,
            )

    def spellings(self, spellings: SpellingsOf, where: str) -> dict[str, dict[str, str | None]]:
        resolved: dict[str, dict[str, str | None]] = {}
        for name, pairs in spellings.items():
            if metric := self.metric(name, where):
                known = resolved.setdefault(metric.id, {})
                for spelling, target in pairs.items():
                    text, label = clean(spelling)[0], self.label(metric, target, f"{where}.{name}")
                    if known.setdefault(text, label) != label:
                        message = "the same spelling twice, but for space or invisible characters"
                    elif not text:
                        message = (
                            "can never apply: a blank cell has no spelling; `blank: LABEL` beside "
                            "the metrics gives it a label"
                        )
                    else:
                        continue
                    at = (self.file, None)
                    self.findings.add("bad_spec", message, at, f"{where}.{name}", spelling)
        return resolved

    def metric(self, name: str, where: str) -> Metric | None:
        metric = find_metric(name, self.rubric)
        if isinstance(metric, str):
            self.findings.add(
                "unknown_metric",
                metric,
                (self.file, None),
                where,
                name,
                ", ".join(m.id for m in self.rubric.metrics),
            )
            return None
        return metric

    def label(self, metric: Metric, target: str | None, where: str) -> str | None:
        label = None if target is None else metric.parse(target)
        if target is not None and label is None:
            self.findings.add(
                "unknown_label",
                f"is not a label of {metric.id}{nearest(target, metric.options)}",
                (self.file, None),
                where,
                target,
                ", ".join(metric.options),
            )
        return label
