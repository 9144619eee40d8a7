"""What an alignment holds: every number with its interval and its gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Answer, Estimate, Usage, Verdict
from judgebench.rubric import Rubric
from judgebench.truth import BlankPolicy

JudgeKind = Literal["judge", "jury", "calibration", "control"]
JUDGE_KINDS: tuple[JudgeKind, ...] = get_args(JudgeKind)
FailurePolicy = Literal["left_out", "worst", "best"]


@dataclass(frozen=True)
class JudgeVerdicts:
    """What one judge said, the latest verdict an item, and how it was set up."""

    name: str
    kind: JudgeKind
    signature: str
    verdicts: Mapping[str, Verdict]  # by item_id
    usage: Usage = Usage()  # of every attempt, not only the latest
    cost: float | None = None
    about: Mapping[str, Any] | None = None


def backend_fact(about: Mapping[str, Any] | None, key: str) -> Any:
    """What a judge's entry in the manifest says of its backend; None where it has none."""
    backend = (about or {}).get("backend")
    return backend.get(key) if isinstance(backend, Mapping) else None


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


# statistic -> (heading, what it means). Keys are stable: they stand in alignment.csv.
STATISTICS: Mapping[str, tuple[str, str]] = {
    "accuracy": ("Accuracy", "share of items on which the judge gives the human label"),
    "balanced_accuracy": ("Balanced accuracy", "mean recall over the labels that humans gave"),
    "macro_f1": ("Macro-F1", "mean F1 over the labels that occur"),
    "kappa": ("Cohen's κ", "agreement beyond chance, unweighted"),
    "weighted_kappa": ("Weighted κ", "agreement beyond chance, quadratic weights by severity"),
    "severity_error": ("Mean severity error", "judge minus human; positive overestimates"),
    "overestimated": ("Overestimated", "share of items judged more severe than by humans"),
    "underestimated": ("Underestimated", "share of items judged less severe than by humans"),
    "severe_recall": ("Severe recall", "share of the most severe items that the judge finds"),
}
AGREEMENT_STATISTICS: Mapping[str, tuple[str, str]] = {
    "alpha": ("Krippendorff's α", "agreement beyond chance, any number of annotators"),
    "at_least_two": ("≥ 2 agree", "share of items on which two annotators or more agree"),
    "all_agree": ("All agree", "share of items on which all annotators agree"),
    "observed": ("Observed agreement", "share of pairs of labels of one item that are equal"),
}
