"""Rank a run again from its folder alone: no model, no original files.

First each ranker's scores: what evaluators and judges made of every argument. Then the rows. One
ranker's scores made into a ranking: places, how firm they are, and which systems differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby
from pathlib import Path

import numpy as np

from judgebench.ranking.human import HumanRanks, human_scores, ranks_of
from judgebench.ranking.rankers import (
    ONCE,
    At,
    KeptRanking,
    KeptTask,
    RankerKind,
    RankerScores,
    Rankings,
    System,
    Trained,
    agree,
    columns,
    length_bias,
    read_ranking,
    read_trained,
    self_preference,
)
from judgebench.records import Answer, Estimate, Results, Row, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import FiledVerdicts, verdict_path
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.intervals import (
    FEW_CLUSTERS,
    LEVEL,
    ClusterCounts,
    Kind,
    clustered_estimate,
    mean_of,
    means,
    sums_by_cluster,
)
from judgebench.stats.paired_tests import OVER_TRAININGS, holm, p_of_differences, with_trainings
from judgebench.stats.ranks import (
    FRIEDMAN,
    friedman,
    levels,
    places,
)
from judgebench.studies.answers import indexed
from judgebench.studies.study import Study

# --- evaluators ----------------------------------------------------------------------------------


def evaluator_scores(
    run: Path, task: KeptTask, trained: Sequence[Trained]
) -> tuple[list[RankerScores], dict[str, int]]:
    """One for each kind of evaluator, its draws averaged; those not yet trained are left out.

    Beside them, on how many instances the input with a system's argument was longer than some
    evaluator takes, and was cut.
    """
    found, cut = [], np.zeros(task.words.shape, dtype=bool)
    for kind, same in groupby(trained, key=lambda training: training.kind):
        decisions = [_decided(run, task, training) for training in same]
        probability, right, was_cut = (np.array(part) for part in zip(*decisions, strict=True))
        cut |= was_cut.any(axis=0)
        found.append(_scores(task, kind, kind, probability.mean(axis=0), right, probability))
    names = [system.name for system in task.systems]
    return found, dict(zip(names, cut.sum(axis=0).tolist(), strict=True))


def _decided(run: Path, task: KeptTask, by: Trained) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The probability of the gold label, whether it was decided for, and whether the input was cut:
    (instances, systems), from the last verdict on each argument as it is now."""
    asked = task.answers(document=False)
    answers = indexed(list(asked.values()))
    verdicts = FiledVerdicts(verdict_path(run, by.evaluator), by.signature, answers, ())
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
    asked = task.answers()
    for judge in study.real_judges:
        values = np.full(task.words.shape, np.nan)
        for at, verdict in _last(judge.verdicts, asked):
            values[at] = _judged(verdict, study.rubric)
        if not np.isnan(values).all():
            yield _scores(task, judge.name, "judge", values)


def _judged(verdict: Verdict, rubric: Rubric) -> float:
    """1 for the best label of every ordinal metric, 0 for the worst ones, the mean between;
    expected over these labels where the judge gave probabilities; NaN where a label is missing or
    an abstention."""
    scores = []
    for metric in (m for m in rubric.metrics if m.kind == "ordinal"):
        penalty = dict(zip(metric.label_texts, map(float, metric.penalties), strict=True))
        label = verdict.labels.get(metric.id)
        if label not in penalty:  # the judge abstained, or could not be read
            return float("nan")
        asked = (verdict.probabilities or {}).get(metric.id, {})
        graded = {text: p for text, p in asked.items() if text in penalty}
        if not sum(graded.values()):
            graded = {label: 1.0}
        expected = sum(p * penalty[text] for text, p in graded.items()) / sum(graded.values())
        best, worst = min(penalty.values()), max(penalty.values())
        scores.append(1 - (expected - best) / (worst - best))
    return float(np.mean(scores)) if scores else float("nan")


# --- control rankers -----------------------------------------------------------------------------


def control_scores(task: KeptTask, seed: int) -> Iterator[RankerScores]:
    """The rankers that any other must beat: a coin, and a preference for long arguments."""
    yield _scores(task, "longest-argument", "control", task.words)
    of_task = int(content_hash(["random ranker", task.name]), 16) % 2**32
    values = np.random.default_rng([seed, of_task]).random(task.words.shape)
    yield _scores(task, "random", "control", np.where(np.isnan(task.words), np.nan, values))


