"""Decision models: they answer typed questions with probabilities, and write no text.

`POST /v1/decisions` has the types of the package openai 3.57 (`types/decision_create_params.py`,
`types/decision.py`); `systemone.py` has the other protocol of such models, in its terms.

The text of a reply is made here: the JSON object of the answers, which judges read as any other.
What is judged is the evidence, and the rubric's questions stand beside it. So a text that is judged
may persuade the model, but what it says can never be quoted as a verdict.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

from judgebench.errors import Problem, SetupError
from judgebench.models.chat import Completion, UnreadableBodyError, error_text, read_chat
from judgebench.models.contract import QUESTIONS, Question, Request
from judgebench.models.formats import Body, Formatted, as_chat
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import DEFAULT_WAITS, Waits

MAX_QUESTIONS = 400  # the API's bound
_RIGHT = 0.5  # a label of several is given from this probability on
_ROUNDING = 0.005  # of a probability with two decimals
_LEAST = 1e-38  # float32 knows nothing smaller; a model says 0
FACTS = {"engine": "decisions", "structured": QUESTIONS}
# The key of a question's options, and the key of a label in each of them and of the answer's.
_OPTIONS = {"choice": ("choices", "value"), "score": ("levels", "label")}

Weights = dict[str, float]  # the probability of each label


def decisions(model: str, settings: BackendSettings, waits: Waits = DEFAULT_WAITS) -> Formatted:
    """A Backend of a decision model. Raises SetupError for a base_url that is none."""
    server = OpenAICompatible(model, settings, waits)
    return Formatted(server, "/decisions", decision_body, read_decision, FACTS)


def named_questions(request: Request) -> dict[str, Question]:
    """The questions by the names under which they are asked. Raises SetupError for too many, or for
    a request that asks for text."""
    questions = request.questions
    if not 0 < len(questions) <= MAX_QUESTIONS:
        message = "answers a rubric's questions and writes no text: how many a request has"
        allowed = f"1 to {MAX_QUESTIONS}; `mode: per_metric` makes a request of each metric"
        raise SetupError(Problem(message, "", None, "backend", str(len(questions)), allowed))
    return {f"q{number}": question for number, question in enumerate(questions, 1)}


def decision_body(request: Request) -> Body:
    """A request's body, without the model."""
    turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
    named = named_questions(request)
    return {"input": turns, "questions": [_typed(*each) for each in named.items()]}


def _typed(name: str, question: Question) -> Body:
    typed: Body = {"type": question.kind, "name": name, "instructions": question.text}
    if question.kind != "predicate":
        options, key = _OPTIONS[question.kind]
        described = question.options.items()
        typed[options] = [{key: label, "description": text or label} for label, text in described]
    return typed


def read_decision(body: Any, request: Request) -> Completion:
    """The completion in a body. Raises UnreadableBodyError where it does not answer the questions,
    each once and by probabilities of its labels."""
    named, weights, declined = named_questions(request), dict[str, Weights](), list[str]()
    try:
        if Counter(answer["name"] for answer in body["answers"]) != Counter(named.keys()):
            raise ValueError("other questions are answered than were asked")
        for answer in body["answers"]:
            question = named[answer["name"]]
            if answer["type"] == "refusal":
                declined.append(question.key)
            else:
                weights.setdefault(question.key, {}).update(_weights(question, answer))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnreadableBodyError(f"no decision: {error}: {error_text(body)}") from None
    labels = {q.key: _label(q, weights[q.key]) for q in request.questions if q.key in weights}
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
    if question.kind == "predicate":
        weights = dict.fromkeys(question.options, answer["probability"])
        total = 1.0
    else:
        _, key = _OPTIONS[question.kind]
        weights = {each[key]: each["probability"] for each in answer["probabilities"]}
        total = math.fsum(weights.values())
    are_shares = all(0 <= p <= 1 for p in weights.values())
    is_whole = abs(total - 1) <= len(weights) * _ROUNDING
    if weights.keys() != question.options.keys() or not (are_shares and is_whole):
        raise ValueError(f"{question.key} has no probabilities of its labels, but {weights}")
    if question.kind == "choice":
        chosen = answer["choice"]
        if weights[chosen] < max(weights.values()):
            raise ValueError(f"{question.key}: another label is likelier than {chosen!r}")
        weights = {chosen: weights[chosen]} | weights  # which settles a tie
    return {label: p / total for label, p in weights.items()}


def _label(question: Question, weights: Weights) -> str | list[str]:
    """The likeliest label, the less severe one of two; of several all that are rather right than
    wrong, and at least one."""
    likeliest = max(weights, key=weights.__getitem__)
    if question.kind != "predicate":
        return likeliest
    return [label for label, p in weights.items() if p >= _RIGHT] or [likeliest]
