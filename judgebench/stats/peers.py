"""Annotators beside their peers: who sets the bar for a judge, who is in which camp.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label. Nothing here looks at
a judge or at a truth: an annotator is compared with the others' agreement among themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.intervals import OfSamples, clustered_share, mean_difference

BarKind = Literal["typical", "average", "best"]
Bools = NDArray[np.bool_]

CLEARLY_WORSE = 0.05  # less agreement with the others than this is no reason to leave anybody out
_NORMAL = 3.92  # widths of a 95 % interval in standard errors


@dataclass(frozen=True)
class Bar:
    """Whose agreement a judge is held against.

    `kept` (annotators,) are in the bar. `gap` is how much more often, or less, each agrees with
    those of the bar than these agree with each other, with an interval; NaN where nothing tells.
    `weights` (bars, annotators) says how much a label of each counts; with several rows nothing
    tells which of them is the bar, and a judge has to reach every one.
    """

    kept: Bools
    gap: OfSamples
    weights: FloatArray
    spread: float = 0.0


def bar_of(
    ratings: IntArray, clusters: Clusters, k: int, kind: BarKind = "typical", level: float = 0.95
) -> Bar:
    """The bar of the typical competent annotator, of the average one, or of the best.

    typical: annotators who are clearly worse than the others are left out one by one, the worst
    first, and never more than half. Of the rest the better half counts more, by as much as the data
    can tell them apart (James and Stein): a share s = max(0, 1 - mean(se^2) / mean(gap^2)) of the
    bar is theirs alone. Two annotators cannot be told apart: each is a bar.
    """
    rated = (ratings >= 0).any(axis=0)
    kept = rated.copy()
    if kind == "average":
        return Bar(kept, gaps(ratings, kept, clusters, k, level), kept[None].astype(np.float64))
    most = int(kept.sum()) // 2
    while kept.sum() > 2:
        found = gaps(ratings, kept, clusters, k, level)
        worse = np.flatnonzero(kept & _clearly_worse(found, kept, level))
        room = most - int((~kept & rated).sum())
        out = worse[np.argsort(found.value[worse], kind="stable")][: min(room, kept.sum() - 2)]
        if not len(out):
            break
        kept[out] = False
    found = gaps(ratings, kept, clusters, k, level)
    return Bar(kept, found, *_weights(ratings, kept, found, kind))


def _clearly_worse(found: OfSamples, kept: Bools, level: float) -> Bools:
    """Those whose gap is negative with a false discovery rate of 1 - level (Benjamini and Hochberg
    1995), and of a size that matters."""
    from scipy.special import ndtr

    se = (found.high - found.low) / _NORMAL
    p = np.where(kept, np.nan_to_num(ndtr(ratio(found.value, se)), nan=1.0), 1.0)
    order = np.argsort(p, kind="stable")
    below = p[order] <= (1 - level) * np.arange(1, len(p) + 1) / max(1, kept.sum())
    worse = np.zeros(len(p), dtype=np.bool_)
    worse[order[: np.flatnonzero(below).max(initial=-1) + 1]] = True
    return worse & (found.value < -CLEARLY_WORSE)


def _weights(
    ratings: IntArray, kept: Bools, found: OfSamples, kind: BarKind
) -> tuple[FloatArray, float]:
    gap, se = found.value[kept], (found.high - found.low)[kept] / _NORMAL
    everybody = kept.astype(np.float64)
    if kept.sum() == 2:
        return np.eye(len(kept))[kept], 0.0
    if kept.sum() < 2 or np.isnan(gap).any():
        return everybody[None], 0.0
    better = np.zeros(len(kept), dtype=np.bool_)
    most = 1 if kind == "best" else len(gap) // 2 + 1
    better[np.flatnonzero(kept)[np.argsort(-gap, kind="stable")[:most]]] = True
    noise = (1 + np.sqrt(2 / (len(gap) - 1))) * float((se**2).mean())
    spread2 = max(0.0, float((gap**2).mean()) - noise)
    share = spread2 / (spread2 + noise)
    labels = (ratings >= 0).sum(axis=0)
    scale = labels[kept].sum() / max(1, labels[better].sum())
    weights = (1 - share) * everybody + share * scale * better
    return weights[None], float(np.sqrt(spread2 * (1 - share)))


def gaps(ratings: IntArray, kept: Bools, clusters: Clusters, k: int, level: float) -> OfSamples:
    """How much more often each annotator agrees with the others of `kept` than these agree with
    each other on the same items, (annotators,); where no item has two others, than all others do
    anywhere. A smoothed cluster-robust interval."""
    votes = value_counts(ratings[:, kept], k)
    m, same = votes.sum(axis=1), (votes * (votes - 1)).sum(axis=1)
    found = [
        _gap(ratings[:, a], bool(kept[a]), votes, (m, same), clusters, level)
        for a in range(ratings.shape[1])
    ]
    return OfSamples(*(np.array(x) for x in zip(*found, strict=True)))


def _gap(own, inside, votes, totals, clusters, level):
    rows = np.flatnonzero(own >= 0)
    m, same = (x[rows] for x in totals)
    x = votes[rows, own[rows]] - inside
    others = m - inside
    pairs, agreeing = others * (others - 1), same - 2 * x * inside
    several = pairs > 0
    if several.any():
        d = ratio(x, others)[several] - ratio(agreeing, pairs)[several]
        rows = rows[several]
    else:
        all_m, all_same = totals
        rest = np.ones(len(own), dtype=bool)
        if inside:
            rest[rows] = False
        both = (all_m * (all_m - 1))[rest].sum()
        one = others > 0
        if not both or not one.any():
            return (np.nan,) * 3
        d = ratio(x, others)[one] - all_same[rest].sum() / both
        rows = rows[one]
    of = clusters[rows].occurring()
    sums = of.sums(d, np.ones(len(d)))
    r = mean_difference(sums[:, :1], sums[:, 1:], np.ones((1, of.n)), level, balanced=False)
    return float(r.value[0]), float(r.low[0]), float(r.high[0])


# --- camps ----------------------------------------------------------------------------------------

_MOST_CAMPS = 3


def camps(
    ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95
) -> tuple[tuple[int, ...], ...]:
    """Groups of two annotators or more that agree within and differ across; empty where none are
    shown, each with its members in order.

    Where annotators merely differ in skill, the less skilled agree with each other no more often
    than with the skilled. Camps are declared only where *every* group agrees within more often than
    with the other groups. Groups are formed on one half of the clusters (average linkage on the
    share of unequal labels) and tested on the other, one-sided, and Bonferroni-corrected for the
    halves and partitions tried.
    """
    rated = (ratings >= 0).sum(axis=0) > 0
    if rated.sum() < 4:
        return ()
    half = np.random.default_rng(0).permutation(clusters.n)[clusters.codes] % 2 == 0
    parts = [(half, ~half), (~half, half)]
    tried = [
        (_camps_p(ratings[test], clusters[test].occurring(), groups), len(groups))
        for find, test in parts
        for groups in _groupings(ratings[find], rated, k)
    ]
    if not tried:
        return ()
    p, how_many = min(tried)
    if p * len(tried) > 1 - level:
        return ()
    whole = [groups for groups in _groupings(ratings, rated, k) if len(groups) == how_many]
    return tuple(tuple(map(int, group)) for group in whole[0]) if whole else ()


def _groupings(ratings: IntArray, rated: Bools, k: int) -> list[list[NDArray[np.int64]]]:
    """The partitions into two and three groups of two members or more; others stand alone."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    who = np.flatnonzero(rated)
    agreeing, shared = pair_counts(ratings[:, who], k)
    share = ratio(agreeing, shared)
    share = np.where(np.isnan(share), np.nanmean(share) if shared.any() else 0.0, share)
    np.fill_diagonal(share, 1)
    tree = linkage(squareform(1 - share, checks=False), "average")
    found = []
    for clusters in range(2, min(len(who), _MOST_CAMPS + 2) + 1):
        of = fcluster(tree, clusters, "maxclust")
        groups = [who[of == g] for g in np.unique(of) if (of == g).sum() >= 2]
        if 2 <= len(groups) <= _MOST_CAMPS and not any(_same(groups, other) for other in found):
            found.append(groups)
    return found