def _scores(
    task: KeptTask,
    ranker: str,
    kind: RankerKind,
    values: FloatArray,
    trainings: FloatArray | None = None,
    drawn: FloatArray | None = None,
) -> RankerScores:
    names, clusters = tuple(s.name for s in task.systems), Clusters.of(task.groups.values()).codes
    return RankerScores(
        task.name, ranker, kind, names, task.items, clusters, values, trainings, drawn=drawn
    )


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RankedRun:
    """The ranking of a run folder, beside its study. `evaluators` holds, by task, their scores and
    how many inputs were cut; `judges` maps judges to their backends."""

    ranking: KeptRanking
    evaluators: Mapping[str, tuple[list[RankerScores], Mapping[str, int]]]
    trained: tuple[Trained, ...]
    judges: Mapping[str, str]
    ranks: HumanRanks | None


def read_ranked_run(run: RunFolder, study: Study) -> RankedRun:
    """The ranking of a run folder. Raises SetupError where it is damaged."""
    ranking = read_ranking(run.path)
    names = {t.name: [name for _, name in ranking.evaluators(t.name)] for t in ranking.tasks}
    trained = {
        task: [training for name in of_task if (training := read_trained(run.path, name))]
        for task, of_task in names.items()
    }
    inline = [j for j in run.manifest()["settings"]["judges"] if isinstance(j, dict)]
    return RankedRun(
        ranking=ranking,
        evaluators={t.name: evaluator_scores(run.path, t, trained[t.name]) for t in ranking.tasks},
        trained=tuple(training for of_task in trained.values() for training in of_task),
        judges={j["name"]: j["backend"] for j in inline if {"name", "backend"} <= j.keys()},
        ranks=ranks_of(run.path),
    )


_TRAINING = (
    "train", "development", "epochs", "best_epoch", "development_score", "seconds", "cut",
)  # fmt: skip


def measure_rankings(study: Study) -> Rankings | None:
    """The rankings of a run's arguments by every ranker; None where it holds no ranking."""
    run = study.beside.get("ranking")
    if not isinstance(run, RankedRun):
        return None
    tasks = run.ranking.tasks
    rows = [row for task in tasks for row in _ranked_by_all(run, study, task)]
    rows += [
        Row("trained", statistic, Estimate(getattr(t, statistic)), keys={
            "task": t.task, "ranker": t.evaluator, "ranker_kind": t.kind,
            "other": f"{t.encoder}, draw {t.draw}",
        })
        for t in run.trained
        for statistic in _TRAINING
    ]  # fmt: skip
    rows += [row for task in tasks for row in _written(run, task)]
    notes = (*_notes(run), *(run.ranks.warnings if run.ranks else ()))
    shown = tuple(task.shown for task in tasks)
    return Rankings(run.ranking.name, shown, Results(tuple(rows)), notes, study.gaps)


def _ranked_by_all(run: RankedRun, study: Study, task: KeptTask) -> Iterator[Row]:
    """Every ranking of a task, and what lies between rankers."""
    written, level = task.shown.arguments, study.level
    scores = [*run.evaluators[task.name][0], *judge_scores(study, task)]
    scores += control_scores(task, run.ranking.seed)
    if run.ranks is not None and run.ranks.annotators(task.name):
        scores.append(human_scores(run.ranks, task.name, written, task.groups))
    for s in scores:
        yield from rank(s, task.systems, level)
    if len(written) < 2:
        return
    for a, b in combinations(scores, 2):
        yield from agree(a, b, written, level)
    names = [system.name for system in task.systems]
    for s in scores:  # who may have seen but a few
        rows, columns = map(task.items.index, s.items), map(names.index, s.systems)
        words = task.words[np.ix_([*rows], [*columns])]
        yield from length_bias(s, words, written, level)
    yield from _preferences(run, task, scores, level)


def _preferences(
    run: RankedRun, task: KeptTask, scores: Sequence[RankerScores], level: float
) -> Iterator[Row]:
    """Every ranker that is akin to a system, against those that are not."""
    written = task.shown.arguments
    for system in written:
        kinship = {s.ranker: _akin(run, task, s, system) for s in scores}
        others = [s for s in scores if not kinship[s.ranker] and s.kind != "control"]
        for akin in scores if others else ():
            if why := kinship[akin.ranker]:
                found = self_preference(akin, others, system, written, level)
                keys = {
                    "task": task.name, "ranker": akin.ranker, "system": system,
                    "other": ", ".join(other.ranker for other in others), "akin": why,
                }  # fmt: skip
                for statistic, e in zip(("places", "p"), found, strict=True):
                    yield Row("self_preference", statistic, e, keys=keys)


