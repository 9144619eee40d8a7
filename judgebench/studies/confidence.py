"""The confidence of a judge in its labels, by which it may decide alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.reference_labels import Labels
from judgebench.studies.study import JudgeVerdicts, Study

PROBABILITY_OF_LABEL = "probability of the label"
SCORE_DISTANCE = "distance of the score from the nearest threshold between labels"
SHARE_OF_VOTES = "share of votes for the label"


class Confidence(NamedTuple):
    """The confidence of a judge in its label on each item (items,), NaN where nothing says how sure
    it is; `signal` says by what, and is empty where nothing does on any item."""

    signal: str
    values: FloatArray


def confidence(
    study: Study, judge: JudgeVerdicts, metric: Metric, severe_from: int | None = None
) -> Confidence:
    """Return the finest confidence of a judge that there is: by its score, by probabilities, or by
    votes: of its repeated draws, or of the members of a jury. It has none in a label from
    `severe_from` on: a judge decides no severe answer alone, and none without a label."""
    labels, score = study.judged(judge, metric), study.scores(judge)
    members = (judge.about or {}).get("members", ())
    votes = [study.judged(other, metric) for other in study.judges if other.name in members]
    if judge.n_draws > 1:
        votes = [*draws_of(study, judge, metric).T]
    signal, is_equal = SHARE_OF_VOTES if votes else "", [vote == labels for vote in votes]
    values = np.mean(is_equal or [labels * np.nan], axis=0)
    if (p := study.probabilities(judge, metric)) is not None:
        signal, values = PROBABILITY_OF_LABEL, p[np.arange(len(labels)), labels]
    if not np.isnan(score).all():
        signal, values = SCORE_DISTANCE, _distance_to_thresholds(score, labels)
    is_mild = (labels >= 0) & (severe_from is None or labels < severe_from)
    return Confidence(signal, np.where(is_mild, values, np.nan))


def _distance_to_thresholds(score: FloatArray, labels: Labels) -> FloatArray:
    """The distance of each score (items,) from the nearest threshold: midway between the highest
    score of milder labels and the lowest of a label or a more severe one."""
    thresholds = [
        (np.nanmax(score[(labels >= 0) & (labels < label)]) + np.nanmin(score[labels >= label])) / 2
        for label in np.unique(labels[labels >= 0])[1:]
    ]
    return np.asarray(np.abs(score[:, None] - [thresholds or [np.nan]]).min(axis=1))


def draws_of(study: Study, judge: JudgeVerdicts, metric: Metric) -> IntArray:
    """A judge's repeated draws of each item (items, draws), -1 where a draw gave no label."""
    draws = np.full((len(study.answers), judge.n_draws), -1)
    for item_id, verdict in judge.verdicts.items():
        given = [metric.of_row(shown) for shown in verdict.shown if metric.id in shown.labels]
        if (row := study.answers.row(item_id)) >= 0:
            draws[row, : len(given)] = [*map(metric.index, given)]
    return draws
