"""A rubric as questions for a model that decides and writes nothing (`decisions:`)."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.judges.replies import Beside
from judgebench.models.contract import Question
from judgebench.rubric import Metric, Rubric


def questions_of(rubric: Rubric, beside: Beside | None) -> Iterator[Question]:
    """The questions of every metric, whose answers make the reply that `reply_schema` describes. Of
    several texts each is asked about by one metric."""
    texts = () if beside is None or beside.pair else beside.keys()
    for metric in rubric.metrics:
        for text in texts or [metric.id]:
            yield from _questions(metric, text, f"{text}: {metric.question}")


def _questions(metric: Metric, key: str, text: str) -> Iterator[Question]:
    """One; of a metric that takes several labels one for each. A scale has no place for labels that
    give no grade (`abstain`), so that a metric with such is a choice."""
    options = {label.text: label.description for label in metric.labels}
    if metric.several:
        for label, meaning in options.items():
            statement = f"Among the right labels is {label!r}: {meaning or label}"
            yield Question(key, "predicate", f"{text}\n{statement}", {label: meaning})
    elif metric.kind == "ordinal" and not metric.abstain:
        yield Question(key, "score", text, options)
    else:
        yield Question(key, "choice", text, {o: options.get(o, "") for o in metric.options})
