"""The part of a run folder that a ranking adds: `proxy/`, enough to rank again offline.

proxy/ranking.json            tasks, ranked instances, evaluators, settings (rewritten whole)
proxy/given.jsonl             arguments that this run did not make: the experts' (gold), and those
                              of the user's files
proxy/arguments-SYSTEM.jsonl  what each model wrote, and each control case
proxy/evaluators/NAME/        a trained evaluator: weights, tokenizer, manifest
proxy/passages/               embeddings of the corpus
verdicts-NAME.jsonl           what each evaluator decided with each argument, and how surely
annotate/TASK/, human/        see `ranking.human`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError
from judgebench.features import FEATURES
from judgebench.files import read_object, validate
from judgebench.ranking.examples import evaluator_names
from judgebench.ranking.task import (
    CONTROL_CASES,
    GOLD,
    Argument,
    EvaluatorKind,
    ProxyConfig,
    TaskInstance,
    argument_id,
    arguments_path,
    last_arguments,
    read_arguments,
)
from judgebench.records import Answer, Estimate, Results, Row
from judgebench.results.shown import Shown
from judgebench.runs.verdict_log import verdict_path
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, mean_of_defined
from judgebench.stats.intervals import LEVEL, OF_CORRELATION, SHARE, Bounds, Kind, clustered_mean
from judgebench.stats.paired_tests import OVER_TRAININGS, left_out, p_of_mean, with_trainings
from judgebench.stats.ranks import JUMPS, places, spearman, tau_b, top_match

PROXY = "proxy/"
GIVEN_ARGUMENTS = f"{PROXY}given.jsonl"
(RANKING,) = FEATURES["ranking"].run_files

At = tuple[int, int]  # instance and system
BySystem = Mapping[str, Mapping[str, Argument]]  # by system and item


class _Kept(BaseModel):
    """A part of a file that judgebench writes; a newer version may have written more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class KeptTask(_Kept):
    """One task with its ranked `instances`. `learnt_from` names the systems that LLM-trained
    evaluators learnt from."""

    name: str
    title: str
    labels: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: dict[str, str] = {}
    learnt_from: tuple[str, ...]
    instances: tuple[TaskInstance, ...]
    # Not in ranking.json: what was read from the files of arguments.
    arguments: BySystem = Field(default={}, exclude=True)

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the ranked instances."""
        return tuple(i.item_id for i in self.instances)

    @property
    def groups(self) -> dict[str, str]:
        """The group of every item."""
        return {i.item_id: i.group for i in self.instances}

    @property
    def shown(self) -> RankedTask:
        """The task as a report names it."""
        return RankedTask(self.name, self.title, self.systems, self.left_out, len(self.instances))

    @cached_property
    def systems(self) -> tuple[System, ...]:
        """The writers of at least one argument on the ranked instances: gold first, then models,
        then control cases."""
        kinds: dict[str, SystemKind] = {GOLD: "gold", **dict.fromkeys(CONTROL_CASES, "control")}
        return tuple(System(name, kinds.get(name, "model")) for name in self.arguments)

    def text(self, system: str, item: str) -> str | None:
        """The argument of a system on an item; None where there is none."""
        argument = self.arguments[system].get(item)
        return None if argument is None else argument.text

    def answers(self, *, document: bool = True) -> dict[At, Answer]:
        """Every argument as it is put to a judge, or without documents to an evaluator."""
        return {
            (row, column): argument_answer(self.name, i, s.name, text, document=document)
            for row, i in enumerate(self.instances)
            for column, s in enumerate(self.systems)
            if (text := self.text(s.name, i.item_id)) is not None
        }

    @cached_property
    def words(self) -> FloatArray:
        """The words of each argument (instances, systems), NaN where there is none."""
        texts = [self.text(s.name, item) for item in self.items for s in self.systems]
        words = [np.nan if text is None else float(len(text.split())) for text in texts]
        return np.array(words).reshape(len(self.items), len(self.systems))


class KeptRanking(_Kept):
    """The content of ranking.json. `proxy` are the settings."""

    judgebench: str
    name: str
    seed: int
    proxy: ProxyConfig
    tasks: tuple[KeptTask, ...]

    def evaluators(self, task: str) -> list[tuple[EvaluatorKind, str]]:
        """Kind and name of each evaluator of a task, trained or not; those of one kind stand
        together."""
        kinds, draws = self.proxy.evaluators.kinds, self.proxy.evaluators.draws
        return [(kind, name) for kind in kinds for name in evaluator_names(task, kind, draws)]


class Trained(_Kept):
    """A finished training, from the manifest of its evaluator. `cut` counts inputs of training that
    were longer than the encoder takes."""

    task: str
    evaluator: str
    kind: EvaluatorKind
    signature: str
    draw: int
    encoder: str
    train: int
    development: int
    epochs: int
    best_epoch: int
    development_score: float
    seconds: float
    cut: int


def argument_answer(
    task: str, instance: TaskInstance, system: str, text: str, *, document: bool = True
) -> Answer:
    """One argument as an Answer: what is asked, the document if any and if wanted, and the argument
    as its text.

    The gold label is not in it: who judges an argument has to decide as the reader does.
    """
    question = instance.question
    if document and instance.context:
        question += f"\n\nDocument:\n{instance.context}"
    return Answer(
        item_id=argument_id(task, instance.item_id, system),
        text=text,
        question=question,
        system=system,
        group=f"{task}/{instance.group}",
        metadata={"task": task, "instance": instance.item_id},
    )


# --- reading and writing -------------------------------------------------------------------------


def read_ranking(run: Path) -> KeptRanking:
    """The content of ranking.json, the tasks with their arguments. Raises SetupError where it is
    missing or damaged."""
    path = run / RANKING
    if not path.is_file():
        raise SetupError(Problem("is no ranking run: it holds no " + RANKING, file=str(run)))
    ranking = validate(read_object(path.read_bytes(), path), KeptRanking, str(path))
    tasks = []
    for task in ranking.tasks:
        arguments = arguments_in(run, ranking.proxy, task.name, set(task.items))
        tasks.append(task.model_copy(update={"arguments": arguments}))
    return ranking.model_copy(update={"tasks": tuple(tasks)})


def read_tasks(run: Path) -> tuple[KeptTask, ...]:
    """The tasks of a ranking run with their arguments. Raises as `read_ranking` does."""
    return read_ranking(run).tasks


def arguments_in(run: Path, proxy: ProxyConfig, task: str, items: Collection[str]) -> BySystem:
    """The arguments in a run folder on these items of a task: gold first, then those that were
    given, then of generators and control cases."""
    names = (*(generator.name for generator in proxy.generators), *proxy.controls)
    paths = [run / GIVEN_ARGUMENTS, *(arguments_path(run, name) for name in names)]
    written = (a for path in paths for a in read_arguments(path) if a.item_id in items)
    return last_arguments(written, task)


def files_of(run: Path) -> list[str]:
    """Every file in a run folder that its rankings depend on and that no judge writes."""
    ranking = read_ranking(run)
    names = [name for task in ranking.tasks for _, name in ranking.evaluators(task.name)]
    paths = [verdict_path(run, name) for name in names]
    paths += [evaluator_folder(run, name) / "manifest.json" for name in names]
    paths += [run / RANKING, *(run / "human").glob("*.*"), *(run / PROXY).glob("*.jsonl")]
    return [path.relative_to(run).as_posix() for path in paths]


def evaluator_folder(run: Path, name: str) -> Path:
    """The folder of a trained evaluator."""
    return run / "proxy" / "evaluators" / name


def read_trained(run: Path, name: str) -> Trained | None:
    """The training of an evaluator; None where it is not trained. Raises SetupError where its
    manifest is damaged."""
    path = evaluator_folder(run, name) / "manifest.json"
    if not path.is_file():
        return None
    return validate(read_object(path.read_bytes(), path), Trained, str(path))


SystemKind = Literal["gold", "model", "control"]
RankerKind = Literal["baseline", "expert-trained", "llm-trained", "judge", "control", "humans"]
WRONG_CLAIMS = 0.05  # of studies in which a report claims what is not so, by kind of sentence
ONCE = "it was trained once, and another training may turn the order round"
_ASKED: Mapping[RankerKind, str] = {"judge": " (judge)", "control": " (control ranker)"}


@dataclass(frozen=True, slots=True)
class System:
    """A writer of arguments: the experts (`gold`), a model, or a control case. The first two write
    real arguments, the primary ones of the paper."""

    name: str
    kind: SystemKind

    @property
    def is_argument(self) -> bool:
        """True where it writes real arguments."""
        return self.kind != "control"


@dataclass(frozen=True)
class RankerScores:
    """One ranker's scores on one task, the input of every ranking.

    `values` is (instances, systems), higher is better and NaN is missing: the probability of the
    gold label (mean over draws), a judge's mean severity turned round to 0..1 with 1 the best, or
    minus the humans' mean rank. `trainings` (draws, instances, systems) is 1 where a training
    decides rightly with this argument, None for judges and humans; `drawn` is the `values` of each
    training. `clusters` (instances,) numbers the groups that are taken whole. `systems` are names,
    in the order of the columns.
    """

    task: str
    ranker: str
    kind: RankerKind
    systems: tuple[str, ...]
    items: tuple[str, ...]
    clusters: IntArray
    values: FloatArray
    trainings: FloatArray | None = None
    n_missing: int = 0  # instances that were to be ranked and are not here
    drawn: FloatArray | None = None

    def but(self, draw: int, draws: int) -> FloatArray:
        """The values over the first so many draws but this one; all of a judge, or of one draw."""
        return np.asarray(
            self.values if self.drawn is None or draws < 2
            else np.delete(self.drawn[:draws], draw, axis=0).mean(axis=0)
        )  # fmt: skip

    @property
    def keys(self) -> dict[str, str]:
        """The keys of its rows."""
        return {"task": self.task, "ranker": self.ranker, "ranker_kind": self.kind}


@dataclass(frozen=True, slots=True)
class RankedTask:
    """One task of the ranking: which systems wrote, which labels are not ranked."""

    name: str
    title: str
    systems: tuple[System, ...]
    left_out: tuple[str, ...] = ()
    n_instances: int = 0

    @property
    def arguments(self) -> list[str]:
        """The systems that wrote real arguments."""
        return [system.name for system in self.systems if system.is_argument]

    @property
    def controls(self) -> list[str]:
        """The control cases."""
        return [system.name for system in self.systems if not system.is_argument]


@dataclass(frozen=True)
class OneRanking:
    """One ranker on one task, as its rows tell it: `placed` are the places of systems, best first,
    `p` the p values by pair, both ways. `claims` is by how many rankers of the task a claim of this
    one is divided; `unsure` says why there is no p value and nothing is claimed."""

    task: str
    ranker: str
    kind: RankerKind
    placed: dict[str, float]
    p: dict[tuple[str, str], float | None]
    friedman_p: float | None
    controls: set[str]
    claims: int
    unsure: str

    @property
    def title(self) -> str:
        """The ranker's name, and for a judge that it is one."""
        return f"{self.ranker}{_ASKED.get(self.kind, '')}"

    @property
    def best(self) -> list[str]:
        """The systems at the first place; none where all share it."""
        places = list(self.placed.values())
        best = [name for name, place in self.placed.items() if place == places[0]]
        return best if len(best) < len(places) else []

    def clearly_above(self, upper: str, lower: str) -> bool:
        """True where it may be claimed that `upper` ranks above `lower`.

        That the first of all ranks above every other one is one claim of a ranker, as is that all
        control cases rank below; that some control case ranks above some argument is one for each
        such pair (Bonferroni). Of a control ranker, which reads nothing, nothing is claimed.
        """
        p, place = self.p.get((upper, lower)), self.placed
        if self.kind == "control" or p is None or place[upper] >= place[lower]:
            return False
        misled = upper in self.controls
        pairs = len(self.controls) * (len(place) - len(self.controls)) if misled else 1
        return p * self.claims * pairs < WRONG_CLAIMS


