"""Judges against each other: who is right more often on the same items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

from judgebench.alignment.differences import (
    Both,
    both_of,
    corrected,
    failure_policies,
    paired_difference,
    right_alone,
    share_tests,
)
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.confusion import ACCURACY, confusion_by_cluster
from judgebench.studies.study import Study


@dataclass(frozen=True)
class Outcomes:
    """Which of any two judges of a study is right on one metric, one entry per truth (rule `each`:
    per human label)."""

    study: Study
    metric: Metric

    def apart(self, first: str, second: str) -> tuple[FloatArray, Clusters]:
        """1 where only the first is right, -1 where only the second is, NaN where either gave no
        label, of what both were asked, and its clusters."""
        of = {judge.name: judge for judge in self.study.judges}
        both = both_of(self.study, (of[second], of[first]), self.metric)
        known = both.truth >= 0
        return right_alone(both)[known], both.clusters[known]


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