def _akin(run: RankedRun, task: KeptTask, scores: RankerScores, system: str) -> str:
    """The reason why a ranker may favour a system; '' where there is none."""
    if scores.kind == "expert-trained" and system == "gold":
        return "trained on its arguments"
    if scores.kind == "llm-trained" and system in task.learnt_from:
        return "trained on its arguments among others"
    if scores.kind != "judge":
        return ""
    for family, members in run.ranking.proxy.families.items():
        if {scores.ranker, system} <= {*members}:
            return f"of the family {family}"
    backends = {generator.name: generator.backend for generator in run.ranking.proxy.generators}
    same = run.judges.get(scores.ranker) == backends.get(system, "")
    return "the same model" if same else ""


def _written(run: RankedRun, task: KeptTask) -> Iterator[Row]:
    """The words of each system, and how many inputs with its arguments were cut."""
    words = np.nanmean(task.words, axis=0) if len(task.items) else ()
    for system, mean_words in zip(task.systems, words, strict=True):
        keys = {"task": task.name, "system": system.name, "system_kind": system.kind}
        n_cut = run.evaluators[task.name][1][system.name]
        for statistic, value in {"mean_words": float(mean_words), "cut": n_cut}.items():
            yield Row("argument", statistic, Estimate(value), keys=keys)


def _notes(run: RankedRun) -> Iterator[str]:
    for task in run.ranking.tasks:
        title, n, groups = task.title, len(task.items), len(set(task.groups.values()))
        due = Counter(kind for kind, _ in run.ranking.evaluators(task.name))
        trained = Counter(t.kind for t in run.trained if t.task == task.name)
        for kind, n_due in due.items():
            if trained[kind] < n_due:
                yield f"{title}: {kind}: {trained[kind]} of {n_due} evaluators are trained."
        yield from (f"{title}: {note}" for note in task.notes)
        if groups < FEW_CLUSTERS:
            few = f"only {groups} groups of instances"
            yield f"{title}: {few}: their intervals are rough ones, and nothing is tested."
        writers = [*(s.name for s in task.systems), *(g.name for g in run.ranking.proxy.generators)]
        for system in dict.fromkeys(writers):
            if lacking := n - len(task.arguments.get(system, {})):
                gap = f"{system} has no argument on {lacking} of {n} instances"
                yield f"{title}: {gap}, which are left out of its rankings."


# --- one ranking ---------------------------------------------------------------------------------

NO_INSTANCE = "no instance has a score for every system"
NO_ARGUMENT = "there is no real argument"
_NO_CONTROL = Estimate(None, reason="there is no control case")
_NO_SCORE = Estimate(None, reason="there is no score")
_Group = tuple[str, Mapping[str, str], Mapping[str, Estimate]]  # analysis, keys, by statistic


def rank(scores: RankerScores, systems: Sequence[System], level: float = LEVEL) -> list[Row]:
    """The rows `system`, `ranking` and `above` of those of `systems` that this ranker scored.

    An evaluator's score is the share of right decisions (accuracy, which micro-F1 equals where each
    instance has one class), the metric of its rows; that of judges and humans is the
    mean value. Everything rests on the same instances, those with a score for every system; the
    others are missing. A system without any score is left out, and the reason of `chi_square` says
    so. Scores, and values, that differ by no more than 1e-6 (`stats.ranks.TIE`) are level.
    Average ranks and Friedman's test are of the real arguments alone; a control case has the
    average rank at which it would stand among them.
    Fewer than ten clusters give no p, and no range of places, which rests on it. Intervals and p of
    an evaluator hold items and trainings; trained once it has no p.
    """
    table = complete(scores, systems)
    unscored = f"without any score: {', '.join(table.unscored)}" if table.unscored else ""
    if table.n:
        groups = _ranking(table, level, unscored)
    else:
        reason = "; ".join(filter(None, (NO_INSTANCE, unscored)))
        none = Estimate(None, n=0, n_missing=table.n_missing, reason=reason)
        estimates = {
            "chi_square": none, "p": none, "controls_below": _NO_CONTROL, "average": _NO_SCORE,
        }  # fmt: skip
        groups = iter([("ranking", {}, estimates)])
    return [
        Row(
            analysis,
            statistic,
            e,
            "",
            "accuracy" if table.is_share else "",
            {**scores.keys, **keys},
        )
        for analysis, keys, estimates in groups
        for statistic, e in estimates.items()
    ]


