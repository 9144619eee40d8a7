from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import Future, RetryCallState, Retrying

from judgebench.backends.transport import (
    TransientError,
    Waits,
    error_text,
    failure,
    retry_after,
)
from judgebench.errors import SetupError

ABOUT = "http://127.0.0.1:1/v1, model m, no key"


def failed_try(number: int, after: float | None) -> RetryCallState:
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = number
    state.outcome = Future(number)
    state.outcome.set_exception(TransientError("x", after))
    return state


@given(
    st.integers(1, 20),
    st.none() | st.floats(0, 1e9),
    st.floats(0.001, 10),
    st.floats(10, 1000),
)
def test_waits_are_bounded_and_honour_the_server(
    number: int, after: float | None, first: float, longest: float
) -> None:
    wait = Waits(first, longest)(failed_try(number, after))
    least = first * 2 ** (number - 1) if after is None else after
    assert min(least, longest) <= wait <= longest


def test_waits_have_jitter() -> None:
    waits = Waits(first=1.0, longest=100.0)
    assert len({waits(failed_try(2, None)) for _ in range(20)}) > 1


def test_retry_after_in_seconds_or_as_a_date() -> None:
    assert retry_after("17") == 17.0
    assert retry_after("0.5") == 0.5
    assert retry_after("-3") == 0.0
    assert retry_after(None) is None
    assert retry_after("soon") is None
    future = datetime.now(UTC) + timedelta(minutes=10)
    seconds = retry_after(format_datetime(future, usegmt=True))
    assert seconds is not None
    assert 0 < seconds <= 600
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


@given(st.text())
def test_no_header_breaks_retry_after(text: str) -> None:
    seconds = retry_after(text)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_statuses_that_another_try_may_mend(status: int) -> None:
    with pytest.raises(TransientError, match=str(status)) as caught:
        failure(status, "busy", ABOUT, "none", 3.0)
    assert caught.value.after == 3.0


@pytest.mark.parametrize(
    ("status", "told"),
    [(301, "redirects"), (401, "key"), (402, "payment"), (403, "key"), (404, "model or path")],
)
def test_statuses_that_nothing_mends(status: int, told: str) -> None:
    with pytest.raises(SetupError, match=told) as caught:
        failure(status, "no", ABOUT, "none")
    assert ABOUT in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message", "finish"),
    [
        (400, "maximum context length is 8192 tokens", "too_long"),
        (400, "'max_tokens' is too large: 512. This model's maximum context length", "too_long"),
        (413, "Request too large; reduce the length of your messages", "too_long"),
        (400, "Please reduce the length of the messages", "too_long"),
        (400, "exceed_context_size_error", "too_long"),
        (400, "filtered; code content_filter", "refused"),
        (403, "your input was flagged", "refused"),
        (400, "ResponsibleAIPolicyViolation: Responsible AI", "refused"),
        (400, "temperature must be at most 1", "failed"),
        (422, "messages.0.role: unexpected value", "failed"),
    ],
)
def test_what_an_error_says_of_one_request(status: int, message: str, finish: str) -> None:
    done = failure(status, message, ABOUT, "json_schema")
    assert (done.finish, done.text) == (finish, "")
    assert message in done.error


@pytest.mark.parametrize(
    ("lane", "message"),
    [
        ("json_schema", "Invalid parameter: 'response_format' of type 'json_schema'"),
        ("json_object", "response_format: unsupported"),
        ("tool", '"auto" tool choice requires --enable-auto-tool-choice; tool_choice'),
    ],
)
def test_a_refused_lane_is_a_setting_to_mend(lane: str, message: str) -> None:
    with pytest.raises(SetupError, match="structured"):
        failure(400, message, ABOUT, lane)  # type: ignore[arg-type]
    assert failure(400, message, ABOUT, "none").finish == "failed"


def test_a_reply_that_broke_its_schema_is_no_refused_lane() -> None:
    said = "json_validate_failed: generated JSON does not fit response_format"
    assert failure(400, said, ABOUT, "json_schema").finish == "failed"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error": {"message": "no", "type": "t", "code": "c", "param": "p"}}, "no; t; c; p"),
        ({"error": "plain"}, "plain"),
        ({"detail": "FastAPI's"}, "FastAPI's"),
        ({"message": "bare"}, "bare"),
        ("<html>\n  gone </html>", "<html> gone </html>"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_error_text_wherever_it_stands(body: object, text: str) -> None:
    assert error_text(body) == text


def test_error_text_is_cut() -> None:
    assert len(error_text("x" * 100_000)) <= 1000
