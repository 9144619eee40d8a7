"""Load a proxy task: one YAML file, the data that it names (a table, one CSV or JSONL file, or one
per split), or the Python file that reads them.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from types import ModuleType
from typing import Protocol, cast

from pydantic import Field, model_validator

from judgebench.data.findings import counted_once
from judgebench.data.formats import is_blank, split_list
from judgebench.data.tables import collect_table
from judgebench.errors import JudgebenchError, Problem, SetupError, nearest, raise_any, shorten
from judgebench.files import (
    StrictModel,
    find_file,
    is_file,
    load_model,
    shipped_folder,
)
from judgebench.judges.config import Name
from judgebench.models.checkpoints import sha256_of
from judgebench.prompt import ARGUMENTS, load_prompt
from judgebench.ranking.task import (
    SPLITS,
    ProxyTask,
    Split,
    SplitSizes,
    TaskInstance,
    check_splits,
    draw,
    seeded_split,
    versions,
)
from judgebench.records import content_hash

KIND = "tasks"  # the folder of the shipped ones
_TABLE = "table"
_SPELLINGS: dict[str, Split] = {
    **{split: split for split in SPLITS},
    **dict.fromkeys(("dev", "valid", "validation"), SPLITS[1]),
}
_FEWEST_OPTIONS = 2
# "option 2", "answer B", "(C) is wrong": true of one order of the options alone.
_NAMES_A_PLACE = re.compile(
    r"(?i:\b(?:option|answer|choice|alternative|response)s?\s+(?:number\s+|no\.?\s*)?)"
    r"\(?(?:[1-9]|[A-H])\b|\b[A-H]\)?\s+(?:is|was)\s+(?:in)?(?:right|correct|wrong|true|false)\b"
)


class Columns(StrictModel):
    """The columns by their role. `options` is one column that holds a list, or several columns;
    then the label is the place of the right one, its letter or its text. Without `argument` there
    are no gold arguments."""

    text: str
    label: str
    argument: str | None = None
    item_id: str | None = None
    context: str | None = None
    group: str | None = None
    split: str | None = None
    options: str | tuple[str, ...] | None = None

    @property
    def of_options(self) -> tuple[str, ...]:
        """The columns of the options; none where classes are given."""
        return (self.options,) if isinstance(self.options, str) else self.options or ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every column that must be there."""
        single = (getattr(self, key) for key in Columns.model_fields if key != "options")
        return (*(column for column in single if column is not None), *self.of_options)


