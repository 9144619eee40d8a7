"""How far a training has come, epoch by epoch, and when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgebench.ranking.proxy.config import TrainingConfig


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
        """The epoch of the highest development score, from 0; of equal ones the lowest loss, then
        the earliest.

        Not by the loss alone: of a small task it is often lowest while the most common class is
        still all that is decided, and an evaluator is asked for decisions.
        """
        return max(range(len(self.epochs)), key=lambda e: self._worth(self.epochs[e]))

    @staticmethod
    def _worth(epoch: Epoch) -> tuple[float, float]:
        return epoch.development_score, -epoch.development_loss

    def over(self, training: TrainingConfig) -> bool:
        """Whether all epochs are done, or too many went without a better one."""
        done = len(self.epochs)
        return done >= training.epochs or (done > 0 and done - 1 - self.best >= training.patience)
