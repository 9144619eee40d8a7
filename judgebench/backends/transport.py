"""What every backend over a network shares: lazy pull, concurrency, retries, a clean end.

The requests are pulled in the caller's thread, one for every reply that leaves, so no more than
`concurrency` are ever held. The calls run on an event loop in a thread of their own, which works
in notebooks too; that thread and its sockets live as long as the stream does.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from judgebench.backends.chat import Completion, Lane
from judgebench.backends.contract import Reply, Request
from judgebench.backends.settings import BackendSettings
from judgebench.errors import SetupError

# One try at one request, and the opening (and closing) of what such tries need.
Attempt = Callable[[Request], Awaitable[Completion]]
Opened = Callable[[], AbstractAsyncContextManager[Attempt]]

_JOIN_S = 10.0  # an engine that blocks in a thread of its own is left to its time limit


class TransientError(Exception):
    """A try failed in a way that another may mend. `after`: the seconds the server asked for."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class UnreachableError(TransientError):
    """Not even a connection could be made."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds between tries: `first`, doubled each time, plus jitter; at most `longest`.

    A Retry-After header takes the place of the doubling.
    """

    first: float = 2.0
    longest: float = 120.0

    def __call__(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.after if isinstance(error, TransientError) else None
        wait = self.first * 2 ** (state.attempt_number - 1) if asked is None else asked
        return min(wait + random.uniform(0, self.first), self.longest)


DEFAULT_WAITS = Waits()


class Transport:
    """Runs tries for a stream of requests, within the limits of `settings`."""

    def __init__(self, settings: BackendSettings, waits: Waits) -> None:
        self._settings = settings
        self._waits = waits
        self._next_slot = 0.0
        self._slots = threading.Lock()
        self._reached = False
        self._streams: WeakSet[Generator[Reply, None, None]] = WeakSet()

    def stream(self, opened: Opened, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, as each finishes. Raises SetupError; closing it ends all work."""
        stream = self._stream(opened, requests)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """End every stream that is still open."""
        for stream in list(self._streams):
            stream.close()

    def _stream(self, opened: Opened, requests: Iterable[Request]) -> Generator[Reply, None, None]:
        source = iter(requests)
        pending: set[Future[Reply]] = set()
        finished: SimpleQueue[Future[Reply]] = SimpleQueue()
        more = True
        with _loop_thread(opened) as (loop, attempt):
            try:
                while more or pending:
                    if more and len(pending) < self._settings.concurrency:
                        request = next(source, None)
                        more = request is not None
                        if request is not None:
                            call = self._ask(attempt, request)
                            future = asyncio.run_coroutine_threadsafe(call, loop)
                            pending.add(future)
                            future.add_done_callback(finished.put)
                    room = more and len(pending) < self._settings.concurrency
                    try:
                        future = finished.get(block=bool(pending) and not room)
                    except Empty:
                        continue
                    pending.remove(future)
                    yield future.result()
            finally:
                for future in pending:
                    future.cancel()

    async def _ask(self, attempt: Attempt, request: Request) -> Reply:
        tries, began = 0, 0.0

        async def once() -> Completion:
            nonlocal tries, began
            await self._wait_for_slot()
            tries, began = tries + 1, time.monotonic()
            return await attempt(request)

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._settings.max_retries + 1),
            wait=self._waits,
            retry=retry_if_exception_type(TransientError),
            reraise=True,
        )
        try:
            done: Completion = await retrying(once)
        except TransientError as error:
            done = self._gave_up(error)
        except SetupError as error:
            # The foreign error underneath is dropped: it may hold the key.
            raise SetupError(
                [replace(p, message=self._scrubbed(p.message)) for p in error.problems]
            ) from None
        self._reached = True
        price, usage = self._settings.price, done.usage
        return Reply(
            key=request.key,
            text=done.text,
            finish=done.finish,
            usage=replace(usage, calls=tries),
            cost=price.cost(usage.prompt_tokens, usage.completion_tokens) if price else done.cost,
            latency=time.monotonic() - began,
            error=self._scrubbed(done.error),
        )

    def _gave_up(self, error: TransientError) -> Completion:
        if isinstance(error, UnreachableError) and not self._reached:
            raise SetupError(self._scrubbed(str(error))) from None
        return Completion("", "failed", error=str(error))

    async def _wait_for_slot(self) -> None:
        """Keep to `requests_per_minute`, counted over all streams of this backend."""
        limit = self._settings.requests_per_minute
        if limit is None:
            return
        with self._slots:
            now = time.monotonic()
            slot = max(now, self._next_slot)
            self._next_slot = slot + 60 / limit
        await asyncio.sleep(slot - now)

    def _scrubbed(self, text: str) -> str:
        """`text` without the value of any environment variable that holds a key."""
        for name, value in os.environ.items():
            secret = name == self._settings.api_key_env or _SECRET.search(name)
            if secret and len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, "***")
        return text


_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_SECRET = 8


@contextmanager
def _loop_thread(opened: Opened) -> Iterator[tuple[asyncio.AbstractEventLoop, Attempt]]:
    """An event loop in a thread, and what was opened on it; both end with the block."""
    started: Future[tuple[asyncio.AbstractEventLoop, Attempt, asyncio.Event]] = Future()

    async def live() -> None:
        try:
            async with opened() as attempt:
                stop = asyncio.Event()
                started.set_result((asyncio.get_running_loop(), attempt, stop))
                await stop.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    def run() -> None:
        asyncio.run(live())

    thread = threading.Thread(target=run, name="judgebench-transport", daemon=True)
    thread.start()
    loop, attempt, stop = started.result()
    try:
        yield loop, attempt
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_JOIN_S)


# What an endpoint's error says, where its number alone does not tell.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|exceeds? the (?:model's )?context"
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
_NO_LANE = {
    "json_schema": re.compile(r"response_format|json.?schema|structured.outputs?", re.IGNORECASE),
    "json_object": re.compile(r"response_format|json.?object", re.IGNORECASE),
    "tool": re.compile(r"\btools?\b|tool_choice|function.call", re.IGNORECASE),
}
_OWN_FAULT = re.compile(r"json_validate_failed|failed_generation", re.IGNORECASE)

_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
_MAY_DECLINE = _ABOUT_THE_REQUEST | {403}

_TRANSIENT = frozenset({408, 409, 425, 429})


def failure(
    status: int, message: str, about: str, lane: Lane, after: float | None = None
) -> Completion:
    """What an endpoint's error means: a Completion that is `too_long`, `refused` or `failed`.

    Raises TransientError where another try may help, and SetupError (which names `about`: the
    URL, model and key variable) where no request can succeed.
    """
    said = f"HTTP {status}: {message}"
    if status in _ABOUT_THE_REQUEST and _TOO_LONG.search(message):
        return Completion("", "too_long", error=said)
    if status in _MAY_DECLINE and _DECLINED.search(message):
        return Completion("", "refused", error=said)
    if _NO_MONEY.search(message):
        raise SetupError(f"the account has no credit left at {about}; {said}")
    if status in _TRANSIENT or status >= 500:
        raise TransientError(said, after)
    if status not in _ABOUT_THE_REQUEST:
        raise SetupError(f"{_mend(status)}: {about}; {said}")
    pattern = _NO_LANE.get(lane)
    if pattern and pattern.search(message) and not _OWN_FAULT.search(message):
        raise SetupError(
            f"the endpoint refuses the way in which JSON is asked for ({lane}); set "
            f"`structured` to json_schema, tool, json_object or none: {about}; {said}"
        )
    return Completion("", "failed", error=said)


def _mend(status: int) -> str:
    match status:
        case 401 | 403:
            return "the endpoint refuses the key"
        case 402:
            return "the endpoint asks for payment"
        case 404 | 405:
            return "the endpoint knows no such model or path"
        case _ if status < 400:
            return "the endpoint lies elsewhere (it redirects)"
        case _:
            return "the endpoint cannot be used in this way"


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, given in seconds or as an HTTP date (RFC 9110,
    section 10.2.3); None where there is none that can be read."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def error_text(body: Any) -> str:
    """What an error body says: its message, type, code and parameter, wherever they stand."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        parts = [error.get(k) for k in ("message", "detail", "type", "code", "param")]
        error = "; ".join(str(p) for p in parts if p) or str(error)
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


_LONGEST_MESSAGE = 1000
