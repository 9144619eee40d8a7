"""What all numbers of one alignment share: the answers, their clusters, the human labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.align.result import JudgeVerdicts
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Metric, Rubric
from judgebench.stats.resample import Resampling
from judgebench.truth import Labels, Ratings, TruthConfig, ratings_by_metric, settle


@dataclass(frozen=True)
class Humans:
    """One metric's human labels: everybody's, and which annotators make the truth."""

    ratings: Ratings
    makers: tuple[str, ...]
    truth: Labels  # (items,)

    @property
    def made(self) -> Ratings:
        """The ratings of those who make the truth."""
        return self.ratings.of(self.makers)


@dataclass(frozen=True)
class Scope:
    """`clusters` has shape (items,), one number from 0 to n_clusters - 1 an answer."""

    answers: Sequence[Answer]
    humans: Mapping[str, Humans]  # by metric id
    config: TruthConfig
    resampling: Resampling
    clusters: Labels
    n_clusters: int

    def judged(self, judge: JudgeVerdicts, metric: Metric) -> Labels:
        """The judge's label index of each item, -1 where there is none or it abstained."""
        found = (judge.verdicts.get(answer.item_id) for answer in self.answers)
        labels = (verdict.labels.get(metric.id) if verdict else None for verdict in found)
        return np.array([-1 if x is None else metric.index(x) for x in labels], dtype=np.int64)


def scope_of(
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Sequence[HumanLabel],
    config: TruthConfig,
    resampling: Resampling,
) -> Scope:
    """Raises SetupError where `config.annotators` fits nobody."""
    groups = {g: i for i, g in enumerate(dict.fromkeys(a.group for a in answers))}
    clusters = np.array([groups[a.group] for a in answers], dtype=np.int64)
    humans = _humans(rubric, answers, labels, config)
    return Scope(answers, humans, config, resampling, clusters, len(groups))


def _humans(
    rubric: Rubric,
    answers: Sequence[Answer],
    labels: Sequence[HumanLabel],
    config: TruthConfig,
) -> Mapping[str, Humans]:
    chosen = set(config.choose(label.annotator for label in labels))
    ratings = ratings_by_metric(rubric.metrics, answers, labels)
    humans = {}
    for metric in rubric.metrics:
        found = ratings[metric.id]
        makers = tuple(a for a in found.annotators if a in chosen)
        humans[metric.id] = Humans(found, makers, settle(found.of(makers).values, metric, config))
    return humans
