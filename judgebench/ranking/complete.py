"""The part of one ranker's scores that a ranking rests on: where every system has a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.ranking.matched import columns
from judgebench.ranking.result import RankerScores, System
from judgebench.stats.arrays import Clusters, FloatArray


@dataclass(frozen=True)
class Complete:
    """The instances on which every system has a score.

    `score` and `values` are (instances, systems), `clusters` are those of the instances.
    `is_share` marks scores that are shares of right decisions. `unscored` names the systems that
    have no score at all and are left out.
    """

    systems: tuple[System, ...]
    score: FloatArray
    values: FloatArray
    clusters: Clusters
    n_missing: int
    is_share: bool
    unscored: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many instances there are, 0 without a system."""
        return len(self.values)

    def of(self, *, arguments: bool) -> list[int]:
        """The columns of the real arguments, or of the control cases."""
        return [i for i, s in enumerate(self.systems) if s.is_argument == arguments]


def complete(scores: RankerScores, systems: Sequence[System]) -> Complete:
    """The complete instances of those of `systems` that the ranker knows.

    The score is `correct` where there is one, else the value. Systems come sorted by their name, so
    that the order in which they are given cannot move a resample.
    """
    known = sorted((s for s in systems if s.name in scores.systems), key=lambda s: s.name)
    names = [s.name for s in known]
    values = columns(scores.values, scores, names)
    score = values if scores.correct is None else columns(scores.correct, scores, names)
    there = np.isfinite(values) & np.isfinite(score)
    scored = np.asarray(there.any(axis=0))
    whole = there[:, scored].all(axis=1) & scored.any()
    codes = np.unique(scores.clusters[whole], return_inverse=True)[1]
    kept = scored.tolist()
    return Complete(
        tuple(s for s, yes in zip(known, kept, strict=True) if yes),
        score[whole][:, scored],
        values[whole][:, scored],
        Clusters(codes, int(codes.max(initial=-1)) + 1),
        scores.n_missing + int((~whole).sum()),
        scores.correct is not None,
        tuple(s.name for s, yes in zip(known, kept, strict=True) if not yes),
    )
