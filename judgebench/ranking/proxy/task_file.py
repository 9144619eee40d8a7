"""Load a proxy task: one YAML file, the data that it names, and the Python file that reads them."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from pydantic import Field, model_validator

from judgebench.errors import JudgebenchError, Problem, SetupError
from judgebench.files import open_bytes
from judgebench.judges.config import Name
from judgebench.prompt import ARGUMENTS, load_prompt
from judgebench.ranking.proxy.section import Columns, SampleConfig, read_table_task
from judgebench.ranking.proxy.task import (
    SPLITS,
    ProxyTask,
    SplitSizes,
    TaskInstance,
    TaskMetric,
    check_splits,
    draw,
)
from judgebench.records import content_hash
from judgebench.shipped import find_file, is_file, shipped_folder
from judgebench.yaml_file import Strict, load_model

KIND = "tasks"  # the folder of the shipped ones
_TABLE = "table"


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


class TaskFile(Strict):
    """The YAML file of a task. `reader` is `table`, or a Python file that lies beside it or is
    shipped; see `TaskReader`. `labels` and `columns` belong to the reader `table` alone."""

    name: Name
    title: str = ""
    reader: str = _TABLE
    files: dict[str, str]
    metric: TaskMetric = "accuracy"
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
        by_options = self.columns is not None and self.columns.options is not None
        if (self.reader == _TABLE and not by_options) != bool(self.labels):
            raise ValueError("labels: needed by the reader table where there are no options")
        if self.labels and (len(set(self.labels)) < max(2, len(self.labels))):
            raise ValueError("labels: two different ones or more")
        if self.columns is not None:
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
            raise ValueError(f"leave_out: {', '.join(sorted(unknown))} is no label of the task")


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
    reader = None if spec.reader == _TABLE else _reader_of(spec, path)
    if missing := {key: file for key, file in paths.items() if not file.is_file()}:
        message = (
            f"task {spec.name}: no such file (the folder is set by proxy.data_folder, else it is "
            "that of the task's YAML file)"
        )
        where = ((f"files.{key}", str(file)) for key, file in missing.items())
        raise SetupError([Problem(message, str(path), None, *found) for found in where])
    if reader is None:
        assert spec.columns is not None
        instances, notes = read_table_task(paths, spec.columns, spec.labels, spec.split, seed)
    else:
        try:
            instances, notes = reader.read(paths, spec.split, seed)
        except JudgebenchError:
            raise
        except Exception as error:  # whatever a foreign file raises
            said = f"its reader failed: {type(error).__name__}: {error}"
            raise SetupError(Problem(said, str(path), field="reader", found=spec.reader)) from error
    twice = [item for item, n in Counter(i.item_id for i in instances).items() if n > 1]
    if twice:
        raise SetupError(Problem("duplicate item", str(path), field="item_id", found=twice[0]))
    classes = spec.labels if reader is None else reader.LABELS
    most = max((len(i.options) for i in instances), default=0)
    task = ProxyTask(
        name=spec.name,
        title=spec.title or spec.name,
        labels=classes or tuple(str(place) for place in range(1, most + 1)),
        metric=spec.metric,
        instances=tuple(instances),
        prompt=prompt,
        left_out=spec.leave_out,
        notes=(*spec.notes, *notes),
        files={spec.files[key]: _sha256(file) for key, file in paths.items()},
    )
    check_splits(task)
    return task


def _reader_of(spec: TaskFile, yaml: Path) -> TaskReader:
    """The reader that a task's YAML file names, checked against it."""
    shipped = (shipped_folder(KIND) / Path(spec.reader).name).with_suffix(".py")
    path = next((p for p in (yaml.parent / spec.reader, shipped) if is_file(p)), None)
    if path is None:
        message = "is no Python file beside the task, and no shipped reader"
        raise SetupError(Problem(message, str(yaml), None, "reader", spec.reader, _TABLE))
    reader = load_reader(path)
    try:
        spec.check((reader.FILES,), reader.LABELS, own_split=not reader.SEEDED_SPLIT)
    except ValueError as error:
        raise SetupError(Problem(str(error), str(yaml))) from None
    return reader


def load_reader(path: Path) -> TaskReader:
    """Run the Python file at `path`, which may import files beside it (`from .other import …`).

    Raises SetupError where it cannot be run or lacks what a `TaskReader` has.
    """
    folder = str(path.parent.resolve())
    package = f"judgebench_tasks_{content_hash(folder)}"
    if package not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [folder]
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(f"{package}.{path.stem}")
    except Exception as error:  # whatever a foreign file raises
        raise SetupError(Problem(f"cannot be run: {error}", str(path))) from error
    wanted = ("FILES", "LABELS", "SEEDED_SPLIT", "read")
    if lacking := [name for name in wanted if not hasattr(module, name)]:
        message = f"is no reader of a task: it lacks {', '.join(lacking)}"
        raise SetupError(Problem(message, str(path), allowed=", ".join(wanted)))
    return cast(TaskReader, module)


def _sha256(path: Path) -> str:
    with open_bytes(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sample_task(task: ProxyTask, sample: SampleConfig, seed: int) -> ProxyTask:
    """The task with a sample of each split, drawn by the seed, each class in its share.

    A question in several versions counts once, and all of them are kept. Of the test split, only
    instances that are ranked are drawn. Raises SetupError where the sample is so small that a class
    is missing.
    """
    kept: set[str] = set()
    for split, n in zip(SPLITS, (sample.train, sample.development, sample.test), strict=True):
        instances = task.of(split)
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


def split_rows(task: ProxyTask) -> dict[str, list[int]]:
    """The rows of each split, from 0, ready for JSON: so a split is published without the data.

    They are rows of the task's one file of data, or where each split has its own file, of that.
    Rows that were left out are in no split.
    """
    return {split: sorted({i.row for i in task.of(split)}) for split in SPLITS}
