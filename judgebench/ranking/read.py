"""From a run folder to scores: what evaluators and judges made of every argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from judgebench.ranking.proxy.arguments import argument_id
from judgebench.ranking.proxy.config import EvaluatorKind
from judgebench.ranking.proxy.examples import evaluator_names
from judgebench.ranking.result import RankerKind, RankerScores, System, SystemKind, Trained
from judgebench.ranking.run_proxy.files import evaluator_folder, read_ranking, trained_manifest
from judgebench.ranking.run_proxy.load import asked_question
from judgebench.ranking.sheet import RankedItem
from judgebench.records import Verdict, content_hash
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.store.folder import RunFolder
from judgebench.study.study import JUDGE_KINDS

_WORDS_SEED = "random ranker"


@dataclass(frozen=True)
class TaskData:
    """One task of a ranking as its run folder keeps it.

    `about` is its part of ranking.json, `controls` the names of the control cases.
    """

    about: Mapping[str, Any]
    controls: tuple[str, ...]

    @property
    def name(self) -> str:
        """The task's name, which its ids begin with."""
        return str(self.about["name"])

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the ranked instances."""
        return tuple(i["item_id"] for i in self.about["instances"])

    @property
    def clusters(self) -> IntArray:
        """(instances,), equal for instances of one group."""
        numbers: dict[str, int] = {}
        groups = [i["group"] for i in self.about["instances"]]
        return np.array([numbers.setdefault(g, len(numbers)) for g in groups], dtype=np.int64)

    @property
    def groups(self) -> dict[str, str]:
        """The group of every item."""
        return {i["item_id"]: i["group"] for i in self.about["instances"]}

    @property
    def systems(self) -> tuple[System, ...]:
        """Who wrote at least one argument on the ranked instances: gold first, then models, then
        control cases."""
        found = []
        for name, by_item in self.about["arguments"].items():
            kind: SystemKind = "model"
            if name in self.controls:
                kind = "control"
            elif name == "gold":
                kind = "gold"
            if by_item:
                words = float(np.mean([len(a["text"].split()) for a in by_item.values()]))
                found.append(System(name, kind, words))
        return tuple(found)

    @property
    def evaluators(self) -> list[tuple[EvaluatorKind, str]]:
        """Kind and name of each evaluator, trained or not; those of one kind stand together."""
        return [
            (kind, name)
            for kind in self.about["kinds"]
            for name in evaluator_names(self.name, kind, self.about["draws"])
        ]

    def text(self, system: str, item: str) -> str | None:
        """What that system says on that item; None where it says nothing."""
        found = self.about["arguments"][system].get(item)
        return None if found is None else str(found["text"])

    @property
    def words(self) -> FloatArray:
        """How many words each argument has (instances, systems), NaN where there is none."""
        texts = [[self.text(s.name, item) for s in self.systems] for item in self.items]
        return np.array(
            [[np.nan if t is None else float(len(t.split())) for t in row] for row in texts]
        ).reshape(len(self.items), len(self.systems))

    def words_of(self, scores: RankerScores) -> FloatArray:
        """The same for the instances and systems of one ranker, who may have seen but a few."""
        names = [system.name for system in self.systems]
        rows = [self.items.index(item) for item in scores.items]
        return self.words[np.ix_(rows, [names.index(system) for system in scores.systems])]


def read_tasks(run: RunFolder) -> list[TaskData]:
    """The tasks of a ranking run. Raises SetupError where the folder is none or is damaged."""
    ranking = read_ranking(run.path)
    return [TaskData(task, tuple(ranking["controls"])) for task in ranking["tasks"]]


def ranked_items(run: RunFolder) -> list[RankedItem]:
    """Every ranked instance with the real arguments on it, for people to rank."""
    return [
        RankedItem(
            task=task.name,
            item_id=i["item_id"],
            group=i["group"],
            question=i["question"],
            label_text=i["label_text"],
            context=i["context"],
            arguments={
                s.name: text
                for s in task.systems
                if s.is_argument and (text := task.text(s.name, i["item_id"])) is not None
            },
        )
        for task in read_tasks(run)
        for i in task.about["instances"]
    ]


# --- evaluators ----------------------------------------------------------------------------------


def evaluator_scores(run: RunFolder, task: TaskData) -> Iterator[RankerScores]:
    """One a kind of evaluator: its draws are averaged. Those not yet trained are left out."""
    for kind, same in groupby(task.evaluators, key=itemgetter(0)):
        read = [found for _, name in same if (found := _decided(run, task, name)) is not None]
        if read:
            probabilities = np.mean([p for p, _ in read], axis=0)
            correct = np.mean([right for _, right in read], axis=0)
            yield _scores(task, kind, kind, probabilities, correct)


def _decided(run: RunFolder, task: TaskData, name: str) -> tuple[FloatArray, FloatArray] | None:
    """The probability of the gold label, and whether it was decided for: (instances, systems)."""
    verdicts = _verdicts(run, task, name)
    if verdicts is None:
        return None
    shape = (len(task.items), len(task.systems))
    probability, right = np.full(shape, np.nan), np.full(shape, np.nan)
    for row, i in enumerate(task.about["instances"]):
        for column, system in enumerate(task.systems):
            verdict = verdicts.get((i["item_id"], system.name))
            if verdict is not None and verdict.probabilities is not None:
                probability[row, column] = verdict.probabilities[task.name].get(i["label"], 0.0)
                right[row, column] = verdict.labels[task.name] == i["label"]
    return probability, right


def _verdicts(run: RunFolder, task: TaskData, name: str) -> dict[tuple[str, str], Verdict] | None:
    """An evaluator's verdicts on the arguments as they are now, by item and system; None where it
    is not trained."""
    where = evaluator_folder(run.path, name)
    if not (where / "manifest.json").is_file():
        return None
    signature = trained_manifest(where)["signature"]
    wanted = {
        (
            argument_id(task.name, i["item_id"], s.name),
            content_hash([i["question"], task.text(s.name, i["item_id"]), None]),
        ): (i["item_id"], s.name)
        for i in task.about["instances"]
        for s in task.systems
    }
    return {
        wanted[v.item_id, v.content_hash]: v
        for v in run.verdicts(name)
        if v.signature == signature and (v.item_id, v.content_hash) in wanted
    }


def cut_inputs(run: RunFolder, task: TaskData) -> dict[str, int]:
    """On how many instances the input with a system's argument was longer than some evaluator
    takes, and was cut."""
    cut: dict[str, set[str]] = {s.name: set() for s in task.systems}
    for _, name in task.evaluators:
        for (item, system), verdict in (_verdicts(run, task, name) or {}).items():
            if verdict.reason:
                cut[system].add(item)
    return {system: len(items) for system, items in cut.items()}


def trained(run: RunFolder, tasks: Sequence[TaskData]) -> list[Trained]:
    """What training took, from the manifests."""
    found = []
    for task in tasks:
        for _, name in task.evaluators:
            where = evaluator_folder(run.path, name)
            if (where / "manifest.json").is_file():
                manifest = trained_manifest(where)
                found.append(Trained(**{k: manifest[k] for k in Trained.__slots__}))
    return found


# --- judges --------------------------------------------------------------------------------------


def judge_scores(run: RunFolder, task: TaskData) -> Iterator[RankerScores]:
    """One a judge that was asked about this task's arguments; what it said of an argument as it
    no longer stands is left out."""
    if not task.about["judged"]:
        return
    rubric = run.rubric()
    asked = {
        argument_id(task.name, i["item_id"], s.name): content_hash(
            [asked_question(i["question"], i["context"]), text, None]
        )
        for i in task.about["instances"]
        for s in task.systems
        if (text := task.text(s.name, i["item_id"])) is not None
    }
    for name, about in run.manifest()["judges"].items():
        if about["kind"] not in JUDGE_KINDS or about["kind"] == "control":
            continue
        verdicts = {
            v.item_id: v
            for v in run.verdicts(name)
            if v.signature == about["signature"] and asked.get(v.item_id) == v.content_hash
        }
        values = np.array(
            [
                [
                    _judged(verdicts.get(argument_id(task.name, item, s.name)), rubric)
                    for s in task.systems
                ]
                for item in task.items
            ]
        ).reshape(len(task.items), len(task.systems))
        if not np.isnan(values).all():
            yield _scores(task, name, "judge", values)


def _judged(verdict: Verdict | None, rubric: Rubric) -> float:
    """1 for the least severe label of every ordinal metric, 0 for the most severe ones, the mean
    between; expected over these labels where the judge gave probabilities; NaN where a label is
    missing or an abstention."""
    if verdict is None:
        return float("nan")
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


def control_scores(task: TaskData, seed: int) -> Iterator[RankerScores]:
    """What any ranker must beat: a coin, and one that likes the longest argument best."""
    yield _scores(task, "longest-argument", "control", task.words)
    random = np.random.default_rng([seed, int(content_hash([_WORDS_SEED, task.name]), 16) % 2**32])
    values = random.random(task.words.shape)
    values[np.isnan(task.words)] = np.nan
    yield _scores(task, "random", "control", values)


def _scores(
    task: TaskData,
    ranker: str,
    kind: RankerKind,
    values: FloatArray,
    correct: FloatArray | None = None,
) -> RankerScores:
    return RankerScores(
        task=task.name,
        ranker=ranker,
        kind=kind,
        systems=tuple(s.name for s in task.systems),
        items=task.items,
        clusters=task.clusters,
        values=values,
        correct=correct,
    )
