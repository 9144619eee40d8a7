"""A judge that was tuned elsewhere, as a judge of this benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from judgebench.errors import Problem, raise_any
from judgebench.files import read_object
from judgebench.judges.config import Name
from judgebench.judges.judge import Task
from judgebench.learning.folds import Known
from judgebench.learning.learnt import ByLearner, Learner
from judgebench.records import TRAINED_ON, Status, Verdict
from judgebench.retrieval.vectors import WORDS
from judgebench.runs.bench import Bench
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers
from judgebench.tuning.config import Learn, learn_entry
from judgebench.tuning.exported import (
    KNOWN,
    MODEL,
    Exported,
    as_judge,
    check_base,
    read_export,
    rubric_for,
)
from judgebench.yaml_file import Strict, validate

Make = Callable[[Learn, Bench], Learner]


class TunedConfig(Strict):
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
