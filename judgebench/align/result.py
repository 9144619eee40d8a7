"""What an alignment holds: every number with its interval and its gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.align.probability_result import CalibrationCurve, ProbabilityScore, Temperature
from judgebench.records import Answer, Estimate, Usage, Verdict
from judgebench.rubric import Rubric
from judgebench.study.study import JudgeKind
from judgebench.study.truth import BlankPolicy

FailurePolicy = Literal["left_out", "worst", "best"]
Part = Literal["unanimous", "split", "single"]
RateMethod = Literal["human", "verdicts", "ppi", "rogan_gladen"]


@dataclass(frozen=True)
class JudgeSummary:
    """One judge's run: how many verdicts ended how, what it used. `about` is from the manifest."""

    name: str
    kind: JudgeKind
    signature: str
    n: int
    statuses: Mapping[str, int]  # status -> how many
    usage: Usage
    cost: float | None
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """One number of one judge on one metric, under one way of counting failures."""

    judge: str
    metric: str
    statistic: str  # a key of STATISTICS
    failures: FailurePolicy
    estimate: Estimate


@dataclass(frozen=True)
class AgreementScore:
    """How far annotators agree. `who` is "all" or a pair "a ~ b"; `metric` may be "all"."""

    metric: str
    statistic: str  # a key of AGREEMENT_STATISTICS
    who: str
    estimate: Estimate


@dataclass(frozen=True)
class CeilingScore:
    """One annotator ("all" = every one, pooled) against the truth of the others."""

    annotator: str
    metric: str
    statistic: str
    estimate: Estimate


@dataclass(frozen=True)
class LabelShare:
    """The share of one label in the human truth, under one policy for blank cells."""

    metric: str
    label: str
    severity: int | None
    blanks: BlankPolicy
    count: int
    n: int

    @property
    def share(self) -> float | None:
        return self.count / self.n if self.n else None


@dataclass(frozen=True)
class Confusion:
    """Counts for one judge and metric: rows truth, columns the judge's label, last column missing.

    `counts` has shape (k, k + 1), k labels in the rubric's order.
    """

    judge: str
    metric: str
    labels: tuple[str, ...]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Disagreement:
    """One item on which at least one judge differs from the truth in at least one metric."""

    answer: Answer
    truth: Mapping[str, str]  # metric -> label, where there is one
    human: Mapping[str, Mapping[str, str]]  # metric -> annotator -> label
    verdicts: Mapping[str, Verdict]  # judge -> verdict; controls left out
    distance: float  # summed severity distance over judges and metrics, for sorting


@dataclass(frozen=True)
class LabelRate:
    """How often a label is true of the answers that one judge labelled, by one method.

    From the human labels of these answers alone, from the judge's labels alone, or from both:
    prediction-powered inference (`ppi`) and the Rogan-Gladen correction. `saved` is how many more
    human labels alone would be needed for as narrow an interval; None but for `ppi`.
    """

    judge: str
    metric: str
    label: str
    method: RateMethod
    estimate: Estimate
    saved: float | None


@dataclass(frozen=True)
class Comparison:
    """Two judges on the same items of one metric.

    `difference` is the accuracy of the first minus that of the second. `mcnemar_p` is McNemar's
    mid-p, which takes items as independent; `permutation_p` flips the sign of whole clusters;
    `p_holm` is that one, corrected over all pairs of the metric. None where the two are never
    told apart.
    """

    metric: str
    first: str
    second: str
    difference: Estimate
    mcnemar_p: float | None
    permutation_p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class Ranking:
    """One judge's average rank over the metrics ("all"), 1 the most accurate.

    Judges that share a letter of `group` do not differ by Nemenyi's `critical_difference`;
    `friedman_p` is of all judges together, None where they tie on every metric or there are too
    few of them or of metrics.
    """

    metric: str
    judge: str
    average_rank: Estimate
    group: str
    friedman_p: float | None
    critical_difference: float | None