@dataclass(frozen=True, repr=False)
class Rankings(Shown):
    """All that a ranking run finds; `rows` are described at the top of this module."""

    presented_by = "judgebench.ranking.report:rankings_part"

    name: str
    tasks: tuple[RankedTask, ...]
    rows: Results
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @cached_property
    def rankings(self) -> list[OneRanking]:
        """Every ranker of every task: evaluators first, then judges, humans last."""
        whole = self.rows.select("ranking", "p")
        claims = Counter(row["task"] for row in whole if row["ranker_kind"] != "control")
        return [_one_ranking(self.rows, row, claims[row["task"]]) for row in whole]

    def of(self, task: str) -> list[OneRanking]:
        """The rankings of one task."""
        return [ranking for ranking in self.rankings if ranking.task == task]

    @property
    def titles(self) -> dict[str, str]:
        """Every ranker's name as it is shown: evaluators first, then judges, humans last."""
        order = get_args(RankerKind)
        ordered = sorted(self.rankings, key=lambda ranking: order.index(ranking.kind))
        return {ranking.ranker: ranking.title for ranking in ordered}


def _one_ranking(rows: Results, whole: Row, claims: int) -> OneRanking:
    """The ranking whose p of Friedman's test is the row `whole`."""
    keys = {key: whole[key] for key in ("task", "ranker", "ranker_kind")}
    places = rows.select("system", "place", **keys)
    values = {row["system"]: row.estimate.value for row in places}
    defined = {system: place for system, place in values.items() if place is not None}
    tests = rows.select("above", "p", **keys)
    pairs = {(row["system"], row["other"]): row.estimate.value for row in tests}
    return OneRanking(
        task=whole["task"],
        ranker=whole["ranker"],
        kind=cast(RankerKind, whole["ranker_kind"]),
        placed=dict(sorted(defined.items(), key=lambda pair: pair[1])),
        p=pairs | {(other, system): p for (system, other), p in pairs.items()},
        friedman_p=whole.estimate.value,
        controls={row["system"] for row in places if row["system_kind"] == "control"},
        claims=claims,
        unsure=tests[-1].estimate.reason if tests else "",
    )


