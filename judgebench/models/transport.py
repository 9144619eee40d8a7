"""The common part of backends over a network: lazy pull, concurrency, retries, a clean end.

Requests are pulled in the thread that iterates, one for every reply that leaves. The calls of a
stream run on an event loop in a thread of their own, which works in notebooks too; that thread and
its sockets live as long as the stream does. All of `Calls` but `put`, `get` and `end` runs on the
loop; requests wait in `_ready` until the endpoint's Pace lets them start. `Transport` is what the
streams of a backend share: when a call is lost, and what it came to.

A few requests are pulled ahead of those that may be in flight (a quarter of `concurrency`), so
that a connection that comes free is used at once and does not wait for the iterating thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from typing import cast
from weakref import WeakSet

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judgebench.errors import EndpointDown, SetupError
from judgebench.models.chat import (
    Completion,
    RateLimitedError,
    RefusedParameterError,
    TransientError,
    UnreachableError,
)
from judgebench.models.contract import Message, Reply, Request
from judgebench.models.pace import Pace, clock
from judgebench.models.settings import BackendSettings, Secrets

_CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English
_LOG = logging.getLogger("judgebench.models")


@dataclass(slots=True, eq=False)
class Call:
    """A request on its way. `faults` counts the failed tries that use up retries."""

    request: Request
    tokens: int
    turn: asyncio.Future[None] | None = None
    tries: int = 0
    faults: int = 0
    began: float = 0.0
    limited_since: float = math.inf


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, which takes two thirds of the processor time; asyncio's where there is no uvloop,
    as on Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


# One try at one request, and the opening (and closing) of what such tries need.
Attempt = Callable[[Request], Awaitable[Completion]]
Opened = Callable[[], AbstractAsyncContextManager[Attempt]]

FEW_WORDS = (Message("user", "Reply with a short example."),)
_JOIN_S = 10.0  # an engine that blocks in a thread of its own is left to its time limit
_LONGEST_SLEEP_S = 1.0
_NEWS_TOGETHER_S = 0.02
_NEWS_WANTED_S = 0.002


class Calls:
    """Asks what is `put`, and gives what came back, as each finishes. Starts with the first."""

    def __init__(self, opened: Opened, transport: Transport) -> None:
        self._opened, self._transport = opened, transport
        self._pace = transport.pace
        self._finished: deque[Reply | BaseException | None] = deque()
        self._news = threading.Event()
        self._waking = False
        self._ready: deque[Call] = deque()
        self._hungry = False  # whether the loop has looked at `_ready` and found nothing
        self._in_flight = 0
        self._replied = False
        self._probe: asyncio.Future[Completion] | None = None
        self._draining = False
        self._error: BaseException | None = None  # what ends the stream, once it is wound down
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.RLock()  # Ctrl-C may come while this thread holds it
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.ended = False

    def put(self, request: Request) -> None:
        """Ask this one too."""
        self._ready.append(Call(request, self._transport.expected_tokens(request)))
        if self._thread is None:
            self._begin()
        elif self._hungry:
            self._hungry = False
            self._on_loop(self._start_ready)

    def get(self, wait: bool) -> Reply | None:
        """A reply that has come; None where none has, or at the end, where `ended` is true. Raises
        what ended the stream."""
        while not self._finished:
            if not wait:
                return None
            self._news.wait()
            self._news.clear()
        outcome = self._finished.popleft()
        if isinstance(outcome, BaseException):
            raise outcome
        self.ended = self.ended or outcome is None
        return None if self.ended else outcome

    def drain(self) -> None:
        """Start no other call: the stream ends once those in flight have. For any thread."""
        if self._thread is None:
            self.end()
        else:
            self._on_loop(partial(self._drain, None))

    def end(self) -> None:
        """End all calls, and the thread. For any thread, any number of times."""
        with self._lock:
            self.ended = True
            thread, self._thread = self._thread, None
        self._finish(None)
        if thread is not None:
            self._on_loop(self._stop.set)
            if thread is not threading.current_thread():  # which the garbage collector may use
                thread.join(_JOIN_S)

    def _begin(self) -> None:
        with self._lock:
            if self.ended:
                return
            self._loop = new_event_loop()
            self._stop = asyncio.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._loop,), name="judgebench-transport", daemon=True
            )
            self._thread.start()

    def _on_loop(self, act: Callable[[], object]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed: all has ended
            return

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        try:
            async with self._opened() as attempt:
                self._attempt = attempt
                self._start_ready()
                await self._stop.wait()
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
        except BaseException as error:
            self._draining = True
            self._finish(error)

    def _drain(self, error: BaseException | None) -> None:
        """Start no other call, and end the stream, with this error, once those in flight have."""
        if self._draining:
            return
        self._draining, self._error = True, error
        if error is not None and self._in_flight:
            longest = self._transport.settings.timeout_s
            _LOG.warning(
                "%s: no other call starts; %d in flight may end until %s (%s)",
                self._transport.where, self._in_flight, clock(longest),
                self._transport.secrets.scrubbed(str(error)),
            )  # fmt: skip
        self._start_ready()

    def _finish(self, outcome: Reply | BaseException | None) -> None:
        self._finished.append(outcome)
        self._news.set()

    def _start_ready(self) -> None:
        """Start what is ready, as far as the endpoint takes it now."""
        while not self.ended:
            if self._draining:
                if not self._in_flight:
                    self._finish(self._error)
                return
            if not self._ready:
                self._hungry = True
                if not self._ready:  # looked at again: one may have come in between
                    return
            self._hungry = False
            try:
                wait = self._pace.start(self._in_flight, self._ready[0].tokens)
            except EndpointDown as error:
                self._drain(error)
                return
            if wait > 0:
                self._look_again_in(wait)
                return
            self._in_flight += 1
            self._start(self._ready.popleft())

    def _look_again_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds < math.inf:  # what another stream learns meanwhile may shorten it
            seconds = min(seconds, _LONGEST_SLEEP_S)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._start_ready)

    def _tell_of_news(self) -> None:
        """Wake whoever iterates: at once where nothing else is in flight, else after a moment,
        for several replies together; a short one where calls could start that nobody has put.
        Each waking makes two threads wait for each other, which costs as much as all that is
        done with a reply."""
        if not self._in_flight:
            self._news.set()
        elif not self._waking:
            self._waking = True
            wait = _NEWS_TOGETHER_S if self._ready else _NEWS_WANTED_S
            asyncio.get_running_loop().call_later(wait, self._wake)

    def _wake(self) -> None:
        self._waking = False
        self._news.set()

    def _start(self, call: Call) -> None:
        if call.turn is not None:
            if not call.turn.done():
                call.turn.set_result(None)
            return
        task = asyncio.get_running_loop().create_task(self._ask(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, call: Call) -> None:
        """Put the call's reply, or what ends the stream."""
        try:
            self._finished.append(self._transport.outcome(call, await self._completed(call)))
            self._tell_of_news()
        except SetupError as error:
            # The foreign error underneath is dropped: it may hold the key.
            scrubbed = self._transport.secrets.scrubbed
            told = [replace(p, message=scrubbed(p.message)) for p in error.problems]
            self._drain(SetupError(told))
        except Exception as error:
            self._drain(error)

    async def _completed(self, call: Call) -> Completion:
        """The outcome of a call, which is tried until an answer comes or it is lost."""
        try:
            return await self._try(call)
        except TransientError as error:
            first = error

        async def again() -> Completion:
            if call.turn is None:  # the try that brought us here
                call.turn = asyncio.get_running_loop().create_future()
                raise first
            call.turn = asyncio.get_running_loop().create_future()
            self._ready.append(call)
            self._start_ready()
            await call.turn
            return await self._try(call)

        retrying = AsyncRetrying(
            stop=partial(self._transport.is_lost, call),
            wait=self._transport.wait,
            retry=retry_if_exception_type(TransientError),
            reraise=True,
        )
        try:
            return cast(Completion, await retrying(again))
        except TransientError as error:
            return self._transport.gave_up(call, error)

    async def _tried(self, request: Request) -> Completion:
        """The outcome of one try. An endpoint that has replied takes the parameters: what it then
        says of them is about this request alone."""
        try:
            done = await self._attempt(request)
        except RefusedParameterError as error:
            if not (self._replied or await self._takes_others(request)):
                raise
            return Completion("", "failed", error=error.said)
        self._replied = self._replied or done.finish in ("stop", "length")
        return done

    async def _takes_others(self, request: Request) -> bool:
        """Ask whether the endpoint replies to a few words asked in the same way; all requests
        that it refuses meanwhile wait for the one reply. Raises TransientError."""
        if self._probe is None:
            probe = replace(request, messages=FEW_WORDS)
            self._probe = asyncio.ensure_future(self._attempt(probe))
        try:
            done = await asyncio.shield(self._probe)
        except TransientError:
            self._probe = None
            raise
        except SetupError:
            return False
        self._replied = self._replied or done.finish in ("stop", "length")
        return self._replied

    async def _try(self, call: Call) -> Completion:
        call.tries += 1
        call.began = time.monotonic()
        try:
            done = await self._tried(call.request)
        except RateLimitedError:
            call.limited_since = min(call.limited_since, call.began)
            self._pace.limited(call.began, self._in_flight)
            raise
        except TransientError as error:
            self._pace.failed(id(call), call.began, self._transport.secrets.scrubbed(str(error)))
            call.faults += not self._pace.is_open  # what fails while all do uses up no retry
            raise
        else:
            used = done.usage.prompt_tokens, done.usage.completion_tokens
            tokens = None if None in used else sum(n or 0 for n in used)
            self._pace.answered(call.tokens, tokens)
            return done
        finally:
            self._in_flight -= 1
            # Not before this task sleeps: it may be about to say that no call is to start.
            asyncio.get_running_loop().call_soon(self._start_ready)


