"""TypeSafe's protocol of decision models (`POST /v1/systemone`), which other hosts and open models
speak, too: https://docs.typesafe.ai/api. It has one text as evidence, and no refusals."""

from __future__ import annotations

from typing import Any

from judgebench.models.chat import Completion, UnreadableBodyError, error_text
from judgebench.models.contract import Question, Request
from judgebench.models.decisions import FACTS, named_questions, read_decision
from judgebench.models.formats import Body, Formatted
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import DEFAULT_WAITS, Waits


def systemone(model: str, settings: BackendSettings, waits: Waits = DEFAULT_WAITS) -> Formatted:
    """A Backend of a decision model. Raises SetupError for a base_url that is none."""
    server = OpenAICompatible(model, settings, waits)
    return Formatted(server, "/systemone", _body, _read, FACTS | {"engine": "systemone"})


def _body(request: Request) -> Body:
    state = "\n\n".join(turn.content for turn in request.messages)
    named = named_questions(request)
    return {"state": state, "questions": {name: _typed(each) for name, each in named.items()}}


def _typed(question: Question) -> Body:
    typed: Body = {"type": question.kind, "instructions": question.text}
    options = question.options.items()
    match question.kind:
        case "predicate":
            typed["type"] = "noul"
        case "choice":
            typed["criteria"] = {label: text or label for label, text in options}
        case "score":
            typed["criteria"] = [": ".join(filter(None, option)) for option in options]
    return typed


def _read(body: Any, request: Request) -> Completion:
    """As `read_decision`, once the answers are in its terms."""
    named = named_questions(request)
    try:
        answers = [_answer(name, named[name], each) for name, each in body["answers"].items()]
    except (AttributeError, LookupError, TypeError) as error:
        raise UnreadableBodyError(f"no decision: {error}: {error_text(body)}") from None
    return read_decision({**body, "answers": answers}, request)


def _answer(name: str, question: Question, answer: Body) -> Body:
    if question.kind == "predicate":
        return {**answer, "name": name, "probability": answer["noul"]}
    labels = {label: label for label in question.options}
    if question.kind == "score":  # whose levels are counted from 0
        labels = {str(level): label for level, label in enumerate(question.options)}
    shares = [
        {"value": labels[key], "label": labels[key], "probability": p}
        for key, p in answer["probabilities"].items()
    ]
    return {**answer, "name": name, "probabilities": shares}
