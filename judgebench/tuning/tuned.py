"""The folder that a tuned judge is kept in, to be used on other data.

It holds what the judge learnt (of a language model what transformers and peft read), a README.md
for people, and judgebench.json: what was learnt how, the rubric that it judges by, sketches of the
questions and texts that it learnt from, and a hash of the other files.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, load_json, validate
from judgebench.judges.config import Name
from judgebench.judges.judge import Task
from judgebench.learning.folds import known_texts
from judgebench.learning.learnt import ByLearner, Learner
from judgebench.models.checkpoints import sums_of
from judgebench.records import TRAINED_ON, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.tuning.config import Learn, learn_entry

MANIFEST, CARD = "judgebench.json", "README.md"
_SUMS = ("sha256", "revision", "hash")  # of the weights, encoder or prompt that a learner stands on
_LEARNING = ("rounds", "stages", "by")  # keys of an entry that say how it is learnt alone


class Exported(BaseModel):
    """The content of judgebench.json.

    `recipe` is the judge's entry of bench.yaml, `about` what the learner told of itself, `needs`
    the signatures of the judges whose verdicts or settings it uses, by name. `questions` and
    `texts` are sketches of what it learnt from, `content` is the hash of the other files.
    """

    model_config = ConfigDict(frozen=True)

    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
    rubric: Rubric
    questions: tuple[str, ...]
    texts: tuple[str, ...]
    merged: bool
    content: str


def read_export(folder: Path) -> Exported:
    """The manifest of a folder in which every file is as it was written. Raises SetupError."""
    exported = load_json(folder / MANIFEST, Exported, "an exported judge")
    if exported.content != content_of(folder):
        raise SetupError(Problem("a file is missing, or was changed after the export", str(folder)))
    return exported


def content_of(folder: Path) -> str:
    """A hash of all files but the manifest."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return content_hash(sums_of([path for path in files if path.name != MANIFEST]))


