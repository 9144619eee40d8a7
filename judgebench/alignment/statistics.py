"""The statistics of judges against the truth, each declared once, and the limits of an alignment.

To add one, write its formula in `stats/` and declare it here: it is then measured, written to
results.csv and shown in the tables that `shown` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from judgebench.rubric import Metric
from judgebench.stats.confusion import (
    ACCURACY,
    BALANCED_ACCURACY,
    KENDALL_TAU_B,
    MACRO_F1,
    MATTHEWS,
    SPEARMAN,
    LabelStatistic,
    cohen_kappa,
    limit_of_agreement,
    mean_absolute_severity_error,
    mean_severity_error,
    of_label,
    overestimated,
    pearson,
    underestimated,
)
from judgebench.stats.interrater import gwet_ac, krippendorff_alpha_of_two
from judgebench.stats.jackknife import Statistic

FailurePolicy = Literal["left_out", "worst", "best"]
NOMINAL = "the metric is nominal: its labels have no order"

MOST_ANNOTATORS_IN_PAIRS = 12
"""Beyond this many annotators nobody reads a table of pairs any more."""


@dataclass(frozen=True)
class Declared:
    """A statistic: its key in results.csv, its heading and what it means.

    `formula` makes it: for judges, from a Metric a Statistic of confusion counts. `shown` says
    where it appears beside its own table: "drawn" in the figures, "ceiling" for annotators, too,
    "paper" in the table of main.tex. `of_severe` are those of the most severe label alone.
    """

    key: str
    heading: str
    meaning: str
    formula: Callable[..., Any] | None = None
    best: Literal["higher", "lower", "zero"] = "higher"
    needs_severities: bool = False
    of_severe: bool = False
    shown: frozenset[str] = frozenset()

    def shortfall(self, value: float) -> float:
        """A number that falls as the statistic gets better."""
        return {"higher": -value, "lower": value, "zero": abs(value)}[self.best]

    def fits(self, metric: Metric) -> bool:
        """True where it can be defined on such a metric."""
        if self.of_severe:
            return metric.has_severe
        return metric.kind == "ordinal" or not self.needs_severities

    @property
    def signed(self) -> bool:
        """True where its sign is to be shown."""
        return self.best == "zero"


def by_key(*declared: Declared) -> Mapping[str, Declared]:
    """The declarations by their keys, in their order."""
    return {one.key: one for one in declared}


def _always(statistic: Statistic) -> Callable[[Metric], Statistic]:
    return lambda metric: statistic


def _of_severe(name: LabelStatistic) -> Callable[[Metric], Statistic]:
    """A statistic of the most severe label against all others."""
    return lambda metric: of_label(name, len(metric.labels) - 1)


def label_numbers(metric: Metric) -> tuple[float, ...]:
    """The labels of an ordinal metric as the numbers that they are; empty where one is none, and of
    two labels, of which differences say nothing."""
    if metric.kind == "nominal" or len(metric.labels) < 3:
        return ()
    try:
        return tuple(map(float, metric.label_texts))
    except ValueError:
        return ()


def chance_corrected(metric: Metric) -> Statistic:
    """Gwet's AC1, or AC2 by distance."""
    return gwet_ac(metric.severities if metric.kind == "ordinal" else None)


