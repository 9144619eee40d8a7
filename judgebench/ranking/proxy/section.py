"""The section `proxy:` of a bench.yaml: tasks, the models that write arguments, evaluators.

A task's instances from a table: one CSV or JSONL file, or one per split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Literal

from pydantic import Field, field_validator, model_validator

from judgebench.data.cells import is_blank
from judgebench.data.columns import SourceRow, read_source
from judgebench.data.findings import counted_once, nearest
from judgebench.errors import Problem, SetupError, shorten
from judgebench.judges.config import BackendSpec, Name
from judgebench.models.settings import BackendSettings
from judgebench.ranking.proxy.task import (
    CONTROL_CASES,
    GOLD,
    SPLITS,
    ControlCase,
    Split,
    SplitSizes,
    TaskInstance,
    seeded_split,
    versions,
)
from judgebench.records import content_hash
from judgebench.yaml_file import Strict

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


class Columns(Strict):
    """Which column holds what. `options` is one column that holds a list, or several columns; then
    the label is the place of the right one, its letter or its text. Without `argument` there are no
    gold arguments."""

    text: str
    label: str
    argument: str | None = None
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
    unknown label or split, a duplicate item. What several rows share is one problem.
    """
    problems: list[Problem] = []
    found: dict[str, TaskInstance] = {}
    without = 0
    for key, path in paths.items():
        for row in read_source(path, columns.named, problems):
            if columns.argument and is_blank(row.text(columns.argument)):
                without += 1
                continue
            instance = _instance(row, columns, labels, "" if key == "data" else key, problems)
            if instance.item_id in found:
                column = columns.item_id or "item_id"
                problems.append(row.problem("duplicate id", column, shorten(instance.item_id)))
            found[instance.item_id] = instance
    if problems:
        raise SetupError(counted_once(problems))
    notes = [f"{without} rows without an argument are left out."] if without else []
    instances = list(found.values())
    if sizes is not None:
        contents = [content_hash([i.text, i.options, i.context, i.argument]) for i in instances]
        instances = seeded_split(instances, contents, sizes, seed)
    if columns.options is None:
        return instances, tuple(notes)
    if placed := sum(_NAMES_A_PLACE.search(i.argument) is not None for i in instances):
        said = "arguments name an option by its place: these questions keep the order of options."
        notes.append(f"{placed} {said}")
    varied = ([i] if _NAMES_A_PLACE.search(i.argument) else versions(i) for i in instances)
    return [version for each in varied for version in each], tuple(notes)


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
    if label not in places:  # a letter, or the option itself
        by_name = dict(zip(ascii_uppercase, places, strict=False)) | dict(
            zip(options, places, strict=True)
        )
        label = by_name.get(label, by_name.get(label.upper(), label))
    allowed = places if columns.options else labels
    if label and allowed and label not in allowed:  # none are allowed where options are bad
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


EvaluatorKind = Literal["baseline", "expert-trained", "llm-trained"]
EVALUATOR_KINDS: tuple[EvaluatorKind, ...] = ("baseline", "expert-trained", "llm-trained")


class ArgumentDecoding(Strict):
    """How arguments are drawn; the defaults are those of the paper (section 3.2.1). What is None is
    left out of the request."""

    max_tokens: int = Field(default=256, ge=1)
    temperature: float | None = Field(default=0.9, ge=0, le=2)
    top_p: float | None = Field(default=0.85, gt=0, le=1)


class GeneratorConfig(Strict):
    """A model that writes arguments. Its `settings` hold `concurrency` and the like."""

    name: Name
    backend: BackendSpec
    decoding: ArgumentDecoding = ArgumentDecoding()
    settings: BackendSettings = BackendSettings()

    @field_validator("name")
    @classmethod
    def _not_a_control(cls, name: str) -> str:
        if name in (GOLD, *CONTROL_CASES):
            raise ValueError(f"is kept for the {name} arguments: choose another name")
        return name


