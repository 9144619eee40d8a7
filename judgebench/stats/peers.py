"""Annotators beside their peers: whose agreement a judge is held against.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label. Nothing here looks at
a judge or at a truth: annotators are compared with the others' agreement among themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.intervals import OfSamples, mean_difference

BarKind = Literal["typical", "average", "best"]
Bools = NDArray[np.bool_]

CLEARLY_WORSE = 0.05  # a smaller gap is no reason to leave anybody out, however certain
FALSELY = 0.01  # share of those left out who are as good as the others; it names people
_STANDARD_ERRORS = 3.92  # in the width of an interval of 95 %


@dataclass(frozen=True)
class Bar:
    """Whose agreement a judge is held against.

    `kept` (annotators,) are those in the bar. `gap` (annotators,) is how much more often each
    agrees with those in the bar than these agree with each other; NaN where nothing shows it.
    `weights` (bars, annotators) says how much the labels of each count; with several rows nothing
    shows which of them is the bar, and a judge has to reach every one. The typical annotator may
    be better than the weighted ones by `spread`: skill that differs more than the labels can tell
    apart.
    """

    kept: Bools
    gap: OfSamples
    weights: FloatArray
    spread: float = 0.0


def bar_of(ratings: IntArray, clusters: Clusters, k: int, kind: BarKind = "typical") -> Bar:
    """The bar that the typical competent annotator sets, or the average one, or the best.

    typical: annotators who are clearly worse than the others are left out, at most half of them.
    Of the rest the better half counts more, in so far as labels can tell them apart. With the mean
    squares of gaps G and of their standard errors V, the true gaps differ by about
    S^2 = G - (1 + sqrt(2 / (a - 1))) V, and a share s = S^2 / G of the weight goes to the better
    half of the a annotators: partial pooling as of James and Stein (1961), a little cautious. A
    median lies at most one standard deviation from the mean (Hotelling and Solomons 1932), so that
    `spread` is S sqrt(1 - s), what pooling leaves open. best: as typical, with one annotator for
    the better half. average: everybody counts the same. Two annotators cannot be told apart: each
    is a bar by themselves.

    >>> ratings = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]] * 20)
    >>> bar_of(ratings, Clusters(np.arange(80), 80), k=2).kept.tolist()
    [True, True, False]
    """
    rated: Bools = np.asarray((ratings >= 0).any(axis=0))
    if kind == "average":
        return Bar(rated, gaps(ratings, rated, clusters, k), rated[None].astype(np.float64))
    kept, room = rated.copy(), int(rated.sum()) // 2
    while room and kept.sum() > 2:
        found = gaps(ratings, kept, clusters, k)
        worse = np.flatnonzero(_clearly_worse(found, kept))
        out = worse[np.argsort(found.value[worse], kind="stable")]
        out = out[: min(room, int(kept.sum()) - 2)]
        if not len(out):
            break
        kept[out] = False
        room -= len(out)
    found = gaps(ratings, kept, clusters, k)
    labels = (ratings >= 0).sum(axis=0)
    return Bar(kept, found, *_weights(labels, kept, found, kind))


def gaps(ratings: IntArray, kept: Bools, clusters: Clusters, k: int) -> OfSamples:
    """How much more often each annotator agrees with the others of `kept` than these agree with
    each other on the same items (annotators,), with an interval of 95 %; where no item has two
    others, than these do on all items without the annotator. NaN where there are none."""
    votes = value_counts(ratings[:, kept], k)
    found = [gap(ratings[:, a], bool(kept[a]), votes, clusters) for a in range(ratings.shape[1])]
    value, low, high = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return OfSamples(value, low, high)


def gap(
    own: IntArray, among: bool, votes: IntArray, clusters: Clusters
) -> tuple[float, float, float]:
    """How much more often labels `own` (items,) agree with those counted in `votes` (items, k) than
    these agree with each other, and its interval; `among` where they are counted there too."""
    m, same = votes.sum(axis=1), (votes * (votes - 1)).sum(axis=1)
    rows = np.flatnonzero(own >= 0)
    others, agreeing = m[rows] - among, votes[rows, own[rows]] - among
    pairs, peers = others * (others - 1), same[rows] - 2 * agreeing * among
    used = pairs > 0
    if used.any():
        d = ratio(agreeing, others)[used] - ratio(peers, pairs)[used]
    else:
        used, rest = others > 0, np.ones(len(own), dtype=np.bool_)
        rest[rows] = not among
        elsewhere = ratio(same[rest].sum(), (m * (m - 1))[rest].sum())
        d = ratio(agreeing, others)[used] - elsewhere
    if not used.any() or np.isnan(d).any():
        return np.nan, np.nan, np.nan
    of = clusters[rows[used]].occurring()
    x, n = np.split(of.sums(d, np.ones(len(d))), 2, axis=1)
    found = mean_difference(x, n, np.ones((1, of.n)), 0.95, balanced=False)
    return float(found.value[0]), float(found.low[0]), float(found.high[0])


def _clearly_worse(found: OfSamples, kept: Bools) -> Bools:
    """Whose gap is negative and of a size that matters, with a false discovery rate of FALSELY
    (Benjamini and Hochberg 1995)."""
    from scipy.special import ndtr

    z = ratio(found.value, (found.high - found.low) / _STANDARD_ERRORS)
    p = np.where(kept & ~np.isnan(z), ndtr(z), 1.0)
    order = np.argsort(p, kind="stable")
    below = p[order] <= FALSELY * np.arange(1, len(p) + 1) / kept.sum()
    worse = np.zeros(len(p), dtype=np.bool_)
    worse[order[: np.flatnonzero(below).max(initial=-1) + 1]] = True
    return worse & kept & (np.nan_to_num(found.value) < -CLEARLY_WORSE)


def _weights(
    labels: IntArray, kept: Bools, found: OfSamples, kind: BarKind
) -> tuple[FloatArray, float]:
    """The weights (bars, annotators), and the spread; `labels` (annotators,) counts theirs."""
    everybody, value = kept.astype(np.float64), found.value[kept]
    if kept.sum() == 2:
        return np.eye(len(kept))[kept], 0.0
    if kept.sum() < 2 or np.isnan(value).any():
        return everybody[None], 0.0
    better = np.zeros(len(kept), dtype=np.bool_)
    most = 1 if kind == "best" else len(value) // 2 + 1
    better[np.flatnonzero(kept)[np.argsort(-value, kind="stable")[:most]]] = True
    se = (found.high - found.low)[kept] / _STANDARD_ERRORS
    noise = (1 + np.sqrt(2 / (len(value) - 1))) * float((se**2).mean())
    between = max(0.0, float((value**2).mean()) - noise)
    share = between / (between + noise)
    scale = labels[kept].sum() / labels[better].sum()
    weights = (1 - share) * everybody + share * scale * better
    return weights[None], float(np.sqrt(between * (1 - share)))


def signal_left(agreement: FloatArray, k: FloatArray | int) -> FloatArray:
    """What is left of a difference in accuracy where another annotator stands in for the truth.

    If errors are independent and fall on all k labels alike, annotators of accuracy p agree with
    each other on A = p^2 + (1 - p)^2 / (k - 1) of the items, and a judge's distance from them
    shrinks by (k p - 1) / (k - 1) = sqrt((k A - 1) / (k - 1)). 0 where they agree by chance only.

    >>> round(float(signal_left(np.float64(0.82), 2)), 3)  # annotators who are right in 90 %
    0.8
    """
    return np.sqrt(np.clip(ratio(k * agreement - 1, np.subtract(k, 1)), 0, 1))
