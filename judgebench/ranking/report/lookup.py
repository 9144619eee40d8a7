"""Tasks, rankers and systems in their order, and how surely one system stands above another."""

from __future__ import annotations

import math
from collections.abc import Mapping

from judgebench.ranking.result import RankedSystem, RankedTask, RankerKind, Ranking, Rankings
from judgebench.records import Estimate

SURE = 0.95  # the share of resamples from which a report says "above"
NOT_RANKED = Estimate(None, reason="this ranker did not rank it")
NO_TASK = Estimate(None, reason="this ranker did not rank this task")
METRICS = {"accuracy": "accuracy", "micro_f1": "micro-F1"}
_ASKED: Mapping[RankerKind, str] = {"judge": " (judge)", "control": " (control judge)"}


def shown_ranker(ranking: Ranking) -> str:
    """The ranker's name, and for a judge that it is one."""
    return f"{ranking.ranker}{_ASKED.get(ranking.kind, '')}"


def ranker_titles(rankings: Rankings) -> dict[str, str]:
    """Every ranker's name as it is shown: evaluators first, then judges, humans last."""
    order: tuple[RankerKind, ...] = (
        "baseline", "expert-trained", "llm-trained", "judge", "control", "humans",
    )  # fmt: skip
    ordered = sorted(rankings.rankings, key=lambda ranking: order.index(ranking.kind))
    return {ranking.ranker: shown_ranker(ranking) for ranking in ordered}


def metric_words(task: RankedTask) -> str:
    """`micro-F1`; an unknown metric by its own name."""
    return METRICS.get(task.metric, task.metric)


def placed_systems(ranking: Ranking) -> list[RankedSystem]:
    """The systems that have a place, best first."""
    found = [s for s in ranking.systems if s.score.value is not None and math.isfinite(s.place)]
    return sorted(found, key=lambda system: system.place)


def argument_names(task: RankedTask) -> list[str]:
    """The systems that wrote real arguments, in the task's order."""
    return [system.name for system in task.systems if system.is_argument]


def shares_above(ranking: Ranking) -> dict[tuple[str, str], float]:
    """The share of resamples in which the first of a pair stands above the second, both ways."""
    found: dict[tuple[str, str], float] = {}
    for above in ranking.above:
        found[above.upper, above.lower] = above.share
        found[above.lower, above.upper] = 1 - above.share
    return found


def surely_above(shares: Mapping[tuple[str, str], float], upper: str, lower: str) -> bool:
    """Whether the one stands above the other in at least 95 % of resamples."""
    return shares.get((upper, lower), 0.0) >= SURE - 1e-9
