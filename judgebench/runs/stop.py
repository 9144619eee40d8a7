"""Several judges at once, each at its own pace, and how they stop.

Every remote judge has a lane, which is a thread. Engines inside this process would take the cores
and the memory from each other, so they share one lane and work one after another. Ctrl-C once lets
answers in flight finish, twice ends at once; and so does once where something is learnt, if that
takes longer than PATIENCE_S: what was learnt or answered by then is kept.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import FrameType
from typing import Protocol, TypeVar

from judgebench.errors import BudgetSpent, JudgebenchError, Problem, SetupError
from judgebench.progress import Progress

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

PATIENCE_S = 6.0  # a fit, or a step of a training, may take minutes
_GLANCE_S = 0.2  # a thread that waits longer than this would not see a signal in time


class Interrupted(KeyboardInterrupt):
    """The user stopped the run. What was written is kept. `at_once`: work was cut off in flight."""

    def __init__(self, at_once: bool = False) -> None:
        super().__init__("stopped at once" if at_once else "stopped")
        self.at_once = at_once


class StopSign(Protocol):
    """A sign to draw no further tasks, looked at before each."""

    @property
    def wanted(self) -> bool:
        """True where no further answers are to be asked for."""
        ...


class Stop:
    """The request to end a run, read by every thread that draws tasks."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._then: list[Callable[[], object]] = []
        self.interrupted = False

    def __call__(self) -> None:
        """No further answers are asked for; those in flight are waited for."""
        self._event.set()
        for act in self._then:
            act()

    def then(self, act: Callable[[], object]) -> None:
        """Do this too when it is asked for, in whatever thread asks."""
        self._then.append(act)

    @property
    def wanted(self) -> bool:
        """True once it was requested."""
        return self._event.is_set()


@contextmanager
def ctrl_c(
    stop: Stop,
    tell: Callable[[str], None],
    patience_s: float | None = None,
    *,
    what: str = "the answers in flight",
) -> Iterator[None]:
    """While it lasts, a first SIGINT stops softly, after `what`, and a second raises Interrupted.
    With `patience_s` the second comes by itself after so many seconds.

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
        if patience_s is not None:
            second.start()
        tell(f"Finishing {what}. Press Ctrl-C again to stop at once.")

    second = threading.Timer(patience_s or 0, signal.raise_signal, [signal.SIGINT])
    second.daemon = True
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        second.cancel()
        signal.signal(signal.SIGINT, before)


def run_lanes(
    lanes: Mapping[str, Callable[[], None]],
    stop: Stop,
    progress: Progress,
    drain: Callable[[], None],
) -> None:
    """Run every lane to its end. `drain` is called, again and again, after a stop: what waits
    to be asked is then no longer waited for.

    A lane that fails ends alone: its error is reported at once, the other lanes continue, and the
    error is raised when all have ended. Any other exception stops the other lanes softly.
    Raises Interrupted after a Ctrl-C, and at once after a second one.
    """
    errors: list[BaseException] = []
    running = set(lanes)

    def lane(name: str) -> None:
        try:
            lanes[name]()
        except JudgebenchError as error:
            errors.append(error)
            if running - {name}:  # else it is reported anyway, as the error that ends the run
                progress.say(f"{name} stopped: {error}")
        except BaseException as error:
            errors.insert(0, error)
            stop()
        finally:
            running.discard(name)

    threads = [threading.Thread(target=lane, args=(name,), daemon=True) for name in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_GLANCE_S)
            if stop.wanted:
                drain()
    if stop.interrupted:
        raise Interrupted
    if errors:
        raise _as_one(errors)


def _as_one(errors: Sequence[BaseException]) -> BaseException:
    """Every problem of files and settings at once; else the first error."""
    setup = [error for error in errors if isinstance(error, SetupError)]
    if len(setup) == len(errors) > 1:
        return SetupError([problem for error in setup for problem in error.problems])
    return errors[0]


class Budget:
    """US dollars for all who share it, whatever thread they are in; `limit` None means any sum.

    `spent` is what the run folder has cost so far, `highest` the most that one call has cost or
    is expected to.
    """

    def __init__(self, limit: float | None, spent: float = 0.0, highest: float = 0.0) -> None:
        self._limit = limit
        self.spent = spent
        self._highest = highest
        self._in_flight = 0
        self._lock = threading.Condition()

    def expect(self, cost: float) -> None:
        """One of the calls to come is expected to cost so much."""
        with self._lock:
            self._highest = max(self._highest, cost)

    def may_ask(self) -> bool:
        """True where one more call fits, should it and all in flight cost as much as the most
        expensive one so far; if so, it counts as in flight until it is paid."""
        with self._lock:
            fits = self._has_room()
            self._in_flight += fits
            return fits

    def _has_room(self) -> bool:
        most = self.spent + (self._in_flight + 1) * self._highest
        return self._limit is None or most <= self._limit

    def has_room(self, halted: Callable[[], bool]) -> bool:
        """True where one more call fits once the calls in flight, of other judges, have ended."""
        with self._lock:
            while self._in_flight and not self._has_room() and not halted():
                self._lock.wait(_GLANCE_S)
            return self._has_room()

    def release(self, n: int) -> None:
        """So many calls ended with no reply to pay for."""
        with self._lock:
            self._in_flight -= n
            self._lock.notify_all()

    def pay(self, cost: float | None, price_field: str = "") -> SetupError | None:
        """Count what a call cost, None if unknown. `price_field` names the setting that would
        tell; without it nothing was paid for. Returns the error to raise, once the calls in
        flight have ended, where a limit cannot be kept."""
        with self._lock:
            self._in_flight -= 1
            self.spent += cost or 0.0
            self._highest = max(self._highest, cost or 0.0)
            self._lock.notify_all()
        if self._limit is not None and cost is None and price_field:
            message = (
                "a budget needs to know what a call costs, and a reply came without it: state its "
                "price, and use an endpoint that counts its tokens"
            )
            return SetupError(Problem(message, field=price_field))
        return None

    def spent_up(self) -> BudgetSpent:
        """The error that says so."""
        return BudgetSpent(
            f"the budget of ${self._limit:g} is used up: ${self.spent:.4f} spent in this run "
            f"folder, and one more call may cost ${self._highest:.4f}; run again with a larger "
            "budget to go on"
        )


def within_budget(
    tasks: Iterable[Task],
    ask: Callable[[Iterator[Task]], Iterator[Outcome]],
    budget: Budget,
    halted: Callable[[], bool],
) -> Generator[Outcome, None, None]:
    """The outcomes of all tasks, which `ask` draws while the budget has room for one more beside
    all in flight. Where it has none, the rest is asked when these have ended. Raises BudgetSpent.

    Whoever iterates pays for each outcome. Nothing is drawn once it is `halted`.
    """
    due, withheld, n_open = iter(tasks), list[Task](), 0

    def drawn() -> Iterator[Task]:
        nonlocal n_open
        for task in due:
            if halted():
                return
            if not budget.may_ask():
                withheld.append(task)
                return
            n_open += 1
            yield task

    while True:
        outcomes = ask(drawn())
        try:
            for outcome in outcomes:
                n_open -= 1
                yield outcome
        finally:
            close = getattr(outcomes, "close", None)
            if close is not None:
                close()
            budget.release(n_open)
        if not withheld or halted():
            return
        if not budget.has_room(halted):
            raise budget.spent_up()
        due, n_open = chain([withheld.pop()], due), 0