_AHEAD = 4  # one request in so many may be pulled ahead


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds between tries: `first`, doubled each time, plus jitter; at most `longest`.

    A Retry-After takes the place of the doubling, and is obeyed up to `longest_asked`, which is
    `longest` where it is not given. Probes of an endpoint that is down begin at `first` too,
    double, and end at `longest`.
    """

    first: float = 2.0
    longest: float = 120.0
    longest_asked: float | None = None

    def __call__(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.after if isinstance(error, TransientError) else None
        longest = self.longest if asked is None else self.longest_asked or self.longest
        wait = self.first * 2.0 ** min(state.attempt_number - 1, 64) if asked is None else asked
        return min(wait + random.uniform(0, self.first), longest)


DEFAULT_WAITS = Waits(longest_asked=600.0)
LIMITED_FOR_S = 3600.0


class Transport:
    """Runs tries for streams of requests to one endpoint, within the limits of `settings`.

    `where` names the endpoint in messages. A 429 uses up no retry: a call is tried again for
    up to `limited_for_s` seconds; when it then still meets a rate limit, it fails, or,
    where the endpoint has answered nothing at all since, the stream raises EndpointDown.
    """

    def __init__(
        self,
        settings: BackendSettings,
        waits: Waits,
        where: str = "the endpoint",
        limited_for_s: float = LIMITED_FOR_S,
    ) -> None:
        self.settings, self.where = settings, where
        self.secrets = Secrets(settings.api_key_env)
        self.pace = Pace(where, settings, waits.first, waits.longest)
        self._waits, self._limited_for_s = waits, limited_for_s
        self._streams: WeakSet[Stream] = WeakSet()
        self._lock = RLock()  # Ctrl-C may come while this thread holds it

    def stream(self, opened: Opened, requests: Iterable[Request]) -> Stream:
        """One reply a request, as each finishes; see Stream."""
        self.secrets.read()  # the environment may have changed since
        bound = self.settings.concurrency + self.settings.concurrency // _AHEAD
        stream = Stream(Calls(opened, self), requests, bound)
        with self._lock:
            self._streams.add(stream)
        return stream

    def reply(self, request: Request, done: Completion) -> Reply:
        """The reply of a call that was made elsewhere, so without a latency."""
        return replace(self.outcome(Call(request, 0, tries=1), done), latency=0.0)

    def drain(self) -> None:
        """Start no other call: every stream ends once its calls in flight have. For any thread."""
        for stream in self._open_streams():
            stream.drain()

    def close(self) -> None:
        """End every stream that is still open, from whatever thread; see `Stream.close`."""
        for stream in self._open_streams():
            stream.close()

    def _open_streams(self) -> list[Stream]:
        with self._lock:
            return list(self._streams)

    def expected_tokens(self, request: Request) -> int:
        """The tokens that a request may cost: its characters over 4, and the bound of its reply."""
        if self.settings.tokens_per_minute is None:
            return 0
        characters = sum(len(message.content) for message in request.messages)
        reply = request.max_tokens + self.settings.thinking_budget
        return characters // _CHARACTERS_A_TOKEN + reply

    def outcome(self, call: Call, done: Completion) -> Reply:
        """The reply of one call, tied to its request."""
        price, usage = self.settings.price, done.usage
        if usage.calls != call.tries:
            usage = replace(usage, calls=call.tries)
        return Reply(
            key=call.request.key,
            text=self.secrets.scrubbed(done.text),
            finish=done.finish,
            usage=usage,
            cost=price.cost(usage) if price else done.cost,
            latency=time.monotonic() - call.began,
            error=self.secrets.scrubbed(done.error),
            log_probabilities=done.log_probabilities,
            model=self.secrets.scrubbed_name(done.model),
            reasoning=self.secrets.scrubbed(done.reasoning),
        )

    def is_lost(self, call: Call, state: RetryCallState) -> bool:
        """Return whether a call that failed is not to be tried again."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, RateLimitedError):
            return time.monotonic() - call.limited_since > self._limited_for_s
        if isinstance(error, UnreachableError) and self._never_reached and self.pace.is_open:
            return True
        return call.faults > self.settings.max_retries

    def wait(self, state: RetryCallState) -> float:
        """Seconds until a call may be tried again. Where the endpoint asked for them, no other
        call starts before that either."""
        seconds = self._waits(state)
        error = state.outcome.exception() if state.outcome else None
        asked = isinstance(error, TransientError) and error.after is not None
        if asked:
            self.pace.pause(seconds)
        if asked or isinstance(error, RateLimitedError):
            self.pace.tell(seconds, self.secrets.scrubbed(str(error)), always=asked)
        return seconds

    @property
    def _never_reached(self) -> bool:
        return self.pace.last_answer == -math.inf

    def gave_up(self, call: Call, error: TransientError) -> Completion:
        """The outcome of a call that is lost. Raises EndpointDown where no endpoint was ever there,
        and where it answers nobody."""
        said = str(error)
        if isinstance(error, UnreachableError) and self._never_reached:
            raise EndpointDown(self.secrets.scrubbed(said))
        if isinstance(error, RateLimitedError) and self.pace.last_answer < call.limited_since:
            raise EndpointDown(
                f"{self.where} has answered nothing but this for "
                f"{self._limited_for_s:g} s: {self.secrets.scrubbed(said)}"
            )
        return Completion("", "failed", error=said)


