"""Scores of one ranker, written as a table: rows are instances, columns systems."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from judgebench.ranking.rankers import OneRanking, RankerScores, Rankings, System
from judgebench.records import Estimate, Results, Row

GOLD, CONTROLS = "gold", ("label-only", "no-argument", "noise", "passages")


class Told:
    """What the rows of one ranking tell: estimates by system in the order of their places, and
    those of the whole ranking by statistic."""

    def __init__(self, ranking: OneRanking, rows: Results) -> None:
        keys = {"task": ranking.task, "ranker": ranking.ranker}
        self.ranking, self.placed = ranking, ranking.placed

        def by_system(statistic: str) -> dict[str, Estimate]:
            return {r["system"]: r.estimate for r in rows.select("system", statistic, **keys)}

        self.scores, self.places = by_system("score"), by_system("place")
        self.average_ranks = by_system("average_rank")
        self.groups = {r["system"]: r["group"] for r in rows.select("system", **keys)}
        self.whole = {r.statistic: r.estimate for r in rows.select("ranking", **keys)}
        self.p, self.unsure = ranking.p, ranking.unsure
        self.clearly_above = ranking.clearly_above


def told(rankings: Rankings) -> list[Told]:
    """What the rows tell of every ranking."""
    return [Told(ranking, rankings.rows) for ranking in rankings.rankings]


def one(rows: Sequence[Row]) -> Told:
    """The one ranking that these rows tell."""
    (ranking,) = told(Rankings("", (), Results(tuple(rows))))
    return ranking


def scored(
    values: Any,
    systems: Sequence[str],
    correct: Any = None,
    clusters: Sequence[int] | None = None,
    **more: Any,
) -> RankerScores:
    """Scores of a judge, or with `correct` of an evaluator; every instance is its own cluster."""
    table = np.asarray(values, dtype=np.float64).reshape(-1, len(systems))
    return RankerScores(
        **{
            "task": "t",
            "ranker": "r",
            "kind": "judge" if correct is None else "baseline",
            "systems": tuple(systems),
            "items": tuple(f"i{row}" for row in range(len(table))),
            "clusters": np.arange(len(table)) if clusters is None else np.asarray(clusters),
            "values": table,
            "correct": None if correct is None else np.asarray(correct, dtype=np.float64),
            **more,
        }
    )


def systems_of(names: Sequence[str]) -> list[System]:
    """Gold and control cases by their names, the rest are models."""
    kinds = {GOLD: "gold", **dict.fromkeys(CONTROLS, "control")}
    return [System(name, kinds.get(name, "model")) for name in names]  # type: ignore[arg-type]