def _same(groups, others) -> bool:
    return {tuple(g) for g in groups} == {tuple(g) for g in others}


def pair_counts(ratings: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """How many items each two annotators labelled alike, and both labelled: (a, a) each."""
    given = (ratings >= 0).astype(np.float64)
    agreeing = np.zeros((ratings.shape[1],) * 2)
    for label in range(k):
        this = (ratings == label).astype(np.float64)
        agreeing += this.T @ this
    return agreeing, given.T @ given


def _camps_p(ratings: IntArray, clusters: Clusters, groups: list[NDArray[np.int64]]) -> float:
    """The largest p of the groups, each for agreeing within no more than across."""
    from scipy.special import ndtr

    k = int(ratings.max(initial=0)) + 1
    votes = [value_counts(ratings[:, group], k) for group in groups]
    everybody = np.sum(votes, axis=0)
    worst = 0.0
    for own in votes:
        m, others = own.sum(axis=1), everybody - own
        same, pairs = (own * (own - 1)).sum(axis=1), m * (m - 1)
        across, across_pairs = (own * others).sum(axis=1), m * others.sum(axis=1)
        x, n, y, o = clusters.sums(same, pairs, across, across_pairs).T
        within, between = ratio(x.sum(), n.sum()), ratio(y.sum(), o.sum())
        z = ratio(x - within * n, n.sum()) - ratio(y - between * o, o.sum())
        # A few items without a disagreement claim no certainty.
        se = np.sqrt((z**2).sum() + ratio(1, (n > 0).sum()) ** 2 + ratio(1, (o > 0).sum()) ** 2)
        difference = within - between
        if np.isnan(se) or difference < CLEARLY_WORSE:
            return 1.0
        worst = max(worst, float(ndtr(-difference / se)))
    return worst


# --- copies ---------------------------------------------------------------------------------------

ALMOST_ALL, SURELY = 0.98, 0.90


def copies(
    labels: IntArray, ratings: IntArray, clusters: Clusters, level: float = 0.95
) -> Bools:
    """Whether `labels` (items,) are an annotator's own on almost all items where another annotator
    gave another label than that annotator: (annotators,)."""
    found = np.zeros(ratings.shape[1], dtype=np.bool_)
    for a, own in enumerate(ratings.T):
        others = np.delete(ratings, a, axis=1)
        telling = ((others >= 0) & (others != own[:, None])).any(axis=1)
        found[a] = is_copy(_equal(labels, own, telling, clusters, level))
    return found


def copies_truth(
    labels: IntArray, truth: IntArray, ratings: IntArray, clusters: Clusters, k: int,
    level: float = 0.95,
) -> bool:  # fmt: skip
    """Whether `labels` (items,) are the truth on almost all items on which annotators differ, and
    clearly more often than a judge that is always right would be: about as often as one annotator
    is right, who agrees with another as often as the annotators do."""
    votes = value_counts(ratings, k)
    m = votes.sum(axis=1)
    agreement = ratio((votes * (votes - 1)).sum(), (m * (m - 1)).sum())
    right = (1 + (k - 1) * signal_left(agreement, np.float64(k))) / k
    telling = ((ratings >= 0) & (ratings != truth[:, None])).any(axis=1)
    share = _equal(labels, truth, telling, clusters, level)
    return is_copy(share) and bool(share.low[0] > right)


def signal_left(agreement: FloatArray, k: FloatArray) -> FloatArray:
    """How much of a difference from the truth is left in one from another annotator's labels.

    If errors are independent and fall on all k labels alike, annotators of accuracy p agree with
    A = p^2 + (1 - p)^2 / (k - 1), and a judge's distance from them shrinks by the factor
    (k p - 1) / (k - 1) = sqrt((k A - 1) / (k - 1)).
    """
    return np.sqrt(np.clip(ratio(k * agreement - 1, k - 1), 0, 1))


def is_copy(share: OfSamples) -> bool:
    return bool(share.value[0] >= ALMOST_ALL and share.low[0] >= SURELY)


def _equal(
    labels: IntArray, own: IntArray, telling: Bools, clusters: Clusters, level: float
) -> OfSamples:
    telling = telling & (own >= 0) & (labels >= 0)
    n, x = clusters.sums(telling, telling & (labels == own)).T
    return clustered_share(x, n, np.ones((1, clusters.n)), level)


def leans(
    labels: IntArray, ratings: IntArray, clusters: Clusters, k: int, level: float = 0.95
) -> Bools:
    """Whether `labels` (items,) are partly an annotator's own: (annotators,).

    They agree with that annotator more often than the annotator's colleagues do, and with the
    colleagues less often than these do with each other; and the two differ clearly. Labels made
    independently are nearer to all annotators, or further from all. Of three annotators or more.
    """
    people = ratings.shape[1]
    if people < 3:
        return np.zeros(people, dtype=np.bool_)
    votes = value_counts(ratings, k)
    given = ratings >= 0
    m = given.sum(axis=1, keepdims=True)
    usable = given & (m >= 2) & (labels >= 0)[:, None]
    colleagues = np.take_along_axis(votes, np.maximum(ratings, 0), axis=1) - 1
    nearer = np.where(usable, (ratings == labels[:, None]) - ratio(colleagues, m - 1), 0.0)
    found = np.zeros(people, dtype=np.bool_)
    for a in range(people):
        n = usable.sum(axis=1) - usable[:, a]
        both = usable[:, a] & (n > 0)
        own, others = nearer[both, a], ratio(nearer[both].sum(axis=1) - nearer[both, a], n[both])
        of = clusters[both].occurring()
        sums = of.sums((own - others) / 2, others, np.ones(len(own)))
        sample, corrected = np.ones((1, of.n)), 1 - (1 - level) / people
        if both.sum() < 2 or not own.mean() > 0 > others.mean():
            continue
        gap, rest = (
            mean_difference(x[:, None], sums[:, -1:], sample, at, balanced=False)
            for x, at in ((sums[:, 0], corrected), (sums[:, 1], 2 * level - 1))
        )
        found[a] = gap.low[0] > 0 > rest.high[0] and 2 * gap.value[0] >= CLEARLY_WORSE
    return found