class Stream(Iterator[Reply]):
    """Replies, each as it finishes. No more than `bound` requests are held at a time.

    Iterating raises SetupError where no request can succeed, and EndpointDown, after the replies
    of all calls in flight. It is for one thread; `drain` and `close` are for any.
    """

    def __init__(self, calls: Calls, requests: Iterable[Request], bound: int) -> None:
        self._calls = calls
        self._source = iter(requests)
        self._bound = bound
        self._more = True
        self._held = 0

    def __next__(self) -> Reply:
        try:
            reply = self._next()
        except BaseException:
            self.close()
            raise
        if reply is None:
            self.close()
            raise StopIteration
        return reply

    def _next(self) -> Reply | None:
        """The next reply; None at the end, or when the stream has been closed."""
        while not self._calls.ended and (self._more or self._held):
            if self._more and self._held < self._bound:
                request = next(self._source, None)
                self._more = request is not None
                if request is not None:
                    self._held += 1
                    self._calls.put(request)
            room = self._more and self._held < self._bound
            reply = self._calls.get(wait=self._held > 0 and not room)
            if reply is not None:
                self._held -= 1
                return reply
        return None

    def drain(self) -> None:
        """Start no other call; the replies of those in flight still come. At any time."""
        self._calls.drain()

    def close(self) -> None:
        """End all work in flight, and the stream: whoever iterates, in whatever thread, gets no
        more replies, and a StopIteration without any wait. May be called twice, at any time."""
        self._calls.end()

    def __del__(self) -> None:
        self._calls.end()
