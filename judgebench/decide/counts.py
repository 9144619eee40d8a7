"""What a decision looks at, as counts that add up over clusters.

A study is small in this form: the same kinds of clusters come again and again. So it is measured in
microseconds, and a thousand larger studies can be drawn from it to plan with.
"""

from __future__ import annotations

from collections.abc import Mapping
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
class StudyCounts:
    """Counts by kind of cluster. Each field is (U, ...), U kinds, and `how_many` is (U,).

    `pairs`, `judge_pairs`, `failed_pairs`, `annotator_pairs` (U, k), by the truth of the others:
    pairs of an item and an annotator; those where the judge, or the annotator, gives that truth;
    those where the judge gives no label. `items`, `judge_items`, `failed_items` (U, k), by the
    truth of all; `control_items` (U, controls, k). `severe` (U, 5): severe items, of these found
    and without a label; severe pairs, of these found by the annotator. `asked` (U, 2): items that
    the judge was asked about, of these without a label. `labels` (U,): human labels. Without
    `has_severity` (a nominal metric) nothing is severe.
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
    has_severity: bool

    @property
    def total_asked(self) -> int:
        """How many items with human labels the judge was asked about."""
        return round(float(self.how_many @ self.asked[:, 0]))


def study_counts(
    humans: HumanSide, judged: IntArray, asked: Bools, controls: Mapping[str, IntArray]
) -> StudyCounts:
    """Count one judge's labels `judged` (items,) of the items it was `asked` about (items,).

    `controls` holds each control judge's labels (items,). What the judge was not asked about is
    left out of everything.
    """
    k, both = humans.k, asked[:, None] & (humans.own >= 0) & (humans.others >= 0)
    pair_rows, _ = np.nonzero(both)
    mine, reference, said = humans.own[both], humans.others[both], judged[pair_rows]
    rows = np.flatnonzero(asked & (humans.truth >= 0))
    truth, label = humans.truth[rows], judged[rows]
    pairs, items = humans.clusters[pair_rows], humans.clusters[rows]
    right = [items.table(truth, k, _weight(c[rows] == truth)) for c in controls.values()]
    least = np.iinfo(np.int64).max if humans.severe is None else humans.severe
    severe, severe_pairs = truth >= least, reference >= least
    how_many, blocks = _by_kind(
        {
            "pairs": pairs.table(reference, k),
            "judge_pairs": pairs.table(reference, k, _weight(said == reference)),
            "failed_pairs": pairs.table(reference, k, _weight(said < 0)),
            "annotator_pairs": pairs.table(reference, k, _weight(mine == reference)),
            "items": items.table(truth, k),
            "judge_items": items.table(truth, k, _weight(label == truth)),
            "failed_items": items.table(truth, k, _weight(label < 0)),
            "control_items": np.stack(right, axis=1) if right else np.zeros((items.n, 0, k)),
            "severe": np.concatenate(
                [
                    items.sums(severe, severe & (label >= least), severe & (label < 0)),
                    pairs.sums(severe_pairs, severe_pairs & (mine >= least)),
                ],
                axis=1,
            ),
            "asked": humans.clusters.sums(asked, asked & (judged < 0)),
            "labels": humans.clusters.sums(asked * (humans.own >= 0).sum(axis=1))[:, 0],
        }
    )
    return StudyCounts(
        how_many=how_many, controls=tuple(controls), n_not_asked=int((~asked).sum()),
        has_severity=humans.severe is not None, **blocks,
    )  # fmt: skip


def _weight(which: Bools) -> FloatArray:
    return which.astype(np.float64)


def _by_kind(blocks: Mapping[str, FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """How many clusters there are of each kind (U,), and the blocks with one entry for each kind.

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
