"""How far a training has come, epoch by epoch, and when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgebench.proxy.config import TrainingConfig


@dataclass(frozen=True, slots=True)
class Epoch:
    """How one epoch went: mean loss in training; mean loss and share right on development."""

    train_loss: float
    development_loss: float
    development_score: float


@dataclass
class Progress:
    """How far training has come."""

    epochs: list[Epoch] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def best(self) -> int:
        """The epoch of the lowest development loss, from 0; the earliest of equal ones."""
        return min(range(len(self.epochs)), key=lambda e: self.epochs[e].development_loss)

    def over(self, training: TrainingConfig) -> bool:
        """Whether all epochs are done, or too many went without a better one."""
        done = len(self.epochs)
        return done >= training.epochs or (done > 0 and done - 1 - self.best >= training.patience)
