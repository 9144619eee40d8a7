"""Judges against each other: who is right more often on the same items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.against_truth import truths
from judgebench.alignment.differences import (
    Both,
    both_of,
    corrected,
    failure_policies,
    paired_difference,
    share_tests,
)
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.confusion import ACCURACY, confusion_by_cluster
from judgebench.studies.study import JudgeVerdicts, Study


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of every judge on one metric, one entry per truth (rule `each`: per human
    label).

    `of` holds by judge's name (truths,): 1 right, 0 wrong, NaN where it gave no label; `asked`
    whether it was asked.
    """

    of: Mapping[str, FloatArray]
    asked: Mapping[str, NDArray[np.bool_]]
    clusters: Clusters

    def apart(self, first: str, second: str) -> tuple[FloatArray, Clusters]:
        """1 where only the first is right, -1 where only the second is, of what both were asked,
        and its clusters."""
        both = self.asked[first] & self.asked[second]
        return (self.of[first] - self.of[second])[both], self.clusters[both]


def outcomes(study: Study, judges: Sequence[JudgeVerdicts], metric: Metric) -> Outcomes:
    """The outcomes of these judges on a metric."""
    rows, truth, clusters = truths(study, metric)
    rows, truth, clusters = rows[truth >= 0], truth[truth >= 0], clusters[truth >= 0]
    judged = {judge.name: study.judged(judge, metric)[rows] for judge in judges}
    of = {name: np.where(x < 0, np.nan, x == truth) for name, x in judged.items()}
    asked = {judge.name: study.asked(judge, metric)[rows] for judge in judges}
    return Outcomes(of, asked, clusters)


def comparisons(study: Study, metric: Metric) -> Iterator[Row]:
    """Each two real judges, and each real judge with each control, on one metric: the accuracy of
    the first minus that of the second, with two p values.

    Only items to which both gave a label count. The permutation flips the sign of whole clusters;
    `p_holm` is that one, corrected over all these pairs.
    """
    pairs = [*combinations(study.real_judges, 2), *product(study.real_judges, study.controls)]
    rows = []
    for first, second in pairs:
        both = both_of(study, (second, first), metric)
        _, labelled, missing = next(failure_policies(both, metric))
        difference = accuracy_difference(labelled, metric, study.level, missing)
        _, test = next(share_tests(metric, labelled))
        if difference.value is None:
            test = replace(test, reason=difference.reason)
        for statistic, estimate in (("accuracy_difference", difference), ("permutation_p", test)):
            keys = {"who": second.name}
            rows.append(Row("comparison", statistic, estimate, first.name, metric.id, keys))
    yield from (*rows, *corrected(rows, ("metric",)))


def accuracy_difference(both: Both, metric: Metric, level: float, missing: int) -> Estimate:
    """The accuracy of the second of two judges minus that of the first."""
    k = len(metric.labels)
    counts = [confusion_by_cluster(both.truth, x, both.clusters, k) for x in both.judged]
    return paired_difference(ACCURACY, level, missing, *counts)
