"""Who looks on while a run goes: a progress display, a test."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from judgebench.records import Verdict


class Watcher(Protocol):
    """Is told what happens. Several judges work at once, but its methods are called one by one."""

    def judge_started(self, name: str, total: int, done: int) -> None:
        """A judge begins: of `total` answers, `done` were judged before."""
        ...

    def verdict(self, verdict: Verdict) -> None:
        """A verdict was written."""
        ...

    def judge_ended(self, name: str) -> None:
        """A judge has done what it could."""
        ...

    def told(self, message: str) -> None:
        """Something that the user should read."""
        ...


class Silence:
    """A Watcher that looks away."""

    def judge_started(self, name: str, total: int, done: int) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def judge_ended(self, name: str) -> None: ...

    def told(self, message: str) -> None: ...


class OneByOne:
    """Passes on to a Watcher what several threads tell, one at a time."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._lock = threading.RLock()

    def judge_started(self, name: str, total: int, done: int) -> None:
        with self._lock:
            self._watcher.judge_started(name, total, done)

    def verdict(self, verdict: Verdict) -> None:
        with self._lock:
            self._watcher.verdict(verdict)

    def judge_ended(self, name: str) -> None:
        with self._lock:
            self._watcher.judge_ended(name)

    def told(self, message: str) -> None:
        with self._lock:
            self._watcher.told(message)


@contextmanager
def telling(watcher: Watcher) -> Iterator[None]:
    """While it lasts, what backends log as a warning is told to the watcher."""
    logger = logging.getLogger("judgebench.backends")
    handler = _Teller(watcher)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Teller(logging.Handler):
    def __init__(self, watcher: Watcher) -> None:
        super().__init__(logging.WARNING)
        self._watcher = watcher

    def emit(self, record: logging.LogRecord) -> None:
        self._watcher.told(record.getMessage())
