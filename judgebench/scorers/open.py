"""The scorers of a benchmark, as what a run asks beside its judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.judges.judge import Task
from judgebench.records import Answer, Verdict
from judgebench.runs.bench import Bench, Gathered, no_texts
from judgebench.runs.extension import LearntJudge
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Work
from judgebench.scorers.config import (
    BertScoreConfig,
    ColumnConfig,
    FitEntry,
    LearnedConfig,
    MeteorConfig,
    MoverScoreConfig,
    OccurrencesConfig,
    PerplexityConfig,
    RadGraphConfig,
    RelaxedConfig,
    RougeConfig,
    SacrebleuConfig,
    ScorerConfig,
    ScorerEntry,
    SimpleConfig,
)
from judgebench.scorers.embedding import bertscore, moverscore
from judgebench.scorers.fit import check_fits, fitted_judges
from judgebench.scorers.kept import KeptScores
from judgebench.scorers.learned import learned, radgraph
from judgebench.scorers.likelihood import Likelihood
from judgebench.scorers.ngram import ngram
from judgebench.scorers.scorer import Scorer
from judgebench.scorers.simple import Column, Simple
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import IndexedAnswers

FOLDER = "scorers"  # in a run folder: the scores that were computed


def open_scorer(config: ScorerConfig, answers: Sequence[Answer], beside: Path) -> Scorer:
    """The scorer of these settings; paths are seen from the folder `beside`.

    Raises SetupError for what cannot be scored so, MissingExtra where a package is missing.
    """
    match config:
        case ColumnConfig():
            return Column(config, answers)
        case SimpleConfig():
            return Simple(config)
        case RougeConfig() | SacrebleuConfig() | MeteorConfig():
            return ngram(config, answers)
        case BertScoreConfig():
            return bertscore(config, answers, beside)
        case MoverScoreConfig():
            return moverscore(config, answers, beside)
        case LearnedConfig():
            return learned(config, answers, beside)
        case RadGraphConfig():
            return radgraph(config, answers, beside)
        case PerplexityConfig() | RelaxedConfig() | OccurrencesConfig():
            return Likelihood(config, answers, beside)
    raise TypeError(type(config))


def check_scorers(bench: Bench) -> None:
    """Raises SetupError with all that keeps the scorers of a benchmark from scoring."""
    gather = Gathered(str(bench.file))
    for entry in _entries(bench):
        where = f"{'judges' if isinstance(entry, FitEntry) else 'scorers'}.{entry.name}"
        if bench.dataset.textless and not isinstance(entry.how, ColumnConfig):
            gather.tell(where, no_texts("a scorer reads answers", bench.dataset))
        else:
            gather(where, _opened, entry.how, bench)
    check_fits(bench, gather)
    gather.raise_any()


def _entries(bench: Bench) -> list[ScorerEntry | FitEntry]:
    """Where no texts are given, nothing is scored for comparison."""
    entries = [e for e in bench.learning if isinstance(e, ScorerEntry | FitEntry)]
    return [e for e in entries if not (bench.dataset.textless and getattr(e, "beside", False))]


def _opened(config: ScorerConfig, bench: Bench) -> Scorer:
    answers = [answer for answer in bench.answers if answer.kind == "answer"]
    return open_scorer(config, answers, bench.file.parent)


def open_scorers(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    """A judge of the kind `scorer` for each scorer, which gives scores and no label, and the judges
    that follow from one. Raises SetupError."""
    opened: dict[str, KeptScores] = {}

    def kept(config: ScorerConfig) -> KeptScores:
        key = config.model_dump_json(exclude={"name"})
        if key not in opened:
            opened[key] = KeptScores(_opened(config, bench), folder.path / FOLDER)
        return opened[key]

    listed = [entry for entry in _entries(bench) if isinstance(entry, ScorerEntry)]
    scorings = [Scoring(entry.name, kept(entry.how), entry.hosts) for entry in listed]
    return [*scorings, *fitted_judges(bench, folder.path / FOLDER, kept)]


class Scoring:
    """A scorer in a run: its verdicts hold a score and no label. Meets `LearntJudge`; a study
    passes over its kind."""

    kind = "scorer"
    needs: Sequence[str] = ()
    notes: Sequence[str] = ()

    def __init__(self, name: str, kept: KeptScores, hosts: Sequence[str] = ()) -> None:
        self.name, self._kept, self.signature = name, kept, kept.signature
        self.hosts = hosts  # that it contacts
        self.more: Mapping[str, Any] = {"better": kept.scorer.better}

    def describe(self) -> Mapping[str, Any]:
        return {"judge": "scorer", **self._kept.scorer.about}

    @property
    def ahead(self) -> str:
        """What it has yet to do, in words."""
        return f"{self.name}: scores answers, {self._kept.scorer.at_once:,} at a time"

    def begin(self, work: Work) -> None:
        """It has no calls to pay for."""

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        return np.array([0 if a.kind == "answer" else -1 for a in answers], dtype=np.int64)

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for task, one in self._kept.along(tasks):
            hashed = task.content_hash or task.answer.content_hash
            yield Verdict(
                task.answer.item_id, hashed, self.name, self.signature, one.status,
                reason=one.reason, score=one.value,
            )  # fmt: skip

    def wind_down(self) -> None:
        """Blocks are short: the next one is not begun."""

    def close(self) -> None:
        self._kept.close()
