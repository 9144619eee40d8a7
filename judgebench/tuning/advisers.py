"""What a training asks on its way, of a language model or of the judge itself: kept as it comes, so
that nothing is asked twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.files import read_lines
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.learning.learnt import Learner, TrainingSet
from judgebench.models.contract import Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, RequestGroups, Work, judge_answers
from judgebench.runs.load import open_judge
from judgebench.runs.verdict_log import FiledVerdicts
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import indexed
from judgebench.writer import WritingTerms, kept_replies, write_kept


@dataclass
class Adviser:
    """A language model of a benchmark, `judge`, opened once more, on an engine of its own, when it
    is first needed."""

    judge: LLMJudge
    open: Callable[[], LLMJudge]
    _opened: LLMJudge | None = None

    @property
    def asked(self) -> LLMJudge:
        """The judge on its own engine."""
        if self._opened is None:
            self._opened = self.open()
        return self._opened

    def replies(
        self, requests: Mapping[str, Request], path: Path, work: Work, name: str
    ) -> Mapping[str, Reply]:
        """The replies by the keys of the requests, without those that did not come. They are kept
        in the file `path`; `name` is that of the work.

        Raises BudgetSpent, Interrupted, and what an engine raises.
        """
        kept = kept_replies(path)
        if requests.keys() <= kept.keys():
            return {key: kept[key] for key in requests}
        price, left_out = (
            f"judges.{self.judge.name}.settings.price",
            self.judge.config.decoding.left_out,
        )
        terms = WritingTerms(name, work.progress, work.stop, work.budget, price, left_out)
        return write_kept(path, requests, self.asked.engine, lambda _, request: request, terms)

    def drain(self) -> None:
        if self._opened is not None:
            self._opened.drain()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None


def open_adviser(bench: Bench, name: str, field: str, folder: Path) -> Adviser:
    """The language model of that name. Raises SetupError, which names the `field`, where it is
    none."""
    models = {judge.name: judge for judge in bench.judges}
    if name not in models:
        message, allowed = "is no language model of this benchmark", ", ".join(models)
        problem = Problem(message, str(bench.file), None, field, name, allowed or "none is in it")
        raise SetupError(problem)
    return Adviser(models[name], partial(open_judge, models[name], bench.file, folder))


class OfJudge(Learner):
    """A way to learn that asks a judge, `asks`, in another way."""

    def __init__(self, asks: Adviser) -> None:
        self.asks, self.needs = asks, (asks.judge.name,)
        self.parse_retries = asks.judge.parse_retries

    def drain(self) -> None:
        self.asks.drain()

    def close(self) -> None:
        self.asks.close()


class _MessagesOnly(NoProgress):
    """Says what is to be read, and shows no bar for each of many small pieces of work."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def say(self, message: str) -> None:
        self._progress.say(message)


def judged_labels(judge: Judge, asked: TrainingSet, folder: Path, work: Work) -> IntArray:
    """(metrics, answers): the index of the label that the judge gives to each answer of the set, -1
    where it gives none. Its verdicts are kept in the folder.

    Raises BudgetSpent, Interrupted, and what its engine raises.
    """
    folder.mkdir(parents=True, exist_ok=True)
    answers, run = indexed(asked.answers), RunFolder(folder)
    bars = replace(work, folder=run, progress=_MessagesOnly(work.progress))
    judge_answers(judge, RequestGroups(judge, answers), bars)
    if work.stop.wanted:
        raise Interrupted
    metrics, path = asked.rubric.metrics, run.verdict_path(judge.name)
    verdicts = FiledVerdicts(path, judge.signature, answers, metrics)
    return np.array([verdicts.label_indices(metric, answers) for metric in metrics])


def costs_in(path: Path) -> Iterator[float]:
    """US dollars for each reply and verdict in a file, or in all files below a folder."""
    for file in [path] if path.is_file() else sorted(path.rglob("*.jsonl")):
        yield from (line.get("cost") or 0.0 for _, line in read_lines(file))
