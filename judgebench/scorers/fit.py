"""Judges that follow from a score, by cuts that are fitted to human labels in folds.

Everything is learnt from the training folds alone: whether a higher score is more severe, the cuts
between the labels (`stats.monotone.best_cuts`: the largest mean of accuracy and balanced accuracy,
so that they serve agreement and rare severe labels), and the probability of each label.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import LearntJudge, fold_cells, folds_told, verdict_of
from judgebench.learning.training import Material, TrainingSet, material_of
from judgebench.records import Verdict
from judgebench.rubric import Rubric
from judgebench.runner.bench import Bench, Gathered
from judgebench.runner.judging import Work
from judgebench.scorers.config import SIMPLE, FitEntry, ScorerConfig, SimpleConfig, scorer_config
from judgebench.scorers.kept import KeptScores
from judgebench.scorers.scorer import Scored
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.monotone import Rising, best_cuts, rises, rising
from judgebench.study.answers import indexed

NO_TEXTS = "The fitted controls length, random-number and question-overlap are left out: no texts."
_CUTS = "cuts.json"


class Cuts:
    """Labels by cuts on a score. A `Learner`.

    The score of a verdict is turned so that more is more severe: as most of the metrics have it,
    weighed by Spearman's rho. The labels of each metric are cut in its own direction.
    """

    needs: Sequence[str] = ()

    def __init__(self, kept: KeptScores, rubric: Rubric) -> None:
        self._kept, self._rubric = kept, rubric

    def describe(self) -> Mapping[str, Any]:
        about = dict(self._kept.scorer.about)
        runtime = {"runtime": about.pop("runtime")} if "runtime" in about else {}
        return {"cuts": "accuracy and balanced accuracy", "of": about, **runtime}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        scores = np.array([_number(one) for one in self._kept.of(train.answers)])
        usual = -1.0 if self._kept.scorer.better == "higher" else 1.0
        found, rho = {}, 0.0
        for metric in train.rubric.metrics:
            label = train.labels[metric.id]
            rows = np.flatnonzero(~np.isnan(scores) & (label >= 0))
            if not len(rows):
                message = "no answer to learn from has a score and a human label"
                raise SetupError(Problem(message, field=metric.id))
            own = rises(scores[rows], label[rows])
            rho += own
            sign = math.copysign(1, own or usual)
            found[metric.id] = {
                "n": len(rows), "rho": own, "sign": sign,
                **_fitted(sign * scores[rows], label[rows], len(metric.labels)),
            }  # fmt: skip
        held = {"sign": math.copysign(1, rho or usual), "metrics": found}
        write_atomically(folder / _CUTS, to_json(held).encode())
        told = ("n", "rho", "sign", "cuts")
        return {"metrics": {m: {key: one[key] for key in told} for m, one in found.items()}}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        held = json.loads((folder / _CUTS).read_bytes())
        rises_at = {m: Rising(np.array(f["knots"]), np.array(f["above"]))
                    for m, f in held["metrics"].items()}  # fmt: skip
        for task, one in self._kept.along(tasks):
            if math.isnan(score := _number(one)):
                none = verdict_of(task, self._rubric, {})
                yield replace(none, reason=one.reason or "its score is no finite number")
                continue
            labels, shares = {}, {}
            for metric in self._rubric.metrics:
                own = held["metrics"][metric.id]
                x = own["sign"] * score
                labels[metric.id] = metric.label_texts[int(np.searchsorted(own["cuts"], x))]
                shares[metric.id] = rises_at[metric.id].at(np.array([x]))[0]
            verdict = verdict_of(task, self._rubric, shares)
            yield replace(verdict, labels=labels, reason=one.reason, score=held["sign"] * score)

    def close(self) -> None:
        self._kept.close()


def _number(one: Scored) -> float:
    """NaN where there is none that labels can be cut at."""
    return math.nan if one.value is None or math.isinf(one.value) else one.value


def _fitted(score: FloatArray, label: IntArray, k: int) -> Mapping[str, Any]:
    found = {"cuts": best_cuts(score, label, k), **rising(score, label, k)._asdict()}
    return {name: values.tolist() for name, values in found.items()}


def fitted_judges(
    bench: Bench, home: Path, kept: Callable[[ScorerConfig], KeptScores]
) -> Sequence[LearntJudge]:
    """A judge for each entry that follows from a score, and the controls that are fitted the same
    way. Raises SetupError where nothing can be learnt."""
    materials, judges = _Materials(bench), list[LearntJudge]()
    for entry in _with_controls(bench):
        own = materials(entry)
        cells = fold_cells(own)
        judges.append(
            LearntJudge(
                entry.name, Cuts(kept(entry.how), own.rubric), own, cells, home,
                kind="control" if isinstance(entry.how, SimpleConfig) else "judge",
                more={"folds": folds_told(own, cells)},
            )
        )  # fmt: skip
    if judges and bench.config.controls is True and bench.dataset.textless:
        judges[0].notes = (NO_TEXTS,)
    return judges


def _with_controls(bench: Bench) -> list[FitEntry]:
    """The entries, and the controls of all their metrics, unless there are to be none. These are
    fitted in the folds of the first entry."""
    entries = [entry for entry in bench.learning if isinstance(entry, FitEntry)]
    real = [entry for entry in entries if not isinstance(entry.how, SimpleConfig)]
    if bench.config.controls is not True or not real or bench.dataset.textless:
        return entries
    metrics = tuple(dict.fromkeys(metric for entry in real for metric in entry.fit.metric))
    fit = real[0].fit.model_copy(update={"metric": metrics})
    there = {e.how.scorer for e in entries if set(metrics) <= set(e.fit.metric)}
    return entries + [
        FitEntry(f"{name}-fitted", scorer_config(name), fit)
        for name in SIMPLE
        if name not in there and f"{name}-fitted" not in bench.names
    ]


class _Materials:
    """What each entry learns from; texts are compared once for all entries with the same folds."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._held: dict[tuple[int, int], Material] = {}

    def __call__(self, entry: FitEntry) -> Material:
        """Raises SetupError."""
        bench, fit = self._bench, entry.fit
        rubric = bench.rubric.of_kind("answer")
        known = [metric.id for metric in rubric.metrics] if rubric else []
        problems = []
        for name in fit.metric:
            metric = rubric.find(name) if rubric else None
            about = ("", None, "metric", name)
            if metric is None:
                message = "is no metric of answers in the rubric"
                problems.append(Problem(message, *about, ", ".join(known)))
            elif metric.kind == "nominal" and len(metric.labels) > 2:
                message = "has labels without an order, which no threshold tells apart"
                problems.append(Problem(message, *about))
        if problems or rubric is None:
            raise SetupError(problems)
        folds = fit.folds, fit.seed
        if folds not in self._held:
            answers = indexed([answer for answer in bench.answers if answer.kind == "answer"])
            how = (bench.dataset.labels, bench.config.truth, *folds)
            self._held[folds] = material_of(rubric, answers, *how)
        return replace(self._held[folds], rubric=rubric.only(fit.metric))


def check_fits(bench: Bench, gather: Gathered) -> None:
    """Tells `gather` all that keeps judges from being fitted to a score."""
    materials = _Materials(bench)
    for entry in (entry for entry in bench.learning if isinstance(entry, FitEntry)):
        found = gather(f"judges.{entry.name}.fit", materials, entry)
        for problem in found.problems() if found else ():
            gather.tell(f"judges.{entry.name}", problem)
