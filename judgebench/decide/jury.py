"""What a jury of a run's judges would be worth, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.decide.result import ErrorCorrelation, JuryValue
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.stats.juries import best_jury, effective_judges, error_correlations
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import TruthConfig, settle

_VOTERS = ("judge", "calibration")  # a jury among them would give its members a second vote
_VOTE = TruthConfig(rule="median", ties="upper")  # majority where the metric is nominal


def jury_values(
    study: Study, metrics: Sequence[Metric], judges: Sequence[JudgeVerdicts], seed: int
) -> Iterator[JuryValue]:
    """One value a metric, of the judges and calibrations; none where these are fewer than two.

    A vote is the median label (nominal metrics: the majority's), of two the more severe. A judge
    without any label is left out. `seed` deals the questions out into folds.
    """
    voters = [judge for judge in judges if judge.kind in _VOTERS]
    if len(voters) >= 2:
        for metric in metrics:
            yield _value(study, metric, voters, seed)


def _value(study: Study, metric: Metric, voters: Sequence[JudgeVerdicts], seed: int) -> JuryValue:
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    columns = np.stack([study.judged(judge, metric)[rows] for judge in voters], axis=1)
    speaking = np.flatnonzero((columns >= 0).any(axis=0)).tolist()
    if len(speaking) >= 2:
        voters, columns = [voters[j] for j in speaking], columns[:, speaking]
    names = tuple(judge.name for judge in voters)

    def vote(labels: IntArray) -> IntArray:
        return settle(labels, metric, _VOTE)

    shared = (columns, humans.truth[rows], humans.clusters)
    correlations = error_correlations(*shared, study.resampling)
    scores = best_jury(*shared, vote, study.resampling, seed)
    return JuryValue(
        metric=metric.id,
        judges=names,
        correlations=tuple(
            ErrorCorrelation(metric.id, names[i], names[j], estimate)
            for (i, j), estimate in correlations.pairs.items()
        ),
        correlation=correlations.mean,
        effective=effective_judges(correlations.mean, len(names)),
        best=tuple(names[j] for j in scores.best),
        accuracy=scores.accuracy,
        single=scores.single,
        gain=scores.gain,
    )
