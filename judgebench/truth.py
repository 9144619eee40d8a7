"""Truth: what the humans together say of each item on one metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from judgebench.errors import Problem, SetupError
from judgebench.records import Answer, HumanLabel
from judgebench.rubric import Metric
from judgebench.stats.truth import majority_label, median_label

BlankPolicy = Literal["missing", "least_severe"]
Labels = NDArray[np.int64]


class TruthConfig(BaseModel):
    """How human labels are made into a truth.

    `median` is for ordinal metrics (nominal ones are settled by majority); `each` compares with
    every annotator apart. `ties` settles the median of an even number of labels and a tied
    majority: the less severe label, the more severe one, or none. `annotators` are the names, or
    patterns such as `crowd#*`, of those who make the truth; everybody where it is empty.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rule: Literal["median", "majority", "each"] = "median"
    ties: Literal["lower", "upper", "none"] = "upper"
    annotators: tuple[str, ...] = ()

    def in_words(self, metric: Metric) -> str:
        """The rule that holds for `metric`, as a report states it."""
        if self.rule == "each":
            return "every annotator apart"
        tie = {"lower": "the less severe", "upper": "the more severe", "none": "neither"}
        if metric.kind == "nominal":
            tie = {"lower": "the first listed", "upper": "the last listed", "none": "neither"}
        if self.rule == "median" and metric.kind == "ordinal":
            return f"median; of an even number, {tie[self.ties]} of the middle two"
        return f"majority; of tied labels, {tie[self.ties]}"

    def choose(self, annotators: Iterable[str]) -> tuple[str, ...]:
        """Those of `annotators` who make the truth, sorted.

        Raises SetupError for a pattern that fits nobody.
        """
        everybody = sorted(set(annotators))
        if not self.annotators:
            return tuple(everybody)
        problems = [
            Problem("fits no annotator", "", None, "truth.annotators", p, ", ".join(everybody[:20]))
            for p in self.annotators
            if not any(_fits(a, p) for a in everybody)
        ]
        if problems:
            raise SetupError(problems)
        return tuple(a for a in everybody if any(_fits(a, p) for p in self.annotators))


def _fits(annotator: str, pattern: str) -> bool:
    return annotator == pattern or fnmatchcase(annotator, pattern)


@dataclass(frozen=True)
class Ratings:
    """The human labels of one metric as a matrix.

    `values` has shape (items, annotators): label indices, -1 where there is none. `blank` marks
    the cells that were there and empty. Abstentions are -1 and counted.
    """

    annotators: tuple[str, ...]
    values: Labels
    blank: NDArray[np.bool_]
    abstained: int

    def of(self, annotators: Sequence[str]) -> Ratings:
        """The columns of those annotators alone."""
        columns = [self.annotators.index(a) for a in annotators]
        return Ratings(
            tuple(annotators), self.values[:, columns], self.blank[:, columns], self.abstained
        )

    def with_blanks(self, policy: BlankPolicy) -> Labels:
        """`values`, with blank cells left missing or read as the least severe label."""
        return self.values if policy == "missing" else np.where(self.blank, 0, self.values)


def ratings_by_metric(
    metrics: Sequence[Metric], answers: Sequence[Answer], labels: Iterable[HumanLabel]
) -> Mapping[str, Ratings]:
    """One matrix a metric over all answers (in their order) and all its annotators (sorted)."""
    row_of = {answer.item_id: row for row, answer in enumerate(answers)}
    cells: dict[str, list[HumanLabel]] = {m.id: [] for m in metrics}
    for label in labels:
        if label.metric in cells and label.item_id in row_of:
            cells[label.metric].append(label)
    return {m.id: _ratings(m, cells[m.id], row_of) for m in metrics}


def _ratings(metric: Metric, cells: Sequence[HumanLabel], row_of: Mapping[str, int]) -> Ratings:
    annotators = tuple(sorted({cell.annotator for cell in cells}))
    column_of = {a: column for column, a in enumerate(annotators)}
    values = np.full((len(row_of), len(annotators)), -1, dtype=np.int64)
    blank = np.zeros(values.shape, dtype=np.bool_)
    abstained = 0
    for cell in cells:
        place = row_of[cell.item_id], column_of[cell.annotator]
        if cell.label is None:
            blank[place] = True
        else:
            values[place] = metric.index(cell.label)
            abstained += cell.label == metric.abstain
    return Ratings(annotators, values, blank, abstained)


def settle(values: Labels, metric: Metric, config: TruthConfig) -> Labels:
    """One label index an item, -1 where there is no truth: (items, annotators) -> (items,).

    Under the rule `each`, where no single truth exists, this is the median (or majority).
    """
    if config.rule == "majority" or metric.kind == "nominal":
        return majority_label(values, len(metric.labels), config.ties)
    if config.ties != "none":
        return median_label(values, config.ties)
    lower, upper = median_label(values, "lower"), median_label(values, "upper")
    return np.where(lower == upper, lower, -1)
