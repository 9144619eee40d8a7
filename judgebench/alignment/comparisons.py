"""Judges against each other: who is right more often on the same items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.against_truth import truths
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.results.tables import NO_REASON
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters
from judgebench.stats.jackknife import ClusterCounts, clustered_estimate
from judgebench.stats.paired import (
    ACCURACY_DIFFERENCE,
    discordance_by_cluster,
    holm,
    mcnemar_clustered,
)
from judgebench.studies.study import JudgeVerdicts, Study

NEVER_APART = "the two are right equally often on every question"


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of every judge on one metric, one entry per truth (rule `each`: per human
    label).

    `of` holds by judge's name (truths,): 1 right, 0 wrong, -1 where it gave no label.
    """

    of: Mapping[str, NDArray[np.int8]]
    clusters: Clusters

    def pair(self, first: str, second: str) -> ClusterCounts:
        """The counts of `discordance_by_cluster` of two judges."""
        pair = self.of[first], self.of[second]
        return ClusterCounts(discordance_by_cluster(*pair, self.clusters))

    def n_missing(self, first: str, second: str) -> int:
        """The number of truths that at least one of the two gave no label to."""
        return int(((self.of[first] < 0) | (self.of[second] < 0)).sum())


def outcomes(study: Study, judges: Sequence[JudgeVerdicts], metric: Metric) -> Outcomes:
    """The outcomes of these judges on a metric."""
    rows, truth, clusters = truths(study, metric)
    known, of = truth >= 0, {}
    for judge in judges:
        judged = study.judged(judge, metric)[rows]
        of[judge.name] = np.where(judged < 0, -1, judged == truth)[known].astype(np.int8)
    return Outcomes(of, clusters[known])


def comparisons(study: Study, metric: Metric) -> Iterator[Row]:
    """Each two real judges, and each real judge with each control, on one metric: the accuracy of
    the first minus that of the second, with two p values.

    Only items to which both gave a label count. The permutation flips the sign of whole clusters;
    `p_holm` is that one, corrected over all these pairs.
    """
    right = outcomes(study, study.judges, metric)
    real = [judge.name for judge in study.real_judges]
    controls = [judge.name for judge in study.controls]
    pairs = [*combinations(real, 2), *((name, control) for name in real for control in controls)]
    found = [_comparison(study, right, *pair) for pair in pairs]
    corrected = holm([p for _, p in found])
    for (first, second), (difference, raw), p_holm in zip(pairs, found, corrected, strict=True):
        key = {"who": second}
        yield Row("comparison", "accuracy_difference", difference, first, metric.id, key)
        for statistic, p in (("permutation_p", raw), ("p_holm", p_holm)):
            estimate = Estimate(p, n=difference.n, n_missing=difference.n_missing)
            if p is None:
                reason = NEVER_APART if difference.value is not None else difference.reason
                estimate = replace(estimate, reason=reason or NO_REASON)
            yield Row("comparison", statistic, estimate, first, metric.id, key)


def _comparison(
    study: Study, right: Outcomes, first: str, second: str
) -> tuple[Estimate, float | None]:
    """The difference, and p, of one pair."""
    counts, missing = right.pair(first, second), right.n_missing(first, second)
    n = len(right.clusters) - missing
    difference = clustered_estimate(
        counts, ACCURACY_DIFFERENCE, study.level, n=n, n_missing=missing
    )
    return difference, mcnemar_clustered(counts)
