"""What is seen on the terminal while a run goes: calls, failures, cost and time left."""

from __future__ import annotations

from collections import Counter
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


class ProgressDisplay:
    """A Watcher that draws one bar a judge; without a terminal, one line a finished judge."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = TaskID(0)
        self._seen: Counter[Status] = Counter()
        self._calls = 0
        self._cost: float | None = None

    def __enter__(self) -> ProgressDisplay:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def judge_started(self, name: str, total: int, done: int) -> None:
        self._seen.clear()
        self._calls, self._cost = 0, None
        self._task = self._bars.add_task(name, total=total, completed=done, counts="")
        if done:
            self.told(f"{name}: {done} of {total} answers were judged before and are kept")

    def verdict(self, verdict: Verdict) -> None:
        self._seen[verdict.status] += 1
        self._calls += verdict.usage.calls
        if verdict.cost is not None:
            self._cost = (self._cost or 0.0) + verdict.cost
        # Asking again replaces a verdict: only first attempts move the bar.
        advance = 1 if verdict.attempt == 0 else 0
        self._bars.update(self._task, advance=advance, counts=self._counts())

    def judge_ended(self, name: str) -> None:
        if not self._console.is_terminal and self._calls:
            self._console.print(f"{name}: {self._counts()}", highlight=False, markup=False)

    def told(self, message: str) -> None:
        self._console.print(message, highlight=False, markup=False)

    def _counts(self) -> str:
        parts = [f"{self._calls} calls"]
        parts += [f"{self._seen[s]} {s}" for s in Status if s is not Status.OK and self._seen[s]]
        if self._cost is not None:
            parts.append(f"${self._cost:.4f}")
        return ", ".join(parts)
