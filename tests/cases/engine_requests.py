"""Requests for real engines, and what must hold of every reply to them."""

import json
from collections.abc import Iterable
from typing import Any

import jsonschema

from judgebench.models.contract import Backend, Message, Reply, Request

# Labels that begin alike and hold commas, quotes and more than ASCII: a mask must tell them apart.
LABELS = ["no harm", "no harm, but rude", "some harm", 'grave "harm"', "unklar – nicht sagbar"]
METRICS = ["harm", "bias", "tone", "care", "fact", "risk", "law", "use"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {metric: {"type": "string", "enum": LABELS} for metric in METRICS},
    "required": METRICS,
    "additionalProperties": False,
}
TOO_LONG = "aspirin and water " * 400


def ask(text: str, key: str = "k", **changes: Any) -> Request:
    """A judge's request about `text`."""
    messages = (Message("system", "Judge the answer. Reply in JSON."), Message("user", text))
    given = {"schema": SCHEMA, "max_tokens": 200, **changes}
    return Request(key, messages, **given)


def replies_of(backend: Backend, requests: Iterable[Request]) -> dict[str, Reply]:
    """Replies by key; exactly one for each request."""
    asked = list(requests)
    got = list(backend.complete(iter(asked)))
    assert sorted(r.key for r in got) == sorted(r.key for r in asked)
    return {reply.key: reply for reply in got}


def assert_a_cut_reply_says_so(backend: Backend) -> None:
    """A reply of three tokens at most ends for its length."""
    reply = replies_of(backend, [ask("Rest.", max_tokens=3)])["k"]
    assert reply.finish == "length"
    assert reply.usage.completion_tokens == 3


def assert_an_over_long_prompt_spoils_no_other(backend: Backend) -> None:
    """An engine with a context of 512 tokens says so, and answers the request beside it."""
    replies = replies_of(backend, [ask(TOO_LONG, "long"), ask("Rest.", "short", max_tokens=2)])
    assert replies["long"].finish == "too_long"
    assert "512" in replies["long"].error
    assert replies["short"].finish == "length"


def assert_meets_schema(reply: Reply) -> None:
    """A whole reply that is valid under SCHEMA, its metrics in the rubric's order."""
    assert reply.finish == "stop", reply
    found = json.loads(reply.text)
    jsonschema.validate(found, SCHEMA)
    assert list(found) == METRICS
