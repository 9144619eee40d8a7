"""Systems compared in pairs: who wins how often, in what order that puts them, and who is favoured.

Wins are (..., systems, systems): entry [i, j] is how often i won against j, a tie counting half for
each side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from judgebench.records import Estimate
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.ranks import spearman, tau_b
from judgebench.stats.resample import (
    DEFAULT_RESAMPLING,
    OF_CORRELATION,
    Bounds,
    ClusterCounts,
    Resampling,
    Statistic,
    bootstrap_interval,
    bootstrap_replicates,
)

STRENGTH_RESAMPLES = 500
"""Bradley-Terry strengths are found by iteration, resample by resample: at most so many."""
FEW_SYSTEMS = 4
"""With fewer systems a correlation of rankings takes a handful of values only."""
_ORDERS = 100
_AT_ONCE = 120  # systems that are fitted in one call, of several resamples
NO_STRENGTHS = (
    "no Bradley-Terry strengths exist: some systems won, or lost, every comparison with the "
    "others, or were never compared with them"
)
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
    """Which systems each leads to over wins (..., S, S)."""
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


def elo(sides: IntArray, outcome: FloatArray, systems: int, seed: int = 0) -> FloatArray:
    """Elo ratings (systems,) of pairs of systems `sides` (pairs, 2), with mean 1000.

    `outcome` (pairs,) is 1 where the first won, 0 where the second did, else a tie. Elo (1978), by
    evalica with K = 4. A rating depends on the order of the pairs, which says nothing here: the
    mean over 100 random orders.

    >>> elo(np.array([[0, 1]] * 4), np.array([1.0, 1, 1, 0]), 2).round(1).tolist()
    [1003.9, 996.1]
    """
    import evalica
    import pandas as pd

    rng, found = np.random.default_rng(seed), np.zeros(systems)
    won = [
        {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y}.get(o, evalica.Winner.Draw) for o in outcome
    ]
    for order in (rng.permutation(len(sides)) for _ in range(_ORDERS)):
        first, second = sides[order].T.tolist()
        index, winners = pd.RangeIndex(systems), [won[i] for i in order]
        scores = evalica.elo(first, second, winners, index).scores
        found += scores.reindex(index).to_numpy() / _ORDERS
    return found


def rankings(
    wins: ClusterCounts, n_missing: int = 0, resampling: Resampling = DEFAULT_RESAMPLING
) -> tuple[list[list[Estimate]], Mapping[str, Estimate]]:
    """How several sides, such as the humans and a judge, rank the systems on the same pairs, of
    wins (sides, S, S): the log strengths of every system by each side, and the agreement of the
    first and the last side's.

    The agreement is Kendall's `tau_b` and Spearman's rho, `spearman`, whose `n` counts the systems.
    All sides are resampled together, whole clusters, at most STRENGTH_RESAMPLES times.
    """
    few = replace(resampling, resamples=min(resampling.resamples, STRENGTH_RESAMPLES))
    value = bradley_terry(wins.total)
    drawn = np.full((1, *value.shape), np.nan)
    if wins.clusters:
        drawn = bootstrap_replicates(wins, Statistic(bradley_terry, lambda _: ""), few)

    def estimate(
        of: Callable[[FloatArray], FloatArray], n: int, reason: str, bounds: Bounds | None = None
    ) -> Estimate:
        found = float(of(value))
        interval = Estimate(None, reason=reason)
        if not np.isnan(found):
            interval = bootstrap_interval(found, of(drawn), wins.clusters, few, bounds)
        return replace(interval, n=n, level=few.level)

    def agreement(of: Callable[[FloatArray, FloatArray], FloatArray]) -> Estimate:
        def of_sides(strengths: FloatArray) -> FloatArray:
            some = np.nan_to_num(strengths)
            lacking = np.isnan(strengths).any(axis=(-2, -1))
            return np.where(lacking, np.nan, of(some[..., 0, :], some[..., -1, :]))

        reason = NO_STRENGTHS if np.isnan(value).any() else _LEVEL
        return estimate(of_sides, value.shape[-1], reason, OF_CORRELATION)

    sides, systems = map(range, value.shape)
    n = round(wins.total[0].sum())
    strengths = [
        [
            replace(estimate(itemgetter((..., a, i)), n, NO_STRENGTHS), n_missing=n_missing)
            for i in systems
        ]
        for a in sides
    ]
    return strengths, {"tau_b": agreement(tau_b), "spearman": agreement(spearman)}
