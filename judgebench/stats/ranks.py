"""Ranks of judges or systems: within a block or item, and over many of them.

`scores` is (blocks, judges), higher is better and nothing is missing; a block may be a metric, a
question or a data set. Rank 1 is the best; equal scores share their mean rank. Rankings of
systems within each item are (..., k), k >= 2 systems on the last axis; there, scores that differ
by no more than `TIE` are level.

Whether a judge puts the responses to one question into the order of the humans: a tuple is k
responses to one question. Its order is the sign of each difference between two of them, (tuples, k
(k - 1) / 2), in the order of np.triu_indices: -1, 0 (level) or 1. A judge is right about a tuple
where every sign is that of the humans, so that a tie must be answered by a tie: of three responses
one of 13 weak orders is right.

Of systems compared in pairs, wins are (..., systems, systems): entry [i, j] is how often i won
against j, a tie counting half for each side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, comb, factorial

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.intervals import LEVEL, SHARE, ClusterCounts, jackknife_interval

Flags = NDArray[np.bool_]
# A float32 model gives the same text a probability that changes by 1e-7 with its batch.
TIE = 1e-6
MAX_REFITS = 500
"""Bradley-Terry strengths are found by iteration: without each of at most so many groups."""
FEW_SYSTEMS = 4
"""With fewer systems a correlation of rankings takes a handful of values only."""
_AT_ONCE = 120  # systems that are fitted in one call, of several samples
NO_STRENGTHS = (
    "no Bradley-Terry strengths exist: some systems won, or lost, every comparison with the "
    "others, or were never compared with them"
)
JUMPS = "places of few systems change by jumps, which no interval here covers"
_LEVEL = "one of the two rankings holds all systems level"


def wins_by_cluster(
    sides: IntArray, outcome: FloatArray, clusters: Clusters, systems: int
) -> FloatArray:
    """Wins (clusters, systems, systems) of pairs of systems `sides` (pairs, 2).

    `outcome` (pairs,) is 1 where the first won, 0 where the second did, 0.5 for a tie, or a share
    of votes; NaN is left out.

    >>> one = Clusters(np.zeros(2, int), 1)
    >>> wins_by_cluster(np.array([[0, 1], [1, 0]]), np.array([1, 0.5]), one, 2)[0].tolist()
    [[0.0, 1.5], [0.5, 0.0]]
    """
    kept = ~np.isnan(outcome)
    (first, second), won = sides[kept].T, outcome[kept]
    cells = np.concatenate([first * systems + second, second * systems + first])
    both = Clusters(np.tile(clusters.codes[kept], 2), clusters.n)
    found = both.table(cells, systems**2, np.concatenate([won, 1 - won]))
    return found.reshape(-1, systems, systems)


def bradley_terry(wins: FloatArray) -> FloatArray:
    """Log strengths (..., S), with mean 0, of wins (..., S, S); NaN where there are none.

    P(i beats j) = 1 / (1 + exp(s_j - s_i)), ties half a win each: Bradley and Terry (1952), fitted
    with evalica (Ustalov 2025). There are none where the systems fall into two groups of which one
    never won against the other: Ford (1957), "Solution of a Ranking Problem from Binary
    Comparisons".

    >>> bradley_terry(np.array([[0.0, 3.0], [1.0, 0.0]])).round(3).tolist()
    [0.549, -0.549]
    """
    S = wins.shape[-1]
    flat = wins.reshape(-1, S, S)
    found = np.full((len(flat), S), np.nan)
    able = np.flatnonzero(_reached(flat).all(axis=(-2, -1)))
    each = max(1, _AT_ONCE // S)
    for start in range(0, len(able), each):
        found[able[start : start + each]] = _strengths(flat[able[start : start + each]])
    return found.reshape(*wins.shape[:-2], S)


def _reached(wins: FloatArray) -> NDArray[np.bool_]:
    """The systems to which each leads over wins (..., S, S)."""
    S = wins.shape[-1]
    reached = (wins > 0) | np.eye(S, dtype=np.bool_)
    for _ in range(max(1, S - 1).bit_length()):
        reached = reached @ reached
    return np.asarray(reached)


def _strengths(wins: FloatArray) -> FloatArray:
    """Log strengths (n, S) of wins (n, S, S), fitted in one call as systems that never meet."""
    import evalica
    import pandas as pd

    n, S, _ = wins.shape
    of, i, j = np.nonzero(wins)
    winners = [evalica.Winner.X] * len(of)
    scores = evalica.bradley_terry(
        (of * S + i).tolist(), (of * S + j).tolist(), winners, pd.RangeIndex(n * S),
        weights=wins[of, i, j].tolist(), tolerance=1e-8, limit=10_000,
    ).scores  # fmt: skip
    log = np.empty(n * S)
    log[scores.index.to_numpy()] = np.log(scores.to_numpy())
    found = log.reshape(n, S)
    return np.asarray(found - found.mean(axis=1, keepdims=True))


def rankings(
    wins: ClusterCounts, n_missing: int = 0, level: float = LEVEL
) -> tuple[list[list[Estimate]], Mapping[str, Estimate]]:
    """The ranks by which several sides, such as the humans and a judge, order the systems on the
    same pairs, of wins (sides, S, S): the log strengths of every system by each side, and the
    agreement of the first and the last side's.

    The agreement is Kendall's `tau_b` and Spearman's rho, `spearman`, whose `n` counts the systems.
    """
    value, left_out = bradley_terry(wins.total), bradley_terry(wins.total - wins.kinds)
    n = round(wins.total[0].sum())

    def strength(side: int, system: int) -> Estimate:
        found = Estimate(None, reason=NO_STRENGTHS)
        if not np.isnan(value[side, system]):
            own, others = float(value[side, system]), left_out[:, side, system]
            found = jackknife_interval(own, others, wins.how_many, level)
        return replace(found, n=n, n_missing=n_missing, level=level)

    def agreement(of: Callable[[FloatArray, FloatArray], FloatArray]) -> Estimate:
        if np.isnan(value).any():
            return Estimate(None, n=systems, reason=NO_STRENGTHS)
        found = float(of(value[0], value[-1]))
        if np.isnan(found):
            return Estimate(None, n=systems, reason=_LEVEL)
        return Estimate(found, n=systems, reason=JUMPS)

    sides, systems = value.shape
    strengths = [[strength(side, i) for i in range(systems)] for side in range(sides)]
    return strengths, {"tau_b": agreement(tau_b), "spearman": agreement(spearman)}


MOST_TUPLES = 400_000


def count_tuples(groups: IntArray, k: int) -> int:
    """The number of k-tuples of items of one group; `groups` (items,) are numbers from 0."""
    return sum(comb(n, k) for n in np.bincount(groups).tolist())


def tuples_within(groups: IntArray, k: int, most: int = MOST_TUPLES, seed: int = 0) -> IntArray:
    """The items of every k-tuple within a group (tuples, k).

    Where there are more than `most` in all, each group gives its share of so many, drawn at random
    with replacement, and one at least.

    >>> tuples_within(np.array([0, 1, 0, 0]), 2).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    share = min(1.0, most / max(1, count_tuples(groups, k)))
    found = [np.empty((0, k), dtype=np.int64)]
    for n in np.unique(sizes[sizes >= k]).tolist():
        of = starts[sizes == n][:, None, None]
        if share == 1:
            places = np.array(list(combinations(range(n), k)))[None]
        else:
            drawn = ceil(share * comb(n, k))
            places = rng.integers(0, n - np.arange(k), size=(len(of), drawn, k))
            for place in range(1, k):  # the drawn one of those that are left
                for taken in np.moveaxis(np.sort(places[..., :place], axis=-1), -1, 0):
                    places[..., place] += places[..., place] >= taken
            places.sort(axis=-1)
        found.append(order[of + places].reshape(-1, k))
    return np.concatenate(found)


