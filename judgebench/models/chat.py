"""The chat-completions format that most engines speak: a Request written, a body read, and what a
failed try means: a fault that a retry may get past, a limit, or a setting to fix.

`lane` is the way in which a JSON schema is enforced; see `BackendSettings.structured`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Literal

import yaml

from judgebench.errors import SetupError, shorten
from judgebench.models.contract import Finish, LabelsAsked, Reply, Request
from judgebench.models.settings import EXTRA_BODY, SEND, BackendSettings, Body, place_of
from judgebench.models.token_scoring import (
    LabelsRead,
    Step,
    Token,
    must_be_chained,
    read_labels,
    recorded,
)
from judgebench.records import Usage

Lane = Literal["json_schema", "tool", "json_object", "none"]

_NAME = "reply"
_BOUNDS = ("maxLength", "minItems", "maxItems")
_CUT = ("length", "max_tokens")
_REFUSED = ("content_filter", "refusal")
_MOST_LISTED = 20  # alternatives a token: the API's bound
_ABOVE_ANY = 0.01  # a log-probability may pass 0 by rounding
_LONGEST_TEXT = 1_000_000  # characters; what is longer is an engine gone wild
_MOST_TOKENS = 100_000_000  # of one call: what is more is no count
_LONGEST_NAME = 2_000  # of a model, with room for what is no name, and is looked for in it
_DAY_S = 86_400.0
_PLAIN = BackendSettings()


class TransientError(Exception):
    """A try failed, and a retry may succeed. `after`: the seconds the server asked for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreadableBodyError(TransientError):
    """A body that is no chat completion; another try may bring one."""


class UnreachableError(TransientError):
    """Not even a connection could be made."""


class RateLimitedError(TransientError):
    """The endpoint is well and wants to be asked less often."""


class RefusedError(SetupError):
    """The endpoint replies to no such request, if what it said of this one is true of others.
    `said`: its own words."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(f"{message}; {said}")
        self.said = said


class BadRequestError(RefusedError):
    """The endpoint calls the request bad: for what is judged, or for a parameter."""


def failure_reason(fault: Exception) -> str:
    """The reason of a verdict that failed for this: what the endpoint said, and no more."""
    return fault.said if isinstance(fault, RefusedError) else str(fault)


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the bounds that strict endpoints refuse. Whoever reads a reply holds it to
    them all the same."""
    kept: dict[str, Any] = json.loads(json.dumps(schema), object_hook=_without_bounds)
    return kept


def _without_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword not in _BOUNDS}


def chat_body(request: Request, lane: Lane = "none", settings: BackendSettings = _PLAIN) -> Body:
    """The request's body, without the model. Raises SetupError for labels asked otherwise than
    chained, which no generated object tells."""
    body: Body = {
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        settings.max_tokens_as: request.max_tokens + settings.thinking_budget,
    }
    body |= {name: getattr(request, name) for name in ("temperature", "top_p", "seed")}
    if request.labels_asked is not None:
        must_be_chained(request.labels_asked)
        body |= {"logprobs": True, "top_logprobs": _MOST_LISTED}
    body |= (settings.thinking.send if settings.thinking else {}) | settings.extra_body
    body |= enforced(request.schema, lane) if request.schema else {}
    return {name: value for name, value in body.items() if value is not None}


def enforced(schema: Mapping[str, Any], lane: Lane) -> Body:
    """The part of a body that holds the reply to a schema."""
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


