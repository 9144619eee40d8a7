import json
from typing import Any

import pytest
from loopback import completion

from judgebench.models.chat import UnreadableBodyError, read_chat
from judgebench.models.settings import Secrets
from judgebench.records import Usage


def test_usage_is_read_and_may_be_missing() -> None:
    body = completion("x")
    assert read_chat(body).usage == Usage(1, 100, 20)
    del body["usage"]
    assert read_chat(body).usage == Usage(1, None, None)


@pytest.mark.parametrize(
    ("counts", "read"),
    [
        ({"completion_tokens_details": None, "prompt_tokens_details": 7}, Usage(1, 100, 20)),
        ({"completion_tokens_details": {"reasoning_tokens": 15}}, Usage(1, 100, 20, 15)),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, Usage(1, 100, 20, None, 0)),
        # Grok and Gemini count thoughts beside the reply, and in the total alone.
        (
            {"completion_tokens_details": {"reasoning_tokens": 900}, "total_tokens": 1020},
            Usage(1, 100, 920, 900),
        ),
        # More than the whole is no part of it.
        ({"completion_tokens_details": {"reasoning_tokens": 900}}, Usage(1, 100, 920, 900)),
        ({"prompt_tokens_details": {"cached_tokens": 101}}, Usage(1, 201, 20, None, 101)),
        ({"prompt_tokens_details": {"cached_tokens": -1}}, Usage(1, 100, 20)),
    ],
)
def test_the_parts_of_the_usage_are_read(counts: dict[str, Any], read: Usage) -> None:
    body = completion("x")
    body["usage"] |= counts
    assert read_chat(body).usage == read


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    body = completion(None, content_parts=None)
    body["choices"][0]["message"]["content"] = parts
    assert read_chat(body).text == "one two"


def test_tool_arguments_that_are_no_string_are_written_out() -> None:
    call = {"function": {"name": "reply", "arguments": {"a": 1}}}
    assert json.loads(read_chat(completion(None, tool_calls=[call])).text) == {"a": 1}


def call(arguments: object) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "reply", "arguments": arguments}}


NO, YES = '{"bias": "No"}', '{"bias": "Yes"}'


@pytest.mark.parametrize(
    "message",
    [
        completion(None, tool_calls=[call(NO), call(YES)]),
        completion(YES, tool_calls=[call(NO)]),
        completion(f"My verdict: {YES}", tool_calls=[call(NO)]),
        completion("{'bias': 'Yes'}", tool_calls=[call(NO)]),
        completion(None, tool_calls=[call('{"bias": "No", "bias": "Yes"}'), call(YES)]),
        completion(None, tool_calls=[call(NO)], function_call={"arguments": YES}),
        {"choices": [*completion(NO)["choices"], *completion(YES)["choices"]]},
        {"choices": [*completion(NO)["choices"], *completion("")["choices"]]},
    ],
)
def test_a_body_that_says_two_things_is_unclear(message: dict[str, Any]) -> None:
    for body in (message, message | {"choices": message["choices"][::-1]}):
        done = read_chat(body)
        assert done.finish == "unclear"
        told = "the reply says 2 different things in its choices and tool calls"
        assert done.error == told
        assert "bias" in done.text


@pytest.mark.parametrize(
    "message",
    [
        completion(None, tool_calls=[call(NO), call('{ "bias":"No" }'), call({"bias": "No"})]),
        completion("Let me judge this.", tool_calls=[call(NO)]),
        completion(' {"bias":"No"}\n', tool_calls=[call(NO)]),
        completion(None, function_call={"arguments": NO}),
        {"choices": completion(NO)["choices"] * 3},
        completion(NO),
    ],
)
def test_a_body_that_says_one_thing_twice_is_read(message: dict[str, Any]) -> None:
    done = read_chat(message)
    assert (done.text, done.finish, done.error) == (NO, "stop", "")


@pytest.mark.parametrize(
    ("model", "engine", "read"),
    [
        ("gpt-4o-2024-08-06", None, "gpt-4o-2024-08-06"),
        ("gpt-4o-2024-08-06", "fp_1", "gpt-4o-2024-08-06, engine fp_1"),
        (None, None, ""),
        ([1], {"a": 1}, ""),
        (10**400, True, ""),
        ("x" * 5000, "", "x" * 200),
        ('C:\\m"\x1b[2J\ud800', None, "C:/m'?[2J?"),
    ],
)
def test_the_model_that_replied_is_read(model: object, engine: object, read: str) -> None:
    done = read_chat({**completion("x"), "model": model, "system_fingerprint": engine})
    assert Secrets().scrubbed_name(done.model) == read


def test_an_engine_that_failed_midway_gave_no_reply() -> None:
    with pytest.raises(UnreadableBodyError, match="midway"):
        read_chat(completion("half", "error"))
