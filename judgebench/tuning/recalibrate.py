"""The verdicts of other judges of the same run as features of a regression on human labels.

With one judge this is matrix scaling of its log-probabilities (Guo, Pleiss, Sun and Weinberger,
2017, "On calibration of modern neural networks", section 4.2), regularised as Kull et al. (2019,
arXiv:1910.12656) do; with several it is stacking (Wolpert, 1992, "Stacked generalization").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judgebench.judges.judge import Judge
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Metric, Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.stats.arrays import FloatArray
from judgebench.stats.calibration_error import LEAST_PROBABILITY
from judgebench.studies.answers import indexed
from judgebench.tuning.config import RecalibrateConfig
from judgebench.tuning.head import Features, Head
from judgebench.tuning.regression import Recipe


def open_recalibrate(entry: RecalibrateConfig, bench: Bench, run: RunFolder) -> Head:
    """Its learner. Raises MissingExtra."""
    able: Sequence[Judge] = (*bench.judges, *bench.recorded)
    signed = {judge.name: judge.signature for judge in able}
    members = {name: signed[name] for name in entry.needs}  # in the order of what was learnt
    return Head(entry.learn, rubric_of(entry, bench), verdicts(members, run), both_kinds)


def rubric_of(entry: RecalibrateConfig, bench: Bench) -> Rubric:
    """The metrics that any of its judges judges."""
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    recorded = {judge.name: judge.metrics for judge in bench.recorded}
    every = [metric.id for metric in rubric.metrics]
    said = {metric for name in entry.needs for metric in recorded.get(name, every)}
    return rubric.only([metric for metric in every if metric in said])


def both_kinds(metric: Metric) -> Sequence[Recipe]:
    """An ordinal metric's probabilities may be put right by either."""
    return [Recipe(ordinal=True)] * (metric.kind == "ordinal") + [Recipe(ordinal=False)]


def verdicts(members: Mapping[str, str], run: RunFolder) -> Features:
    """The verdicts of `members` (signatures by name) in the run.

    Of an item that none of them labelled nothing is known; where no reply came from any, the
    verdict is `failed`, so that it is judged again with them.
    """

    def of(
        answers: Sequence[Answer], metrics: Sequence[Metric], folder: Path
    ) -> Mapping[str, FloatArray]:
        about = indexed(answers)
        every = [run.latest_verdicts(*member, about) for member in members.items()]
        features = {}
        for metric in metrics:
            labels = [found.label_indices(metric, about) for found in every]
            shares = [found.label_probabilities(metric, about) for found in every]
            known: NDArray[np.bool_] = np.max(labels, axis=0) >= 0
            X = np.hstack([columns_of(*one) for one in zip(labels, shares, strict=True)])
            features[metric.id] = np.where(known[:, None], X, np.nan)
        return features

    @cache
    def of_all() -> Sequence[Mapping[str, Verdict]]:
        answers = run.indexed_answers()
        return [run.latest_verdicts(*member, answers) for member in members.items()]

    def without(item_id: str) -> Status:
        said = [verdicts.get(item_id) for verdicts in of_all()]
        came = any(verdict and verdict.status is not Status.FAILED for verdict in said)
        return Status.UNPARSED if came else Status.FAILED

    about = {"from": dict(members)}
    return Features(about, of, without=without, needs=tuple(members))


def columns_of(label: NDArray[np.int64], p: FloatArray) -> FloatArray:
    """Log-probabilities less their mean; or, where there are none, a column for each label; or,
    where there is no label, one that says so: (rows,) and (rows, k) -> (rows, 2 k + 1).

    >>> columns_of(np.array([0, 1, -1]), np.array([[0.5, 0.5], [np.nan] * 2, [0.1, 0.9]])).tolist()
    [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    logs = np.log(np.maximum(p, LEAST_PROBABILITY))
    logs -= logs.mean(axis=1, keepdims=True)
    given, named = label >= 0, np.eye(p.shape[1])[label]
    weighed = given & ~np.isnan(logs).any(axis=1)
    logs[~weighed], named[weighed | ~given] = 0.0, 0.0
    return np.hstack([logs, named, ~given[:, None]])
