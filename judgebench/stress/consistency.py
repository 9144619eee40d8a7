"""Does a judge say the same when it is asked the same again, and would a majority help?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.paired import NET_CHANGE
from judgebench.stress.pairs import Pairs, VariantVerdicts
from judgebench.stress.result import EVERY, SelfConsistency
from judgebench.study.truth import Labels

NO_TRUTH = "no item that was asked again has a human truth"
NO_REPEAT = "no item has two verdicts with a label"


def self_consistency(pairs: Pairs) -> Iterator[SelfConsistency]:
    """Each judge that was asked again, on every metric, and on EVERY with all labels pooled.

    Several recipes that repeat are kept apart, in their order.
    """
    repeats = [v for v in pairs.variants if v.kind == "repeat"]
    for name, recipe in dict.fromkeys((v.judge, v.recipe) for v in repeats):
        chosen = [v for v in repeats if (v.judge, v.recipe) == (name, recipe)]
        yield from _of_judge(pairs, name, sorted(chosen, key=lambda v: v.repeat))


def _of_judge(
    pairs: Pairs, judge: str, repeats: list[VariantVerdicts]
) -> Iterator[SelfConsistency]:
    rows = pairs.asked({key for repeat in repeats for key in repeat.verdicts})
    asked = [pairs.judged[judge], *(pairs.labels(v) for v in repeats)]
    ratings = np.stack([labels[rows] for labels in asked], axis=-1)  # (items, metrics, asked)
    metrics = pairs.rubric.metrics
    truth, clusters = pairs.truth[rows], pairs.clusters[rows]
    for column, metric in enumerate(metrics):
        of_metric = (ratings[:, column], truth[:, column], clusters, len(metric.labels))
        yield _consistency(pairs, judge, metric.id, *of_metric)
    stacked = (
        ratings.reshape(-1, len(asked)),
        truth.ravel(),
        Clusters(clusters.codes.repeat(len(metrics)), clusters.n),
    )
    most = max(len(m.labels) for m in metrics)
    yield _consistency(pairs, judge, EVERY, *stacked, most)


def _consistency(
    pairs: Pairs,
    judge: str,
    metric: str,
    ratings: Labels,
    truth: Labels,
    clusters: Clusters,
    k: int,
) -> SelfConsistency:
    asked = ratings.shape[1]
    votes = vote_pairs_by_cluster(ratings, clusters, k)
    n, possible = round(votes.sum()), len(ratings) * asked * (asked - 1) // 2
    agreement = pairs.bootstrap(votes, OBSERVED_AGREEMENT, n, possible)
    if n == 0:
        agreement = replace(agreement, reason=NO_REPEAT)
    gain = _majority_gain(pairs, ratings, truth, clusters, k)
    return SelfConsistency(judge, metric, asked, agreement, gain)


def _majority_gain(
    pairs: Pairs, ratings: Labels, truth: Labels, clusters: Clusters, k: int
) -> Estimate:
    """Accuracy of the majority minus accuracy of the first verdict, on items with a truth."""
    known = truth >= 0
    ratings, truth, clusters = ratings[known], truth[known], clusters[known]
    first = ratings[:, 0]
    right_first = np.where(first < 0, -1, first == truth)
    right = np.where(first < 0, -1, majority(ratings, k) == truth)
    gain = pairs.compared(right_first, right, clusters, NET_CHANGE)
    return gain if known.any() else replace(gain, reason=NO_TRUTH)


def majority(ratings: IntArray, k: int) -> Labels:
    """The most frequent label (items,) of ratings (items, asked); -1 where there is none.

    Of tied labels it is the first rating's where that is among them, else the lowest.
    """
    votes = value_counts(ratings, k).astype(np.float64)
    given = np.flatnonzero(ratings[:, 0] >= 0)
    votes[given, ratings[given, 0]] += 0.5  # half a vote settles ties and nothing else
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
