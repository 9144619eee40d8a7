"""What a wing adds to a run: answers judged beside the study, and judges asked in another way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from judgebench.judges.control import Control
from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer, Dataset
from judgebench.rubric import Rubric

if TYPE_CHECKING:
    from pydantic import BaseModel

    from judgebench.runner.bench import BenchConfig


@dataclass(frozen=True)
class Variant:
    """The judge `of`, asked as `recipe` says about `answers`; `repeat` counts from 1."""

    judge: LLMJudge
    of: str
    recipe: str
    kind: str
    repeat: int
    answers: tuple[Answer, ...]


def no_variants(judges: Sequence[LLMJudge]) -> Iterable[Variant]:
    """No judge is asked in another way."""
    return ()


@dataclass(frozen=True)
class Extension:
    """What the wing of that name adds to one run.

    `answers` are the study's, those of the data among them; `beside` are judged too and have no
    part in the study. `lines` describe the latter, each with its `item_id`, and `rejected` what was
    not judged; both are kept in the run folder. `about` stands in the manifest under the wing's
    name, `settings` under its key of bench.yaml. `controls` are added to the usual control judges.
    `counted` and `told` are said when the run begins: `139 altered answers`.
    """

    wing: str
    answers: tuple[Answer, ...]
    beside: tuple[Answer, ...] = ()
    lines: Sequence[Mapping[str, Any]] = ()
    rejected: Sequence[Mapping[str, Any]] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, BaseModel] = field(default_factory=dict)
    variants: Callable[[Sequence[LLMJudge]], Iterable[Variant]] = no_variants
    controls: tuple[Control, ...] = ()
    counted: str = ""
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What is read of a benchmark before anything is added to it. `dataset` is None where it is
    unsound, and `judged` is the rubric with the metrics that are judged."""

    config: BenchConfig
    file: Path
    rubric: Rubric
    judged: Rubric
    dataset: Dataset | None


class Extend(Protocol):
    """Makes an extension; raises SetupError with every problem of the wing's settings."""

    @property
    def wing(self) -> str: ...

    def __call__(self, loaded: Loaded) -> Extension: ...
