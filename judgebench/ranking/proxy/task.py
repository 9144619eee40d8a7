"""A proxy task: what a trained model decides, and the arguments that may help it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from judgebench.prompt import Prompt

Split = Literal["train", "development", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
TaskMetric = Literal["accuracy", "micro_f1"]

ControlCase = Literal["no-argument", "label-only", "noise", "passages"]
CONTROL_CASES: tuple[ControlCase, ...] = get_args(ControlCase)
GOLD = "gold"  # the system that wrote the gold arguments: the experts


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One thing to decide.

    `text` is what is asked: a claim, a statement, a case with its question. `label` is the right
    class, or with `options` the place of the right one, "1" for the first. `argument` is what an
    expert wrote for it. `context` is the document that evidence is taken from: a baseline reads it
    where others read an argument. Instances of one `group` share a source: they are resampled
    whole, and no argument of one is noise to another; `version` counts the orders in which the
    options of one source are given, from 0. `row` is the place in the source file, from 0.
    """

    item_id: str
    text: str
    label: str
    argument: str
    split: Split
    options: tuple[str, ...] = ()
    context: str = ""
    group: str = ""
    version: int = 0
    row: int = 0

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "group", self.text)

    @property
    def label_text(self) -> str:
        """The right class, or the text of the right option."""
        return self.options[int(self.label) - 1] if self.options else self.label

    @property
    def question(self) -> str:
        """What is asked, with the numbered options where there are some."""
        numbered = [f"{i}. {option}" for i, option in enumerate(self.options, 1)]
        return "\n".join([self.text, *numbered])


@dataclass(frozen=True)
class ProxyTask:
    """A task with all its instances. `labels` are the classes, or the places of the options.

    Test instances whose label is in `left_out` are not ranked (they are still trained on): of a
    claim without evidence no argument is right. `prompt` asks a model for an argument. `notes` are
    sentences for the report, such as where the data comes from; `files` maps each to its SHA-256.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    metric: TaskMetric
    instances: Sequence[TaskInstance]
    prompt: Prompt
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    def of(self, split: Split) -> list[TaskInstance]:
        """The instances of one split, in the order of the source."""
        return [instance for instance in self.instances if instance.split == split]

    @property
    def ranked(self) -> list[TaskInstance]:
        """The test instances whose arguments are ranked: one version per source."""
        return [i for i in self.of("test") if i.label not in self.left_out and i.version == 0]

    @property
    def is_multiple_choice(self) -> bool:
        """Whether options are given, and not classes."""
        return any(instance.options for instance in self.instances)
