"""The statistics of judges against the truth, each declared once, and the limits of an alignment.

To add one, write its formula in `stats/` and declare it here: it is then measured, written to
results.csv and shown in the tables that `shown` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judgebench.rubric import Metric
from judgebench.stats.confusion import (
    ACCURACY,
    BALANCED_ACCURACY,
    KENDALL_TAU_B,
    MACRO_F1,
    SPEARMAN,
    cohen_kappa,
    mean_absolute_severity_error,
    mean_severity_error,
    overestimated,
    pearson,
    underestimated,
)
from judgebench.stats.interrater import gwet_ac, krippendorff_alpha_of_two
from judgebench.stats.jackknife import Statistic

FailurePolicy = Literal["left_out", "worst", "best"]
NOMINAL = "the metric is nominal: its labels have no order"

# --- limits: how much is enough, and how much is too much to list ---------------------------------

FEW_LABELS = 10
"""Of an annotator with fewer labels on a metric, a Dawid-Skene model knows next to nothing."""
MOST_ANNOTATORS_IN_PAIRS = 12
"""Beyond this many annotators nobody reads a table of pairs any more."""


@dataclass(frozen=True)
class Declared:
    """A statistic: its key in results.csv, its heading and what it means.

    `formula` makes it: for judges, from a Metric a Statistic of confusion counts. `shown` says
    where it appears beside its own table: "drawn" in the figures, "ceiling" for annotators, too,
    "paper" in the table of main.tex.
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


def chance_corrected(metric: Metric) -> Statistic:
    """Gwet's AC1, or AC2 by distance."""
    return gwet_ac(metric.severities if metric.kind == "ordinal" else None)


ALPHA = "Krippendorff's α"
ALPHA_MEANING = "agreement beyond chance, any number of annotators"
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
        "kappa", "Cohen's κ", "agreement beyond chance, unweighted",
        lambda metric: cohen_kappa("none"), shown=frozenset({"ceiling", "paper"}),
    ),
    Declared(
        "weighted_kappa", "Weighted κ", "agreement beyond chance, quadratic weights by distance",
        lambda metric: cohen_kappa("quadratic", metric.severities),
        needs_severities=True, shown=frozenset({"drawn", "ceiling"}),
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
        "absolute_severity_error", "Mean absolute error",
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
)  # fmt: skip
