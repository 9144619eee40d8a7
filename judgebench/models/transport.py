"""What every backend over a network shares: lazy pull, concurrency, retries, a clean end.

Requests are pulled in the thread that iterates, one for every reply that leaves. The calls run on
an event loop in a thread of their own (`calls.py`), which works in notebooks too; that thread and
its sockets live as long as the stream does.

A few requests are pulled ahead of those that may be in flight (a quarter of `concurrency`), so
that a connection that comes free is used at once and does not wait for the iterating thread.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from threading import RLock
from weakref import WeakSet

from tenacity import RetryCallState

from judgebench.models.calls import Call, Calls, Opened, Policy
from judgebench.models.chat import Completion, TransientError
from judgebench.models.contract import Reply, Request
from judgebench.models.pace import Pace
from judgebench.models.secrets import Secrets
from judgebench.models.settings import BackendSettings

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
        self._concurrency = settings.concurrency
        self._secrets = Secrets(settings.api_key_env)
        pace = Pace(where, settings, waits.first, waits.longest)
        self._policy = Policy(settings, waits, pace, where, limited_for_s, self._secrets)
        self._streams: WeakSet[Stream] = WeakSet()
        self._lock = RLock()  # Ctrl-C may come while this thread holds it

    def stream(self, opened: Opened, requests: Iterable[Request]) -> Stream:
        """One reply a request, as each finishes; see Stream."""
        self._secrets.read()  # the environment may have changed since
        bound = self._concurrency + self._concurrency // _AHEAD
        stream = Stream(Calls(opened, self._policy), requests, bound)
        with self._lock:
            self._streams.add(stream)
        return stream

    def reply(self, request: Request, done: Completion) -> Reply:
        """What a call came to that was made elsewhere, so without a latency."""
        return replace(self._policy.reply(Call(request, 0, tries=1), done), latency=0.0)

    def wind_down(self) -> None:
        """Start no other call: every stream ends once its calls in flight have. For any thread."""
        for stream in self._open_streams():
            stream.wind_down()

    def close(self) -> None:
        """End every stream that is still open, from whatever thread; see `Stream.close`."""
        for stream in self._open_streams():
            stream.close()

    def _open_streams(self) -> list[Stream]:
        with self._lock:
            return list(self._streams)


class Stream(Iterator[Reply]):
    """Replies, each as it finishes. No more than `bound` requests are held at a time.

    Iterating raises SetupError where no request can succeed, and EndpointDown, after the replies
    of all calls in flight. It is for one thread; `wind_down` and `close` are for any.
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

    def wind_down(self) -> None:
        """Start no other call; the replies of those in flight still come. At any time."""
        self._calls.wind_down()

    def close(self) -> None:
        """End all work in flight, and the stream: whoever iterates, in whatever thread, gets no
        more replies, and a StopIteration without any wait. May be called twice, at any time."""
        self._calls.end()

    def __del__(self) -> None:
        self._calls.end()
