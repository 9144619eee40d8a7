"""Systems compared in pairs: win rates, strengths and rankings, and whom judges favour.

Rows `win_rate` hold `humans`, `judge` and `difference` of a `system`, `against` another or all
others (empty); `strength` the Bradley-Terry log strengths by `humans` and `judge`; `ranking` the
agreement of the two; `longer` and `own_system` the win rates of the longer response and of the
judge's own model. All are over the pairs that humans compared, ties half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from judgebench.preferences.gather import WON, Compared, Flags
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.stats.means import clustered_mean
from judgebench.stats.ranks import rankings, wins_by_cluster
from judgebench.stats.resample import ClusterCounts, Resampling, grouping_told, random_groups
from judgebench.studies.verdicts import is_model

MOST_SYSTEMS = 20
_NOT_COMPARED = "these two were not compared"


def system_rows(
    found: Compared, models: Mapping[str, str], resampling: Resampling
) -> Iterator[Row]:
    """All of these; `models` says which model stands behind a judge."""
    known = ~np.isnan(found.humans)
    named = known & (found.sides >= 0).all(axis=1)
    several = 2 <= len(found.systems) <= MOST_SYSTEMS
    for judge in ("", *found.judges):
        due = found.judges[judge].due if judge else known
        if several and (named & due).any():
            yield from _win_rates(found, judge, named & due, models.get(judge, ""), resampling)
            yield from _ranking(found, judge, named & due, resampling)
        unlike = known & due & (found.longer != 0)
        if judge and unlike.any():
            wins = _won(found, judge, unlike, found.longer > 0, resampling)
            yield from (Row("longer", *one, judge, found.id) for one in wins)


def too_many(found: Compared) -> Iterator[str]:
    """A sentence where there are more systems than are ranked."""
    if len(found.systems) > MOST_SYSTEMS:
        n = len(found.systems)
        yield (
            f"{found.title}: win rates and rankings of {n:,} systems, more than {MOST_SYSTEMS}, "
            "are left out."
        )


def _won(
    found: Compared, judge: str, used: Flags, first: Flags, resampling: Resampling
) -> Iterator[tuple[str, Estimate]]:
    """How often the first response wins, or the second where it is not `first`, by the humans, by
    the judge if one is named, and the difference, on the same pairs."""
    outcomes = {"humans": found.humans}
    if judge:
        judged = WON[found.judges[judge].values]
        outcomes["humans"] = np.where(np.isnan(judged), np.nan, found.humans)
        outcomes["judge"] = judged
    won = {side: np.where(first, x, 1 - x)[used] for side, x in outcomes.items()}
    if judge:
        won["difference"] = won["judge"] - won["humans"]
    codes = found.clusters.codes[used]
    for side, x in won.items():
        share = side != "difference"
        yield side, clustered_mean(x, codes, _NOT_COMPARED, resampling, is_proportion=share)


def _win_rates(
    found: Compared, judge: str, used: Flags, model: str, resampling: Resampling
) -> Iterator[Row]:
    """Each system against all others and against each later one, and the judge's own model."""
    for i, system in enumerate(found.systems):
        mine, first = used & (found.sides == i).any(axis=1), found.sides[:, 0] == i
        for side, estimate in _won(found, judge, mine, first, resampling):
            yield Row("win_rate", side, estimate, judge, found.id, {"system": system})
            if is_model(system, model):
                yield Row("own_system", side, estimate, judge, found.id, {"system": system})
        for j, other in enumerate(found.systems[i + 1 :], i + 1):
            both = mine & (found.sides == j).any(axis=1)
            for side, estimate in _won(found, judge, both, first, resampling):
                keys = {"system": system, "against": other}
                yield Row("win_rate", side, estimate, judge, found.id, keys)


def _ranking(found: Compared, judge: str, used: Flags, resampling: Resampling) -> Iterator[Row]:
    """The strengths of all systems by each side, and how the two rankings agree."""
    outcomes = {"humans": found.humans}
    if judge:
        outcomes["judge"] = WON[found.judges[judge].values]
    given = used & ~np.isnan(list(outcomes.values())).any(axis=0)
    clusters = found.clusters[given].occurring()
    groups = random_groups(clusters, resampling.seed)
    wins = [
        wins_by_cluster(found.sides[given], x[given], groups, len(found.systems))
        for x in outcomes.values()
    ]
    missing = int((used & ~given).sum())
    strengths, agreement = rankings(ClusterCounts(np.stack(wins, axis=1)), missing, resampling)
    rows = [
        ("strength", side, estimate, {"system": system})
        for side, of in zip(outcomes, strengths, strict=True)
        for system, estimate in zip(found.systems, of, strict=True)
    ]
    if judge:
        rows += [("ranking", name, estimate, {}) for name, estimate in agreement.items()]
    for analysis, name, estimate, keys in rows:
        told = grouping_told(estimate, clusters.n)
        yield Row(analysis, name, told, judge, found.id, keys)
