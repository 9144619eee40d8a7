"""What a decision looks at, as counts that add up over clusters.

A study is small in this form: the same kinds of clusters come again and again. So it is measured in
microseconds, and a thousand larger studies can be drawn from it to plan with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgebench.stats.arrays import Clusters, FloatArray, IntArray
from judgebench.stats.resample import ClusterCounts

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class HumanSide:
    """One metric's human labels. All arrays are of the items that any annotator labelled.

    `truth` (items,) is that of all annotators; `own` (items, annotators) are their labels and
    `others` (items, annotators) the truth of all but that one; -1 where there is none. Labels are
    0..k-1; those from `severe` on are severe, none where it is None.
    """

    truth: IntArray
    own: IntArray
    others: IntArray
    clusters: Clusters
    k: int
    severe: int | None


@dataclass(frozen=True)
class Counted:
    """Counts by kind of cluster. Each field is (U, ...), U kinds, and `how_many` is (U,).

    `pairs`, `judge_pairs`, `failed_pairs`, `annotator_pairs` (U, k), by the truth of the others:
    pairs of an item and an annotator; those where the judge, or the annotator, gives that truth;
    those where the judge gives no label. `items`, `judge_items`, `failed_items` (U, k), by the
    truth of all; `control_items` (U, controls, k). `severe` (U, 5): severe items, of these found
    and without a label; severe pairs, of these found by the annotator. `asked` (U, 2): items that
    the judge was asked about, of these without a label. `labels` (U,): human labels.
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
    asked: FloatArray
    labels: FloatArray
    controls: tuple[str, ...]
    n_not_asked: int

    @property
    def total_asked(self) -> int:
        """How many items with human labels the judge was asked about."""
        return round(float(self.how_many @ self.asked[:, 0]))


def counted_of(
    humans: HumanSide, judged: IntArray, asked: Bools, controls: Mapping[str, IntArray]
) -> Counted:
    """Count one judge's labels `judged` (items,) of the items it was `asked` about (items,).

    `controls` holds each control judge's labels (items,). What the judge was not asked about is
    left out of everything.
    """
    by_cluster = _Counter(humans)
    own, others = humans.own[asked], humans.others[asked]
    place, _ = np.nonzero((own >= 0) & (others >= 0))
    rows = np.flatnonzero(asked)[place]
    both = (own >= 0) & (others >= 0)
    mine, reference, said = own[both], others[both], judged[rows]
    truth_rows = np.flatnonzero(asked & (humans.truth >= 0))
    truth, label = humans.truth[truth_rows], judged[truth_rows]
    blocks = {
        "pairs": by_cluster(rows, reference),
        "judge_pairs": by_cluster(rows, reference, said == reference),
        "failed_pairs": by_cluster(rows, reference, said < 0),
        "annotator_pairs": by_cluster(rows, reference, mine == reference),
        "items": by_cluster(truth_rows, truth),
        "judge_items": by_cluster(truth_rows, truth, label == truth),
        "failed_items": by_cluster(truth_rows, truth, label < 0),
        "control_items": by_cluster.stacked(
            [by_cluster(truth_rows, truth, c[truth_rows] == truth) for c in controls.values()]
        ),
        "severe": _severe(
            by_cluster, humans.severe, truth_rows, truth, label, rows, reference, mine
        ),
        "asked": _pair(by_cluster, np.flatnonzero(asked), judged < 0),
        "labels": by_cluster.number(np.flatnonzero(asked), (humans.own >= 0).sum(axis=1)[asked]),
    }  # fmt: skip
    return _study(blocks, tuple(controls), int((~asked).sum()))


class _Counter:
    """Adds items, or pairs, up by their cluster."""

    def __init__(self, humans: HumanSide) -> None:
        self._humans = humans

    def __call__(self, rows: IntArray, label: IntArray, which: Bools | None = None) -> FloatArray:
        """How many of each label (clusters, k), of those where `which` is true."""
        if which is not None:
            rows, label = rows[which], label[which]
        return self._humans.clusters[rows].table(label, self._humans.k)

    def number(self, rows: IntArray, weights: NDArray[np.generic] | None = None) -> FloatArray:
        """How many (clusters,), or the sum of their weights."""
        clusters = self._humans.clusters[rows]
        return clusters.sums(np.ones(len(rows)) if weights is None else weights)[:, 0]

    def stacked(self, found: Sequence[FloatArray]) -> FloatArray:
        """(clusters, how many, k); how many may be 0."""
        if not found:
            return np.zeros((self._humans.clusters.n, 0, self._humans.k))
        return np.stack(found, axis=1)


def _pair(by_cluster: _Counter, rows: IntArray, failed: Bools) -> FloatArray:
    return np.stack([by_cluster.number(rows), by_cluster.number(rows[failed[rows]])], axis=1)


def _severe(
    by_cluster: _Counter, severe: int | None, rows: IntArray, truth: IntArray, label: IntArray,
    pair_rows: IntArray, reference: IntArray, mine: IntArray,
) -> FloatArray:  # fmt: skip
    least = np.iinfo(np.int64).max if severe is None else severe
    is_severe, pair_is = truth >= least, reference >= least
    return np.stack(
        [
            by_cluster.number(rows[is_severe]),
            by_cluster.number(rows[is_severe & (label >= least)]),
            by_cluster.number(rows[is_severe & (label < 0)]),
            by_cluster.number(pair_rows[pair_is]),
            by_cluster.number(pair_rows[pair_is & (mine >= least)]),
        ],
        axis=1,
    )


def _study(
    blocks: Mapping[str, FloatArray], controls: tuple[str, ...], n_not_asked: int
) -> Counted:
    """The kinds of clusters among the counts of all blocks together."""
    flat = [block.reshape(len(block), -1) for block in blocks.values()]
    kinds = ClusterCounts(np.concatenate(flat, axis=1))
    edges = np.cumsum([part.shape[1] for part in flat])[:-1]
    parts = np.split(kinds.kinds, edges, axis=1)
    shaped = {
        name: part.reshape(len(part), *block.shape[1:])
        for (name, block), part in zip(blocks.items(), parts, strict=True)
    }
    how_many = kinds.how_many.astype(np.float64)
    return Counted(how_many=how_many, controls=controls, n_not_asked=n_not_asked, **shaped)