def read_chat(body: Any, asked: LabelsAsked | None = None) -> Reply:
    """The reply in a body, to be tied to its request. Raises UnreadableBodyError where it is no
    chat completion, and SetupError where labels are asked of an endpoint without log-probabilities.

    A reasoning model's thoughts (`reasoning_content`, or `reasoning` with newer servers) are no
    part of the text. The arguments of a tool call are. A body whose choices, tool calls or content
    beside a tool call differ is `unclear`.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        stopped = choice.get("finish_reason")
        texts = [text for each in body["choices"] for text in _texts(each["message"])]
        served = _served(body)
        # litellm moves what its own message type lacks into a mapping of its own.
        moved = message.get("provider_specific_fields") or {}
        refusal = message.get("refusal") or moved.get("refusal")
        thought = message.get("reasoning_content") or message.get("reasoning")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UnreadableBodyError(f"no chat completion: {shorten(body, 200)}") from None
    if stopped == "error":
        raise UnreadableBodyError(f"the engine failed midway: {shorten(choice, 200)}")
    different = len(set(map(_meaning, texts))) if len(texts) > 1 else 1
    text = texts[0] if different == 1 else "\n".join(texts)
    reasoning = thought if isinstance(thought, str) else ""
    if (size := max(len(text), len(reasoning))) > _LONGEST_TEXT:
        raise UnreadableBodyError(f"the reply has {size} characters, more than any has")
    finish: Finish = "stop"
    error = ""
    if refusal or stopped in _REFUSED:
        finish, error = "refused", error_text(refusal or f"finish_reason {stopped}")
    elif different > 1:
        finish = "unclear"
        error = f"the reply says {different} different things in its choices and tool calls"
    elif stopped in _CUT:
        finish = "length"
    usage = _usage(body.get("usage"))
    done = Reply("", text, finish, usage, error=error, model=served, reasoning=reasoning)
    if asked is None or finish in ("refused", "unclear"):
        return done
    read = _labels(choice, text, asked)
    return replace(done, error=read.reason, log_probabilities=read.log_probabilities or None)


def as_chat(body: Body, choice: Body) -> Body:
    """A body of chat completions with this choice, and the model and the tokens of another body."""
    counted = body.get("usage")
    usage = {
        name.replace("input", "prompt").replace("output", "completion"): value
        for name, value in (counted.items() if isinstance(counted, dict) else ())
    }
    return {"model": body.get("model"), "choices": [choice], "usage": usage}


def _labels(choice: Mapping[str, Any], text: str, asked: LabelsAsked) -> LabelsRead:
    listed = choice.get("logprobs")
    content = listed.get("content") if isinstance(listed, Mapping) else None
    if not text and not content:
        return LabelsRead({}, ("the reply is empty",))
    if not content:
        raise SetupError(
            "this endpoint gives no log-probabilities with its replies, so labels have no "
            "probabilities: ask for none, or set `structured` otherwise where it gives them for "
            "text and not for tool calls"
        )
    try:
        steps = [Step(_token(t), tuple(map(_token, t["top_logprobs"]))) for t in content]
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return LabelsRead({}, (f"log-probabilities that cannot be read: {shorten(content, 200)}",))
    return read_labels(text, [s.written.piece for s in steps], asked.fields, recorded(steps))


def _token(entry: Mapping[str, Any]) -> Token:
    """An entry of the API's list. A token's text need not be whole characters: its bytes count,
    where they are given."""
    given = entry.get("bytes")
    piece = entry["token"].encode("utf-8", "surrogatepass") if given is None else bytes([*given])
    value = float(entry["logprob"])
    if not value < _ABOVE_ANY:  # nan, too
        raise ValueError("no log-probability")
    return Token(piece, value)


def _texts(message: Mapping[str, Any]) -> list[str]:
    """The arguments of every tool call, and the content: beside a call only where it may hold
    another verdict, and not where it merely says what is done."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    if message.get("function_call"):  # the older form
        functions.append(message["function_call"])
    given = [function["arguments"] for function in functions]
    texts = [one if isinstance(one, str) else json.dumps(one) for one in given]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    if not isinstance(content, str | None):
        raise TypeError
    return texts if texts and "{" not in (content or "") else [*texts, content or ""]


def _meaning(text: str) -> str:
    """Equal for JSON with the same pairs in another order or with other blanks."""
    try:
        return json.dumps(
            json.loads(text, object_pairs_hook=partial(sorted, key=itemgetter(0))),
            ensure_ascii=False,
        )
    except (ValueError, RecursionError):
        return text.strip()


def _served(body: Mapping[str, Any]) -> str:
    """`gpt-4o-2024-08-06, engine fp_44709d6fcb`: the model that says to have replied, and the
    state of its engine, where that is given; `Secrets.scrubbed_name` makes a name of it."""
    given = (body.get("model"), body.get("system_fingerprint"))
    model, engine = (v[:_LONGEST_NAME] if isinstance(v, str) else "" for v in given)
    return f"{model}, engine {engine}" if engine else model


