"""The verdicts of a judge as arrays: label indices, label probabilities, statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from judgebench.records import TRAINED_ON, Status, Verdict
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray, ratio
from judgebench.studies.answers import IndexedAnswers
from judgebench.studies.truth import Labels


@runtime_checkable
class Indexed(Protocol):
    """Verdicts that are kept as arrays already, such as those of a run folder: see the functions of
    these names below."""

    def label_indices(self, metric: Metric, answers: IndexedAnswers) -> Labels: ...

    def label_probabilities(self, metric: Metric, answers: IndexedAnswers) -> FloatArray: ...

    def was_asked(self, answers: IndexedAnswers) -> NDArray[np.bool_]: ...

    def trained_on(self, answers: IndexedAnswers) -> NDArray[np.bool_]: ...

    def status_counts(self) -> Mapping[Status, int]: ...

    def scores(self, answers: IndexedAnswers) -> FloatArray: ...


def weighed(metric: Metric) -> tuple[str, ...]:
    """The labels in the rubric's order, then those of `abstain`."""
    return (*metric.label_texts, *metric.abstain)


def shares(weighed: NDArray[np.floating[Any]], metric: Metric) -> FloatArray:
    """Rows (answers, k) that add up to 1, from rows as long as `weighed`."""
    p = weighed[:, : len(metric.labels)].astype(np.float64)
    usable = ((p >= 0) & (p < np.inf)).all(axis=1)  # a NaN is neither
    for abstaining in weighed.T[len(metric.labels) :]:
        usable &= abstaining <= p.max(axis=1)
    p[~usable] = 0
    return ratio(p, p.sum(axis=1, keepdims=True))


def no_probabilities(metric: Metric, answers: IndexedAnswers) -> FloatArray:
    """NaN (answers, k), for a judge that gave no probabilities."""
    return np.full((len(answers), len(metric.labels)), np.nan)


def label_probabilities(
    verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers
) -> FloatArray:
    """The probability of each label (answers, k), columns in the rubric's order of labels.

    A row adds up to 1: where the judge may abstain, it holds each label's probability given that
    a label is given. It is NaN throughout where the verdict has no probability for every option,
    or where to abstain is the likeliest. Read from files they have the precision of float32.
    """
    if isinstance(verdicts, Indexed):
        return verdicts.label_probabilities(metric, answers)
    found = np.full((len(answers), len(weighed(metric))), np.nan)
    read = itemgetter(*weighed(metric))
    for item_id, verdict in verdicts.items():
        given = verdict.probabilities and verdict.probabilities.get(metric.id)
        if given and given.keys() >= set(weighed(metric)) and (row := answers.row(item_id)) >= 0:
            found[row] = read(given)
    return shares(found, metric)


def label_indices(
    verdicts: Mapping[str, Verdict], metric: Metric, answers: IndexedAnswers
) -> Labels:
    """The label index of each answer (answers,), -1 where there is none or the judge abstained.

    Raises SetupError where a label does not belong to the metric.
    """
    if isinstance(verdicts, Indexed):
        return verdicts.label_indices(metric, answers)
    found = np.full(len(answers), -1, dtype=np.int64)
    for item_id, verdict in verdicts.items():
        label, row = verdict.labels.get(metric.id), answers.row(item_id)
        if label is not None and row >= 0:
            found[row] = metric.index(label)
    return found


def scores(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> FloatArray:
    """The score of each answer (answers,), NaN where there is none."""
    if isinstance(verdicts, Indexed):
        return verdicts.scores(answers)
    found = np.full(len(answers), np.nan)
    for item_id, verdict in verdicts.items():
        if verdict.score is not None and (row := answers.row(item_id)) >= 0:
            found[row] = verdict.score
    return found


def was_asked(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> NDArray[np.bool_]:
    """Whether there is a verdict on each answer (answers,), also one without a label."""
    if isinstance(verdicts, Indexed):
        return verdicts.was_asked(answers)
    found = np.zeros(len(answers), dtype=np.bool_)
    found[[row for row in map(answers.row, verdicts) if row >= 0]] = True
    return found


def trained_on(verdicts: Mapping[str, Verdict], answers: IndexedAnswers) -> NDArray[np.bool_]:
    """Whether the judge skipped each answer (answers,) because it learnt from it."""
    if isinstance(verdicts, Indexed):
        return verdicts.trained_on(answers)
    return was_asked({k: v for k, v in verdicts.items() if v.reason == TRAINED_ON}, answers)


def status_counts(verdicts: Mapping[str, Verdict]) -> Mapping[Status, int]:
    """How many verdicts have each status."""
    if isinstance(verdicts, Indexed):
        return verdicts.status_counts()
    return Counter(verdict.status for verdict in verdicts.values())
