"""A benchmark as it is read from bench.yaml, and what features add to one: plain records.

`runs.load` reads and checks a benchmark, `runs.features` says what a feature may hold.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel, Field

from judgebench.data.conversation import PairsConfig
from judgebench.errors import Problem
from judgebench.files import StrictModel
from judgebench.judges.config import CalibrationConfig, JuryConfig, Name
from judgebench.judges.control import By, Control, ControlJudge
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.judges.recorded import RecordedJudge
from judgebench.records import SEVERAL, Answer, Dataset
from judgebench.rubric import Rubric
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.verdicts import suspicions
from judgebench.text import counted, listed

if TYPE_CHECKING:
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.judging import Work

SectionModel = TypeVar("SectionModel", bound=BaseModel)


class ReportConfig(StrictModel):
    """The `level` of every interval."""

    level: float = Field(default=0.95, gt=0.5, lt=1)


class BenchConfig(StrictModel):
    """The keys of bench.yaml but for those of features. Paths are seen from the folder of the file
    that names them.

    `data` may be left out where a feature brings answers of its own. `pairs` of answers are rows
    beside these, for metrics of pairs. `by` names the columns that a baseline may know, alone or
    several together; the usual ones where it is left out (`judges.control`). `notes` are sentences
    that every report repeats, such as where the data comes from.
    """

    name: Name
    rubric: str
    data: str | tuple[str, ...] = ()
    data_folder: str | None = None
    metrics: tuple[str, ...] = ()
    pairs: PairsConfig | None = None
    judges: tuple[str | dict[str, object], ...] = ()
    controls: bool | tuple[Control, ...] = True
    by: tuple[str | tuple[str, ...], ...] | None = None
    truth: TruthConfig = TruthConfig()
    report: ReportConfig = ReportConfig()
    notes: tuple[str, ...] = ()
    seed: int = 0

    @property
    def known(self) -> list[By] | None:
        """The columns of each baseline that knows some; None for the usual ones."""
        if self.by is None:
            return None if self.controls is True else []
        return [(one,) if isinstance(one, str) else one for one in self.by]

    def data_paths(self, file: Path) -> list[Path]:
        """The data files of the bench.yaml `file`."""
        names = (self.data,) if isinstance(self.data, str) else self.data
        return [file.parent / name for name in names]

    def data_home(self, file: Path, given: Path | None) -> Path | None:
        """The folder where the paths in a layout.yaml start: `given`, else as in `file`; None for
        its own folder."""
        return given or (file.parent / self.data_folder if self.data_folder else None)

    def section(self, key: str, model: type[SectionModel]) -> SectionModel | None:
        """The settings under a feature's key; None where it has none."""
        found = getattr(self, key, None)
        return found if isinstance(found, model) else None


@dataclass(frozen=True)
class Variant:
    """The judge `of`, asked as `recipe` says about `answers`; `repeat` counts from 1.

    `asks`, of each metric that is asked in other words by its id: the `metric` of the rubric that
    it stands for, and the rubric's `labels` by those that were shown, where they differ.
    """

    judge: LLMJudge
    of: str
    recipe: str
    kind: str
    repeat: int
    answers: tuple[Answer, ...]
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class LearntEntry(Protocol):
    """The settings of a judge that a feature makes. `needs` are the judges that it needs."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> Sequence[str]: ...


def is_judge(entry: LearntEntry) -> bool:
    """True where the entry gives labels; one that only scores has an attribute of this name."""
    return bool(getattr(entry, "is_judge", True))


class LearntJudge(Judge, Protocol):
    """A judge that learns before it judges, once those that it `needs` are done.

    `kind` is that of its entry in the manifest, which holds `more` besides: `judge`, `control`, or
    another one that a study passes over. `notes` are sentences that every report repeats.
    """

    kind: str = "judge"
    notes: Sequence[str] = ()
    needs: Sequence[str] = ()
    more: Mapping[str, Any] = {}
    hosts: Sequence[str] = ()  # that it contacts
    parse_retries: int = 0

    @property
    @abstractmethod
    def ahead(self) -> str:
        """The work that is left, learning and judging, in words."""

    @property
    def spent(self) -> float:
        """US dollars for what it asked in order to learn."""
        return 0.0

    def begin(self, work: Work) -> None:
        """Take the run's budget, progress and stop before any work begins."""
        return

    @abstractmethod
    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        """(answers,): the number of what judges each answer, in whose order they are judged; -1
        for those that it does not judge."""

    def drain(self) -> None:
        """Start no other call; see `contract.drain`."""
        return


