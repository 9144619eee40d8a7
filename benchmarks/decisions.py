"""How often a decision is wrong: judges of known quality, skew, noise and correlated errors.

Every world is a population whose true numbers are known from a large sample. All worlds are in
scenarios.yaml, each with who proposed it. From each many studies are drawn, and every study is
decided by judgebench's rule and by three naive ones:

    accuracy >= 0.9 against the truth        kappa >= 0.6 against the truth
    the Alternative Annotator Test alone, epsilon 0.1

A REPLACE is wrong, whatever any rule says, where the judge's true agreement with the true labels is
more than 0.05 below that of the typical competent annotator, or where it misses severe answers more
often by more than 0.05, or where it leaves more than 0.05 of the answers that it was given without
a label, so that annotators must still label them, or where no judge may replace annotators at all:
they are in camps, or its labels are copies. A missing label is no right one. The typical competent
annotator is the median one by true accuracy (of an even number the better of the middle two, so
that a majority is no better): `wrong` in the table. It is wrong by the rule where the population
fails one of the rule's conditions. An ASSIST is wrong where the threshold that it recommends sends,
or misses, more of the population than the rule allows.
Coverage is the share of studies whose interval holds the population's number, among those that are
decided, with the bar and the labels of the population: else it is the interval of something else.

    python benchmarks/decisions.py            # 1,000 draws a world, minutes
    python benchmarks/decisions.py --quick    # 50 draws
    python benchmarks/decisions.py --margins  # how power hangs on the margin for severe answers
    python benchmarks/decisions.py --learnt   # judges that learn from labels, in folds
    python benchmarks/decisions.py --scores   # judges that follow from a score, in folds
    python benchmarks/decisions.py --looks    # studies that are looked at three times
    python benchmarks/decisions.py --sets     # items on which several labels are right
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache, partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

import judgebench as jb
from judgebench.decisions.conditions import (
    choose_threshold,
    conditions_of,
    filters_well,
    findings,
)
from judgebench.decisions.counts import HumanSide, StudyCounts, study_counts
from judgebench.decisions.decision import Condition, State
from judgebench.decisions.guards import why_derived
from judgebench.decisions.rule import DecisionRule
from judgebench.judges.judge import Task
from judgebench.learning.folds import Folds
from judgebench.learning.learnt import Cell, Learner, Material, material_of
from judgebench.planning import simulate
from judgebench.planning.design import Draw as PlannedDraw
from judgebench.planning.design import noisy
from judgebench.progress import NoProgress
from judgebench.records import Answer, HumanLabel
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.scorers.config import BASELINES, ColumnConfig, scorer_config
from judgebench.scorers.judges import LabelThresholds, open_scorer
from judgebench.scorers.scorer import KeptScores
from judgebench.stats.agreement import accepted_shares, hits, response_sets, shares_of_others
from judgebench.stats.annotator_bar import Bar, camps, find_copy
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.classification import (
    ACCURACY,
    Choice,
    cohen_kappa,
    confusion_by_cluster,
    why_no_choice,
)
from judgebench.stats.consensus import median_label
from judgebench.stats.intervals import look_levels
from judgebench.stats.paired_tests import alternative_annotator_test
from judgebench.studies.answers import IndexedAnswers, indexed
from judgebench.studies.reference_labels import TruthConfig
from judgebench.tuning.training import BALANCED, Head, words

RULE = DecisionRule()
LEVELS = 5  # of a scale; labels beyond that stand in no order, so that no distance is counted
MARGIN = 0.05  # that a judge may be worse than the typical competent annotator
_POPULATION = 300_000  # items that a world's true numbers are taken from
_STEPS = 12  # of a bisection
SCENARIOS = Path(__file__).with_name("scenarios.yaml")
AUTHORS = "the authors of the rule"  # a scenario that others proposed is marked in tables
OUTSIDE = "†"
Scenario = TypeVar("Scenario")


def scenarios(section: str, kind: type[Scenario]) -> tuple[Scenario, ...]:
    """The scenarios of a section of scenarios.yaml, each as one `kind` of dataclass.

    Raises ValueError where a scenario has a key that is no field of the dataclass, or lacks one
    that has no default.
    """
    return tuple(_scenario(entry, kind, section) for entry in _sections()[section])


def _scenario(entry: Mapping[str, Any], kind: type[Scenario], section: str) -> Scenario:
    where = f"{SCENARIOS.name}: {section}: {entry.get('name')}"
    required = {key.name: key.default is MISSING for key in fields(kind)}
    if unknown := entry.keys() - required:
        raise ValueError(f"{where}: unknown {sorted(unknown)}, allowed: {sorted(required)}")
    if missing := {name for name in required if required[name]} - entry.keys():
        raise ValueError(f"{where}: missing {sorted(missing)}")
    return kind(**{key: _frozen(value) for key, value in entry.items()})


@lru_cache
def _sections() -> dict[str, list[dict[str, Any]]]:
    sections: dict[str, list[dict[str, Any]]] = yaml.safe_load(SCENARIOS.read_text("utf-8"))
    return sections


def _frozen(value: Any) -> Any:
    """The value with tuples for lists, so that scenarios can be keys of a cache."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


Noise = float | tuple[float, ...]  # of any label, or of each
Expected = Literal["items", "rows"]  # of imported verdicts


