"""The common part of backends over a network: lazy pull, concurrency, retries, a clean end.

Requests are pulled in the thread that iterates, one for every reply that leaves, and a few ahead
(a quarter of `concurrency`), so that a connection that comes free is used at once. The calls of a
stream run on an event loop in a thread of their own, which works in notebooks too; that thread and
its sockets live as long as the stream does. `Transport` is what the streams of a backend share.

A call keeps its place among the `concurrency` calls while it waits for another try, so an endpoint
that limits or fails is asked less often. Every try passes a door, one at a time, where it waits as
long as `RateLimiter` says.

A call that fails does so alone where the endpoint replies to others: since its last try began or,
where it was refused, to one of the last MANY_IN_A_ROW. Otherwise the endpoint is
asked a few words in the same way, with the door shut. If it replies, the call failed;
if it refuses them too, or says nothing for `down_for_s` (at once where it has never replied), the
stream ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judgebench.errors import EndpointDown, SetupError
from judgebench.models.chat import (
    RateLimitedError,
    TransientError,
    UnreachableError,
    failure_reason,
)
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.settings import BackendSettings, Secrets

# One try at one request, and the opening (and closing) of what such tries need.
Attempt = Callable[[Request], Awaitable[Reply]]
Opened = Callable[[], AbstractAsyncContextManager[Attempt]]

FEW_WORDS = (Message("user", "Reply with a short example."),)
LIMITED_FOR_S = 3600.0
MANY_IN_A_ROW = 10
_LOG = logging.getLogger("judgebench.models")
_CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English
_JOIN_S = 10.0  # an engine that blocks in a thread of its own is left to its time limit
_LONGEST_SLEEP_S = 0.05  # at the door: what other calls have used may shorten the wait
_LONGEST_DEBT_S = 60.0  # for tokens used beyond those expected: limits look back one minute
_TOLD_FROM_S = 30.0  # waits from here on are reported
# Replies are handed over together: when a thread wakes another, they wait for each other, which
# costs as much as all that is done with a reply.
_TOGETHER_S = 0.01
# A prompt from so many bytes on was cut off where it has fewer tokens for each byte than the other
# prompts, by this factor. Bytes of any script have about as many; until others are known, 1/16.
_LONG_PROMPT, _FEWER_TOKENS = 10_000, 4
_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)  # of one character, which takes few tokens


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which takes two thirds of the processor time; asyncio's where there is no uvloop,
    as on Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries: `first`, doubled each time, plus jitter; at most `longest`.

    A Retry-After takes the place of the doubling, and is obeyed up to `longest_asked`, which is
    `longest` where it is not given.
    """

    first: float = 2.0
    longest: float = 120.0
    longest_asked: float | None = None

    def __call__(self, state: RetryCallState) -> float:
        seconds, longest = _fault(state).after, self.longest_asked or self.longest
        if seconds is None:
            seconds, longest = self.first * 2.0 ** min(state.attempt_number - 1, 64), self.longest
        return min(seconds + random.uniform(0, self.first), longest)


DEFAULT_WAITS = Backoff(longest_asked=600.0)


