"""The statistics of judges against the truth, each declared once, and the limits of an alignment.

To add one, write its formula in `stats/` and declare it here: it is then measured, written to
results.csv and shown in the tables that `shown` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from judgebench.records import Estimate, Results, Row
from judgebench.rubric import Metric
from judgebench.stats.agreement import gwet_ac, krippendorff_alpha_of_two
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.association import partial_correlation
from judgebench.stats.classification import (
    ACCURACY,
    BALANCED_ACCURACY,
    KENDALL_TAU_B,
    MACRO_F1,
    MATTHEWS,
    SPEARMAN,
    LabelStatistic,
    all_items,
    cohen_kappa,
    confusion_by_cluster,
    fill_failures,
    limit_of_agreement,
    mean_absolute_severity_error,
    mean_severity_error,
    of_label,
    overestimated,
    pearson,
    underestimated,
)
from judgebench.stats.intervals import (
    PRECISION,
    ClusterCounts,
    Statistic,
    clustered_estimate,
    exact_share,
    more_for_precision,
)
from judgebench.stats.repeated_measures import self_agreement
from judgebench.studies.confidence import draws_of
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.text import counted

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
        "kappa_linear", "Linear κ", "agreement beyond chance, linear weights by distance",
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


def consistency(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The agreement of a judge's draws, and what their majority gains; nothing without draws."""
    if judge.n_draws < 2:
        return
    draws = draws_of(study, judge, metric)
    asked = study.asked(judge, metric)
    labels, truth = study.judged(judge, metric)[asked], study.humans[metric.id].truth[asked]
    shared = study.clusters[asked].occurring(), len(metric.labels), study.level
    for statistic, estimate in self_agreement(draws[asked], labels, truth, *shared).items():
        yield Row("consistency", statistic, estimate, judge.name, metric.id)


def scores(
    study: Study,
    judge: JudgeVerdicts,
    metric: Metric,
    statistics: Iterable[Declared] = tuple(STATISTICS.values()),
) -> Iterator[Row]:
    """The statistics of one judge on one metric; three ways where it failed on some items."""
    truth, judged, clusters = paired_labels(study, judge, metric)
    failures = int(((truth >= 0) & (judged < 0)).sum())
    policies: tuple[FailurePolicy, ...] = ("left_out", "worst", "best")
    for policy in policies if failures else policies[:1]:
        k, ordinal = len(metric.labels), metric.kind == "ordinal"
        filled = fill_failures(truth, judged, policy, k, ordinal)
        counts = ClusterCounts(confusion_by_cluster(truth, filled, clusters, k))
        missing = failures if policy == "left_out" else 0
        for declared in statistics:
            if declared.of_severe and metric.severe == "none":
                continue
            estimate = score_of(study, declared, metric, counts, missing)
            yield Row("score", declared.key, estimate, judge.name, metric.id, {"failures": policy})


