"""What a stress test found: every number with its interval and its gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judgebench.align import FailurePolicy
from judgebench.records import Estimate, Verdict
from judgebench.rubric import Rubric
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.study.study import JudgeKind

EVERY = "all"  # as a recipe, an area or a metric: all of them together


@dataclass(frozen=True)
class Detection:
    """One judge on the violations of one recipe, area and metric, each beside its own parent.

    A violation is detected where the verdict is at least as severe as `label`. A false alarm is a
    parent whose verdict is so too. `told_apart` is the share of pairs with a detection and no
    false alarm; `advantage` the detection rate minus the false alarm rate: a judge that gives one
    label to everything has 0 of both. `more_needed` counts further violations until the exact
    interval of `detected` is no wider than wished, 0 where it is now.
    """

    judge: str
    recipe: str  # or EVERY
    area: str  # or EVERY
    metric: str
    label: str  # the demanded one; empty where it differs between items
    failures: FailurePolicy
    detected: Estimate
    false_alarms: Estimate
    told_apart: Estimate
    advantage: Estimate
    worsened: Estimate  # share of pairs whose violation is judged more severe than its parent
    more_needed: int


@dataclass(frozen=True)
class Invariance:
    """One judge under one probe that must not move its verdict, on one metric (or EVERY).

    `flipped` is the share of pairs whose label differs; `robustness` is 1 minus that, the
    robustness rate of Ye et al. (2024); for EVERY a pair is the same only where all metrics are.
    `shift` is the mean change of severity. `p` is of an exact sign test on the direction of the
    shifts, cluster by cluster; `p_holm` is corrected over the judge's probes on this metric.
    """

    judge: str
    probe: str
    metric: str
    flipped: Estimate
    robustness: Estimate
    more_severe: Estimate
    less_severe: Estimate
    shift: Estimate
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class PlantedVerdict:
    """How often one trick got what it asks for, of the items where the judge had not said so.

    For EVERY metric together: at least one metric was moved to the demanded label.
    """

    judge: str
    trick: str
    metric: str
    success: Estimate


@dataclass(frozen=True)
class SelfConsistency:
    """One judge asked the same again: `asked` verdicts an item, the first included.

    `agreement` is the share of pairs of an item's verdicts that are equal; `majority_gain` the
    accuracy of the majority over the repeats minus that of the first verdict.
    """

    judge: str
    metric: str
    asked: int
    agreement: Estimate
    majority_gain: Estimate


@dataclass(frozen=True)
class Halo:
    """How far the labels of different metrics go together: mean correlation over pairs of metrics.

    `who` is `one pass`, `per metric` (one call a metric), or `humans`, on the same items.
    `beyond_humans` is the correlation minus that of the humans.
    """

    judge: str
    who: str
    correlation: Estimate
    beyond_humans: Estimate


@dataclass(frozen=True)
class Miss:
    """A violation that at least one real judge did not detect, with every judge's verdicts."""

    item: AlteredAnswer
    missed_by: tuple[str, ...]
    verdicts: Mapping[str, Verdict]  # judge -> verdict on the violation; controls left out
    of_parent: Mapping[str, Verdict]  # judge -> verdict on the sound parent


@dataclass(frozen=True)
class RecipeSummary:
    """One recipe or set in one run: what it made, and what became of it."""

    name: str
    version: str
    hash: str
    about: str
    bias: str
    kind: str  # violations, invariance, planted, asked otherwise
    made: int  # items that count
    nothing_to_change: int = 0  # parents the rule found nothing to change in
    # check -> how many items failed it (an item may fail several)
    rejected: Mapping[str, int] = field(default_factory=dict)
    n_rejected: int = 0
    undecided: int = 0  # items that nobody has accepted, where only accepted ones count


@dataclass(frozen=True)
class StressResult:
    """Everything the stress part of a report shows."""

    name: str
    rubric: Rubric
    judges: Mapping[str, JudgeKind]
    recipes: tuple[RecipeSummary, ...]
    detections: tuple[Detection, ...]
    invariances: tuple[Invariance, ...]
    planted: tuple[PlantedVerdict, ...]
    consistency: tuple[SelfConsistency, ...]
    halo: tuple[Halo, ...]
    misses: tuple[Miss, ...]
    n_misses: int  # of which `misses` lists the first
    notes: tuple[str, ...] = field(default=())
