"""Which columns of a data set hold verdicts, and which entries of a data.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.data.findings import Findings
from judgebench.data.gather import VerdictSource
from judgebench.data.open_table import DataTable
from judgebench.data.spec import (
    DataSpec,
    FileSpec,
    FileVerdictSpec,
    IdSource,
    LabelSpec,
    Spellings,
)


def of_verdicts(spec: DataSpec) -> DataSpec:
    """The entries of verdicts alone. Where there are none, those of labels are the judges'."""
    has_verdicts = any(file.verdicts or any(i.verdicts for i in file.items) for file in spec.files)
    files = []
    for file in spec.files:
        own = tuple(_verdicts(file) if has_verdicts else _labels(file))
        if own:
            files.append(file.model_copy(update={"items": (), "labels": (), "verdicts": own}))
    return spec.model_copy(update={"files": tuple(files)})


def _verdicts(file: FileSpec) -> Iterator[FileVerdictSpec]:
    yield from file.verdicts
    yield from (_at(item.item_id, one) for item in file.items for one in item.verdicts)


def _labels(file: FileSpec) -> Iterator[FileVerdictSpec]:
    yield from (_at(own.item_id, own) for own in file.labels)
    yield from (_at(item.item_id, one) for item in file.items for one in item.labels)


def _at(item_id: IdSource, own: LabelSpec) -> FileVerdictSpec:
    known = FileVerdictSpec.model_fields
    values = {name: getattr(own, name) for name in type(own).model_fields if name in known}
    judge = values.pop("annotator")
    return FileVerdictSpec.model_validate({**values, "judge": judge, "item_id": item_id})


def beside_labels(
    file: FileSpec | None, table: DataTable, source: VerdictSource, findings: Findings
) -> FileSpec | None:
    """The columns of verdicts in a file of answers or labels, which stand in the rows of its
    items; None where it has none of them.

    Without an entry of a data.yaml, `item_id` says whose they are. Several items in a row are
    reported.
    """
    columns = {m: c for m, c in source.columns.items() if table.find(c) is not None}
    if not columns:
        return None
    items, labels = (file.items, file.labels) if file else ((), ())
    ids = {*(item.item_id for item in items), *(own.item_id for own in labels)}
    if len(ids) > 1:
        message = "several items stand in each row: name the verdicts of each in its data.yaml"
        column = next(iter(columns.values()))
        findings.add("bad_spec", message, (table.file, None), "column", column, "verdicts: [...]")
        return None
    spellings: dict[str, Spellings] = {}
    for one in (*labels, *(one for item in items for one in item.labels)):
        for metric, known in one.spellings.items():
            spellings[metric] = {**spellings.get(metric, {}), **known}
    item_id = ids.pop() if ids else IdSource(column="item_id")
    own = FileVerdictSpec(item_id=item_id, metrics=columns, spellings=spellings)
    return FileSpec(path=file.path if file else table.file, verdicts=(own,))
