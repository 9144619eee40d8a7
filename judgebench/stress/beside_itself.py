"""Each judge beside itself: asked the same again, and its labels of one metric beside another's.

One overall impression that colours every label is known as the halo effect (Thorndike, 1920).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.arrays import Clusters, IntArray, value_counts
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.means import (
    CORRELATION_DIFFERENCE,
    MEAN_CORRELATION,
    moments_by_cluster,
)
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


ONE_PASS, PER_METRIC, HUMANS = "one pass", "per metric", "humans"
TOO_FEW_METRICS = "the rubric has fewer than two ordinal metrics: there is no pair to correlate"
NO_TRUTH_ON_ALL = "no item with all labels has a human truth on every ordinal metric"
THE_HUMANS = "these are the humans themselves"


def halo(pairs: Pairs) -> Iterator[Row]:
    """Each real judge in one pass, metric by metric where it was asked so, and the humans.

    All on the unaltered answers, or on those that were asked metric by metric (by the first
    recipe that does). Both ways of asking use the items that have every ordinal label in both.
    """
    for judge in pairs.real_judges:
        passes, rows = {ONE_PASS: pairs.judged[judge.name]}, pairs.unaltered
        apart = [v for v in pairs.variants if (v.judge, v.kind) == (judge.name, "per-metric")]
        if apart:
            passes[PER_METRIC] = pairs.labels(apart[0])
            rows = pairs.asked(apart[0].verdicts)
        yield from _halo_of(pairs, judge.name, passes, rows)


def _halo_of(pairs: Pairs, judge: str, passes: Mapping[str, Labels], rows: Labels) -> Iterator[Row]:
    metrics = pairs.rubric.metrics
    columns = [c for c, m in enumerate(metrics) if m.kind == "ordinal"]
    truth = pairs.truth[:, columns]
    said = {who: labels[:, columns] for who, labels in passes.items()}
    whole = rows[np.all([_complete(labels[rows]) for labels in said.values()], axis=0)]
    true = whole[_complete(truth[whole])]
    for who, labels in said.items():
        own = _correlation(pairs, [labels], whole, len(rows))
        beyond = _correlation(pairs, [labels, truth], true, len(rows))
        yield from _halo_rows(judge, who, own, beyond)
    humans = _correlation(pairs, [truth], rows[_complete(truth[rows])], len(rows))
    itself = Estimate(None, reason=THE_HUMANS, level=pairs.resampling.level)
    yield from _halo_rows(judge, HUMANS, humans, itself)


def _halo_rows(judge: str, who: str, correlation: Estimate, beyond: Estimate) -> Iterator[Row]:
    yield Row("halo", "correlation", correlation, judge, keys={"who": who})
    yield Row("halo", "beyond_humans", beyond, judge, keys={"who": who})


def _complete(labels: Labels) -> NDArray[np.bool_]:
    complete: NDArray[np.bool_] = np.all(labels >= 0, axis=1)
    return complete


def _correlation(pairs: Pairs, sides: list[Labels], rows: Labels, asked: int) -> Estimate:
    """The mean correlation of one side, or of the first minus the second, on those rows.

    A side is label indices (texts, ordinal metrics), whole on `rows`.
    """
    n = len(rows)
    ordinal = [m for m in pairs.rubric.metrics if m.kind == "ordinal"]
    if len(ordinal) < 2:
        level = pairs.resampling.level
        return Estimate(None, n=n, n_missing=asked - n, reason=TOO_FEW_METRICS, level=level)
    severities = [
        np.column_stack([np.array(m.severities)[side[rows, c]] for c, m in enumerate(ordinal)])
        for side in sides
    ]
    moments = [moments_by_cluster(s, pairs.clusters[rows]) for s in severities]
    single = len(sides) == 1
    statistic = MEAN_CORRELATION if single else CORRELATION_DIFFERENCE
    counts = moments[0] if single else np.stack(moments, axis=1)
    found = pairs.bootstrap(counts, statistic, n, asked)
    return found if n or single else replace(found, reason=NO_TRUTH_ON_ALL)
