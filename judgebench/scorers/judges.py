"""The scorers of a benchmark, as what a run asks beside its judges, and judges that follow from a
score, by cuts that are fitted to human labels in folds.

Everything is learnt from the training folds alone: whether a higher score is more severe, the cuts
between the labels (`stats.calibration.best_cuts`: the largest mean of accuracy and balanced
accuracy, so that they serve agreement and rare severe labels), and the probability of each label.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import (
    Learner,
    LearntJudge,
    Material,
    TrainingSet,
    bench_material,
    describe_folds,
    verdict_of,
)
from judgebench.records import Answer, Verdict, without_runtime
from judgebench.rubric import Metric, Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.bench import LearntJudge as JudgeOfFeature
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, Work
from judgebench.runs.load import Gathered, no_texts
from judgebench.scorers.config import (
    BASELINES,
    ColumnConfig,
    FitConfig,
    LikelihoodConfig,
    OverlapConfig,
    ScorerConfig,
    SemanticConfig,
    scorer_config,
)
from judgebench.scorers.model_scorers import Likelihood, semantic
from judgebench.scorers.scorer import KeptScores, Scorer, baseline, column, overlap
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.calibration import Rising, best_cuts, rises, rising
from judgebench.studies.answers import IndexedAnswers

FOLDER = "scorers"  # in a run folder: the scores that were computed
_CUTS = "cuts.json"


class LabelThresholds(Learner):
    """Labels by cuts on a score, for each metric in its own direction. The score of a verdict is
    turned so that more is more severe on the rubric's first of them."""

    def __init__(self, kept: KeptScores, rubric: Rubric, hosts: Sequence[str] = ()) -> None:
        self._kept, self._rubric, self.hosts = kept, rubric, hosts

    def describe(self) -> Mapping[str, Any]:
        """The scorer, and how its scores become labels."""
        about = without_runtime(self._kept.scorer.about)
        return {"cuts": "accuracy and balanced accuracy", "of": about}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Learn the cuts of each metric. Raises SetupError where there is nothing to learn from."""

        def go_on(done: int) -> None:
            if work.stop.wanted:
                raise Interrupted

        scores = [score.value for score in self._kept.of(train.answers, go_on)]
        x = np.array(scores, dtype=np.float64)
        fits = {m.id: self._fitted(m, x, train.labels[m.id]) for m in train.rubric.metrics}
        write_atomically(folder / _CUTS, to_json(fits).encode())
        return {}  # the file has all that was learnt

    def _fitted(self, metric: Metric, x: FloatArray, labels: IntArray) -> dict[str, Any]:
        rows = np.flatnonzero(np.isfinite(x) & (labels >= 0))
        if not len(rows):
            message = "no answer to learn from has a score and a human label"
            raise SetupError(Problem(message, field=metric.id))
        label, k = labels[rows], len(metric.labels)
        usual = -1 if self._kept.scorer.better == "higher" else 1
        rho = rises(x[rows], label)
        sign = math.copysign(1, rho or usual)
        knots, above = rising(sign * x[rows], label, k)
        cuts = best_cuts(sign * x[rows], label, k)
        return {
            "n": len(rows), "rho": rho, "sign": sign, "cuts": cuts.tolist(),
            "knots": knots.tolist(), "above": above.tolist(),
        }  # fmt: skip

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        """A label for each metric, and its probabilities."""
        fits = json.loads((folder / _CUTS).read_bytes())
        curves = {m: Rising(np.array(f["knots"]), np.array(f["above"])) for m, f in fits.items()}
        first = fits[self._rubric.metrics[0].id]["sign"]
        for task, scored in self._kept.along(tasks):
            labels, shares, value = {}, {}, scored.value
            for metric in self._rubric.metrics if value is not None else ():
                fit = fits[metric.id]
                score = fit["sign"] * value
                labels[metric.id] = metric.label_texts[np.searchsorted(fit["cuts"], score)]
                shares[metric.id] = curves[metric.id].at(np.array([score]))[0]
            verdict = verdict_of(task, self._rubric, shares)
            severe = None if value is None else first * value
            yield replace(verdict, labels=labels, reason=scored.reason, score=severe)

    def close(self) -> None:
        """Give back the scorer's engine."""
        self._kept.close()


def fitted_judges(
    bench: Bench, home: Path, kept: Callable[[ScorerConfig], KeptScores]
) -> Sequence[LearntJudge]:
    """A judge for each entry that follows from a score, and the controls that are fitted the same
    way. Raises SetupError where nothing can be learnt."""
    gather = Gathered(str(bench.file))
    judges = [
        LearntJudge(
            entry.name, LabelThresholds(kept(entry), own.rubric, entry.hosts), own,
            own.cells, home,
            kind="control" if entry.scorer in BASELINES else "judge",
            more={"folds": describe_folds(own)},
        )
        for entry, own in _materials(bench, _with_controls(bench), gather)
    ]  # fmt: skip
    gather.raise_any()
    return judges


def _with_controls(bench: Bench) -> list[ScorerConfig]:
    """The judges to fit, and the controls of all their metrics, unless there are to be none. These
    are fitted in the folds of the first judge."""
    entries = [entry for entry in _entries(bench) if entry.fit]
    fits = [entry.fit for entry in entries if entry.fit and entry.scorer not in BASELINES]
    if not (fits and _has_controls(bench)):
        return entries
    metrics = tuple(dict.fromkeys(metric for fit in fits for metric in fit.metric))
    fit = fits[0].model_copy(update={"metric": metrics})
    there = {e.scorer for e in entries if e.fit and {*metrics} <= {*e.fit.metric}}
    return entries + [
        scorer_config({"scorer": name, "name": f"{name}-fitted", "fit": fit})
        for name in BASELINES
        if name not in there and f"{name}-fitted" not in bench.names
    ]


