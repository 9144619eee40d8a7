"""The common part of backends over a network: lazy pull, concurrency, retries, a clean end.

Requests are pulled in the thread that iterates, one for every reply that leaves. The calls of a
stream run on an event loop in a thread of their own, which works in notebooks too; that thread and
its sockets live as long as the stream does. All of `Calls` but `put`, `get` and `end` runs on the
loop; requests wait in `_ready` until the endpoint's Pace lets them start. `Transport` is what the
streams of a backend share: when a call is lost, and what it came to.

A call that fails does so alone where the endpoint replies to others: once it has replied, fewer
than MANY_IN_A_ROW calls have failed since, and, where tries ran out, it has replied to somebody
since the first. Otherwise the endpoint is asked a few words in the same way. If it replies, the
call failed; if it refuses them too, or says nothing for `down_for_s` (at once where it has never
replied), the stream ends.

A few requests are pulled ahead of those that may be in flight (a quarter of `concurrency`), so
that a connection that comes free is used at once and does not wait for the iterating thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from weakref import WeakSet

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from judgebench.errors import EndpointDown, SetupError
from judgebench.models.chat import (
    Completion,
    RateLimitedError,
    TransientError,
    UnreachableError,
    failure_reason,
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
    first: float = 0.0  # when the first try began


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
# A prompt from so many bytes on was cut off where it has fewer tokens for each byte than the other
# prompts, by this factor. Bytes of any script have about as many; until others are known, 1/16.
_LONG_PROMPT, _FEWER_TOKENS = 10_000, 4
_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)  # of one character, which takes few tokens
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
        self._probe: asyncio.Future[bool] | None = None
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
            if self._probe is not None:
                return
            wait = self._pace.start(self._in_flight, self._ready[0].tokens)
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
            about = partial(self._transport.about, call.request)
            self._drain(SetupError([replace(p, message=about(p.message)) for p in error.problems]))
        except Exception as error:
            self._drain(error)

    async def _completed(self, call: Call) -> Completion:
        """The outcome of a call; `failed` where it fails alone. Raises what ends the stream."""
        try:
            return await self._retried(call)
        except (SetupError, TransientError) as error:
            fault = error
        if not self._transport.fails_alone(call, fault):
            was_down = await self._replies(call.request)
            if was_down and isinstance(fault, TransientError):
                call.faults = 0
                return await self._completed(call)
        return Completion("", "failed", error=failure_reason(fault))

    async def _retried(self, call: Call) -> Completion:
        """Try until an answer comes or the call is lost, which raises its last fault."""
        if call.tries:
            await self._turn(call)
        try:
            return await self._try(call)
        except TransientError as error:
            faults = [error]

        async def again() -> Completion:
            if faults:  # the try that brought us here
                raise faults.pop()
            await self._turn(call)
            return await self._try(call)

        return await self._retrying(partial(self._transport.is_lost, call))(again)

    def _retrying(self, stop: Callable[[RetryCallState], bool]) -> AsyncRetrying:
        retry = retry_if_exception_type(TransientError)
        return AsyncRetrying(stop=stop, wait=self._transport.wait, retry=retry, reraise=True)

    async def _turn(self, call: Call) -> None:
        """Wait until the endpoint's pace lets the call start again."""
        call.turn = asyncio.get_running_loop().create_future()
        self._ready.append(call)
        self._start_ready()
        await call.turn

    async def _replies(self, request: Request) -> bool:
        """Ask the endpoint a few words in the way of this request, once for all calls that fail
        meanwhile; no other call starts. Return whether it was down: it did not reply at first.
        Raises SetupError where it refuses them, EndpointDown."""
        if self._probe is None:
            self._probe = asyncio.ensure_future(self._few_words(request))
        try:
            return await asyncio.shield(self._probe)
        finally:
            self._probe = None
            asyncio.get_running_loop().call_soon(self._start_ready)

    async def _few_words(self, request: Request) -> bool:
        n_tries, transport = 0, self._transport

        async def ask() -> None:
            nonlocal n_tries
            n_tries += 1
            try:
                await self._attempt(replace(request, messages=FEW_WORDS))
            except TransientError as error:
                if n_tries == 1 and not transport.never_replied:
                    transport.tell_of_silence(str(error))
                raise

        try:
            await self._retrying(transport.is_down)(ask)
        except TransientError as error:
            raise transport.down(request, error) from None
        transport.replied()
        if n_tries > 1:
            _LOG.warning("%s answers again", transport.where)
        return n_tries > 1

    async def _try(self, call: Call) -> Completion:
        call.tries += 1
        call.began = time.monotonic()
        call.first = call.first or call.began
        try:
            done = await self._attempt(call.request)
        except RateLimitedError:
            self._pace.limited(call.began, self._in_flight)
            raise
        except TransientError:
            call.faults += 1
            raise
        else:
            used = done.usage.prompt_tokens, done.usage.completion_tokens
            tokens = None if None in used else sum(n or 0 for n in used)
            self._pace.answered(call.tokens, tokens)
            self._transport.replied()
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
    `longest` where it is not given.
    """

    first: float = 2.0
    longest: float = 120.0
    longest_asked: float | None = None

    def __call__(self, state: RetryCallState) -> float:
        error = _fault(state)
        asked = error.after if isinstance(error, TransientError) else None
        longest = self.longest if asked is None else self.longest_asked or self.longest
        wait = self.first * 2.0 ** min(state.attempt_number - 1, 64) if asked is None else asked
        return min(wait + random.uniform(0, self.first), longest)


DEFAULT_WAITS = Waits(longest_asked=600.0)
LIMITED_FOR_S = 3600.0
MANY_IN_A_ROW = 10


class Transport:
    """Runs tries for streams of requests to one endpoint, within the limits of `settings`.

    `where` names the endpoint in messages. A 429 uses up no retry: a call is tried again for
    up to `limited_for_s` seconds.
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
        self.pace = Pace(where, settings)
        self._last_reply, self._n_failed = -math.inf, 0  # calls that failed since
        self._prompt_bytes, self._prompt_tokens = 16, 1
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
        if cut_off := self._cut_off(call.request, usage.prompt_tokens):
            done = Completion("", "too_long", cost=done.cost, error=cut_off, model=done.model)
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

    def replied(self) -> None:
        """The endpoint has replied to a call."""
        self._last_reply, self._n_failed = time.monotonic(), 0

    def fails_alone(self, call: Call, fault: SetupError | TransientError) -> bool:
        """Count a call that failed; whether the endpoint is known to reply to others."""
        self._n_failed += 1
        since = call.first if isinstance(fault, TransientError) else 0.0
        return self._last_reply > since and self._n_failed < MANY_IN_A_ROW

    def is_lost(self, call: Call, state: RetryCallState) -> bool:
        """Return whether a call that failed is not to be tried again. Where there never was a
        server, its address is most often wrong."""
        if isinstance(_fault(state), RateLimitedError):
            return time.monotonic() - call.first > self._limited_for_s
        absent = isinstance(_fault(state), UnreachableError) and self.never_replied
        return absent or call.faults > self.settings.max_retries

    def is_down(self, state: RetryCallState) -> bool:
        """Return whether an endpoint that is silent is no longer asked a few words."""
        return self.never_replied or (state.seconds_since_start or 0) >= self.settings.down_for_s

    @property
    def never_replied(self) -> bool:
        """Return whether nothing was ever answered."""
        return self._last_reply == -math.inf

    def about(self, request: Request, said: str) -> str:
        """The message without secrets, and the item that was asked about."""
        scrubbed = self.secrets.scrubbed(said)
        return f"{scrubbed} (asked about {request.item})" if request.item else scrubbed

    def tell_of_silence(self, said: str) -> None:
        """Report that the endpoint does not reply."""
        _LOG.warning(
            "%s replies to nobody (%s): no call is sent until it replies to a few words; its judge "
            "stops if that takes more than %g s",
            self.where, self.secrets.scrubbed(said), self.settings.down_for_s,
        )  # fmt: skip

    def down(self, request: Request, fault: TransientError) -> EndpointDown:
        """The error of an endpoint that has replied to nobody for too long."""
        said = self.about(request, str(fault))
        if self.never_replied:
            return EndpointDown(said)
        return EndpointDown(
            f"{self.where} has answered nothing for {self.settings.down_for_s:g} s; what it did "
            f"not answer is asked when the run is started again: {said}"
        )

    def wait(self, state: RetryCallState) -> float:
        """Seconds until a call may be tried again. Where the endpoint asked for them, no other
        call starts before that either."""
        seconds, error = self._waits(state), _fault(state)
        asked = isinstance(error, TransientError) and error.after is not None
        if asked:
            self.pace.pause(seconds)
        if asked or isinstance(error, RateLimitedError):
            self.pace.tell(seconds, self.secrets.scrubbed(str(error)), always=asked)
        return seconds


def _n_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _fault(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


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
