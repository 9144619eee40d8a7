"""The scorers of a benchmark, as what a run asks beside its judges, and judges that follow from a
score, by cuts that are fitted to human labels in folds.

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
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.bench import LearntJudge as JudgeOfWing
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, Work
from judgebench.runs.load import Gathered, no_texts
from judgebench.scorers.config import (
    SIMPLE,
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
    scorer_config,
)
from judgebench.scorers.model_scorers import Likelihood, bertscore, learned, moverscore, radgraph
from judgebench.scorers.scorer import KeptScores, Scorer, column, ngram, simple
from judgebench.stats.arrays import IntArray
from judgebench.stats.calibration import Rising, best_cuts, rises, rising
from judgebench.studies.answers import IndexedAnswers

_CUTS = "cuts.json"


class LabelThresholds(Learner):
    """Labels by cuts on a score, for each metric in its own direction. The score of a verdict is
    turned so that more is more severe on the rubric's first of them."""

    def __init__(self, kept: KeptScores, rubric: Rubric, hosts: Sequence[str] = ()) -> None:
        self._kept, self._rubric, self.hosts = kept, rubric, hosts

    def describe(self) -> Mapping[str, Any]:
        about = self._kept.scorer.about
        told = {"cuts": "accuracy and balanced accuracy", "of": without_runtime(about)}
        return told | ({"runtime": about["runtime"]} if "runtime" in about else {})

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        def go_on(done: int) -> None:
            if work.stop.wanted:
                raise Interrupted

        scores = [one.value for one in self._kept.of(train.answers, go_on)]
        given = np.array([math.nan if x is None else x for x in scores])
        usual = -1 if self._kept.scorer.better == "higher" else 1
        found = {}
        for metric in train.rubric.metrics:
            rows = np.flatnonzero(np.isfinite(given) & (train.labels[metric.id] >= 0))
            if not len(rows):
                message = "no answer to learn from has a score and a human label"
                raise SetupError(Problem(message, field=metric.id))
            label, k = train.labels[metric.id][rows], len(metric.labels)
            rho = rises(given[rows], label)
            sign = math.copysign(1, rho or usual)
            knots, above = rising(sign * given[rows], label, k)
            found[metric.id] = {
                "n": len(rows), "rho": rho, "sign": sign,
                "cuts": best_cuts(sign * given[rows], label, k).tolist(),
                "knots": knots.tolist(), "above": above.tolist(),
            }  # fmt: skip
        write_atomically(folder / _CUTS, to_json(found).encode())
        told = ("n", "rho", "sign", "cuts")
        return {"metrics": {m: {key: one[key] for key in told} for m, one in found.items()}}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        held = json.loads((folder / _CUTS).read_bytes())
        rise = {m: Rising(np.array(f["knots"]), np.array(f["above"])) for m, f in held.items()}
        first = held[self._rubric.metrics[0].id]["sign"]
        for task, one in self._kept.along(tasks):
            if one.value is None:
                yield replace(verdict_of(task, self._rubric, {}), reason=one.reason)
                continue
            labels, shares = {}, {}
            for metric in self._rubric.metrics:
                score = held[metric.id]["sign"] * one.value
                place = np.searchsorted(held[metric.id]["cuts"], score)
                labels[metric.id] = metric.label_texts[place]
                shares[metric.id] = rise[metric.id].at(np.array([score]))[0]
            verdict = verdict_of(task, self._rubric, shares)
            yield replace(verdict, labels=labels, reason=one.reason, score=first * one.value)

    def close(self) -> None:
        self._kept.close()


def fitted_judges(
    bench: Bench, home: Path, kept: Callable[[ScorerConfig], KeptScores]
) -> Sequence[LearntJudge]:
    """A judge for each entry that follows from a score, and the controls that are fitted the same
    way. Raises SetupError where nothing can be learnt."""
    gather = Gathered(str(bench.file))
    judges = [
        LearntJudge(
            entry.name, LabelThresholds(kept(entry.how), own.rubric, entry.hosts), own,
            own.cells, home,
            kind="control" if isinstance(entry.how, SimpleConfig) else "judge",
            more={"folds": describe_folds(own)},
        )
        for entry, own in _materials(bench, _with_controls(bench), gather)
    ]  # fmt: skip
    gather.raise_any()
    return judges


def _fit_entries(bench: Bench) -> list[FitEntry]:
    return [entry for entry in bench.learning if isinstance(entry, FitEntry)]


