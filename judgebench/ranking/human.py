"""Ranks that people gave: 1 for the best argument of an item, 5 for a clearly wrong one, ties free.

Pure of files: `human_files` reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from judgebench.errors import Problem, SetupError, shorten
from judgebench.ranking.rankings import RankerScores
from judgebench.stats.arrays import Clusters, FloatArray, mean_of_defined

RANKS = (1, 2, 3, 4, 5)
HUMANS = "humans"  # the ranker that all experts are together

ItemKey = tuple[str, str]  # task and item_id


@dataclass(frozen=True, slots=True)
class HumanRank:
    """What one expert said of one system's argument."""

    task: str
    item_id: str
    expert: str
    system: str
    rank: int


@dataclass(frozen=True, slots=True)
class AskedItem:
    """An item that was put before experts; `label` is its right class, '' where not known."""

    task: str
    item_id: str
    group: str
    label: str = ""


@dataclass(frozen=True)
class HumanRanks:
    """Ranks of whole items: an expert ranked all arguments of an item, or none of it counts.

    `asked` are all items that were put before anybody, ranked or not. `warnings` say which ranks
    were left out. `left_out` are labels whose items were taken out on purpose.
    """

    ranks: tuple[HumanRank, ...]
    asked: Mapping[ItemKey, AskedItem]
    warnings: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, in the order of the items."""
        return tuple(dict.fromkeys(task for task, _ in self.asked))

    def experts(self, task: str) -> tuple[str, ...]:
        """Who ranked at least one item of the task, sorted."""
        return tuple(sorted({rank.expert for rank in self.ranks if rank.task == task}))

    def systems(self, task: str) -> tuple[str, ...]:
        """Whose arguments were ranked on the task, sorted."""
        return tuple(sorted({rank.system for rank in self.ranks if rank.task == task}))

    def array(self, task: str, items: Sequence[str], systems: Sequence[str]) -> FloatArray:
        """(items, systems, experts of the task), NaN where somebody gave no rank."""
        experts = self.experts(task)
        at = {key: i for i, key in enumerate(product(items, systems, experts))}
        values = np.full(len(at), np.nan)
        for rank in self.ranks:
            place = at.get((rank.item_id, rank.system, rank.expert))
            if rank.task == task and place is not None:
                values[place] = rank.rank
        return values.reshape(len(items), len(systems), len(experts))

    def without(self, labels: Collection[str]) -> HumanRanks:
        """These ranks without the items of these labels. Raises SetupError for an unknown one."""
        known = {item.label for item in self.asked.values() if item.label}
        unknown = [label for label in labels if label not in known]
        if unknown:
            allowed = ", ".join(sorted(known)) or "none: no label of an item is known"
            message = "no item has this label"
            raise SetupError([Problem(message, found=shorten(x), allowed=allowed) for x in unknown])
        asked = {key: item for key, item in self.asked.items() if item.label not in labels}
        ranks = tuple(rank for rank in self.ranks if (rank.task, rank.item_id) in asked)
        return replace(self, ranks=ranks, asked=asked, left_out=(*self.left_out, *labels))


def human_scores(
    ranks: HumanRanks, task: str, systems: Sequence[str], groups: Mapping[str, str]
) -> RankerScores:
    """Minus the mean rank over the experts, for the items that at least one of them ranked.

    `groups` maps every item that was to be ranked to what is resampled whole. Raises SetupError
    for ranks of items or systems that are not among them.
    """
    chosen = [rank for rank in ranks.ranks if rank.task == task]
    _check_known(chosen, task, systems, groups)
    ranked = {rank.item_id for rank in chosen}
    items = tuple(item for item in groups if item in ranked)
    return RankerScores(
        task=task,
        ranker=HUMANS,
        kind="humans",
        systems=tuple(systems),
        items=items,
        clusters=Clusters.of(groups[i] for i in items).codes,
        values=-mean_of_defined(ranks.array(task, items, systems)),
        n_missing=len(groups) - len(items),
    )


def _check_known(
    ranks: Sequence[HumanRank], task: str, systems: Sequence[str], groups: Mapping[str, str]
) -> None:
    no_item = f"is no ranked item of {task}, and has human ranks"
    no_system = f"writes no arguments on {task}, and has human ranks"
    items = dict.fromkeys(r.item_id for r in ranks if r.item_id not in groups)
    others = dict.fromkeys(r.system for r in ranks if r.system not in systems)
    allowed = ", ".join(systems)
    problems = [Problem(no_item, "", None, "item_id", shorten(i)) for i in items]
    problems += [Problem(no_system, "", None, "system", shorten(s), allowed) for s in others]
    if problems:
        raise SetupError(problems)