@dataclass(frozen=True)
class Extension:
    """The answers, judges and settings that the feature of that name adds to one run.

    `answers` are the study's, those of the data among them; `beside` are judged too and have no
    part in the study. `lines` describe the latter, each with its `item_id`, and are kept in the run
    folder. `about` stands in the manifest under the feature's name, `settings` under its key of
    bench.yaml. `controls` are added to the usual baselines, `learnt` makes more judges that learn.
    `told` are sentences that are said when the run begins.
    """

    feature: str
    answers: tuple[Answer, ...]
    beside: tuple[Answer, ...] = ()
    lines: Sequence[Mapping[str, Any]] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, BaseModel] = field(default_factory=dict)
    variants: Callable[[Sequence[LLMJudge]], Iterable[Variant]] = lambda judges: ()
    controls: tuple[Control, ...] = ()
    learnt: Callable[[Bench, RunFolder], Sequence[LearntJudge]] = lambda bench, folder: ()
    told: tuple[str, ...] = ()

    @property
    def parents(self) -> Mapping[str, str]:
        """The id of what each altered answer was made of, by its own."""
        return {line["item_id"]: line["parent_id"] for line in self.lines if "parent_id" in line}


@dataclass(frozen=True)
class Bench:
    """A checked benchmark. Engines are open, but no model has been asked anything."""

    config: BenchConfig
    file: Path
    rubric: Rubric
    dataset: Dataset
    judges: tuple[LLMJudge, ...]
    juries: tuple[JuryConfig, ...] = ()
    calibrations: tuple[CalibrationConfig, ...] = ()
    controls: tuple[ControlJudge, ...] = ()
    recorded: tuple[RecordedJudge, ...] = ()  # verdicts that somebody has
    others: tuple[Judge, ...] = ()  # judges that were handed over as Python objects
    learning: tuple[LearntEntry, ...] = ()  # what features make judges of
    learnt: tuple[LearntJudge, ...] = ()  # these judges, once a run folder is known
    extension: Extension | None = None  # `dataset` then holds the answers beside the study too
    data_answers: Sequence[Answer] = ()  # those of the data, if there are any: to learn from
    variants: tuple[Variant, ...] = ()
    limited: bool = False  # the first answers only were asked for

    @property
    def names(self) -> set[str]:
        """The names of judges of every kind."""
        kinds = (
            self.judges, self.recorded, self.juries, self.calibrations, self.controls, self.others,
            self.learning,
        )  # fmt: skip
        return {judge.name for kind in kinds for judge in kind}

    @property
    def models(self) -> list[tuple[LLMJudge, Sequence[Answer]]]:
        """The language models, also those asked in another way, each with what it judges."""
        judges = [(judge, self.dataset.answers) for judge in self.judges]
        return judges + [(other.judge, other.answers) for other in self.variants]

    @property
    def asked(self) -> list[Judge]:
        """Every judge that is asked, and whose verdicts are kept as they come."""
        return [*(judge for judge, _ in self.models), *self.others, *self.learnt]

    @property
    def n_judges(self) -> int:
        """The number of judges that give labels, without controls, juries and calibrations."""
        made = [entry for entry in self.learning if is_judge(entry)]
        return len(self.judges) + len(self.recorded) + len(made)

    @property
    def parents(self) -> Mapping[str, str]:
        """The id of what each altered answer was made of, by its own."""
        return self.extension.parents if self.extension else {}

    @property
    def answers(self) -> Sequence[Answer]:
        """The study's answers, without those that are judged beside it."""
        return self.extension.answers if self.extension else self.dataset.answers

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings of the data, and those about makers of the truth that may be no person."""
        makers = self.config.truth.choose({label.annotator for label in self.dataset.labels})
        return (*self.dataset.warnings, *suspicions(makers, self.names, str(self.file)))

    @property
    def in_words(self) -> str:
        """A summary of its content."""
        rows = Counter(answer.kind for answer in self.answers)
        counts = [counted(n, kind, SEVERAL[kind]) for kind, n in rows.items()]
        if self.extension and self.extension.beside:
            counts.append(counted(len(self.extension.beside), "altered answer"))
        parts = [
            f"{listed(counts)} with {counted(self.dataset.n_labels, 'human label')}",
            counted(self.n_judges, "judge"),
            counted(len(self.controls), "baseline"),
        ]
        return f"a benchmark of {listed(parts)}"

    def close(self) -> None:
        for judge in (*self.judges, *self.others, *self.learnt):
            judge.close()


@dataclass(frozen=True)
class Loaded:
    """A benchmark as read, before a feature adds to it. `judged` is the rubric with the metrics
    that are judged."""

    config: BenchConfig
    file: Path
    rubric: Rubric
    judged: Rubric
    dataset: Dataset


class Extend(Protocol):
    """Makes an extension; raises SetupError with every problem of the feature's settings."""

    @property
    def feature(self) -> str: ...

    def __call__(self, loaded: Loaded) -> Extension: ...


def default_run_folder(config: BenchConfig) -> Path:
    """`runs/NAME` below the folder that the command was called in."""
    return Path(os.curdir) / "runs" / config.name