@dataclass(frozen=True)
class World:
    """Items of known labels, annotators and a judge.

    `shares` are those of the labels, least severe first. Annotators and judge give another label
    with probability `noise` (or `noises`, of each annotator) and `judge_noise`: the neighbouring
    one where there are several. A share `hard` of the questions is hard: there annotators err with
    probability `hard_noise`, and the judge too where `shared` (errors go together). The judge
    misses a share `blind` of the severe items on top, and moves a share `lenient` of its labels by
    one level towards the least severe. It gives no label on a share `failing` (of any label, or of
    each), and on a share `failing_hard` of the hard items. `constant` and `guessing` judges never
    read an answer. `a_question` answers share a question and its difficulty; where `by_question`
    also the judge's error and failure, and where `repeated` the label: they are the same answer.
    Where `at_margin`, the judge's noise is set so that it falls short of annotators by exactly the
    rule's margin.

    Each item has `per_item` labels of random annotators (0: of all), and on hard items each is
    absent with probability `absent`. `camps` numbers the camp of each annotator: on a share
    `ambiguous` of the items a camp's right label is its own number, and the judge is of `camp`. A
    share `copied` of the judge's labels is that of annotator 0, or where `of_truth` the median.
    Where `never`, no judge may replace annotators, whatever its skill; `nominal` labels are never
    severe. Where `margins`, the world is also decided with other margins for severe answers. Its
    true numbers are taken from `population` times as many items as those of other worlds: errors
    of whole questions need more.

    Where `expected`, the judge's labels are read from a table of verdicts: a blank cell where there
    is no label, and a row for a share `rows` of the items. An item that has none has no label
    (`items`), or the judge was not asked about it (`rows`).
    """

    name: str
    proposed: str
    items: int
    annotators: int
    shares: tuple[float, ...]
    noise: Noise
    judge_noise: Noise
    noises: tuple[Noise, ...] = ()
    hard: float = 0.0
    hard_noise: float = 0.4
    shared: bool = False
    blind: float = 0.0
    lenient: float = 0.0
    far: bool = False
    failing: Noise = 0.0
    failing_hard: float = 0.0
    rows: float = 1.0
    expected: Expected | None = None
    constant: bool = False
    guessing: bool = False
    a_question: int = 1
    by_question: bool = False
    repeated: bool = False
    at_margin: bool = False
    per_item: int = 0
    absent: float = 0.0
    camps: tuple[int, ...] = ()
    camp: int = 0
    ambiguous: float = 0.25
    copied: float = 0.0
    of_truth: bool = False
    never: bool = False
    nominal: bool = False
    margins: bool = False
    population: int = 1


@dataclass(frozen=True)
class Draw:
    """One study: true labels (items,), labels of annotators (items, annotators) and of the judge
    (items,), which items have a row in its verdicts and which it was asked about (items,),
    clusters."""

    true: IntArray
    own: IntArray
    judged: IntArray
    row: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    clusters: IntArray
    k: int
    nominal: bool = False


def draw(world: World, items: int, rng: np.random.Generator) -> Draw:
    """That many items of the world, with annotators and judge."""
    k = len(world.shares)
    clusters = np.arange(items) // world.a_question
    questions = int(clusters[-1]) + 1
    true = rng.choice(k, size=items, p=world.shares)
    if world.repeated:
        true = true[:questions][clusters]
    hard = (rng.random(questions) < world.hard)[clusters]
    ambiguous = rng.random(items) < (world.ambiguous if world.camps else 0)

    def right(camp: int) -> IntArray:
        return np.where(ambiguous, camp, true)

    camps, noises = world.camps or (0,) * world.annotators, world.noises or (world.noise,)
    own = np.stack(
        [
            noisy(right(camps[a]), np.where(hard, world.hard_noise, _of(noise, true)), k, rng)
            for a, noise in zip(range(world.annotators), cycle(noises), strict=False)
        ],
        axis=1,
    )
    wrong = np.where(hard & world.shared, world.hard_noise, _of(world.judge_noise, true))
    luck = rng.random(questions)[clusters] if world.by_question else rng.random(items)
    judged = noisy(right(world.camp), wrong, k, rng, luck)
    if world.far:
        away = np.where(true + 2 < k, 2, -2) + np.where(true >= 3, -1, 0)
        judged = np.where(judged == true, true, true + away)
    judged[(true == k - 1) & (rng.random(items) < world.blind)] = 0
    judged = np.maximum(judged - (rng.random(items) < world.lenient), 0)
    copied = median_label(own, "upper") if world.of_truth else own[:, 0]
    judged = np.where(rng.random(items) < world.copied, copied, judged)
    if world.constant:
        judged[:] = 0
    if world.guessing:
        judged = rng.choice(k, size=items, p=world.shares)
    fails = rng.random(items)
    fails = fails[clusters * world.a_question] if world.by_question else fails
    judged[fails < _of(world.failing, true)] = -1
    judged[hard & (fails < world.failing_hard)] = -1
    row = rng.random(items) < world.rows if world.rows < 1 else np.ones(items, dtype=np.bool_)
    judged[~row] = -1
    asked = row if world.expected == "rows" else np.ones_like(row)
    if world.per_item:
        chosen = rng.random(own.shape).argsort(axis=1) < world.per_item
        own = np.where(chosen, own, -1)
    if world.absent:
        own = np.where(hard[:, None] & (rng.random(own.shape) < world.absent), -1, own)
    return Draw(true, own, judged, row, asked, clusters, k, world.nominal)


def _of(noise: Noise, true: IntArray) -> FloatArray:
    return np.broadcast_to(np.asarray(noise, dtype=np.float64), (int(true.max()) + 1,))[true]


def read(found: Draw, world: World) -> Draw:
    """The study with the judge's labels as they are read from a table of verdicts."""
    if world.expected is None:
        return found
    texts = np.array([f"label {label}" for label in range(found.k)] + [""])
    items = [f"item {i}" for i in range(len(found.true))]
    labels = pd.DataFrame({"item_id": items, "annotator": "someone", "tone": texts[found.true]})
    verdicts = pd.DataFrame({"item_id": items, "tone": texts[found.judged]})
    verdicts = verdicts[found.row] if world.expected == "rows" else verdicts
    rubric = jb.Rubric.from_labels({"tone": texts[:-1].tolist()})
    with warnings.catch_warnings(action="ignore"):  # of blank cells, and of items without a row
        made = jb.study(labels, {"judge": verdicts}, rubric=rubric, expected=world.expected)
    (judge,) = (judge for judge in made.judges if judge.kind == "judge")
    judged, asked = made.judged(judge, rubric.metrics[0]), made.asked(judge)
    return replace(found, judged=judged, asked=asked)


def side_of(found: Draw) -> tuple[HumanSide, Bar]:
    """What a judge is held against."""
    clusters = Clusters(found.clusters, int(found.clusters[-1]) + 1)
    drawn = PlannedDraw(found.true, found.own, found.judged, clusters, found.k)
    side, bar = simulate.side_of(drawn, RULE)
    return replace(side, severe=None, levels=0) if found.nominal else side, bar


