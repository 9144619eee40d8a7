"""The folder that a tuned judge is kept in, to be used on other data.

manifest.json   what was learnt how, of what, what it is worth out of fold, and the SHA-256 of
                every other file; sealed, so that a changed byte shows
model/          what the judge learnt
rubric.yaml     the rubric that it judges by
known.json      sketches of the questions and texts that it learnt from
README.md       the same for people
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
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import is_sealed
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.tuning.config import Learn, learn_entry

MANIFEST, MODEL, RUBRIC, KNOWN, CARD = (
    "manifest.json", "model", "rubric.yaml", "known.json", "README.md"
)  # fmt: skip
# What a learner tells of what it stands on: weights, an encoder, a prompt.
_SUMS = ("sha256", "revision", "hash")
_OUR_OWN = ("runtime", "rubric", "recipe", "rounds", "stages")
# Keys of an entry that say how it is learnt, and not how it then judges.
_LEARNING = {"instructions": {"rounds", "by"}}
_USUAL = {"rounds", "stages"}


class Exported(BaseModel):
    """The part of manifest.json of which a judge is made.

    `recipe` is its entry of bench.yaml, `about` what the learner told of itself, `needs` the
    signatures of the judges whose verdicts or settings it uses, by name. `seal` changes with every
    byte of the folder.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
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
    found = validate(read_object(content, path), Exported, str(path))
    raise_any([*_damage(folder, found.files)])
    return found


def as_judge(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry by which it judges, without those by which it only learnt."""
    left_out = _LEARNING.get(recipe["learn"], _USUAL)
    return {key: value for key, value in recipe.items() if key not in left_out}


def _damage(folder: Path, files: Mapping[str, str]) -> Iterator[Problem]:
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            yield Problem("is missing from the export", str(path))
            continue
        with read_errors(path):
            found = sha256_of(path)
        if found != expected:
            yield Problem("was changed after the export", str(path), None, "SHA-256", found)


def rubric_for(folder: Path, ours: Rubric) -> Rubric:
    """The part of our rubric that the judge judges by. Raises SetupError with every difference."""
    theirs = load_rubric(folder / RUBRIC)
    keys = ("name", "version", "instructions")
    wrong = [f"{key} differ" for key in keys if getattr(theirs, key) != getattr(ours, key)]
    mine = {metric.id: metric for metric in ours.metrics}
    for metric in (m for m in theirs.metrics if mine.get(m.id) != m):
        wrong.append(f"the metric {metric.id} {'differs' if metric.id in mine else 'is missing'}")
    if wrong:
        message, found = f"is for another rubric: {', '.join(wrong)}", ours.content_hash
        at, named = str(folder / RUBRIC), f"{ours.name} {found}"
        raise SetupError(Problem(message, str(folder), None, "rubric", named, at))
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
        recipe["model"] = str((folder / MODEL / MODEL).resolve())
    return TunedEntry(config.name, folder, exported, learn_entry(recipe, file, None), renamed)


class TunedJudge(ByLearner):
    """Meets `runs.bench.LearntJudge`: what an export holds, on all answers whose question and
    text it does not know, be it nearly. Of an altered answer its parent counts too."""

    def __init__(self, entry: TunedEntry, bench: Bench, make: Make) -> None:
        """Raises SetupError where rubric, base weights or the judges it needs are others."""
        rubric = rubric_for(entry.folder, bench.rubric.of_kind("answer") or bench.rubric)
        _check_needs(entry, bench)
        learner = make(entry.how, replace(bench, rubric=rubric))
        told = learner.describe()
        if not entry.exported.merged:
            check_base(entry.folder, entry.exported, told)
        self._folder = entry.folder / MODEL
        sketches = read_object((entry.folder / KNOWN).read_bytes(), entry.folder / KNOWN)
        self._questions, self._texts = (Known(sketches[key]) for key in ("questions", "texts"))
        self._known: set[str] = set()
        about = {
            "judge": "tuned",
            **told,
            "export": {"name": entry.exported.name, "seal": entry.exported.seal},
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
