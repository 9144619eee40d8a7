"""Rank a run again from its folder alone: no model, no original files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from judgebench.ranking.human import HumanRanks, human_scores
from judgebench.ranking.human_files import ranks_of
from judgebench.ranking.rank import rank
from judgebench.ranking.ranker_scores import (
    control_scores,
    evaluator_scores,
    judge_scores,
    words_of,
)
from judgebench.ranking.rankers import agree, length_bias, self_preference
from judgebench.ranking.ranking_folder import (
    KeptRanking,
    KeptTask,
    Trained,
    holds_ranking,
    read_ranking,
    read_tasks,
    read_trained,
)
from judgebench.ranking.rankings import RankerScores, Rankings
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.stats.resample import Resampling
from judgebench.store.folder import RunFolder
from judgebench.study.study import Study

# Fewer groups are noted in a report: percentile intervals of a mean from so few miss their level by
# far. Fewer than `rank.FEWEST_CLUSTERS` give no ranges of places at all.
FEW_RESAMPLED = 20
_TRAINED = (
    "train", "development", "epochs", "best_epoch", "development_score", "seconds", "cut",
    "cut_arguments",
)  # fmt: skip


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
    if not holds_ranking(run.path):
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
    warnings = tuple(map(str, run.ranks.warnings if run.ranks else ()))
    return Rankings(
        name=run.about.name,
        tasks=tuple(task.shown for task in run.tasks),
        rows=Results(tuple(rows)),
        notes=(*_notes(run), *warnings),
    )


def _ranked(run: RankedRun, study: Study, task: KeptTask) -> Iterator[Row]:
    """Every ranking of a task, and what lies between rankers."""
    scores = _all_scores(run, study, task)
    written, resampling = task.shown.arguments, study.resampling
    for s in scores:
        yield from rank(s, task.systems, resampling, task.metric)
    if len(written) < 2:
        return
    for a, b in combinations(scores, 2):
        yield from agree(a, b, written, resampling)
    for s in scores:
        yield from length_bias(s, words_of(task, s), written, resampling)
    yield from _preferences(run, task, scores, resampling)


def _all_scores(run: RankedRun, study: Study, task: KeptTask) -> list[RankerScores]:
    """Evaluators, judges, control rankers, humans."""
    found = [
        *run.scores[task.name],
        *judge_scores(study, task),
        *control_scores(task, run.about.seed),
    ]
    if run.ranks is not None and run.ranks.experts(task.name):
        found.append(human_scores(run.ranks, task.name, task.shown.arguments, task.groups))
    return found


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
                yield Row("self_preference", "places", found, keys=keys)


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
    for statistic in _TRAINED:
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
            yield (
                f"{title}: only {groups} groups of instances are resampled: "
                "intervals from so few are too narrow."
            )
        for system in task.systems:
            lacking = n - len(task.arguments[system.name])
            if lacking:
                yield (
                    f"{title}: {system.name} has no argument on {lacking} of {n} instances, which "
                    "are left out of its rankings."
                )
        for name in task.generators:
            if name not in {system.name for system in task.systems}:
                yield f"{title}: {name} has no argument at all and is not ranked."
    if run.about.retrieval:
        yield f"Passages were reranked by: {run.about.retrieval['reranker']['name']}."
