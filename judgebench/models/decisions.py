"""Decision models: they answer typed questions with probabilities, and write no text.

Answers have the types of the package openai 3.57 (`types/decision.py`), or TypeSafe's, which knows
no refusals. The text of a reply is made here: the JSON object of the answers, which judges read as
any other. What is judged is the evidence, and the rubric's questions stand beside it. So a text
that is judged may persuade the model, but what it says can never be quoted as a verdict.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from typing import Any

from judgebench.models.chat import (
    Completion,
    UnreadableBodyError,
    as_chat,
    error_text,
    read_chat,
)
from judgebench.models.contract import Request
from judgebench.models.openai_compatible import Format, OpenAICompatible
from judgebench.models.questions import Question, decision_body, named_questions, state_body
from judgebench.models.settings import Body
from judgebench.rubric import Metric

_RIGHT = 0.5  # a label of several is given from this probability on
_ROUNDING = 0.005  # of a probability with two decimals
_LEAST = 1e-38  # float32 knows nothing smaller; a model says 0

Weights = dict[str, float]  # the probability of each label


def _read(body: Any, request: Request) -> Completion:
    """The completion in a body of either protocol. Raises UnreadableBodyError where it does not
    answer the questions, each once and by probabilities of its labels."""
    named, weights, declined = named_questions(request), dict[str, Weights](), list[str]()
    try:
        answers = body["answers"]
        by_name = answers if isinstance(answers, dict) else {a["name"]: a for a in answers}
        if len(answers) != len(named) or by_name.keys() != named.keys():
            raise ValueError("other questions are answered than were asked")
        for name, question in named.items():
            if by_name[name]["type"] == "refusal":
                declined.append(question.key)
            else:
                weights.setdefault(question.key, {}).update(_weights(question, by_name[name]))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnreadableBodyError(f"no decision: {error}: {error_text(body)}") from None
    labels = {key: _label(m, weights[key]) for key, m in request.metrics.items() if key in weights}
    refusal = f"the model declines to answer {', '.join(declined)}" if declined else ""
    message = {"content": json.dumps(labels, ensure_ascii=False), "refusal": refusal}
    done = read_chat(as_chat(body, {"message": message}))
    if request.labels_asked is None:
        return done
    logs = {
        key: {label: math.log(max(p, _LEAST)) for label, p in found.items()}
        for key, found in weights.items()
    }
    return replace(done, log_probabilities=logs)


def _weights(question: Question, answer: Body) -> Weights:
    """The probabilities in an answer, which add up to 1 but for their rounding. Raises ValueError
    where they are none of these labels, or another label is likelier than the choice."""
    weights = _listed(question, answer)
    total = 1.0 if question.kind == "predicate" else math.fsum(weights.values())
    are_shares = all(0 <= p <= 1 for p in weights.values())
    is_whole = abs(total - 1) <= len(weights) * _ROUNDING
    if weights.keys() != question.options.keys() or not (are_shares and is_whole):
        raise ValueError(f"{question.key} has no probabilities of its labels, but {weights}")
    chosen = [answer["choice"]] if question.kind == "choice" else []
    if any(weights[label] < max(weights.values()) for label in chosen):
        raise ValueError(f"{question.key}: another label is likelier than {chosen[0]!r}")
    # The choice comes first, which settles a tie.
    return {label: weights[label] / total for label in (*chosen, *question.options)}


def _listed(question: Question, answer: Body) -> Weights:
    """The probabilities in an answer: a list of labels, or an object by label, or by level."""
    if question.kind == "predicate":
        p: float = answer["probability"] if "probability" in answer else answer["noul"]
        return dict.fromkeys(question.options, p)
    shares = answer["probabilities"]
    if not isinstance(shares, dict):
        return {each.get("label", each["value"]): each["probability"] for each in shares}
    if question.kind == "choice":
        return shares
    return {label: shares[str(level)] for level, label in enumerate(question.options)}


def _label(metric: Metric, weights: Weights) -> str | list[str]:
    """The likeliest label, the less severe one of two on a scale; of several all that are rather
    right than wrong, and at least one."""
    likeliest = max(weights, key=weights.__getitem__)
    if not metric.several:
        return likeliest
    return [label for label, p in weights.items() if p >= _RIGHT] or [likeliest]


# Backends of a decision model, as `OpenAICompatible` is one.
decisions = partial(OpenAICompatible, format=Format("/decisions", _read, write=decision_body))
systemone = partial(OpenAICompatible, format=Format("/systemone", _read, write=state_body))