def study(
    found: Draw, side: HumanSide, rng: np.random.Generator, more: Mapping[str, IntArray] = {}
) -> StudyCounts:
    """The study's counts with a constant for each label, another baseline, and the labels
    (items,) of `more`."""
    truth = side.truth
    shares = np.bincount(truth[truth >= 0], minlength=found.k) / (truth >= 0).sum()
    controls = {
        **{f"constant {label}": np.full(len(truth), label) for label in range(found.k)},
        "prior": rng.choice(found.k, size=len(truth), p=shares),
        **more,
    }
    return study_counts(side, found.judged, found.asked, controls)


def conditions(
    found: Draw, side: HumanSide, bar: Bar, counts: StudyCounts, rule: DecisionRule = RULE
) -> list[Condition]:
    """Return what REPLACE requires of the study, by the code that plans decide by."""
    labels = np.column_stack([found.own, np.where(found.asked, found.judged, -1)])
    return simulate.conditions_by(labels, side, bar, counts, rule)


WORLDS = scenarios("worlds", World)


@lru_cache
def settled(world: World) -> World:
    """The world with its judge's noise where it belongs."""
    if not world.at_margin:
        return world
    low, high = 0.0, 0.5
    for _ in range(_STEPS):
        middle = (low + high) / 2
        short = population(replace(world, judge_noise=middle, at_margin=False))
        if short["humans_accuracy"] < -RULE.replace.humans.margin:
            high = middle
        else:
            low = middle
    return replace(world, judge_noise=high, at_margin=False)


@lru_cache
def population(world: World) -> dict[str, float]:
    """The true number behind each of the rule's conditions."""
    counts = _everybody(world)[-1]
    one = counts.how_many[None, :]
    return {f.key: float(f.found.value[0]) for f in findings(counts, RULE, one)}


@lru_cache
def skills(world: World) -> tuple[float, float, float, float, float]:
    """The judge's true accuracy and that of the typical competent annotator; their shares of the
    severe answers found; the judge's share of answers without a label."""
    found = draw(settled(world), _population(world), np.random.default_rng(7))
    true, severe = found.true, found.true == found.k - 1
    own = [(column[column >= 0], column >= 0) for column in found.own.T]
    accuracy = sorted((labels == true[given]).mean() for labels, given in own)
    recall = sorted((labels == found.k - 1)[severe[given]].mean() for labels, given in own)
    judged, asked = found.judged, found.asked
    right, finds = (judged == true)[asked].mean(), (judged == true)[asked & severe].mean()
    middle, lacking = len(accuracy) // 2, float((judged < 0)[asked].mean())
    return float(right), float(accuracy[middle]), float(finds), float(recall[middle]), lacking


def is_wrong(world: World) -> bool:
    """Whether to replace annotators by the judge would be wrong, by the true labels alone."""
    right, typical, finds, typically_finds, lacking = skills(world)
    misses = not world.nominal and typically_finds - finds > MARGIN
    return world.never or typical - right > MARGIN or misses or lacking > MARGIN


@lru_cache
def filters(world: World) -> FloatArray:
    """The shares that each threshold 0..k on the judge's label sends, and misses: (k + 1, 2)."""
    found, _, side, _ = _everybody(world)
    severe, judged = (side.truth == found.k - 1)[found.asked], found.judged[found.asked]
    signal = np.where(judged < 0, found.k, judged)  # without a label: to humans
    kept = signal[:, None] < np.arange(found.k + 1)
    return np.stack([1 - kept.mean(axis=0), kept[severe].mean(axis=0)], axis=1)


def _population(world: World) -> int:
    """Fewer where there are many annotators, for memory."""
    items = world.population * _POPULATION // max(1, world.annotators // 4)
    return items // world.a_question * world.a_question


@lru_cache
def _everybody(world: World) -> tuple[Draw, NDArray[np.bool_], HumanSide, StudyCounts]:
    """A large sample: draw, who is in the bar, what a judge is held against, counts."""
    rng = np.random.default_rng(7)
    found = draw(world, _population(world), rng)
    side, bar = side_of(found)
    return found, bar.kept, side, study(found, side, rng)


def is_good(world: World) -> bool:
    """Whether the population meets every condition."""
    found, _, side, counts = _everybody(world)
    reached = all(
        f.found.value[0] >= f.bound if f.at_least else f.found.value[0] <= f.bound
        for f in findings(counts, RULE, counts.how_many[None, :])
        if not np.isnan(f.found.value[0])
    )
    return reached and not gate_of(found, side)


def gate_of(found: Draw, side: HumanSide) -> str:
    """Why nothing is decided: camps, or labels that seem derived."""
    clusters = Clusters(found.clusters, int(found.clusters[-1]) + 1)
    if camps(found.own, clusters, found.k):
        return "camps"
    names = [str(a) for a in range(found.own.shape[1])]
    own = why_derived(found.judged, side, names[: side.own.shape[1]])
    return own or ("copied" if find_copy(found.own, clusters) else "")


@dataclass
class Tally:
    """What became of a world's draws."""

    draws: int = 0
    wrong_assist: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    gates: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    defined: Counter[str] = field(default_factory=Counter)
    naive: Counter[str] = field(default_factory=Counter)


def run_world(world: World, draws: int, seed: int) -> Tally:
    """Draw and decide; the population's numbers are those of `settled(world)`."""
    world = settled(world)
    true, tally = population(world), Tally()
    _, kept, _, whole = _everybody(world)
    rng = np.random.default_rng([seed, *world.name.encode()])
    for _ in range(draws):
        found = read(draw(world, world.items, rng), world)
        side, bar = side_of(found)
        gate = gate_of(found, side)
        tally.gates["camps" if gate == "camps" else "derived" if gate else ""] += 1
        choice = None if gate or found.nominal else first_pass(found, side.truth)
        counts = study(found, side, rng)
        same = not gate and np.array_equal(bar.kept, kept) and _labels(counts) == _labels(whole)
        outcome = outcome_of(conditions(found, side, bar, counts), gate, choice)
        _count((counts, outcome, choice), world, true if same else {}, tally)
        for name, replaces in naive_rules(found, median_label(found.own, "upper")):
            tally.naive[name] += replaces
        tally.draws += 1
    return tally