def check_absent(folder: Path) -> None:
    """Raises SetupError where something is there already."""
    if folder.exists():
        raise SetupError(Problem("is there already, and is not overwritten", str(folder)))


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """The path of a folder that becomes `folder` once it is full; what a killed process left of one
    is thrown away. Raises SetupError where something is there already."""
    check_absent(folder)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def as_judge(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry by which it judges, without those by which it only learnt."""
    return {key: value for key, value in recipe.items() if key not in _LEARNING}


def rubric_for(folder: Path, theirs: Rubric, ours: Rubric) -> Rubric:
    """The part of our rubric that the judge judges by. Raises SetupError where it is another."""
    rubric = ours.only([metric.id for metric in theirs.metrics if ours.find(metric.id)])
    if rubric != theirs:
        keys = [key for key, value in theirs if value != getattr(rubric, key)]
        message = "is for another rubric: these differ"
        raise SetupError(Problem(message, str(folder), None, "rubric", ", ".join(keys)))
    return rubric


def bases_of(about: Mapping[str, Any], name: str = "") -> dict[str, str]:
    """The sum of each thing that a learner tells it stands on, by what it is."""
    sums: dict[str, str] = {}
    for key, value in about.items():
        if isinstance(value, Mapping):
            sums |= bases_of(value, key)
        elif key in _SUMS:
            sums[name] = value
    return sums


Make = Callable[[Learn, Bench], Learner]


class TunedConfig(StrictModel):
    """`tuned` is the folder of an exported judge. The other keys take the place of those of its
    entry, where the judges that it needs, its base model or its encoder are called otherwise."""

    name: Name
    tuned: str
    source: Name | list[Name] | None = Field(default=None, alias="from")
    model: str | None = None
    encoder: str | None = None


@dataclass(frozen=True)
class TunedEntry:
    """An exported judge with its entry as it was, in the names of here."""

    name: str
    folder: Path
    exported: Exported
    how: Learn

    @property
    def needs(self) -> Sequence[str]:
        return self.how.needs

    @property
    def weights(self) -> Mapping[str, str]:
        return self.how.weights


def learning_entry(value: Any, file: Path, node: yaml.Node | None) -> Learn | TunedEntry:
    """An entry of `judges` with a key `learn` or `tuned`. Raises SetupError with every problem."""
    return (tuned_entry if "tuned" in value else learn_entry)(value, file, node)


def tuned_entry(value: Any, file: Path, node: yaml.Node | None) -> TunedEntry:
    """An entry of `judges` with a key `tuned`. Raises SetupError with every problem."""
    config = validate(value, TunedConfig, str(file), node)
    folder = file.parent / config.tuned
    exported = read_export(folder)
    changes = config.model_dump(by_alias=True, exclude_none=True, exclude={"tuned"})
    recipe = {**as_judge(exported.recipe), **changes}
    if exported.merged:  # what it was made of is not needed
        recipe["model"] = str(folder.resolve())
    how = learn_entry(recipe, file, node)
    if len(how.needs) != len(exported.needs):
        allowed = f"a name for each of {', '.join(exported.needs)}"
        raise SetupError(Problem("names too few or too many", str(file), None, "from", "", allowed))
    return TunedEntry(config.name, folder, exported, how)


class TunedJudge(ByLearner):
    """Meets `runs.bench.LearntJudge`: what an export holds, on all answers whose question and
    text it does not know, be it nearly. Of an altered answer its parent counts too."""

    def __init__(self, entry: TunedEntry, bench: Bench, make: Make) -> None:
        """Raises SetupError where rubric, base weights or the judges it needs are others."""
        exported = entry.exported
        ours = bench.rubric.of_kind("answer") or bench.rubric
        rubric = rubric_for(entry.folder, exported.rubric, ours)
        _check_needs(entry, bench)
        learner = make(entry.how, replace(bench, rubric=rubric))
        told = learner.describe()
        if not exported.merged and bases_of(told) != bases_of(exported.about):
            message = "stands on other weights, another encoder or another prompt"
            raise SetupError(Problem(message, str(entry.folder), found=entry.name))
        self._folder = entry.folder
        self._exported = exported
        self._known: set[str] = set()
        about = {
            "judge": "tuned",
            **told,
            "export": exported.content,
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            **({} if rubric == bench.rubric else {"metrics": [m.id for m in rubric.metrics]}),
        }
        super().__init__(entry.name, learner, about)

    @property
    def ahead(self) -> str:
        """The work that is left, in words."""
        return f"{self.name}: was learnt elsewhere, judges the answers that it does not know"

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        questions = (answer.question for answer in answers if answer.question)
        known_questions = known_texts(questions, self._exported.questions)
        texts = known_texts((answer.text for answer in answers), self._exported.texts)
        own = {a.item_id for a in answers if a.question in known_questions or a.text in texts}
        self._known |= own | {item for item in answers.item_ids() if parents.get(item) in own}
        # What is known comes after the others, so that these are judged together.
        found = [a.item_id in self._known if a.kind == "answer" else -1 for a in answers]
        return np.array(found, dtype=np.int64)

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for known, some in groupby(tasks, key=lambda task: task.answer.item_id in self._known):
            judge = _skipped if known else partial(self.learner.judge, folder=self._folder)
            yield from self._named(judge(some))


def _skipped(tasks: Iterable[Task]) -> Iterator[Verdict]:
    for task in tasks:
        hashed = task.content_hash or task.answer.content_hash
        yield Verdict(task.answer.item_id, hashed, "", "", Status.SKIPPED, reason=TRAINED_ON)


def _check_needs(entry: TunedEntry, bench: Bench) -> None:
    """Language models must be those that it learnt with; of recorded verdicts nobody can tell."""
    signed = {judge.name: judge.signature for judge in bench.judges}
    for name, signature in zip(entry.how.needs, entry.exported.needs.values(), strict=True):
        if signed.get(name, signature) != signature:
            message = "has another signature than the judge with which it was learnt"
            raise SetupError(Problem(message, str(entry.folder), None, "from", name))
