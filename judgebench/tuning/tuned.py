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
from pydantic import BaseModel, ConfigDict

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


class Exported(BaseModel):
    """The content of judgebench.json.

    `recipe` holds the keys of bench.yaml by which it judges, `about` what the learner told of
    itself, `needs` the signatures of the judges whose verdicts or settings it uses, by name.
    `questions` and `texts` are sketches of what it learnt from, `content` is the hash of the other
    files.
    """

    model_config = ConfigDict(frozen=True)

    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
    rubric: Rubric
    questions: tuple[str, ...]
    texts: tuple[str, ...]
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
    recipe, where its base model or its encoder lie elsewhere."""

    name: Name
    tuned: str
    model: str | None = None
    encoder: str | None = None


@dataclass(frozen=True)
class TunedEntry:
    """An exported judge with its recipe, in the paths of here."""

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
    changes = config.model_dump(exclude_none=True, exclude={"tuned"})
    how = learn_entry({**exported.recipe, **changes}, file, node)
    return TunedEntry(config.name, folder, exported, how)


class TunedJudge(ByLearner):
    """Meets `runs.bench.LearntJudge`: what an export holds, on all answers whose question and
    text it does not know, be it nearly. Of an altered answer its parent counts too."""

    def __init__(self, entry: TunedEntry, bench: Bench, make: Make) -> None:
        """Raises SetupError where rubric, base weights or the judges it needs are others."""
        exported = entry.exported
        metrics = [m.id for m in exported.rubric.metrics if bench.rubric.find(m.id)]
        if (rubric := bench.rubric.only(metrics)) != exported.rubric:
            message = f"is for another rubric than this: compare it with that in {MANIFEST}"
            raise SetupError(Problem(message, str(entry.folder), field="rubric"))
        _check_needs(entry, bench)
        learner = make(entry.how, replace(bench, rubric=rubric))
        told = learner.describe()
        if bases_of(told) != bases_of(exported.about):
            message = "stands on other weights, another encoder or another prompt"
            raise SetupError(Problem(message, str(entry.folder), found=entry.name))
        self._entry = entry
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
        known_questions = known_texts(questions, self._entry.exported.questions)
        texts = known_texts((answer.text for answer in answers), self._entry.exported.texts)
        own = {a.item_id for a in answers if a.question in known_questions or a.text in texts}
        self._known |= own | {item for item in answers.item_ids() if parents.get(item) in own}
        # What is known comes after the others, so that these are judged together.
        found = [a.item_id in self._known if a.kind == "answer" else -1 for a in answers]
        return np.array(found, dtype=np.int64)

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        folder = self._entry.folder
        for known, some in groupby(tasks, key=lambda task: task.answer.item_id in self._known):
            judge = partial(map, _skipped) if known else partial(self.learner.judge, folder=folder)
            yield from self._named(judge(some))


def _skipped(task: Task) -> Verdict:
    hashed = task.content_hash or task.answer.content_hash
    return Verdict(task.answer.item_id, hashed, "", "", Status.SKIPPED, reason=TRAINED_ON)


def _check_needs(entry: TunedEntry, bench: Bench) -> None:
    """Language models must be those that it learnt with; of recorded verdicts nobody can tell."""
    signed = {judge.name: judge.signature for judge in bench.judges}
    for name, signature in entry.exported.needs.items():
        if signed.get(name, signature) != signature:
            message = "has another signature than the judge with which it was learnt"
            raise SetupError(Problem(message, str(entry.folder), None, "from", name))