def _fault(state: RetryCallState) -> TransientError:
    """The fault of a try that is made again after no other."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, TransientError)
    return error


class RateLimiter:
    """The times at which calls to one endpoint may start: as the limits of `settings` allow, and
    not while the endpoint asked to wait. For any thread."""

    def __init__(self, where: str, settings: BackendSettings) -> None:
        self._where, self._settings = where, settings
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._next_request = 0.0  # by requests_per_minute
        self._next_tokens = 0.0  # by tokens_per_minute
        self._told_until = 0.0

    def start(self, n_tokens: int) -> float:
        """Seconds until a call of so many tokens may start; at 0, it is counted as started."""
        with self._lock:
            now = monotonic()
            wait = max(self._paused_until, self._next_request, self._next_tokens) - now
            if wait > 0:
                return wait
            latest = now - _LONGEST_SLEEP_S  # what was slept too long is made up for
            if requests := self._settings.requests_per_minute:
                self._next_request = max(self._next_request, latest) + 60 / requests
            if tokens := self._settings.tokens_per_minute:
                self._next_tokens = max(self._next_tokens, latest) + n_tokens * 60 / tokens
            return 0.0

    def answered(self, n_expected: int, n_tokens: int) -> None:
        """A call has used `n_tokens` of both kinds, where `n_expected` were counted."""
        if limit := self._settings.tokens_per_minute:
            with self._lock:
                corrected = self._next_tokens + (n_tokens - n_expected) * 60 / limit
                latest = max(self._next_tokens, monotonic() + _LONGEST_DEBT_S)
                self._next_tokens = min(corrected, latest)

    def pause(self, seconds: float) -> None:
        """No call starts for so long."""
        with self._lock:
            self._paused_until = max(self._paused_until, monotonic() + seconds)

    def report(self, seconds: float, reason: str) -> None:
        """Report a long wait, unless one that ends about then was reported."""
        until = monotonic() + seconds
        if seconds >= _TOLD_FROM_S and until >= self._told_until + _TOLD_FROM_S:
            self._told_until = until
            _LOG.warning("%s: waiting for %.0f s (%s)", self._where, seconds, reason)


@dataclass(slots=True, eq=False)
class _Call:
    """A request on its way. `n_faults` counts the failed tries that use up retries."""

    request: Request
    n_tokens: int
    n_tries: int = 0
    n_faults: int = 0
    began: float = 0.0  # its last try


class Transport:
    """Runs tries for streams of requests to one endpoint, within the limits of `settings`.

    `where` names the endpoint in messages. A 429 uses up no retry: a call is tried again for
    up to `limited_for_s` seconds.
    """

    def __init__(
        self,
        settings: BackendSettings,
        waits: Backoff,
        where: str = "the endpoint",
        limited_for_s: float = LIMITED_FOR_S,
    ) -> None:
        self.settings, self.where = settings, where
        self.secrets = Secrets(settings.api_key_env)
        self.limiter = RateLimiter(where, settings)
        self.last_reply, self._n_failed = -math.inf, 0  # calls that failed since
        self.came_back = -math.inf  # when the endpoint last did, after a silence
        self._prompt_bytes, self._prompt_tokens = 16, 1
        self._waits, self._limited_for_s = waits, limited_for_s
        self.streams: set[_Stream] = set()  # that are open

    def stream(self, opened: Opened, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, each as it finishes.

        Iterating raises SetupError where no request can succeed, and EndpointDown, after the
        replies of all calls in flight. It is for one thread; closing the iterator, or losing it,
        ends all work in flight.
        """
        self.secrets.read()  # the environment may have changed since
        stream = _Stream(opened, self)
        self.streams.add(stream)
        return stream.replies(requests)

    def drain(self) -> None:
        """Start no other call: every stream ends once its calls in flight have. For any thread."""
        for stream in list(self.streams):
            stream.drain()

    def close(self) -> None:
        """End all calls: whoever iterates, in whatever thread, gets no more replies, and no wait.
        For any thread, any number of times."""
        for stream in list(self.streams):
            stream.end()

    def reply(self, request: Request, done: Reply) -> Reply:
        """The reply of a call that was made elsewhere, so without a latency."""
        return replace(self.outcome(_Call(request, 0, n_tries=1), done), latency=0.0)

    def call(self, request: Request) -> _Call:
        """The call of a request, with the tokens that it may cost: its characters over 4, and the
        bound of its reply."""
        characters = sum(len(message.content) for message in request.messages)
        reply = request.max_tokens + self.settings.thinking_budget
        return _Call(request, characters // _CHARACTERS_A_TOKEN + reply)

    def outcome(self, call: _Call, done: Reply) -> Reply:
        """The reply of one call, tied to its request."""
        price, scrubbed = self.settings.price, self.secrets.scrubbed
        usage = replace(done.usage, calls=call.n_tries)
        if cut_off := self._cut_off(call.request, usage.prompt_tokens):
            done = Reply("", "", "too_long", cost=done.cost, error=cut_off, model=done.model)
        return replace(
            done,
            key=call.request.key,
            text=scrubbed(done.text),
            usage=usage,
            cost=price.cost(usage) if price else done.cost,
            latency=monotonic() - call.began,
            error=scrubbed(done.error),
            model=self.secrets.scrubbed_name(done.model),
            reasoning=scrubbed(done.reasoning),
        )

    def _cut_off(self, request: Request, tokens: int | None) -> str:
        """The reason to think that the endpoint has read a part of the prompt alone."""
        if not tokens:
            return ""
        text = "".join(message.content for message in request.messages)
        n_bytes = _n_bytes(text)
        enough = self._prompt_bytes / self._prompt_tokens * _FEWER_TOKENS * tokens
        if n_bytes > max(enough, _LONG_PROMPT) and _n_bytes(_RUN.sub(r"\1", text)) > enough:
            return (
                f"the endpoint read {tokens:,} tokens of a prompt of {n_bytes:,} bytes, far "
                "fewer than the other prompts have for their size: it was cut off"
            )
        self._prompt_bytes += n_bytes
        self._prompt_tokens += tokens
        return ""

    @property
    def never_replied(self) -> bool:
        """Return whether nothing was ever answered."""
        return self.last_reply == -math.inf

    def answered(self, call: _Call, done: Reply) -> None:
        """A try at this call had a reply."""
        self.replied()
        n_tokens = (done.usage.prompt_tokens or 0) + (done.usage.completion_tokens or 0)
        self.limiter.answered(call.n_tokens, n_tokens or call.n_tokens)

    def replied(self) -> None:
        """The endpoint has replied."""
        self.last_reply, self._n_failed = monotonic(), 0

    def fails_alone(self, call: _Call, fault: SetupError | TransientError) -> bool:
        """Count a call that failed; whether the endpoint is known to reply to others."""
        self._n_failed += 1
        if isinstance(fault, TransientError):
            return self.last_reply > call.began
        return not self.never_replied and self._n_failed < MANY_IN_A_ROW

    def answers_again(self) -> None:
        """The endpoint has replied after a silence."""
        self.came_back = monotonic()
        _LOG.warning("%s answers again", self.where)

    def is_lost(self, call: _Call, state: RetryCallState) -> bool:
        """Return whether a call that failed is not to be tried again. Where there never was a
        server, its address is most often wrong."""
        fault = _fault(state)
        if isinstance(fault, RateLimitedError):
            return (state.seconds_since_start or 0) > self._limited_for_s
        absent = isinstance(fault, UnreachableError) and self.never_replied
        return absent or call.n_faults > self.settings.max_retries

    def is_down(self, state: RetryCallState) -> bool:
        """Return whether an endpoint that is silent is no longer asked a few words."""
        return self.never_replied or (state.seconds_since_start or 0) >= self.settings.down_for_s

    def wait(self, state: RetryCallState) -> float:
        """Seconds until a call may be tried again. Where the endpoint asked for them, no other
        call starts before that either."""
        seconds, fault = self._waits(state), _fault(state)
        if fault.after is not None:
            self.limiter.pause(min(seconds, fault.after))  # the jitter is for the calls it stopped
        self.limiter.report(seconds, self.secrets.scrubbed(str(fault)))
        return seconds

    def about(self, request: Request, message: str) -> str:
        """The message without secrets, and the item that was asked about."""
        scrubbed = self.secrets.scrubbed(message)
        return f"{scrubbed} (asked about {request.item})" if request.item else scrubbed

    def report_silence(self, state: RetryCallState) -> None:
        """Report once that the endpoint does not reply to a few words."""
        if state.attempt_number == 1:
            _LOG.warning(
                "%s replies to nobody (%s): no call is sent until it replies to a few words; its "
                "judge stops if that takes more than %g s",
                self.where, self.secrets.scrubbed(str(_fault(state))), self.settings.down_for_s,
            )  # fmt: skip

    def down(self, request: Request, fault: TransientError) -> EndpointDown:
        """The error of an endpoint that has replied to nobody for too long."""
        message = self.about(request, str(fault))
        if self.never_replied:
            return EndpointDown(message)
        return EndpointDown(
            f"{self.where} has answered nothing for {self.settings.down_for_s:g} s; what it did "
            f"not answer is asked when the run is started again: {message}"
        )


def _n_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _Stream:
    """The calls of one stream. All but `replies`, `drain` and `end` runs on the loop."""

    def __init__(self, opened: Opened, transport: Transport) -> None:
        self._opened, self._transport = opened, transport
        self._n_allowed = transport.settings.concurrency
        self._ready: deque[Request] = deque()
        self._is_hungry = False  # whether a call could start, and nothing was ready
        self._tasks: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()
        self._finished: list[Reply] = []
        self._outbox: SimpleQueue[Reply | BaseException | None] = SimpleQueue()
        self._draining, self._stopped = asyncio.Event(), asyncio.Event()
        self._error: BaseException | None = None  # what ends the stream, once it is wound down
        self._thread: threading.Thread | None = None
        self._is_ended = False

    def replies(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """See `Transport.stream`. No more requests are pulled than may be in flight, and a few."""
        source, n_pulled = iter(requests), 0
        bound = self._n_allowed + self._n_allowed // 4
        try:
            while not self._is_ended:
                request = next(source, None) if n_pulled < bound else None
                if request is not None:
                    n_pulled += 1
                    self._put(request)
                elif not n_pulled:
                    return
                with suppress(Empty):
                    outcome = self._outbox.get(block=request is None)
                    if outcome is None:
                        return
                    if isinstance(outcome, BaseException):
                        raise outcome
                    n_pulled -= 1
                    yield outcome
        finally:
            self.end()

    def drain(self) -> None:
        """Start no other call: the stream ends once those in flight have."""
        if self._thread is None:
            self.end()
        else:
            self._on_loop(self._drain)

    def end(self) -> None:
        """End all calls, and the thread."""
        self._is_ended = True
        self._transport.streams.discard(self)
        self._outbox.put(None)
        if self._thread is not None:
            self._on_loop(self._stopped.set)
            if self._thread is not threading.current_thread():  # the garbage collector may use it
                self._thread.join(_JOIN_S)

    def _put(self, request: Request) -> None:
        self._ready.append(request)
        if self._thread is None:
            self._loop = new_event_loop()
            thread = threading.Thread(target=self._run, name="judgebench-transport", daemon=True)
            thread.start()
            self._thread = thread
        elif self._is_hungry:
            self._is_hungry = False
            self._on_loop(self._start_ready)

    def _on_loop(self, act: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: all has ended
            self._loop.call_soon_threadsafe(act)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        try:
            async with self._opened() as self._attempt:
                self._start_ready()
                await self._stopped.wait()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
        except BaseException as error:
            self._outbox.put(error)

    def _start_ready(self) -> None:
        """Start what is ready; hand over all that has finished where nothing is in flight."""
        while len(self._tasks) < self._n_allowed and not self._draining.is_set():
            self._is_hungry = True  # before looking: what is put from now on wakes this again
            if not self._ready:
                break
            self._is_hungry = False
            task = self._loop.create_task(self._ask(self._transport.call(self._ready.popleft())))
            self._tasks.add(task)
            task.add_done_callback(self._end_task)
        if not self._tasks:
            self._hand_over()
            if self._draining.is_set():
                self._outbox.put(self._error)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start_ready()

    def _hand_over(self) -> None:
        for reply in self._finished:
            self._outbox.put(reply)
        self._finished.clear()

    def _drain(self, error: BaseException | None = None) -> None:
        """Start no other call, and end the stream, with this error, once those in flight have."""
        if self._draining.is_set():
            return
        self._draining.set()
        self._error = error
        if (n_others := len(self._tasks) - 1) > 0 and error is not None:
            _LOG.warning(
                "%s: no other call starts; %d may end (%s)",
                self._transport.where, n_others, self._transport.secrets.scrubbed(str(error)),
            )  # fmt: skip
        self._start_ready()

    def _check_draining(self) -> None:
        if self._draining.is_set():
            raise asyncio.CancelledError

    async def _sleep(self, seconds: float) -> None:
        """Wait, unless the stream is drained: what waits is then dropped."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._draining.wait(), seconds)
        self._check_draining()

    async def _ask(self, call: _Call) -> None:
        """Put the call's reply, or what ends the stream."""
        transport = self._transport
        try:
            self._finished.append(transport.outcome(call, await self._completed(call)))
            if len(self._finished) == 1:
                self._loop.call_later(_TOGETHER_S, self._hand_over)
        except SetupError as error:
            # The foreign error underneath is dropped: it may hold the key.
            about = partial(transport.about, call.request)
            self._drain(SetupError([replace(p, message=about(p.message)) for p in error.problems]))
        except Exception as error:
            self._drain(error)

    async def _completed(self, call: _Call) -> Reply:
        """The outcome of a call; `failed` where it fails alone. Raises what ends the stream."""
        try:
            return await self._retried(call)
        except (SetupError, TransientError) as error:
            fault = error
        if not self._transport.fails_alone(call, fault):
            await self._check_endpoint(call)
        if isinstance(fault, TransientError) and self._transport.came_back > call.began:
            call.n_faults = 0
            return await self._completed(call)
        return Reply("", "", "failed", error=failure_reason(fault))

    async def _retried(self, call: _Call) -> Reply:
        """Try until an answer comes or the call is lost, which raises its last fault."""
        try:  # without tenacity, which takes longer than all else that is done with a reply
            return await self._try(call)
        except TransientError as error:
            faults = [error]

        async def again() -> Reply:
            if faults:  # the try that brought us here
                raise faults.pop()
            return await self._try(call)

        return await self._retrying(partial(self._transport.is_lost, call))(again)

    def _retrying(self, stop: Callable[[RetryCallState], bool], **hooks: Any) -> AsyncRetrying:
        return AsyncRetrying(
            self._sleep, stop=stop, wait=self._transport.wait,
            retry=retry_if_exception_type(TransientError), reraise=True, **hooks,
        )  # fmt: skip

    async def _try(self, call: _Call) -> Reply:
        async with self._door:
            while (wait := self._transport.limiter.start(call.n_tokens)) > 0:
                await self._sleep(min(wait, _LONGEST_SLEEP_S))
            self._check_draining()
        call.n_tries += 1
        call.began = monotonic()
        try:
            done = await self._attempt(call.request)
        except TransientError as error:
            call.n_faults += not isinstance(error, RateLimitedError)
            raise
        self._transport.answered(call, done)
        return done

    async def _check_endpoint(self, call: _Call) -> None:
        """Ask the endpoint a few words in the way of this call, unless it has replied to anything
        since its last try began. Raises SetupError where it refuses them, EndpointDown."""
        async with self._door:
            self._check_draining()
            if self._transport.last_reply > call.began:
                return
            retrying = self._retrying(
                self._transport.is_down, before_sleep=self._transport.report_silence
            )
            try:
                await retrying(self._attempt, replace(call.request, messages=FEW_WORDS))
            except TransientError as error:
                raise self._transport.down(call.request, error) from None
            self._transport.replied()
            if retrying.statistics["attempt_number"] > 1:
                self._transport.answers_again()