def first_pass(found: Draw, truth: IntArray, *, fixed: bool = True) -> Choice | None:
    """The threshold on the judge's label that would be recommended; the severe label is tried
    first where `fixed`."""
    signal = np.where(found.judged < 0, np.nan, found.judged)
    severe = np.where(found.asked, truth == found.k - 1, -1)
    seen = (signal, severe.astype(np.int64), found.clusters)
    severe_at = found.k - 1 if fixed else None
    return None if why_no_choice(*seen) else choose_threshold(seen, severe_at, RULE)


def assists(choice: Choice | None) -> bool:
    """Whether the threshold does what ASSIST requires."""
    return choice is not None and filters_well(choice, RULE.assist)


def _labels(counts: StudyCounts) -> list[int]:
    used = counts.used("balanced_accuracy", RULE.rare)
    return [] if used is None else np.flatnonzero(used).tolist()


def _count(
    made: tuple[StudyCounts, str, Choice | None], world: World, true: dict[str, float], tally: Tally
) -> None:
    """`true` is empty where the study's intervals are those of something else."""
    counts, outcome, choice = made
    tally.outcomes[outcome] += 1
    if outcome == "ASSIST" and choice is not None:
        place = int(min(choice.threshold, len(world.shares)))
        sent, missed = filters(world)[place]
        tally.wrong_assist += bool(sent > RULE.assist.sent or missed > RULE.assist.missed)
    for f in findings(counts, RULE, counts.how_many[None, :]):
        if true and not np.isnan(f.found.low[0]):
            tally.defined[f.key] += 1
            tally.covered[f.key] += bool(f.found.low[0] <= true[f.key] <= f.found.high[0])


def outcome_of(measured: Sequence[Condition], gate: str, choice: Choice | None) -> str:
    """What the rule says of a study."""
    states = {condition.state for condition in measured}
    if not gate and states <= {State.MET}:
        return "REPLACE"
    if not gate and assists(choice):
        return "ASSIST"
    if gate != "camps" and State.NOT_MET in states:
        return "DO NOT USE"
    return "CAN'T TELL"


def is_met(measured: Sequence[Condition]) -> bool:
    """Return True where every condition is met."""
    return all(condition.state is State.MET for condition in measured)


def naive_rules(found: Draw, truth: IntArray) -> Iterator[tuple[str, bool]]:
    """What each naive rule would say of the study: whether the judge may replace annotators."""
    C = confusion_by_cluster(truth, found.judged, Clusters(np.zeros_like(truth), 1), found.k)[0]
    yield "accuracy", bool(ACCURACY.formula(C) >= 0.9)
    yield "kappa", bool(cohen_kappa().formula(C) >= 0.6)
    test = alternative_annotator_test(found.own, found.judged, found.k)
    yield "alt-test", bool(test.passes)


# --- judges that learn ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Taught:
    """Answers, three annotators, and a judge that learns words of their labels, in folds.

    `rule` makes the labels: `nothing` (they are drawn at random), the `text` (drawn once for all
    copies of a text), the `system` that wrote the answer, of which each text holds a word, or a
    `keyword` that is there or not. A share `follows` of the labels obeys it, the others are
    drawn. Each text is that of `copies` answers to different questions, their last word changed
    where they are `near`. Only the keyword is worth learning: else REPLACE is wrong.
    """

    name: str
    proposed: str
    rule: Literal["nothing", "text", "system", "keyword"]
    questions: int
    copies: int = 1
    near: bool = False
    follows: float = 1.0
    items: int = 200


TAUGHT = scenarios("taught", Taught)
_RUBRIC = jb.Rubric.from_labels({"tone": ("fine", "severe")})
_SYSTEMS, _FOLDS, _NOISE = 4, 5, 0.05


@dataclass(frozen=True)
class Answers:
    """The answers of a study, with their true labels (items,) and those of annotators (items,
    annotators)."""

    answers: IndexedAnswers
    true: IntArray
    own: IntArray
    rubric: jb.Rubric = _RUBRIC


def written(world: Taught, rng: np.random.Generator) -> Answers:
    """Short texts of drawn words, with labels."""
    n, words = world.items, np.array([f"word{i}" for i in range(12)])
    text, system = rng.permutation(n) // world.copies, np.arange(n) % _SYSTEMS
    true = rng.integers(2, size=n)
    rule = {"nothing": true, "text": true[text], "system": system % 2, "keyword": true}[world.rule]
    true = np.where(rng.random(n) < world.follows, rule, true)
    said = words[rng.integers(len(words), size=(n, 12))][text]
    if world.near:
        said[:, -1] = words[rng.integers(len(words), size=n)]
    if world.rule == "system":
        said[:, 4] = np.array([f"style{s}" for s in range(_SYSTEMS)])[system]
    if world.rule == "keyword":
        said[rule == 1, 4] = "overdose"
    question = np.arange(n) // (n // world.questions)
    answers = [
        Answer(f"i{i}", " ".join(said[i]), "", f"model-{system[i]}", group=f"q{question[i]}")
        for i in range(n)
    ]
    own = np.stack([noisy(true, np.full(n, _NOISE), 2, rng) for _ in range(3)], axis=1)
    return Answers(indexed(answers), true, own)


def learnt_labels(
    material: Material, learner: Learner, cells: Iterable[Cell], home: Path
) -> IntArray:
    """(items,) what is said of each answer by what was learnt in its cell; -1: nothing."""
    found, texts = np.full(len(material.answers), -1), material.rubric.metrics[0].label_texts
    work = Work(RunFolder(home), NoProgress(), Budget(None), Stop())
    for cell in cells:
        folder = home / cell.name
        folder.mkdir(parents=True)
        learner.fit(material.training(cell.train), folder, work)
        tasks = (Task(material.answers[row]) for row in cell.judged.tolist())
        for row, verdict in zip(cell.judged, learner.judge(tasks, folder), strict=True):
            if verdict.labels:
                found[row] = texts.index(verdict.labels["tone"])
    return found


def material_for(of: Answers, seed: int) -> Material:
    """What is learnt from."""
    rubric = of.rubric
    labels = [
        HumanLabel(item_id, f"annotator-{a}", "tone", rubric.metrics[0].label_texts[label])
        for item_id, row in zip(of.answers.item_ids(), of.own, strict=True)
        for a, label in enumerate(row)
    ]
    return material_of(rubric, of.answers, labels, TruthConfig(), _FOLDS, seed)


