"""Rank a run again from its folder alone: no model, no original files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judgebench.ranking.agreement import agree
from judgebench.ranking.bias import length_bias, self_preference
from judgebench.ranking.human import HumanRanks, human_scores
from judgebench.ranking.human_files import ranks_of
from judgebench.ranking.rank import rank
from judgebench.ranking.read import (
    TaskData,
    control_scores,
    cut_inputs,
    evaluator_scores,
    judge_scores,
    read_tasks,
    trained,
)
from judgebench.ranking.result import (
    LengthBias,
    RankAgreement,
    RankedTask,
    RankerScores,
    Ranking,
    Rankings,
    SelfPreference,
    Trained,
)
from judgebench.ranking.run_proxy.files import holds_ranking, read_ranking
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling
from judgebench.store.folder import RunFolder

FEW_GROUPS = 20  # below, percentile intervals miss their level by far


def rank_folder(run: RunFolder, resampling: Resampling = DEFAULT_RESAMPLING) -> Rankings | None:
    """What the arguments of a run folder are worth to each ranker; None where it holds no ranking.

    Raises SetupError where the folder is damaged.
    """
    if not holds_ranking(run.path):
        return None
    about = read_ranking(run.path)
    tasks = read_tasks(run)
    ranks = ranks_of(run.path)
    rankings: list[Ranking] = []
    agreements: list[RankAgreement] = []
    lengths: list[LengthBias] = []
    preferences: list[SelfPreference] = []
    for task in tasks:
        scores = _all_scores(run, about, task, ranks)
        rankings += [rank(s, task.systems, resampling, task.about["metric"]) for s in scores]
        written = [s.name for s in task.systems if s.is_argument]
        if len(written) > 1:
            agreements += [agree(a, b, written, resampling) for a, b in combinations(scores, 2)]
            lengths += [length_bias(s, task.words_of(s), written, resampling) for s in scores]
            preferences += _preferences(about, task, run.manifest(), scores, written, resampling)
    taught = trained(run, tasks)
    return Rankings(
        name=str(about["name"]),
        tasks=tuple(_task(run, task) for task in tasks),
        rankings=tuple(rankings),
        agreements=tuple(agreements),
        length_biases=tuple(lengths),
        self_preferences=tuple(preferences),
        trained=tuple(taught),
        notes=(*_notes(about, tasks, taught), *(str(w) for w in (ranks.warnings if ranks else ()))),
    )


def _all_scores(
    run: RunFolder, about: Mapping[str, Any], task: TaskData, ranks: HumanRanks | None
) -> list[RankerScores]:
    """Evaluators, judges, control rankers, humans."""
    found = [
        *evaluator_scores(run, task),
        *judge_scores(run, task),
        *control_scores(task, about["seed"]),
    ]
    if ranks is not None and ranks.experts(task.name):
        written = [s.name for s in task.systems if s.is_argument]
        found.append(human_scores(ranks, task.name, written, task.groups))
    return found


def _preferences(
    about: Mapping[str, Any],
    task: TaskData,
    manifest: Mapping[str, Any],
    scores: Sequence[RankerScores],
    written: Sequence[str],
    resampling: Resampling,
) -> Iterator[SelfPreference]:
    """Every ranker that is akin to a system, against those that are not."""
    for system in written:
        kinship = {s.ranker: _akin(about, task, manifest, s, system) for s in scores}
        others = [s for s in scores if not kinship[s.ranker] and s.kind != "control"]
        for ranker in scores:
            if kinship[ranker.ranker] and others:
                why = kinship[ranker.ranker]
                yield self_preference(ranker, others, system, why, written, resampling)


def _akin(
    about: Mapping[str, Any],
    task: TaskData,
    manifest: Mapping[str, Any],
    scores: RankerScores,
    system: str,
) -> str:
    """Why a ranker may favour a system; '' where nothing says so."""
    if scores.kind == "expert-trained" and system == "gold":
        return "trained on its arguments"
    if scores.kind == "llm-trained" and system in task.about["learnt_from"]:
        return "trained on its arguments among others"
    if scores.kind != "judge":
        return ""
    for family, members in about["families"].items():
        if scores.ranker in members and system in members:
            return f"of the family {family}"
    inline = [j for j in manifest["settings"]["judges"] if isinstance(j, dict)]
    judges = {j.get("name"): j.get("backend") for j in inline}
    same = judges.get(scores.ranker) == about["generators"].get(system, "")
    return "the same model" if same else ""


def _task(run: RunFolder, task: TaskData) -> RankedTask:
    arguments = task.about["arguments"]
    shares = {
        system: [a["verbatim"] for a in by_item.values() if "verbatim" in a]
        for system, by_item in arguments.items()
    }
    return RankedTask(
        name=task.name,
        title=task.about["title"],
        metric=task.about["metric"],
        n=len(task.items),
        systems=task.systems,
        left_out=tuple(task.about["left_out"]),
        verbatim={system: float(np.mean(found)) for system, found in shares.items() if found},
        cut=cut_inputs(run, task),
    )


def _notes(
    about: Mapping[str, Any], tasks: Sequence[TaskData], taught: Sequence[Trained]
) -> Iterator[str]:
    for task in tasks:
        for kind in task.about["kinds"]:
            wanted = sum(of == kind for of, _ in task.evaluators)
            there = sum((t.task, t.kind) == (task.name, kind) for t in taught)
            if there < wanted:
                yield f"{task.about['title']}: {kind}: {there} of {wanted} evaluators are trained."
        yield from (f"{task.about['title']}: {note}" for note in task.about["notes"])
        n = len(task.items)
        groups = len(set(task.groups.values()))
        if groups < FEW_GROUPS:
            yield (
                f"{task.about['title']}: only {groups} groups of instances are resampled: "
                "intervals from so few are too narrow."
            )
        for system in task.systems:
            lacking = n - len(task.about["arguments"][system.name])
            if lacking:
                yield (
                    f"{task.about['title']}: {system.name} has no argument on {lacking} of {n} "
                    "instances, which are left out of its rankings."
                )
        for name in task.about["generators"]:
            if name not in {system.name for system in task.systems}:
                yield f"{task.about['title']}: {name} has no argument at all and is not ranked."
    if about["retrieval"]:
        yield f"Passages were reranked by: {about['retrieval']['reranker']['name']}."
