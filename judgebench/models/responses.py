"""The Responses API (`POST /v1/responses`), for hosts that offer it first.

Written to the types of the package openai 3.57: `types/responses/response_create_params.py` and
`response.py`. The host is asked to store nothing (`store: false`): left out, it keeps every text
that is judged. The API has no `seed`: one that is asked for is sent, for the host to refuse.
"""

from __future__ import annotations

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
from judgebench.models.settings import Body

# By status and reason for being incomplete; a host that leaves the status out has ended.
_FINISH = {
    ("completed", None): "stop", (None, None): "stop",
    ("incomplete", "max_output_tokens"): "length",
    ("incomplete", "content_filter"): "content_filter",
}  # fmt: skip


_NAMES = {"messages": "input", "max_tokens": "max_output_tokens"}


def _written(chat: Body) -> Body:
    """A body of chat completions in the names of this API."""
    body: Body = {"store": False, **{_NAMES.get(name, name): v for name, v in chat.items()}}
    if body.pop("logprobs", False):
        body["include"] = ["message.output_text.logprobs"]
    if form := body.pop("response_format", None):
        written = {"type": form["type"], **form.get("json_schema", {})}
        more = body.get("text")  # a `verbosity`
        body["text"] = {**(more if isinstance(more, dict) else {}), "format": written}
    return body


def _read(body: Any, request: Request) -> Completion:
    """Raises UnreadableBodyError where there is no whole response, as `read_chat` does. What the
    model says on its way to the reply (`commentary`) is none of it."""
    try:
        items = [item for item in body["output"] if item.get("phase") != "commentary"]
        parts = [
            part
            for item in items
            for part in (*(item.get("summary") or ()), *(item.get("content") or ()))
        ]
        incomplete = body.get("incomplete_details") or {}
        message = {
            "content": _joined(parts, "output_text"),
            "refusal": _joined(parts, "refusal"),
            "reasoning_content": _joined(parts, "summary_text", "reasoning_text"),
        }
        choice = {
            "message": message,
            "finish_reason": _FINISH[body.get("status"), incomplete.get("reason")],
            "logprobs": {"content": [e for part in parts for e in part.get("logprobs") or ()]},
        }
    except (AttributeError, LookupError, TypeError):
        raise UnreadableBodyError(f"no whole response: {error_text(body)}") from None
    return read_chat(as_chat(body, choice), request.labels_asked)


def _joined(parts: list[Body], *types: str) -> str:
    """The text of the parts of these types; a refusal has its own key."""
    return "".join(part.get("text") or part["refusal"] for part in parts if part["type"] in types)


# A Backend as `OpenAICompatible` is one.
responses = partial(OpenAICompatible, format=Format("/responses", _read, _written))