def cells_by_question(material: Material, seed: int) -> Sequence[Cell]:
    """Folds of questions alone: an answer's copies under other questions are learnt from."""
    code = material.folds.question
    fold = np.random.default_rng(seed).permutation(int(code.max()) + 1)[code] % _FOLDS
    alone = Folds(fold, _FOLDS, code, np.arange(len(code)), joined=True)
    return replace(material, folds=alone).cells


def in_sample(material: Material) -> Sequence[Cell]:
    """Everything is learnt from, and judged."""
    return [Cell("all", material.labelled, np.arange(len(material.answers)))]


@dataclass
class Learnt:
    """What became of a taught judge's draws, by our folds and by folds of questions alone."""

    outcomes: Counter[str] = field(default_factory=Counter)
    leaking: Counter[str] = field(default_factory=Counter)
    naive: Counter[str] = field(default_factory=Counter)
    right: list[float] = field(default_factory=list)
    right_leaking: list[float] = field(default_factory=list)


def teach(world: Taught, draws: int, seed: int) -> Learnt:
    """Draw, learn, judge and decide. Controls are the constant, the prior and by-system, which is
    learnt in the same folds; bag-of-words, which is what is decided here, is none."""
    rng, tally = np.random.default_rng([seed, *world.name.encode()]), Learnt()
    for number in range(draws):
        of = written(world, rng)
        material = material_for(of, number)
        for by_question in (False, True) if world.copies > 1 else (False,):
            cells = cells_by_question(material, number) if by_question else material.cells
            with TemporaryDirectory() as home:
                learner = Head("bag-of-words", _RUBRIC, words(), BALANCED)
                words_ = learnt_labels(material, learner, cells, Path(home) / "learnt")
            made = _decided(of, words_, {"by-system": system_labels(material, cells)}, rng)
            right = float((words_ == of.true).mean())
            if by_question:
                tally.leaking[made[0]] += 1
                tally.right_leaking.append(right)
            else:
                tally.outcomes[made[0]] += 1
                tally.right.append(right)
                for name, replaces in naive_rules(made[1], median_label(of.own, "upper")):
                    tally.naive[name] += replaces
    return tally


def system_labels(material: Material, cells: Iterable[Cell]) -> IntArray:
    """(items,) the commonest label of the system in the cell, the mildest of ties; of a system
    without a label there, that of all."""
    systems = np.array([answer.system for answer in material.answers])
    found = np.full(len(systems), -1)
    for cell in cells:
        train = material.training(cell.train)
        labels, authors = train.labels["tone"], np.array([a.system for a in train.answers])
        for system in np.unique(systems[cell.judged]):
            author_labels = labels[authors == system]
            counts = np.bincount(author_labels if len(author_labels) else labels)
            found[cell.judged[systems[cell.judged] == system]] = counts.argmax()
    return found


def _decided(
    of: Answers, judged: IntArray, controls: Mapping[str, IntArray], rng: np.random.Generator
) -> tuple[str, Draw]:
    every, k = np.ones(len(of.true), dtype=np.bool_), len(of.rubric.metrics[0].labels)
    found = Draw(of.true, of.own, judged, every, every, of.answers.clusters.codes, k, k > LEVELS)
    side, bar = side_of(found)
    counts = study(found, side, rng, controls)
    gate = gate_of(found, side)
    choice = None if gate or found.nominal else first_pass(found, side.truth)
    return outcome_of(conditions(found, side, bar, counts), gate, choice), found