FEW_COMMON = "fewer than two systems are ranked by both"
NO_COMMON = "no instance is ranked by both"
LEVEL_RANKS = "in every instance one ranker sets all systems level, so no order can be compared"
LEVEL_AVERAGES = "one ranker gives all systems the same average rank, so no order can be compared"
FEW_RANKED = "fewer than two systems are ranked"
LEVEL_LENGTHS = "in every instance all arguments are of one length or ranked level"
NO_LENGTHS = "no instance has all arguments, with their lengths and scores"
_AGREEMENT = ("tau_b", "p", "spearman", "tau_b_of_averages", "top_1")
_KINDS: Mapping[Bounds, Kind] = {SHARE: "share", OF_CORRELATION: "correlation"}
NOT_COMMON = "the rankers have no instance with this generator and another system in common"


@dataclass(frozen=True)
class Matched:
    """Several rankers cut down to the instances and systems that all of them rank.

    `values` is (rankers, instances, systems) without a gap, `clusters` (instances,). `less` is
    (draws, rankers, instances, systems): the values when one training of each evaluator is left out
    in turn, nothing where all are judges and humans. `n_missing` counts the instances that all
    rankers hold and where one of them lacks a value.
    """

    systems: tuple[str, ...]
    values: FloatArray
    less: FloatArray
    clusters: IntArray
    n_missing: int


