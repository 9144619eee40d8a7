"""The optimizer of a training, its schedule, its precision, and the state of its chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from judgebench.ranking.proxy.config import TrainingConfig


def adamw(model: Any, training: TrainingConfig, device: str) -> Any:
    """AdamW in its fused form where there is one; biases and norms, which are vectors, are not
    decayed."""
    import torch

    decayed = [p for p in model.parameters() if p.ndim > 1]
    free = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed}, {"params": free, "weight_decay": 0.0}]
    return torch.optim.AdamW(
        groups, lr=training.learning_rate, weight_decay=training.weight_decay,
        fused=device in ("cpu", "cuda"),
    )  # fmt: skip


def linear(optimizer: Any, training: TrainingConfig, steps: int) -> Any:
    """The learning rate goes up over the first steps and down over the others, both in a line."""
    import torch

    total = steps * training.epochs
    warm = math.ceil(total * training.warmup)

    def share(step: int) -> float:
        return step / warm if step < warm else (total - step) / max(total - warm, 1)

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def has_bf16(device: str) -> bool:
    """Whether a GPU computes in bfloat16 itself; CPUs round otherwise, and often only emulate."""
    import torch

    return device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def chance_state() -> dict[str, Any]:
    """The state of torch's random numbers, of the CPU and every GPU."""
    import torch

    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "gpus": gpus}


def set_chance_state(state: Mapping[str, Any]) -> None:
    """Put back what `chance_state` gave; GPUs only where there are as many."""
    import torch

    torch.set_rng_state(state["cpu"])
    if len(state["gpus"]) == torch.cuda.device_count() and state["gpus"]:
        torch.cuda.set_rng_state_all(state["gpus"])
