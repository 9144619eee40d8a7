"""The use of labels by each annotator, beside the others on the same items, and who uses them as
nobody else does.

`ratings` is (items, annotators), ints 0..k-1 with -1 where there is no label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio, value_counts
from judgebench.stats.intervals import mean_difference
from judgebench.stats.paired import permutation_test

FAR = 0.25  # of all labels; someone who answers every second item at random may come close to it
FALSELY = 0.01  # chance that anybody is named although all use the labels alike
NEARLY_ALL = 0.9  # of a judge's labels


@dataclass(frozen=True)
class Use:
    """One annotator's labels beside those that the others gave the same `n` items.

    `own` and `others` (k,) are shares of the labels; `distance` is the total variation distance
    between them, the share of labels that would have to change. `agreement` is how often another
    gave the same label. Where `exchanged` names two labels, the annotator clearly gave each of them
    where the others gave the other one, and `agreement_exchanged` is the agreement if these two
    were exchanged. `clear` says whether any share differs by more than chance. All shares are NaN
    where no item was labelled by another.
    """

    n: int
    own: FloatArray
    others: FloatArray
    agreement: float
    clear: bool = False
    exchanged: tuple[int, int] | None = None
    agreement_exchanged: float = np.nan

    @property
    def distance(self) -> float:
        return float(np.abs(self.own - self.others).sum() / 2)

    @property
    def farthest_label(self) -> int:
        """The label whose shares differ most."""
        return int(np.abs(self.own - self.others).argmax())

    @property
    def is_odd(self) -> bool:
        """True where the labels are used as by nobody else, by more than chance and unequal
        skill."""
        return self.exchanged is not None or (self.clear and self.distance >= FAR)

    @property
    def oddness(self) -> float:
        """The distance from the others, by the shares of labels or by two that are exchanged."""
        gain = self.agreement_exchanged - self.agreement if self.exchanged else 0.0
        return max(self.distance, gain)


@dataclass(frozen=True)
class Odd:
    """The annotators who use the labels as nobody else does, by column. With `settled` False
    nothing shows who of them is the odd one: two annotators alone, or as many on either side."""

    uses: Mapping[int, Use]
    settled: bool = True


def uses(ratings: IntArray, clusters: Clusters, k: int) -> list[Use]:
    """Each annotator beside all others.

    >>> ratings = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]] * 20)
    >>> found = uses(ratings, Clusters(np.arange(80), 80), k=2)
    >>> found[2].own.tolist(), found[2].others.tolist(), found[2].exchanged
    ([0.25, 0.75], [0.75, 0.25], (0, 1))
    """
    annotators = max(1, int((ratings >= 0).any(axis=0).sum()))
    votes, by_annotator = value_counts(ratings, k), []
    for labels in ratings.T:
        # The items that another annotator labelled too.
        rows = np.flatnonzero((labels >= 0) & (votes.sum(axis=1) > 1))
        others = votes[rows] - _one_hot(labels[rows], k)
        by_annotator.append(_use(labels[rows], others, clusters[rows].occurring(), annotators))
    return by_annotator


def odd_ones(ratings: IntArray, clusters: Clusters, k: int) -> Odd:
    """The annotators whose labels are distributed unlike the others' on the same items, or who gave
    two labels the wrong way round.

    Two tests for each annotator, both corrected for their number (Bonferroni). The shares of the
    labels: `stats.intervals.mean_difference` of own label and the others' share, of FAR or more in
    all. Two labels exchanged: where most of the others gave the one, the annotator more often gave
    the other, and the other way round too; each a sign test (Dixon and Mood 1946, "The Statistical
    Sign Test"), both of which must be passed (intersection-union, Berger 1982). Noise alone never
    exchanges labels. The farthest is taken out first, so that they make nobody else look odd. Only
    a minority can be odd: where it is not, nothing shows who of those found is.

    >>> ratings = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 1]] * 20)
    >>> list(odd_ones(ratings, Clusters(np.arange(80), 80), k=2).uses)
    [2]
    """
    left = np.flatnonzero((ratings >= 0).any(axis=0))
    room, found, first = (len(left) - 1) // 2, dict[int, Use](), dict[int, Use]()
    while True:
        now = zip(left.tolist(), uses(ratings[:, left], clusters, k), strict=True)
        odd = {column: use for column, use in now if use.is_odd}
        if not odd:
            return Odd(dict(sorted(found.items())))
        first = first or odd
        if len(found) == room:
            return Odd(first, settled=False)
        farthest = max(odd, key=lambda column: odd[column].oddness)
        found[farthest] = odd[farthest]
        left = left[left != farthest]


def _use(own: IntArray, votes: IntArray, clusters: Clusters, annotators: int) -> Use:
    """`own` labels (items,) beside the `votes` of the others (items, k)."""
    n, k = votes.shape
    if not n:
        nothing = np.full(k, np.nan)
        return Use(0, nothing, nothing, np.nan)
    share, given = ratio(votes, votes.sum(axis=1, keepdims=True)), _one_hot(own, k)
    clear, items = _is_clear(given, share, clusters, annotators), np.arange(n)
    agreement = float(share[items, own].mean())
    use = Use(n, given.mean(axis=0), share.mean(axis=0), agreement, clear)
    pair = _exchanged(own, votes, clusters, FALSELY / 2 / annotators)
    if pair is None:
        return use
    swapped = np.arange(k)
    swapped[list(pair)] = pair[::-1]
    after = float(share[items, swapped[own]].mean())
    return replace(use, exchanged=pair, agreement_exchanged=after)


def _is_clear(
    own: FloatArray | IntArray, others: FloatArray | IntArray, clusters: Clusters, annotators: int
) -> bool:
    """True where a label's share differs by more than chance between `own` and `others`, counts of
    each item's labels (items, k) that have the same sum."""
    level, clear = 1 - FALSELY / 2 / (annotators * own.shape[1]), False
    each = np.maximum(own.sum(axis=1), others.sum(axis=1))
    for label in range(own.shape[1]):
        x, m = np.split(clusters.sums(own[:, label] - others[:, label], each), 2, axis=1)
        d = mean_difference(x, m, np.ones((1, clusters.n)), level, balanced=False)
        clear |= bool(d.low[0] > 0 or d.high[0] < 0)
    return clear


