"""Rank a run again from its folder alone: no model, no original files.

First each ranker's scores: what evaluators and judges made of every argument. Then the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from judgebench.ranking.human import HumanRanks, human_scores, ranks_of
from judgebench.ranking.rank import rank
from judgebench.ranking.rankers import (
    RankerKind,
    RankerScores,
    Rankings,
    agree,
    length_bias,
    self_preference,
)
from judgebench.ranking.ranking_folder import (
    RANKING,
    At,
    KeptRanking,
    KeptTask,
    Trained,
    read_ranking,
    read_tasks,
    read_trained,
)
from judgebench.records import Answer, Estimate, Verdict, content_hash
from judgebench.results.rows import Results, Row
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import FiledVerdicts, verdict_files
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.resample import Resampling
from judgebench.studies.answers import indexed
from judgebench.studies.study import Study

# Fewer groups are noted in a report: percentile intervals of a mean from so few miss their level by
# far. Fewer than `rank.FEWEST_CLUSTERS` give no ranges of places at all.
FEW_RESAMPLED = 20


# --- evaluators ----------------------------------------------------------------------------------


def evaluator_scores(
    run: Path, task: KeptTask, trained: Mapping[str, Trained]
) -> tuple[list[RankerScores], dict[str, int]]:
    """One for each kind of evaluator, its draws averaged; those not yet trained are left out.

    Beside them, on how many instances the input with a system's argument was longer than some
    evaluator takes, and was cut.
    """
    found = []
    cut = np.zeros(task.words.shape, dtype=bool)
    for kind, same in groupby(task.evaluators, key=itemgetter(0)):
        read = [_decided(run, task, trained[name]) for _, name in same if name in trained]
        if read:
            probability, right, was_cut = (np.array(part) for part in zip(*read, strict=True))
            cut |= was_cut.any(axis=0)
            found.append(_scores(task, kind, kind, probability.mean(axis=0), right, probability))
    names = [system.name for system in task.systems]
    return found, dict(zip(names, cut.sum(axis=0).tolist(), strict=True))


def _decided(run: Path, task: KeptTask, by: Trained) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The probability of the gold label, whether it was decided for, and whether the input was cut:
    (instances, systems), from the last verdict on each argument as it is now."""
    asked = task.answers(document=False)
    answers = indexed(list(asked.values()))
    verdicts = FiledVerdicts(verdict_files(run, by.evaluator), by.signature, answers, ())
    probability, right = np.full(task.words.shape, np.nan), np.full(task.words.shape, np.nan)
    cut = np.zeros(task.words.shape)
    for at, verdict in _last(verdicts, asked):
        cut[at] = bool(verdict.reason)
        if weights := (verdict.probabilities or {}).get(task.name):
            gold = task.instances[at[0]].label
            probability[at] = weights.get(gold, 0.0)
            right[at] = verdict.labels[task.name] == gold
    return probability, right, cut


def _last(
    verdicts: Mapping[str, Verdict], asked: Mapping[At, Answer]
) -> Iterator[tuple[At, Verdict]]:
    """The verdict on each argument as it is now."""
    for at, answer in asked.items():
        verdict = verdicts.get(answer.item_id)
        if verdict is not None and verdict.content_hash == answer.content_hash:
            yield at, verdict


# --- judges --------------------------------------------------------------------------------------


def judge_scores(study: Study, task: KeptTask) -> Iterator[RankerScores]:
    """One for each judge that was asked about this task's arguments; what it said of an argument as
    it no longer stands is left out."""
    asked = task.answers() if task.judged else {}
    for judge in study.real_judges:
        values = np.full(task.words.shape, np.nan)
        for at, verdict in _last(judge.verdicts, asked):
            values[at] = _judged(verdict, study.rubric)
        if not np.isnan(values).all():
            yield _scores(task, judge.name, "judge", values)


