"""Whose agreement the judges are held against: each annotator and judge beside the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.decisions.counts import estimable
from judgebench.decisions.rule import DecisionRule
from judgebench.records import Estimate
from judgebench.results.rows import Row
from judgebench.rubric import Metric
from judgebench.stats.arrays import value_counts
from judgebench.stats.copies import BarKind, gap
from judgebench.stats.intervals import SMOOTHED_T
from judgebench.studies.study import Humans, Study

_NOBODY = "no item has labels of two others"


def bar_rows(study: Study, kind: BarKind) -> Iterator[Row]:
    """`gap`: how much more often an annotator, or a judge, agrees with those in the bar than these
    agree with each other on the same items; `share`: of each label among an annotator's labels.

    Nothing for places in a list, which are nobody in particular.
    """
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        if not humans.has_places:
            yield from _of_annotators(humans, kind)
            yield from _of_judges(study, metric, kind)


def _of_annotators(humans: Humans, kind: BarKind) -> Iterator[Row]:
    bar, made, metric = humans.bar(kind), humans.made, humans.metric
    for a, who in enumerate(made.annotators):
        labels = made.values[:, a]
        given = labels[labels >= 0]
        keys = {"who": who, "in_bar": "yes" if bar.kept[a] else "no"}
        found = (bar.gap.value[a], bar.gap.low[a], bar.gap.high[a])
        yield Row("bar", "gap", _estimate(found, len(given)), "", metric.id, keys)
        counts = np.bincount(given, minlength=len(metric.labels))
        for label, count in zip(metric.label_texts, counts.tolist(), strict=True):
            share = Estimate(count / len(given) if len(given) else None, n=len(given), reason="")
            yield Row("bar", "share", share, "", metric.id, {"who": who, "label": label})


def _of_judges(study: Study, metric: Metric, kind: BarKind) -> Iterator[Row]:
    humans = study.humans[metric.id]
    kept = humans.ratings.of(humans.in_bar(kind))
    votes = value_counts(kept.values, len(metric.labels))
    for judge in study.judges:
        if judge.kind != "control":
            judged = study.judged(judge, metric)[kept.rows]
            found = gap(judged, False, votes, humans.clusters)
            estimate = _estimate(found, int((judged >= 0).sum()))
            yield Row("bar", "gap", estimate, judge.name, metric.id)


def _estimate(found: tuple[float, float, float], n: int) -> Estimate:
    if np.isnan(found[0]):
        return Estimate(None, n=n, reason=_NOBODY)
    value, low, high = map(float, found)
    return Estimate(value, low, high, SMOOTHED_T, n)


def rare_labels(study: Study, metric: Metric, rule: DecisionRule) -> Iterator[str]:
    """Which labels are too rare for balanced agreement, and what to do about it."""
    humans, severe = study.humans[metric.id], rule.severe_index(metric)
    truth = humans.truth_of(humans.trusted(rule.replace.humans.bar))
    known = np.flatnonzero(truth >= 0)
    questions = np.array(
        [
            len(np.unique(study.clusters.codes[known[truth[known] == label]]))
            for label in range(len(metric.labels))
        ]
    )
    for label, text in enumerate(metric.label_texts):
        if not estimable(questions, rule.rare, severe)[label] and questions[label]:
            answers = int((truth == label).sum())
            yield (
                f'{metric.title}: "{text}" is the truth of {answers} of {len(known):,} answers, '
                "too few to estimate agreement on it: it counts in plain and not in balanced "
                "agreement. If it is no judgement, list it under `abstain` in the rubric."
            )
