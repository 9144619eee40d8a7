"""Judges against each other: who is right more often on the same items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.against_truth import truths
from judgebench.alignment.differences import corrected
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.results.tables import NO_REASON
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.means import clustered_mean
from judgebench.stats.paired import SIGNS_FLIPPED, mcnemar_clustered
from judgebench.studies.study import JudgeVerdicts, Study

NO_SHARED_TRUTH = "no item has a reference label and a label of both"
NEVER_APART = "the two are right equally often on every question"


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
    right = outcomes(study, study.judges, metric)
    real = [judge.name for judge in study.real_judges]
    controls = [judge.name for judge in study.controls]
    pairs = [*combinations(real, 2), *((name, control) for name in real for control in controls)]
    rows = []
    for first, second in pairs:
        difference, p = _comparison(study, right, first, second)
        tested = replace(difference, value=p, low=None, high=None, method=SIGNS_FLIPPED, reason="")
        if p is None:
            reason = NEVER_APART if difference.value is not None else difference.reason
            tested = replace(tested, reason=reason or NO_REASON)
        estimates = {"accuracy_difference": difference, "permutation_p": tested}
        for statistic, estimate in estimates.items():
            rows.append(Row("comparison", statistic, estimate, first, metric.id, {"who": second}))
    yield from (*rows, *corrected(rows, ("metric",)))


def _comparison(
    study: Study, right: Outcomes, first: str, second: str
) -> tuple[Estimate, float | None]:
    """The difference, and p, of one pair."""
    apart, clusters = right.apart(first, second)
    difference = clustered_mean(
        apart, clusters.codes, NO_SHARED_TRUTH, study.level, kind="difference"
    )
    return difference, mcnemar_clustered(apart, clusters)
