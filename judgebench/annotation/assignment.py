"""Assignment of items to annotators: every item to r of v annotators, fixed before the first label.

A table of overlaps counts the items that two annotators share and, on its diagonal, those of one.
It is the more even, the smaller the sum of its squares; balanced, two of v annotators share
N r (r - 1) / (v (v - 1)) of N items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from judgebench.records import content_hash, group_by_key

Strata = Mapping[str, tuple[str, str]]  # the system and the question of every item
Given = Mapping[str, Sequence[str]]  # the annotators of every item
_Ints = NDArray[np.int64]

# How much it matters that the table is even over all items, within a system and within a question;
# of a question only the numbers of items count.
_OVERALL, _SYSTEM, _QUESTION = 1000, 1, 10
_PASSES, _EXCHANGES, _TOGETHER = 4, 5_000, 3  # more gain nothing


def extend(
    orders: Mapping[str, Sequence[str]], strata: Strata, common: Collection[str],
    people: Sequence[str], per_item: int, seed: int,
) -> dict[str, Sequence[str]]:  # fmt: skip
    """Everybody's items, and behind them those of `strata` that are new to them: the `common` ones
    go to all `people`, each of the others to `per_item` of them."""
    given = group_by_key(
        (item, name) for name, items in orders.items() for item in items if item not in common
    )
    main = {item: at for item, at in strata.items() if item not in common}
    filled = fill(main, given, people, per_item, seed)
    extended = dict(orders)
    for name in people:
        labelled = orders.get(name, ())
        own = [item for item in strata if item in common or name in filled[item]]
        new = [item for item in own if item not in labelled]
        extended[name] = [*labelled, *order(new, strata, name, seed)]
    return extended


def _shuffled(items: Iterable[str], *seed: object) -> list[str]:
    return sorted(items, key=lambda item: content_hash([*seed, item]))


def _share(*seed: object) -> float:
    """A number from 0 to 1 that the seed decides."""
    return int(content_hash([*seed])[:13], 16) / 16**13


def order(items: Collection[str], strata: Strata, annotator: str, seed: int) -> tuple[str, ...]:
    """The items shuffled for an annotator. Those of one question are spread over the whole: one is
    in each of as many equal stretches, at places that the seed decides."""
    shuffled = _shuffled(items, seed, "order", annotator)
    by_question = group_by_key((strata[item][1], item) for item in shuffled)
    places = dict[str, float]()
    for question, alike in by_question.items():
        start = _share(seed, annotator, question)
        for n, item in enumerate(alike):
            places[item] = (n + (start + _share(seed, annotator, item)) / 2) / len(alike)
    return tuple(sorted(places, key=places.__getitem__))


def fill(
    strata: Strata, given: Given, annotators: Sequence[str], per_item: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """Those of the `annotators` who have an item of `strata`: to whom it is `given`, and others
    until it has `per_item`, or all. Items that are given already count in the balance."""
    groups = {question: content_hash([seed, question]) for _, question in strata.values()}
    items = sorted(_shuffled(strata, seed), key=lambda item: groups[strata[item][1]])
    fixed = [item for item in given if item not in strata]
    board = _Board([strata.get(item, ("", "")) for item in [*items, *fixed]], len(annotators))
    lacking = []
    for n, item in enumerate([*items, *fixed]):
        names = given.get(item, ())
        board.put(n, np.array([name in names for name in annotators], dtype=np.int64))
        lacking.append(per_item - len(names) if item in strata else 0)
    board.fill(lacking, np.random.default_rng(int(content_hash([seed]), 16)))
    rows = zip(items, board.chosen.tolist(), strict=False)
    return {item: tuple(compress(annotators, row)) for item, row in rows}


class _Board:
    """`chosen` has a row for every item. `tables` are the overlaps over all items, in every system
    and in every question; `strata` says in which three of them an item counts."""

    def __init__(self, strata: Sequence[tuple[str, str]], v: int) -> None:
        keys = [[("", 0), (system, 1), (question, 2)] for system, question in strata]
        codes = {key: n for n, key in enumerate(dict.fromkeys(k for row in keys for k in row))}
        self.strata = np.array([[codes[key] for key in row] for row in keys]).reshape(len(keys), 3)
        self.chosen = np.zeros((len(keys), v), np.int64)
        self.tables = np.zeros((len(codes), v, v), np.int64)
        even = np.ones((v, v), np.int64)
        by_level = [_OVERALL * even, _SYSTEM * even, _QUESTION * np.eye(v, dtype=np.int64)]
        self.weights = np.array([by_level[level] for _, level in codes]).reshape(len(codes), v, v)

    def put(self, item: int, row: _Ints) -> None:
        old = self.chosen[item]
        self.tables[self.strata[item]] += np.outer(row, row) - np.outer(old, old)
        self.chosen[item] = row

    def fill(self, lacking: Sequence[int], rng: np.random.Generator) -> None:
        """Gives each item to as many annotators as it lacks: one item after the other, and then a
        few at once anew where that makes the tables no less even."""
        fixed, free = self.chosen.copy(), [n for n, needed in enumerate(lacking) if needed > 0]
        for item in free:
            self._choose(item, lacking[item], rng)
        for item in free * min(_PASSES, 1 + _EXCHANGES // max(len(free), 1)):
            others = rng.integers(len(free), size=_TOGETHER - 1).tolist()
            some = sorted({item, *(free[n] for n in others)})
            touched = np.unique(self.strata[some])
            before, cost = self.chosen[some], self._cost(touched)
            for other in some:
                self.put(other, fixed[other])
            for other in some:
                self._choose(other, lacking[other], rng)
            if self._cost(touched) > cost:
                for other, row in zip(some, before, strict=True):
                    self.put(other, row)

    def _cost(self, tables: _Ints) -> int:
        return int((self.weights[tables] * self.tables[tables] ** 2).sum())

    def _choose(self, item: int, n: int, rng: np.random.Generator) -> None:
        """Adds n annotators, one by one, who keep the tables most even."""
        of, row = self.strata[item], self.chosen[item].copy()
        costs = (self.weights[of] * self.tables[of]).sum(0)
        v = len(costs)
        # The draw decides where two cost the same, and only there.
        now = v * (costs.diagonal() + 2 * costs @ row) + rng.permutation(v)
        for _ in range(min(n, v - int(row.sum()))):
            added = np.where(row, np.iinfo(np.int64).max, now).argmin()
            row[added] = 1
            now += 2 * v * costs[added]
        self.put(item, row)


def overlap_lines(items: Mapping[str, Set[str]]) -> list[str]:
    """The number of items that two annotators share, and on the diagonal of those that one has, as
    the lines of a table."""
    import pandas as pd

    rows = [[len(own & others) for others in items.values()] for own in items.values()]
    return pd.DataFrame(rows, index=[*items], columns=[*items]).to_string().splitlines()
