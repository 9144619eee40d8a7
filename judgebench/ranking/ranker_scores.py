"""Each ranker's scores of a run: what evaluators and judges made of every argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from judgebench.ranking.proxy.arguments import argument_id
from judgebench.ranking.ranking_folder import KeptTask, Trained, asked_question
from judgebench.ranking.rankings import RankerKind, RankerScores
from judgebench.records import Verdict, content_hash
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import FloatArray
from judgebench.store.verdict_file import read_verdicts, verdict_files
from judgebench.study.study import Study

_WORDS_SEED = "random ranker"


# --- evaluators ----------------------------------------------------------------------------------


def evaluator_scores(
    run: Path, task: KeptTask, trained: Mapping[str, Trained]
) -> tuple[list[RankerScores], dict[str, int]]:
    """One for each kind of evaluator, its draws averaged; those not yet trained are left out.

    Beside them, on how many instances the input with a system's argument was longer than some
    evaluator takes, and was cut.
    """
    found = []
    cut = np.zeros((len(task.items), len(task.systems)), dtype=bool)
    for kind, same in groupby(task.evaluators, key=itemgetter(0)):
        read = [_decided(run, task, trained[name]) for _, name in same if name in trained]
        if read:
            probability, right, was_cut = (np.array(part) for part in zip(*read, strict=True))
            cut |= was_cut.any(axis=0)
            found.append(_scores(task, kind, kind, probability.mean(axis=0), right.mean(axis=0)))
    names = [system.name for system in task.systems]
    return found, dict(zip(names, cut.sum(axis=0).tolist(), strict=True))


def _decided(run: Path, task: KeptTask, by: Trained) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The probability of the gold label, whether it was decided for, and whether the input was cut:
    (instances, systems), from the last verdict on each argument as it is now."""
    places = {
        (
            argument_id(task.name, i.item_id, s.name),
            content_hash([i.question, task.text(s.name, i.item_id), None]),
        ): (row, column)
        for row, i in enumerate(task.instances)
        for column, s in enumerate(task.systems)
    }
    shape = (len(task.items), len(task.systems))
    probability, right = np.full(shape, np.nan), np.full(shape, np.nan)
    cut = np.zeros(shape)
    for v in read_verdicts(verdict_files(run, by.evaluator)):
        at = places.get((v.item_id, v.content_hash))
        if at is None or v.signature != by.signature:
            continue
        cut[at] = bool(v.reason)
        gold = task.instances[at[0]].label
        asked = (v.probabilities or {}).get(task.name)
        probability[at] = np.nan if asked is None else asked.get(gold, 0.0)
        right[at] = np.nan if asked is None else v.labels[task.name] == gold
    return probability, right, cut


# --- judges --------------------------------------------------------------------------------------


def judge_scores(study: Study, task: KeptTask) -> Iterator[RankerScores]:
    """One for each judge that was asked about this task's arguments; what it said of an argument as
    it no longer stands is left out."""
    if not task.judged:
        return
    asked = {
        (row, column): (
            argument_id(task.name, i.item_id, s.name),
            content_hash([asked_question(i.question, i.context), text, None]),
        )
        for row, i in enumerate(task.instances)
        for column, s in enumerate(task.systems)
        if (text := task.text(s.name, i.item_id)) is not None
    }
    for judge in study.judges:
        if judge.kind == "control":
            continue
        values = np.full((len(task.items), len(task.systems)), np.nan)
        for at, (item_id, hashed) in asked.items():
            verdict = judge.verdicts.get(item_id)
            if verdict is not None and verdict.content_hash == hashed:
                values[at] = _judged(verdict, study.rubric)
        if not np.isnan(values).all():
            yield _scores(task, judge.name, "judge", values)


def _judged(verdict: Verdict, rubric: Rubric) -> float:
    """1 for the least severe label of every ordinal metric, 0 for the most severe ones, the mean
    between; expected over these labels where the judge gave probabilities; NaN where a label is
    missing or an abstention."""
    found = [_on_metric(verdict, m) for m in rubric.metrics if m.kind == "ordinal"]
    return float(np.mean(found)) if found else float("nan")


def _on_metric(verdict: Verdict, metric: Metric) -> float:
    severity = dict(zip(metric.label_texts, map(float, metric.severities), strict=True))
    label = verdict.labels.get(metric.id)
    if label not in severity:  # the judge abstained, or could not be read
        return float("nan")
    found = severity[label]
    asked = (verdict.probabilities or {}).get(metric.id, {})
    graded = {text: p for text, p in asked.items() if text in severity}
    if total := sum(graded.values()):
        found = sum(p * severity[text] for text, p in graded.items()) / total
    return 1 - found / max(severity.values())


# --- control rankers -----------------------------------------------------------------------------


def control_scores(task: KeptTask, seed: int) -> Iterator[RankerScores]:
    """What any ranker must beat: a coin, and one that likes the longest argument best."""
    yield _scores(task, "longest-argument", "control", task.words)
    random = np.random.default_rng([seed, int(content_hash([_WORDS_SEED, task.name]), 16) % 2**32])
    values = random.random(task.words.shape)
    values[np.isnan(task.words)] = np.nan
    yield _scores(task, "random", "control", values)


def words_of(task: KeptTask, scores: RankerScores) -> FloatArray:
    """The words of every argument for the instances and systems of one ranker, who may have seen
    but a few."""
    names = [system.name for system in task.systems]
    rows = [task.items.index(item) for item in scores.items]
    return task.words[np.ix_(rows, [names.index(system) for system in scores.systems])]


def _scores(
    task: KeptTask,
    ranker: str,
    kind: RankerKind,
    values: FloatArray,
    correct: FloatArray | None = None,
) -> RankerScores:
    systems = tuple(s.name for s in task.systems)
    return RankerScores(
        task.name, ranker, kind, systems, task.items, task.clusters, values, correct
    )
