"""Judges in groups of answers: by system, or by a column that was kept with the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from judgebench.alignment.judge_scores import paired_labels, truths
from judgebench.alignment.raters import corrected
from judgebench.errors import Problem, SetupError, nearest
from judgebench.records import Estimate, Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import Clusters, FloatArray
from judgebench.stats.intervals import clustered_mean, exact_share
from judgebench.stats.paired_tests import SIGNS_FLIPPED, mcnemar_clustered
from judgebench.studies.reference_labels import Mask
from judgebench.studies.study import MOST_GROUPS, JudgeVerdicts, Study

NO_OVERLAP = "on no answer of the group can an annotator be compared with others"
NEVER_APART = "on no question is the judge right more often than an annotator, or less often"
OF_PAIRS = "n counts pairs of an item and an annotator"
BLANK = "(blank)"


def groups_of(study: Study, column: str) -> Mapping[str, Mask]:
    """The answers (answers,) of each value of a column. Raises SetupError for a column that was
    not kept, and for one of more values than are groups."""
    kept = [name for name, texts in study.cells.items() if any(texts)]
    if column not in kept:
        message = f"was not kept with the answers{nearest(column, kept)}"
        raise SetupError(Problem(message, "", None, "by", column, ", ".join(kept)))
    texts = study.cells[column]
    values = sorted({*texts.tolist()})
    if len(values) > MOST_GROUPS:
        message = f"has {len(values):,} values, and at most {MOST_GROUPS} are groups"
        raise SetupError(Problem(message, field="by", found=column))
    return {value or BLANK: np.asarray(texts == value) for value in values}


def subgroups(study: Study, column: str) -> Iterator[Row]:
    """The accuracy of each judge in each group, failures counted as wrong, and how far it is from
    the annotators there, with a permutation test; Holm's correction is over the groups."""
    groups = groups_of(study, column)
    for metric in study.rubric.metrics:
        for judge in study.real_judges:
            if judge.judges(metric):
                rows = [
                    Row("subgroup", statistic, estimate, judge.name, metric.id,
                        {"by": column, "group": group})
                    for group, is_in in groups.items()
                    for statistic, estimate in _of_group(study, judge, metric, is_in).items()
                ]  # fmt: skip
                yield from (*rows, *corrected(rows, ("judge", "metric", "by")))


def _of_group(
    study: Study, judge: JudgeVerdicts, metric: Metric, is_in: Mask
) -> Mapping[str, Estimate]:
    truth, judged, clusters = paired_labels(study, judge, metric)
    known = is_in[truths(study, metric)[0]] & (truth >= 0)
    right, n = clusters[known].occurring().sums(judged[known] == truth[known], known[known]).T
    ahead, of_pairs = _beside_annotators(study, judge, metric, is_in)
    gap = clustered_mean(ahead, of_pairs.codes, NO_OVERLAP, study.level, kind="difference")
    p = mcnemar_clustered(ahead, of_pairs)
    reason = "" if p is not None else NEVER_APART if gap.n else NO_OVERLAP
    return {
        "accuracy": exact_share(right, n, np.ones(len(n)), study.level),
        "annotator_gap": replace(gap, method=f"{OF_PAIRS}; {gap.method}"),
        "permutation_p": Estimate(p, None, None, SIGNS_FLIPPED, gap.n, reason=reason),
    }


def _beside_annotators(
    study: Study, judge: JudgeVerdicts, metric: Metric, is_in: Mask
) -> tuple[FloatArray, Clusters]:
    """Of each pair of an answer in the group and an annotator of the bar (pairs,): 1 where only the
    judge gives the label of the others, -1 where only that annotator does, else 0; and its cluster.
    A missing label of the judge is no such label, and where the others tie there is no pair."""
    humans = study.humans[metric.id]
    rows, names = humans.ratings.rows, humans.in_bar()
    due, judged = study.asked(judge, metric) & is_in, study.judged(judge, metric)[rows, None]
    labels = humans.ratings.of(names).values
    others = np.full(labels.shape, -1)
    for column, name in enumerate(names):
        others[:, column] = humans.truth_without(name, humans.trusted(), ties=False)
    is_pair = due[rows, None] & (labels >= 0) & (others >= 0)
    ahead = (judged == others) * 1.0 - (labels == others)
    return ahead[is_pair], humans.clusters[np.nonzero(is_pair)[0]]