def signs(scores: FloatArray) -> FloatArray:
    """The order of each tuple of scores (tuples, k): (tuples, k (k - 1) / 2).

    Scores that differ by no more than `TIE` are level. NaN beside a score that is NaN.

    >>> signs(np.array([[1.0, 1.0, 3.0]])).tolist()
    [[0.0, -1.0, -1.0]]
    """
    first, second = np.triu_indices(scores.shape[1], 1)
    difference = scores[:, first] - scores[:, second]
    difference[np.abs(difference) <= TIE] = 0
    return np.sign(difference)


def places_of(order: FloatArray) -> tuple[NDArray[np.int8], Flags]:
    """The number of items of its tuple that each item is above (tuples, k), and whether the signs
    are a weak order (tuples,): with A > B, B > C and C > A they are none."""
    k = round((1 + (1 + 8 * order.shape[1]) ** 0.5) / 2)
    first, second = np.triu_indices(k, 1)
    above = np.zeros((len(order), k), dtype=np.int8)
    for column, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        above[:, i] += order[:, column] > 0
        above[:, j] += order[:, column] < 0
    whole = (np.sign(above[:, first] - above[:, second]) == order).all(axis=1)
    return above, whole


def right(truth: FloatArray, judged: FloatArray) -> FloatArray:
    """1 where the judge's order is that of the humans, else 0; NaN where a label of it is missing
    (tuples,)."""
    return np.where(np.isnan(judged).any(axis=1), np.nan, (truth == judged).all(axis=1))