def _usage(counted: Any) -> Usage:
    """The tokens that a body counts. Some endpoints (Grok, Gemini) leave the thoughts out of the
    reply's tokens, but not out of the total; some leave out what was in the cache. More than the
    whole is no part of it."""
    if not isinstance(counted, Mapping):
        return Usage(1)
    prompt, completion = (_count(counted.get(f"{k}_tokens")) for k in ("prompt", "completion"))
    reasoning = _part(counted, "completion_tokens_details", "reasoning_tokens")
    cached = _part(counted, "prompt_tokens_details", "cached_tokens")
    if prompt is not None and cached and cached > prompt:
        prompt += cached
    if prompt and completion and reasoning:
        is_apart = counted.get("total_tokens") == prompt + completion + reasoning
        completion += reasoning if is_apart or reasoning > completion else 0
    return Usage(
        1, prompt, completion,
        None if reasoning is None or reasoning > (completion or 0) else reasoning,
        None if cached is None or cached > (prompt or 0) else cached,
    )  # fmt: skip


def _part(counted: Mapping[str, Any], details: str, name: str) -> int | None:
    found = counted.get(details)
    return _count(found.get(name)) if isinstance(found, Mapping) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


# What an endpoint's error says, where its number alone does not tell.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum context|exceeds? the (?:model's )?context"
    r"|inputs?\W+tokens \+"
    r"|(?:prompt|input|request)s? (?:is|are|was) too (?:long|large)|too many (?:input )?tokens"
    r"|reduce the length",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"content[ _]?(?:filter|policy|management|moderation)|flagged|responsible ai"
    r"|safety (?:system|filter|settings)",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient[_ ](?:quota|credits|balance|funds)", re.IGNORECASE)
# How an error names a parameter. The message may hold a part of what was judged, so a word of
# plain English must stand there as the name of one.
_NAMED = (
    r"""(?:['"`./]|parameters? |arguments? |supplied: |model: ){0}\b"""
    r"|(?:^|\d: |Exception - ){0}[.:]|\b{0}="
)
_OTHER_WORDS = {
    "response_format": r"json.?(?:schema|object)|structured.outputs?",
    "tools": r"\btools?\b|function.call",
}
_FORM = ("response_format", "tools", "tool_choice")
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
_MAY_DECLINE = _ABOUT_THE_REQUEST | {403}

_LONGEST_MESSAGE = 1000
_WRONG = {
    **dict.fromkeys((401, 403), "the endpoint refuses the key"),
    402: "the endpoint asks for payment",
    **dict.fromkeys((404, 405), "the endpoint knows no such model or path (many end in /v1)"),
}
_OVERLOADED = frozenset({503, 529})
_TRANSIENT = frozenset({408, 409, 425})


def failure(status: int, message: str, about: str, after: float | None = None) -> Reply:
    """The meaning of an endpoint's error: a reply that is `too_long` or `refused`.

    Raises TransientError where another try may help (RateLimitedError for a 429, or a 503 or 529
    that says when to come again), and RefusedError (which names `about`: the URL, model and key
    variable) where it cannot.
    """
    said = f"HTTP {status}: {message}"
    if status in _ABOUT_THE_REQUEST and _TOO_LONG.search(message):
        return Reply("", "", "too_long", error=said)
    if status in _MAY_DECLINE and _DECLINED.search(message):
        return Reply("", "", "refused", error=said)
    if _NO_MONEY.search(message):
        raise RefusedError(f"the account has no credit left at {about}", said)
    if status == 429 or (status in _OVERLOADED and after is not None):
        raise RateLimitedError(said, after)
    if status in _TRANSIENT or status >= 500:
        raise TransientError(said, after)
    if status in _ABOUT_THE_REQUEST:
        raise BadRequestError(f"the endpoint calls the request bad: {about}", said)
    moved = "the endpoint lies elsewhere (it redirects)"
    wrong = moved if status < 400 else "the endpoint cannot be used in this way"
    raise RefusedError(f"{_WRONG.get(status, wrong)}: {about}", said)