def match(rankers: Sequence[RankerScores], systems: Sequence[str]) -> Matched:
    """The instances and systems that all rankers rank, of those named and in their order.

    Clusters are those of the first. An instance that a ranker was never to rank, such as those
    outside the sample that humans saw, is not missing.
    """
    first = rankers[0]
    common = tuple(s for s in systems if all(s in ranker.systems for ranker in rankers))
    rows = [{item: row for row, item in enumerate(ranker.items)} for ranker in rankers]
    items = [item for item in first.items if all(item in known for known in rows)]
    draws = min((len(r.drawn) for r in rankers if r.drawn is not None), default=0)
    tables = [[ranker.values for ranker in rankers]]
    tables += [[ranker.but(draw, draws) for ranker in rankers] for draw in range(draws)]
    every = np.stack([
        [
            columns(values, ranker, common)[[known[item] for item in items]]
            for values, ranker, known in zip(one, rankers, rows, strict=True)
        ]
        for one in tables
    ])  # fmt: skip
    complete = np.isfinite(every[0]).all(axis=(0, 2))
    every = every[:, :, complete]
    clusters = first.clusters[[rows[0][item] for item in items]][complete]
    return Matched(common, every[0], every[1:], clusters, int((~complete).sum()))


def columns(table: FloatArray, ranker: RankerScores, systems: Sequence[str]) -> FloatArray:
    """The columns of these systems, of a table (instances, systems) of that ranker's shape."""
    return table[:, [ranker.systems.index(system) for system in systems]]


# --- agreement -----------------------------------------------------------------------------------


def agree(
    a: RankerScores, b: RankerScores, systems: Sequence[str], level: float = LEVEL
) -> list[Row]:
    """The agreement of `a` and `b` on those of `systems` and those instances that both rank; the
    key `over` names the systems.

    Kendall's tau_b and Spearman's rho are taken within each instance and averaged; an instance
    where one ranker ties all systems has none and counts as missing. `top_1` is the expected
    match where ties for the best are broken at random (`stats.ranks.top_match`).
    Intervals are over the clusters of `a`, and they and p hold trainings too; p is none where an
    evaluator was trained once. Undefined, with a reason, with fewer than two systems
    or without an instance.
    """
    both = match((a, b), systems)
    _, n, k = both.values.shape
    if k < 2 or n == 0:
        reason = FEW_COMMON if k < 2 else NO_COMMON
        unknown = Estimate(None, n_missing=both.n_missing, reason=reason, level=level)
        estimates = [unknown] * len(_AGREEMENT)
    else:
        mean = partial(_mean, both, undefined=LEVEL_RANKS, level=level)
        estimates = [
            *mean(tau_b),
            mean(spearman)[0],
            _of_averages(both),
            mean(top_match, bounds=SHARE)[0],
        ]
    keys = {"task": a.task, "ranker": a.ranker, "other": b.ranker, "over": ", ".join(both.systems)}
    named = zip(_AGREEMENT, estimates, strict=True)
    return [Row("agreement", statistic, estimate, keys=keys) for statistic, estimate in named]


