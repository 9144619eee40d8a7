"""The pace of requests to an endpoint: limits that are set, and one that adapts.

One Pace stands for one endpoint. All streams of a backend share it, each from its own thread.

**Limit.** On a 429 the calls in flight (of each stream) are halved, once for all calls that were
in flight together; every answer adds a small share of a call, so that a whole round of answers
adds one (additive increase, multiplicative decrease, as TCP does: Chiu and Jain 1989). The limit
stays between 1 and `concurrency`. While a Retry-After lasts, no call starts.
"""

from __future__ import annotations

import logging
import math
import threading
from time import localtime, monotonic, strftime, time

from judgebench.models.settings import BackendSettings

_LOG = logging.getLogger("judgebench.models")
_TOLD_FROM_S = 30.0  # waits from here on are reported
_LONGEST_DEBT_S = 60.0  # for tokens used beyond those expected: limits look back one minute


def clock(seconds: float) -> str:
    """The time of day in so many seconds."""
    return strftime("%H:%M:%S", localtime(time() + seconds))


class Pace:
    """`where` names the endpoint in messages."""

    def __init__(self, where: str, settings: BackendSettings) -> None:
        self._where, self._settings = where, settings
        self._lock = threading.Lock()
        self._limit = float(settings.concurrency)
        self._halved = -math.inf
        self._paused_until = 0.0
        self._next_request = 0.0  # by requests_per_minute
        self._next_tokens = 0.0  # by tokens_per_minute
        self._told_until = 0.0
        self._last_answer = -math.inf

    @property
    def limit(self) -> int:
        """The number of calls that a stream may have in flight."""
        return int(self._limit)

    def start(self, in_flight: int, tokens: int) -> float:
        """Seconds until a call of so many tokens may start: 0 now, and it is counted as started;
        infinity: when one of those in flight ends."""
        with self._lock:
            if in_flight >= self.limit:
                return math.inf
            now = monotonic()
            wait = max(self._paused_until, self._next_request, self._next_tokens) - now
            if wait > 0:
                if self._next_tokens - now == wait:
                    self.tell(wait, f"tokens_per_minute: {self._settings.tokens_per_minute:g}")
                elif self._next_request - now == wait:
                    self.tell(wait, f"requests_per_minute: {self._settings.requests_per_minute:g}")
                return wait
            if requests := self._settings.requests_per_minute:
                self._next_request = max(now, self._next_request) + 60 / requests
            if limit := self._settings.tokens_per_minute:
                self._next_tokens = max(now, self._next_tokens) + tokens * 60 / limit
            return 0.0

    def answered(self, expected_tokens: int, tokens: int | None) -> None:
        """A call came back, having used `tokens` of both kinds (None: the endpoint did not say)."""
        with self._lock:
            self._last_answer = monotonic()
            self._limit = min(self._settings.concurrency, self._limit + 1 / self._limit)
            if tokens is not None and (limit := self._settings.tokens_per_minute):
                booked = self._next_tokens + (tokens - expected_tokens) * 60 / limit
                most = max(self._next_tokens, self._last_answer + _LONGEST_DEBT_S)
                self._next_tokens = min(booked, most)

    def limited(self, began: float, in_flight: int) -> None:
        """A call that began at `began` (monotonic) was answered with a rate limit."""
        with self._lock:
            if began >= self._halved:
                self._halved = monotonic()
                self._limit = max(1.0, min(self._limit, in_flight) // 2)

    def pause(self, seconds: float) -> None:
        """No call starts for so long: the endpoint asked for it."""
        with self._lock:
            self._paused_until = max(self._paused_until, monotonic() + seconds)

    def tell(self, seconds: float, why: str, always: bool = True) -> None:
        """Report a long wait: until when, and for what; each but once, and, unless `always`, only
        where nothing is being answered meanwhile."""
        now = monotonic()
        quiet = always or now - self._last_answer >= _TOLD_FROM_S
        if quiet and seconds >= _TOLD_FROM_S and now + seconds >= self._told_until + _TOLD_FROM_S:
            self._told_until = now + seconds
            _LOG.warning("%s: waiting until %s (%s)", self._where, clock(seconds), why)
