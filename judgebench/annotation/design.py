"""Assignment of items to annotators: every item to r of v annotators, fixed before the first label.

A table of overlaps counts the items that two annotators share and, on its diagonal, those of one.
It is the more even, the smaller the sum of its squares; balanced, two of v annotators share
N r (r - 1) / (v (v - 1)) of N items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, permutations

import numpy as np
from numpy.typing import NDArray

from judgebench.errors import Problem, raise_any
from judgebench.records import content_hash

Strata = Mapping[str, tuple[str, str]]  # the system and the question of every item
Given = Mapping[str, Sequence[str]]  # the annotators of every item
_Ints = NDArray[np.int64]

_OVERALL, _SYSTEM, _QUESTION = 1000, 1, 10  # how much it matters where the table is even
_TRIES, _EXCHANGES, _PASSES, _PARTNERS = 300, 10_000, 4, 8  # more gain nothing


@dataclass(frozen=True, slots=True)
class Assignment:
    """The annotators of every item beside the `calibration`, which is everybody's, and the
    orders."""

    calibration: tuple[str, ...]
    given: dict[str, tuple[str, ...]]
    orders: dict[str, tuple[str, ...]]  # of everybody, the calibration first


def assign(
    strata: Strata, annotators: Sequence[str], per_item: int, calibration: int, seed: int
) -> Assignment:
    """The assignment of all items. Raises SetupError with every setting that cannot be met."""
    limits = [
        ("per_item", per_item, 1, len(annotators)),
        ("calibration", calibration, 0, len(strata)),
    ]
    problems = [
        Problem("cannot be met", "", None, key, str(n), f"{least} to {max(least, most):,}")
        for key, n, least, most in limits
        if not least <= n <= most
    ]
    raise_any(problems)
    drawn = order(_drawn(strata, calibration, seed), strata, "", seed)
    rest = {item: strata[item] for item in strata.keys() - set(drawn)}
    given = extend(rest, {}, annotators, per_item, seed)
    own = {name: [item for item in given if name in given[item]] for name in annotators}
    orders = {name: drawn + order(own[name], strata, name, seed) for name in annotators}
    return Assignment(drawn, given, orders)


def _shuffled(items: Iterable[str], *seed: object) -> list[str]:
    return sorted(items, key=lambda item: content_hash([*seed, item]))


def _drawn(strata: Strata, size: int, seed: int) -> list[str]:
    """`size` items: of as many questions as possible, and of systems in proportion."""
    left = {item: strata[item] for item in _shuffled(strata, seed, "calibration")}
    of, used = Counter(system for system, _ in strata.values()), Counter[tuple[int, str]]()
    drawn: list[str] = []
    for _ in range(size):
        use = {x: (used[1, q], (used[0, s] + 0.5) / of[s]) for x, (s, q) in left.items()}
        drawn.append(min(use, key=use.__getitem__))
        used.update(enumerate(left.pop(drawn[-1])))
    return drawn


def order(items: Collection[str], strata: Strata, annotator: str, seed: int) -> tuple[str, ...]:
    """The items shuffled for an annotator. Two of a question follow each other only where there is
    no other way."""
    waiting, ordered = _shuffled(items, seed, "order", annotator), [""]
    of = {"": "", **{item: strata[item][1] for item in waiting}}
    left = Counter(of[item] for item in waiting)
    most = max(left.values(), default=0)
    while waiting:
        # What is more than half of the rest must come now, or it would follow itself later.
        close = left if len(waiting) < 2 * most else ()
        now = next((question for question in close if 2 * left[question] > len(waiting)), None)
        fits = (of[x] == now if now is not None else of[x] != of[ordered[-1]] for x in waiting)
        ordered.append(waiting.pop(next((at for at, fit in enumerate(fits) if fit), 0)))
        left[of[ordered[-1]]] -= 1
    return tuple(ordered[1:])


def mix(items: Sequence[str], gold: Collection[str], *seed: object) -> tuple[str, ...]:
    """The items in their order with the gold ones among them: one in each of as many equal
    stretches, shuffled, at a place that the seed decides."""
    stretch = len(items) / max(len(gold), 1)
    shares = [int(content_hash([*seed, "place", n])[:13], 16) / 16**13 for n in range(len(gold))]
    at = [(float(n), item) for n, item in enumerate(items)]
    among = enumerate(zip(_shuffled(gold, *seed, "gold"), shares, strict=True))
    at += [((n + share) * stretch - 0.5, item) for n, (item, share) in among]
    return tuple(item for _, item in sorted(at))


def extend(
    strata: Strata, given: Given, annotators: Sequence[str], per_item: int, seed: int
) -> dict[str, tuple[str, ...]]:
    """The annotators of the items of `strata` that are not `given`, continuing that balance."""
    groups = {question: content_hash([seed, question]) for _, question in strata.values()}
    new = sorted(_shuffled(strata.keys() - given.keys(), seed), key=lambda x: groups[strata[x][1]])
    board = _Board([strata.get(item, ("", "")) for item in [*given, *new]], len(annotators))
    for item, names in enumerate(given.values()):
        board.put(item, np.array([int(name in names) for name in annotators]))
    board.fill(len(given), per_item, np.random.default_rng(int(content_hash([seed]), 16)))
    rows = zip(new, board.chosen[len(given) :].tolist(), strict=True)
    return {item: tuple(compress(annotators, row)) for item, row in rows}


class _Board:
    """`chosen` has a row for every item. `tables` are the overlaps over all items, in every system
    and in every question; `of` says in which three of them an item counts."""

    def __init__(self, strata: Sequence[tuple[str, str]], v: int) -> None:
        keys = [[("", 0), (system, 1), (question, 2)] for system, question in strata]
        codes = {key: at for at, key in enumerate(dict.fromkeys(chain([("", 0)], *keys)))}
        self.of = np.array([[codes[key] for key in of] for of in keys])
        self.chosen = np.zeros((len(keys), v), np.int64)
        self.tables = np.zeros((len(codes), v, v), np.int64)
        even = np.ones((v, v), np.int64)
        self.weights = np.array([_OVERALL * even, _SYSTEM * even, _QUESTION * np.eye(v)], np.int64)

    def put(self, item: int, row: _Ints) -> None:
        old = self.chosen[item]
        self.tables[self.of[item]] += np.outer(row, row) - np.outer(old, old)
        self.chosen[item] = row

    def fill(self, first: int, r: int, rng: np.random.Generator) -> None:
        """Gives the items from `first` on to r annotators each: greedily, then improved."""
        n, v = self.chosen.shape
        table, pairs = self.tables[0], np.triu_indices(v, int(v > 1))
        for item in range(first, n):
            self._choose(item, r, rng)
        for _ in range(_TRIES):
            if max(np.ptp(table.diagonal()), np.ptp(table[pairs])) <= 1:
                break
            some, squares = first + rng.permutation(n - first)[:3], (table * table).sum()
            before = self.chosen[some]
            for item in some:
                self.put(item, 0 * before[0])
            for item in some:
                self._choose(item, r, rng)
            if (table * table).sum() > squares:
                for item, row in zip(some, before, strict=True):
                    self.put(item, row)
        for item in [*range(first, n)] * min(_PASSES, 1 + _EXCHANGES // max(n, 1)):
            # Its neighbours are of the same question, if any are.
            near = range(max(first, item - _PARTNERS), min(n, item + _PARTNERS))
            self._exchange(item, [*near, *rng.integers(first, n, _PARTNERS)])

    def _choose(self, item: int, r: int, rng: np.random.Generator) -> None:
        """Gives an item of nobody to those who keep the tables most even, one by one."""
        costs = (self.weights * self.tables[self.of[item]]).sum(0)
        v = len(costs)
        now, row = v * costs.diagonal() + rng.permutation(v), np.zeros(v, np.int64)
        for _ in range(r):  # the draw decides where two cost the same, and only there
            added = np.where(row, np.iinfo(np.int64).max, now).argmin()
            row[added] = 1
            now += 2 * v * costs[added]
        self.put(item, row)

    def _exchange(self, item: int, partners: list[int]) -> None:
        """Exchanges the annotators of two items where that makes their strata more even."""
        of, theirs, mine = self.of[partners, 1:], self.chosen[partners], self.chosen[item].copy()
        change = theirs[:, :, None] * theirs[:, None] - np.outer(mine, mine)
        gap = self.tables[self.of[item, 1:]] - self.tables[of]
        gap += change[:, None] * (of != self.of[item, 1:])[:, :, None, None]
        gain = ((self.weights[1:] * gap).sum(1) * change).sum((1, 2))
        best = gain.argmin()
        if gain[best] < 0:
            self.put(item, theirs[best])
            self.put(partners[best], mine)


def reassign(
    given: Given, gone: str, unstarted: Collection[str], annotators: Sequence[str], seed: int
) -> tuple[dict[str, str], list[str]]:
    """Distribute among `annotators` each `unstarted` item of somebody who is `gone`, and the items
    that all of them have. First comes who has the fewest items, then who shares the fewest."""
    has = Counter(chain.from_iterable(given.values()))
    shared = Counter[tuple[str, ...]](
        pair for names in given.values() for pair in permutations(names, 2)
    )
    moved: dict[str, str] = {}
    theirs = _shuffled((item for item in unstarted if gone in given.get(item, ())), seed, gone)
    for item in theirs:
        others = set(given[item]) - {gone}
        free = _shuffled(set(annotators) - {gone, *others}, seed, item)
        use = {x: (has[x], sum(shared[x, other] for other in others)) for x in free}
        if free:
            new = moved[item] = min(use, key=use.__getitem__)
            has[new] += 1
            shared.update(pair for other in others for pair in permutations((new, other), 2))
    return moved, [item for item in theirs if item not in moved]


def overlaps(given: Given, annotators: Sequence[str]) -> list[list[int]]:
    """The number of items that two annotators share; on the diagonal, of those that one has."""
    has = [{item for item, names in given.items() if name in names} for name in annotators]
    return [[len(one & other) for other in has] for one in has]


def overlap_lines(given: Given, annotators: Sequence[str]) -> list[str]:
    """The table of overlaps as lines of text."""
    table = zip(annotators, overlaps(given, annotators), strict=True)
    rows = [["", *annotators], *([name, *(f"{n:,}" for n in row)] for name, row in table)]
    width = max(len(cell) for row in rows for cell in row)
    return ["  ".join([row[0].ljust(width), *(x.rjust(width) for x in row[1:])]) for row in rows]
