from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import completion

from judgebench.backends.chat import UnreadableBodyError, chat_body, read_chat
from judgebench.backends.contract import Message, Request
from judgebench.records import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "usage", "tool_calls", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_seed_is_left_out_where_there_is_none() -> None:
    request = Request("1", (Message("user", "x"),), seed=None)
    assert "seed" not in chat_body(request, "json_schema")


def test_usage_is_read_and_may_be_missing() -> None:
    body = completion("x")
    assert read_chat(body).usage == Usage(1, 100, 20)
    del body["usage"]
    assert read_chat(body).usage == Usage(1, None, None)


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    body = completion(None, content_parts=None)
    body["choices"][0]["message"]["content"] = parts
    assert read_chat(body).text == "one two"


def test_tool_arguments_that_are_no_string_are_written_out() -> None:
    call = {"function": {"name": "reply", "arguments": {"a": 1}}}
    assert json.loads(read_chat(completion(None, tool_calls=[call])).text) == {"a": 1}


def test_an_engine_that_failed_midway_gave_no_reply() -> None:
    with pytest.raises(UnreadableBodyError, match="midway"):
        read_chat(completion("half", "error"))


@given(JSON, JSON)
def test_any_body_is_read_or_called_unreadable(whole: Any, message: Any) -> None:
    for body in (whole, {"choices": [{"message": message}]}):
        try:
            done = read_chat(body)
        except UnreadableBodyError:
            continue
        assert isinstance(done.text, str)