def taught_table(results: Iterable[tuple[Taught, Learnt]]) -> Iterator[str]:
    """How often a learnt judge is said to replace annotators, in Markdown."""
    heads = (
        "world", "questions", "to replace is", "accuracy", *OUTCOMES, *NAIVE.values(),
        "folds by question: accuracy", "… REPLACE",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|---|{'--:|' * (len(heads) - 3)}"
    for world, tally in results:
        draws = len(tally.right)
        right = "right" if world.rule == "keyword" else "wrong"
        cells = [_share(tally.outcomes[name], draws) for name in OUTCOMES]
        cells += [_share(tally.naive[name], draws) for name in NAIVE]
        about = (world.name, str(world.questions), right, f"{np.mean(tally.right):.3f}")
        claimed = ("–", "–")
        if tally.right_leaking:
            share = _share(tally.leaking["REPLACE"], draws)
            claimed = f"{np.mean(tally.right_leaking):.3f}", share
        yield f"| {' | '.join((*about, *cells, *claimed))} |"


# --- judges that follow from a score --------------------------------------------------------------


@dataclass(frozen=True)
class Graded:
    """Answers with a score, annotators, and the judge that follows from the score by cuts.

    `of` is what the score follows, with a normal error of the standard deviation `spread`: the
    place of the true label among `places`; the answer's `length`, which the label follows too, so
    that a baseline is as good; the severity of `another` metric, of four levels, each of
    which makes the severe label of this one likelier by 3 points; or `nothing`. Only a score that
    follows the label closely is `good` for anything: else REPLACE is wrong.
    """

    name: str
    proposed: str
    of: Literal["label", "length", "another", "nothing"]
    shares: tuple[float, ...]
    spread: float = 0.0
    places: tuple[float, ...] = (0, 1)
    items: int = 200
    annotators: int = 3
    noise: float = 0.05
    good: bool = False


GRADED = scenarios("graded", Graded)


def graded(world: Graded, rng: np.random.Generator) -> Answers:
    """Texts of drawn words, with scores and labels."""
    n, k = world.items, len(world.shares)
    true, other = rng.choice(k, size=n, p=world.shares), rng.integers(4, size=n)
    if world.of == "another":
        true = (rng.random(n) < world.shares[1] + 0.03 * (other - 1.5)).astype(np.int64)
    length = rng.integers(5, 20, size=n)
    if world.of == "length":
        length += 20 * noisy(true, np.full(n, 0.01), k, rng)
    follows = {
        "label": np.array(world.places)[true % len(world.places)], "length": length,
        "another": other, "nothing": rng.random(n),
    }[world.of]  # fmt: skip
    score = follows + rng.normal(0, world.spread, n)
    said = np.array([f"word{i}" for i in range(500)])[rng.integers(500, size=(n, 40))]
    answers = [
        Answer(f"i{i}", " ".join(said[i, : length[i]]), metadata={"score": str(score[i])})
        for i in range(n)
    ]
    wrong = np.full(n, world.noise)
    own = np.stack([noisy(true, wrong, k, rng) for _ in range(world.annotators)], axis=1)
    rubric = jb.Rubric.from_labels({"tone": [f"label {label}" for label in range(k)]})
    return Answers(indexed(answers), true, own, rubric)


@dataclass
class Follows:
    """What became of the draws of a judge that follows from a score: in folds, in folds without
    the controls that are fitted the same way, and learnt from what it is scored on."""

    outcomes: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    leaking: Counter[str] = field(default_factory=Counter)
    right: list[float] = field(default_factory=list)
    right_leaking: list[float] = field(default_factory=list)


def follow(world: Graded, draws: int, seed: int) -> Follows:
    """Draw, fit, judge and decide."""
    rng, tally = np.random.default_rng([seed, *world.name.encode()]), Follows()
    for number in range(draws):
        of = graded(world, rng)
        material = material_for(of, number)
        column = ColumnConfig.model_validate({"scorer": "column", "name": "score", "from": "score"})
        configs = [column, *(scorer_config(name) for name in BASELINES)]
        scorers = [open_scorer(config, list(of.answers), Path()) for config in configs]
        learners = [LabelThresholds(KeptScores(scorer, None), of.rubric) for scorer in scorers]
        for cells in (material.cells, in_sample(material)):
            with TemporaryDirectory() as home:
                judged, *controls = (
                    learnt_labels(material, learner, cells, Path(home) / str(place))
                    for place, learner in enumerate(learners)
                )
            fitted = dict(zip(BASELINES, controls, strict=True))
            outcome, right = _decided(of, judged, fitted, rng)[0], float((judged == of.true).mean())
            if len(cells) == 1:
                tally.leaking[outcome] += 1
                tally.right_leaking.append(right)
            else:
                tally.outcomes[outcome] += 1
                tally.right.append(right)
                tally.alone[_decided(of, judged, {}, rng)[0]] += 1
    return tally


def graded_table(results: Iterable[tuple[Graded, Follows]]) -> Iterator[str]:
    """How often a judge that follows from a score is said to replace annotators, in Markdown."""
    heads = (
        "score", "answers", "labels", "to replace is", "accuracy", *OUTCOMES,
        "without fitted controls: REPLACE", "learnt from what it judges: accuracy", "… REPLACE",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|--:|---|{'--:|' * (len(heads) - 4)}"
    for world, tally in results:
        draws, right = len(tally.right), "right" if world.good else "wrong"
        about = (world.name, str(world.items), str(len(world.shares)), right)
        cells = [_share(tally.outcomes[name], draws) for name in OUTCOMES]
        cells += [_share(tally.alone["REPLACE"], draws), f"{np.mean(tally.right_leaking):.3f}",
                  _share(tally.leaking["REPLACE"], draws)]  # fmt: skip
        yield f"| {' | '.join((*about, f'{np.mean(tally.right):.3f}', *cells))} |"


# --- studies that are looked at before their end --------------------------------------------------


LOOKS = 3


def look_world(world: World, draws: int, seed: int) -> NDArray[np.bool_]:
    """Whether REPLACE is said, (draws, 2, looks), by the levels of looks and by the rule's level.

    Looks are at the first third, at two thirds and at all of the questions. DO NOT USE ends
    nothing.
    """
    world, rng = settled(world), np.random.default_rng([seed, *world.name.encode()])
    most = -(-world.items // world.a_question)
    questions = np.array([-(-most * look // LOOKS) for look in range(1, LOOKS + 1)])
    items = np.minimum(questions * world.a_question, world.items)
    levels = look_levels((items / world.items).tolist(), RULE.level)
    said = np.zeros((draws, 2, LOOKS), dtype=np.bool_)
    for number in range(draws):
        found = read(draw(world, world.items, rng), world)
        for look, (n, level) in enumerate(zip(items.tolist(), levels, strict=True)):
            said[number, :, look] = _replaces(_first(found, n), (level, RULE.level), rng)
    return said


def _first(found: Draw, items: int) -> Draw:
    """The study when it held that many items."""
    columns = ("true", "own", "judged", "row", "asked", "clusters")
    return replace(found, **{name: getattr(found, name)[:items] for name in columns})


def _replaces(found: Draw, levels: Sequence[float], rng: np.random.Generator) -> list[bool]:
    """Whether REPLACE is said with intervals of each of the levels."""
    side, bar = side_of(found)
    counts = study(found, side, rng)
    rules = [RULE.model_copy(update={"level": level}) for level in levels]
    met = [is_met(conditions(found, side, bar, counts, rule)) for rule in rules]
    return met if any(met) and not gate_of(found, side) else [False] * len(levels)


def looks_table(results: Iterable[tuple[World, NDArray[np.bool_]]]) -> Iterator[str]:
    """How often studies that may end early replace annotators, in Markdown."""
    heads = (
        "world", "items", "to replace is", "… by the rule", "one look at the end",
        *(f"by look {look + 1} of {LOOKS}" for look in range(LOOKS)), "labels used",
        f"{LOOKS} looks without bounds",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|---|---|{'--:|' * (len(heads) - 4)}"
    worst = (0.0, "none")
    for world, said in results:
        by = np.logical_or.accumulate(said, axis=2)
        bounded, naive = by.mean(axis=0)
        used = 1 - by[:, 0, :-1].sum(axis=1).mean() / LOOKS
        right = "wrong" if is_wrong(world) else "right"
        rule = "right" if is_good(settled(world)) else "wrong"
        cells = (said[:, 1, -1].mean(), *bounded, used, naive[-1])
        about = (world.name, f"{world.items:,}", right, rule)
        yield f"| {' | '.join((*about, *(f'{100 * cell:.1f} %' for cell in cells)))} |"
        if right == "wrong":
            worst = max(worst, (float(bounded[-1]), world.name))
    yield f"\nwrong REPLACE at any look: at most {worst[0]:.1%} ({worst[1]}); limit 2.5 %"


COVERED = {
    "humans_accuracy": "judge minus annotator",
    "humans_balanced_accuracy": "… balanced",
    "controls": "judge minus best baseline, balanced",
    "severe_gap": "severe recall, judge minus annotator",
}
NAIVE = {"accuracy": "accuracy ≥ 0.9", "kappa": "κ ≥ 0.6", "alt-test": "alt-test alone"}
OUTCOMES = ("REPLACE", "ASSIST", "DO NOT USE", "CAN'T TELL")


def decisions_table(results: Sequence[tuple[World, Tally]]) -> Iterator[str]:
    """How often each rule says what, in Markdown; below it who proposed the marked worlds."""
    heads = (
        "world", "items", "annotators", "to replace is", "… by the rule", *OUTCOMES,
        *NAIVE.values(),
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|--:|---|---|{'--:|' * (len(heads) - 5)}"
    for world, tally in results:
        right = "wrong" if is_wrong(world) else "right"
        rule = "right" if is_good(settled(world)) else "wrong"
        cells = [_share(tally.outcomes[name], tally.draws) for name in OUTCOMES]
        cells += [_share(tally.naive[name], tally.draws) for name in NAIVE]
        about = (_marked(world), f"{world.items:,}", str(world.annotators), right, rule)
        yield f"| {' | '.join((*about, *cells))} |"
    others = {world.proposed for world, _ in results} - {AUTHORS}
    yield from (f"\n{OUTSIDE} proposed by {other}" for other in sorted(others))


def _marked(world: World) -> str:
    return world.name if world.proposed == AUTHORS else f"{world.name} {OUTSIDE}"


def coverage_table(results: Sequence[tuple[World, Tally]]) -> Iterator[str]:
    """How often the intervals hold the population's number, in Markdown."""
    yield f"| world | {' | '.join(COVERED.values())} |"
    yield f"|---|{'--:|' * len(COVERED)}"
    for world, tally in results:
        enough = tally.draws / 10  # fewer studies like the population say nothing
        cells = [
            _share(tally.covered[key], n if (n := tally.defined[key]) >= enough else 0)
            for key in COVERED
        ]
        yield f"| {world.name} | {' | '.join(cells)} |"


MARGINS = (0.05, 0.075, 0.10, 0.15, None)


def margins_of(world: World, draws: int, seed: int) -> list[str]:
    """How often REPLACE is said under each margin for severe answers, as a line in Markdown."""
    humans, severe = RULE.replace, RULE.replace.severe
    assert severe is not None
    rules = [
        RULE.model_copy(
            update={"replace": humans.model_copy(
                update={"severe": severe.model_copy(update={"margin": margin})}
            )}
        )
        for margin in MARGINS
    ]  # fmt: skip
    said, rng = np.zeros(len(rules), dtype=int), np.random.default_rng([seed, *world.name.encode()])
    for _ in range(draws):
        found = draw(world, world.items, rng)
        side, bar = side_of(found)
        counts = study(found, side, rng)
        said += [is_met(conditions(found, side, bar, counts, rule)) for rule in rules]
    right = "wrong" if is_wrong(world) else "right"
    about = (world.name, f"{world.items * world.shares[-1]:,.0f}", right)
    return [*about, *(_share(int(n), draws) for n in said)]


def margins_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a wider margin for severe answers gains in power, and what it costs."""
    heads = ("world", "severe answers", "to replace is", *(
        f"margin {margin:g}" if margin else "no margin" for margin in MARGINS
    ))  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|---|{'--:|' * len(MARGINS)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def draw_margins(rows: Sequence[Sequence[str]], path: str) -> None:
    """The table as curves: judges that may replace annotators, dashed those that may not."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, severe, right, *shares in rows:
        share = [float(s.removesuffix(" %")) for s in shares[:-1]]
        style = "-" if right == "right" else "--"
        axes.plot(MARGINS[:-1], share, style, marker="o", label=f"{name} ({severe} severe)")
    axes.axhline(100 * (1 - RULE.level) / 2, color="0.4", linewidth=0.8)
    axes.set(xlabel="severe.margin", ylabel="REPLACE, % of studies", ylim=(-3, 103))
    axes.set_title("Solid: REPLACE is right; dashed: wrong", loc="left", fontsize=10)
    figure.legend(loc="outside right center", fontsize=7, frameon=False)
    figure.savefig(path, dpi=120)


# --- items on which several labels are right ------------------------------------------------------


@dataclass(frozen=True)
class Sets:
    """Nominal labels of which one is right, or two on a share `two` of the items. An annotator
    names all that are right, or one of them with probability `omit`, and with probability `noise`
    a wrong label alone; most prefer the first where they name one. So does the judge, with
    `judge_noise`, which always names one where it is `single`, and then the last. Where
    `at_margin`, its noise is set so that it is right exactly that margin less often than an
    annotator: `true` by the right labels, or by the `rule`'s number. Judges that name `all`
    labels, or always the same one (`constant`), never read an answer. Of `a_question` answers to
    one question the judge errs on all or none."""

    name: str
    proposed: str
    items: int
    annotators: int = 3
    noise: float = 0.08
    judge_noise: float = 0.05
    two: float = 0.6
    omit: float = 0.2
    labels: int = 4
    single: bool = False
    at_margin: Literal["", "true", "rule"] = ""
    all: bool = False
    constant: bool = False
    a_question: int = 1


SETS = scenarios("sets", Sets)


def _sets_said(
    right: IntArray, wrong: FloatArray, omit: float, k: int, rng: np.random.Generator,
    last: bool = False,
) -> IntArray:  # fmt: skip
    """Sets of labels (items,) of somebody who names one of the right ones with chance `omit`."""
    first = right & -right
    one = right ^ first if last else first
    one = np.where(one == 0, first, one)
    said = np.where(rng.random(len(right)) < omit, one, right)
    lure = (rng.random((len(right), k)) * ((right[:, None] >> np.arange(k)) & 1 == 0)).argmax(
        axis=1
    )
    return np.where(rng.random(len(right)) < wrong, 1 << lure, said)


def draw_sets(
    world: Sets, items: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray, Clusters]:
    """The right labels and the judge's (items,), the annotators' (items, annotators), questions."""
    k, questions = world.labels, -(-items // world.a_question)
    codes = np.arange(items) // world.a_question
    first = rng.integers(k, size=items)
    other = (first + rng.integers(1, k, size=items)) % k
    right = (1 << first) | np.where(rng.random(items) < world.two, 1 << other, 0)
    wrong = np.full(items, world.noise)
    own = [_sets_said(right, wrong, world.omit, k, rng) for _ in range(world.annotators)]
    errs = (rng.random(questions) < world.judge_noise)[codes].astype(np.float64)
    judged = _sets_said(right, errs, 1.0 if world.single else world.omit, k, rng, world.single)
    if world.all or world.constant:
        judged = np.full(items, (1 << k) - 1 if world.all else 1)
    return right, judged, np.stack(own, axis=1), Clusters(codes, questions)


def sets_study(judged: IntArray, own: IntArray, clusters: Clusters, k: int) -> StudyCounts:
    """The study's counts, with a constant for each label."""
    side = HumanSide(
        response_sets(accepted_shares(own, k)), own, response_sets(shares_of_others(own, k)),
        clusters, 1, None, np.ones((1, own.shape[1])), 0.0, k,
    )  # fmt: skip
    constants = {f"constant {label}": np.full(len(judged), 1 << label) for label in range(k)}
    return study_counts(side, judged, np.ones(len(judged), dtype=np.bool_), constants)


def true_gaps(world: Sets) -> tuple[float, float]:
    """How much more often the judge's labels are right than an annotator's, in a large sample: by
    the right labels, and by the rule's number."""
    k = world.labels
    right, judged, own, _ = draw_sets(world, _POPULATION, np.random.default_rng(7))
    hit, *own_hits = (hits(column, right, k).mean() for column in (judged, *own.T))
    others = response_sets(shares_of_others(own, k))
    beside = hits(judged[:, None], others, k) - hits(own, others, k)
    return float(hit - np.mean(own_hits)), float(np.nanmean(beside))


@lru_cache
def settled_sets(world: Sets) -> Sets:
    """The world with its judge's noise where it belongs."""
    low, high, which = 0.0, 0.5, 0 if world.at_margin == "true" else 1
    for _ in range(_STEPS if world.at_margin else 0):
        middle = (low + high) / 2
        short = true_gaps(replace(world, judge_noise=middle))[which] < -MARGIN
        low, high = (low, middle) if short else (middle, high)
    return replace(world, judge_noise=high) if world.at_margin else world


def run_sets(world: Sets, draws: int, seed: int) -> tuple[Counter[str], float, float]:
    """What the rule says of the draws, and the true gaps."""
    world, said = settled_sets(world), Counter[str]()
    rng = np.random.default_rng([seed, *world.name.encode(), world.items])
    for _ in range(draws):
        _, judged, own, clusters = draw_sets(world, world.items, rng)
        counts = sets_study(judged, own, clusters, world.labels)
        said[outcome_of(conditions_of(counts, RULE), "", None)] += 1
    return said, *true_gaps(world)


def sets_table(results: Iterable[tuple[Sets, tuple[Counter[str], float, float]]]) -> Iterator[str]:
    """How often a judge that names labels of sets is said to replace annotators, in Markdown."""
    outcomes = [name for name in OUTCOMES if name != "ASSIST"]
    heads = ("scenario", "items", "annotators", "true gap", "the rule's gap", *outcomes)
    yield f"| {' | '.join(heads)} |"
    yield f"|---|--:|--:|--:|--:|{'--:|' * len(outcomes)}"
    for world, (said, right, rule) in results:
        cells = [_share(said[name], said.total()) for name in outcomes]
        about = (
            world.name,
            f"{world.items:,}",
            str(world.annotators),
            f"{right:+.3f}",
            f"{rule:+.3f}",
        )
        yield f"| {' | '.join((*about, *cells))} |"


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.1f} %" if of else "–"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000, help="studies a world")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--world", default="", help="only worlds whose name holds this")
    parser.add_argument("--margins", action="store_true", help="margins for severe answers instead")
    parser.add_argument("--learnt", action="store_true", help="judges that learn instead")
    parser.add_argument("--scores", action="store_true", help="judges that follow from a score")
    parser.add_argument("--looks", action="store_true", help="three looks at each study instead")
    parser.add_argument("--sets", action="store_true", help="several right labels instead")
    parser.add_argument("--plot", default="", help="with --margins: a picture of them")
    parser.add_argument("--quick", action="store_true", help="50 draws a world")
    asked = parser.parse_args()
    draws = 50 if asked.quick else asked.draws
    if asked.margins:
        rows = [margins_of(world, draws, asked.seed) for world in WORLDS if world.margins]
        print("\n".join(margins_table(rows)))
        if asked.plot:
            draw_margins(rows, asked.plot)
        return
    if asked.learnt or asked.scores or asked.looks or asked.sets:
        found: tuple[Any, ...] = (GRADED, follow, graded_table)
        if asked.sets:
            found = (SETS, run_sets, sets_table)
        if asked.looks:
            found = (WORLDS, look_world, looks_table)
        every, act, table = (TAUGHT, teach, taught_table) if asked.learnt else found
        chosen = [world for world in every if asked.world in world.name]
        with ProcessPoolExecutor(asked.workers) as pool:
            print(f"{draws} studies a world, seed {asked.seed}\n")
            made = pool.map(partial(act, draws=draws, seed=asked.seed), chosen)
            for line in table(zip(chosen, made, strict=True)):
                print(line, flush=True)
        return
    worlds = [world for world in WORLDS if asked.world in world.name]
    work: Callable[[World], Tally] = partial(run_world, draws=draws, seed=asked.seed)
    with ProcessPoolExecutor(asked.workers) as pool:
        results = list(zip(worlds, pool.map(work, worlds), strict=True))
    print(f"{draws} studies a world, seed {asked.seed}\n")
    print("\n".join(decisions_table(results)))
    print("\nShare of intervals of 95 % that hold the population's number:\n")
    print("\n".join(coverage_table(results)))
    bad = [(w, t) for w, t in results if is_wrong(w)]
    if not bad:
        return
    worst, tally = max(bad, key=lambda pair: pair[1].outcomes["REPLACE"])
    share = tally.outcomes["REPLACE"] / draws
    print(f"\nwrong REPLACE in {len(bad)} worlds: at most {share:.1%} ({worst.name}); limit 2.5 %")
    worst, tally = max(results, key=lambda pair: pair[1].wrong_assist)
    print(f"wrong ASSIST in {len(results)} worlds: at most {tally.wrong_assist / draws:.1%}")


if __name__ == "__main__":
    main()
