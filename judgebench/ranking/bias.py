"""What a ranker may favour beside quality: long arguments, and those of its own kin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgebench.ranking.matched import columns, match
from judgebench.ranking.result import LengthBias, RankerScores, SelfPreference
from judgebench.records import Estimate
from judgebench.stats.arrays import FloatArray
from judgebench.stats.means import clustered_mean
from judgebench.stats.ranks import places, spearman, top_match
from judgebench.stats.resample import Resampling

FEW_SYSTEMS = "fewer than two systems are ranked"
ALL_LEVEL = "in every instance all arguments are of one length or ranked level"
NO_INSTANCE = "no instance has all arguments, with their lengths and scores"
NO_OTHER = "no other ranker is there to compare with"
NOT_COMMON = "the rankers have no instance with this generator and another system in common"


def length_bias(
    scores: RankerScores, words: FloatArray, systems: Sequence[str], resampling: Resampling
) -> LengthBias:
    """Whether longer arguments rank higher within their instance, among the named systems.

    `words` (instances, systems) has the rows and columns of `scores`, NaN where the length is
    unknown. `longest_first` is the chance that the longest is the best, ties broken at random;
    where length does not matter it is 1 / systems on average. Raises ValueError for words of
    another shape.
    """
    if words.shape != scores.values.shape:
        raise ValueError(f"words are {words.shape}, but scores {scores.values.shape}")
    named = [system for system in systems if system in scores.systems]
    length, value = (columns(table, scores, named) for table in (words, scores.values))
    complete = np.isfinite(length).all(axis=1) & np.isfinite(value).all(axis=1)
    missing = scores.n_missing + int((~complete).sum())
    if len(named) < 2:
        reason = Estimate(None, n_missing=missing, reason=FEW_SYSTEMS, level=resampling.level)
        return LengthBias(scores.task, scores.ranker, reason, reason)
    length, value, clusters = length[complete], value[complete], scores.clusters[complete]
    rho = clustered_mean(
        spearman(length, value), clusters, ALL_LEVEL if len(value) else NO_INSTANCE, resampling,
        n_missing=missing,
    )  # fmt: skip
    longest_first = clustered_mean(
        top_match(length, value), clusters, NO_INSTANCE, resampling,
        n_missing=missing, is_proportion=True,
    )  # fmt: skip
    return LengthBias(scores.task, scores.ranker, rho, longest_first)


def self_preference(
    akin: RankerScores,
    others: Sequence[RankerScores],
    generator: str,
    why: str,
    systems: Sequence[str],
    resampling: Resampling,
) -> SelfPreference:
    """How many places higher `akin` sets the generator than the mean of the others does.

        mean over instances of (mean over the others of r_other - r_akin)

    with r the place of the generator among those of `systems` that all of them rank, on the
    instances that all of them rank: above 0, the ranker favours it. Take the real arguments as
    systems: a ranker that is merely misled by control cases sets every generator lower.
    """
    rankers = (akin, *others)
    names = tuple(other.ranker for other in others)
    both = match(rankers, systems)
    n = both.values.shape[1]
    if not others or generator not in both.systems or len(both.systems) < 2 or n == 0:
        reason = NOT_COMMON if others else NO_OTHER
        found = Estimate(None, n_missing=both.n_missing, reason=reason, level=resampling.level)
    else:
        rank = places(both.values)[..., both.systems.index(generator)]
        higher = rank[1:].mean(axis=0) - rank[0]
        found = clustered_mean(
            higher, both.clusters, NOT_COMMON, resampling, n_missing=both.n_missing
        )
    return SelfPreference(akin.task, akin.ranker, generator, why, names, found)
