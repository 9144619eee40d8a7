"""Whether judges order responses as the humans do: tuples of them, scores, and single votes.

Rows `order` hold `right`, `chance` and, of preferences, `intransitive`, by `size` of the tuple,
rule for `ties`, and `failures`; rows `response` the correlation and agreement of scores; rows
`vote` the agreement with each vote. Rows without a judge are those of `who`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from judgebench.preferences.gather import Preferred, Scored
from judgebench.results.rows import Row
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.interrater import OBSERVED_AGREEMENT, vote_pairs_by_cluster
from judgebench.stats.means import clustered_mean
from judgebench.stats.ranks import (
    MOST_TUPLES,
    TIE,
    Flags,
    count_tuples,
    places_of,
    right,
    right_by_chance,
    signs,
    triples_of_pairs,
    tuples_within,
)
from judgebench.stats.repeated import AMONG_HUMANS, BESIDE_HUMANS, score_agreement
from judgebench.stats.resample import Resampling, cluster_bootstrap

FORMAT_CEILING = "human mean, rounded"
HUMANS = "humans"
TOLERANCE = 0.5  # of severity: half a step between labels
THREE_WAY = "three_way"
TIES: Mapping[str, str] = {
    THREE_WAY: "a tie of the humans must be answered by a tie",
    "tolerance": f"human scores that differ by {TOLERANCE:g} or less are a tie",
    "left_out": "tuples in which the humans have a tie are left out",
}
_MOST_AT_ONCE = 8  # responses to one question
_NO_LABEL = "the judge gave a label to none of these"
_SIGNS = np.array([1, -1, 0, np.nan])  # of first, second, tie and no label
_FILLED: Mapping[str, float] = {"left_out": np.nan, "worst": 0.0, "best": 1.0}


@dataclass(frozen=True)
class _Tuples:
    """Tuples, or votes, under one rule for ties, and their clusters (tuples,)."""

    analysis: str
    metric: str
    keys: Mapping[str, str]
    clusters: IntArray
    resampling: Resampling

    def row(
        self, statistic: str, values: FloatArray, used: Flags, judge: str = "", **keys: str
    ) -> Row:
        """The mean of the values (tuples,) that are used, NaN where the judge gave no label."""
        estimate = clustered_mean(
            values[used], self.clusters[used], _NO_LABEL, self.resampling, is_proportion=True
        )
        return Row(self.analysis, statistic, estimate, judge, self.metric, {**self.keys, **keys})

    def of_judge(
        self, judge: str, hit: FloatArray, chance: FloatArray, used: Flags
    ) -> Iterator[Row]:
        """What share a judge has right, three ways where labels are missing, and by chance."""
        missing = np.isnan(hit)
        name = "agreement" if self.analysis == "vote" else "right"
        for failures, filled in _FILLED.items():
            if failures == "left_out" or missing[used].any():
                share = np.where(missing, filled, hit)
                yield self.row(name, share, used, judge, failures=failures)
        yield self.row("chance", chance, used, judge)


def score_rows(found: Scored, resampling: Resampling) -> Iterator[Row]:
    """Tuples of the responses to one question, and correlations over all responses."""
    largest = int(np.bincount(found.question).max())
    for size in dict.fromkeys((2, 3, largest)):
        if size <= min(largest, _MOST_AT_ONCE):
            tuples = tuples_within(found.question, size, seed=resampling.seed)
            for ties in TIES:
                yield from _score_tuples(found, tuples, ties, resampling)
    for name, given in found.judges.items():
        if not given.due.any():
            continue
        both = np.stack([given.values, found.mean], axis=1)[given.due]
        clusters = found.clusters[given.due].occurring()
        beside = score_agreement(both, BESIDE_HUMANS, clusters, resampling)
        yield from (Row("response", s, e, name, found.id) for s, e in beside.items())
    if found.humans.shape[1] > 1:
        wanted = ("alpha",) if found.has_places else AMONG_HUMANS
        among = score_agreement(found.humans, wanted, found.clusters, resampling)
        for statistic, estimate in among.items():
            yield Row("response", statistic, estimate, "", found.id, {"who": HUMANS})


def _score_tuples(
    found: Scored, tuples: IntArray, ties: str, resampling: Resampling
) -> Iterator[Row]:
    truth = signs(found.mean[tuples], TOLERANCE if ties == "tolerance" else TIE)
    kept = np.asarray((truth != 0).all(axis=1) | (ties != "left_out"))
    clusters, group = found.clusters.codes[tuples[:, 0]], found.question[tuples[:, 0]]
    keys = {"size": str(tuples.shape[1]), "ties": ties}
    of = _Tuples("order", found.id, keys, clusters, resampling)
    if not kept.any():
        return
    ceiling = right(truth, signs(found.as_reply[tuples]))
    yield of.row("right", ceiling, kept, failures="left_out", who=FORMAT_CEILING)
    for name, one in found.judges.items():
        due = np.asarray(one.due[tuples].all(axis=1))
        if (due & kept).any():
            judged = signs(np.where(due[:, None], one.values[tuples], np.nan))
            chance = right_by_chance(truth, judged, group)
            yield from of.of_judge(name, right(truth, judged), chance, due & kept)


def samples(found: Scored) -> Iterator[str]:
    """A sentence where not all tuples were looked at."""
    for size in (2, 3):
        n = count_tuples(found.question, size)
        if n > MOST_TUPLES:
            yield (
                f"{found.title}: of {n:,} tuples of {size} responses about {MOST_TUPLES:,} were "
                "drawn at random, the same share from each question."
            )


# --- preferences ----------------------------------------------------------------------------------


def preference_rows(found: Preferred, resampling: Resampling) -> Iterator[Row]:
    """Pairs and triples beside the truth, and the agreement with each vote."""
    pairs = np.arange(len(found.truth))[:, None]
    upright = np.ones(pairs.shape)
    triples = triples_of_pairs(found.question, found.responses, seed=resampling.seed)
    yield from _preference_tuples(found, pairs, upright, resampling)
    if len(triples[0]):
        yield from _preference_tuples(found, *triples, resampling)
    yield from _vote_rows(found, resampling)


def _preference_tuples(
    found: Preferred, pairs: IntArray, upright: FloatArray, resampling: Resampling
) -> Iterator[Row]:
    """The pairs (tuples, 1) or the three pairs of each triple (tuples, 3)."""
    keys = {"size": "2" if pairs.shape[1] == 1 else "3", "ties": THREE_WAY}
    known = np.asarray((found.truth[pairs] >= 0).all(axis=1))
    truth = _SIGNS[found.truth[pairs]] * upright
    ordered = places_of(truth)[1]
    codes = found.compared.clusters.codes[pairs[:, 0]]
    of = _Tuples("order", found.compared.id, keys, codes, resampling)
    if keys["size"] == "3" and known.any():
        yield of.row("intransitive", np.where(ordered, 0.0, 1.0), known, who=HUMANS)
    for name, one in found.compared.judges.items():
        used = np.asarray(one.due[pairs].all(axis=1) & known & ordered)
        if not used.any():
            continue
        judged = _SIGNS[one.values[pairs]] * upright
        hit = right(truth, judged)
        shares = _shares(one.values[one.due])
        chance = np.where(np.isnan(hit), np.nan, shares[found.truth[pairs]].prod(axis=1))
        yield from of.of_judge(name, hit, chance, used)
        if keys["size"] == "3":
            wrong = np.where(np.isnan(hit), np.nan, 1.0 - places_of(judged)[1])
            yield of.row("intransitive", wrong, used, name)


def _shares(labels: IntArray) -> FloatArray:
    """How often each of the three labels is given (3,)."""
    found = np.bincount(labels[labels >= 0], minlength=3)
    return np.asarray(found / max(1, found.sum()))


def _vote_rows(found: Preferred, resampling: Resampling) -> Iterator[Row]:
    """The share of votes that a judge agrees with, and of two votes that are the same, with ties
    and without: setups S1 and S2 of Zheng et al. (2023), section 4.2."""
    metric, clusters = found.compared.id, found.compared.clusters
    for ties, k in {"counted": 3, "left out": 2}.items():
        votes = np.where(found.votes < k, found.votes, -1)
        if votes.shape[1] > 1:
            among = vote_pairs_by_cluster(votes, clusters, k)
            e = cluster_bootstrap(among, OBSERVED_AGREEMENT, resampling, n=round(among.sum()))
            keys = {"ties": ties, "failures": "left_out", "who": HUMANS}
            yield Row("vote", "agreement", e, "", metric, keys)
        pair, _ = np.nonzero(votes >= 0)
        vote = votes[votes >= 0]
        of = _Tuples("vote", metric, {"ties": ties}, clusters.codes[pair], resampling)
        for name, one in found.compared.judges.items():
            said = one.values[pair]
            used = one.due[pair] & (said < k)
            if used.any():
                hit = np.where(said < 0, np.nan, vote == said)
                chance = np.where(said < 0, np.nan, _shares(said[used])[vote])
                yield from of.of_judge(name, hit, chance, used)
