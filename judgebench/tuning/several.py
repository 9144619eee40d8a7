"""One training by several processes, one for each GPU of this machine, by accelerate.

Each process computes some passes of every step, and gradients are added up, so that the weights are
those of a single process but for rounding.
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

from judgebench.errors import RunError, SetupError
from judgebench.progress import NoProgress
from judgebench.records import Verdict
from judgebench.runs.stop import Interrupted
from judgebench.tuning.example import Example
from judgebench.tuning.train import UNWATCHED, Recipe, Share, Watch, train

_GLANCE_S, _PATIENCE_S = 0.2, 30.0


def train_on_all(
    blocks: Sequence[Sequence[Example]], base: str, recipe: Recipe, folder: Path,
    watch: Watch = UNWATCHED, processes: int | None = None,
) -> Mapping[str, Any]:  # fmt: skip
    """As `train`, on all GPUs of this machine, or in so many processes."""
    import torch

    n = processes or torch.cuda.device_count()
    if n < 2:
        return train(blocks, base, recipe, folder, watch)
    context = torch.multiprocessing.get_context("spawn")  # a GPU in use survives no fork
    told, stop = context.Queue(), context.Event()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        meet = str(probe.getsockname()[1])
    job = (blocks, base, recipe, folder)
    started = [
        context.Process(target=_work, args=((r, n, meet), job, _Line(told, stop)), daemon=True)
        for r in range(n)
    ]
    for process in started:
        process.start()
    what = ""
    try:
        for what, said in sayings(told, started):
            if what == "done":
                return dict(said)
            if what == "failed":
                raise said
            if what:
                getattr(watch.progress, what)(*((watch.name, *said) if what != "say" else said))
            if watch.stop.wanted:
                stop.set()
        raise AssertionError
    finally:
        for process in started:
            process.join(_PATIENCE_S if stop.is_set() or what == "done" else 0)
            process.kill()


def sayings(queue: Any, started: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What the processes say, and nothing now and then. Raises RunError where one is gone."""
    while True:
        try:
            yield queue.get(timeout=_GLANCE_S)
        except Empty:
            if ended := [process.exitcode for process in started if process.exitcode]:
                message = f"a process of the training ended with exit code {ended[0]}"
                raise RunError(f"{message}; what was kept is not lost: run again") from None
            yield "", None


@dataclass(frozen=True)
class _Line:
    """From a process to the one that started it: a Progress, and a StopSign."""

    queue: Any
    event: Any

    @property
    def wanted(self) -> bool:
        return bool(self.event.is_set())

    def start(self, name: str, total: int, done: int) -> None:
        self.queue.put(("start", (total, done)))

    def advance(self, name: str, what: Verdict | str = "") -> None:
        self.queue.put(("advance", (what,)))

    def say(self, message: str) -> None:
        self.queue.put(("say", (message,)))


def _work(place: tuple[int, int, str], job: tuple[Any, ...], line: _Line) -> None:
    """One of the processes, at its place: its number, of how many, and the port where they meet."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it says when to stop
    rank, n, port = place
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(n)}
    os.environ |= {"LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    import torch
    from accelerate import PartialState
    from accelerate.utils import reduce

    state = PartialState(cpu=not torch.cuda.is_available())

    def add_up(tensors: Sequence[Any]) -> None:
        total = reduce(torch.cat([tensor.reshape(-1) for tensor in tensors]), "sum")
        parts = total.split([tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    watch = Watch("training", line if rank == 0 else NoProgress(), line)
    try:
        blocks, base, recipe, folder = job
        facts = train(blocks, base, recipe, folder, watch, Share(rank, n, add_up))
        state.wait_for_everyone()
        if rank == 0:
            line.queue.put(("done", facts))
    except (SetupError, RunError, Interrupted) as error:
        line.queue.put(("failed", error))
    state.destroy_process_group()
