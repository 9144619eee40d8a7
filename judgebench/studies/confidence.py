"""How sure a judge is of its labels, and what it decides alone by that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study

PROBABILITY_OF_LABEL = "probability of the label"
SCORE_DISTANCE = "distance of the score from the nearest threshold between labels"
SHARE_OF_VOTES = "share of votes for the label"


class Confidence(NamedTuple):
    """How sure a judge is of its label on each item (items,), NaN where nothing says so; `signal`
    says by what, and is empty where nothing does on any item."""

    signal: str
    values: FloatArray


def confidence(study: Study, judge: JudgeVerdicts, metric: Metric) -> Confidence:
    """Return the finest confidence of a judge that there is: by its score, by probabilities, or by
    votes: of its repeated draws, or of the members of a jury."""
    labels, score = study.judged(judge, metric), study.scores(judge)
    if not np.isnan(score).all():
        return Confidence(SCORE_DISTANCE, _distance_to_thresholds(score, labels))
    if (p := study.probabilities(judge, metric)) is not None:
        return Confidence(PROBABILITY_OF_LABEL, p[np.arange(len(labels)), labels])
    members = (judge.about or {}).get("members", ())
    votes = [study.judged(other, metric) for other in study.judges if other.name in members]
    if judge.n_draws > 1:
        votes = [*draws_of(study, judge, metric).T]
    is_equal = [vote == labels for vote in votes]
    return Confidence(SHARE_OF_VOTES if votes else "", np.mean(is_equal or [labels * np.nan], 0))


def _distance_to_thresholds(score: FloatArray, labels: Labels) -> FloatArray:
    """How far each score (items,) is from the nearest threshold: midway between the highest score
    of milder labels and the lowest of a label or a more severe one."""
    thresholds = [
        (np.nanmax(score[(labels >= 0) & (labels < label)]) + np.nanmin(score[labels >= label])) / 2
        for label in np.unique(labels[labels >= 0])[1:]
    ]
    return np.asarray(np.abs(score[:, None] - [thresholds or [np.nan]]).min(axis=1))


def decided_alone(
    labels: IntArray, values: FloatArray, severe_from: int | None, threshold: float
) -> NDArray[np.bool_]:
    """True for the items (items,) that a judge with these labels and this confidence decides alone:
    not where it has no label, calls the item severe, or is less sure than the threshold."""
    is_mild = (labels >= 0) & (severe_from is None or labels < severe_from)
    return np.asarray(is_mild & (values >= threshold))


def draws_of(study: Study, judge: JudgeVerdicts, metric: Metric) -> IntArray:
    """A judge's repeated draws of each item (items, draws), -1 where a draw gave no label."""
    draws = np.full((len(study.answers), judge.n_draws), -1)
    for item_id, verdict in judge.verdicts.items():
        given = [metric.of_row(shown) for shown in verdict.shown if metric.id in shown.labels]
        if (row := study.answers.row(item_id)) >= 0:
            draws[row, : len(given)] = [*map(metric.index, given)]
    return draws