def _of_averages(both: Matched) -> Estimate:
    """tau_b of the two rankers' average ranks."""
    x, y = (places(values).mean(axis=0) for values in both.values)
    value = float(tau_b(x, y))
    unknown = Estimate(None, n=len(both.clusters), n_missing=both.n_missing, reason=LEVEL_AVERAGES)
    return unknown if np.isnan(value) else replace(unknown, value=value, reason=JUMPS)


# --- biases --------------------------------------------------------------------------------------


def length_bias(
    scores: RankerScores, words: FloatArray, systems: Sequence[str], level: float = LEVEL
) -> list[Row]:
    """The rank correlation of length and place within an instance, among the named systems.

    `words` (instances, systems) has the rows and columns of `scores`, NaN where the length is
    unknown. `rho` is Spearman's, of words and rank turned round; `longest_first` is the chance that
    the longest is the best, ties broken at random: where length does not matter, 1 / systems on
    average.
    """
    both = match((scores, replace(scores, values=words, drawn=None)), systems)
    both = replace(both, n_missing=scores.n_missing + both.n_missing)
    rho = p = longest = Estimate(None, n_missing=both.n_missing, reason=FEW_RANKED, level=level)
    if len(both.systems) > 1:
        rho, p = _mean(both, spearman, LEVEL_LENGTHS if len(both.clusters) else NO_LENGTHS, level)
        longest, _ = _mean(both, top_match, NO_LENGTHS, level, SHARE)
    keys = {"task": scores.task, "ranker": scores.ranker}
    found = {"rho": rho, "p": p, "longest_first": longest}
    return [Row("length_bias", statistic, e, keys=keys) for statistic, e in found.items()]


def self_preference(
    akin: RankerScores,
    others: Sequence[RankerScores],
    generator: str,
    systems: Sequence[str],
    level: float = LEVEL,
) -> tuple[Estimate, Estimate]:
    """The places by which `akin` ranks the generator above the mean of the others, and p.

        mean over instances of (mean over the others of r_other - r_akin)

    with r the place of the generator among those of `systems` that all of them rank, on the
    instances that all of them rank: above 0, the ranker favours it. Take the real arguments as
    systems: a ranker that is merely misled by control cases ranks every generator lower.
    """
    both = match((akin, *others), systems)
    n = both.values.shape[1]
    if generator not in both.systems or len(both.systems) < 2 or n == 0:
        none = Estimate(None, n_missing=both.n_missing, reason=NOT_COMMON, level=level)
        return none, none
    at, most = both.systems.index(generator), len(both.systems) - 1.0

    def higher(own: FloatArray, *theirs: FloatArray) -> FloatArray:
        return np.asarray(places(np.array(theirs)).mean(axis=0) - places(own))[:, at]

    return _mean(both, higher, NOT_COMMON, level, (-most, most))


def _mean(
    both: Matched,
    each: Callable[..., FloatArray],
    undefined: str,
    level: float,
    bounds: Bounds = OF_CORRELATION,
) -> tuple[Estimate, Estimate]:
    """The mean over instances of `each` (instances,), of the rankers' values, within `bounds`; and
    the two-sided p that it is 0, none of one training alone. Both hold instances and trainings."""
    x, n_draws = each(*both.values), len(both.less)
    found = clustered_mean(
        x, both.clusters, undefined, level,
        n_missing=both.n_missing, kind=_KINDS.get(bounds, "mean"),
    )  # fmt: skip
    if not found.n or n_draws == 1:
        return found, Estimate(None, n=found.n, reason=ONCE if found.n else NO_COMMON)
    trained = left_out(mean_of_defined(np.array([each(*values) for values in both.less])))
    p = p_of_mean(x, Clusters.of(both.clusters.tolist()), trained)
    return with_trainings(found, trained, bounds), Estimate(p, method=OVER_TRAININGS, n=found.n)
