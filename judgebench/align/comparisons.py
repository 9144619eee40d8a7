"""Judges against each other: who is right more often on the same items, and who ranks higher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judgebench.align.judges import paired_labels
from judgebench.align.result import Comparison, Ranking, Score
from judgebench.records import Estimate
from judgebench.rubric import Metric, Rubric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.p_values import holm
from judgebench.stats.paired import (
    ACCURACY_DIFFERENCE,
    discordance_by_cluster,
    discordant,
    mcnemar_clustered,
    mcnemar_mid_p,
)
from judgebench.stats.ranks import friedman, groups, nemenyi_critical_difference
from judgebench.stats.resample import ClusterCounts, cluster_bootstrap
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import Labels

EVERY_METRIC = "all"  # as the metric of a ranking
_NO_INTERVAL = "an average rank has no interval; judges of one group do not differ"


@dataclass(frozen=True)
class Outcomes:
    """How every judge did on one metric, one entry per truth (rule `each`: per human label).

    `of` holds by judge's name (truths,): 1 right, 0 wrong, -1 where it gave no label.
    """

    of: Mapping[str, NDArray[np.int8]]
    clusters: Clusters

    def pair(self, first: str, second: str) -> ClusterCounts:
        """The counts of `discordance_by_cluster` of two judges."""
        pair = self.of[first], self.of[second]
        return ClusterCounts(discordance_by_cluster(*pair, self.clusters))

    def n_missing(self, first: str, second: str) -> int:
        """How many truths at least one of the two gave no label to."""
        return int(((self.of[first] < 0) | (self.of[second] < 0)).sum())


def outcomes(study: Study, judges: Sequence[JudgeVerdicts], metric: Metric) -> Outcomes:
    """Who was right on what."""
    of, clusters = {}, Clusters(np.zeros(0, dtype=np.int64), 0)
    for judge in judges:
        truth, judged, clusters = paired_labels(study, judge, metric)
        known = truth >= 0
        of[judge.name], clusters = _right(truth[known], judged[known]), clusters[known]
    return Outcomes(of, clusters)


def _right(truth: IntArray, judged: Labels) -> NDArray[np.int8]:
    return np.where(judged < 0, -1, judged == truth).astype(np.int8)


def comparisons(
    study: Study, judges: Sequence[JudgeVerdicts], metric: Metric
) -> Iterator[Comparison]:
    """Each two real judges, and each real judge with each control, on one metric.

    Only items to which both gave a label count. p values are corrected over all these pairs.
    """
    right = outcomes(study, judges, metric)
    real = [judge.name for judge in judges if judge.kind != "control"]
    controls = [judge.name for judge in judges if judge.kind == "control"]
    pairs = [*combinations(real, 2), *((name, control) for name in real for control in controls)]
    found = [_comparison(study, metric, right, *pair) for pair in pairs]
    for one, p in zip(found, holm([one.permutation_p for one in found]), strict=True):
        yield replace(one, p_holm=p)


def _comparison(
    study: Study, metric: Metric, right: Outcomes, first: str, second: str
) -> Comparison:
    counts, missing = right.pair(first, second), right.n_missing(first, second)
    n = len(right.clusters) - missing
    difference = cluster_bootstrap(
        counts, ACCURACY_DIFFERENCE, study.resampling, n=n, n_missing=missing
    )
    mcnemar = mcnemar_mid_p(*discordant(counts.total))
    permutation = mcnemar_clustered(counts, seed=study.resampling.seed)
    return Comparison(metric.id, first, second, difference, mcnemar, permutation, None)


def rankings(
    rubric: Rubric, judges: Sequence[JudgeVerdicts], scores: Sequence[Score], level: float
) -> Iterator[Ranking]:
    """All judges, controls too, ranked by accuracy on each metric: metrics are the blocks.

    Metrics on which a judge's accuracy is undefined are left out. Where Friedman's test finds no
    difference at 1 - `level`, all judges are one group.
    """
    accuracy = {
        (s.judge, s.metric): s.estimate.value
        for s in scores
        if s.statistic == "accuracy" and s.failures == "left_out"
    }
    names = [judge.name for judge in judges]
    rows = [[accuracy.get((name, metric.id)) for name in names] for metric in rubric.metrics]
    blocks = np.array([row for row in rows if None not in row], dtype=np.float64)
    missing = len(rows) - len(blocks)
    if len(names) < 3 or len(blocks) < 2:
        reason = f"ranks need 3 judges and 2 metrics; here are {len(names)} and {len(blocks)}"
        undefined = Estimate(None, n=len(blocks), n_missing=missing, reason=reason, level=level)
        yield from (Ranking(EVERY_METRIC, name, undefined, "", None, None) for name in names)
    else:
        yield from _ranked(names, blocks, missing, level)


def _ranked(
    names: Sequence[str], blocks: FloatArray, missing: int, level: float
) -> Iterator[Ranking]:
    found = friedman(blocks)
    distance = nemenyi_critical_difference(len(names), len(blocks), level)
    letters = ["a"] * len(names)
    if found.p is not None and found.p <= 1 - level:
        letters = groups(found.average_ranks, distance)
    for name, rank, letter in zip(names, found.average_ranks.tolist(), letters, strict=True):
        average = Estimate(rank, n=len(blocks), n_missing=missing, reason=_NO_INTERVAL, level=level)
        yield Ranking(EVERY_METRIC, name, average, letter, found.p, distance)
