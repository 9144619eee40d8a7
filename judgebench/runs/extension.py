"""What a wing adds to a run: answers judged beside the study, and judges asked in another way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from judgebench.judges.control import Control
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer, Dataset
from judgebench.rubric import Rubric
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers

if TYPE_CHECKING:
    from pydantic import BaseModel

    from judgebench.runs.bench import Bench, BenchConfig
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.judging import Work


@dataclass(frozen=True)
class Variant:
    """The judge `of`, asked as `recipe` says about `answers`; `repeat` counts from 1."""

    judge: LLMJudge
    of: str
    recipe: str
    kind: str
    repeat: int
    answers: tuple[Answer, ...]


class LearntEntry(Protocol):
    """The settings of a judge that a wing makes. `needs` are the judges that it needs."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> Sequence[str]: ...


def is_judge(entry: LearntEntry) -> bool:
    """Whether the entry gives labels; one that only scores says so by an attribute of this name."""
    return bool(getattr(entry, "is_judge", True))


class LearntJudge(Judge, Protocol):
    """A judge that learns before it judges, once those that it `needs` are done.

    `kind` is that of its entry in the manifest, which holds `more` besides: `judge`, `control`, or
    another one that a study passes over. `notes` are sentences that every report repeats.
    """

    kind: str
    notes: Sequence[str]
    needs: Sequence[str]
    more: Mapping[str, Any]

    @property
    def ahead(self) -> str:
        """What it has yet to learn and to judge, in words."""
        ...

    def begin(self, work: Work) -> None:
        """Whom to ask for the budget, and whom to tell how far it is."""
        ...

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        """(answers,): the number of what judges each answer, in whose order they are judged; -1
        for those that it does not judge."""
        ...

    def wind_down(self) -> None:
        """Start no other call; see `contract.wind_down`."""
        ...


def no_judges(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    """No judge learns anything."""
    return ()


def no_variants(judges: Sequence[LLMJudge]) -> Iterable[Variant]:
    """No judge is asked in another way."""
    return ()


@dataclass(frozen=True)
class Extension:
    """What the wing of that name adds to one run.

    `answers` are the study's, those of the data among them; `beside` are judged too and have no
    part in the study. `lines` describe the latter, each with its `item_id`, and `rejected` what was
    not judged; both are kept in the run folder. `about` stands in the manifest under the wing's
    name, `settings` under its key of bench.yaml. `controls` are added to the usual control judges,
    `learnt` makes more judges that learn. `counted` and `told` are said when the run begins:
    `139 altered answers`.
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
    learnt: Callable[[Bench, RunFolder], Sequence[LearntJudge]] = no_judges
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
    """Makes an extension; raises SetupError with every problem of the wing's settings. One that
    `reads_texts` is not asked where these are not given."""

    @property
    def wing(self) -> str: ...

    @property
    def reads_texts(self) -> bool: ...

    def __call__(self, loaded: Loaded) -> Extension: ...
