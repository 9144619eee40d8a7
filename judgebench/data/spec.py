"""`data.yaml`: how columns and spellings of files map to items, labels and the rubric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Format = Literal["csv", "tsv", "json", "jsonl", "parquet"]


def _quoted(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(
            "YAML reads yes, no, true and false without quotes as true or false: put it in quotes"
        )
    return value


def _quoted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        for key in value:
            _quoted(key)
    return value


def _column(value: Any) -> Any:
    return {"column": value} if isinstance(value, str | int | float) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Text = Annotated[str, Field(min_length=1), BeforeValidator(_quoted)]
Spellings = Annotated[
    dict[str, Annotated[str | None, BeforeValidator(_quoted)]], BeforeValidator(_quoted_keys)
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Source(_Strict):
    """Where a value comes from: a column, or the same `value` in every row."""

    column: Text | None = None
    value: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Source:
        if (self.column is None) == (self.value is None):
            raise ValueError("give either a column or a value")
        return self


class IdSource(_Strict):
    """Where an item's id comes from: a column, a hash of columns' texts, or the row's number."""

    column: Text | None = None
    hash_of: tuple[Text, ...] = ()
    row: bool = False
    prefix: str = ""

    @model_validator(mode="after")
    def _one(self) -> IdSource:
        if (self.column is not None) + bool(self.hash_of) + self.row != 1:
            raise ValueError("give exactly one of column, hash_of and row: true")
        return self


# A bare name in YAML is a column; a list of one entry needs no dash.
Where = Annotated[Source, BeforeValidator(_column)]
WhereId = Annotated[IdSource, BeforeValidator(_column)]


class LabelSpec(_Strict):
    """Human labels of a row: long (`metric` and `label` name columns) or wide (`metrics`).

    `metrics` maps a metric's id or title to the column that holds its labels. With `list: true`
    a cell holds the labels of several annotators, who become `NAME#1`, `NAME#2`, … Without
    `annotator` the file's name is the annotator.
    """

    annotator: Where | None = None
    metric: Text | None = None
    label: Text | None = None
    metrics: dict[Text, Text] = Field(default_factory=dict)
    list: bool = False
    spellings: dict[str, Spellings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_shape(self) -> LabelSpec:
        if (self.metric is None) != (self.label is None):
            raise ValueError("metric and label name the two columns of a long table: give both")
        if (self.metric is None) == (not self.metrics):
            raise ValueError("give either metric and label (long) or metrics (wide)")
        return self


class FileLabelSpec(LabelSpec):
    """Labels in a file without answers, or beside them: `item_id` says whose they are."""

    item_id: WhereId


class ItemSpec(_Strict):
    """One answer per row. Several of these take several answers from the same row."""

    item_id: WhereId
    text: Where
    question: Where | None = None
    system: Where | None = None
    reference: Where | None = None
    group: Where | None = None
    metadata: tuple[Text, ...] = ()
    if_empty: Literal["error", "skip"] = "error"
    labels: Annotated[tuple[LabelSpec, ...], BeforeValidator(_as_list)] = ()


class FileSpec(_Strict):
    """A file and its contents. `format` is needed only where the name does not say it."""

    path: Annotated[Text, Field(pattern=r"^[^\x00]+$")]
    format: Format | None = None
    items: Annotated[tuple[ItemSpec, ...], BeforeValidator(_as_list)] = ()
    labels: Annotated[tuple[FileLabelSpec, ...], BeforeValidator(_as_list)] = ()

    @model_validator(mode="after")
    def _not_idle(self) -> FileSpec:
        if not self.items and not self.labels:
            raise ValueError("give items, labels or both: otherwise nothing is read from the file")
        return self


class DataSpec(_Strict):
    """A data.yaml. Paths are relative to its own folder.

    `spellings` maps, metric by metric, spellings in the files to a label of the rubric; null
    means blank. `labels_for_unknown_items: ignore` counts labels without an item instead of
    refusing them.
    """

    files: tuple[FileSpec, ...] = Field(min_length=1)
    spellings: dict[str, Spellings] = Field(default_factory=dict)
    labels_for_unknown_items: Literal["error", "ignore"] = "error"


def columns_of(file: FileSpec) -> Iterator[tuple[str, bool]]:
    """Every column that is read, and whether its cells hold lists."""
    entries: list[ItemSpec | FileLabelSpec] = [*file.items, *file.labels]
    for entry in entries:
        names: list[str | None] = [*(entry.item_id.hash_of or (entry.item_id.column,))]
        labels: tuple[LabelSpec, ...] = (entry,) if isinstance(entry, LabelSpec) else entry.labels
        if isinstance(entry, ItemSpec):
            sources = (entry.text, entry.question, entry.system, entry.reference, entry.group)
            names += [*(source.column for source in sources if source), *entry.metadata]
        yield from ((name, False) for name in names if name)
        for spec in labels:
            single = (spec.annotator.column if spec.annotator else None, spec.metric)
            yield from ((name, False) for name in single if name)
            lists = (spec.label, *spec.metrics.values())
            yield from ((name, spec.list) for name in lists if name)
