"""The control that knows only who wrote an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import TrainingSet, verdict_of
from judgebench.records import Verdict
from judgebench.rubric import Rubric
from judgebench.runs.judging import Work

_COUNTS = "counts.json"


class BySystem:
    """The shares of the labels that the same system's answers got; of a system without a label,
    those of all. A `Learner`."""

    needs: Sequence[str] = ()

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def describe(self) -> Mapping[str, Any]:
        return {"learn": "by-system"}

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        systems = np.array([answer.system for answer in train.answers])
        counts: dict[str, dict[str, list[int]]] = {}
        for metric in train.rubric.metrics:
            labels, k = train.labels[metric.id], len(metric.labels)
            given = labels >= 0
            own = {str(s): np.bincount(labels[given & (systems == s)], minlength=k).tolist()
                   for s in np.unique(systems)}  # fmt: skip
            own = {system: found for system, found in own.items() if any(found)}
            counts[metric.id] = {**own, "": np.bincount(labels[given], minlength=k).tolist()}
        write_atomically(folder / _COUNTS, to_json(counts).encode())
        return {"systems": sorted(set(systems.tolist()))}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        counts = json.loads((folder / _COUNTS).read_text())
        for task in tasks:
            found = {}
            for metric in self._rubric.metrics:
                own = counts[metric.id].get(task.answer.system) or counts[metric.id][""]
                found[metric.id] = np.array(own) / sum(own) if any(own) else None
            yield verdict_of(task, self._rubric, found)

    def close(self) -> None:
        """Nothing to give back."""
