"""Systems compared in pairs: win rates, strengths and rankings, and whom judges favour.

Rows `win_rate` hold `humans`, `judge` and `difference` of a `system`, `against` another or all
others (empty); `strength` the Bradley-Terry log strengths by `humans` and `judge`; `ranking` the
agreement of the two; `longer` and `own_system` the win rates of the longer response and of the
judge's own model. All are over the pairs that humans compared, ties half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from judgebench.preferences.gather import Compared, Flags
from judgebench.results.rows import Row
from judgebench.stats.arrays import FloatArray
from judgebench.stats.resample import (
    ClusterCounts,
    Resampling,
    cluster_bootstrap,
    grouping_told,
    random_groups,
)
from judgebench.stats.systems import (
    NO_STRENGTHS,
    apart,
    judge_minus_humans,
    of_side,
    rankings,
    win_rate,
    wins_by_cluster,
)
from judgebench.study.model_names import is_model

MOST_SYSTEMS = 20
_SIDES = {"humans": 0, "judge": 1}


def system_rows(
    found: Compared, models: Mapping[str, str], resampling: Resampling
) -> Iterator[Row]:
    """All of these; `models` says which model stands behind a judge."""
    known = ~np.isnan(found.humans)
    named = known & (found.sides >= 0).all(axis=1)
    several = 2 <= len(found.systems) <= MOST_SYSTEMS
    if several and named.any():
        humans = _Wins(found, named, (found.humans,), resampling)
        yield from humans.matrix("")
        yield from humans.order("")
    for name, given in found.judges.items():
        if several and (named & given.due).any():
            both = _Wins(found, named & given.due, (found.humans, given.values), resampling)
            yield from both.matrix(name)
            yield from both.order(name)
            for i, system in enumerate(found.systems):
                if is_model(system, models.get(name, "")):
                    yield from both.rates("own_system", name, (i, None), {"system": system})
        unlike = known & given.due & (found.longer != 0)
        if unlike.any():
            longer_first = np.where(found.longer[:, None] > 0, [[0, 1]], [[1, 0]])
            of = replace(found, systems=("longer", "shorter"), sides=longer_first)
            both = _Wins(of, unlike, (found.humans, given.values), resampling)
            yield from both.rates("longer", name, (0, 1), {})


def too_many(found: Compared) -> Iterator[str]:
    """A sentence where there are more systems than are ranked."""
    if len(found.systems) > MOST_SYSTEMS:
        n = len(found.systems)
        yield (
            f"{found.title}: win rates and rankings of {n:,} systems, more than {MOST_SYSTEMS}, "
            "are left out."
        )


class _Wins:
    """The wins by the humans, and by a judge where one is given, on the same pairs."""

    def __init__(
        self, found: Compared, used: Flags, outcomes: Sequence[FloatArray], resampling: Resampling
    ) -> None:
        self._found, self._resampling = found, resampling
        S, given = len(found.systems), ~np.isnan(outcomes).any(axis=0)
        both, lacking = used & given, found.sides[used & ~given]
        clusters = found.clusters[both].occurring()
        self._n_clusters, of = clusters.n, random_groups(clusters, resampling.seed)
        wins = [wins_by_cluster(found.sides[both], x[both], of, S) for x in outcomes]
        self._counts = ClusterCounts(np.stack(wins, axis=1))
        self._sides = dict(list(_SIDES.items())[: len(outcomes)])
        self._missing = np.zeros((S, S), dtype=np.int64)
        np.add.at(self._missing, tuple(lacking.T), 1)
        self._missing += self._missing.T

    def matrix(self, judge: str) -> Iterator[Row]:
        """Each system against each later one, and against all others."""
        systems = self._found.systems
        for i, system in enumerate(systems):
            yield from self.rates("win_rate", judge, (i, None), {"system": system})
            for j in range(i + 1, len(systems)):
                keys = {"system": system, "against": systems[j]}
                yield from self.rates("win_rate", judge, (i, j), keys)

    def rates(
        self, analysis: str, judge: str, which: tuple[int, int | None], keys: Mapping[str, str]
    ) -> Iterator[Row]:
        """One win rate by each side, and the difference."""
        i, j = which
        games = self._counts.total[0] + self._counts.total[0].T
        where = i if j is None else (i, j)
        n, missing = round(games[where].sum()), int(self._missing[where].sum())
        rate = win_rate(i, j)
        of = {name: of_side(rate, side) for name, side in self._sides.items()}
        if len(of) > 1:
            of["difference"] = judge_minus_humans(rate)
        for name, statistic in of.items():
            estimate = cluster_bootstrap(
                self._counts, statistic, self._resampling, n=n, n_missing=missing
            )
            estimate = grouping_told(estimate, self._n_clusters)
            yield Row(analysis, name, estimate, judge, self._found.id, keys)

    @property
    def _apart(self) -> str:
        """The systems without which all others have strengths."""
        found = {i: 0 for wins in self._counts.total for i in apart(wins)}
        return ", ".join(self._found.systems[i] for i in sorted(found))

    def order(self, judge: str) -> Iterator[Row]:
        """The strengths of all systems by each side, and how the two rankings agree."""
        missing = int(self._missing.sum()) // 2
        found = rankings(self._counts, missing, self._resampling)
        rows = [
            ("strength", side, estimate, {"system": system})
            for side, strengths in zip(self._sides, found.strengths, strict=True)
            for system, estimate in zip(self._found.systems, strengths, strict=True)
        ]
        if judge:
            rows += [
                ("ranking", "tau_b", found.tau_b, {}),
                ("ranking", "spearman", found.spearman, {}),
            ]
        for analysis, statistic, estimate, keys in rows:
            if estimate.reason == NO_STRENGTHS:
                estimate = replace(estimate, reason=f"{NO_STRENGTHS} ({self._apart})")
            told = grouping_told(estimate, self._n_clusters)
            yield Row(analysis, statistic, told, judge, self._found.id, keys)
