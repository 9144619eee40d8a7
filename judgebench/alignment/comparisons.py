"""Judges against each other: who is right more often on the same items, and who ranks higher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judgebench.alignment.against_truth import truths
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.results.tables import NO_REASON
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters
from judgebench.stats.jackknife import ClusterCounts, clustered_estimate
from judgebench.stats.paired import (
    ACCURACY_DIFFERENCE,
    discordance_by_cluster,
    discordant,
    holm,
    mcnemar_clustered,
    mcnemar_mid_p,
)
from judgebench.stats.ranks import friedman, groups, nemenyi_critical_difference
from judgebench.studies.study import JudgeVerdicts, Study

EVERY_METRIC = "all"  # as the metric of a ranking
NEVER_APART = "the two are right equally often on every question"
ALL_TIE = "all judges tie on every metric"
_NO_INTERVAL = "an average rank has no interval; judges of one group are not shown to differ"


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
    the first minus that of the second, with three p values.

    Only items to which both gave a label count. McNemar's mid-p takes items as independent; the
    permutation flips the sign of whole clusters; `p_holm` is that one, corrected over all these
    pairs.
    """
    right = outcomes(study, study.judges, metric)
    real = [judge.name for judge in study.real_judges]
    controls = [judge.name for judge in study.controls]
    pairs = [*combinations(real, 2), *((name, control) for name in real for control in controls)]
    found = [_comparison(study, right, *pair) for pair in pairs]
    corrected = holm([p["permutation_p"] for _, p in found])
    for (first, second), (difference, raw), p_holm in zip(pairs, found, corrected, strict=True):
        key = {"who": second}
        yield Row("comparison", "accuracy_difference", difference, first, metric.id, key)
        for statistic, p in {**raw, "p_holm": p_holm}.items():
            estimate = Estimate(p, n=difference.n, n_missing=difference.n_missing)
            if p is None:
                reason = NEVER_APART if difference.value is not None else difference.reason
                estimate = replace(estimate, reason=reason or NO_REASON)
            yield Row("comparison", statistic, estimate, first, metric.id, key)


def _comparison(
    study: Study, right: Outcomes, first: str, second: str
) -> tuple[Estimate, Mapping[str, float | None]]:
    """The difference, and the p values of one pair."""
    counts, missing = right.pair(first, second), right.n_missing(first, second)
    n = len(right.clusters) - missing
    difference = clustered_estimate(
        counts, ACCURACY_DIFFERENCE, study.level, n=n, n_missing=missing
    )
    mcnemar = mcnemar_mid_p(*discordant(counts.total))
    permutation = mcnemar_clustered(counts)
    return difference, {"mcnemar_p": mcnemar, "permutation_p": permutation}


def rankings(study: Study, scored: Results) -> Iterator[Row]:
    """All judges, controls too, ranked by accuracy on each metric: metrics are the blocks.

    Metrics on which a judge's accuracy is undefined are left out. Judges that share a letter of
    `who` do not differ by Nemenyi's critical difference; where Friedman's test finds no difference
    at 1 - `level`, all share one.
    """
    names, level = [judge.name for judge in study.judges], study.level
    table = [
        [scored.find("accuracy", "score", judge=name, metric=m.id).value for name in names]
        for m in study.rubric.metrics
    ]
    blocks = np.array([row for row in table if None not in row], dtype=np.float64)
    missing = len(table) - len(blocks)
    of_all = Estimate(None, n=len(blocks), n_missing=missing, level=level)
    if len(names) < 3 or len(blocks) < 2:
        reason = f"ranks need 3 judges and 2 metrics; here are {len(names)} and {len(blocks)}"
        undefined = replace(of_all, reason=reason)
        for name in names:
            yield Row("ranking", "average_rank", undefined, name, EVERY_METRIC, {"who": ""})
        for statistic in ("friedman_p", "critical_difference") if names else ():
            yield Row("ranking", statistic, undefined, "", EVERY_METRIC)
        return
    found = friedman(blocks)
    distance = nemenyi_critical_difference(len(names), len(blocks), level)
    letters = ["a"] * len(names)
    if found.p is not None and found.p <= 1 - level:
        letters = groups(found.average_ranks, distance)
    for name, rank, letter in zip(names, found.average_ranks.tolist(), letters, strict=True):
        average = replace(of_all, value=rank, reason=_NO_INTERVAL)
        yield Row("ranking", "average_rank", average, name, EVERY_METRIC, {"who": letter})
    for statistic, value in (("friedman_p", found.p), ("critical_difference", distance)):
        estimate = replace(of_all, value=value, reason=ALL_TIE if value is None else "")
        yield Row("ranking", statistic, estimate, "", EVERY_METRIC)
