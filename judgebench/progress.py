"""What is seen on the terminal while a run goes: calls, failures, cost and time left."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from judgebench.records import Status, Verdict

_REDRAW_S = 0.1  # redrawing a bar costs more than many a verdict


@dataclass
class _Tally:
    """One judge's verdicts so far. `done` counts answers, not replies asked for again."""

    total: int
    done: int
    calls: int = 0
    cost: float | None = None
    seen: Counter[Status] = field(default_factory=Counter)
    drawn: float = 0.0

    def add(self, verdict: Verdict) -> None:
        self.seen[verdict.status] += 1
        self.calls += verdict.usage.calls
        self.done += verdict.attempt == 0
        if verdict.cost is not None:
            self.cost = (self.cost or 0.0) + verdict.cost

    def __str__(self) -> str:
        parts = [f"{self.calls:,} calls"]
        parts += [f"{self.seen[s]:,} {s}" for s in Status if s is not Status.OK and self.seen[s]]
        if self.cost is not None:
            parts.append(f"${self.cost:.4f}")
        return ", ".join(parts)


def _bars(console: Console, beside: str) -> Progress:
    """Bars with that field beside each; none without a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(f"{{task.fields[{beside}]}}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


class ProgressDisplay:
    """A Watcher that draws one bar a judge; without a terminal, one line a finished judge."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = _bars(console, "counts")
        self._tasks: dict[str, TaskID] = {}
        self._tallies: dict[str, _Tally] = {}

    def __enter__(self) -> ProgressDisplay:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in self._tallies:
            self._draw(name)
        self._bars.stop()

    def judge_started(self, name: str, total: int, done: int) -> None:
        self._tallies[name] = _Tally(total, done)
        self._tasks[name] = self._bars.add_task(name, total=total, completed=done, counts="")
        if done:
            self.told(f"{name}: {done:,} of {total:,} answers were judged before and are kept")

    def verdict(self, verdict: Verdict) -> None:
        tally = self._tallies[verdict.judge]
        tally.add(verdict)
        now = time.monotonic()
        if now - tally.drawn >= _REDRAW_S:
            tally.drawn = now
            self._draw(verdict.judge)

    def judge_ended(self, name: str) -> None:
        self._draw(name)
        tally = self._tallies[name]
        if not self._console.is_terminal and tally.calls:
            self._console.print(f"{name}: {tally}", highlight=False, markup=False)

    def told(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False)

    def summary(self) -> list[str]:
        """One line a judge: how far it is, and what it took."""
        return [
            f"{name}: {tally.done:,} of {tally.total:,} answers judged; {tally}"
            for name, tally in self._tallies.items()
        ]

    def _draw(self, name: str) -> None:
        tally = self._tallies[name]
        self._bars.update(self._tasks[name], completed=tally.done, counts=str(tally))


class WorkDisplay:
    """A RankWatcher that draws one bar a piece of work; without a terminal, a line at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = _bars(console, "note")
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> WorkDisplay:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def started(self, name: str, total: int, done: int) -> None:
        self._tasks[name] = self._bars.add_task(name, total=total, completed=done, note="")
        if not self._console.is_terminal and done < total:
            self.told(f"{name}: {total - done:,} to do" + (f", {done:,} done before" * (done > 0)))

    def step(self, name: str, note: str = "") -> None:
        self._bars.update(self._tasks[name], advance=1, note=note)

    def told(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False, soft_wrap=True)
