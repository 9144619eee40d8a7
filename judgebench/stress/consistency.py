"""Does a judge say the same when it is asked the same again, and would a majority help?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.paired import NET_CHANGE
from judgebench.stress.pairs import Pairs, VariantVerdicts
from judgebench.stress.result import EVERY
from judgebench.study.truth import Labels

NO_TRUTH = "no item that was asked again has a human truth"
NO_REPEAT = "no item has two verdicts with a label"


@dataclass(frozen=True)
class _Repeated:
    """Label indices `ratings` (items, asked) of up to `k` labels, -1 for none, the first verdict
    first, and the truth (items,)."""

    ratings: Labels
    truth: Labels
    clusters: Clusters
    k: int


def self_consistency(pairs: Pairs) -> Iterator[Row]:
    """Each judge that was asked again, on every metric, and on EVERY with all labels pooled.

    Several recipes that repeat are kept apart, in their order.
    """
    repeats = [v for v in pairs.variants if v.kind == "repeat"]
    asked = list(dict.fromkeys((v.judge, v.recipe) for v in repeats))
    several = len({recipe for _, recipe in asked}) > 1
    for name, recipe in asked:
        chosen = [v for v in repeats if (v.judge, v.recipe) == (name, recipe)]
        keys = {"recipe": recipe} if several else {}
        for metric, repeated in _repeated(pairs, name, sorted(chosen, key=lambda v: v.repeat)):
            for statistic, estimate in _numbers(pairs, repeated).items():
                yield Row("consistency", statistic, estimate, name, metric, keys)


def _repeated(
    pairs: Pairs, judge: str, repeats: list[VariantVerdicts]
) -> Iterator[tuple[str, _Repeated]]:
    """What is compared on every metric, and on EVERY."""
    rows = pairs.asked({key for repeat in repeats for key in repeat.verdicts})
    asked = [pairs.judged[judge], *(pairs.labels(v) for v in repeats)]
    ratings = np.stack([labels[rows] for labels in asked], axis=-1)  # (items, metrics, asked)
    metrics = pairs.rubric.metrics
    truth, clusters = pairs.truth[rows], pairs.clusters[rows]
    for c, metric in enumerate(metrics):
        yield metric.id, _Repeated(ratings[:, c], truth[:, c], clusters, len(metric.labels))
    pooled = Clusters(clusters.codes.repeat(len(metrics)), clusters.n)
    most = max(len(m.labels) for m in metrics)
    yield EVERY, _Repeated(ratings.reshape(-1, len(asked)), truth.ravel(), pooled, most)


def _numbers(pairs: Pairs, repeated: _Repeated) -> Mapping[str, Estimate]:
    items, asked = repeated.ratings.shape
    votes = vote_pairs_by_cluster(repeated.ratings, repeated.clusters, repeated.k)
    n, possible = round(votes.sum()), items * asked * (asked - 1) // 2
    agreement = pairs.bootstrap(votes, OBSERVED_AGREEMENT, n, possible)
    if n == 0:
        agreement = replace(agreement, reason=NO_REPEAT)
    gain = _majority_gain(pairs, repeated)
    return {"asked": Estimate(asked), "agreement": agreement, "majority_gain": gain}


def _majority_gain(pairs: Pairs, repeated: _Repeated) -> Estimate:
    """Accuracy of the majority minus accuracy of the first verdict, on items with a truth."""
    known = repeated.truth >= 0
    ratings, truth = repeated.ratings[known], repeated.truth[known]
    first = ratings[:, 0]
    right_first = np.where(first < 0, -1, first == truth)
    right = np.where(first < 0, -1, majority(ratings, repeated.k) == truth)
    gain = pairs.compared(right_first, right, repeated.clusters[known], NET_CHANGE)
    return gain if known.any() else replace(gain, reason=NO_TRUTH)


def majority(ratings: IntArray, k: int) -> Labels:
    """The most frequent label (items,) of ratings (items, asked); -1 where there is none.

    Of tied labels it is the first rating's where that is among them, else the lowest.
    """
    votes = value_counts(ratings, k).astype(np.float64)
    given = np.flatnonzero(ratings[:, 0] >= 0)
    votes[given, ratings[given, 0]] += 0.5  # half a vote settles ties and nothing else
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