def right_by_chance(truth: FloatArray, judged: FloatArray, groups: IntArray) -> FloatArray:
    """The probability that each tuple is right if the judge's labels are dealt out anew, at random,
    among the responses to each question (tuples,); NaN where a label of the judge is missing.

    Exact, without a simulation. Every ordered tuple of the question's responses is then equally
    likely to have lent its labels, so that

        P(right) = share of the judge's tuples of the question with as many levels of the same
                   sizes m_1, m_2, … from the lowest, times m_1! m_2! … / k!

    `groups` (tuples,) are the questions, numbers from 0.

    >>> order = signs(np.array([[1.0, 2.0], [1.0, 1.0]]))
    >>> right_by_chance(order, order, np.zeros(2, int)).tolist()
    [0.25, 0.5]
    """
    shape_h, shape_j = _shapes(truth), _shapes(judged)
    given = ~np.isnan(judged).any(axis=1)
    k = round((1 + (1 + 8 * truth.shape[1]) ** 0.5) / 2)
    own = Clusters(groups, int(groups.max(initial=-1)) + 1)
    of_judge = own[given].table(shape_j[given], 1 << (k - 1))
    shares = ratio(of_judge, of_judge.sum(axis=1, keepdims=True))
    chance = np.array([1 / _orders(code, k) for code in range(1 << (k - 1))])
    return np.where(given, shares[groups, shape_h] * chance[shape_h], np.nan)


def _shapes(order: FloatArray) -> IntArray:
    """The starts of the levels of each tuple, as bits (tuples,)."""
    steps = np.diff(np.sort(places_of(order)[0], axis=1), axis=1) > 0
    return np.asarray(steps @ (1 << np.arange(steps.shape[1])))


def _orders(shape: int, k: int) -> int:
    """The number of weak orders of k items with levels of these sizes: k! / (m_1! m_2! …)."""
    found, size = factorial(k), 1
    for place in range(k - 1):
        size = 1 if shape >> place & 1 else size + 1
        found //= size
    return found


