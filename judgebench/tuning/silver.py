"""Labels that machines gave ("silver"): read from files, and kept from what they must not teach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError
from judgebench.learning.folds import alike_texts, components
from judgebench.learning.learnt import Material, TrainingSet
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.stats.arrays import IntArray
from judgebench.studies.answers import indexed
from judgebench.yaml_file import read_models


class SilverLine(BaseModel):
    """What is learnt of a line of `judgebench tune data`, or of a file of the same form; other keys
    (where the labels come from) are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    item_id: str = Field(min_length=1)
    text: str
    labels: dict[str, str] = Field(min_length=1)
    question: str = ""
    system: str = ""
    group: str = ""
    reference: str | None = None
    rationale: str = ""


@dataclass(frozen=True)
class Silver:
    """What a file holds: answers, and for each a label of some metrics and perhaps a reason."""

    answers: Sequence[Answer]
    labels: Mapping[str, IntArray]  # by metric (answers,), -1 where there is none
    reasons: Sequence[str]


def read_silver(path: Path, rubric: Rubric) -> Silver:
    """Raises SetupError with every line that is unsound and every label that the rubric lacks, and
    where there is no line."""
    lines = read_models(path, SilverLine, lambda line: _wrong_labels(line, rubric))
    if not lines:
        raise SetupError(Problem("holds no line to learn from", str(path)))
    keys = ("item_id", "text", "question", "system", "reference", "group")
    answers = [Answer(**{key: getattr(line, key) for key in keys}) for line in lines]
    labels = {
        m.id: [m.index(line.labels[m.id]) if m.id in line.labels else -1 for line in lines]
        for m in rubric.metrics
    }
    codes = {metric: np.array(found, np.int64) for metric, found in labels.items()}
    return Silver(answers, codes, [line.rationale for line in lines])


def _wrong_labels(line: SilverLine, rubric: Rubric) -> Iterator[Problem]:
    metrics = {metric.id: metric.label_texts for metric in rubric.metrics}
    if not metrics.keys() & line.labels.keys():
        message, found = "has a label of no metric of the rubric", ", ".join(line.labels)
        yield Problem(message, "", None, "labels", found, ", ".join(metrics))
    for key, label in line.labels.items():
        if label not in metrics.get(key, (label,)):
            allowed = ", ".join(metrics[key])
            yield Problem("is not a label", "", None, f"labels.{key}", label, allowed)


def with_silver(material: Material, found: Mapping[str, Silver]) -> Material:
    """The material with these labels by the file, to be learnt from beside the human ones.

    Questions and texts are numbered anew over all of them together, so that of two that are
    (nearly) the same a fold knows, whichever file holds them. Who is in which fold, and the truth,
    stay what they were.
    """
    if not found:
        return material
    own = list(material.answers)
    every = own + [answer for silver in found.values() for answer in silver.answers]
    named = indexed([replace(answer, item_id=str(row)) for row, answer in enumerate(every)])
    asked = [replace(a, text=a.question or f"without a question: {a.item_id}") for a in named]
    question = components(named.clusters.codes, alike_texts(indexed(asked)))
    text = alike_texts(named)
    sets, begin = {}, len(own)
    for name, silver in found.items():
        rows = slice(begin, begin + len(silver.answers))
        about = (silver.labels, question[rows], text[rows], silver.reasons)
        sets[name] = TrainingSet(material.rubric, silver.answers, *about)
        begin = rows.stop
    folds = replace(material.folds, question=question[: len(own)], text=text[: len(own)])
    return replace(material, folds=folds, silver=sets)
