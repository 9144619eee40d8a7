"""The pace of requests to an endpoint: limits that adapt, and a circuit for its faults.

One Pace stands for one endpoint. All streams of a backend share it, each from its own thread.

**Limit.** On a 429 the calls in flight (of each stream) are halved, once for all calls that were
in flight together; every answer adds a small share of a call, so that a whole round of answers
adds one (additive increase, multiplicative decrease, as TCP does: Chiu and Jain 1989). The limit
stays between 1 and `concurrency`. While a Retry-After lasts, no call starts.

**Circuit.** It opens when two tries for each of `concurrency` calls (one try, where `max_retries`
is 1) have failed in a row with no answer between them, and before one of these calls has used up
its retries. Fewer than four calls must use up all of them first, so that a request that always
fails does not open it when nothing else is left to ask. Then one call at a time is sent as a
probe, at growing intervals, until one is answered. An endpoint that stays silent for `down_for_s`
after that is down.
"""

from __future__ import annotations

import logging
import math
import threading
from time import localtime, monotonic, strftime, time

from judgebench.errors import EndpointDown
from judgebench.models.settings import BackendSettings

_LOG = logging.getLogger("judgebench.models")
_TOLD_FROM_S = 30.0  # waits from here on are reported
_LONGEST_DEBT_S = 60.0  # for tokens used beyond those expected: limits look back one minute


def clock(seconds: float) -> str:
    """The time of day in so many seconds."""
    return strftime("%H:%M:%S", localtime(time() + seconds))


class Pace:
    """`where` names the endpoint in messages. Intervals between probes begin at `first_s`,
    double, and end at `longest_s`."""

    def __init__(
        self, where: str, settings: BackendSettings, first_s: float, longest_s: float
    ) -> None:
        self._where, self._settings = where, settings
        self._lock = threading.Lock()
        self._limit = float(settings.concurrency)
        self._halved = -math.inf
        self._paused_until = 0.0
        self._next_request = 0.0  # by requests_per_minute
        self._next_tokens = 0.0  # by tokens_per_minute
        calls, retries = settings.concurrency, settings.max_retries
        self._opens_with = max(4, calls)  # different calls
        self._opens_at = min(2 * calls, calls * retries + 1) if calls >= 4 else 4 * (retries + 1)
        self._failed_in_a_row = 0
        self._failing: set[int] = set()
        self._opened: float | None = None
        self._first_s, self._longest_s = first_s, longest_s
        self._interval = first_s
        self._next_probe = 0.0
        self._told_until = 0.0
        self.last_answer = -math.inf

    @property
    def limit(self) -> int:
        """The number of calls that a stream may have in flight."""
        return int(self._limit)

    @property
    def is_open(self) -> bool:
        """Return whether the circuit is open: the endpoint is only probed."""
        return self._opened is not None

    def start(self, in_flight: int, tokens: int) -> float:
        """Seconds until a call of so many tokens may start: 0 now, and it is counted as started;
        infinity: when one of those in flight ends. Raises EndpointDown."""
        with self._lock:
            if in_flight >= self.limit:
                return math.inf
            now = monotonic()
            wait = max(self._paused_until, self._next_request, self._next_tokens) - now
            if self._opened is not None:
                left = self._opened + self._settings.down_for_s - now
                if left <= 0:
                    raise EndpointDown(
                        f"{self._where} has answered nothing for {self._settings.down_for_s:g} s; "
                        "what it did not answer is asked when the run is started again"
                    )
                wait = min(max(wait, self._next_probe - now), left)
            if wait > 0:
                if self._opened is None and self._next_tokens - now == wait:
                    self.tell(wait, f"tokens_per_minute: {self._settings.tokens_per_minute:g}")
                elif self._opened is None and self._next_request - now == wait:
                    self.tell(wait, f"requests_per_minute: {self._settings.requests_per_minute:g}")
                return wait
            if self._opened is not None:  # the next probe waits for the outcome of this one
                self._next_probe = now + self._settings.timeout_s + self._interval
            if requests := self._settings.requests_per_minute:
                self._next_request = max(now, self._next_request) + 60 / requests
            if limit := self._settings.tokens_per_minute:
                self._next_tokens = max(now, self._next_tokens) + tokens * 60 / limit
            return 0.0

    def answered(self, expected_tokens: int, tokens: int | None) -> None:
        """A call came back, having used `tokens` of both kinds (None: the endpoint did not say)."""
        with self._lock:
            self.last_answer = monotonic()
            self._limit = min(self._settings.concurrency, self._limit + 1 / self._limit)
            if tokens is not None and (limit := self._settings.tokens_per_minute):
                booked = self._next_tokens + (tokens - expected_tokens) * 60 / limit
                most = max(self._next_tokens, self.last_answer + _LONGEST_DEBT_S)
                self._next_tokens = min(booked, most)
            self._alive()

    def limited(self, began: float, in_flight: int) -> None:
        """A call that began at `began` (monotonic) was answered with a rate limit."""
        with self._lock:
            if began >= self._halved:
                self._halved = monotonic()
                self._limit = max(1.0, min(self._limit, in_flight) // 2)
            self._alive()

    def pause(self, seconds: float) -> None:
        """No call starts for so long: the endpoint asked for it."""
        with self._lock:
            self._paused_until = max(self._paused_until, monotonic() + seconds)

    def tell(self, seconds: float, why: str, always: bool = True) -> None:
        """Report a long wait: until when, and for what; each but once, and, unless `always`, only
        where nothing is being answered meanwhile."""
        now = monotonic()
        quiet = always or now - self.last_answer >= _TOLD_FROM_S
        if quiet and seconds >= _TOLD_FROM_S and now + seconds >= self._told_until + _TOLD_FROM_S:
            self._told_until = now + seconds
            _LOG.warning("%s: waiting until %s (%s)", self._where, clock(seconds), why)

    def _alive(self) -> None:
        self._failed_in_a_row = 0
        self._failing.clear()
        if self._opened is not None:
            self._opened = None
            _LOG.warning("%s answers again", self._where)

    def failed(self, call: int, began: float, said: str) -> None:
        """A try at `call` that began at `began` (monotonic) failed with the endpoint's fault;
        `said`, which holds no secrets, is reported when the circuit opens."""
        with self._lock:
            now = monotonic()
            self._failed_in_a_row += 1
            self._failing.add(call)
            many = len(self._failing) >= self._opens_with
            if self._opened is None and many and self._failed_in_a_row >= self._opens_at:
                self._opened, self._interval = now, self._first_s
                self._next_probe = now + self._interval
                _LOG.warning(
                    "%s failed %d times in a row (%s): no call is sent until it answers a probe; "
                    "the run ends if that takes more than %g s",
                    self._where, self._failed_in_a_row, said, self._settings.down_for_s,
                )  # fmt: skip
            elif self._opened is not None and began >= self._opened:
                self._interval = min(2 * self._interval, self._longest_s)
                self._next_probe = now + self._interval
