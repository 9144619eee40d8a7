"""Judges on items whose annotators all agree, and apart from these on items where they differ.

An error on an item that the humans themselves settle with one voice weighs more than one where
they are split: there a judge may be wrong by the truth and yet agree with half of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from judgebench.align.judges import paired_labels, score_of
from judgebench.align.result import ByUnanimity, Part
from judgebench.records import Estimate
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.stats.confusion import (
    SOFT_AGREEMENT,
    confusion_by_cluster,
    soft_agreement_by_cluster,
)
from judgebench.stats.consensus import label_shares
from judgebench.stats.resample import ClusterCounts, cluster_bootstrap
from judgebench.study.study import JudgeVerdicts, Study


def by_unanimity(
    study: Study, judges: Sequence[JudgeVerdicts], metric: Metric
) -> Iterator[ByUnanimity]:
    """Accuracy, severe recall (ordinal) and soft agreement of every judge on each part of the
    items; failures are left out and counted as missing."""
    for part, rows in parts(study.humans[metric.id].made.values).items():
        within = _only(study, metric, rows)
        share = label_shares(within.humans[metric.id].made.values, len(metric.labels)).share
        for judge in judges:
            for name, estimate in _estimates(within, judge, metric, share):
                yield ByUnanimity(judge.name, metric.id, part, name, estimate)


def parts(values: IntArray) -> Mapping[Part, NDArray[np.bool_]]:
    """Which items (rated,) have one label, several equal ones, or different ones."""
    labels = (values >= 0).sum(axis=1)
    most = values.max(axis=1, initial=-1)
    alike = ((values == most[:, None]) | (values < 0)).all(axis=1)
    several = labels >= 2
    return {"unanimous": several & alike, "split": several & ~alike, "single": labels == 1}


def _only(study: Study, metric: Metric, rows: NDArray[np.bool_]) -> Study:
    """The same study, of whose items only these have human labels on that metric."""
    humans = study.humans[metric.id]
    found = humans.ratings
    ratings = replace(
        found, rows=found.rows[rows], values=found.values[rows], blank=found.blank[rows]
    )
    part = replace(humans, ratings=ratings, clusters=humans.clusters[rows].occurring())
    return replace(study, humans={**study.humans, metric.id: part})


def _estimates(
    study: Study, judge: JudgeVerdicts, metric: Metric, share: FloatArray
) -> Iterator[tuple[str, Estimate]]:
    truth, judged, clusters = paired_labels(study, judge, metric)
    missing = int(((truth >= 0) & (judged < 0)).sum())
    k = len(metric.labels)
    counts = ClusterCounts(confusion_by_cluster(truth, judged, clusters, k))
    yield "accuracy", score_of(study, "accuracy", metric, counts, missing)
    if metric.kind == "ordinal":
        yield "severe_recall", score_of(study, "severe_recall", metric, counts, missing)
    yield "soft_agreement", _soft_agreement(study, judge, metric, share)


def _soft_agreement(
    study: Study, judge: JudgeVerdicts, metric: Metric, share: FloatArray
) -> Estimate:
    humans = study.humans[metric.id]
    judged = study.judged(judge, metric)[humans.ratings.rows]
    sums = soft_agreement_by_cluster(share, judged, humans.clusters)
    missing = int((judged < 0).sum())
    return cluster_bootstrap(
        sums, SOFT_AGREEMENT, study.resampling, n=len(judged) - missing, n_missing=missing
    )
