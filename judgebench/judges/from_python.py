"""Judges and backends that are handed over as Python objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import cast

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JUDGE_NAME, JudgeConfig
from judgebench.judges.judge import Judge, Task
from judgebench.judges.llm import LLMJudge
from judgebench.models.contract import Backend
from judgebench.prompt import load_prompt
from judgebench.records import Kind, Status, Verdict
from judgebench.rubric import Rubric

JUDGE = ("name", "signature", "describe", "judge", "close")
BACKEND = ("describe", "complete", "close")


def judges_from(
    given: Mapping[str, Judge | Backend], rubric: Rubric, taken: Collection[str]
) -> tuple[Judge, ...]:
    """A judge for each object: itself, or a language model on the backend that it is, which is
    asked with the prompt `structured` and judges one answer at a time.

    Raises SetupError with every object that does not meet its contract, and every name in `taken`.
    """
    problems = [p for name, one in given.items() for p in _problems(name, one, taken)]
    for name in () if "answer" in rubric.kinds else given:
        if not hasattr(given[name], "judge"):
            message = "is a backend, which judges answers, and the rubric has no metric of answers"
            problems.append(Problem(message, field=f"judges.{name}"))
    if problems:
        raise SetupError(problems)
    return tuple(_judge(name, one, rubric) for name, one in given.items())


def _problems(name: str, given: object, taken: Collection[str]) -> list[Problem]:
    where = f"judges.{name}"
    what, contract = ("judge", JUDGE) if hasattr(given, "judge") else ("backend", BACKEND)
    missing = [part for part in contract if not hasattr(given, part)]
    if missing:
        message = f"is not a {what}: it lacks {', '.join(missing)}"
        return [Problem(message, field=where, found=type(given).__name__)]
    if name in taken or not re.fullmatch(JUDGE_NAME, name):
        allowed = "a new name of letters, digits, '.', '_' and '-'"
        return [Problem("cannot have this name", field=where, found=name, allowed=allowed)]
    if what == "judge" and getattr(given, "name", "") != name:
        found = str(getattr(given, "name", ""))
        return [Problem("has another name itself", field=where, found=found, allowed=name)]
    return []


def _judge(name: str, given: Judge | Backend, rubric: Rubric) -> Judge:
    if hasattr(given, "judge"):
        return CheckedJudge(cast(Judge, given), rubric)
    kind = type(given)
    config = JudgeConfig.model_construct(
        name=name, backend=f"python:{kind.__module__}:{kind.__qualname__}"
    )
    return LLMJudge(config, rubric, load_prompt(config.prompt), given)


class CheckedJudge:
    """A judge given as an object. Only its valid verdicts reach the run folder."""

    def __init__(self, judge: Judge, rubric: Rubric) -> None:
        self._judge, self._rubric = judge, rubric
        self.name, self.signature = judge.name, judge.signature
        self.describe, self.close = judge.describe, judge.close

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """Raises SetupError for a verdict of another judge, or one that does not fit the rubric."""
        kinds: dict[str, Kind] = {}  # of what was asked about and has no verdict yet

        def noted() -> Iterator[Task]:
            for task in tasks:
                kinds[task.answer.item_id] = task.answer.kind
                yield task

        for verdict in self._judge.judge(noted()):
            about = self._rubric.of_kind(kinds.pop(verdict.item_id, "answer")) or self._rubric
            if problems := list(self._unsound(verdict, about)):
                raise SetupError(problems)
            yield verdict

    def _unsound(self, verdict: Verdict, rubric: Rubric) -> Iterator[Problem]:
        where = f"judges.{self.name}: {verdict.item_id}"
        for part, wanted in (("judge", self.name), ("signature", self.signature)):
            if (found := getattr(verdict, part)) != wanted:
                yield Problem("is not its own", "", None, f"{where}: {part}", found, wanted)
        for metric in rubric.metrics:
            label = verdict.labels.get(metric.id)
            if label is not None and label not in metric.options:
                allowed = ", ".join(metric.options)
                field = f"{where}: {metric.id}"
                yield Problem("is not a label of the metric", "", None, field, label, allowed)
            elif label is None and verdict.status == Status.OK:
                message = "has no label, so the status cannot be ok"
                yield Problem(message, field=f"{where}: {metric.id}")
