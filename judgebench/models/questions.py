"""A rubric as the typed questions of decision models, and the bodies that ask them.

`POST /v1/decisions` has the types of the package openai 3.57 (`types/decision_create_params.py`).
`POST /v1/systemone` is TypeSafe's, which other hosts and open models speak, too: it has one text as
evidence (https://docs.typesafe.ai/api).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from judgebench.errors import SetupError
from judgebench.models.contract import Request
from judgebench.rubric import Metric

MAX_QUESTIONS = 400  # the API's bound


class Question(NamedTuple):
    """A question as it is asked: which of these labels, how far on the scale from the first label
    to the last, or whether the only label is right. Predicates share their metric's key."""

    key: str
    kind: Literal["choice", "score", "predicate"]
    text: str
    options: Mapping[str, str]  # the labels with their descriptions


def named_questions(request: Request) -> dict[str, Question]:
    """The questions by the names under which they are asked. Raises SetupError for too many, or for
    a request that asks for text."""
    questions = [q for each in request.metrics.items() for q in _questions(*each)]
    if not 0 < len(questions) <= MAX_QUESTIONS:
        raise SetupError(
            f"a decision model answers 1 to {MAX_QUESTIONS} questions of a rubric in one request, "
            f"and writes no text; found {len(questions)}: write `mode: per_metric` if these are "
            "too many, or show fewer texts at once"
        )
    return {f"q{number}": question for number, question in enumerate(questions, 1)}


def _questions(key: str, metric: Metric) -> Iterator[Question]:
    """One; of a metric that takes several labels one for each. A scale has no place for labels that
    give no grade (`abstain`), so that a metric with such is a choice."""
    text = f"{key}: {metric.question}"
    options = {label.text: label.description or label.text for label in metric.labels}
    if metric.several:
        for label, meaning in options.items():
            statement = f"{text}\nAmong the right labels is {label!r}: {meaning}"
            yield Question(key, "predicate", statement, {label: meaning})
    elif metric.kind == "ordinal" and not metric.abstain:
        yield Question(key, "score", text, options)
    else:
        in_order = {label: options.get(label, label) for label in metric.options}
        yield Question(key, "choice", text, in_order)


_LISTS = {"choice": ("choices", "value"), "score": ("levels", "label")}


def decision_body(request: Request) -> dict[str, Any]:
    """The body of /v1/decisions, without the model."""
    turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    questions = []
    for name, (_, kind, text, options) in named_questions(request).items():
        typed: dict[str, Any] = {"type": kind, "name": name, "instructions": text}
        if kind != "predicate":
            field, key = _LISTS[kind]
            typed[field] = [{key: label, "description": meant} for label, meant in options.items()]
        questions.append(typed)
    return {"input": turns, "questions": questions}


def state_body(request: Request) -> dict[str, Any]:
    """The body of /v1/systemone, without the model."""
    questions = {}
    for name, (_, kind, text, options) in named_questions(request).items():
        levels = list(map(": ".join, options.items()))
        criteria = {"criteria": levels if kind == "score" else options}
        how = {"type": "noul"} if kind == "predicate" else {"type": kind, **criteria}
        questions[name] = {**how, "instructions": text}
    state = "\n\n".join(turn.content for turn in request.messages)
    return {"state": state, "questions": questions}
