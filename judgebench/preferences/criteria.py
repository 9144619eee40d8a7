"""What judges and humans find of the criteria that items bring.

An item's score is the points of the criteria that are met over the positive points. The first label
of the metric means that a criterion is met. Rows `item_score` hold `humans`, `judge`, `difference`,
`pearson` and `icc` over items; rows `criterion` the `agreement` with the humans' truth by `tag`, of
which one stands for all criteria, and by `criterion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray, IntArray, ratio
from judgebench.stats.means import clustered_mean
from judgebench.stats.repeated import score_agreement
from judgebench.studies.study import Study

ALL = "all criteria"  # as a tag
MOST_CRITERIA = 30  # of those that several items have
_NO_LABEL = "no such criterion has a truth and a label of the judge"
_NO_SCORE = "no item has a truth and a label of the judge on every criterion"


@dataclass(frozen=True)
class _Criteria:
    """All arrays are (criteria,) but `cluster` (items,): the item of each and its points. `groups`
    holds those of all, of a tag, and of a criterion that several items have."""

    rows: IntArray
    item: IntArray
    points: FloatArray
    cluster: IntArray
    groups: Sequence[tuple[Mapping[str, str], IntArray]]

    def scores(self, met: IntArray) -> FloatArray:
        """The score of each item (items,) of what is met (criteria,), 1, 0 or -1 where unknown; NaN
        where any is unknown or no points can be won."""
        of = Clusters(self.item, len(self.cluster))
        won, best, unknown = of.sums(self.points * (met > 0), self.points.clip(min=0), met < 0).T
        return np.where(unknown > 0, np.nan, ratio(won, best))


def criterion_rows(study: Study, metric: Metric) -> Iterator[Row]:
    """Of every judge, over the criteria that have a human truth."""
    found = _criteria(study)
    truth = study.humans[metric.id].truth[found.rows]
    human = np.where(truth < 0, -1, truth == 0)
    for judge in study.judges:
        due = study.due(judge, metric)[found.rows]
        if not (due & (truth >= 0)).any():
            continue
        said = study.judged(judge, metric)[found.rows]
        asked = np.where(due, truth, -1), said
        yield from _agreement(study, judge.name, metric, found, asked)
        met = np.where(due, human, -1), np.where(said < 0, -1, said == 0)
        yield from _item_scores(study, judge.name, metric, found, met)


def _criteria(study: Study) -> _Criteria:
    rows: list[int] = []
    items: list[int] = []
    points: list[float] = []
    clusters: list[int] = []
    numbers: dict[str, int] = {}
    tags: dict[str, list[int]] = {}
    named: dict[tuple[str, str], list[int]] = {}
    for row, answer in enumerate(study.answers):
        if (criterion := answer.criterion) is None:
            continue
        if criterion.item_id not in numbers:
            clusters.append(study.clusters.codes[row])
        items.append(numbers.setdefault(criterion.item_id, len(numbers)))
        points.append(float(answer.metadata.get("points") or 1))
        for tag in filter(None, answer.metadata.get("tags", "").split("|")):
            tags.setdefault(tag, []).append(len(rows))
        named.setdefault((criterion.name, criterion.text), []).append(len(rows))
        rows.append(row)
    several = sorted((key for key in named if len(named[key]) > 1), key=lambda k: -len(named[k]))
    groups = [
        ({"tag": ALL}, np.arange(len(rows))),
        *(({"tag": tag}, np.array(tags[tag])) for tag in sorted(tags)),
        *(({"criterion": key[0]}, np.array(named[key])) for key in several[:MOST_CRITERIA]),
    ]
    return _Criteria(
        np.array(rows, dtype=np.int64), np.array(items, dtype=np.int64), np.array(points),
        np.array(clusters, dtype=np.int64), groups,
    )  # fmt: skip


def _agreement(
    study: Study, judge: str, metric: Metric, found: _Criteria, pair: tuple[IntArray, IntArray]
) -> Iterator[Row]:
    """The share of criteria on which the judge gives the humans' label."""
    truth, said = pair
    for keys, group in found.groups:
        at = group[truth[group] >= 0]
        hit = np.where(said[at] < 0, np.nan, said[at] == truth[at])
        estimate = clustered_mean(
            hit, found.cluster[found.item[at]], _NO_LABEL, study.resampling, is_proportion=True
        )
        yield Row("criterion", "agreement", estimate, judge, metric.id, keys)


def _item_scores(
    study: Study, judge: str, metric: Metric, found: _Criteria, met: tuple[IntArray, IntArray]
) -> Iterator[Row]:
    """The items' scores, three ways where the judge gave no label to some criterion: what is
    missing counts for the judge as not what the humans say, or as that. An item on which humans
    labelled some criteria, and not all that the judge was asked about, is missing too."""
    human, said = met
    scores = found.scores(human)
    known = ~np.isnan(scores)
    partly = len(np.unique(found.item[human >= 0])) - int(known.sum())
    clusters = Clusters(found.cluster, int(found.cluster.max()) + 1)[known].occurring()
    scores = scores[known]
    for failures, filled in {"left_out": said, "worst": 1 - human, "best": human}.items():
        judged = found.scores(np.where(said < 0, filled, said))[known]
        if failures != "left_out" and not ((said < 0) & (human >= 0)).any():
            break
        both = np.where(np.isnan(judged), np.nan, scores)
        rows = {
            name: clustered_mean(x, clusters.codes, _NO_SCORE, study.resampling)
            for name, x in (("humans", both), ("judge", judged), ("difference", judged - both))
        }
        scored = np.stack([judged, scores], axis=1)
        rows |= score_agreement(scored, ("pearson", "icc"), clusters, study.resampling)
        for name, estimate in rows.items():
            whole = replace(estimate, n_missing=estimate.n_missing + partly)
            yield Row("item_score", name, whole, judge, metric.id, {"failures": failures})