def _judged(verdict: Verdict, rubric: Rubric) -> float:
    """1 for the least severe label of every ordinal metric, 0 for the most severe ones, the mean
    between; expected over these labels where the judge gave probabilities; NaN where a label is
    missing or an abstention."""
    found = []
    for metric in (m for m in rubric.metrics if m.kind == "ordinal"):
        severity = dict(zip(metric.label_texts, map(float, metric.severities), strict=True))
        label = verdict.labels.get(metric.id)
        if label not in severity:  # the judge abstained, or could not be read
            return float("nan")
        asked = (verdict.probabilities or {}).get(metric.id, {})
        graded = {text: p for text, p in asked.items() if text in severity}
        total = sum(graded.values())
        if not total:
            graded, total = {label: 1.0}, 1.0
        expected = sum(p * severity[text] for text, p in graded.items()) / total
        found.append(1 - expected / max(severity.values()))
    return float(np.mean(found)) if found else float("nan")


# --- control rankers -----------------------------------------------------------------------------


def control_scores(task: KeptTask, seed: int) -> Iterator[RankerScores]:
    """What any ranker must beat: a coin, and one that likes the longest argument best."""
    yield _scores(task, "longest-argument", "control", task.words)
    of_task = int(content_hash(["random ranker", task.name]), 16) % 2**32
    values = np.random.default_rng([seed, of_task]).random(task.words.shape)
    yield _scores(task, "random", "control", np.where(np.isnan(task.words), np.nan, values))


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
    trainings: FloatArray | None = None,
    drawn: FloatArray | None = None,
) -> RankerScores:
    names, clusters = tuple(s.name for s in task.systems), Clusters.of(task.groups.values()).codes
    correct = None if trainings is None else trainings.mean(axis=0)
    of = (task.name, ranker, kind, names, task.items, clusters, values, correct, trainings)
    return RankerScores(*of, drawn=drawn)


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankedRun:
    """What a run folder holds of a ranking beside its study. `scores` are the evaluators', `cut`
    counts the inputs that were cut, both by task; `judges` maps judges to their backends."""

    about: KeptRanking
    tasks: tuple[KeptTask, ...]
    scores: Mapping[str, list[RankerScores]]
    cut: Mapping[str, Mapping[str, int]]
    trained: tuple[Trained, ...]
    judges: Mapping[str, str]
    ranks: HumanRanks | None


def read_ranked_run(run: RunFolder, study: Study) -> RankedRun | None:
    """None where the folder holds no ranking. Raises SetupError where it is damaged."""
    if not (run.path / RANKING).is_file():
        return None
    about, tasks = read_ranking(run.path), tuple(read_tasks(run.path))
    names = [name for task in tasks for _, name in task.evaluators]
    trained = {name: found for name in names if (found := read_trained(run.path, name))}
    read = {task.name: evaluator_scores(run.path, task, trained) for task in tasks}
    inline = [j for j in run.manifest()["settings"]["judges"] if isinstance(j, dict)]
    return RankedRun(
        about=about,
        tasks=tasks,
        scores={name: scores for name, (scores, _) in read.items()},
        cut={name: cut for name, (_, cut) in read.items()},
        trained=tuple(trained.values()),
        judges={j["name"]: j["backend"] for j in inline if {"name", "backend"} <= j.keys()},
        ranks=ranks_of(run.path),
    )


def measure_rankings(study: Study) -> Rankings | None:
    """What the arguments of a run are worth to each ranker; None where it holds no ranking."""
    run = study.beside.get("ranking")
    if not isinstance(run, RankedRun):
        return None
    rows = [row for task in run.tasks for row in _ranked(run, study, task)]
    rows += [row for found in run.trained for row in _training(found)]
    rows += [row for task in run.tasks for row in _written(run, task)]
    notes = (*_notes(run), *map(str, run.ranks.warnings if run.ranks else ()))
    shown = tuple(task.shown for task in run.tasks)
    return Rankings(run.about.name, shown, Results(tuple(rows)), notes, study.gaps)


def _ranked(run: RankedRun, study: Study, task: KeptTask) -> Iterator[Row]:
    """Every ranking of a task, and what lies between rankers."""
    written, resampling = task.shown.arguments, study.resampling
    scores = run.scores[task.name] + list(judge_scores(study, task))
    scores += control_scores(task, run.about.seed)
    if run.ranks is not None and run.ranks.experts(task.name):
        scores.append(human_scores(run.ranks, task.name, written, task.groups))
    for s in scores:
        yield from rank(s, task.systems, resampling, task.metric)
    if len(written) < 2:
        return
    for a, b in combinations(scores, 2):
        yield from agree(a, b, written, resampling)
    for s in scores:
        yield from length_bias(s, words_of(task, s), written, resampling)
    yield from _preferences(run, task, scores, resampling)


