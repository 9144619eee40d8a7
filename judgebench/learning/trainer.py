"""The steps of a training, and its state on disk: what all that trains weights here shares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgebench.errors import RunError
from judgebench.files import disk_errors, write_atomically
from judgebench.progress import NoProgress, Progress
from judgebench.runs.judging import Interrupted, Stop

STATE = "training.safetensors"  # in a folder: all that the next step of its training needs
_CLIP = 1.0  # the most that the gradient's norm may be
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Watch:
    """The progress of training, who may stop it, and after how many seconds its state is kept
    again."""

    name: str = "training"
    progress: Progress = field(default_factory=NoProgress)
    stop: Stop = field(default_factory=Stop)
    every_s: float = 60.0


class Trainer:
    """AdamW (Loshchilov and Hutter 2019) on `groups` of a model's weights, fused where it can be.

    `rate` is the learning rate of each step, counted from 0. The state lies in the folder, under
    the `signature` of the training: no other training goes on from it.
    """

    whose = ""  # before the message of an error
    note = ""  # on the step that was taken last

    def __init__(
        self, model: Any, groups: Sequence[dict[str, Any]], rate: Callable[[int], float],
        folder: Path, signature: str,
    ) -> None:  # fmt: skip
        import torch

        self.weights = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._rate, self._path, self._signature = rate, folder / STATE, signature
        self._device = next(iter(self.weights.values())).device.type
        fused = self._device in ("cpu", "cuda")
        self._optimizer = torch.optim.AdamW(groups, lr=0.0, fused=fused)

    def step(self, number: int, losses: Iterable[Any]) -> float:
        """Step down the gradient of the summed losses, and return the sum. Each loss is computed
        when the memory of the one before is free. Raises RunError where the sum is no number."""
        import torch

        total: Any = 0.0
        for loss in losses:
            loss.backward()
            total = total + loss.detach()
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), _CLIP)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate(number)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(value := float(total)):
            raise RunError(f"{self.whose}the loss is no number: lower learning_rate")
        return value

    def steps(
        self, numbers: Iterable[int], losses: Callable[[int], Iterable[Any]], watch: Watch,
        about: Callable[[], Mapping[str, str]],
    ) -> Iterator[tuple[int, float]]:  # fmt: skip
        """Take the steps of these numbers, and yield number and summed loss of each.

        The state is kept every so many seconds and where the training is to stop, with what it is
        then `about`. Raises RunError where a loss is no number, DiskFailed, and Interrupted.
        """
        kept = time.monotonic()
        for number in numbers:
            stopped = watch.stop.wanted  # at least one step is taken each time
            yield number, self.step(number, losses(number))
            watch.progress.advance(watch.name, self.note)
            if stopped or time.monotonic() - kept >= watch.every_s:
                self.keep(**about())
                kept = time.monotonic()
            if stopped:
                raise Interrupted

    def keep(self, **about: str) -> None:
        """Keep all that the next step needs, with what it is `about`. Raises DiskFailed."""
        import torch
        from safetensors.torch import save

        state = {"chance": torch.get_rng_state()}
        if self._device == "cuda":
            state["chance of the GPU"] = torch.cuda.get_rng_state()
        for name, weight in self.weights.items():
            state[f"weight {name}"] = weight.detach()
            moments = self._optimizer.state.get(weight, {})  # none of a weight without a gradient
            state |= {f"{key} {name}": value for key, value in moments.items()}
        plain = {key: value.cpu().contiguous() for key, value in state.items()}
        with disk_errors(self._path.parent):
            content = save(plain, metadata={"signature": self._signature, **about})
            write_atomically(self._path, content)

    def resume(
        self, is_whole: Callable[[Mapping[str, str]], bool] = bool
    ) -> Mapping[str, str] | None:
        """Go on from what `keep` left of this very training, and return what it is about; None
        where it left nothing that is whole, by what it is about."""
        import torch

        about, state = self._kept() or ({}, {})
        if about.get("signature") != self._signature or not is_whole(about):
            return None
        torch.set_rng_state(state["chance"])
        if "chance of the GPU" in state:
            torch.cuda.set_rng_state(state["chance of the GPU"])
        for name, weight in self.weights.items():
            with torch.no_grad():
                weight.copy_(state[f"weight {name}"])
            if f"step {name}" in state:
                self._optimizer.state[weight] = {
                    key: state[f"{key} {name}"].to(weight.device) for key in _MOMENTS
                }
        return about

    def done(self) -> None:
        """Remove the state: the training is done. Raises OSError."""
        self._path.unlink(missing_ok=True)

    def _kept(self) -> tuple[Mapping[str, str], Mapping[str, Any]] | None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._path, framework="pt") as kept:
                return kept.metadata(), {key: kept.get_tensor(key) for key in kept.keys()}  # noqa: SIM118
        except (OSError, SafetensorError):  # none, or torn
            return None


@contextmanager
def memory_errors(message: str) -> Iterator[None]:
    """Raise RunError with the message in place of an engine's error for lack of memory."""
    import torch

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise RunError(message) from error


def has_bf16(device: str) -> bool:
    """Return True where the machine computes in bfloat16 and does not only emulate it."""
    import torch

    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))
