"""Criteria that items bring: the rows of agreement by criterion, and of the scores of items.

An item's score is the points of the criteria that are met over the positive points. The first label
of the metric means that a criterion is met. Rows `item_score` hold `humans`, `judge`, `difference`,
`pearson` and `icc` over items; rows `criterion` the `agreement` with the reference labels by `tag`,
of which one stands for all criteria, and by `criterion`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.records import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.intervals import clustered_mean
from judgebench.stats.repeated_measures import score_agreement
from judgebench.studies.study import JudgeVerdicts, Study

ALL = "all criteria"  # as a tag
MOST_CRITERIA = 30  # of those that several items have
_NO_CRITERION = "no such criterion has a reference label and a label of the judge"
_NO_SCORE = "no item has a reference label and a label of the judge on every criterion"


@dataclass(frozen=True)
class _Criteria:
    """The criteria of a study. `groups` holds those of all, of a tag, and of a criterion that
    several items have."""

    rows: IntArray  # (criteria,) in the study
    items: Clusters  # (criteria,) the item of each
    points: FloatArray  # (criteria,)
    clusters: Clusters  # (items,)
    groups: Sequence[tuple[Mapping[str, str], IntArray]]

    def scores(self, met: IntArray) -> FloatArray:
        """The score of each item (items,) of what is met (criteria,), 1, 0 or -1 where unknown; NaN
        where any is unknown or no points can be won."""
        columns = self.points * (met > 0), self.points.clip(min=0), met < 0
        won, best, unknown = self.items.sums(*columns).T
        return np.where(unknown > 0, np.nan, ratio(won, best))


def criterion_rows(study: Study, metric: Metric) -> Iterator[Row]:
    """Of every judge, over the criteria that have a reference label."""
    criteria = _criteria(study)
    truth = study.humans[metric.id].truth[criteria.rows]
    for judge in study.judges:
        truth_due = np.where(study.asked(judge, metric)[criteria.rows], truth, -1)
        if (truth_due >= 0).any():
            labels = study.judged(judge, metric)[criteria.rows]
            yield from _agreement(study, judge, metric, criteria, (truth_due, labels))
            is_met = [np.where(x < 0, -1, x == 0) for x in (truth_due, labels)]
            yield from _item_scores(study, judge, metric, criteria, (is_met[0], is_met[1]))


def _criteria(study: Study) -> _Criteria:
    criteria = [
        (row, answer.metadata, criterion) for row, answer in enumerate(study.answers)
        if (criterion := answer.criterion) is not None
    ]  # fmt: skip
    groups = defaultdict[tuple[str, ...], list[int]](list)
    for number, (_, metadata, criterion) in enumerate(criteria):
        for tag in (ALL, *filter(None, metadata.get("tags", "").split("|"))):
            groups["tag", tag].append(number)
        groups["criterion", criterion.name, criterion.text].append(number)
    by_tag = sorted(key for key in groups if key[0] == "tag")
    common = [key for key in groups if key[0] == "criterion" and len(groups[key]) > 1]
    common.sort(key=lambda key: -len(groups[key]))
    rows = np.array([row for row, _, _ in criteria])
    items = Clusters.of(criterion.item_id for _, _, criterion in criteria)
    points = np.array([float(metadata.get("points") or 1) for _, metadata, _ in criteria])
    first = np.unique(items.codes, return_index=True)[1]
    return _Criteria(
        rows, items, points, study.clusters[rows[first]],
        [({key[0]: key[1]}, np.array(groups[key])) for key in (*by_tag, *common[:MOST_CRITERIA])],
    )  # fmt: skip


def _agreement(
    study: Study, judge: JudgeVerdicts, metric: Metric, criteria: _Criteria,
    labels: tuple[IntArray, IntArray],
) -> Iterator[Row]:  # fmt: skip
    """The share of criteria on which the judge gives the reference label."""
    truth, judged = labels
    hit = np.where(judged < 0, np.nan, judged == truth)
    codes = criteria.clusters.codes[criteria.items.codes]
    for keys, group in criteria.groups:
        at = group[truth[group] >= 0]
        estimate = clustered_mean(hit[at], codes[at], _NO_CRITERION, study.level, kind="share")
        yield Row("criterion", "agreement", estimate, judge.name, metric.id, keys)


def _item_scores(
    study: Study, judge: JudgeVerdicts, metric: Metric, criteria: _Criteria,
    met: tuple[IntArray, IntArray],
) -> Iterator[Row]:  # fmt: skip
    """The items' scores, three ways where the judge gave no label to some criterion: what is
    missing counts for the judge as not what the humans say, or as that. An item on which humans
    labelled some criteria, and not all that the judge was asked about, is missing too."""
    human, judged = met
    humans = criteria.scores(human)
    is_known = ~np.isnan(humans)
    partly = len(np.unique(criteria.items.codes[human >= 0])) - int(is_known.sum())
    clusters = criteria.clusters[is_known].occurring()
    humans = humans[is_known]
    filled = {"left_out": judged}
    if ((judged < 0) & (human >= 0)).any():
        filled |= {"worst": 1 - human, "best": human}
    for failures, missing in filled.items():
        scores = criteria.scores(np.where(judged < 0, missing, judged))[is_known]
        measures = {
            "humans": np.where(np.isnan(scores), np.nan, humans),
            "judge": scores,
            "difference": scores - humans,
        }
        estimates = {
            name: clustered_mean(x, clusters.codes, _NO_SCORE, study.level)
            for name, x in measures.items()
        }
        both = np.stack([scores, humans], axis=1)
        estimates |= score_agreement(both, ("pearson", "icc"), clusters, study.level)
        for name, e in estimates.items():
            e = replace(e, n_missing=e.n_missing + partly)
            yield Row("item_score", name, e, judge.name, metric.id, {"failures": failures})
