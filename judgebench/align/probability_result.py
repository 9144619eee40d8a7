"""What an alignment holds of judges that give label probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judgebench.records import Estimate
from judgebench.stats.calibration_error import CalibrationBin
from judgebench.stats.temperature import TemperatureScaling

Source = Literal["probabilities", "label", "annotator", "base_rates", "gain"]


@dataclass(frozen=True)
class ProbabilityScore:
    """One number of one judge on one metric.

    `source` says what was scored: the judge's `probabilities`; its `label` taken as a certainty;
    one `annotator`'s label taken so, on the same items; the same `base_rates` of the human labels
    on every item. `gain` is the annotator's distance minus that of the probabilities, item by item:
    above 0 the judge is nearer to the other annotators than one of them is.
    """

    judge: str
    metric: str
    statistic: str  # a key of PROBABILITY_STATISTICS
    source: Source
    estimate: Estimate


@dataclass(frozen=True)
class CalibrationCurve:
    """A reliability diagram: bins of equally many items, the least confident first."""

    judge: str
    metric: str
    bins: tuple[CalibrationBin, ...]


@dataclass(frozen=True)
class Temperature:
    """What temperature scaling, fitted on one half of the questions, does for the other half."""

    judge: str
    metric: str
    scaling: TemperatureScaling


# statistic -> (heading, what it means). Keys are stable: they stand in alignment.csv.
TRUTH_STATISTICS: Mapping[str, tuple[str, str]] = {
    "brier": (
        "Brier score",
        "squared distance from the truth, summed over labels; 0 is best, 2 worst",
    ),
    "brier_skill": (
        "Skill",
        "1 - Brier score / uncertainty: 0 for a judge that says the base rates",
    ),
    "reliability": ("Reliability", "part of the Brier score that calibration would take off"),
    "resolution": ("Resolution", "part that telling items apart took off; more is better"),
    "uncertainty": ("Uncertainty", "Brier score of the labels' base rates, said of every item"),
    "log_loss": ("Log loss", "-ln of the probability of the truth, the mean in nats; 0 is best"),
    "ece": ("ECE", "expected calibration error: how far confidence is from the share right"),
    "ece_debiased": ("ECE, debiased", "without what chance adds to it"),
}
DISTRIBUTION_STATISTICS: Mapping[str, tuple[str, str]] = {
    "squared_distance": ("Squared distance", "summed over labels, from 0 to 2"),
    "total_variation": (
        "Total variation",
        "share of probability that lies on other labels, 0 to 1",
    ),
    "jensen_shannon": ("Jensen-Shannon divergence", "in bits, from 0 to 1"),
    "cross_entropy": ("Cross-entropy", "-ln of the probability of an annotator's label, in nats"),
    "kl_divergence": (
        "Kullback-Leibler divergence",
        "cross-entropy beyond the annotators' own entropy",
    ),
}
PROBABILITY_STATISTICS: Mapping[str, tuple[str, str]] = {
    **TRUTH_STATISTICS, **DISTRIBUTION_STATISTICS,
}  # fmt: skip
