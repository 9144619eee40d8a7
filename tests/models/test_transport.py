import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import PATIENCE, until
from tenacity import Future, RetryCallState, Retrying

from judgebench.errors import EndpointDown, SetupError
from judgebench.models.chat import (
    RateLimitedError,
    TransientError,
    error_text,
    failure,
    wait_asked_for,
)
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import FEW_WORDS, Backoff, Transport
from judgebench.records import Usage

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
    wait = Backoff(first, longest)(failed_try(number, after))
    least = first * 2 ** (number - 1) if after is None else after
    assert min(least, longest) <= wait <= longest


def test_waits_have_jitter() -> None:
    waits = Backoff(first=1.0, longest=100.0)
    assert len({waits(failed_try(2, None)) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "17"}, 17.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "8", "retry-after-ms": "7000"}, 7.0),
        ({"retry-after": "8", "retry-after-ms": "soon"}, 8.0),
        ({"retry-after": "9" * 400}, 86_400),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert wait_asked_for(headers) == seconds


@pytest.mark.parametrize(
    ("status", "told"),
    [(301, "redirects"), (401, "key"), (402, "payment"), (403, "key"), (404, "model or path")],
)
def test_statuses_that_nothing_mends(status: int, told: str) -> None:
    with pytest.raises(SetupError, match=told) as caught:
        failure(status, "no", ABOUT)
    assert ABOUT in str(caught.value)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"error": {"message": "no", "type": "t", "code": "c", "param": "p"}},
            "no; t; c; parameter p",
        ),
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


# What follows runs tries that are plain functions: no network, the transport alone.

QUICK = Backoff(first=0.001, longest=0.01)
Try = Callable[[str, int], Awaitable[str]]  # of a request's key, and how many tries there were


class Endpoint:
    """Answers as `play` says, and a few words whatever it says where `few_words` is true. `tries`
    lists the keys, in the order in which they were tried."""

    def __init__(self, play: Try, few_words: bool = False) -> None:
        self._play, self._few_words = play, few_words
        self.tries: list[str] = []
        self.in_flight = 0
        self.ended = 0

    def opened(self) -> AbstractAsyncContextManager[Any]:
        @asynccontextmanager
        async def live() -> AsyncIterator[Any]:
            try:
                yield self._attempt
            finally:
                self.ended += 1

        return live()

    async def _attempt(self, request: Request) -> Reply:
        if self._few_words and request.messages == FEW_WORDS:
            return Reply("", "an example")
        self.tries.append(request.key)
        self.in_flight += 1
        try:
            text = await self._play(request.key, len(self.tries))
        finally:
            self.in_flight -= 1
        return Reply("", text, usage=Usage(1, 10, 10))


def requests(n: int) -> Iterator[Request]:
    return (Request(str(i), (Message("user", f"text {i}"),)) for i in range(n))


def transport(waits: Backoff = QUICK, limited_for_s: float = 60.0, **settings: Any) -> Transport:
    checked = BackendSettings.model_validate(settings)
    return Transport(checked, waits, "m at http://x/v1", limited_for_s=limited_for_s)


def asked(endpoint: Endpoint, n: int, **settings: Any) -> list[Reply]:
    return list(transport(**settings).stream(endpoint.opened, requests(n)))


async def answer(key: str, tries: int) -> str:
    return key


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("uvloop", marks=pytest.mark.skipif(os.name == "nt", reason="no uvloop there")),
        "asyncio",
    ],
)
def test_calls_run_on_uvloop_where_it_is_installed(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)  # as where it is not installed
    used = set()

    async def play(key: str, tries: int) -> str:
        used.add(type(asyncio.get_running_loop()).__module__.partition(".")[0])
        await asyncio.sleep(0.001)
        return key

    assert {r.text for r in asked(Endpoint(play), 50)} == {str(i) for i in range(50)}
    assert used == {loop}


def test_a_rate_limit_costs_no_verdict_and_no_retry() -> None:
    async def play(key: str, tries: int) -> str:
        if tries <= 60:
            raise RateLimitedError("HTTP 429: slow down")
        return key

    replies = asked(Endpoint(play), 20, max_retries=0, concurrency=8)
    assert {r.finish for r in replies} == {"stop"}
    assert sum(r.usage.calls for r in replies) == 80