class TrainingConfig(Strict):
    """How an evaluator is trained.

    AdamW with a linear warm-up over the share `warmup` of all steps and a linear way down. Training
    ends after `patience` epochs without a better score on the development split, or after `epochs`.
    `max_tokens` None means all that the encoder takes, 512 where it states no limit.
    """

    epochs: int = Field(default=10, ge=1)
    patience: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    batch_size: int = Field(default=16, ge=1)
    max_tokens: int | None = Field(default=None, ge=16)


class EvaluatorConfig(Strict):
    """`encoder` is a folder, a hub name, or `minilm`; `draws` counts the trainings of each
    kind, which begin and go otherwise, of an LLM-trained evaluator on another draw of arguments.
    With one alone nothing is claimed of an evaluator's order."""

    encoder: str = "minilm"
    kinds: tuple[EvaluatorKind, ...] = EVALUATOR_KINDS
    draws: int = Field(default=3, ge=1)
    training: TrainingConfig = TrainingConfig()


class PassagesConfig(Strict):
    """Where the control case `passages` takes its texts.

    `corpus` is a JSONL file with a key `text`, a CSV with a column of that name, or a folder of
    text files. `late_interaction` names ColBERT weights, a hub name or a folder; None means the
    fallback, which scores passages by the sentence encoder `encoder`.
    """

    corpus: str
    column: str = "text"
    encoder: str = "minilm"
    late_interaction: str | None = None
    documents: int = Field(default=5, ge=1)
    passages: int = Field(default=3, ge=1)
    characters: int = Field(default=300, ge=50)


class LearntConfig(Strict):
    """At most so many instances of the splits that are learnt from; None means all."""

    train: int | None = Field(default=None, ge=2)
    development: int | None = Field(default=None, ge=2)


class SampleConfig(LearntConfig):
    """At most so many instances of each split, drawn by the seed, each class in its share."""

    test: int | None = Field(default=None, ge=2)


class TaskEntry(Strict):
    """A task of the benchmark: a shipped name or the path of a YAML file, and what is particular to
    it here.

    `sample` is all that is used of the task. `arguments_for` says on how many train and development
    instances of these models write, which only LLM-trained evaluators read; all that is ranked is
    written on. `judged: false` keeps the arguments from the judges. Both spare calls.
    """

    task: str
    sample: SampleConfig = SampleConfig()
    arguments_for: LearntConfig = LearntConfig()
    kinds: tuple[EvaluatorKind, ...] | None = None
    generators: tuple[Name, ...] | None = None
    training: TrainingConfig | None = None
    judged: bool = True


class ProxyConfig(Strict):
    """The key `proxy` of a bench.yaml. Paths are seen from the folder of the file.

    `arguments` are files of arguments that were written before, one JSON object per line.
    `families` says which generators and judges are of one family, for the self-preference.
    """

    tasks: tuple[str | TaskEntry, ...] = Field(min_length=1)
    data_folder: str | None = None
    generators: tuple[GeneratorConfig, ...] = ()
    arguments: tuple[str, ...] = ()
    control_cases: tuple[ControlCase, ...] = ("no-argument", "label-only", "noise")
    passages: PassagesConfig | None = None
    evaluators: EvaluatorConfig = EvaluatorConfig()
    human_ranks: tuple[str, ...] = ()
    families: dict[str, tuple[Name, ...]] = Field(default_factory=dict)

    @property
    def entries(self) -> tuple[TaskEntry, ...]:
        """Every task as an entry."""
        return tuple(TaskEntry(task=t) if isinstance(t, str) else t for t in self.tasks)

    @property
    def controls(self) -> tuple[ControlCase, ...]:
        """The control cases: `passages` is one of them where a corpus is named."""
        named = (*self.control_cases, *(("passages",) if self.passages else ()))
        return tuple(dict.fromkeys(named))

    @model_validator(mode="after")
    def _corpus_for_passages(self) -> ProxyConfig:
        if "passages" in self.control_cases and self.passages is None:
            raise ValueError("the control case passages needs a corpus: proxy.passages.corpus")
        return self
