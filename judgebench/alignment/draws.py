"""Judges of whom somebody has several verdicts of an item: do their draws agree?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.repeated import self_agreement
from judgebench.studies.study import JudgeVerdicts, Study


def consistency(study: Study, judge: JudgeVerdicts, metric: Metric) -> Iterator[Row]:
    """The agreement of a judge's draws, and what their majority gains; nothing without draws."""
    if judge.n_draws < 2:
        return
    draws = np.full((len(study.answers), judge.n_draws), -1)
    for item_id, verdict in judge.verdicts.items():
        given = [metric.of_row(shown) for shown in verdict.shown if metric.id in shown.labels]
        if (row := study.answers.row(item_id)) >= 0:
            draws[row, : len(given)] = [*map(metric.index, given)]
    asked = study.asked(judge, metric)
    labels, truth = study.judged(judge, metric)[asked], study.humans[metric.id].truth[asked]
    shared = study.clusters[asked].occurring(), len(metric.labels), study.level
    for statistic, estimate in self_agreement(draws[asked], labels, truth, *shared).items():
        yield Row("consistency", statistic, estimate, judge.name, metric.id)