def _ranking(table: Complete, level: float, unscored: str) -> Iterator[_Group]:
    found, average = _scored(table, level)
    arguments, names = table.of(arguments=True), [system.name for system in table.systems]
    unsure = ONCE if table.is_share and len(table.trainings) < 2 else ""
    if table.clusters.n < FEW_CLUSTERS:
        unsure = f"fewer than {FEW_CLUSTERS} groups of instances are too few to test an order"
    average_ranks, controls_below = _ranked(table, level)
    ranks = places(table.values[:, arguments])
    tested = {
        statistic: replace(estimate, n_missing=table.n_missing)
        for statistic, estimate in friedman_of(ranks, table.clusters, unscored).items()
    }
    p = p_of_differences(table.trainings, table.clusters, arguments)
    place = _places(table, p, level, unsure)
    order = sorted(range(len(names)), key=lambda i: (place[i].value or 0.0, names[i]))
    for i in order:
        keys = {"system": names[i], "system_kind": table.systems[i].kind}
        estimates = {"score": found[i], "place": place[i], "average_rank": average_ranks[i]}
        yield "system", keys, estimates
    yield "ranking", {}, {**tested, "controls_below": controls_below, "average": average}
    for distance in range(1, len(order)):  # neighbours first
        for i, j in zip(order, order[distance:], strict=False):
            p_value = None if unsure else float(p[i, j])
            found_p = Estimate(p_value, method=OVER_TRAININGS, n=table.n, reason=unsure)
            yield "above", {"system": names[i], "other": names[j]}, {"p": found_p}


def _scored(table: Complete, level: float) -> tuple[list[Estimate], Estimate]:
    """Each system's score, and the mean score of the real arguments."""
    arguments = table.of(arguments=True)
    score, k = table.score, len(table.systems)
    trained = table.trainings.mean(axis=1)
    if arguments:
        score = np.hstack([score, score[:, arguments].mean(axis=1, keepdims=True)])
        trained = np.hstack([trained, trained[:, arguments].mean(axis=1, keepdims=True)])
    found = _means(table, score, level, "share" if table.is_share else "mean")
    found = list(map(with_trainings, found, trained.T))
    return found[:k], found[k] if arguments else _NO_SCORE


def _places(table: Complete, p: FloatArray, level: float, unsure: str) -> list[Estimate]:
    """The place of each system's score (1 best, ties share the mean place), and its range: the
    places that are left to it by the systems that are shown to score higher or lower, over all
    pairs at once (Holm). Al Mohamad, Goeman and van Zwet (2022), "Simultaneous confidence intervals
    for ranks"."""
    score, k = table.score.mean(axis=0), len(table.systems)
    place = places(score).tolist()
    about = Estimate(None, n=table.n, n_missing=table.n_missing, reason=unsure, level=level)
    if unsure:
        return [replace(about, value=value) for value in place]
    first, second = np.triu_indices(k, 1)
    is_apart = np.zeros((k, k), dtype=np.bool_)
    corrected = np.array(holm(p[first, second].tolist()), dtype=np.float64)
    is_apart[first, second] = is_apart[second, first] = corrected <= 1 - level
    higher = (is_apart & (score > score[:, None])).sum(axis=1).tolist()
    lower = (is_apart & (score < score[:, None])).sum(axis=1).tolist()
    method = "range left by tests of all pairs (Holm)"
    return [
        replace(about, value=value, low=1 + above, high=k - below, method=method)
        for value, above, below in zip(place, higher, lower, strict=True)
    ]


def _ranked(table: Complete, level: float) -> tuple[list[Estimate], Estimate]:
    """The average ranks, and the share of control cases below all real arguments."""
    arguments, controls = table.of(arguments=True), table.of(arguments=False)
    heights = levels(table.values)
    others, system = heights[:, None, arguments], heights[:, :, None]
    # An argument among all of them, itself counted half.
    among = ((others > system) + (others == system) / 2).sum(axis=2)
    own = np.array([0.5 if i in arguments else 1.0 for i in range(len(table.systems))])
    average_ranks = _means(table, among + own, level)
    if not arguments or not controls:
        return average_ranks, _NO_CONTROL if arguments else Estimate(None, reason=NO_ARGUMENT)
    lowest = heights[:, arguments].min(axis=1, keepdims=True)
    below = (heights[:, controls] < lowest).mean(axis=1, keepdims=True)
    (share,) = _means(table, below, level, "share")
    return average_ranks, share


