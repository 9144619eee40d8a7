"""What a reader must know of a truth by the rule `dawid_skene`, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgebench.rubric import Metric, Rubric
from judgebench.stats.consensus import MOST_ITERATIONS, why_no_model
from judgebench.study.study import Humans, Study
from judgebench.study.truth import truth_model

# Of an annotator with fewer labels on a metric a model knows next to nothing.
FEW_LABELS = 10


def model_notes(rubric: Rubric, study: Study) -> Iterator[str]:
    """Where there is no model, and what those that there are rest on; nothing under other rules."""
    if study.config.rule != "dawid_skene":
        return
    humans = study.humans
    reasons = {m.id: why_no_model(humans[m.id].made.values) for m in rubric.metrics}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        which = _titles(m for m in rubric.metrics if reasons[m.id] == reason)
        yield f"No Dawid-Skene model on {which}: {reason}. The truth there is the majority."
    fitted = [m for m in rubric.metrics if not reasons[m.id]]
    if few := [m for m in fitted if _few_labels(humans[m.id])]:
        counts = ", ".join(f"{m.title} {_few_labels(humans[m.id])}" for m in few)
        yield (
            f"Annotators with fewer than {FEW_LABELS} labels, of whom a model knows little: "
            f"{counts}."
        )
    if alone := [m for m in fitted if _lost_without_one(humans[m.id])]:
        yield (
            f"Without one of the annotators there is no Dawid-Skene model on {_titles(alone)}: "
            "the human ceiling there is held against the majority of the others."
        )
    if endless := [m for m in fitted if not _converges(humans[m.id], m)]:
        yield (
            f"The Dawid-Skene models of {_titles(endless)} had not converged after "
            f"{MOST_ITERATIONS:,} steps."
        )


def _titles(metrics: Iterator[Metric] | list[Metric]) -> str:
    return ", ".join(metric.title for metric in metrics)


def _few_labels(humans: Humans) -> int:
    """How many annotators gave too few labels to be known."""
    given = (humans.made.values >= 0).sum(axis=0)
    return int(((given > 0) & (given < FEW_LABELS)).sum())


def _lost_without_one(humans: Humans) -> bool:
    values = humans.made.values
    return any(why_no_model(np.delete(values, i, axis=1)) for i in range(values.shape[1]))


def _converges(humans: Humans, metric: Metric) -> bool:
    return truth_model(humans.made.values, len(metric.labels)).converged
