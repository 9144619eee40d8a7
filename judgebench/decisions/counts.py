"""The counts on which a decision rests, as counts that add up over clusters.

A study is small in this form: the same kinds of clusters come again and again. So it is measured in
microseconds, and a thousand larger studies can be drawn from it to plan with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judgebench.decisions.decision import OF_SEVERE
from judgebench.decisions.rule import Measure
from judgebench.stats.agreement import hits, least_severe, members
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.intervals import ClusterCounts

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class HumanSide:
    """One metric's human labels. All arrays are of the items that any annotator labelled.

    The annotators are those of the bar. `truth` (items,) is that of all of them; `own` (items,
    annotators) are their labels and `others` (items, annotators) the truth of all but that one; -1
    where there is none. Labels are 0..k-1; those from `severe` on are severe, none where it is
    None. `weights` (bars, annotators) and `spread` are those of the bar (`stats.peers.Bar`).

    Where the metric takes several labels, `sets` is how many it has; `own` and a judge's labels are
    then sets of them, `truth` and `others` response sets, `k` is 1, and to be right is to hit them.
    A set is severe where all its labels are.

    `gold` (items,) are adjudicated labels, -1 where there is none: judge and annotators are then
    compared with these, in the place of the others. `stands_for` (items,) is in proportion to how
    many of all answers each item stands for. `tied` (items,) says where a tie settled the truth.
    `levels` is how far two labels may be apart; 0 where that tells nothing: of two labels, of
    nominal ones, or of sets. False alarms are counted `with_alarms` alone: they make kinds of
    clusters more.
    """

    truth: IntArray
    own: IntArray
    others: IntArray
    clusters: Clusters
    k: int
    severe: int | None
    weights: FloatArray
    spread: float = 0.0
    sets: int = 0
    gold: IntArray | None = None
    stands_for: FloatArray | None = None
    tied: Bools | None = None
    with_alarms: bool = False
    levels: int = 0

    def right(self, said: IntArray, reference: IntArray) -> FloatArray:
        """1 where what was said is right, 0 where it is wrong; of sets the share that is right."""
        if not self.sets:
            return _weight(said == reference)
        return np.nan_to_num(hits(said, reference, self.sets))

    def classes(self, reference: IntArray) -> IntArray:
        """The label by which references are counted; of sets there is one class."""
        return np.zeros_like(reference) if self.sets else reference

    def chance(self, references: IntArray) -> float:
        """How often a label that is drawn at random hits a response set."""
        return (
            float(members(references, self.sets).mean()) if self.sets and len(references) else 0.0
        )

    def grade(self, said: IntArray) -> IntArray:
        """The label by which severity is judged."""
        return least_severe(said) if self.sets else said

    @property
    def severe_labels(self) -> FloatArray:
        """How many annotators call each item severe, as most of the others do (items,)."""
        severe_from = self.k if self.severe is None else self.severe
        agreed = _most_others(self.own, severe_from) & (self.own >= severe_from)
        return np.asarray(agreed.sum(axis=1), dtype=np.float64)

    def at(self, rows: IntArray) -> HumanSide:
        """The same of these items alone."""
        names = ("truth", "own", "others", "gold", "stands_for", "tied")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        clusters = self.clusters[rows].occurring()
        return replace(self, clusters=clusters, **{name: x[rows] for name, x in arrays.items()})


AGREED, ALONE, SPLIT = range(3)  # of judge and annotators on an item
_LEAST_ADJUDICATED = 10  # of a stratum, from which these speak for its other items
_FAR = 2.576  # standard errors
_TINY = 1e-300


def disagreements(own: IntArray, judged: IntArray) -> IntArray:
    """Of each item (items,): AGREED where the judge gives the one label that its annotators gave,
    `own` (items, annotators); ALONE where it gives another or none; SPLIT where they differ."""
    first = own.max(axis=1)
    united = ((own == first[:, None]) | (own < 0)).all(axis=1)
    return np.where(united, np.where(judged == first, AGREED, ALONE), SPLIT)


def adjudicated(humans: HumanSide, judged: IntArray, asked: Bools) -> tuple[int, int, int]:
    """On how many items of how many judge and annotators do not all agree and there is an
    adjudicated label; and how many more there must be before these speak for the others."""
    assert humans.gold is not None
    strata = disagreements(humans.own, judged)
    of, known = (
        np.bincount(strata[which], minlength=3)[[ALONE, SPLIT]]
        for which in (asked, asked & (humans.gold >= 0))
    )
    if _one_draw(of, known):
        lacking = max(0, min(of.sum(), 2 * _LEAST_ADJUDICATED) - known.sum())
    else:
        lacking = np.maximum(np.minimum(of, _LEAST_ADJUDICATED) - known, 0).sum()
    return int(known.sum()), int(of.sum()), int(lacking)


def _one_draw(of: IntArray, known: IntArray) -> bool:
    """True where as large a share of both kinds of disagreement is known, but for chance (1 %):
    then they were drawn together, and speak for each other."""
    n, drawn = of.sum(), known.sum()
    if n < 2:
        return True
    expected = drawn * of[0] / n
    variance = expected * (1 - of[0] / n) * (n - drawn) / (n - 1)
    return bool(abs(known[0] - expected) <= _FAR * np.sqrt(variance) + 1e-9)


@dataclass(frozen=True)
class Sums:
    """Sums over items by cluster, in which each item counts by its `weight` (items,).

    Where only a part of the items can be counted, those of a stratum speak for the others of it:
    double sampling for stratification (Cochran 1977, section 12.2). Each item counts as its stratum
    does on average, and one that can be counted also as it differs from that, times its weight. So
    the sums are those of the strata's means, and how strata differ is known of every item. `left`
    (clusters, strata) is how many items there are beyond those weights, of `size` (strata,).
    """

    clusters: Clusters
    weight: FloatArray
    strata: Clusters | None = None
    left: FloatArray | None = None
    size: FloatArray | None = None

    def table(
        self, rows: IntArray, cells: IntArray, k: int, values: FloatArray | float = 1.0
    ) -> FloatArray:
        """The sums of `values` (n,) in each of k cells (n,), of the items at these rows (n,):
        (clusters, k)."""
        weights = self.weight[rows] * values
        found = self.clusters[rows].table(cells, k, weights)
        if self.strata is None or self.left is None or self.size is None:
            return found
        means: FloatArray = self.strata[rows].table(cells, k, weights) / self.size
        return np.asarray(found + self.left @ means)

    def of(self, rows: IntArray, *columns: FloatArray | Bools | IntArray) -> FloatArray:
        """The sums of columns (n,): (clusters, columns)."""
        cells = np.zeros(len(rows), dtype=np.int64)
        found = [self.table(rows, cells, 1, column.astype(np.float64)) for column in columns]
        return np.concatenate(found, axis=1)


def _double_sampled(whole: Sums, strata: IntArray, known: Bools, asked: Bools) -> Sums:
    """The sums of items that are `known` and speak for those of their stratum. Strata that were
    drawn together and of which too few are known are one."""
    of, sampled = (np.bincount(strata[which], minlength=3) for which in (asked, asked & known))
    if (sampled < np.minimum(of, _LEAST_ADJUDICATED)).any():
        strata = np.minimum(strata, ALONE)
    stood, of_known = whole.weight * asked, whole.weight * (asked & known)
    size, sampled = np.bincount(strata, stood, 3), np.bincount(strata, of_known, 3)
    weight = of_known * np.nan_to_num(ratio(size, sampled))[strata]
    left = whole.clusters.table(strata, 3, stood - weight)
    return Sums(whole.clusters, weight, Clusters(strata, 3), left, np.fmax(size, _TINY)[:, None])


@dataclass(frozen=True)
class StudyCounts:
    """Counts by kind of cluster. Each field is (U, ...), U kinds, and `how_many` is (U,).

    `pairs`, `judge_pairs`, `failed_pairs`, `annotator_pairs` (U, bars, k), by the truth of the
    others: pairs of an item and an annotator, by the annotator's weight; those where the judge, or
    the annotator, gives that truth; those where the judge gives no label. `items`, `judge_items`,
    `failed_items` (U, k), by the truth of all; `control_items` (U, controls, k). `severe`
    (U, 3): severe items, of these found and without a label. `severe_pairs` (U, bars, 4): pairs
    where most of the others call the item severe, of these found by the judge, without a label of
    the judge, and found by the annotator; `mild_pairs` (U, bars, 4) the same of pairs where they
    do not, and labels that do not call it severe. `distances` (U, bars, 3): pairs where the judge
    gives a label, and how many levels judge and annotator are from the truth of the others there.
    `asked` (U, 2): items that the judge was asked about, of these without a label. `labels` (U,):
    human labels.

    `spread` is that of the bar; `chance` is how often a label drawn at random is in a response set,
    0 where one label is right. `severe_from` is None where no label is severe. `levels` are
    those of HumanSide. Where `by_gold`, adjudicated labels stand in the place of the truth of the
    others. Items are `alone` where no two of them are of one cluster. `is_pooled` where the labels
    of some annotators count more in a pair than those of others.
    """

    how_many: FloatArray
    pairs: FloatArray
    judge_pairs: FloatArray
    failed_pairs: FloatArray
    annotator_pairs: FloatArray
    items: FloatArray
    judge_items: FloatArray
    failed_items: FloatArray
    control_items: FloatArray
    severe: FloatArray
    severe_pairs: FloatArray
    mild_pairs: FloatArray
    distances: FloatArray
    asked: FloatArray
    labels: FloatArray
    controls: tuple[str, ...]
    n_not_asked: int
    spread: float
    chance: float
    severe_from: int | None
    levels: int
    alone: bool
    by_gold: bool = False
    is_weighted: bool = False
    is_pooled: bool = False

    @property
    def has_severity(self) -> bool:
        """True where a label is severe; not so for a nominal metric."""
        return self.severe_from is not None

    @property
    def of_sets(self) -> bool:
        """True where several labels may be right, so that labels cannot be balanced."""
        return bool(self.items.shape[1] == 1)

    def has(self, key: str) -> bool:
        """True where a kind of condition can be measured at all."""
        if key == "humans_distance":
            return self.levels > 0
        return self.has_severity or key not in OF_SEVERE

    def used(self, measure: Measure, rare: int) -> Bools | None:
        """Mask of the labels (k,) that agreement is a mean over; None for plain agreement."""
        return None if measure == "accuracy" else self.balanced_over(rare)

    def balanced_over(self, rare: int) -> Bools | None:
        """Mask of the labels (k,) that balanced agreement is a mean over; None where there are
        none, as of sets."""
        if self.of_sets:
            return None
        return estimable(self.how_many @ (self.items > 0), rare, self.severe_from)

    @property
    def total_asked(self) -> int:
        """The number of items with human labels the judge was asked about."""
        return round(float(self.how_many @ self.asked[:, 0]))


def estimable(questions: FloatArray | IntArray, rare: int, severe_from: int | None) -> Bools:
    """Mask of the labels that agreement can be estimated on, by how many `questions` (k,) have them
    as truth.

    A label of fewer than `rare` would decide balanced agreement by a handful of items; it is left
    out as long as two others remain. Severe labels stay: they are what a judge is for.
    """
    enough = np.asarray(questions >= rare)
    if severe_from is not None:
        enough[severe_from:] = True
    enough &= questions > 0
    return enough if enough.sum() >= 2 else np.ones_like(enough)


def study_counts(
    humans: HumanSide, judged: IntArray, asked: Bools, controls: Mapping[str, IntArray]
) -> StudyCounts:
    """Count one judge's labels `judged` (items,) of the items it was `asked` about (items,).

    `controls` holds each baseline's labels (items,). What the judge was not asked about is
    left out of everything.
    """
    k, whole = humans.k, Sums(humans.clusters, _mean_one(humans.stands_for, asked))
    others, of_pairs, bars, settled = humans.others, whole, humans.weights, humans.truth
    if humans.gold is not None:
        strata = disagreements(humans.own, judged)
        agreed = np.where(strata == AGREED, judged, -1)  # neither side can be better than the other
        reference = np.where(humans.gold >= 0, humans.gold, agreed)
        others = np.repeat(reference[:, None], humans.own.shape[1], axis=1)
        of_pairs = _double_sampled(whole, strata, reference >= 0, asked)
        bars = bars.mean(axis=0, keepdims=True)  # where two differ, it is known by how much
        settled = np.where(humans.gold >= 0, humans.gold, settled)
    right, grade = humans.right, humans.grade
    severe_from = np.iinfo(np.int64).max if humans.severe is None else humans.severe

    # Items with a truth.
    rows = np.flatnonzero(asked & (settled >= 0))
    truth, label = settled[rows], judged[rows]
    of_item = humans.classes(truth)
    severe = grade(truth) >= severe_from
    if humans.tied is not None:
        severe &= ~humans.tied[rows] | (settled != humans.truth)[rows]

    def items(values: FloatArray | float = 1.0) -> FloatArray:
        return whole.table(rows, of_item, k, values)

    by_control = [items(right(labels[rows], truth)) for labels in controls.values()]
    none = np.zeros((humans.clusters.n, 0, k))

    # Pairs of an item and an annotator.
    both = asked[:, None] & (humans.own >= 0) & (others >= 0)
    pair_rows, annotator = np.nonzero(both)
    weights = bars[:, annotator]
    own, reference, verdict = humans.own[both], others[both], judged[pair_rows]
    of_pair, has_label = humans.classes(reference), verdict >= 0
    called = grade(others) >= severe_from
    if humans.gold is None:
        called = _most_others(grade(humans.own), severe_from)
    called = called[both]
    found, by_annotator = grade(verdict) >= severe_from, grade(own) >= severe_from

    def pairs(values: FloatArray | Bools, of: IntArray = of_pair, size: int = k) -> FloatArray:
        tables = [of_pairs.table(pair_rows, of, size, weight * values) for weight in weights]
        return np.stack(tables, axis=1)

    def columns(*values: FloatArray | Bools) -> FloatArray:
        of_all = np.zeros_like(pair_rows)
        return np.concatenate([pairs(column, of_all, 1) for column in values], axis=2)

    def called_alike(which: Bools, judge: Bools, human: Bools) -> FloatArray:
        return columns(which, which & judge & has_label, which & ~has_label, which & human)

    distances = (np.abs(x - reference) * has_label for x in (verdict, own))
    how_many, blocks = _by_kind(
        {
            "pairs": pairs(np.ones(len(pair_rows))),
            "judge_pairs": pairs(right(verdict, reference)),
            "failed_pairs": pairs(~has_label),
            "annotator_pairs": pairs(right(own, reference)),
            "items": items(),
            "judge_items": items(right(label, truth)),
            "failed_items": items(_weight(label < 0)),
            "control_items": np.stack(by_control, axis=1) if by_control else none,
            "severe": whole.of(
                rows, severe, severe & (grade(label) >= severe_from), severe & (label < 0)
            ),
            "severe_pairs": called_alike(called, found, by_annotator),
            "mild_pairs": called_alike(~called & humans.with_alarms, ~found, ~by_annotator),
            "distances": columns(has_label, *distances),
            "asked": whole.of(np.arange(len(asked)), asked, asked & (judged < 0)),
            "labels": humans.clusters.sums(asked * (humans.own >= 0).sum(axis=1))[:, 0],
        }
    )
    return StudyCounts(
        how_many=how_many, controls=tuple(controls), n_not_asked=int((~asked).sum()),
        spread=0.0 if humans.gold is not None else humans.spread,
        chance=humans.chance(reference), severe_from=humans.severe,
        levels=humans.levels,
        alone=bool(humans.clusters.sums(asked).max(initial=0) <= 1),
        by_gold=humans.gold is not None, is_weighted=humans.stands_for is not None,
        is_pooled=len(humans.weights) == 1 and bool(np.ptp(humans.weights) > 0), **blocks,
    )  # fmt: skip


def _mean_one(stands_for: FloatArray | None, asked: Bools) -> FloatArray:
    """The weights of items (items,), of those the judge was asked about 1 on average."""
    if stands_for is None:
        return np.ones(len(asked))
    return stands_for / max(float(stands_for[asked].mean()) if asked.any() else 1.0, _TINY)


def _most_others(own: IntArray, least: int) -> Bools:
    """True where an item is severe to more than half of the others: (items, annotators)."""
    severe, given = own >= least, own >= 0
    others_severe = severe.sum(axis=1, keepdims=True) - severe
    others = given.sum(axis=1, keepdims=True) - given
    return np.asarray(2 * others_severe > others)


def _weight(which: Bools) -> FloatArray:
    return which.astype(np.float64)


def _by_kind(blocks: Mapping[str, FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The number of clusters of each kind (U,), and the blocks with one entry for each kind.

    Clusters are of one kind where all their counts are the same.
    """
    flat = [block.reshape(len(block), -1) for block in blocks.values()]
    clusters = ClusterCounts(np.concatenate(flat, axis=1))
    edges = np.cumsum([part.shape[1] for part in flat])[:-1]
    parts = np.split(clusters.kinds, edges, axis=1)
    shaped = {
        name: part.reshape(len(part), *block.shape[1:])
        for (name, block), part in zip(blocks.items(), parts, strict=True)
    }
    return clusters.how_many.astype(np.float64), shaped
