"""Progress of long work: one protocol, one display, and a silent one."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from judgebench.records import Status, Verdict, add_known

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

_REDRAW_S = 0.1  # redrawing a bar costs more than many a verdict
# Without a terminal a line is printed after so many seconds, later after a share of those so far.
_SAY_S, _SAY_SHARE = 5.0, 0.1


class Progress(Protocol):
    """Follows pieces of work by their names: judges, generators, evaluators.

    Several may go on at once, each in a thread of its own.
    """

    def start(self, name: str, total: int, done: int) -> None:
        """Work of `total` steps begins; `done` of them were done before."""
        ...

    def advance(self, name: str, what: Verdict | str = "") -> None:
        """One more step is done: `what` is the verdict that was written, or a note on the step."""
        ...

    def say(self, message: str) -> None:
        """Something that the user should read."""
        ...


class NoProgress:
    """A Progress that shows nothing."""

    def start(self, name: str, total: int, done: int) -> None: ...

    def advance(self, name: str, what: Verdict | str = "") -> None: ...

    def say(self, message: str) -> None: ...


SILENT = NoProgress()


@contextmanager
def backend_warnings_to(progress: Progress) -> Iterator[None]:
    """While it lasts, warnings that backends log are shown to the user."""

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.say(record.getMessage())

    logger, handler = logging.getLogger("judgebench.models"), Shown(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@dataclass
class _Bar:
    """One piece of work so far. Replies after a parse retry are no further steps."""

    total: int
    done: int
    bar: TaskID
    calls: int = 0
    cost: float | None = None
    note: str = ""
    statuses: Counter[Status] = field(default_factory=Counter)
    unread: set[str] = field(default_factory=set)  # items whose last reply could not be read
    drawn: float = 0.0
    began: float = field(default_factory=lambda: time.monotonic())
    said: float = 0.0  # seconds after it began

    def add(self, what: Verdict | str) -> None:
        if isinstance(what, str):
            self.done += 1
            self.note = what
            return
        self.statuses[what.status] += 1
        (self.unread.add if what.status is Status.UNPARSED else self.unread.discard)(what.item_id)
        self.statuses[Status.UNPARSED] = len(self.unread)
        self.calls += what.usage.calls
        self.done += what.attempt == 0
        self.cost = add_known(self.cost, what.cost)

    def __str__(self) -> str:
        parts = [self.note] if self.note else []
        parts += [f"{self.calls:,} calls"] if self.statuses else []
        failures = list(Status)[1:]  # all but the first, ok
        parts += [f"{self.statuses[s]:,} {s}" for s in failures if self.statuses[s]]
        if self.cost is not None:
            parts.append(f"${self.cost:.4f}")
        return ", ".join(parts)


class ProgressDisplay:
    """A Progress that draws one bar per piece of work; without a terminal, lines of text."""

    def __init__(self, console: Console) -> None:
        from rich import progress as rich

        self._console = console
        self._bars = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=24),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[beside]}", markup=False),
            rich.TimeElapsedColumn(),
            rich.TextColumn("left"),
            rich.TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tallies: dict[str, _Bar] = {}

    def __enter__(self) -> ProgressDisplay:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for name, tally in self._tallies.items():
            self._draw(tally)
            if kind is None and not self._console.is_terminal and tally.calls:
                self.say(f"{name}: {tally}")
        self._bars.stop()

    def start(self, name: str, total: int, done: int) -> None:
        bar = self._bars.add_task(name, total=total, completed=done, beside="")
        self._tallies[name] = _Bar(total, done, bar)
        if done:
            self.say(f"{name}: {done:,} of {total:,} done before")
        elif not self._console.is_terminal and total:
            self.say(f"{name}: {total:,} to do")

    def advance(self, name: str, what: Verdict | str = "") -> None:
        tally = self._tallies[name]
        tally.add(what)
        now = time.monotonic()
        if now - tally.drawn >= _REDRAW_S:
            tally.drawn = now
            self._draw(tally)
        after = now - tally.began
        if not self._console.is_terminal and after - tally.said >= max(_SAY_S, _SAY_SHARE * after):
            tally.said = after
            self.say(f"{name}: {tally.done:,} of {tally.total:,} after {after:.0f} s")

    def say(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False, soft_wrap=True)

    def summary(self) -> list[str]:
        """One line per judge: how far it is, and what it took."""
        return [
            f"{name}: {tally.done:,} of {tally.total:,} answers judged; {tally}"
            for name, tally in self._tallies.items()
        ]

    def _draw(self, tally: _Bar) -> None:
        self._bars.update(tally.bar, completed=tally.done, beside=str(tally))