def _exchanged(
    own: IntArray, others: IntArray, clusters: Clusters, falsely: float
) -> tuple[int, int] | None:
    """The two labels that were most clearly given the wrong way round; None where none were."""
    most = others.max(axis=1)
    top = np.where((others == most[:, None]).sum(axis=1) == 1, others.argmax(axis=1), -1)
    pairs = list(combinations(range(others.shape[1]), 2))
    p = {(a, b): max(_p(own, top == a, (a, b), clusters), _p(own, top == b, (b, a), clusters))
         for a, b in pairs}  # fmt: skip
    best = min(p, key=lambda pair: p[pair], default=None)
    return best if best is not None and p[best] * len(pairs) <= falsely else None


def _p(
    own: IntArray, here: NDArray[np.bool_], labels: tuple[int, int], clusters: Clusters
) -> float:
    """The chance that so many clusters have more of the second label than of the first among the
    items `here`, if both were as likely."""
    first, second = labels
    balance = clusters.sums(here * ((own == second) * 1.0 - (own == first)))[:, 0]
    p = permutation_test(np.sign(balance), "greater")
    return 1.0 if p is None else p


def _one_hot(labels: IntArray, k: int) -> NDArray[np.int64]:
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.int64)


def collapsed_label(judged: IntArray, truth: IntArray) -> int:
    """The label that is nearly all that a judge gives, -1 where there is none or that is no fault.

    Both are (items,), without -1. The judge gives it on `NEARLY_ALL` of the items or more, and
    humans do not; clearly more often than it is the truth (McNemar's exact test); and not clearly
    more often where it is the truth (Fisher's exact test). So a judge is not named where the truth
    is as skewed, or where its few other labels stand where they should. One label alone needs no
    test.

    >>> truth = np.array([0, 1] * 50)
    >>> collapsed_label(np.zeros(100, dtype=np.int64), truth), collapsed_label(truth, truth)
    (0, -1)
    """
    from scipy.stats import fisher_exact  # which takes a second to import

    label = int(np.bincount(judged, minlength=1).argmax())
    own, true = judged == label, truth == label
    if not len(own) or own.mean() < NEARLY_ALL or true.mean() >= NEARLY_ALL:
        return -1
    table = [[int((o & t).sum()) for o in (own, ~own)] for t in (true, ~true)]
    (_, fewer), (more, _) = table
    clear = own.all() or (permutation_test(np.repeat([1, -1], [more, fewer])) or 0.0) < FALSELY
    apart = fisher_exact(table, "greater").pvalue <= FALSELY
    return label if clear and not apart else -1