ALPHA = "Krippendorff's α"
ALPHA_MEANING = "agreement beyond chance, nominal or ordinal as the metric is"
AC = "Gwet's AC"
AC_MEANING = "agreement beyond chance, high on skewed labels; AC1, or AC2 by distance if ordinal"
_ALL_OVER = frozenset({"drawn", "ceiling", "paper"})
STATISTICS = by_key(
    Declared(
        "accuracy", "Accuracy", "share of items on which the judge gives the human label",
        _always(ACCURACY), shown=_ALL_OVER,
    ),
    Declared(
        "balanced_accuracy", "Balanced accuracy", "mean recall over the labels that humans gave",
        _always(BALANCED_ACCURACY),
    ),
    Declared("macro_f1", "Macro-F1", "mean F1 over the labels that occur", _always(MACRO_F1)),
    Declared(
        "mcc", "MCC", "Matthews correlation of the judge's and the human labels, of any number",
        _always(MATTHEWS),
    ),
    Declared(
        "kappa", "Cohen's κ", "agreement beyond chance, unweighted",
        lambda metric: cohen_kappa("none"), shown=frozenset({"ceiling", "paper"}),
    ),
    Declared(
        "kappa_quadratic", "Quadratic κ", "agreement beyond chance, quadratic weights by distance",
        lambda metric: cohen_kappa("quadratic", metric.severities),
        needs_severities=True, shown=frozenset({"drawn", "ceiling"}),
    ),
    Declared(
        "kappa_linear", "Linear κ", "agreement beyond chance, linear weights by severity",
        lambda metric: cohen_kappa("linear", metric.severities), needs_severities=True,
    ),
    Declared(
        "alpha", ALPHA, ALPHA_MEANING,
        lambda metric: krippendorff_alpha_of_two(metric.kind),
        shown=frozenset({"ceiling", "paper"}),
    ),
    Declared("ac", AC, AC_MEANING, chance_corrected),
    Declared(
        "spearman", "Spearman's ρ", "correlation of the ranks of the judge's and the human labels",
        _always(SPEARMAN), needs_severities=True,
    ),
    Declared(
        "pearson", "Pearson's r", "correlation of the judge's and the human labels as numbers",
        lambda metric: pearson(metric.severities), needs_severities=True,
    ),
    Declared(
        "tau_b", "Kendall's τ-b", "rank correlation: concordant less discordant pairs of items",
        _always(KENDALL_TAU_B), needs_severities=True,
    ),
    Declared(
        "severity_error", "Mean error", "judge minus human; positive overestimates",
        lambda metric: mean_severity_error(metric.severities), "zero", needs_severities=True,
    ),
    Declared(
        "mae", "Mean absolute error",
        "distance of the judge's label from the human one; 0 is best",
        lambda metric: mean_absolute_severity_error(metric.severities), "lower",
        needs_severities=True,
    ),
    Declared(
        "overestimated", "Overestimated", "share of items judged above the human label",
        lambda metric: overestimated(metric.severities), "lower", needs_severities=True,
    ),
    Declared(
        "underestimated", "Underestimated", "share of items judged below the human label",
        lambda metric: underestimated(metric.severities), "lower", needs_severities=True,
    ),
    Declared(
        "severe_recall", "Severe recall", "share of the most severe items that the judge finds",
        of_severe=True, shown=frozenset({"ceiling", "paper"}),
    ),
    Declared(
        "severe_precision", "Severe precision",
        "share of the items that the judge labels most severe that are", _of_severe("precision"),
        of_severe=True,
    ),
    Declared(
        "severe_f1", "Severe F1", "harmonic mean of severe precision and severe recall",
        _of_severe("f1"), of_severe=True,
    ),
    Declared(
        "severe_specificity", "Severe specificity",
        "share of the other items to which the judge does not give the most severe label",
        _of_severe("specificity"), of_severe=True,
    ),
)  # fmt: skip
# Of every label against all others: its heading and what it means.
LABEL_STATISTICS: Mapping[LabelStatistic, tuple[str, str]] = {
    "precision": ("Precision", "share of the items so labelled by the judge that are so"),
    "recall": ("Recall", "share of the items with this reference label that the judge labels so"),
    "f1": ("F1", "harmonic mean of precision and recall"),
    "specificity": ("Specificity", "share of all other items that the judge does not label so"),
}
# Of labels that are numbers, after Bland and Altman: what makes a statistic from these.
LIMITS_OF_AGREEMENT: Mapping[str, Callable[[Sequence[float]], Statistic]] = {
    "mean_difference": mean_severity_error,
    "lower_limit": partial(limit_of_agreement, sign=-1),
    "upper_limit": partial(limit_of_agreement, sign=1),
}
