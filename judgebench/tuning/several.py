"""One training by several processes, one for each GPU of this machine, by accelerate.

Each process computes some passes of every step, and gradients are added up, so that the weights are
those of a single process but for rounding. Only the first process writes.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

from judgebench.errors import MissingExtra, RunError, SetupError
from judgebench.progress import NoProgress
from judgebench.records import Verdict
from judgebench.runner.stop import Interrupted
from judgebench.tuning.example import Example
from judgebench.tuning.train import UNWATCHED, Recipe, Watch, train

_GLANCE_S = 0.2
_PATIENCE_S = 30.0  # for a process to end once the training has
_KINDS: Mapping[str, type[BaseException]] = {
    kind.__name__: kind for kind in (SetupError, RunError, Interrupted)
}


def train_on_all(
    blocks: Sequence[Sequence[Example]], base: str, recipe: Recipe, folder: Path,
    watch: Watch = UNWATCHED, processes: int | None = None,
) -> Mapping[str, Any]:  # fmt: skip
    """As `train`, on all GPUs of this machine, or in so many processes. Raises what `train` raises,
    and MissingExtra without accelerate."""
    import torch

    n = processes or torch.cuda.device_count()
    if n < 2:
        return train(blocks, base, recipe, folder, watch)
    try:
        import accelerate  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("training on several GPUs", "tuning", "accelerate") from error
    context = torch.multiprocessing.get_context("spawn")  # a GPU in use survives no fork
    told, stop = context.Queue(), context.Event()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    job = _Job(blocks, base, recipe, folder, watch.name, watch.every_s)
    started = [
        context.Process(target=_work, args=((rank, n, port), job, told, stop), daemon=True)
        for rank in range(n)
    ]
    for process in started:
        process.start()
    try:
        for what, *more in sayings(told, started):
            if watch.stop.wanted:
                stop.set()
            match what:
                case "done":
                    return dict(more[0])
                case "failed":
                    raise _KINDS.get(more[0], RunError)(*more[1:])
                case "":
                    continue
                case _:
                    getattr(watch.progress, what)(*more)
        raise AssertionError
    finally:
        stop.set()
        for process in started:
            process.join(_PATIENCE_S)
            process.kill()


@dataclass(frozen=True)
class _Job:
    """What every process is to do."""

    blocks: Sequence[Sequence[Example]]
    base: str
    recipe: Recipe
    folder: Path
    name: str
    every_s: float


def sayings(queue: Any, started: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """What the processes say, and ("",) now and then. Raises RunError where one is gone."""
    while True:
        try:
            yield queue.get(timeout=_GLANCE_S)
        except Empty:
            ended = [p.exitcode for p in started if p.exitcode]
            if ended:
                message = f"a process of the training ended with exit code {ended[0]}"
                raise RunError(f"{message}; what was kept is not lost: run again") from None
            yield ("",)


def _work(place: tuple[int, int, int], job: _Job, told: Any, stop: Any) -> None:
    """One of the processes, at its place: its number, of how many, and the port where they meet."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it says when to stop
    rank, n, port = place
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n),
        "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    watch = Watch(job.name, NoProgress() if rank else _Tells(told), _Stop(stop), job.every_s)
    try:
        others = _Accelerated()
        facts = train(job.blocks, job.base, job.recipe, job.folder, watch, others)
        if rank == 0:
            told.put(("done", facts))
        others.part()
    except (SetupError, RunError) as error:
        told.put(("failed", type(error).__name__, str(error)))
    except Interrupted:
        told.put(("failed", Interrupted.__name__))


class _Accelerated:
    """The processes that accelerate knows of."""

    def __init__(self) -> None:
        import torch
        from accelerate import PartialState

        self._state = PartialState(cpu=not torch.cuda.is_available())
        self.rank, self.n = self._state.process_index, self._state.num_processes

    def add_up(self, tensors: Sequence[Any]) -> None:
        import torch
        from accelerate.utils import reduce

        total = reduce(torch.cat([tensor.reshape(-1) for tensor in tensors]), "sum")
        parts = total.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def part(self) -> None:
        """Wait for the others, and take leave of them."""
        self._state.wait_for_everyone()
        self._state.destroy_process_group()


class _Stop:
    def __init__(self, event: Any) -> None:
        self._event = event

    @property
    def wanted(self) -> bool:
        return bool(self._event.is_set())


class _Tells:
    """A Progress that passes on what is said."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def start(self, name: str, total: int, done: int) -> None:
        self._queue.put(("start", name, total, done))

    def advance(self, name: str, what: Verdict | str = "") -> None:
        self._queue.put(("advance", name, what))

    def say(self, message: str) -> None:
        self._queue.put(("say", message))
