"""What a ranking holds: each ranker's scores, its ranks, and how far rankers agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray, IntArray

SystemKind = Literal["gold", "model", "control"]
NO_CONTROL = Estimate(None, reason="there is no control case")
NO_SCORE = Estimate(None, reason="there is no score")

RankerKind = Literal["baseline", "expert-trained", "llm-trained", "judge", "control", "humans"]


@dataclass(frozen=True, slots=True)
class System:
    """Who wrote arguments: the experts (`gold`), a model, or a control case. The first two write
    real arguments, the primary ones of the paper."""

    name: str
    kind: SystemKind
    mean_words: float | None = None

    @property
    def is_argument(self) -> bool:
        """Whether what it writes are real arguments."""
        return self.kind != "control"


@dataclass(frozen=True)
class RankerScores:
    """One ranker's scores on one task, the input of every ranking.

    `values` is (instances, systems), higher is better and NaN is missing: the probability of the
    gold label (mean over draws), a judge's mean severity turned round to 0..1 with 1 the best, or
    minus the humans' mean rank. `correct` is (instances, systems), the share of draws that decide
    rightly with this argument, None for judges and humans. `clusters` (instances,) numbers the
    groups that are resampled whole. `systems` are names, in the order of the columns.
    """

    task: str
    ranker: str
    kind: RankerKind
    systems: tuple[str, ...]
    items: tuple[str, ...]
    clusters: IntArray
    values: FloatArray
    correct: FloatArray | None = None
    n_missing: int = 0  # instances that were to be ranked and are not here


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """One system in one ranking.

    `score` is the task's metric for an evaluator, the mean score for a judge, minus the mean rank
    for humans. `place` ranks the scores (1 best, ties share the mean place), `place_range` is where
    it lies in the resamples. `average_rank` is the mean of the ranks within instances. Systems that
    share a letter of `group` do not differ by Nemenyi's test ('' without one).
    """

    system: str
    score: Estimate
    place: float
    place_range: tuple[float, float] | None
    average_rank: Estimate
    group: str = ""


@dataclass(frozen=True, slots=True)
class Above:
    """In the share `share` of resamples `upper` scores above `lower` (ties count half)."""

    upper: str
    lower: str
    share: float


@dataclass(frozen=True)
class Ranking:
    """One ranker on one task. `systems` stand in the order of their place.

    `chi_square` and `p` are Friedman's over the ranks within instances, None where there is no
    test. `critical_difference` is Nemenyi's. `reason` says why there is no test, or what is unusual
    about it. `above` holds every pair, neighbours first. `controls_below` is the share of
    instances' control cases that rank below all real arguments of their instance; `average` is the
    mean score over real arguments (left side of the paper's Table 1). `metric` names the score of
    an evaluator and is '' for judges and humans, whose score is a mean of values.
    """

    task: str
    ranker: str
    kind: RankerKind
    systems: tuple[RankedSystem, ...]
    n: int
    n_missing: int = 0
    chi_square: float | None = None
    p: float | None = None
    critical_difference: float | None = None
    reason: str = ""
    above: tuple[Above, ...] = ()
    controls_below: Estimate = NO_CONTROL
    average: Estimate = NO_SCORE
    metric: str = ""


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Two rankers on the instances and systems that both rank: Kendall's tau-b and Spearman's rho
    of the ranks within an instance (means over instances), the same of the average ranks, and how
    often their best systems meet."""

    task: str
    ranker: str
    other: str
    systems: tuple[str, ...]
    tau_b: Estimate
    spearman: Estimate
    tau_b_of_averages: Estimate
    top_1: Estimate


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Spearman's rho of an argument's words and its rank turned round, within instances and over
    real arguments: above 0, longer arguments stand higher. `longest_first` says how often the
    longest is the best."""

    task: str
    ranker: str
    rho: Estimate
    longest_first: Estimate


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much higher (in places) a ranker sets a generator that it is akin to than the others do.

    `akin` says why: trained on its arguments alone, or of its family. The others are the rankers of
    the same task that are not akin to it (`others`)."""

    task: str
    ranker: str
    generator: str
    akin: str
    others: tuple[str, ...]
    places: Estimate


@dataclass(frozen=True, slots=True)
class Trained:
    """What training one evaluator took, from its manifest. `cut` counts inputs of training that
    were longer than the encoder takes, `cut_arguments` those that lost some of the argument."""

    task: str
    evaluator: str
    kind: RankerKind
    draw: int
    encoder: str
    train: int
    development: int
    epochs: int
    best_epoch: int
    development_score: float
    seconds: float
    cut: int
    cut_arguments: int


@dataclass(frozen=True, slots=True)
class RankedTask:
    """One task of the ranking: how many instances were ranked and which systems wrote."""

    name: str
    title: str
    metric: str
    n: int
    systems: tuple[System, ...]
    left_out: tuple[str, ...] = ()
    verbatim: dict[str, float] = field(default_factory=dict)  # of extracts, by system
    cut: dict[str, int] = field(default_factory=dict)  # test inputs that were cut, by system


@dataclass(frozen=True)
class Rankings:
    """All that a ranking run shows."""

    name: str
    tasks: tuple[RankedTask, ...]
    rankings: tuple[Ranking, ...]
    agreements: tuple[RankAgreement, ...] = ()
    length_biases: tuple[LengthBias, ...] = ()
    self_preferences: tuple[SelfPreference, ...] = ()
    trained: tuple[Trained, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, task: str) -> list[Ranking]:
        """The rankings of one task, evaluators first, then judges, humans last."""
        return [ranking for ranking in self.rankings if ranking.task == task]
