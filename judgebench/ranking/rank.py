"""One ranker's scores made into a ranking: places, how firm they are, and which systems differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.ranking.complete import Complete, complete
from judgebench.ranking.differ import differ
from judgebench.ranking.result import (
    NO_CONTROL,
    NO_SCORE,
    Above,
    RankedSystem,
    RankerScores,
    Ranking,
    System,
)
from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray
from judgebench.stats.means import mean_of, means, sums_by_cluster
from judgebench.stats.ranks import Firmness, firmness, places
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    Statistic,
    bootstrap_replicates,
    cluster_bootstrap,
)

__all__ = ["places", "rank"]

FEWEST_CLUSTERS = 10  # resamples of fewer make any order look firm
NO_INSTANCE = "no instance has a score for every system"
NO_ARGUMENT = "there is no real argument"
_MEANS = Statistic("means", means, lambda sums: "")


def rank(
    scores: RankerScores, systems: Sequence[System], resampling: Resampling, metric: str
) -> Ranking:
    """Those of `systems` that this ranker scored, ranked.

    An evaluator's score is the share of right decisions (accuracy, which micro-F1 equals where each
    instance has one class) and is called `metric`; that of judges and humans is the mean value.
    Everything rests on the same instances, those with a score for every system; the others are
    missing. A system without any score is left out, and `reason` says so. Scores, and values, that
    differ by no more than 1e-6 (`stats.within_item_ranks.TIE`) are level. Place ranges and `above`
    come from the very resamples of the scores' intervals; fewer than ten clusters give none.
    Friedman's test and Nemenyi's groups are those of `ranking.differ`.
    """
    table = complete(scores, systems)
    metric = metric if table.is_share else ""
    unscored = f"without any score: {', '.join(table.unscored)}" if table.unscored else ""
    if not table.n:
        return Ranking(
            scores.task, scores.ranker, scores.kind, (), 0, table.n_missing,
            reason=_joined(NO_INSTANCE, unscored), metric=metric,
        )  # fmt: skip
    found, average, firm = _scored(table, resampling)
    ranks = places(table.values)
    loose = "" if firm else f"fewer than {FEWEST_CLUSTERS} groups: how firm places are is not known"
    average_ranks, controls_below = _ranked(table, ranks, resampling)
    test = differ(ranks, table.clusters, resampling.level)
    place = places(table.score.mean(axis=0)).tolist()
    order = sorted(range(len(place)), key=lambda i: (place[i], table.systems[i].name))
    ranked = tuple(
        RankedSystem(
            table.systems[i].name, found[i], place[i], _range(firm, i), average_ranks[i],
            test.letters[i],
        )
        for i in order
    )  # fmt: skip
    return Ranking(
        scores.task, scores.ranker, scores.kind, ranked, table.n, table.n_missing,
        test.chi_square, test.p, test.critical_difference, _joined(test.reason, unscored, loose),
        _above(table, order, firm), controls_below, average, metric,
    )  # fmt: skip


def _scored(
    table: Complete, resampling: Resampling
) -> tuple[list[Estimate], Estimate, Firmness | None]:
    """Each system's score, the mean score of the real arguments, and how firm the places are."""
    arguments = table.of(arguments=True)
    score, k = table.score, len(table.systems)
    if arguments:
        score = np.hstack([score, score[:, arguments].mean(axis=1, keepdims=True)])
    sample, found = _means(table, score, resampling, is_proportion=table.is_share)
    average = found[k] if arguments else NO_SCORE
    if table.clusters.n < FEWEST_CLUSTERS:
        return found, average, None
    replicates = bootstrap_replicates(sample, _MEANS, resampling)[:, :k]
    return found, average, firmness(replicates, resampling.level)


def _ranked(
    table: Complete, ranks: FloatArray, resampling: Resampling
) -> tuple[list[Estimate], Estimate]:
    """The average ranks, and the share of control cases below all real arguments."""
    _, average_ranks = _means(table, ranks, resampling)
    arguments, controls = table.of(arguments=True), table.of(arguments=False)
    if not arguments or not controls:
        return average_ranks, NO_CONTROL if arguments else Estimate(None, reason=NO_ARGUMENT)
    lowest = ranks[:, arguments].max(axis=1, keepdims=True)
    below = (ranks[:, controls] > lowest).mean(axis=1, keepdims=True)
    _, (share,) = _means(table, below, resampling, is_proportion=True)
    return average_ranks, share


def _means(
    table: Complete, x: FloatArray, resampling: Resampling, *, is_proportion: bool = False
) -> tuple[ClusterCounts, list[Estimate]]:
    """The mean of each column of x (instances, m), and the clusters' sums that it rests on."""
    sample = ClusterCounts(sums_by_cluster(x, table.clusters))
    statistics = (mean_of(j, NO_INSTANCE, is_proportion=is_proportion) for j in range(x.shape[1]))
    return sample, [
        cluster_bootstrap(sample, statistic, resampling, n=table.n, n_missing=table.n_missing)
        for statistic in statistics
    ]


def _range(firm: Firmness | None, i: int) -> tuple[float, float] | None:
    return (float(firm.low[i]), float(firm.high[i])) if firm else None


def _above(table: Complete, order: Sequence[int], firm: Firmness | None) -> tuple[Above, ...]:
    """Every pair in the order of places, neighbours first."""
    if firm is None:
        return ()
    names = [system.name for system in table.systems]
    return tuple(
        Above(names[i], names[j], float(firm.above[i, j]))
        for distance in range(1, len(order))
        for i, j in zip(order, order[distance:], strict=False)
    )


def _joined(*reasons: str) -> str:
    return "; ".join(filter(None, reasons))