def test_a_call_that_only_meets_the_limit_fails_in_time_where_others_are_answered() -> None:
    async def play(key: str, tries: int) -> str:
        if key == "0":
            raise RateLimitedError("HTTP 429: this request is too large for your tokens a minute")
        return key

    endpoint = Endpoint(play, few_words=True)
    replies = {r.key: r for r in asked(endpoint, 400, limited_for_s=0.05, concurrency=2)}
    assert len(replies) == 400
    assert replies["0"].finish == "failed"
    assert "429" in replies["0"].error
    assert {r.finish for key, r in replies.items() if key != "0"} == {"stop"}


def test_an_endpoint_that_only_limits_is_down_in_time() -> None:
    async def play(key: str, tries: int) -> str:
        raise RateLimitedError("HTTP 429: the quota of the day is used up")

    with pytest.raises(EndpointDown, match="quota of the day"):
        asked(Endpoint(play), 10, limited_for_s=0.05)


def test_a_server_that_dies_and_comes_back_costs_no_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(key: str, tries: int) -> str:
        if 10 < tries <= 90:
            raise TransientError("HTTP 502: gone")
        return key

    endpoint = Endpoint(play)
    with caplog.at_level(logging.WARNING, "judgebench.models"):
        # Waits that are longer than it takes another thread to put what is asked next.
        waiting = transport(Backoff(first=0.05, longest=0.1), concurrency=16, max_retries=3)
        replies = list(waiting.stream(endpoint.opened, requests(100)))
    assert sorted(int(r.key) for r in replies) == list(range(100))
    assert {r.finish for r in replies} == {"stop"}
    assert len(endpoint.tries) in (180, 181)  # the few words that find it back are one more
    opened, closed = caplog.messages
    assert "no call is sent until it replies to a few words" in opened
    assert "answers again" in closed


def test_a_server_that_stays_away_ends_the_stream_and_fails_nothing() -> None:
    async def play(key: str, tries: int) -> str:
        if tries > 10:
            raise TransientError("HTTP 502: gone")
        return key

    endpoint = Endpoint(play)
    stream = transport(concurrency=8, max_retries=3, down_for_s=0.1).stream(
        endpoint.opened, requests(1_000_000)
    )
    replies: list[Reply] = []
    with pytest.raises(EndpointDown, match="asked when the run is started again"):
        replies.extend(stream)
    assert {r.finish for r in replies} <= {"stop"}
    assert len(endpoint.tries) < 200
    assert endpoint.ended == 1
    assert list(stream) == []


def test_no_more_is_pulled_than_the_bound_and_no_more_is_in_flight_than_allowed() -> None:
    pulled, peak = 0, 0

    def source() -> Iterator[Request]:
        nonlocal pulled
        for request in requests(300):
            pulled += 1
            yield request

    async def play(key: str, tries: int) -> str:
        nonlocal peak
        peak = max(peak, endpoint.in_flight)
        await asyncio.sleep(0.001)
        return key

    endpoint = Endpoint(play)
    received = 0
    for _ in transport(concurrency=16).stream(endpoint.opened, source()):
        received += 1
        assert pulled <= received + 16 + 4
    assert received == 300
    assert peak == 16