def _with_controls(bench: Bench) -> list[FitEntry]:
    """The entries, and the controls of all their metrics, unless there are to be none. These are
    fitted in the folds of the first entry."""
    entries = _fit_entries(bench)
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


def _materials(
    bench: Bench, entries: Sequence[FitEntry], gather: Gathered
) -> Iterator[tuple[FitEntry, Material]]:
    """The material that each entry learns from; why some cannot learn is kept in `gather`. Texts
    are compared once for all entries with the same folds."""
    whole = bench.rubric.of_kind("answer")
    held: dict[tuple[int, int], Material | None] = {}
    for entry in entries:
        where, folds = f"judges.{entry.name}.fit", (entry.fit.folds, entry.fit.seed)
        rubric = gather(where, _rubric, entry, bench)
        if rubric and whole and folds not in held:
            held[folds] = gather(where, bench_material, bench, whole, *folds)
        if rubric and (found := held[folds]):
            yield entry, replace(found, rubric=rubric)


def _rubric(entry: FitEntry, bench: Bench) -> Rubric:
    """The metrics that it labels. Raises SetupError."""
    known = {metric.id: metric for metric in bench.rubric.metrics if metric.of == "answer"}
    problems = []
    for name in entry.fit.metric:
        if name not in known:
            message, allowed = "is no metric of answers in the rubric", ", ".join(known)
            problems.append(Problem(message, "", None, "metric", name, allowed))
        elif known[name].kind == "nominal" and len(known[name].labels) > 2:
            message = "has labels without an order, which no threshold tells apart"
            problems.append(Problem(message, field="metric", found=name))
    raise_any(problems)
    return bench.rubric.only(entry.fit.metric)


FOLDER = "scorers"  # in a run folder: the scores that were computed


# By the kind of settings.
_OPENED_BY: Mapping[type[ScorerConfig], Callable[[Any, Sequence[Answer], Path], Scorer]] = {
    ColumnConfig: lambda config, answers, beside: column(config, answers),
    SimpleConfig: lambda config, answers, beside: simple(config),
    **dict.fromkeys(
        (RougeConfig, SacrebleuConfig, MeteorConfig),
        lambda config, answers, beside: ngram(config, answers),
    ),
    BertScoreConfig: bertscore,
    MoverScoreConfig: moverscore,
    LearnedConfig: learned,
    RadGraphConfig: radgraph,
    **dict.fromkeys((PerplexityConfig, RelaxedConfig, OccurrencesConfig), Likelihood),
}


def open_scorer(config: ScorerConfig, answers: Sequence[Answer], beside: Path) -> Scorer:
    """The scorer of these settings; paths are seen from the folder `beside`.

    Raises SetupError for what cannot be scored so, MissingExtra where a package is missing.
    """
    return _OPENED_BY[type(config)](config, answers, beside)


def check_scorers(bench: Bench) -> None:
    """Raises SetupError with all that keeps the scorers of a benchmark from scoring."""
    gather = Gathered(str(bench.file))
    for entry in _entries(bench):
        where = f"{'judges' if isinstance(entry, FitEntry) else 'scorers'}.{entry.name}"
        if bench.dataset.textless and not isinstance(entry.how, ColumnConfig):
            gather.tell(where, no_texts("a scorer reads answers", bench.dataset))
        else:
            gather(where, _opened, entry.how, bench)
    for fitted, found in _materials(bench, _fit_entries(bench), gather):
        for problem in found.problems():
            gather.tell(f"judges.{fitted.name}", problem)
    gather.raise_any()


def _entries(bench: Bench) -> list[ScorerEntry | FitEntry]:
    """The scorers to run. Where no texts are given, nothing is scored for comparison."""
    entries = [e for e in bench.learning if isinstance(e, ScorerEntry | FitEntry)]
    return [e for e in entries if not (bench.dataset.textless and getattr(e, "beside", False))]


def _opened(config: ScorerConfig, bench: Bench) -> Scorer:
    answers = [answer for answer in bench.answers if answer.kind == "answer"]
    return open_scorer(config, answers, bench.file.parent)


def open_scorers(bench: Bench, folder: RunFolder) -> Sequence[JudgeOfWing]:
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


class Scoring(JudgeOfWing):
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
        for task, one in self._kept.along(tasks):
            hashed = task.content_hash or task.answer.content_hash
            yield Verdict(
                task.answer.item_id, hashed, self.name, self.signature, one.status,
                reason=one.reason, score=one.value,
            )  # fmt: skip

    def close(self) -> None:
        self._kept.close()
