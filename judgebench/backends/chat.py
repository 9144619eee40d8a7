"""The chat-completions format that most engines speak: a Request written, a body read.

`lane` is the way in which a JSON schema is enforced; see `BackendSettings.structured`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judgebench.backends.contract import Finish, Request
from judgebench.records import Usage

Lane = Literal["json_schema", "tool", "json_object", "none"]

_NAME = "reply"
_CUT = ("length", "max_tokens")
_REFUSED = ("content_filter", "refusal")


class UnreadableBodyError(ValueError):
    """A body that is no chat completion; another try may bring one."""


@dataclass(frozen=True, slots=True)
class Completion:
    """How one try ended, before it is tied to its request. `cost` is in US dollars."""

    text: str
    finish: Finish
    usage: Usage = Usage(1)
    error: str = ""
    cost: float | None = None


def chat_body(request: Request, lane: Lane) -> dict[str, Any]:
    """The request's body, without the model."""
    body: dict[str, Any] = {
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None:
        body |= _enforced(dict(request.schema), lane)
    return body


def _enforced(schema: dict[str, Any], lane: Lane) -> dict[str, Any]:
    match lane:
        case "json_schema":
            wanted = {"name": _NAME, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": wanted}}
        case "tool":
            function = {"name": _NAME, "description": "Give your reply.", "parameters": schema}
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": _NAME}},
            }
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "none":
            return {}


def read_chat(body: Any) -> Completion:
    """The first choice of a body. Raises UnreadableBodyError where there is none.

    A reasoning model's thoughts are no part of the text. The arguments of a tool call are.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        stopped = choice.get("finish_reason")
        text = _text(message)
        refusal = message.get("refusal") or _litellm_refusal(message)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UnreadableBodyError(f"no chat completion: {_short(body)}") from None
    if stopped == "error":
        raise UnreadableBodyError(f"the engine failed midway: {_short(choice)}")
    finish: Finish = "stop"
    error = ""
    if refusal or stopped in _REFUSED:
        finish, error = "refused", str(refusal or f"finish_reason {stopped}")
    elif stopped in _CUT:
        finish = "length"
    return Completion(text, finish, _usage(body.get("usage")), error)


def _text(message: Mapping[str, Any]) -> str:
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        return arguments if isinstance(arguments, str) else json.dumps(arguments)
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return content if isinstance(content, str) else ""


def _litellm_refusal(message: Mapping[str, Any]) -> Any:
    """litellm moves what its own message type lacks into a mapping of its own."""
    return (message.get("provider_specific_fields") or {}).get("refusal")


def _usage(counted: Any) -> Usage:
    if not isinstance(counted, Mapping):
        return Usage(1)
    prompt, completion = counted.get("prompt_tokens"), counted.get("completion_tokens")
    return Usage(
        1,
        prompt if isinstance(prompt, int) else None,
        completion if isinstance(completion, int) else None,
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:197] + "..."
