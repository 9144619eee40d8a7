"""Scores of one ranker, written as a table: rows are instances, columns systems."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from judgebench.ranking.rankers import OneRanking, RankerScores, Rankings, System
from judgebench.records import Results, Row

GOLD, CONTROLS = "gold", ("label-only", "no-argument", "noise", "passages")


def one(rows: Sequence[Row]) -> OneRanking:
    """The one ranking that these rows tell."""
    (found,) = Rankings("", (), Results(tuple(rows))).rankings
    return found


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
