"""Anchors: answers with a known right label, which annotators labelled and the judge judged blind.

Labels cannot show an error that annotators and judge share, because both agree on it. Answers with
a known severe flaw do, as far as their flaws are like the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate, Results, Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, IntArray
from judgebench.stats.intervals import CLUSTERED_EXACT, EXACT, clustered_share, exact_share
from judgebench.stats.paired_tests import mcnemar_clustered
from judgebench.studies.reference_labels import Labels, Mask, settle
from judgebench.studies.study import ANCHORS, JudgeVerdicts, Study

CONSENSUS = "consensus"
BOTH_MISS, FINDS_MORE = "both_miss", "p_judge_finds_more"
NO_VERDICT = (
    "the judge has no verdict on an anchor that annotators labelled: have it judge the anchors too"
)


@dataclass(frozen=True)
class Anchors:
    """The anchors of one metric that annotators of the bar labelled."""

    metric: Metric
    level: float
    severe_from: int
    known: Labels  # (anchors,) the right label, -1 where it is not known
    consensus: Labels  # (anchors,)
    clusters: Clusters

    @cached_property
    def is_severe(self) -> Mask:
        """True where the right label is severe (anchors,)."""
        return np.asarray(self.known >= self.severe_from)

    def share(self, is_counted: Mask, is_of: Mask) -> Estimate:
        """The share of the anchors `is_of` that are counted, with an exact interval."""
        x, n = self.clusters.sums(is_counted & is_of, is_of).T
        if not is_of.any():
            return Estimate(None, reason="no such anchor has a label", level=self.level)
        return exact_share(x, n, np.ones(len(n)), self.level)

    def called(self, labels: IntArray, has_label: Mask, judge: str, who: str) -> Iterator[Row]:
        """How many severe anchors are called severe by somebody, and how many others."""
        is_found = labels >= self.severe_from
        is_other = (self.known >= 0) & ~self.is_severe
        for statistic, is_of in (("found", self.is_severe), ("false_alarms", is_other)):
            share = self.share(is_found, is_of & has_label)
            yield Row("anchors", statistic, share, judge, self.metric.id, {"who": who})

    def beside(self, judge: str, judged: Labels, is_asked: Mask) -> Iterator[Row]:
        """The share of severe anchors that consensus and judge both miss, and whether the judge
        finds what annotators miss (McNemar's test, two-sided, exact)."""
        is_of = self.is_severe & is_asked
        by_people, by_judge = self.consensus >= self.severe_from, judged >= self.severe_from
        x, n = self.clusters.sums(~by_people & ~by_judge & is_of, is_of).T
        missed = clustered_share(x, n, np.ones((1, len(n))), self.level, one_sided=True)
        value, low, high = (float(each[0]) for each in (missed.value, missed.low, missed.high))
        estimate = Estimate(None, reason=NO_VERDICT, level=self.level)
        if is_of.any():
            method = EXACT if n.max() <= 1 else CLUSTERED_EXACT
            estimate = Estimate(value, low, high, method, int(is_of.sum()), level=self.level)
        yield Row("anchors", BOTH_MISS, estimate, judge, self.metric.id)
        apart = np.where(is_of, by_judge.astype(float) - by_people, 0.0)
        if apart.sum() > 0:
            p = mcnemar_clustered(apart, self.clusters)
            tested = Estimate(p, n=int(np.count_nonzero(apart)), method="McNemar, exact")
            yield Row("anchors", FINDS_MORE, tested, judge, self.metric.id)


def anchor_rows(study: Study, rule: DecisionRule) -> Results:
    """What annotators and judges made of the study's anchors, on metrics with severe labels.

    `found` and `false_alarms` are shares of the severe and of the other anchors that an annotator
    (`who`), the consensus of those in the bar, or a judge calls severe; a label that the judge owes
    is none. `both_miss` is the share of the severe ones that consensus and judge both miss: the
    upper limit of an interval from 0 is one-sided. Empty where the study has no anchors.
    """
    anchors: Study | None = study.beside.get(ANCHORS)
    metrics = study.rubric.metrics if anchors else ()
    asked = (metric for metric in metrics if metric.has_severe and not metric.several)
    return Results(tuple(row for m in asked for row in _of_metric(study, anchors, m, rule)))


def _of_metric(
    study: Study, known: Study | None, metric: Metric, rule: DecisionRule
) -> Iterator[Row]:
    assert known is not None
    severe_from = rule.severe_index(metric)
    assert severe_from is not None
    ratings = known.humans[metric.id].ratings
    trusted = study.humans[metric.id].trusted(rule.replace.humans.bar)
    ratings = ratings.of([name for name in trusted if name in ratings.annotators])
    ratings = ratings.at(np.flatnonzero((ratings.values >= 0).any(axis=1)))
    anchors = Anchors(
        metric, rule.level, severe_from, ratings.adjudicated.astype(np.int64),
        settle(ratings.values, metric, study.config), known.clusters[ratings.rows].occurring(),
    )  # fmt: skip
    for name, labels in zip(ratings.annotators, ratings.values.T, strict=True):
        yield from anchors.called(labels, labels >= 0, "", name)
    is_labelled = np.ones(len(ratings.rows), dtype=np.bool_)
    yield from anchors.called(anchors.consensus, is_labelled, "", CONSENSUS)
    for judge in study.real_judges:
        if judge.judges(metric):
            yield from _of_judge(known, judge, anchors, ratings.rows)


def _of_judge(known: Study, judge: JudgeVerdicts, anchors: Anchors, rows: Labels) -> Iterator[Row]:
    judged = known.judged(judge, anchors.metric)[rows]
    is_asked = known.asked(judge, anchors.metric)[rows]
    yield from anchors.called(judged, is_asked, judge.name, "")
    yield from anchors.beside(judge.name, judged, is_asked)