def triples_of_pairs(
    question: IntArray, sides: IntArray, most: int = MOST_TUPLES, seed: int = 0
) -> tuple[IntArray, FloatArray]:
    """Three pairs each (triples, 3) that compare three responses A, B and C to one question, as
    A-B, A-C and B-C, and 1 where a pair stands so, -1 where it is the other way round.

    `question` (pairs,) and `sides` (pairs, 2) are numbers from 0. Of more than `most`
    combinations as many are drawn at random.

    >>> triples_of_pairs(np.array([0, 0, 0]), np.array([[0, 1], [2, 0], [1, 2]]))[1].tolist()
    [[1.0, -1.0, 1.0]]
    """
    size = int(sides.max(initial=0)) + 1
    of, places = np.unique(question[:, None] * size + sides, return_inverse=True)
    starts = np.searchsorted(of // size, np.arange(int(question.max(initial=0)) + 1))
    local = places.reshape(sides.shape) - starts[question][:, None]
    width = int(local.max(initial=0)) + 1
    pair = np.full((len(starts), width, width), -1)
    pair[question, local.min(axis=1), local.max(axis=1)] = np.arange(len(question))
    chosen = np.array(list(combinations(range(width), 3)), dtype=np.int64).reshape(-1, 3)
    if len(chosen) * len(starts) > most:
        drawn = np.random.default_rng(seed).permutation(len(chosen))
        chosen = chosen[np.sort(drawn[: max(1, most // len(starts))])]
    a, b, c = chosen.T
    found = np.stack([pair[:, a, b], pair[:, a, c], pair[:, b, c]], axis=-1).reshape(-1, 3)
    found = found[(found >= 0).all(axis=1)]
    upright = np.where(local[:, 0] < local[:, 1], 1.0, -1.0)
    return found, upright[found]


def nearest_label(scores: FloatArray, severities: FloatArray) -> FloatArray:
    """Each score (items,) as a judge can say it that has the labels only: the severity of the
    nearest label, the more severe one where two are as near. `severities` rise.

    >>> nearest_label(np.array([0.2, 0.5, 1.7]), np.array([0.0, 1.0, 2.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    middle = (severities[1:] + severities[:-1]) / 2
    found = severities[np.searchsorted(middle - TIE, scores)]
    return np.where(np.isnan(scores), np.nan, found)


@dataclass(frozen=True)
class Friedman:
    """Friedman's test. `average_ranks` is (judges,); `chi_square` and `p` are None where the judges
    tie on every block."""

    average_ranks: FloatArray
    chi_square: float | None
    p: float | None
    blocks: int


FRIEDMAN = "Friedman's test, corrected for ties: chi-square with k - 1 degrees of freedom"


def friedman(scores: FloatArray) -> Friedman:
    """Do k judges differ in rank over n blocks? Friedman's chi-square, corrected for ties.

        chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / (sum_ij r_ij^2 - n k (k + 1)^2 / 4)

    with r_ij the ranks within block i and R_j = sum_i r_ij; p from the chi-square distribution
    with k - 1 degrees of freedom. Friedman (1937); the correction as in Conover (1999), "Practical
    Nonparametric Statistics", section 5.8. It needs 3 judges and 2 blocks.

    >>> found = friedman(np.array([[3.0, 2, 1], [3, 1, 2], [3, 2, 1]]))
    >>> found.average_ranks.round(2).tolist(), round(found.p, 3)
    ([1.0, 2.33, 2.67], 0.097)
    """
    from scipy.stats import friedmanchisquare, rankdata  # which take a second to import

    average = rankdata(-scores, axis=1).mean(axis=0)
    if not np.ptp(scores, axis=1).any():
        return Friedman(average, None, None, len(scores))
    chi_square, p = friedmanchisquare(*scores.T)
    return Friedman(average, float(chi_square), float(p), len(scores))


def item_ranks(x: FloatArray | IntArray) -> FloatArray:
    """Ranks of many items (items,) from the middle, the lowest first, NaN where there is nothing.

    >>> item_ranks(np.array([3.0, np.nan, 1, 3])).tolist()
    [0.5, nan, -1.0, 0.5]
    """
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, nan_policy="omit") - ((~np.isnan(x)).sum() + 1) / 2)


NO_SCORED_ITEM = "no item has both a reference label and a score"
ONE_CLASS = "all items have this reference label, or none has it: there is no pair to put in order"


def roc_auc(
    score: FloatArray, positive: Flags, clusters: Clusters, level: float = LEVEL
) -> Estimate:
    """The area under the ROC curve: the share of pairs of a positive and a negative item of which
    the positive one has the higher `score`, level ones counted half.

    `score` (items,) is NaN where there is none. Mann and Whitney (1947); Hanley and McNeil (1982),
    "The meaning and use of the area under a receiver operating characteristic (ROC) curve". The
    interval is that of `jackknife_interval` over clusters, all of whose pairs are left out.

    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.arange(4) > 1
    >>> roc_auc(score, positive, Clusters(np.arange(4), 4)).value
    0.75
    """
    known = ~np.isnan(score)
    x, y, groups = score[known], positive[known].astype(np.int64), clusters[known].occurring()
    n, P = len(x), int(y.sum())
    if P in (0, n):
        estimate = Estimate(None, reason=ONE_CLASS if n else NO_SCORED_ITEM)
    else:
        # Of each positive item the negative ones below it, in all and in its own cluster.
        beaten = _below(x, np.zeros_like(y)) - _below(x, y)
        inside = _below(x, groups.codes) - _below(x, 2 * groups.codes + y)
        in_order = np.where(y, beaten, P - beaten)  # pairs in the right order, of either kind
        p, m, pairs, twice = groups.sums(y, 1 - y, in_order, y * inside).T
        U = float(y @ beaten)
        left_out = ratio(U - pairs + twice, (P - p) * (n - P - m))
        each = np.ones(groups.n, dtype=np.int64)
        estimate = jackknife_interval(U / (P * (n - P)), left_out, each, level, SHARE)
    return replace(estimate, n=n, n_missing=len(score) - n, level=level)


def _below(x: FloatArray, group: IntArray) -> FloatArray:
    """The number of items of the same group with a lower x (items,), level ones counted half."""
    _, place = np.unique(x, return_inverse=True)
    _, cell, counts = np.unique(group * len(x) + place, return_inverse=True, return_counts=True)
    size = np.bincount(group)
    return np.asarray((counts.cumsum() - counts / 2)[cell] - (size.cumsum() - size)[group])


def levels(scores: FloatArray) -> FloatArray:
    """The scores as whole numbers 0, 1, … from the lowest, level scores alike (..., k).

    Two scores are level where no step of more than `TIE` lies between them in the sorted row.
    """
    order = np.argsort(scores, axis=-1, kind="stable")
    steps = np.diff(np.take_along_axis(scores, order, axis=-1), axis=-1) > TIE
    found = np.zeros(scores.shape)
    np.put_along_axis(found, order[..., 1:], np.cumsum(steps, axis=-1), axis=-1)
    return found


def places(scores: FloatArray) -> FloatArray:
    """The place of each score in its row (..., k): 1 is the best, level scores share their mean
    place."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-levels(scores), axis=-1))


def tau_b(x: FloatArray, y: FloatArray) -> FloatArray:
    """Kendall's tau_b = (P - Q) / sqrt((n_0 - n_1) (n_0 - n_2)) of each row (...,).

    P and Q count the pairs of systems in the same and in the opposite order, n_0 - n_1 and
    n_0 - n_2 the pairs that are not level in x and in y. NaN where a row is level throughout.
    Kendall (1945), "The Treatment of Ties in Ranking Problems".

    >>> tau_b(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).round(3).item()
    0.333
    """
    dx, dy = (
        np.sign(level[..., :, None] - level[..., None, :]) for level in (levels(x), levels(y))
    )
    untied = [np.abs(d).sum(axis=(-2, -1)) for d in (dx, dy)]
    tau = ratio((dx * dy).sum(axis=(-2, -1)), np.sqrt(untied[0] * untied[1]))
    return np.clip(tau, -1, 1)


def pearson(x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of each row (...,), sum dx dy / sqrt(sum dx2 dy2); NaN where one varies by no
    more than `TIE`."""
    dx, dy = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
    varies = (np.ptp(x, axis=-1) > TIE) & (np.ptp(y, axis=-1) > TIE)
    spread = np.sqrt((dx**2).sum(axis=-1) * (dy**2).sum(axis=-1))
    return np.clip(ratio((dx * dy).sum(axis=-1), np.where(varies, spread, 0)), -1, 1)


def spearman(x: FloatArray, y: FloatArray) -> FloatArray:
    """Spearman's rho of each row (...,): Pearson's r of the places. NaN where a row is level
    throughout. Spearman (1904); ties as in Kendall (1945).

    >>> spearman(np.array([1.0, 2, 3]), np.array([1.0, 3, 2])).item()
    0.5
    """
    return pearson(places(x), places(y))


def top_match(x: FloatArray, y: FloatArray) -> FloatArray:
    """The chance |A ∩ B| / (|A| |B|) that one of the best in x and one of the best in y, each drawn
    at random, are the same system (...,).

    A and B are the systems that share the first place. Where one side is level throughout this is
    1 / k, whatever the other says, so that ties bring no advantage; hence two rows with the same m
    systems in the first place meet in 1 / m, not in 1.

    >>> top_match(np.array([1.0, 3, 3]), np.array([1.0, 2, 3])).item()
    0.5
    """
    best_x, best_y = (
        level == level.max(axis=-1, keepdims=True) for level in (levels(x), levels(y))
    )
    pairs = best_x.sum(axis=-1) * best_y.sum(axis=-1)
    return ratio((best_x & best_y).sum(axis=-1), pairs)
