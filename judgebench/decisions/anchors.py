"""Anchors: answers with a known right label, which annotators labelled and the judge judged blind.

Labels cannot show an error that annotators and judge share, because both agree on it. Answers with
a known severe flaw do, as far as their flaws are like the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate, Results, Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters
from judgebench.stats.intervals import exact_share
from judgebench.stats.paired_tests import mcnemar_clustered
from judgebench.studies.reference_labels import Mask, settle
from judgebench.studies.study import ANCHORS, Study

CONSENSUS = "consensus"
BOTH_MISS, FINDS_MORE = "both_miss", "p_judge_finds_more"


def anchor_rows(study: Study, rule: DecisionRule) -> Results:
    """Return the rows of the study's anchors, on metrics with severe labels.

    `found` and `false_alarms` are shares of the severe and of the other anchors that an annotator
    (`who`), the consensus of those in the bar, or a judge calls severe; a label that the judge owes
    is none. The others are those of `shared_misses`.
    """
    anchors: Study = study.beside[ANCHORS]
    metrics = (m for m in study.rubric.metrics if m.has_severe and not m.several)
    return Results(tuple(row for m in metrics for row in _of_metric(study, anchors, m, rule)))


def _of_metric(study: Study, anchors: Study, metric: Metric, rule: DecisionRule) -> Iterator[Row]:
    severe_from = rule.severe_index(metric) or 0
    trusted = study.humans[metric.id].trusted(rule.replace.humans.bar)
    ratings = anchors.humans[metric.id].ratings
    ratings = ratings.of([name for name in trusted if name in ratings.annotators])
    is_counted = (ratings.adjudicated >= 0) & (ratings.values >= 0).any(axis=1)
    ratings = ratings.at(np.flatnonzero(is_counted))
    is_severe, clusters = ratings.adjudicated >= severe_from, anchors.clusters[ratings.rows]
    consensus = np.maximum(settle(ratings.values, metric, study.config), 0)
    raters = [("", *rater) for rater in zip(ratings.annotators, ratings.values.T, strict=True)]
    raters.append(("", CONSENSUS, consensus))
    for judge in anchors.real_judges:
        # A label that the judge owes is not severe.
        labels = np.maximum(anchors.judged(judge, metric), 0)
        is_due = anchors.asked(judge, metric)
        raters.append((judge.name, "", np.where(is_due, labels, -1)[ratings.rows]))
    for judge_name, who, labels in raters:
        is_called, has_label = labels >= severe_from, labels >= 0
        severe, others = is_severe & has_label, ~is_severe & has_label
        shares = {
            "found": _share(is_called, severe, clusters, rule.level),
            "false_alarms": _share(is_called, others, clusters, rule.level),
        }
        if judge_name:
            by_people = consensus >= severe_from
            shares |= shared_misses(by_people, is_called, severe, clusters, rule.level)
        for statistic, share in shares.items():
            yield Row("anchors", statistic, share, judge_name, metric.id, {"who": who})


def shared_misses(
    by_people: Mask, by_judge: Mask, is_severe: Mask, clusters: Clusters, level: float
) -> dict[str, Estimate]:
    """Return the share of severe anchors that consensus and judge both miss; each limit of its
    interval alone holds at the level. Where the judge finds more than the consensus, also the
    p value of that (McNemar 1947, two-sided, exact). All masks are (anchors,). Empty without a
    severe anchor.
    """
    if not is_severe.any():
        return {}
    share = _share(~by_people & ~by_judge, is_severe, clusters, 2 * level - 1)
    shares = {BOTH_MISS: replace(share, level=level)}  # of each of its limits
    apart = np.where(is_severe, by_judge.astype(np.float64) - by_people, 0)
    if apart.sum() > 0:
        p = mcnemar_clustered(apart, clusters)
        shares[FINDS_MORE] = Estimate(p, n=int(np.count_nonzero(apart)))
    return shares


def _share(is_counted: Mask, is_of: Mask, clusters: Clusters, level: float) -> Estimate:
    x, n = clusters.sums(is_counted & is_of, is_of).T
    return exact_share(x, n, np.ones(len(n)), level)
