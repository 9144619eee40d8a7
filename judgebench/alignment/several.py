"""Judges and annotators beside response sets, of metrics on which several labels may be right."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.records import is_slot
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.means import Kind, clustered_mean
from judgebench.stats.response_sets import (
    NO_SET,
    SET_STATISTICS,
    fill_missing,
    set_scores,
    shares_of_others,
)
from judgebench.studies.study import JudgeVerdicts, Study

EVERYBODY = "all"


def several(study: Study, metric: Metric) -> Iterator[Row]:
    """Hit, coverage and the like of every judge, three ways where it failed on some items, and of
    every annotator against the others; nothing of a metric on which one label is right."""
    sets = study.humans[metric.id].made.sets
    if sets is None:
        return
    k, humans = len(metric.labels), study.humans[metric.id]
    shares, by = humans.made.shares(k, study.config), study.config.accepted_by
    for judge in study.judges:
        if judge.judges(metric):
            yield from _of_judge(study, judge, metric, shares)
    of_others = shares_of_others(sets, k)
    own = [set_scores(sets[:, a], of_others[:, a], by) for a in range(sets.shape[1])]
    for name, scores in zip(humans.makers, own, strict=True):
        if not is_slot(name):
            yield from _means(study, scores, humans.clusters, 0, ("", metric, "", name))
    if own:
        pooled = np.concatenate(own)
        codes = np.tile(humans.clusters.codes, len(own))
        clusters = Clusters(codes, humans.clusters.n)
        yield from _means(study, pooled, clusters, 0, ("", metric, "", EVERYBODY))


def _of_judge(
    study: Study, judge: JudgeVerdicts, metric: Metric, shares: FloatArray
) -> Iterator[Row]:
    humans = study.humans[metric.id]
    rows = humans.ratings.rows
    due = study.asked(judge, metric)[rows]
    said = np.where(due, study.judged_sets(judge, metric)[rows], -1)
    scores = set_scores(said, shares, study.config.accepted_by)
    missing = due & (said < 0) & ~np.isnan(shares[:, 0])
    yield from _means(
        study, scores, humans.clusters, int(missing.sum()), (judge.name, metric, "left_out", "")
    )
    for policy in ("worst", "best") if missing.any() else ():
        filled = fill_missing(scores, shares, missing, policy == "worst")
        yield from _means(study, filled, humans.clusters, 0, (judge.name, metric, policy, ""))


def _means(
    study: Study, scores: FloatArray, clusters: Clusters, missing: int,
    about: tuple[str, Metric, str, str],
) -> Iterator[Row]:  # fmt: skip
    """The mean of each statistic over the items (n, 4) that have one."""
    judge, metric, failures, who = about
    for key, column in zip(SET_STATISTICS, scores.T, strict=True):
        known = ~np.isnan(column)
        kind: Kind = "mean" if key == "mse" else "share"
        codes = clusters.codes[known]
        found = clustered_mean(
            column[known], codes, NO_SET, study.level, n_missing=missing, kind=kind
        )
        keys = {"who": who} if who else {"failures": failures}
        yield Row("several", key, found, judge, metric.id, keys)