async def ask_with_less(
    ask: Callable[[Body], Awaitable[Reply]],
    body: Body,
    about: str,
    changes: Mapping[str, str | None] = MappingProxyType({}),
    errors: tuple[str, ...] = (),
) -> Reply:
    """Ask, and again without the parameters that the endpoint refuses, while it refuses any.

    `changes` holds what a judge's file must say so that they are not sent, by place. Raises
    RefusedError with all of it, and `errors`, what the endpoint said.
    """
    try:
        done = await ask(body)
    except (SetupError, TransientError) as error:
        text = error.said if isinstance(error, BadRequestError) else ""
        if refused := [name for name in body if _is_named(name, text)]:
            less, more = _without(body, refused, text, changes)
            return await ask_with_less(ask, less, about, {**changes, **more}, (*errors, text))
        if not changes:
            raise
    if changes:
        message = f"the endpoint does not take the request as it is; write {_lines(changes)}"
        raise RefusedError(f"{message}: {about}", "; ".join(errors))
    return done


def _is_named(parameter: str, error: str) -> bool:
    """Return whether an error is about this parameter of a body."""
    if parameter in ("model", "messages"):
        return False
    name = re.escape(parameter).replace("_", "_?")
    words = rf"\b{name}\b" if "_" in parameter else _NAMED.format(name)
    return bool(re.search(f"{words}|{_OTHER_WORDS.get(parameter, words)}", error, re.IGNORECASE))


def _without(
    body: Body, refused: Sequence[str], error: str, changes: Mapping[str, str | None]
) -> tuple[Body, dict[str, str | None]]:
    """The body without these parameters, or with others in their place, and the changes to a
    judge's file that make it so."""
    less, more = {k: v for k, v in body.items() if k not in refused}, dict[str, str | None]()
    for name in refused:
        place, other = place_of(name) or EXTRA_BODY, _LIMITS.get(name, "")
        if other and other in error and "settings.max_tokens_as" not in changes:
            less[other] = body[name]
            more["settings.max_tokens_as"] = other
        elif other:
            more["decoding.max_tokens"] = "N"
        elif name in _FORM:
            lane, form = _weaker(body)
            less = {k: v for k, v in less.items() if k not in _FORM} | form
            more["settings.structured"] = lane
        else:
            more[f"{place}.{name}" if place in (EXTRA_BODY, SEND) else place] = None
    return less, more


def _weaker(body: Body) -> tuple[Lane, Body]:
    """The way that holds a reply to its schema next best, and its part of a body."""
    match body:
        case {"response_format": {"json_schema": {"schema": schema}}}:
            return "tool", enforced(schema, "tool")
        case {"tools": _}:
            return "json_object", enforced({}, "json_object")
    return "none", {}


def _lines(changes: Mapping[str, str | None]) -> str:
    """The changes as lines of a judge's file."""
    file: dict[str, Any] = {}
    for place, value in changes.items():
        *above, key = place.split(".")
        reduce(lambda inner, part: inner.setdefault(part, {}), above, file)[key] = value
    lines = (
        yaml.safe_dump({k: v}, default_flow_style=True, width=math.inf) for k, v in file.items()
    )
    return " and ".join(f"`{line.strip()[1:-1]}`" for line in lines)


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers of a reply ask to wait, at most a day; None where they ask for none.
    Milliseconds are what OpenAI's servers and clients say besides, more exactly."""
    for name, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name) or "") * seconds
        except ValueError:
            continue
        if not math.isnan(wait):
            return min(max(0.0, wait), _DAY_S)
    return None


def error_status(code: Any) -> int | None:
    """The HTTP status of an error, as a body or another library gives it; None where it is none."""
    return code if type(code) is int and 300 <= code <= 599 else None


def read_json(raw: bytes) -> Any:
    """The JSON of a body; its text where that is no JSON, or nested as deep as its sender
    pleases."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode(errors="replace")


def error_text(body: Any) -> str:
    """The content of an error body: its message, type, code and parameter, wherever they stand."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        parts = [error.get(k) for k in ("message", "detail", "type", "code")]
        parts += [f"parameter {_plain(name)}"] if (name := error.get("param")) else []
        error = "; ".join(_plain(p) for p in parts if p) or error
    text = " ".join(_plain(error).split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


def _plain(value: Any) -> str:
    try:
        return str(value)
    except RecursionError:
        return "a value nested too deeply to be shown"