def _has_controls(bench: Bench) -> bool:
    """True where baselines, which read texts, are wanted and can be had."""
    return bench.config.controls is True and not bench.dataset.textless


def _materials(
    bench: Bench, entries: Sequence[ScorerConfig], gather: Gathered
) -> Iterator[tuple[ScorerConfig, Material]]:
    """The material that each judge learns from; why some cannot learn is kept in `gather`. Texts
    are compared once for all judges with the same folds."""

    @cache
    def material_of(folds: int, seed: int) -> Material:
        whole = bench.rubric.of_kind("answer")
        assert whole  # for each `fit` names some of its metrics
        return bench_material(bench, whole, folds, seed)

    for entry in entries:
        if entry.fit:
            where = f"judges.{entry.name}.fit"
            rubric = gather(where, _rubric, entry.fit, bench)
            material = rubric and gather(where, material_of, entry.fit.folds, entry.fit.seed)
            if rubric and material:
                yield entry, replace(material, rubric=rubric)


def _rubric(fit: FitConfig, bench: Bench) -> Rubric:
    """The metrics that it labels. Raises SetupError."""
    able = [
        metric.id
        for metric in bench.rubric.metrics
        if metric.of == "answer" and (metric.kind == "ordinal" or len(metric.labels) == 2)
    ]
    message, allowed = "is no metric of answers whose labels have an order", ", ".join(able)
    unable = (name for name in fit.metric if name not in able)
    raise_any([Problem(message, "", None, "metric", name, allowed) for name in unable])
    return bench.rubric.only(fit.metric)


def open_scorer(config: ScorerConfig, answers: Sequence[Answer], beside: Path) -> Scorer:
    """The scorer of these settings; paths are seen from the folder `beside`.

    Raises SetupError for what cannot be scored so, MissingExtra where a package is missing.
    """
    match config:
        case ColumnConfig():
            return column(config, answers)
        case OverlapConfig():
            return overlap(config)
        case SemanticConfig():
            return semantic(config, answers, beside)
        case LikelihoodConfig():
            return Likelihood(config, answers, beside)
    return baseline(config)


def check_scorers(bench: Bench) -> None:
    """Raises SetupError with all that keeps the scorers of a benchmark from scoring."""
    gather = Gathered(str(bench.file))
    entries = _entries(bench)
    for entry in entries:
        where = f"{'judges' if entry.fit else 'scorers'}.{entry.name}"
        if bench.dataset.textless and not isinstance(entry, ColumnConfig):
            gather.tell(where, no_texts("a scorer reads answers", bench.dataset))
        else:
            gather(where, _opened, entry, bench)
    for entry, material in _materials(bench, entries, gather):
        for problem in material.problems():
            gather.tell(f"judges.{entry.name}", problem)
    gather.raise_any()


def _entries(bench: Bench) -> list[ScorerConfig]:
    """The scorers and judges of the benchmark and, beside scorers, the baselines."""
    entries = [entry for entry in bench.learning if isinstance(entry, ScorerConfig)]
    has_baselines = _has_controls(bench) and any(not entry.fit for entry in entries)
    names = [name for name in BASELINES if has_baselines and name not in bench.names]
    return entries + [scorer_config(name) for name in names]


def _opened(config: ScorerConfig, bench: Bench) -> Scorer:
    answers = [answer for answer in bench.answers if answer.kind == "answer"]
    return open_scorer(config, answers, bench.file.parent)


def open_scorers(bench: Bench, folder: RunFolder) -> Sequence[JudgeOfFeature]:
    """A judge of the kind `scorer` for each scorer, which gives scores and no label, and the judges
    that follow from one. Raises SetupError."""
    opened: dict[str, KeptScores] = {}

    def kept(config: ScorerConfig) -> KeptScores:
        key = config.model_dump_json(exclude={"name", "fit"})
        if key not in opened:
            opened[key] = KeptScores(_opened(config, bench), folder.path / FOLDER)
        return opened[key]

    scorers = [entry for entry in _entries(bench) if not entry.fit]
    scorings = [Scoring(entry.name, kept(entry), entry.hosts) for entry in scorers]
    return [*scorings, *fitted_judges(bench, folder.path / FOLDER, kept)]


class Scoring(JudgeOfFeature):
    """A scorer in a run: its verdicts hold a score and no label; a study passes over its kind."""

    kind = "scorer"

    def __init__(self, name: str, kept: KeptScores, hosts: Sequence[str] = ()) -> None:
        self.name, self._kept, self.signature = name, kept, kept.signature
        self.hosts = hosts  # that it contacts
        self.more = {"better": kept.scorer.better}

    def describe(self) -> Mapping[str, Any]:
        return {"judge": "scorer", **self._kept.scorer.about}

    @property
    def ahead(self) -> str:
        """The work that it has yet to do, in words."""
        return f"{self.name}: scores answers, {self._kept.scorer.at_once:,} at a time"

    def cells(self, answers: IndexedAnswers, parents: Mapping[str, str]) -> IntArray:
        return np.array([0 if a.kind == "answer" else -1 for a in answers], dtype=np.int64)

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for task, scored in self._kept.along(tasks):
            text = task.content_hash or task.answer.content_hash
            yield Verdict(
                task.answer.item_id, text, self.name, self.signature, scored.status,
                reason=scored.reason, score=scored.value,
            )  # fmt: skip

    def close(self) -> None:
        self._kept.close()