@pytest.mark.parametrize("error", [SetupError("no key"), EndpointDown("gone"), KeyError("bug")])
def test_an_error_keeps_the_replies_of_the_calls_in_flight(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()

    async def play(key: str, tries: int) -> str:
        if key == "5":
            while len(endpoint.tries) < 8:
                await asyncio.sleep(0.001)
            failed.set()
            raise error
        while not failed.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        return key

    endpoint = Endpoint(play)
    stream = transport(concurrency=8).stream(endpoint.opened, requests(100))
    replies: list[Reply] = []
    with (
        caplog.at_level(logging.WARNING, "judgebench.models"),
        pytest.raises(type(error), match=str(error)),
    ):
        replies.extend(stream)
    assert sorted(r.key for r in replies) == ["0", "1", "2", "3", "4", "6", "7"]
    n_few_words = isinstance(error, SetupError)  # an endpoint that has not yet replied is asked
    assert len(endpoint.tries) == 8 + n_few_words  # no other call started
    assert "no other call starts; 7 may end" in caplog.text
    assert endpoint.ended == 1


def test_an_error_does_not_wait_for_calls_that_wait() -> None:
    async def play(key: str, tries: int) -> str:
        while len(endpoint.tries) < 2:
            await asyncio.sleep(0.001)
        if key == "0":
            raise RateLimitedError("HTTP 429: slow down", 10 * PATIENCE)
        raise SetupError("no key")

    endpoint = Endpoint(play)
    waits = Backoff(longest=10 * PATIENCE)
    with pytest.raises(SetupError):
        asked(endpoint, 100, waits=waits, concurrency=2)


def test_winding_down_keeps_what_is_in_flight_and_drops_what_waits() -> None:
    go_on = threading.Event()

    async def play(key: str, tries: int) -> str:
        while len(endpoint.tries) < 8:
            await asyncio.sleep(0.001)
        if int(key) % 2:
            raise RateLimitedError("HTTP 429: slow down", 10 * PATIENCE)
        while not go_on.is_set():
            await asyncio.sleep(0.001)
        return key

    endpoint = Endpoint(play)
    owner = transport(Backoff(longest=10 * PATIENCE), concurrency=8)
    stream = owner.stream(endpoint.opened, requests(1000))
    replies: list[Reply] = []
    reader = threading.Thread(target=lambda: replies.extend(stream))
    reader.start()
    assert until(lambda: len(endpoint.tries) == 8 and endpoint.in_flight == 4)
    owner.drain()
    owner.drain()
    go_on.set()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert sorted(r.key for r in replies) == ["0", "2", "4", "6"]
    assert len(endpoint.tries) == 8
    assert endpoint.ended == 1
    unbegun = owner.stream(endpoint.opened, requests(5))
    owner.drain()
    assert list(unbegun) == []
    assert len(endpoint.tries) == 8


def test_closing_from_another_thread_ends_the_stream_and_all_calls() -> None:
    async def play(key: str, tries: int) -> str:
        if int(key) > 2:
            await asyncio.sleep(10 * PATIENCE)
        return key

    endpoint = Endpoint(play)
    owner = transport(concurrency=8)
    stream = owner.stream(endpoint.opened, requests(1000))
    replies: list[Reply] = []
    reader = threading.Thread(target=lambda: replies.extend(stream))
    reader.start()
    assert until(lambda: endpoint.in_flight == 8 and len(endpoint.tries) == 11)
    owner.close()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert endpoint.in_flight == 0
    assert endpoint.ended == 1
    assert {r.key for r in replies} <= {"0", "1", "2"}
    assert list(stream) == []
    owner.close()


def test_closing_while_the_source_is_being_read_ends_the_stream() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def source() -> Iterator[Request]:
        yield from requests(1)
        reading.set()
        go_on.wait(PATIENCE)
        yield from requests(5)

    owner = transport(concurrency=8)
    stream = owner.stream(Endpoint(answer).opened, source())
    replies: list[Reply] = []
    reader = threading.Thread(target=lambda: replies.extend(stream))
    reader.start()
    assert reading.wait(PATIENCE)
    owner.close()
    go_on.set()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert len(replies) <= 1  # what was answered before the source was read again
    assert "judgebench-transport" not in {t.name for t in threading.enumerate()}


def test_a_stream_closed_before_it_began_asks_nothing() -> None:
    endpoint = Endpoint(answer)
    stream = transport().stream(endpoint.opened, requests(5))
    stream.close()
    assert list(stream) == []
    assert endpoint.tries == []


def test_a_long_retry_after_is_obeyed_beyond_the_longest_wait_of_our_own() -> None:
    waits = Backoff(first=1.0, longest=10.0, longest_asked=100.0)
    assert 60 <= waits(failed_try(1, 60.0)) <= 61
    assert waits(failed_try(1, 1e9)) == 100
    assert waits(failed_try(5000, None)) == 10