def details(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """Each label against all others, and the limits of agreement where the labels are numbers."""
    truth, judged, clusters = paired_labels(study, judge, metric)
    counts = ClusterCounts(confusion_by_cluster(truth, judged, clusters, len(metric.labels)))
    failures = int(((truth >= 0) & (judged < 0)).sum())

    def row(analysis: str, key: str, statistic: Statistic, **keys: str) -> Row:
        estimate = of_counts(study, statistic, counts, failures)
        return Row(analysis, key, estimate, judge.name, metric.id, keys)

    for place, text in enumerate(metric.label_texts):
        for name in LABEL_STATISTICS:
            yield row("label", name, of_label(name, place), label=text)
    if numbers := label_numbers(metric):
        for key, formula in LIMITS_OF_AGREEMENT.items():
            yield row("limits_of_agreement", key, formula(numbers))


def systems_of(study: Study) -> IntArray:
    """The number of the system that gave each answer (items,); -1 where it is unknown."""
    names, codes = np.unique(study.cells["system"].astype(str), return_inverse=True)
    return np.asarray(codes - ("" in names))  # an empty name sorts first


def given_system(
    study: Study, judge: JudgeVerdicts, metric: Metric, systems: IntArray
) -> Iterator[Row]:
    """The partial correlation of ordinal labels, of the systems (items,) that gave the answers;
    nothing of fewer than two."""
    if metric.kind == "nominal" or systems.max(initial=0) < 1:
        return
    truth, judged, clusters = paired_labels(study, judge, metric)
    due, severities = truth >= 0, np.array([*metric.severities, np.nan])  # the last: no label
    scores = severities[judged[due]], severities[truth[due]]
    of_system = systems[truths(study, metric)[0]][due]
    estimate = partial_correlation(*scores, of_system, clusters[due], study.level)
    yield Row("given_system", "partial_correlation", estimate, judge.name, metric.id)


def coverage(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The number of answers that the judge was asked about, of how many; nothing where of all."""
    n_asked, n = study.n_asked(judge, [metric])
    if n_asked < n:
        yield Row("asked", "answers", Estimate(n_asked, n=n), judge.name, metric.id)


def coverage_in_words(found: Results, judge: str, metric: str) -> str:
    """`48 of 500 asked`; empty where the judge was asked about all."""
    rows = found.select("asked", judge=judge, metric=metric)
    return "".join(f"{row.estimate.value:,.0f} of {row.estimate.n:,} asked" for row in rows)


def paired_labels(
    study: Study, judge: JudgeVerdicts, metric: Metric
) -> tuple[IntArray, Labels, Clusters]:
    """Truth, judge's label and cluster, one entry per item that any human rated (`each`: per human
    label). Where the judge was not asked, the truth is -1."""
    rows, truth, clusters = truths(study, metric)
    asked = study.asked(judge, metric)[rows]
    return np.where(asked, truth, -1), study.judged(judge, metric)[rows], clusters


def truths(study: Study, metric: Metric) -> tuple[Labels, IntArray, Clusters]:
    """Row, truth and cluster of each item that any human rated (`each`: of each human label)."""
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    if study.config.rule != "each":
        return rows, humans.truth[rows], humans.clusters
    votes = humans.made.values
    rated, _ = np.nonzero(votes >= 0)
    return rows[rated], votes[votes >= 0], humans.clusters[rated]


def score_of(
    study: Study, declared: Declared, metric: Metric, counts: ClusterCounts, missing: int
) -> Estimate:
    """A statistic of confusion counts by cluster; undefined, with a reason, where the metric is
    nominal and the statistic needs severities."""
    n = int(counts.total.sum())
    if not declared.fits(metric):
        return Estimate(None, n=n, n_missing=missing, reason=NOMINAL)
    if declared.formula is None:
        return _severe_recall(study, metric, counts, missing)
    return of_counts(study, declared.formula(metric), counts, missing)


def of_counts(study: Study, statistic: Statistic, counts: ClusterCounts, missing: int) -> Estimate:
    """A statistic of confusion counts by cluster; `n` is that of the items of a share, else all."""
    n = round(float((statistic.items or all_items)(counts.total)))
    return clustered_estimate(counts, statistic, study.level, n=n, n_missing=missing)


def _severe_recall(study: Study, metric: Metric, counts: ClusterCounts, missing: int) -> Estimate:
    """Exact interval, and how many more severe items a usable one would need: as in a decision.

    `n_missing` counts failures on items of any severity, as for the other statistics.
    """
    severe = counts.kinds[:, -1]
    sample = severe[:, -1], severe.sum(axis=1), counts.how_many.astype(np.float64)
    estimate = exact_share(*sample, study.level)
    reason = ""
    if estimate.n == 0:
        reason = f'no item that the judge labelled has the reference label "{metric.most_severe}"'
    elif more := more_for_precision(*sample):
        items = counted(estimate.n, "severe item")
        reason = f"only {items}: label {more} more for an interval within ±{PRECISION:g}"
    return replace(estimate, reason=reason, n_missing=missing)


def confusion(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The counts of each truth with each label; an empty label counts those that were missing. In a
    study without human labels the truth of all is empty."""
    truth, judged, *_ = paired_labels(study, judge, metric)
    k, humans, known = len(metric.labels), metric.label_texts, truth >= 0
    if not study.n_labels:
        humans, known = ("",), study.asked(judge, metric)
        truth, judged = np.zeros_like(known, dtype=np.int64), study.judged(judge, metric)
    counts = np.zeros((len(humans), k + 1), dtype=np.int64)
    np.add.at(counts, (truth[known], np.where(judged < 0, k, judged)[known]), 1)
    for human, row in zip(humans, counts.tolist(), strict=True):
        for label, count in zip((*metric.label_texts, ""), row, strict=True):
            keys, n = {"human_label": human, "label": label}, int(known.sum())
            yield Row("confusion", "count", Estimate(count, n=n), judge.name, metric.id, keys)