def _means(table: Complete, x: FloatArray, level: float, kind: Kind = "mean") -> list[Estimate]:
    """The mean of each column of x (instances, m)."""
    sample = ClusterCounts(sums_by_cluster(x, table.clusters))
    statistics = (mean_of(j, NO_INSTANCE, kind) for j in range(x.shape[1]))
    n, missing = table.n, table.n_missing
    return [clustered_estimate(sample, s, level, n=n, n_missing=missing) for s in statistics]


# --- where every system has a score --------------------------------------------------------------


@dataclass(frozen=True)
class Complete:
    """The instances on which every system has a score, which a ranking rests on.

    `trainings` is (trainings, instances, systems), one of a judge, and `score` its mean; `values`
    is (instances, systems), `clusters` are those of the instances.
    `is_share` marks scores that are shares of right decisions. `unscored` names the systems that
    have no score at all and are left out.
    """

    systems: tuple[System, ...]
    trainings: FloatArray
    values: FloatArray
    clusters: Clusters
    n_missing: int
    is_share: bool
    unscored: tuple[str, ...]

    @cached_property
    def score(self) -> FloatArray:
        """The mean over the trainings (instances, systems)."""
        return np.asarray(self.trainings.mean(axis=0))

    @property
    def n(self) -> int:
        """The number of instances, 0 without a system."""
        return len(self.values)

    def of(self, *, arguments: bool) -> list[int]:
        """The columns of the real arguments, or of the control cases."""
        return [i for i, s in enumerate(self.systems) if s.is_argument == arguments]


def complete(scores: RankerScores, systems: Sequence[System]) -> Complete:
    """The complete instances of those of `systems` that the ranker knows.

    The score is that of the trainings where there are some, else the value. Systems come sorted by
    their name, so that the order in which they are given moves nothing.
    """
    known = sorted((s for s in systems if s.name in scores.systems), key=lambda s: s.name)
    names = [s.name for s in known]
    values = columns(scores.values, scores, names)
    right = scores.values[None] if scores.trainings is None else scores.trainings
    trainings = np.stack([columns(training, scores, names) for training in right])
    there = np.isfinite(values) & np.isfinite(trainings).all(axis=0)
    scored = np.asarray(there.any(axis=0))
    whole = there[:, scored].all(axis=1) & scored.any()
    codes = np.unique(scores.clusters[whole], return_inverse=True)[1]
    kept = tuple(known[column] for column in np.flatnonzero(scored))
    return Complete(
        kept,
        trainings[:, whole][..., scored],
        values[whole][:, scored],
        Clusters(codes, int(codes.max(initial=-1)) + 1),
        scores.n_missing + int((~whole).sum()),
        scores.trainings is not None,
        tuple(s.name for s in known if s not in kept),
    )


# --- whether systems differ ----------------------------------------------------------------------


def friedman_of(ranks: FloatArray, clusters: Clusters, note: str = "") -> dict[str, Estimate]:
    """The estimates `chi_square` and `p` of Friedman's test of ranks (instances, systems), 1 the
    best; where there is none with the reason, to which a `note` is added.

    Blocks must be independent. They are the instances, or, where a cluster holds several, the
    clusters: the systems' mean ranks in each are ranked anew. No test with fewer than 3 systems or
    2 blocks, or where all systems tie in every block.
    """
    n, k = ranks.shape
    is_clustered = clusters.n < n
    blocks = "clusters" if is_clustered else "instances"
    chi_square = p = None
    if k < 3 or clusters.n < 2:
        here = f"here are {k} and {clusters.n}"
        reason = f"Friedman's test needs 3 real arguments and 2 {blocks}; {here}"
    else:
        test = friedman(levels(-means(sums_by_cluster(ranks, clusters))))
        chi_square, p = test.chi_square, test.p
        reason = (
            f"Friedman's test ranks the mean ranks in {clusters.n} clusters, since the {n} "
            "instances are not independent"
        )
        reason = reason if is_clustered else ""
        reason = f"all systems tie in all {test.blocks} {blocks}" if p is None else reason
    told = "; ".join(filter(None, (reason, note)))
    return {
        statistic: Estimate(value, method=FRIEDMAN, n=n, reason=told)
        for statistic, value in (("chi_square", chi_square), ("p", p))
    }
