"""What a jury of a run's judges would be worth, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import IntArray
from judgebench.stats.juries import best_jury, effective_judges, error_correlations
from judgebench.study.study import JudgeVerdicts, Study
from judgebench.study.truth import TruthConfig, settle

_VOTERS = ("judge", "calibration")  # a jury among them would give its members a second vote
_VOTE = TruthConfig(rule="median", ties="upper")  # majority where the metric is nominal


def jury_rows(study: Study) -> Iterator[Row]:
    """The value of a jury of the judges and calibrations on each metric, and the correlation of
    the errors (phi) of every two of them; nothing where these are fewer than two.

    `correlation` is the mean of the pairs' error correlations r, `effective` the number of
    independent judges that would be worth as much, m / (1 + (m - 1) r). The key `who` names the
    subset chosen on all items; `accuracy` is that of subsets chosen on the other folds (held out),
    `single` that of the best single judge chosen so, `gain` their difference on the same items.

    A vote is the median label (nominal metrics: the majority's), of two the more severe. A judge
    without any label is left out.
    """
    voters = [judge for judge in study.judges if judge.kind in _VOTERS]
    if len(voters) >= 2:
        for metric in study.rubric.metrics:
            yield from _value(study, metric, voters)


def _value(study: Study, metric: Metric, voters: Sequence[JudgeVerdicts]) -> Iterator[Row]:
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    columns = np.stack([study.judged(judge, metric)[rows] for judge in voters], axis=1)
    speaking = np.flatnonzero((columns >= 0).any(axis=0)).tolist()
    if len(speaking) >= 2:
        voters, columns = [voters[j] for j in speaking], columns[:, speaking]
    names = [judge.name for judge in voters]

    def vote(labels: IntArray) -> IntArray:
        return settle(labels, metric, _VOTE)

    shared = (columns, humans.truth[rows], humans.clusters)
    correlations = error_correlations(*shared, study.resampling)
    scores = best_jury(*shared, vote, study.resampling, study.resampling.seed)
    best = {"who": ", ".join(names[j] for j in scores.best)}
    for statistic, estimate in (
        ("correlation", correlations.mean),
        ("effective", effective_judges(correlations.mean, len(names))),
        ("accuracy", scores.accuracy),
        ("single", scores.single),
        ("gain", scores.gain),
    ):
        yield Row("jury", statistic, estimate, metric=metric.id, keys=best)
    for (i, j), estimate in correlations.pairs.items():
        yield Row(
            "error_correlation", "correlation", estimate, names[i], metric.id, {"who": names[j]}
        )
