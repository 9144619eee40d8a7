"""Stopping: Ctrl-C once lets answers in flight finish, twice ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol


class Interrupted(KeyboardInterrupt):
    """The user stopped the run. What was written is kept. `at_once`: work was cut off in flight."""

    def __init__(self, at_once: bool = False) -> None:
        super().__init__("stopped at once" if at_once else "stopped")
        self.at_once = at_once


class StopSign(Protocol):
    """What whoever draws tasks looks at before the next."""

    @property
    def wanted(self) -> bool:
        """Whether no further answers are to be asked for."""
        ...


class Stop:
    """Whether a run is to end; read by every thread that draws tasks."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.interrupted = False

    def __call__(self) -> None:
        """No further answers are asked for; those in flight are waited for."""
        self._event.set()

    @property
    def wanted(self) -> bool:
        """Whether it was asked for."""
        return self._event.is_set()


@contextmanager
def ctrl_c(stop: Stop, tell: Callable[[str], None]) -> Iterator[None]:
    """While it lasts, a first SIGINT stops softly and a second raises Interrupted.

    Signals reach the main thread alone; called from another one, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.interrupted:
            raise Interrupted(at_once=True)
        stop.interrupted = True
        stop()
        tell("Finishing the answers in flight. Press Ctrl-C again to stop at once.")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