def read_table_task(
    paths: Mapping[str, Path],
    columns: Columns,
    labels: Sequence[str],
    sizes: SplitSizes | None,
    seed: int,
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    """The instances of the file `data`, or of one file per split, and sentences for the report.

    Rows without an argument are left out and counted, where there is a column of arguments. A
    question with options comes in as many versions as it has options, unless its argument names one
    by its place. Raises SetupError with every problem of every file: a missing column or cell, an
    unknown label or split. What several rows share is one problem.
    """
    problems: list[Problem] = []
    instances: list[TaskInstance] = []
    without = 0
    for key, path in paths.items():
        table = collect_table(path, columns.named, problems)
        for place, (line, row) in enumerate(table.records() if table else ()):
            if columns.argument and is_blank(row[columns.argument]):
                without += 1
                continue
            of_row: list[Problem] = []
            split = "" if key == "data" else key
            instances.append(_instance(row, place, columns, labels, split, of_row))
            problems += [replace(problem, file=str(path), line=line) for problem in of_row]
    raise_any(counted_once(problems))
    notes = [f"{without} rows without an argument are left out."] if without else []
    if sizes is not None:
        contents = [content_hash([i.text, i.options, i.context, i.argument]) for i in instances]
        instances = seeded_split(instances, contents, sizes, seed)
    if columns.options is None:
        return instances, tuple(notes)
    if placed := sum(_NAMES_A_PLACE.search(i.argument) is not None for i in instances):
        note = "arguments name an option by its place: these questions keep the order of options."
        notes.append(f"{placed} {note}")
    varied = ([i] if _NAMES_A_PLACE.search(i.argument) else versions(i) for i in instances)
    return [version for each in varied for version in each], tuple(notes)


def _instance(
    row: Mapping[str, str], place: int, columns: Columns, labels: Sequence[str], split: str,
    problems: list[Problem],
) -> TaskInstance:  # fmt: skip
    """The instance of a row; its split is any where neither the row nor its file says it. Problems
    are without file and line."""
    problems += [
        Problem("is blank", field=column)
        for column in (columns.text, columns.label, columns.item_id)
        if column is not None and is_blank(row[column])
    ]
    options = _options(row, columns, problems)
    places = tuple(str(i) for i in range(1, len(options) + 1))
    label = row[columns.label]
    if label not in places:  # a letter, or the option itself
        by_name = dict(zip(ascii_uppercase, places, strict=False)) | dict(
            zip(options, places, strict=True)
        )
        label = by_name.get(label, by_name.get(label.upper(), label))
    allowed = places if columns.options else labels
    if label and allowed and label not in allowed:  # none are allowed where options are bad
        message = f"is not a label of the task{nearest(label, labels)}"
        if columns.options:
            message = "names no option"
            allowed = (*ascii_uppercase[: len(places)], *places, "the option itself")
        shown = shorten(label)
        problems.append(Problem(message, "", None, columns.label, shown, ", ".join(allowed)))
    if columns.split is not None:
        named = row[columns.split]
        split = _SPELLINGS.get(named.lower(), "")
        if not split:
            allowed = ", ".join(SPLITS)
            problems.append(Problem("is no split", "", None, columns.split, repr(named), allowed))
    item, argument, context, group = (
        row.get(column or "", "")
        for column in (columns.item_id, columns.argument, columns.context, columns.group)
    )
    return TaskInstance(
        item or f"{split}-{place}".lstrip("-"), row[columns.text], label, argument,
        _SPELLINGS.get(split, SPLITS[0]), options, context, group,
    )  # fmt: skip


def _options(row: Mapping[str, str], columns: Columns, problems: list[Problem]) -> tuple[str, ...]:
    """The options of a row; blank ones at the end are none, so that rows may differ in number."""
    if columns.options is None:
        return ()
    options = [row[column] for column in columns.of_options]
    if isinstance(columns.options, str):
        with suppress(ValueError):  # a text that is no list is too few options
            options = [option.strip() for option in split_list(options[0])]
    while options and is_blank(options[-1]):
        options.pop()
    if len(options) < _FEWEST_OPTIONS or any(map(is_blank, options)):
        message = "two options or more are needed, none of them blank"
        problems.append(Problem(message, field=", ".join(columns.of_options), found=repr(options)))
    return tuple(options)


class TaskReader(Protocol):
    """A Python file that reads a task's data. Loading a task runs it.

    `FILES` are the keys that `files` in the YAML file must have, `LABELS` the classes (none where
    options are given). `SEEDED_SPLIT` says that the data has no split of its own, so that `split`
    in the YAML file and the seed decide.
    """

    FILES: tuple[str, ...]
    LABELS: tuple[str, ...]
    SEEDED_SPLIT: bool

    def read(
        self, files: Mapping[str, Path], split: SplitSizes | None, seed: int
    ) -> tuple[list[TaskInstance], tuple[str, ...]]:
        """The instances, and sentences for the report. Raises SetupError for faulty data."""
        ...


class TaskFile(StrictModel):
    """The YAML file of a task. `reader` is `table`, or a Python file that lies beside it or is
    shipped; see `TaskReader`. `labels` and `columns` belong to the reader `table` alone."""

    name: Name
    title: str = ""
    reader: str = _TABLE
    files: dict[str, str]
    prompt: str
    split: SplitSizes | None = None
    labels: tuple[str, ...] = ()
    columns: Columns | None = None
    leave_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = Field(default=())

    @model_validator(mode="after")
    def _what_a_table_needs(self) -> TaskFile:
        if (self.reader == _TABLE) != (self.columns is not None):
            raise ValueError("columns: needed by the reader table, and by no other")
        if self.columns is None:
            return self
        n_labels = len(set(self.labels))
        if (n_labels > 1) != (self.columns.options is None) or n_labels < len(self.labels):
            raise ValueError("labels: two different ones or more, where there are no options")
        own_split = self.columns.split is not None or "train" in self.files
        self.check((("data",), SPLITS), self.labels, own_split=own_split)
        return self

    def check(
        self, files: Sequence[tuple[str, ...]], labels: Sequence[str], *, own_split: bool
    ) -> None:
        """Raise ValueError where the file does not fit what its reader reads."""
        if all(set(self.files) != set(keys) for keys in files):
            allowed = " or ".join(", ".join(keys) for keys in files)
            found = ", ".join(self.files) or "nothing"
            raise ValueError(f"files: {self.reader} reads {allowed}, found {found}")
        if own_split == (self.split is not None):
            how = "is given by the files already" if self.split else "is needed"
            raise ValueError(f"split: {how}")
        if unknown := set(self.leave_out) - set(labels):
            raise ValueError(f"leave_out: {', '.join(sorted(unknown))} is not a label of the task")


def load_task(
    name: str, *, data_folder: Path | None = None, relative_to: Path | None = None, seed: int = 0
) -> ProxyTask:
    """The task of that shipped name, or of the YAML file at that path (seen from `relative_to`).

    Its files are seen from `data_folder`, else from the folder of the YAML file. `seed` decides the
    split where the files do not. Raises SetupError with every problem of a file at once, and where
    a split lacks a class.
    """
    path = find_file(KIND, name, ".yaml", relative_to)
    spec = load_model(path, TaskFile)
    prompt = load_prompt(spec.prompt, path.parent, ARGUMENTS)
    folder = path.parent if data_folder is None else data_folder
    paths = {key: folder / file for key, file in spec.files.items()}
    message = (
        f"task {spec.name}: no such file (the folder is set by proxy.data_folder, else it is that "
        "of the task's YAML file)"
    )
    raise_any(
        [
            Problem(message, str(path), None, f"files.{key}", str(file))
            for key, file in paths.items()
            if not file.is_file()
        ]
    )
    instances, notes, labels = _read(spec, path, paths, seed)
    counts = Counter(instance.item_id for instance in instances)
    if duplicates := [item for item, n in counts.items() if n > 1]:
        raise SetupError(Problem("duplicate item", str(path), field="item_id", found=duplicates[0]))
    max_options = max((len(i.options) for i in instances), default=0)
    task = ProxyTask(
        name=spec.name,
        title=spec.title or spec.name,
        labels=tuple(labels or map(str, range(1, max_options + 1))),
        instances=tuple(instances),
        prompt=prompt,
        left_out=spec.leave_out,
        notes=(*spec.notes, *notes),
        files={spec.files[key]: sha256_of(file) for key, file in paths.items()},
    )
    check_splits(task)
    return task


def _read(
    spec: TaskFile, yaml: Path, paths: Mapping[str, Path], seed: int
) -> tuple[list[TaskInstance], tuple[str, ...], Sequence[str]]:
    """The instances, sentences for the report, and the classes."""
    if spec.columns is not None:
        return *read_table_task(paths, spec.columns, spec.labels, spec.split, seed), spec.labels
    shipped = (shipped_folder(KIND) / Path(spec.reader).name).with_suffix(".py")
    path = next((p for p in (yaml.parent / spec.reader, shipped) if is_file(p)), None)
    if path is None:
        message = "is no Python file beside the task, and no shipped reader"
        raise SetupError(Problem(message, str(yaml), None, "reader", spec.reader, _TABLE))
    try:
        reader = load_reader(path)
        spec.check((reader.FILES,), reader.LABELS, own_split=not reader.SEEDED_SPLIT)
        return *reader.read(paths, spec.split, seed), reader.LABELS
    except JudgebenchError:
        raise
    except Exception as error:  # whatever a foreign file raises
        message = f"its reader failed: {type(error).__name__}: {error}"
        raise SetupError(Problem(message, str(yaml), field="reader", found=spec.reader)) from error


def load_reader(path: Path) -> TaskReader:
    """Run the Python file at `path`, which may import files beside it (`from .other import …`)."""
    folder = str(path.parent.resolve())
    package = f"judgebench_tasks_{content_hash(folder)}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [folder]
    importlib.invalidate_caches()
    return cast(TaskReader, importlib.import_module(f"{package}.{path.stem}"))


def sample_task(task: ProxyTask, sample: Mapping[Split, int], seed: int) -> ProxyTask:
    """The task with at most so many instances of each split, drawn by the seed, each class in its
    share; all of a split that `sample` does not name.

    A question in several versions counts once, and all of them are kept. Of the test split, only
    instances that are ranked are drawn. Raises SetupError where the sample is so small that a class
    is missing.
    """
    kept: set[str] = set()
    for split in SPLITS:
        instances, n = task.of(split), sample.get(split)
        firsts = task.ranked if split == "test" else [i for i in instances if i.version == 0]
        if n is None or n >= len(firsts):
            kept.update(i.item_id for i in instances)
            continue
        drawn = draw([i.label for i in firsts], [i.item_id for i in firsts], n, seed)
        kept.update(firsts[i].item_id for i in drawn)
        sources = {firsts[i].source for i in drawn}
        kept.update(i.item_id for i in instances if i.version and i.source in sources)
    sampled = replace(task, instances=tuple(i for i in task.instances if i.item_id in kept))
    check_splits(sampled)
    return sampled


def in_words(path: Path, rubric: str) -> str:
    """Read a task and say what it holds. Raises SetupError."""
    task = load_task(str(path))
    sizes = ", ".join(f"{split} {len(task.of(split))}" for split in SPLITS)
    return f"the task {task.name}: {', '.join(task.labels)}; {sizes}; {len(task.ranked)} ranked"


def listed() -> list[tuple[str, str]]:
    """The name of each shipped task and what it is."""
    paths = sorted(shipped_folder(KIND).glob("*.yaml"))
    files = [load_model(path, TaskFile) for path in paths]
    return [(f.name, f"{f.title}; reads {', '.join(f.files.values())}") for f in files]
