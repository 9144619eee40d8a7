"""A judge that was tuned elsewhere, as a judge of this benchmark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import Name
from judgebench.judges.judge import Task
from judgebench.records import TRAINED_ON, Dataset, Status, Verdict, content_hash
from judgebench.rubric import load_rubric
from judgebench.runner.bench import Bench, BenchConfig
from judgebench.runner.judging import Work
from judgebench.stats.arrays import IntArray
from judgebench.study.answers import IndexedAnswers
from judgebench.tuning.config import Learn, learn_entry
from judgebench.tuning.exported import (
    MODEL,
    RUBRIC,
    Exported,
    check_base,
    known_to,
    read_export,
    rubric_for,
)
from judgebench.tuning.learnt import Learner
from judgebench.yaml_file import Strict, validate

Make = Callable[[Learn, Bench], Learner]
_KNOWN = 1  # the cell of answers that it learnt from


class TunedConfig(Strict):
    """`tuned` is the folder of an exported judge. `from` says what the judges that it needs are
    called here, where they are called otherwise, and `base` where its base weights or its encoder
    lie, where they lie elsewhere."""

    name: Name
    tuned: str
    source: dict[Name, Name] = Field(default_factory=dict, alias="from")
    base: str | None = None


@dataclass(frozen=True)
class TunedEntry:
    """An exported judge, and what it was learnt by: the entry as it was, with the names of here.
    `renamed` are these names, by those in the export."""

    name: str
    folder: Path
    exported: Exported
    how: Learn
    renamed: Mapping[str, str]

    @property
    def needs(self) -> Sequence[str]:
        return self.how.needs


def tuned_entry(value: Any, file: Path, node: yaml.Node | None) -> TunedEntry:
    """An entry of `judges` with a key `tuned`. Raises SetupError with every problem."""
    config = validate(value, TunedConfig, str(file), node)
    folder = file.parent / config.tuned
    exported = read_export(folder)
    if unknown := [name for name in config.source if name not in exported.needs]:
        allowed = ", ".join(exported.needs) or "none: it needs no judge"
        message = "is no judge that the exported one needs"
        raise SetupError([Problem(message, str(file), None, "from", n, allowed) for n in unknown])
    recipe = {**exported.recipe, "name": config.name}
    if "from" in recipe:
        old = recipe["from"]
        new = [config.source.get(name, name) for name in ([old] if isinstance(old, str) else old)]
        recipe["from"] = new[0] if isinstance(old, str) else new
    for key in ("model", "encoder"):
        if config.base and key in recipe:
            recipe[key] = config.base
    how = learn_entry(recipe, file, None)
    renamed = {name: config.source.get(name, name) for name in exported.needs}
    return TunedEntry(config.name, folder, exported, how, renamed)


class TunedJudge:
    """Meets `runner.extension.LearntJudge`: what an export holds, on all answers whose question and
    text it does not know, be it nearly. Of an altered answer its parent counts too."""

    kind = "judge"
    more: Mapping[str, Any] = {}

    def __init__(self, entry: TunedEntry, bench: Bench, make: Make) -> None:
        """Raises SetupError where rubric, base weights or the judges it needs are others."""
        exported, of = entry.exported, bench.rubric.of_kind("answer") or bench.rubric
        rubric = rubric_for(entry.folder, of)
        _check_needs(entry, bench)
        self._learner = make(entry.how, replace(bench, rubric=rubric))
        told = self._learner.describe()
        check_base(entry.folder, exported, told)
        self.name, self.needs = entry.name, entry.needs
        self.parse_retries = getattr(self._learner, "parse_retries", 0)
        self._folder = entry.folder / MODEL
        self._questions, self._texts = known_to(entry.folder)
        self._known: set[str] = set()
        self._about = {
            "judge": "tuned",
            **told,
            "export": {"name": exported.name, "hash": exported.hash, "of": exported.signature},
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            **({} if rubric == bench.rubric else {"metrics": [m.id for m in rubric.metrics]}),
        }
        self.signature = content_hash({k: v for k, v in self._about.items() if k != "runtime"})

    @property
    def ahead(self) -> str:
        """What it has yet to do, in words."""
        return f"{self.name}: was learnt elsewhere, judges the answers that it does not know"

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def begin(self, work: Work) -> None:
        """It has nothing left to learn."""

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        own = {
            answer.item_id
            for answer in answers
            if (answer.question and self._questions.holds(answer.question))
            or self._texts.holds(answer.text)
        }
        self._known |= own | {item for item in answers.item_ids() if parents.get(item) in own}
        found = [
            -1 if answer.kind != "answer" else _KNOWN if answer.item_id in self._known else 0
            for answer in answers
        ]
        return np.array(found, dtype=np.int64)

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for known, some in groupby(tasks, key=lambda task: task.answer.item_id in self._known):
            for verdict in (
                map(_skipped, some) if known else self._learner.judge(some, self._folder)
            ):
                yield replace(verdict, judge=self.name, signature=self.signature)

    def close(self) -> None:
        self._learner.close()


def _skipped(task: Task) -> Verdict:
    hashed = task.content_hash or task.answer.content_hash
    return Verdict(task.answer.item_id, hashed, "", "", Status.SKIPPED, reason=TRAINED_ON)


def _check_needs(entry: TunedEntry, bench: Bench) -> None:
    """Language models must be those that it learnt with; of recorded verdicts nobody can tell."""
    signed = {judge.name: judge.signature for judge in bench.judges}
    problems = [
        Problem(
            f"is not the judge {old} that it learnt with: its signature is another",
            str(entry.folder), None, "from", f"{new} {signed[new]}", f"{entry.exported.needs[old]}",
        )
        for old, new in entry.renamed.items()
        if new in signed and signed[new] != entry.exported.needs[old]
    ]  # fmt: skip
    if problems:
        raise SetupError(problems)


def import_judge(
    folder: Path, names: Mapping[str, Any], beside: Path, bench: Bench | None, make: Make
) -> dict[str, Any]:
    """The entry for an exported judge in a file that lies `beside`, once it is checked: its files,
    way to learn and base weights and, with a benchmark, rubric and the judges that it needs.

    `names` are keys of the entry (`name`, `from`, `base`). Raises SetupError.
    """
    path = os.path.relpath(folder, beside)
    value = {"name": folder.name, "tuned": path, **{k: v for k, v in names.items() if v}}
    file = beside / "bench.yaml"
    entry = tuned_entry(value, file, None)
    if bench is None and not entry.needs:
        config = BenchConfig(name="import", rubric=RUBRIC)
        bench = Bench(config, file, load_rubric(folder / RUBRIC), Dataset((), ()), ())
    elif bench and (unknown := sorted({*entry.needs} - bench.names)):
        message, allowed = "is no judge of the benchmark", ", ".join(sorted(bench.names))
        raise SetupError([Problem(message, "", None, "from", n, allowed) for n in unknown])
    if bench:
        TunedJudge(entry, bench, make).close()
    return value
