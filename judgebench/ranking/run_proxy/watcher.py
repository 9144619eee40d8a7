"""Who follows a ranking run, and how the user's Ctrl-C reaches its parts."""

from __future__ import annotations

from typing import Protocol

from judgebench.runner import Interrupted
from judgebench.runner.stop import Stop


class RankWatcher(Protocol):
    """Told of every piece of work by its name."""

    def started(self, name: str, total: int, done: int) -> None:
        """So many steps are ahead, of which so many were done before."""
        ...

    def step(self, name: str, note: str = "") -> None:
        """One more step is done; `note` stands beside the bar."""
        ...

    def told(self, message: str) -> None:
        """A line for the user."""
        ...


class Quiet:
    """A RankWatcher that says nothing."""

    def started(self, name: str, total: int, done: int) -> None: ...

    def step(self, name: str, note: str = "") -> None: ...

    def told(self, message: str) -> None: ...


class Following:
    """Hands steps on and says whether the user wants to stop; `proxy.generate.Writing`."""

    def __init__(self, watcher: RankWatcher, stop: Stop) -> None:
        self._watcher, self._stop = watcher, stop

    @property
    def wanted(self) -> bool:
        """Whether no further work is to be begun."""
        return self._stop.wanted

    def started(self, name: str, total: int, done: int) -> None:
        """Hand on."""
        self._watcher.started(name, total, done)

    def step(self, name: str) -> None:
        """Hand on."""
        self._watcher.step(name)


class TrainingBar:
    """One bar an evaluator; `proxy.training.Watcher`. Raises Interrupted between two steps."""

    def __init__(self, name: str, watcher: RankWatcher, stop: Stop) -> None:
        self._name, self._watcher, self._stop = f"{name}: training", watcher, stop
        self._begun = False
        self._note = ""

    def epoch_started(self, epoch: int, epochs: int, steps: int) -> None:
        """Epochs count from 0; those before were done by an earlier run."""
        if not self._begun:
            self._watcher.started(self._name, epochs * steps, epoch * steps)
            self._begun = True

    def step(self, loss: float) -> None:
        """One batch is done."""
        self._watcher.step(self._name, self._note)
        if self._stop.wanted:
            raise Interrupted

    def epoch_ended(self, epoch: int, dev_loss: float, dev_score: float) -> None:
        """The score on the development split stands beside the bar."""
        self._note = f"epoch {epoch + 1}: {dev_score:.3f} on development"

    def told(self, message: str) -> None:
        """Hand on."""
        self._watcher.told(message)
