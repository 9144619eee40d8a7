"""The folder that a tuned judge is kept in, to be used on other data.

It holds what the judge learnt (of a language model what transformers and peft read), a README.md
for people, and judgebench.json: what was learnt how, of what, what it is worth out of fold, the
rubric that it judges by, sketches of the questions and texts that it learnt from, and the SHA-256
of every other file; sealed, so that a changed byte shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, read_errors, read_object, validate
from judgebench.judges.config import Name
from judgebench.judges.judge import Task
from judgebench.judges.retrieval import WORDS
from judgebench.learning.folds import Known
from judgebench.learning.learnt import ByLearner, Learner
from judgebench.models.checkpoints import sha256_of
from judgebench.records import TRAINED_ON, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import is_sealed
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.tuning.config import Learn, learn_entry

MANIFEST, CARD = "judgebench.json", "README.md"
# What a learner tells of what it stands on: weights, an encoder, a prompt.
_SUMS = ("sha256", "revision", "hash")
_OUR_OWN = ("runtime", "rubric", "recipe", "rounds", "stages")
# Keys of an entry that say how it is learnt, and not how it then judges.
_LEARNING = {"instructions": {"rounds", "by"}}
_USUAL = {"rounds", "stages"}


class Exported(BaseModel):
    """The part of manifest.json of which a judge is made.

    `recipe` is its entry of bench.yaml, `about` what the learner told of itself, `needs` the
    signatures of the judges whose verdicts or settings it uses, by name. `questions` and `texts`
    are sketches of what it learnt from. `seal` changes with every byte of the folder.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
    rubric: Rubric
    questions: tuple[str, ...]
    texts: tuple[str, ...]
    merged: bool
    files: dict[str, str]
    seal: str


def read_export(folder: Path) -> Exported:
    """The manifest of a folder in which every file is as it was written.

    Raises SetupError with every file that is missing or was changed.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise SetupError(Problem(f"holds no exported judge: {MANIFEST} is missing", str(folder)))
    with read_errors(path):
        content = path.read_bytes()
    if not is_sealed(content):
        raise SetupError(Problem("was changed after the export", str(path)))
    exported = validate(read_object(content, path), Exported, str(path))
    files = {name: folder / name for name in exported.files}
    raise_any(
        [
            Problem("is missing, or was changed after the export", str(path))
            for name, path in files.items()
            if not path.is_file() or sha256_of(path) != exported.files[name]
        ]
    )
    return exported


def as_judge(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry by which it judges, without those by which it only learnt."""
    left_out = _LEARNING.get(recipe["learn"], _USUAL)
    return {key: value for key, value in recipe.items() if key not in left_out}


def rubric_for(folder: Path, theirs: Rubric, ours: Rubric) -> Rubric:
    """The part of our rubric that the judge judges by. Raises SetupError with every difference."""
    keys = ("name", "version", "instructions")
    wrong = [f"{key} differ" for key in keys if getattr(theirs, key) != getattr(ours, key)]
    mine = {metric.id: metric for metric in ours.metrics}
    for metric in (m for m in theirs.metrics if mine.get(m.id) != m):
        wrong.append(f"the metric {metric.id} {'differs' if metric.id in mine else 'is missing'}")
    if wrong:
        message = f"is for another rubric: {', '.join(wrong)}"
        raise SetupError(Problem(message, str(folder), None, "rubric"))
    return ours.only([metric.id for metric in theirs.metrics])


def check_base(folder: Path, exported: Exported, now: Mapping[str, Any]) -> None:
    """Raises SetupError where weights, an encoder or a prompt that it stands on are others in what
    the learner tells `now`."""
    here = sums_of(now)
    problems = [
        Problem(f"is for another {what}", str(folder), None, what, here.get(what, "none"), sum_)
        for what, sum_ in sums_of(exported.about).items()
        if here.get(what) != sum_
    ]
    raise_any(problems)


def sums_of(about: Any, name: str = "") -> dict[str, str]:
    """The sum of each thing that a learner tells it stands on, by what it is."""
    found: dict[str, str] = {}
    for key, value in about.items() if isinstance(about, Mapping) else ():
        if key in _SUMS and isinstance(value, str) and name:
            found["base" if name == "backend" else name] = value
        elif key not in _OUR_OWN:
            found |= sums_of(value, key)
    return found


Make = Callable[[Learn, Bench], Learner]


class TunedConfig(StrictModel):
    """`tuned` is the folder of an exported judge. `from` says what the judges that it needs are
    called here, and `base` where its base weights or its encoder lie, where that is otherwise."""

    name: Name
    tuned: str
    source: dict[Name, Name] = Field(default_factory=dict, alias="from")
    base: str | None = None


@dataclass(frozen=True)
class TunedEntry:
    """An exported judge with its entry as it was, in the names of here. `renamed` are those of the
    judges that it needs, by those in the export."""

    name: str
    folder: Path
    exported: Exported
    how: Learn
    renamed: Mapping[str, str]

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
    message, allowed = "is no judge that the exported one needs", ", ".join(exported.needs)
    unknown = (name for name in config.source if name not in exported.needs)
    raise_any([Problem(message, str(file), None, "from", n, allowed or "none") for n in unknown])
    renamed = {name: config.source.get(name, name) for name in exported.needs}
    recipe = {**as_judge(exported.recipe), "name": config.name}
    if of := recipe.get("from"):
        recipe["from"] = renamed[of] if isinstance(of, str) else [renamed[name] for name in of]
    if config.base:
        stands_on = {"model", "encoder", "by"} & recipe.keys()
        recipe |= {key: config.base for key in stands_on if recipe[key] != WORDS}
    if exported.merged:  # what it was made of is not needed
        recipe["model"] = str(folder.resolve())
    return TunedEntry(config.name, folder, exported, learn_entry(recipe, file, None), renamed)


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
        if not exported.merged:
            check_base(entry.folder, exported, told)
        self._folder = entry.folder
        self._questions, self._texts = Known(exported.questions), Known(exported.texts)
        self._known: set[str] = set()
        about = {
            "judge": "tuned",
            **told,
            "export": {"name": exported.name, "seal": exported.seal},
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            **({} if rubric == bench.rubric else {"metrics": [m.id for m in rubric.metrics]}),
        }
        super().__init__(entry.name, learner, about)

    @property
    def ahead(self) -> str:
        """The work that is left, in words."""
        return f"{self.name}: was learnt elsewhere, judges the answers that it does not know"

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        own = {
            answer.item_id
            for answer in answers
            if (answer.question and self._questions.holds(answer.question))
            or self._texts.holds(answer.text)
        }
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
    problems = []
    for old, new in entry.renamed.items():
        then = entry.exported.needs[old]
        if new not in bench.names:
            message, allowed = "is no judge of the benchmark", ", ".join(sorted(bench.names))
            problems.append(Problem(message, str(entry.folder), None, "from", new, allowed))
        elif signed.get(new, then) != then:
            message = f"has another signature than {old}, with which it was learnt"
            found = f"{new} {signed[new]}"
            problems.append(Problem(message, str(entry.folder), None, "from", found, then))
    raise_any(problems)
