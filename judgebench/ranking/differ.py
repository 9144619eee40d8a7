"""Whether systems differ in rank at all, and which of them do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.means import means, sums_by_cluster
from judgebench.stats.ranks import friedman, groups, levels, nemenyi_critical_difference


@dataclass(frozen=True)
class Differ:
    """Friedman's test with Nemenyi's groups. `letters` has one entry a system. `reason` says why
    there is no test, or that clusters are its blocks."""

    letters: Sequence[str]
    reason: str = ""
    chi_square: float | None = None
    p: float | None = None
    critical_difference: float | None = None


def differ(ranks: FloatArray, clusters: Clusters, level: float) -> Differ:
    """Friedman's test and Nemenyi's groups of ranks (instances, systems), 1 the best.

    Blocks must be independent. They are the instances, or, where a cluster holds
    several, the clusters: the systems' mean ranks in each are ranked anew. Where the test finds no
    difference at 1 - `level`, all systems are of one group. No test with fewer than 3 systems or 2
    blocks, or where all systems tie in every block.
    """
    n, k = ranks.shape
    clustered = clusters.n < n
    blocks = "clusters" if clustered else "instances"
    if k < 3 or clusters.n < 2:
        reason = f"Friedman's test needs 3 systems and 2 {blocks}; here are {k} and {clusters.n}"
        return Differ([""] * k, reason)
    found = friedman(levels(-means(sums_by_cluster(ranks, clusters))))
    if found.p is None:
        return Differ([""] * k, f"all systems tie in all {found.blocks} {blocks}")
    distance = nemenyi_critical_difference(k, found.blocks, level)
    apart = found.p <= 1 - level
    letters = groups(found.average_ranks, distance) if apart else ["a"] * k
    reason = ""
    if clustered:
        reason = (
            f"Friedman's test ranks the mean ranks in {clusters.n} clusters, "
            f"since the {n} instances are not independent"
        )
    return Differ(letters, reason, found.chi_square, found.p, distance)