@dataclass(frozen=True)
class ByUnanimity:
    """One number of one judge on the items of a metric that the truth's makers all agree on, on
    those where they differ, or on those that have one label only; failures are left out."""

    judge: str
    metric: str
    part: Part
    statistic: str  # accuracy, severe_recall or soft_agreement
    estimate: Estimate


@dataclass(frozen=True)
class Alignment:
    """Everything a report shows, each number with its interval and its gaps."""

    name: str
    rubric: Rubric
    truth_rule: Mapping[str, str]  # metric -> the rule in words
    annotators: tuple[str, ...]  # who makes the truth
    judges: tuple[JudgeSummary, ...]
    scores: tuple[Score, ...]
    agreement: tuple[AgreementScore, ...]
    ceiling: tuple[CeilingScore, ...]
    distribution: tuple[LabelShare, ...]
    confusions: tuple[Confusion, ...]
    disagreements: tuple[Disagreement, ...]
    n_answers: int
    n_labels: int
    notes: tuple[str, ...]  # counted warnings and caveats, one sentence each
    rates: tuple[LabelRate, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    rankings: tuple[Ranking, ...] = ()
    by_unanimity: tuple[ByUnanimity, ...] = ()
    probability_scores: tuple[ProbabilityScore, ...] = ()
    calibration_curves: tuple[CalibrationCurve, ...] = ()
    temperatures: tuple[Temperature, ...] = ()


# statistic -> (heading, what it means). Keys are stable: they stand in alignment.csv.
STATISTICS: Mapping[str, tuple[str, str]] = {
    "accuracy": ("Accuracy", "share of items on which the judge gives the human label"),
    "balanced_accuracy": ("Balanced accuracy", "mean recall over the labels that humans gave"),
    "macro_f1": ("Macro-F1", "mean F1 over the labels that occur"),
    "kappa": ("Cohen's κ", "agreement beyond chance, unweighted"),
    "weighted_kappa": ("Weighted κ", "agreement beyond chance, quadratic weights by severity"),
    "ac": (
        "Gwet's AC",
        "agreement beyond chance, high on skewed labels; AC1, or AC2 by severity if ordinal",
    ),
    "spearman": ("Spearman's ρ", "correlation of the ranks of the judge's and the human labels"),
    "pearson": ("Pearson's r", "correlation of the judge's and the human severities"),
    "tau_b": ("Kendall's τ-b", "rank correlation: concordant less discordant pairs of items"),
    "severity_error": ("Mean severity error", "judge minus human; positive overestimates"),
    "overestimated": ("Overestimated", "share of items judged more severe than by humans"),
    "underestimated": ("Underestimated", "share of items judged less severe than by humans"),
    "severe_recall": ("Severe recall", "share of the most severe items that the judge finds"),
}
SOFT_AGREEMENT = (
    "Soft agreement",
    "share of an item's annotators who gave the judge's label, the mean over items",
)
PARTS: Mapping[Part, str] = {
    "unanimous": "all annotators agree",
    "split": "annotators differ",
    "single": "one label only",
}
AGREEMENT_STATISTICS: Mapping[str, tuple[str, str]] = {
    "alpha": ("Krippendorff's α", "agreement beyond chance, any number of annotators"),
    "ac": (
        "Gwet's AC",
        "agreement beyond chance, high on skewed labels; AC1, or AC2 by severity if ordinal",
    ),
    "fleiss": ("Fleiss' κ", "agreement beyond chance, unweighted"),
    "at_least_two": ("≥ 2 agree", "share of items on which two annotators or more agree"),
    "all_agree": ("All agree", "share of items on which all annotators agree"),
    "observed": ("Observed agreement", "share of pairs of labels of one item that are equal"),
    "icc1": ("ICC(1)", "share of the variance of single severities that lies between items"),
    "icc2": ("ICC(2,1)", "absolute agreement of single annotators' severities"),
    "icc2k": ("ICC(2,k)", "absolute agreement of the mean severity of all annotators"),
}
