"""Load a proxy task: one YAML file, and the data that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from judgebench.errors import Problem, SetupError
from judgebench.files import open_bytes
from judgebench.judges.config import Name
from judgebench.ranking.proxy import casimedicos, healthfc, nli4ct
from judgebench.ranking.proxy.argument_prompt import load_argument_prompt
from judgebench.ranking.proxy.config import SampleConfig
from judgebench.ranking.proxy.splits import SplitSizes, check_splits, draw
from judgebench.ranking.proxy.table import Columns, read_table_task
from judgebench.ranking.proxy.task import SPLITS, ProxyTask, TaskInstance, TaskMetric
from judgebench.shipped import find_file
from judgebench.yaml_file import Strict, load_model

KIND = "tasks"  # the folder of the shipped ones
_Reader = Literal["healthfc", "nli4ct", "casimedicos", "table"]
_FILES: Mapping[_Reader, tuple[tuple[str, ...], ...]] = {
    "healthfc": (("data",),),
    "nli4ct": (("train", "development", "test", "trials"),),
    "casimedicos": (("archive",),),
    "table": (("data",), SPLITS),
}


class TaskFile(Strict):
    """The YAML file of a task. `labels` and `columns` belong to the reader `table` alone."""

    name: Name
    title: str = ""
    reader: _Reader = "table"
    files: dict[str, str]
    metric: TaskMetric = "accuracy"
    prompt: str
    split: SplitSizes | None = None
    labels: tuple[str, ...] = ()
    columns: Columns | None = None
    leave_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = Field(default=())

    @model_validator(mode="after")
    def _what_the_reader_needs(self) -> TaskFile:
        choices = _FILES[self.reader]
        if all(set(self.files) != set(keys) for keys in choices):
            allowed = " or ".join(", ".join(keys) for keys in choices)
            found = ", ".join(self.files)
            raise ValueError(f"files: {self.reader} reads {allowed}, found {found or 'nothing'}")
        if (self.reader == "table") != (self.columns is not None):
            raise ValueError("columns: needed by the reader table, and by no other")
        if self._has_own_split == (self.split is not None):
            how = "is given by the files already" if self.split else "is needed"
            raise ValueError(f"split: {how}")
        self._check_labels()
        return self

    @property
    def _has_own_split(self) -> bool:
        by_column = self.columns is not None and self.columns.split is not None
        return by_column or self.reader == "casimedicos" or "train" in self.files

    def _check_labels(self) -> None:
        by_options = self.columns is not None and self.columns.options is not None
        if (self.reader == "table" and not by_options) != bool(self.labels):
            raise ValueError("labels: needed by the reader table where there are no options")
        if self.labels and (len(set(self.labels)) < max(2, len(self.labels))):
            raise ValueError("labels: two different ones or more")
        if unknown := set(self.leave_out) - set(self.classes):
            raise ValueError(f"leave_out: {', '.join(sorted(unknown))} is no label of the task")

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in order; none where options are given."""
        known = {"healthfc": healthfc.LABELS, "nli4ct": nli4ct.LABELS}
        return known.get(self.reader, self.labels)


def load_task(
    name: str,
    *,
    data_folder: Path | None = None,
    relative_to: Path | None = None,
    seed: int = 0,
) -> ProxyTask:
    """The task of that shipped name, or of the YAML file at that path (seen from `relative_to`).

    Its files are seen from `data_folder`, else from the folder of the YAML file. `seed` decides the
    split where the files do not. Raises SetupError with every problem of a file at once, and where
    a split lacks a class.
    """
    path = find_file(KIND, name, ".yaml", relative_to)
    spec = load_model(path, TaskFile)
    prompt = load_argument_prompt(spec.prompt, path.parent)
    folder = path.parent if data_folder is None else data_folder
    paths = {key: folder / file for key, file in spec.files.items()}
    _check_files(spec, paths, path)
    instances, notes = _read(spec, paths, seed)
    labels = spec.classes or _places(instances)
    check_splits(spec.name, labels, instances, spec.leave_out, needs_all_classes=bool(spec.classes))
    return ProxyTask(
        name=spec.name,
        title=spec.title or spec.name,
        labels=labels,
        metric=spec.metric,
        instances=tuple(instances),
        prompt=prompt,
        left_out=spec.leave_out,
        notes=(*spec.notes, *notes),
        files={spec.files[key]: _sha256(file) for key, file in paths.items()},
    )


def _check_files(spec: TaskFile, paths: Mapping[str, Path], yaml: Path) -> None:
    problems = [
        Problem(
            f"task {spec.name}: no such file (the folder is set by proxy.data_folder, else it is "
            "that of the task's YAML file)",
            str(yaml), None, f"files.{key}", str(file),
        )
        for key, file in paths.items()
        if not file.is_file()
    ]  # fmt: skip
    if problems:
        raise SetupError(problems)


def _read(
    spec: TaskFile, paths: Mapping[str, Path], seed: int
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    match spec.reader:
        case "healthfc":
            assert spec.split is not None
            return healthfc.read_healthfc(paths["data"], spec.split, seed)
        case "nli4ct":
            return nli4ct.read_nli4ct(paths)
        case "casimedicos":
            return casimedicos.read_casimedicos(paths["archive"])
        case "table":
            assert spec.columns is not None
            return read_table_task(paths, spec.columns, spec.labels, spec.split, seed)


def _places(instances: Sequence[TaskInstance]) -> tuple[str, ...]:
    most = max((len(i.options) for i in instances), default=0)
    return tuple(str(place) for place in range(1, most + 1))


def _sha256(path: Path) -> str:
    with open_bytes(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sample_task(task: ProxyTask, sample: SampleConfig, seed: int) -> ProxyTask:
    """The task with at most so many instances a split, drawn by the seed, each class in its share.

    Where a question stands there in several versions it counts once, and all of them are kept. Of
    the test split, only instances that are ranked are drawn. Raises SetupError where the sample is
    so small that a class is missing.
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
        sources = {firsts[i].group for i in drawn}
        kept.update(i.item_id for i in instances if i.version and i.group in sources)
    instances = [i for i in task.instances if i.item_id in kept]
    check_splits(
        task.name, task.labels, instances, task.left_out,
        needs_all_classes=not task.is_multiple_choice,
    )  # fmt: skip
    return replace(task, instances=tuple(instances))


def split_rows(task: ProxyTask) -> dict[str, list[int]]:
    """The rows of each split, from 0, ready for JSON: so a split is published without the data.

    They are rows of the task's one file of data, or where each split has its own file, of that.
    Rows that were left out stand in no split.
    """
    return {split: sorted({i.row for i in task.of(split)}) for split in SPLITS}