def _preferences(
    run: RankedRun, task: KeptTask, scores: Sequence[RankerScores], resampling: Resampling
) -> Iterator[Row]:
    """Every ranker that is akin to a system, against those that are not."""
    written = task.shown.arguments
    for system in written:
        kinship = {s.ranker: _akin(run, task, s, system) for s in scores}
        others = [s for s in scores if not kinship[s.ranker] and s.kind != "control"]
        for akin in scores if others else ():
            if why := kinship[akin.ranker]:
                found = self_preference(akin, others, system, written, resampling)
                keys = {
                    "task": task.name, "ranker": akin.ranker, "system": system,
                    "other": ", ".join(other.ranker for other in others), "akin": why,
                }  # fmt: skip
                for statistic, e in zip(("places", "p"), found, strict=True):
                    yield Row("self_preference", statistic, e, keys=keys)


def _akin(run: RankedRun, task: KeptTask, scores: RankerScores, system: str) -> str:
    """Why a ranker may favour a system; '' where nothing says so."""
    if scores.kind == "expert-trained" and system == "gold":
        return "trained on its arguments"
    if scores.kind == "llm-trained" and system in task.learnt_from:
        return "trained on its arguments among others"
    if scores.kind != "judge":
        return ""
    for family, members in run.about.families.items():
        if scores.ranker in members and system in members:
            return f"of the family {family}"
    same = run.judges.get(scores.ranker) == run.about.generators.get(system, "")
    return "the same model" if same else ""


def _training(found: Trained) -> Iterator[Row]:
    keys = {
        "task": found.task, "ranker": found.evaluator, "ranker_kind": found.kind,
        "other": f"{found.encoder}, draw {found.draw}",
    }  # fmt: skip
    for statistic in (
        "train", "development", "epochs", "best_epoch", "development_score", "seconds", "cut",
        "cut_arguments",
    ):  # fmt: skip
        yield Row("trained", statistic, Estimate(getattr(found, statistic)), keys=keys)


def _written(run: RankedRun, task: KeptTask) -> Iterator[Row]:
    """How many instances were ranked; and on each system its words, how much of its extracts stands
    in the document, and how many inputs were cut."""
    keys = {"task": task.name, "other": ", ".join(task.left_out)}
    yield Row("task", "instances", Estimate(len(task.items)), keys=keys)
    words = np.nanmean(task.words, axis=0) if len(task.items) else ()
    for system, mean_words in zip(task.systems, words, strict=True):
        keys = {"task": task.name, "system": system.name, "system_kind": system.kind}
        arguments = task.arguments[system.name].values()
        verbatim = [a.verbatim for a in arguments if a.verbatim is not None]
        found = {"mean_words": float(mean_words)}
        if verbatim:
            found["verbatim"] = float(np.mean(verbatim))
        found["cut"] = run.cut[task.name][system.name]
        for statistic, value in found.items():
            yield Row("argument", statistic, Estimate(value), keys=keys)


def _notes(run: RankedRun) -> Iterator[str]:
    for task in run.tasks:
        title, n, groups = task.title, len(task.items), len(set(task.groups.values()))
        for kind in task.kinds:
            wanted = sum(of == kind for of, _ in task.evaluators)
            there = sum((t.task, t.kind) == (task.name, kind) for t in run.trained)
            if there < wanted:
                yield f"{title}: {kind}: {there} of {wanted} evaluators are trained."
        yield from (f"{title}: {note}" for note in task.notes)
        if groups < FEW_RESAMPLED:
            few = f"only {groups} groups of instances are resampled"
            yield f"{title}: {few}: intervals from so few are too narrow."
        for system in task.systems:
            if lacking := n - len(task.arguments[system.name]):
                said = f"{system.name} has no argument on {lacking} of {n} instances"
                yield f"{title}: {said}, which are left out of its rankings."
        for name in task.generators:
            if name not in {system.name for system in task.systems}:
                yield f"{title}: {name} has no argument at all and is not ranked."
    if run.about.retrieval:
        yield f"Passages were reranked by: {run.about.retrieval['reranker']['name']}."
