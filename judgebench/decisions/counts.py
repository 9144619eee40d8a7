"""The counts on which a decision rests, as counts that add up over clusters.

A study is small in this form: the same kinds of clusters come again and again. So it is measured in
microseconds, and a thousand larger studies can be drawn from it to plan with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judgebench.decisions.rule import Measure
from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.jackknife import ClusterCounts
from judgebench.stats.response_sets import hits, least_severe, members

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

    def at(self, rows: IntArray) -> HumanSide:
        """The same of these items alone."""
        parts = {name: getattr(self, name)[rows] for name in ("truth", "own", "others")}
        return replace(self, clusters=self.clusters[rows].occurring(), **parts)


@dataclass(frozen=True)
class StudyCounts:
    """Counts by kind of cluster. Each field is (U, ...), U kinds, and `how_many` is (U,).

    `pairs`, `judge_pairs`, `failed_pairs`, `annotator_pairs` (U, bars, k), by the truth of the
    others: pairs of an item and an annotator, by the annotator's weight; those where the judge, or
    the annotator, gives that truth; those where the judge gives no label. `items`, `judge_items`,
    `failed_items` (U, k), by the truth of all; `control_items` (U, controls, k). `severe`
    (U, 3): severe items, of these found and without a label. `severe_pairs` (U, bars, 4): pairs
    where most of the others call the item severe, of these found by the judge, without a label of
    the judge, and found by the annotator. `distances` (U, bars, 3): pairs where the judge gives a
    label, and how many levels judge and annotator are from the truth of the others there. `asked`
    (U, 2): items that the judge was asked about, of these without a label. `labels` (U,):
    human labels.

    `spread` is that of the bar; `chance` is how often a label drawn at random is in a response set,
    0 where one label is right. `severe_from` is None for a nominal metric. `levels` is how far
    two labels may be apart; 0 where that tells nothing: of two labels, or of nominal ones.
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
    distances: FloatArray
    asked: FloatArray
    labels: FloatArray
    controls: tuple[str, ...]
    n_not_asked: int
    spread: float
    chance: float
    severe_from: int | None
    levels: int

    @property
    def has_severity(self) -> bool:
        """True where anything can be severe; not so for a nominal metric."""
        return self.severe_from is not None

    @property
    def of_sets(self) -> bool:
        """True where several labels may be right, so that labels cannot be balanced."""
        return bool(self.items.shape[1] == 1)

    def measures(self, asked: Sequence[Measure]) -> Sequence[Measure]:
        """Those of the measures asked for that can be told apart."""
        return ("accuracy",) if self.of_sets and asked else asked

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
    k, both = humans.k, asked[:, None] & (humans.own >= 0) & (humans.others >= 0)
    pair_rows, who = np.nonzero(both)
    weights = humans.weights[:, who]
    mine, reference, said = humans.own[both], humans.others[both], judged[pair_rows]
    rows = np.flatnonzero(asked & (humans.truth >= 0))
    truth, label = humans.truth[rows], judged[rows]
    pairs, items = humans.clusters[pair_rows], humans.clusters[rows]
    of_item, of_pair, right_of = humans.classes(truth), humans.classes(reference), humans.right
    right = [items.table(of_item, k, right_of(c[rows], truth)) for c in controls.values()]
    least = np.iinfo(np.int64).max if humans.severe is None else humans.severe
    severe = humans.grade(truth) >= least
    severe_pairs = _most_others(humans.grade(humans.own), least)[both]
    found, found_pairs = humans.grade(label) >= least, humans.grade(said) >= least

    def weighed(*which: Bools | IntArray) -> FloatArray:
        return np.stack([pairs.sums(*(w * one for one in which)) for w in weights], axis=1)

    def by_truth(which: Bools | FloatArray | float = 1.0) -> FloatArray:
        return np.stack([pairs.table(of_pair, k, w * which) for w in weights], axis=1)

    how_many, blocks = _by_kind(
        {
            "pairs": by_truth(),
            "judge_pairs": by_truth(right_of(said, reference)),
            "failed_pairs": by_truth(said < 0),
            "annotator_pairs": by_truth(right_of(mine, reference)),
            "items": items.table(of_item, k),
            "judge_items": items.table(of_item, k, right_of(label, truth)),
            "failed_items": items.table(of_item, k, _weight(label < 0)),
            "control_items": np.stack(right, axis=1) if right else np.zeros((items.n, 0, k)),
            "severe": items.sums(severe, severe & found, severe & (label < 0)),
            "severe_pairs": weighed(
                severe_pairs, severe_pairs & found_pairs, severe_pairs & (said < 0),
                severe_pairs & (humans.grade(mine) >= least),
            ),
            "distances": weighed(
                said >= 0, (said >= 0) * np.abs(said - reference),
                (said >= 0) * np.abs(mine - reference),
            ),
            "asked": humans.clusters.sums(asked, asked & (judged < 0)),
            "labels": humans.clusters.sums(asked * (humans.own >= 0).sum(axis=1))[:, 0],
        }
    )  # fmt: skip
    return StudyCounts(
        how_many=how_many, controls=tuple(controls), n_not_asked=int((~asked).sum()),
        spread=humans.spread, chance=humans.chance(reference), severe_from=humans.severe,
        levels=k - 1 if humans.severe is not None and k > 2 else 0, **blocks,
    )  # fmt: skip


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
