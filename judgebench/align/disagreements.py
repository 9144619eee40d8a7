"""Items on which a judge and the humans differ, the farthest apart first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.align.statistics import MOST_DISAGREEMENTS
from judgebench.records import Answer, Verdict
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import Labels


@dataclass(frozen=True)
class Disagreement:
    """One item on which at least one judge differs from the truth in at least one metric."""

    answer: Answer
    truth: Mapping[str, str]  # metric -> label, where there is one
    human: Mapping[str, Mapping[str, str]]  # metric -> annotator -> label
    verdicts: Mapping[str, Verdict]  # judge -> verdict; controls left out
    distance: float  # summed severity distance over judges and metrics, for sorting


def disagreements(study: Study) -> tuple[list[Disagreement], int]:
    """The items farthest from the truth, and how many differ at all."""
    real = [judge for judge in study.judges if judge.kind != "control"]
    distance = np.zeros(len(study.answers))
    for judge in real:
        for metric in study.rubric.metrics:
            truth = study.humans[metric.id].truth
            distance += _distance(metric, truth, study.judged(judge, metric))
    rows = np.argsort(-distance, kind="stable")[: int((distance > 0).sum())]
    listed = [
        _disagreement(study, int(row), real, float(distance[row]))
        for row in rows[:MOST_DISAGREEMENTS]
    ]
    return listed, len(rows)


def _disagreement(
    study: Study, row: int, judges: Sequence[JudgeVerdicts], distance: float
) -> Disagreement:
    answer = study.answers[row]
    truth, human = {}, {}
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        if humans.truth[row] >= 0:
            truth[metric.id] = metric.label_texts[humans.truth[row]]
        human[metric.id] = {a: metric.label_texts[i] for a, i in humans.ratings.given(row)}
    verdicts = {j.name: j.verdicts[answer.item_id] for j in judges if answer.item_id in j.verdicts}
    return Disagreement(answer, truth, human, verdicts, distance)


def _distance(metric: Metric, truth: Labels, judged: Labels) -> FloatArray:
    """How far a judge is from the truth, item by item: severity steps; 1 for a nominal label that
    differs or a label that is missing; 0 where there is no truth."""
    known, given = truth >= 0, judged >= 0
    if metric.kind == "ordinal":
        severity = np.array(metric.severities, dtype=np.float64)
        apart = np.abs(severity[truth] - severity[judged])
    else:
        apart = (truth != judged).astype(np.float64)
    return np.where(known, np.where(given, apart, 1.0), 0.0)
